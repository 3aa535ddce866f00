//! The agents and CI systems that spec/holds.md lists are those that the command knows.

use crate::source::root;

fn text(path: &str) -> String {
    fs_err::read_to_string(root().join(path)).expect("a file of the project")
}

/// What is in quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

#[test]
fn the_table_of_agents_and_ci_systems_is_that_of_the_command() {
    let code = text("jvs/src/session/named.rs");
    let (_, table) = code.split_once("const HARNESSES").expect("the table of the command");
    let (table, _) = table.split_once("];\n\n").expect("its end");
    let variables = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let known: Vec<String> = table
        .split("Harness {")
        .skip(1)
        .map(|row| {
            let (name, rest) = row.split_once("is: ").expect("a name, then conditions");
            let (is, names) = rest.split_once("names: ").expect("conditions, then variables");
            let (name, is, names) = (quoted(name), quoted(is), quoted(names));
            let is = if is.is_empty() { String::new() } else { format!("{} ", variables(&is)) };
            format!("| `{}:…` | {is}| {} |", name[0], variables(&names))
        })
        .collect();
    assert!(known.len() > 5, "the rows are found: {known:#?}");
    let page = text("spec/holds.md");
    let rows = page.lines().skip_while(|line| *line != "| id | if | from |").skip(2);
    let listed: Vec<_> = rows.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(listed, known, "\nwrite into spec/holds.md:\n{}", known.join("\n"));
}
