//! The walks in ARCHITECTURE.md lead somewhere: each function is in its file.

use crate::source::root;

/// The pairs of a file and a function in the chapter of walks. A function without a file
/// of its own is in the file named last.
fn steps(text: &str) -> Vec<(&str, &str)> {
    let mut steps = Vec::new();
    let mut file = None;
    for code in text.split('`').skip(1).step_by(2) {
        if code.ends_with(".rs") {
            file = Some(code);
        } else if code.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            && let Some(file) = file
        {
            steps.push((file, code));
        }
    }
    steps
}

#[test]
fn every_function_of_the_walks_is_in_its_file() {
    let text = fs_err::read_to_string(root().join("ARCHITECTURE.md")).expect("the architecture");
    let (_, walks) = text.split_once("\n### `jvs lock acquire`\n").expect("the walks");
    let steps = steps(walks);
    assert!(steps.len() > 30, "the steps are found: {steps:#?}");
    for (file, function) in steps {
        let source = fs_err::read_to_string(root().join(file)).expect("a file of the walk");
        let there = ["(", "<"].iter().any(|end| source.contains(&format!("fn {function}{end}")));
        assert!(there, "{file} has no function {function}");
    }
}

#[test]
fn a_step_is_a_file_and_what_follows_it() {
    let text = "`a.rs` `one` then `two`, on (`Type`), `b.rs` `three`";
    assert_eq!(steps(text), [("a.rs", "one"), ("a.rs", "two"), ("b.rs", "three")]);
}
