//! A payload, read: who asks, where, and what is about to happen.

use std::path::{Path, PathBuf};

use jvs_repo::inert::on_one_line;
use jvs_repo::json::{self, Limits};
use serde_json::{Map, Value};

use super::Harness;
use super::tools::{self, ToolUse, short};

/// Largest payload: a tool that writes a file says all that will be in it.
pub(crate) const SIZE_MAX: usize = 16 << 20;
const LIMITS: Limits = Limits { size: SIZE_MAX, depth: 64, string: SIZE_MAX };

/// Longest text that names something: a session, an event, a directory.
const TEXT_MAX: usize = 4096;

/// What a harness asks about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// What the harness calls the session.
    pub(crate) session: String,
    /// The event, in the words of the harness.
    pub(crate) event: String,
    /// Where the agent is.
    pub(crate) cwd: PathBuf,
    pub(crate) what: Happening,
}

/// What happens.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A tool is about to be used: the answer decides whether it is.
    Tool(ToolUse),
    /// A session begins.
    Start,
    /// The agent has finished its turn.
    TurnEnd,
    /// A session has ended.
    End,
    /// A worktree of that name is wanted.
    CreateWorktree(String),
    /// The worktree there is not needed any more.
    RemoveWorktree(PathBuf),
    /// Something about which there is nothing to say.
    Other,
}

/// A payload that says nothing usable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misread {
    /// The event, as far as it is known.
    pub(crate) event: Option<String>,
    pub(crate) why: String,
}

/// Reads the payload of `harness`; `told` is the event as the command line has it.
pub(crate) fn read(harness: Harness, told: Option<&str>, bytes: &[u8]) -> Result<Call, Misread> {
    let misread = |event: Option<&str>, why: String| Misread { event: event.map(short), why };
    let payload = object(bytes)
        .map_err(|why| misread(told, format!("the payload cannot be read: {}", sentence(&why))))?;
    let said = text(&payload, "hook_event_name").map_err(|why| misread(told, why))?;
    let event = match (said, told) {
        (Some(said), Some(told)) if said != told => {
            let why = format!("the payload is of {}, not of {}", short(said), short(told));
            return Err(misread(Some(told), why));
        }
        (said, told) => said.or(told),
    };
    let Some(event) = event else {
        return Err(misread(None, "the payload does not say which event it is of".to_owned()));
    };
    call(harness, event, &payload).map_err(|why| misread(Some(event), why))
}

fn call(harness: Harness, event: &str, payload: &Map<String, Value>) -> Result<Call, String> {
    let names: &[&str] = match harness {
        Harness::Cursor => &["conversation_id", "session_id"],
        _ => &["session_id"],
    };
    let mut session = None;
    for name in names {
        session = session.or(text(payload, name)?);
    }
    let session = session.ok_or_else(|| format!("the payload has no {}", names[0]))?.to_owned();
    let cwd = match (text(payload, "cwd")?, payload.get("workspace_roots")) {
        (Some(cwd), _) => PathBuf::from(cwd),
        (None, Some(Value::Array(roots))) => {
            PathBuf::from(roots.first().and_then(Value::as_str).unwrap_or_default())
        }
        (None, _) => PathBuf::new(),
    };
    let what = happening(harness, event, payload, &cwd)?;
    Ok(Call { session, event: event.to_owned(), cwd, what })
}

fn happening(
    harness: Harness,
    event: &str,
    payload: &Map<String, Value>,
    cwd: &Path,
) -> Result<Happening, String> {
    use Harness::{Claude, Codex, Cursor, Gemini};
    Ok(match (harness, event) {
        (Claude | Codex, "PreToolUse") | (Cursor, "preToolUse") | (Gemini, "BeforeTool") => {
            tool(payload, cwd)?
        }
        (Cursor, "beforeShellExecution") => {
            let command = payload.get("command").and_then(Value::as_str);
            let command = command.ok_or("the payload has no command")?.to_owned();
            Happening::Tool(ToolUse::Shell(command, cwd.to_owned()))
        }
        (Cursor, "beforeMCPExecution") => tool(payload, cwd)?,
        (Claude | Codex | Gemini, "SessionStart") | (Cursor, "sessionStart") => Happening::Start,
        (Claude | Codex, "Stop") | (Cursor, "stop") | (Gemini, "AfterAgent") => Happening::TurnEnd,
        (Claude | Gemini, "SessionEnd") | (Cursor, "sessionEnd") => Happening::End,
        (Claude, "WorktreeCreate") => {
            let name = text(payload, "name")?.ok_or("the payload has no name")?;
            Happening::CreateWorktree(name.to_owned())
        }
        (Claude, "WorktreeRemove") => {
            let path = text(payload, "worktree_path")?.ok_or("the payload has no worktree_path")?;
            Happening::RemoveWorktree(PathBuf::from(path))
        }
        _ => Happening::Other,
    })
}

fn tool(payload: &Map<String, Value>, cwd: &Path) -> Result<Happening, String> {
    let name = text(payload, "tool_name")?.ok_or("the payload has no tool_name")?;
    // Cursor has the input of a tool of a server as text.
    let inner = match payload.get("tool_input") {
        Some(Value::String(text)) if !text.is_empty() => Some(object(text.as_bytes())),
        _ => None,
    };
    let (inner, unread) = match inner.transpose() {
        Ok(inner) => (inner.map(Value::Object), None),
        Err(why) => (None, Some(why)),
    };
    let input = inner.as_ref().or(payload.get("tool_input")).unwrap_or(&Value::Null);
    match (tools::read(name, input, cwd)?, unread) {
        (ToolUse::Reads, _) => Ok(Happening::Tool(ToolUse::Reads)),
        (_, Some(why)) => {
            Err(format!("the input of {} cannot be read: {}", short(name), sentence(&why)))
        }
        (tool, None) => Ok(Happening::Tool(tool)),
    }
}

/// A field that is text if it is there; empty is as good as not there.
fn text<'p>(payload: &'p Map<String, Value>, name: &str) -> Result<Option<&'p str>, String> {
    match payload.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() > TEXT_MAX || text.contains('\0') => {
            Err(format!("{name} of the payload is too long, or has a zero byte in it"))
        }
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("{name} of the payload is no text")),
    }
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match json::parse_within(bytes, LIMITS)? {
        Value::Object(fields) => Ok(fields),
        _ => Err("it is no object".to_owned()),
    }
}

/// Words in which others may have a part, for a sentence.
fn sentence(text: &str) -> String {
    on_one_line(&text.chars().take(160).collect::<String>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(harness: Harness, told: Option<&str>, text: &str) -> Result<Call, Misread> {
        read(harness, told, text.as_bytes())
    }

    #[test]
    fn what_a_payload_does_not_say_is_told() {
        let why = |told, text: &str| of(Harness::Claude, told, text).expect_err(text);
        for (text, has) in [
            ("", "it is empty"),
            ("{", "EOF"),
            ("[]", "it is no object"),
            ("{\"session_id\":\"a\",\"session_id\":\"b\"}", "appears twice"),
            ("{\"session_id\":\"a\"}", "does not say which event"),
            ("{\"hook_event_name\":\"Stop\"}", "has no session_id"),
            ("{\"hook_event_name\":7}", "is no text"),
            ("{\"hook_event_name\":\"Stop\",\"session_id\":\"a\\u0000\"}", "zero byte"),
            ("{\"hook_event_name\":\"PreToolUse\",\"session_id\":\"a\"}", "no tool_name"),
        ] {
            let misread = why(None, text);
            assert!(misread.why.contains(has), "{text}: {misread:?}");
        }
        let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(why(None, &format!("{{\"a\":{nested}}}")).why.contains("nested deeper"));
        let other = why(Some("PreToolUse"), "{\"hook_event_name\":\"Stop\"}");
        assert_eq!(other.event.as_deref(), Some("PreToolUse"));
        assert!(other.why.contains("is of Stop, not of PreToolUse"), "{other:?}");
    }

    #[test]
    fn an_event_that_is_not_known_yet_is_nothing_to_answer() {
        for (harness, event) in [(Harness::Claude, "FutureEvent"), (Harness::Cursor, "PreToolUse")]
        {
            let text = format!("{{\"hook_event_name\":\"{event}\",\"session_id\":\"a\"}}");
            assert_eq!(of(harness, None, &text).expect("read").what, Happening::Other);
        }
    }

    #[test]
    fn the_input_of_a_server_s_tool_may_be_text() {
        let text = r#"{"hook_event_name":"beforeMCPExecution","conversation_id":"c",
            "workspace_roots":["/r/main"],"tool_name":"save",
            "tool_input":"{\"file\":\"notes\"}"}"#;
        let call = of(Harness::Cursor, None, text).expect("read");
        let paths = vec![PathBuf::from("/r/main/notes")];
        assert_eq!(call.what, Happening::Tool(ToolUse::Unknown(paths)));
        assert_eq!(call.cwd, Path::new("/r/main"));
        let nan = text.replace(r#"\"notes\""#, "NaN");
        let misread = of(Harness::Cursor, None, &nan).expect_err("no JSON");
        assert!(misread.why.contains("the input of save cannot be read"), "{misread:?}");
    }
}
