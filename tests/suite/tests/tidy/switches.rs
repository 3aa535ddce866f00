//! Rules that can be switched off are out of the readers' way: whoever reads a function
//! reads what the spec says, and after its first lines nothing else.

use crate::architecture::is_shipped;
use crate::source::{Source, sources};

const CALL: &str = "sabotage!(";

/// Whether the `sabotage!` at `at` is the first statement of a function, or follows
/// others that are.
fn is_first_statement(code: &str, at: usize) -> bool {
    let before = code[..at].trim_end();
    if let Some(header) = before.strip_suffix('{') {
        let header = &header[header.rfind(['{', '}', ';']).map_or(0, |end| end + 1)..];
        return header.split_whitespace().any(|word| word == "fn");
    }
    match before.rfind(CALL) {
        Some(earlier) => {
            is_one_call(&before[earlier + CALL.len()..]) && is_first_statement(code, earlier)
        }
        None => false,
    }
}

/// Whether what follows the opening parenthesis of a call ends with the call.
fn is_one_call(rest: &str) -> bool {
    let mut depth = 1_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &rest[at..] == ");";
        }
    }
    false
}

/// Where functions ask about a rule, or are sabotaged after they began.
fn in_the_way(source: &Source) -> Vec<usize> {
    let asked = source.code.match_indices(".holds()").map(|(at, _)| at);
    let late = source.code.match_indices(CALL).map(|(at, _)| at);
    asked.chain(late.filter(|at| !is_first_statement(&source.code, *at))).collect()
}

#[test]
fn no_function_is_sabotaged_but_at_its_beginning() {
    let mut sabotaged = 0;
    for source in sources().iter().filter(|source| is_shipped(source)) {
        let is_switch = source.path == "jvs-repo/src/mutation.rs";
        if is_switch || source.path.ends_with("/sabotage.rs") {
            continue;
        }
        sabotaged += source.code.matches(CALL).count();
        let wrong: Vec<_> = in_the_way(source).into_iter().map(|at| source.line(at)).collect();
        assert!(
            wrong.is_empty(),
            "make what the rule demands a function whose first statement is the `sabotage!`: \
             {wrong:#?}"
        );
    }
    assert!(sabotaged > 0, "nothing was looked at");
}

#[test]
fn what_sabotages_is_built_for_the_protocol_tests_alone() {
    let mut found = 0;
    for source in sources().iter().filter(|source| is_shipped(source)) {
        for (at, _) in source.code.match_indices("mod sabotage;") {
            let before = source.text[..at].trim_end();
            assert!(
                before.ends_with("#[cfg(feature = \"mutations\")]"),
                "{}: without its feature",
                source.line(at)
            );
            found += 1;
        }
    }
    let files = sources().iter().filter(|source| source.path.ends_with("/sabotage.rs")).count();
    assert!(found > 0 && found == files, "{found} declared, {files} there");
}

#[test]
fn a_sabotage_is_first_if_nothing_but_another_comes_before_it() {
    let last = |code: &str| is_first_statement(code, code.rfind(CALL).expect("there is one"));
    assert!(last("fn f(&self) -> bool {\n    sabotage!(Rule::A => g(1));\n    true\n}"));
    assert!(last("fn f() { sabotage!(Rule::A => { g(1); h() }); sabotage!(Rule::B); }"));
    for late in [
        "fn f() { let x = 1; sabotage!(Rule::A); }",
        "fn f() { sabotage!(Rule::A); g(); sabotage!(Rule::B); }",
        "fn f() { if g() { sabotage!(Rule::A); } }",
        "fn f() { let g = || { sabotage!(Rule::A); }; }",
    ] {
        assert!(!last(late), "{late}");
    }
}
