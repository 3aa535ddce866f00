//! The hooks that are installed for each harness, as its settings have them.

use serde_json::{Value, json};

use super::Harness;

/// Where the settings are, below the home directory or a worktree.
pub(crate) const fn settings(harness: Harness) -> &'static str {
    match harness {
        Harness::Claude => ".claude/settings.json",
        Harness::Codex => ".codex/hooks.json",
        Harness::Cursor => ".cursor/hooks.json",
        Harness::Gemini => ".gemini/settings.json",
    }
}

/// Settings that have nothing in them yet.
pub(crate) const fn empty_settings(harness: Harness) -> &'static str {
    match harness {
        Harness::Cursor => "{\n  \"version\": 1\n}\n",
        _ => "{}\n",
    }
}

/// What is asked of the hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedHooks {
    /// The program, as a shell takes it.
    pub(crate) program: String,
    /// Its options.
    pub(crate) options: String,
    /// Snapshots are taken at the end of turns.
    pub(crate) checkpoint: bool,
    /// A write that cannot be judged is denied.
    pub(crate) fail_closed: bool,
    /// For one worktree, not for all that the user does.
    pub(crate) local: bool,
}

/// How long a harness waits: longer than the hook takes at most.
const SECONDS: u64 = 5;
const SECONDS_OF_COPIES: u64 = 70;

/// The entries, each with its event.
pub(crate) fn entries(harness: Harness, wanted: &WantedHooks) -> Vec<(&'static str, Value)> {
    let events: Vec<(&'static str, u64)> = match harness {
        Harness::Claude => {
            let mut events = vec![("SessionStart", SECONDS), ("PreToolUse", SECONDS)];
            events.extend(wanted.checkpoint.then_some(("Stop", SECONDS_OF_COPIES)));
            events.push(("SessionEnd", SECONDS));
            // Outside of repositories the harness makes worktrees as ever: a hook would
            // take its place.
            if wanted.local {
                events.push(("WorktreeCreate", SECONDS_OF_COPIES));
                events.push(("WorktreeRemove", SECONDS_OF_COPIES));
            }
            events
        }
        Harness::Codex => {
            let mut events = vec![("SessionStart", SECONDS), ("PreToolUse", SECONDS)];
            events.extend(wanted.checkpoint.then_some(("Stop", SECONDS_OF_COPIES)));
            events
        }
        Harness::Cursor => {
            let mut events = vec![
                ("sessionStart", SECONDS),
                ("preToolUse", SECONDS),
                ("beforeShellExecution", SECONDS),
                ("beforeMCPExecution", SECONDS),
            ];
            events.extend(wanted.checkpoint.then_some(("stop", SECONDS_OF_COPIES)));
            events.push(("sessionEnd", SECONDS));
            events
        }
        Harness::Gemini => {
            let mut events = vec![("SessionStart", SECONDS), ("BeforeTool", SECONDS)];
            events.extend(wanted.checkpoint.then_some(("AfterAgent", SECONDS_OF_COPIES)));
            events.push(("SessionEnd", SECONDS));
            events
        }
    };
    events
        .into_iter()
        .map(|(event, seconds)| (event, entry(harness, wanted, event, seconds)))
        .collect()
}

fn entry(harness: Harness, wanted: &WantedHooks, event: &str, seconds: u64) -> Value {
    let WantedHooks { program, options, .. } = wanted;
    let command = format!("{program} hook {} {event}{options}", harness.as_str());
    match harness {
        Harness::Claude | Harness::Codex => {
            let hook = json!({ "type": "command", "command": command, "timeout": seconds });
            match event {
                "PreToolUse" => json!({ "matcher": "*", "hooks": [hook] }),
                _ => json!({ "hooks": [hook] }),
            }
        }
        Harness::Cursor => {
            let mut hook = json!({ "command": command, "timeout": seconds });
            if wanted.fail_closed && !["sessionStart", "stop", "sessionEnd"].contains(&event) {
                hook["failClosed"] = json!(true);
            }
            hook
        }
        Harness::Gemini => {
            let hook = json!({
                "name": "jvs",
                "type": "command",
                "command": command,
                "timeout": seconds * 1_000,
            });
            match event {
                "BeforeTool" => json!({ "matcher": ".*", "hooks": [hook] }),
                _ => json!({ "hooks": [hook] }),
            }
        }
    }
}

/// Is it a command that was installed for `harness`? Then its options.
pub(crate) fn options_of(harness: Harness, command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let at = words.windows(2).position(|two| two == ["hook", harness.as_str()])?;
    let program = words[..at].join(" ");
    let program = program.trim_matches(['\'', '"']).rsplit('/').next().unwrap_or_default();
    let event = words.get(at + 2)?;
    let rest = words[at + 3..].iter().map(|word| format!(" {word}")).collect();
    (program == "jvs" && !event.starts_with('-')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_installed_is_known_again() {
        for program in ["jvs", "/opt/a/jvs", "'/opt/a b/jvs'"] {
            let wanted = WantedHooks {
                program: program.to_owned(),
                options: " --auto".to_owned(),
                checkpoint: true,
                fail_closed: true,
                local: true,
            };
            for harness in [Harness::Claude, Harness::Codex, Harness::Cursor, Harness::Gemini] {
                for (_, entry) in entries(harness, &wanted) {
                    let hook =
                        if entry.get("hooks").is_some() { &entry["hooks"][0] } else { &entry };
                    let command = hook["command"].as_str().expect("a command");
                    assert_eq!(
                        options_of(harness, command).as_deref(),
                        Some(" --auto"),
                        "{command}"
                    );
                    let other =
                        if harness == Harness::Codex { Harness::Claude } else { Harness::Codex };
                    assert_eq!(options_of(other, command), None, "{command}");
                }
            }
        }
        for command in
            ["", "jvs", "jvs hook", "jvs hook claude", "xjvs hook claude Stop", "hook claude Stop"]
        {
            assert_eq!(options_of(Harness::Claude, command), None, "{command}");
        }
    }
}
