//! The manual's pages are right by the tools that show them, and whole.

use crate::stage::Stage;

/// What the checker says of every page that has no date, and of lists in lists, which the
/// generator of the options writes.
const ALLOWED: &[&str] = &["missing date", "cannot parse date", "skipping paragraph macro"];

#[test]
fn every_page_of_the_manual_is_whole_and_no_tool_complains_of_it() {
    let stage = Stage::empty();
    stage.types("jvs man pages").ok();
    let said = stage.types("mandoc -T lint -W warning pages/* || true").ok();
    let said: Vec<&str> = said.stdout().lines().collect();
    let wrong = said.iter().filter(|line| !ALLOWED.iter().any(|it| line.contains(it)));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&&str>::new());
    let sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"];
    let listed = stage.types("ls pages").ok();
    for page in listed.stdout().lines() {
        let shown = stage.types(&format!("mandoc -T ascii pages/{page} | col -b")).ok();
        let lines: Vec<&str> = shown.stdout().lines().collect();
        let wanted = sections.iter().filter(|it| page.ends_with(".1") || **it == "NAME");
        for section in wanted {
            assert!(lines.contains(section), "{page} has no {section}:\n{}", shown.stdout());
        }
        let title = page.replace(".1", "(1)").replace(".7", "(7)");
        assert!(lines[0].starts_with(&title), "{page}: {}", lines[0]);
    }
    let main = stage.types("mandoc -T ascii pages/jvs.1 | col -b").ok();
    for text in ["FILES", "ENVIRONMENT", "E_LOCK_CONFLICT", "jvs-agents(7)", "jvs-lock(1)"] {
        assert!(main.stdout().contains(text), "{text}: {}", main.stdout());
    }
}
