//! Names, notes, reasons, users, records and logs that others wrote: whatever is in
//! them, a terminal shows it and does nothing else, and no line is forged.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::Outcome;
use jvs_kit::live::terminal::Terminal;
use jvs_repo::inert::acts;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::lock::Record;
use serde_json::Value;

use crate::world::World;

/// Whatever may be in a name of a file: a title, a cleared screen, C1, DEL, NEL, a line
/// that is forged, a reversed word, what is not seen, separators.
const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{7f}\u{85}\r\nFORGED \u{202e}txt\u{2066}\
                       \u{61c}\u{200b}\u{200d}\u{feff}\u{2028}FORGED\u{2029}FORGED\u{fdd3}";
/// What is let into notes: no control characters.
const SLY: &str = "ok\u{202e}txt.exe\u{2066}\u{200b}\u{200f}\u{2028}FORGED\u{feff}\u{fdd1}";

/// Of every record, in bytes.
const WIDTH: usize = 4096;

/// What was said has nothing in it that a terminal acts on, but for the ends of lines
/// and, where they were asked for, colours of ours.
#[track_caller]
fn is_inert(said: &Outcome, colours: bool) {
    for stream in [&said.stdout, &said.stderr] {
        let text = std::str::from_utf8(stream).unwrap_or_else(|e| panic!("{e}: {said}"));
        let mut plain = text.to_owned();
        if colours {
            for style in ["0", "1", "2", "3", "4", "31", "32", "33", "36", "91", "92"] {
                plain = plain.replace(&format!("\u{1b}[{style}m"), "");
            }
        }
        for line in plain.split('\n') {
            let found = line.chars().find(|c| acts(*c));
            assert_eq!(found.map(|c| c.escape_unicode().to_string()), None, "{line:?}: {said}");
            assert!(!line.trim_start().starts_with("FORGED"), "{said}");
        }
    }
}

/// A repository of which everything is hostile that can be.
fn world() -> World {
    let world = World::named(HOSTILE.as_ref());
    fs_err::write(world.file(HOSTILE), "x").expect("written");
    fs_err::write(world.file(OsStr::from_bytes(b"\x9b2J\xff\nFORGED")), "x").expect("written");
    let made = as_somebody(&world, &["snapshot", SLY]).run().ok();
    is_inert(&made, false);
    as_somebody(&world, &["tag", "@", "v1"]).run().ok();
    fs_err::write(world.file(HOSTILE), "changed").expect("written");
    fs_err::create_dir(world.file(format!("dir{HOSTILE}"))).expect("made");
    let dirs = layout::skeleton().into_iter().chain([layout::control_dir()]);
    for dir in dirs {
        fs_err::write(world.at(&dir).join(HOSTILE), "").expect("written");
        fs_err::write(world.at(&dir).join(OsStr::from_bytes(b"\xff\nFORGED")), "").expect("made");
    }
    as_somebody(&world, &["lock", "acquire", "--no-keeper", "--note", SLY]).run().ok();
    forge_record(&world);
    forge_log(&world);
    world
}

fn as_somebody(world: &World, words: &[&str]) -> Jvs {
    world.command(words).env("JVS_USER", SLY).env("TERM", HOSTILE).env("PS1", HOSTILE)
}

/// Puts hostile text wherever the record takes text.
fn forge_record(world: &World) {
    let path = world.at(&layout::lock_record(&WorktreeName::main()));
    let text = fs_err::read_to_string(&path).expect("a record");
    let mut value: Value = serde_json::from_str(text.trim()).expect("JSON");
    fn forge(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.iter_mut().for_each(|(name, value)| match name.as_str() {
                    "hostname" | "user_identity" | "session_id" | "holder_id" | "note" => {
                        *value = HOSTILE.into();
                    }
                    _ => forge(value),
                })
            }
            Value::Array(items) => items.iter_mut().for_each(forge),
            _ => {}
        }
    }
    forge(&mut value);
    // As wide as every record is.
    let text = value.to_string();
    fs_err::write(&path, format!("{text:width$}\n", width = WIDTH - 1)).expect("written");
    assert!(serde_json::from_value::<Record>(value).is_ok(), "it is read");
}

fn forge_log(world: &World) {
    let logs = world.at(&layout::audit()).read_dir().expect("listed");
    for log in logs.map(|log| log.expect("listed").path()) {
        if log.extension().is_some_and(|end| end == "jsonl") {
            let mut log = fs_err::OpenOptions::new().append(true).open(log).expect("opened");
            log.write_all(format!("{}\n", HOSTILE.replace('\n', " ")).as_bytes()).expect("written");
        }
    }
}

/// What looks, and what changes nothing that the next one needs.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["status", "--full"],
    &["diff"],
    &["diff", "--stat"],
    &["diff", "--patch"],
    &["diff", "--word-diff"],
    &["show"],
    &["show", "--patch", "@-"],
    &["ls"],
    // What it answers is exact, as that of `worktree path`: a shell takes it.
    &["path", SLY],
    &["ls", "--long", "--recursive", "@"],
    &["cat", "@", SLY],
    &["history"],
    &["history", "--graph"],
    &["history", SLY],
    &["info"],
    &["verify", "--all"],
    &["verify", "--files"],
    &["tag", "--list"],
    &["worktree", "list"],
    &["lock", "status"],
    &["lock", "list"],
    &["lock", "why"],
    &["agent", "status"],
    &["agent", "install", "claude", "--dry-run"],
    &["hook", "claude", "PreToolUse"],
    &["audit"],
    &["audit", "--all"],
    &["audit", "--verify"],
    &["events", "--renewals"],
    &["events", "-w", SLY],
    &["session", "show"],
    &["session", "list"],
    &["config", "list"],
    &["doctor"],
    &["doctor", "--strict", "--dry-run"],
    &["doctor", "--format", "prometheus"],
    &["gc", "--dry-run"],
    &["__complete", "--", "jvs", "info", ""],
    &["__complete", "--", "jvs", "cat", "@", ""],
    &["lock", "acquire"],
    &["lock", "steal", "--reason", SLY],
    &["lock", "reclaim", "--reason", SLY],
    &["lock", "transfer", "--to", SLY],
    &["snapshot", SLY],
    &["restore", "@", "--into", "x"],
    &["restore", "@", "--in-place", "--reason", SLY, SLY],
    &["run", "--", SLY],
    &["worktree", "create", SLY],
    &["worktree", "path", SLY],
    &["config", "set", SLY, SLY],
    &["tag", SLY, SLY],
    &["info", SLY],
    &["-w", SLY, "status"],
    &["--repo", SLY, "status"],
    &["--session", SLY, "status"],
    &[SLY],
    &["lock", SLY],
    &["status", "--", SLY],
    &["doctor", "--strict"],
    &["gc"],
    &["undo", "--list"],
    &["undo", "--op", SLY],
    &["undo"],
    &["redo"],
    &["forget", SLY],
    &["forget", "@-", "--reason", SLY],
    &["doctor", "--strict", "--repair"],
    &["audit", "--tla", SLY],
];

#[test]
fn whatever_others_wrote_is_shown_and_drives_no_terminal() {
    let world = world();
    for words in COMMANDS {
        // Of the same session and of another one.
        for session in ["s", "t"] {
            let said = as_somebody(&world, words).session(session).run();
            is_inert(&said, false);
            let said = as_somebody(&world, words).env("CLICOLOR_FORCE", "1").session(session).run();
            is_inert(&said, true);
        }
    }
}

/// JSON says it exactly, and in plain characters.
#[test]
fn json_is_inert_too_and_says_what_is_there() {
    let world = world();
    for words in COMMANDS {
        let said = as_somebody(&world, words).arg("--json").session("t").run();
        // Words of the child's own, and of another format.
        if !words.contains(&"--") && !words.contains(&"prometheus") {
            is_inert(&said, false);
            said.json();
        }
    }
    let root = as_somebody(&world, &["worktree", "list", "--json"]).run().ok().json();
    assert_eq!(root["data"]["root"], world.root().to_str().expect("text"));
}

#[test]
fn the_line_of_somebody_who_waits_is_inert() {
    let world = world();
    let wait = as_somebody(&world, &["lock", "acquire", "--wait=5s"]).session("t");
    let mut terminal = Terminal::start(&wait.command());
    terminal.sees("waiting", Duration::from_secs(30));
    terminal.sees("E_LOCK_CONFLICT", Duration::from_secs(60));
    let mut seen = terminal.screen();
    assert!(seen.contains("\\u{1b}]0;x"), "what the record says is shown: {seen:?}");
    for ours in ["\r\u{1b}[K", "\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[36m", "\r\n"] {
        seen = seen.replace(ours, "");
    }
    let found = seen.chars().find(|c| acts(*c));
    assert_eq!(found.map(|c| c.escape_unicode().to_string()), None, "{seen:?}");
}

/// What a shell evaluates on its own, before each prompt or for a completion, has no
/// words of others in it.
#[test]
fn nothing_that_a_shell_evaluates_has_words_of_others_in_it() {
    let world = World::named("$(touch pwned)`touch pwned`".as_ref());
    let script = r#"printf '%s|' "$JVS_PROMPT" "$JVS_WORKTREE" "$PROMPT_COMMAND""#;
    let said = world.command(&["shell", "--", "-c", script]).env("SHELL", "/bin/sh").run();
    let said = if said.status.success() {
        said
    } else {
        world.jvs(&["run", "--", "sh", "-c", script]).ok()
    };
    assert!(!said.stdout().contains("pwned"), "{said}");
    for name in ["a$(touch pwned)", "a`b`", "a;b", "a\u{1b}[2J", "a b", "a\"b", "a\nb", "a\\b"] {
        let refused = world.jvs(&["worktree", "create", name]).exits(13);
        assert!(refused.stderr().contains("E_NAME_INVALID"), "{refused}");
    }
    let plain = World::new();
    for words in [&["completions", "bash"][..], &["completions", "zsh"], &["man"], &["schema"]] {
        let here = world.command(words).env("JVS_USER", SLY).run().ok();
        assert_eq!(here.stdout(), plain.jvs(words).ok().stdout(), "{words:?}");
    }
}

/// A command that is told is one that can be typed, whatever the directory is called.
#[test]
fn the_commands_that_are_told_do_only_what_they_say() {
    let world = World::named("a b; touch pwned; $(touch pwned) 'q' \u{202e}".as_ref());
    let told = world.home.jvs(["init"]).arg(world.root()).cwd(world.outside("")).run();
    let hint = told.stderr().split("list --repo ").nth(1).expect("a hint").trim().to_owned();
    let jvs = world.command(&[]).command().get_program().to_owned();
    let mut shell = world.command(&[]).command();
    let line = format!("\"$0\" worktree list --repo {hint}");
    shell = {
        let mut bash = std::process::Command::new("bash");
        bash.arg("-c").arg(line).arg(jvs).current_dir(world.outside(""));
        for (key, value) in shell.get_envs() {
            bash.env(key, value.unwrap_or_default());
        }
        bash
    };
    let listed = jvs_kit::live::process::run(shell, Duration::from_secs(60)).ok();
    assert!(listed.stdout().contains("main"), "{listed}");
    assert!(!world.outside("pwned").exists());
}
