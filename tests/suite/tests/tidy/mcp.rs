//! The page about the MCP server has what the server has.

use crate::source::root;

fn text(path: &str) -> String {
    fs_err::read_to_string(root().join(path)).expect("a file of the project")
}

/// What is between quotes behind each `mark`.
fn quoted_after(code: &str, mark: &str) -> Vec<String> {
    let found = code.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
    found.map(str::to_owned).collect()
}

/// The first column of the table under this head.
fn rows(page: &str, head: &str) -> Vec<String> {
    let rows = page.lines().skip_while(|line| *line != head).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.filter_map(|line| Some(line.split('`').nth(1)?.to_owned())).collect()
}

#[test]
fn the_page_about_the_mcp_server_has_its_tools_and_its_codes() {
    let page = text("spec/mcp.md");
    let table = text("jvs-mcp/src/tool.rs");
    let (_, table) = table.split_once("pub(crate) const TOOLS").expect("the table of tools");
    let (table, _) = table.split_once("\n];\n").expect("its end");
    let tools: Vec<_> = quoted_after(table, "        name: \"");
    assert!(tools.len() > 8, "{tools:?}");
    assert_eq!(rows(&page, "| tool | command | hints |"), tools);
    let codes = quoted_after(&text("jvs-mcp/src/answer.rs"), "=> \"");
    assert_eq!(rows(&page, "| code | meaning |"), codes);
}
