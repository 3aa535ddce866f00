//! One name, one type: a reader of `StakeKind` in any crate knows which kind is meant.

use std::collections::BTreeMap;

use crate::source::{Source, sources};

/// Names that several crates define, and why that confuses nobody.
const SHARED: &[(&str, &str)] = &[(
    "Rule",
    "each crate's list of switches, `mutation::Rule`: the macro `sabotage!` expects that name",
)];

/// The types in `source` that code outside their module can name, each with its line.
fn visible_types(source: &Source) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut offset = 0;
    for line in source.code.split_inclusive('\n') {
        if let Some(name) = visible_type(line)
            && !source.is_test(offset)
        {
            found.push((name.to_owned(), source.line(offset)));
        }
        offset += line.len();
    }
    found
}

/// The name of the type that a line declares with any `pub`.
fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scoped) => scoped.split_once(')')?.1,
        None => rest,
    };
    let declaration = rest.strip_prefix(' ')?;
    let keywords = ["struct ", "enum ", "trait ", "type ", "union "];
    let name = keywords.iter().find_map(|keyword| declaration.strip_prefix(keyword))?;
    // A macro's `$name` is not a name.
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[test]
fn no_two_types_of_the_shipped_crates_have_one_name() {
    let sources = sources();
    let mut types = BTreeMap::<String, Vec<String>>::new();
    let shipped =
        |source: &&Source| source.path.starts_with("jvs") && source.path.contains("/src/");
    for source in sources.iter().filter(shipped) {
        for (name, line) in visible_types(source) {
            types.entry(name).or_default().push(line);
        }
    }
    assert!(types.len() > 400, "the types are found: {}", types.len());
    for (name, why) in SHARED {
        assert!(types.get(*name).is_some_and(|it| it.len() > 1), "{name} is not shared: {why}");
    }
    let twice: Vec<_> = types
        .iter()
        .filter(|(name, lines)| lines.len() > 1 && SHARED.iter().all(|(shared, _)| shared != name))
        .map(|(name, lines)| format!("{name}:\n    {}", lines.join("\n    ")))
        .collect();
    assert!(twice.is_empty(), "give each a name that says which\n{}", twice.join("\n"));
}

#[test]
fn a_type_is_visible_with_any_pub() {
    assert_eq!(visible_type("pub struct Term {"), Some("Term"));
    assert_eq!(visible_type("    pub(crate) enum Found<T> {"), Some("Found"));
    assert_eq!(visible_type("pub(in crate::a) type X = u8;"), Some("X"));
    assert_eq!(visible_type("struct Hidden;"), None);
    assert_eq!(visible_type("pub struct $name(u64);"), None);
    assert_eq!(visible_type("pub fn term() -> Term {"), None);
}
