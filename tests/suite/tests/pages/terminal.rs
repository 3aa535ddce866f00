//! What is only seen where somebody looks at a terminal, and what a log gets instead.

use std::time::Duration;

use jvs_kit::live::terminal::{CTRL_C, Terminal};

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal in which a script runs.
fn terminal(stage: &Stage, script: &str) -> Terminal {
    let mut shell = stage.shell("bash", &["-c", script]);
    shell.env("TERM", "xterm");
    Terminal::start(&shell)
}

#[test]
fn a_long_answer_goes_through_the_pager_on_a_terminal_only() {
    let stage = Stage::furnished();
    let pager = "export JVS_PAGER='cat > paged; echo paged it'";
    let renew = "for i in $(seq 20); do jvs lock acquire --no-keeper; jvs lock release; done";
    stage.types(renew).ok();
    // In a pipe, and where it is not wanted.
    stage.types(&format!("{pager}; jvs audit --all | grep acquire; test ! -e paged")).ok();
    let mut seen =
        terminal(&stage, &format!("{pager}; jvs audit --all --no-pager; echo end; read"));
    seen.sees("end", PATIENCE);
    assert!(!seen.screen().contains("paged it"), "{}", seen.screen());
    // What fits is just printed.
    let mut seen = terminal(&stage, &format!("{pager}; jvs history; echo end; read"));
    seen.sees("end", PATIENCE);
    assert!(!seen.screen().contains("paged it"), "{}", seen.screen());
    let mut seen = terminal(&stage, &format!("{pager}; jvs audit --all; echo end; read"));
    seen.sees("paged it", PATIENCE);
    seen.sees("end", PATIENCE);
    stage.types("grep -q 'release done' paged").ok();
    // A pager that does not exist costs no answer.
    let mut seen = terminal(&stage, "JVS_PAGER=nosuchpager jvs audit --all; echo end; read");
    seen.sees("release done", PATIENCE);
    seen.sees("end", PATIENCE);
}

#[test]
fn what_its_user_configured_is_how_a_terminal_looks() {
    let stage = Stage::furnished();
    let look = "jvs history; echo end; read";
    let mut seen = terminal(&stage, look);
    seen.sees("end", PATIENCE);
    assert!(seen.screen().contains("\u{1b}[2m"), "{:?}", seen.screen());
    stage
        .types("mkdir -p ~/.config/jvs; echo 'ui.color = \"never\"' > ~/.config/jvs/config.toml")
        .ok();
    let mut seen = terminal(&stage, look);
    seen.sees("end", PATIENCE);
    assert!(!seen.screen().contains("\u{1b}[2m"), "{:?}", seen.screen());
}

#[test]
fn a_watch_on_a_terminal_is_a_table_that_is_kept_up_to_date() {
    let stage = Stage::furnished();
    let mut seen = terminal(&stage, "exec jvs lock watch");
    seen.sees("WORKTREE", PATIENCE);
    seen.sees("next", PATIENCE);
    stage.types("jvs -w next lock acquire --no-keeper --note 'live table'").ok();
    seen.sees("live table", PATIENCE);
    stage.types("jvs -w next lock release").ok();
    seen.sees("free", PATIENCE);
    seen.types(CTRL_C);
}

/// A job's log is read by people, too: they see who keeps it waiting.
#[test]
fn a_wait_without_a_terminal_says_now_and_then_who_has_the_lock() {
    let stage = Stage::furnished();
    stage.types("JVS_SESSION_ID=bob jvs lock acquire --no-keeper --note 'long work'").ok();
    let waited = stage.types("jvs lock acquire --wait=12s").exits(2);
    let lines: Vec<&str> =
        waited.stderr().lines().filter(|line| line.starts_with("waiting ")).collect();
    assert_eq!(lines.len(), 1, "{waited}");
    assert!(lines[0].contains("for worktree main") && lines[0].contains("long work"), "{waited}");
    let quiet = stage.types("jvs lock acquire --wait=12s --json").exits(2);
    assert!(!quiet.stderr().contains("waiting"), "{quiet}");
}
