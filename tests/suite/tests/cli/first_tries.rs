//! The page that says what people try first, and what they are answered.

use std::path::{Path, PathBuf};

use crate::transcript::Stage;

const FENCE: &str = "```";

fn page() -> PathBuf {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = suite.ancestors().nth(2).expect("the suite is two levels below the root");
    root.join("spec/first-tries.md")
}

/// The page with the answers of today.
fn replayed(text: &str) -> String {
    let mut stage = Stage::new();
    let (mut out, mut block) = (String::new(), None::<String>);
    for line in text.split_inclusive('\n') {
        match &mut block {
            Some(typed) if line.starts_with(FENCE) => {
                out += &stage.replay(typed);
                out += line;
                block = None;
            }
            Some(typed) => typed.push_str(line),
            None => {
                out += line;
                block = line.starts_with("```console").then(String::new);
            }
        }
    }
    assert!(block.is_none(), "a block has no end");
    out
}

#[test]
fn what_people_try_first_is_answered_as_it_is_told() {
    let told = fs_err::read_to_string(page()).expect("a page");
    let now = replayed(&told);
    if std::env::var_os("JVS_BLESS").is_some() {
        return fs_err::write(page(), now).expect("the page can be written");
    }
    for (line, (told, now)) in told.lines().zip(now.lines()).enumerate() {
        assert_eq!(told, now, "spec/first-tries.md:{}\n{now}", line + 1);
    }
    assert_eq!(told.lines().count(), now.lines().count(), "spec/first-tries.md: one is longer");
}
