//! What shells offer, in the shells themselves.

use std::time::Duration;

use jvs_kit::live::terminal::Terminal;

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

/// What is offered for a line by our own answer, without descriptions.
fn offered(stage: &Stage, line: &str) -> Vec<String> {
    let said = stage.types(&format!("jvs __complete -- {line}")).ok();
    let words = said.stdout().lines().skip(1);
    words.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_there_is_is_offered_and_nothing_internal() {
    let stage = Stage::furnished();
    stage
        .types("jvs lock acquire --no-keeper; JVS_SESSION_ID=other jvs lock acquire || true")
        .exits(0);
    assert_eq!(offered(&stage, "jvs worktree path ''"), ["main", "next"]);
    assert_eq!(offered(&stage, "jvs -w ne"), ["next"]);
    assert_eq!(offered(&stage, "jvs tag --delete ''"), ["v1"]);
    let snapshots = offered(&stage, "jvs info ''");
    assert_eq!((&snapshots[..3], snapshots.len()), (&["@", "@-", "v1"].map(String::from)[..], 5));
    assert_eq!(offered(&stage, "jvs cat @ src/"), ["src/main.c"]);
    assert_eq!(offered(&stage, "jvs cat @ s"), ["src/"]);
    assert!(offered(&stage, "jvs --session ''").contains(&"test".to_owned()));
    assert!(
        offered(&stage, "jvs config get retention.").contains(&"retention.keep_last".to_owned())
    );
    assert_eq!(offered(&stage, "jvs lock acquire --worktree=ne"), ["--worktree=next"]);
    let listed = stage.types("jvs undo --list | sed 1d | cut -d' ' -f1").ok();
    let operations = listed.stdout();
    let operations: Vec<&str> = operations.lines().collect();
    assert!(operations.len() > 1, "{operations:?}");
    assert_eq!(offered(&stage, "jvs undo --op ''"), operations);
    assert_eq!(offered(&stage, "jvs restore v"), ["v1"]);
    for line in ["jvs _", "jvs help _", "jvs worktree path nope", "jvs --repo /nowhere info ''"] {
        assert_eq!(offered(&stage, line), Vec::<String>::new(), "{line}");
    }
    // Elsewhere, and of another repository.
    let there = stage.types("cd /; jvs __complete -- jvs --repo \"$OLDPWD\" worktree path ''").ok();
    assert_eq!(there.stdout(), "none\nmain\nnext\n");
}

/// Names that a shell or a terminal would act on are not offered.
#[test]
fn what_a_shell_would_act_on_is_not_offered() {
    let stage = Stage::furnished();
    stage
        .types("touch 'a b' '$(touch pwned)' 'x;y' \"$(printf 'e\\033[2J')\"; jvs snapshot odd")
        .ok();
    let found = offered(&stage, "jvs cat @ ''");
    assert_eq!(found, ["notes.txt", "src/"]);
}

/// A word is begun and completed, and what the whole line does is seen.
fn completes(mut shell: Terminal) {
    for (typed, seen) in [
        ("jvs worktree path ne\t\n", "/r/worktrees/next"),
        ("jvs cat v\tno\t\n", "notes\r\n"),
        ("jvs info v\t | grep note\n", "it builds"),
        ("jvs config get retention.keep_l\t\n", "10"),
        ("jvs ls @ sr\t\n", "src/main.c"),
        ("jvs restore not\t\n", "Restored 1 path"),
        ("jvs --repo ../../r/ma\t worktree lis\t --js\t\n", "\"command\":\"worktree list\""),
        ("exit\n", "exit"),
    ] {
        shell.types(typed);
        shell.sees(seen, PATIENCE);
    }
}

#[test]
fn bash_completes_with_nothing_but_itself() {
    let stage = Stage::furnished();
    fs_err::write(stage.path("rc"), "source <(jvs completions bash); PS1='$ '\n").expect("written");
    let rc = stage.path("rc").display().to_string();
    let mut bash = stage.shell("bash", &["--noprofile", "--rcfile", &rc, "-i"]);
    bash.env("TERM", "dumb");
    completes(Terminal::start(&bash));
}

#[test]
fn zsh_completes() {
    let stage = Stage::furnished();
    let rc = "autoload -U compinit; compinit -u -D; source <(jvs completions zsh); PS1='$ '\n";
    fs_err::write(stage.path(".zshrc"), rc).expect("written");
    let mut zsh = stage.shell("zsh", &["-d", "-i"]);
    let dir = stage.path(".zshrc");
    zsh.env("TERM", "dumb").env("ZDOTDIR", dir.parent().expect("a directory"));
    completes(Terminal::start(&zsh));
}

#[test]
fn fish_offers_words_with_what_they_are() {
    let stage = Stage::furnished();
    let script = "jvs completions fish | source
        complete -C 'jvs worktree path '; complete -C 'jvs cat @ s'; complete -C 'jvs lock acq'
        complete -C 'jvs _'; complete -C 'jvs --session te'; complete -C 'jvs restore @ no'
        complete -C 'jvs lock acquire --worktree=ne'";
    let said = stage.run("fish", &["--no-config", "-c", script]).ok();
    let words: Vec<&str> = said.stdout().lines().collect();
    assert_eq!(&words[..3], ["main", "next", "src/"], "{said}");
    assert!(words[3].starts_with("acquire\tTake the lock"), "{said}");
    assert_eq!(&words[4..], ["test", "notes.txt", "--worktree=next"], "{said}");
}
