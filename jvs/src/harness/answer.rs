//! An answer in the words of each harness.
//!
//! What is allowed is never said: a harness that is told so would not ask its user any
//! more. Nothing is said, and the harness goes on as it would without a hook.

use serde_json::{Value, json};

use super::Harness;

/// What is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookVerdict {
    /// Nothing is to be said.
    Pass,
    /// The tool must not be used, and why.
    Deny(String),
    /// Something that the user is to know.
    Tell(String),
    /// Something that the agent is to know.
    Context(String),
    /// The directory that was made.
    Made(Vec<u8>),
    /// It was asked for and could not be done, and why.
    Failed(String),
}

/// What is printed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookAnswer {
    /// Nothing at all.
    Silence,
    /// A JSON document.
    Document(Value),
    /// A path, and nothing else.
    Path(Vec<u8>),
    /// A complaint, and a status that is none of success.
    Complaint(String),
}

/// The answer of `harness` to `event`.
pub(crate) fn answer(harness: Harness, event: &str, verdict: HookVerdict) -> HookAnswer {
    let nothing = || match harness {
        // Silence is a failed hook to them, or may be.
        Harness::Cursor | Harness::Gemini => HookAnswer::Document(json!({})),
        Harness::Claude | Harness::Codex => HookAnswer::Silence,
    };
    match (verdict, harness) {
        (HookVerdict::Pass, _) => nothing(),
        (HookVerdict::Deny(why), Harness::Claude | Harness::Codex) => HookAnswer::Document(json!({
            "hookSpecificOutput": {
                "hookEventName": event,
                "permissionDecision": "deny",
                "permissionDecisionReason": why,
            },
        })),
        (HookVerdict::Deny(why), Harness::Cursor) => HookAnswer::Document(
            json!({ "permission": "deny", "user_message": why, "agent_message": why }),
        ),
        (HookVerdict::Deny(why), Harness::Gemini) => {
            HookAnswer::Document(json!({ "decision": "deny", "reason": why }))
        }
        // Cursor shows nothing but what is denied.
        (HookVerdict::Tell(_), Harness::Cursor) => nothing(),
        (HookVerdict::Tell(what), _) => HookAnswer::Document(json!({ "systemMessage": what })),
        (HookVerdict::Context(what), Harness::Cursor) => {
            HookAnswer::Document(json!({ "additional_context": what }))
        }
        (HookVerdict::Context(what), _) => HookAnswer::Document(json!({
            "hookSpecificOutput": { "hookEventName": event, "additionalContext": what },
        })),
        (HookVerdict::Made(path), _) => HookAnswer::Path(path),
        (HookVerdict::Failed(why), _) => HookAnswer::Complaint(why),
    }
}

impl HookVerdict {
    /// In one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            HookVerdict::Pass => "pass",
            HookVerdict::Deny(_) => "deny",
            HookVerdict::Tell(_) => "tell",
            HookVerdict::Context(_) => "context",
            HookVerdict::Made(_) => "made",
            HookVerdict::Failed(_) => "failed",
        }
    }

    /// As bytes, for another process.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let text: &[u8] = match self {
            HookVerdict::Pass => b"",
            HookVerdict::Deny(text)
            | HookVerdict::Tell(text)
            | HookVerdict::Context(text)
            | HookVerdict::Failed(text) => text.as_bytes(),
            HookVerdict::Made(path) => path,
        };
        [self.word().as_bytes(), b" ", text, b"\n"].concat()
    }

    /// What was said as [`HookVerdict::to_bytes`]; `None` if that is not all of it.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (text, end) = bytes.split_at_checked(bytes.len().checked_sub(1)?)?;
        let at = text.iter().position(|b| *b == b' ').filter(|_| end == b"\n")?;
        let (word, rest) = (&text[..at], &text[at + 1..]);
        let text = || String::from_utf8(rest.to_vec()).ok();
        Some(match word {
            b"pass" => HookVerdict::Pass,
            b"deny" => HookVerdict::Deny(text()?),
            b"tell" => HookVerdict::Tell(text()?),
            b"context" => HookVerdict::Context(text()?),
            b"made" => HookVerdict::Made(rest.to_vec()),
            b"failed" => HookVerdict::Failed(text()?),
            _ => return None,
        })
    }
}

/// A document on one line of ASCII: no terminal acts on it, and every program reads it.
pub(crate) fn line(document: &Value) -> String {
    let mut line = String::new();
    for c in document.to_string().chars() {
        if c.is_ascii() && c != '\u{7f}' {
            line.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            line += &format!("\\u{unit:04x}");
        }
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_survives_the_way_between_two_processes() {
        for verdict in [
            HookVerdict::Pass,
            HookVerdict::Deny("a b\nc \u{202e}".to_owned()),
            HookVerdict::Tell(String::new()),
            HookVerdict::Context("x".to_owned()),
            HookVerdict::Made(b"/r/\xff".to_vec()),
            HookVerdict::Failed("no".to_owned()),
        ] {
            let bytes = verdict.to_bytes();
            assert_eq!(HookVerdict::of_bytes(&bytes), Some(verdict.clone()), "{verdict:?}");
            assert_eq!(HookVerdict::of_bytes(&bytes[..bytes.len() - 1]), None, "{verdict:?}");
        }
        assert_eq!((HookVerdict::of_bytes(b""), HookVerdict::of_bytes(b"maybe x\n")), (None, None));
    }

    #[test]
    fn nothing_is_ever_allowed_in_words() {
        for harness in [Harness::Claude, Harness::Codex, Harness::Cursor, Harness::Gemini] {
            for verdict in [HookVerdict::Pass, HookVerdict::Tell("x".to_owned())] {
                let said = format!("{:?}", answer(harness, "PreToolUse", verdict));
                assert!(!said.contains("allow") && !said.contains("approve"), "{said}");
            }
        }
    }

    #[test]
    fn a_document_is_one_line_of_ascii_and_means_the_same() {
        let document = json!({ "a": "x\u{202e}\u{1f600}\u{9b}\u{7f}\n\u{1b}" });
        let line = line(&document);
        assert!(line.is_ascii() && !line.trim_end().contains(|c: char| c.is_ascii_control()));
        assert_eq!(jvs_repo::json::parse::<Value>(line.as_bytes()), Ok(document));
    }
}
