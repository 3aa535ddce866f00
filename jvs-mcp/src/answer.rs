//! What a client is answered: the document of the command, or why there is none.
//!
//! The text of an answer is always one JSON document, so that clients without structured
//! content read the same.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::call::{CommandAnswer, Trouble};
use crate::handle::Handle;

/// Why this server, and not the command, refused. Documented in spec/mcp.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnRefusal {
    /// The arguments are not what the tool takes.
    Arguments,
    /// The handle is of another session.
    Handle,
    /// A person has to decide, and there is nobody to ask.
    NoPerson,
    /// A person was asked, and did not agree.
    Declined,
    /// A person agreed, and what they agreed to has changed since they were asked.
    Changed,
    /// The call was cancelled.
    Cancelled,
    /// The answer is too long.
    TooLong,
    /// The command could not be run.
    Command,
}

impl OwnRefusal {
    /// Its name for programs.
    pub(crate) fn code(self) -> &'static str {
        match self {
            OwnRefusal::Arguments => "M_ARGUMENTS",
            OwnRefusal::Handle => "M_HANDLE",
            OwnRefusal::NoPerson => "M_NO_PERSON",
            OwnRefusal::Declined => "M_DECLINED",
            OwnRefusal::Changed => "M_CHANGED",
            OwnRefusal::Cancelled => "M_CANCELLED",
            OwnRefusal::TooLong => "M_TOO_LONG",
            OwnRefusal::Command => "M_COMMAND",
        }
    }

    /// What to do next, in the words of tools.
    fn next(self) -> &'static str {
        match self {
            OwnRefusal::Arguments => ARGUMENTS,
            OwnRefusal::Handle => ACQUIRE,
            OwnRefusal::NoPerson => TELL_A_PERSON,
            OwnRefusal::Declined => WITHOUT_IT,
            OwnRefusal::Changed => LOOK_AND_REPEAT,
            OwnRefusal::Cancelled | OwnRefusal::Command => WAS_IT_DONE,
            OwnRefusal::TooLong => LESS,
        }
    }
}

/// Longest text that an answer about a failure repeats, in characters: what was sent may be as
/// long as a message, and whoever sent it has it.
const ECHO_MAX: usize = 1_000;

const ARGUMENTS: &str = "put the arguments right, as the schema of the tool says, and repeat it";
const ACQUIRE: &str = "call acquire, and use the handle that it answers";
const TELL_A_PERSON: &str = "tell a person, who may type the command in hint; then call status";
const WITHOUT_IT: &str = "go on without it; call status to see who has the lock";
const LOOK_AND_REPEAT: &str =
    "call why to see who has the lock now; a person is asked again if you repeat it";
const WAS_IT_DONE: &str = "call status to see whether it was done";
const LESS: &str = "ask for less, with paths or a limit";
/// Where nothing better is known.
const ANYTHING: &str = "call status, and why to see who has the lock";

/// What to do next in the words of tools: what the command hints at is typed by people.
const NEXT: &[(&str, &str)] = &[
    ("E_LOCK_CONFLICT", "call acquire with wait, for example 5m, or why to see who has it"),
    ("E_LOCK_FROZEN", "call why to see until when it is frozen"),
    ("E_LOCK_NOT_HELD", ACQUIRE),
    ("E_LOCK_EXPIRED", ACQUIRE),
    (
        "E_FENCING_MISMATCH",
        "stop writing: this handle is of a hold that is over; call status and why; acquire answers \
         a new handle",
    ),
    ("E_USAGE", ARGUMENTS),
    ("E_NAME_INVALID", ARGUMENTS),
    ("E_PATH_ESCAPE", ARGUMENTS),
    (
        "E_NOT_FOUND",
        "call history to see which snapshots there are, or read jvs://locks for the worktrees",
    ),
    ("E_OUTCOME_UNKNOWN", "call status and history to see whether it was done"),
];

/// What the command answered, with the handle if it granted one.
pub(crate) fn of(answer: CommandAnswer, handle: Option<&Handle>) -> CallToolResult {
    match answer {
        CommandAnswer::Done { mut data, warnings } => {
            if let Some(handle) = handle {
                data["handle"] = handle.to_string().into();
            }
            if !warnings.is_empty() {
                data["warnings"] = warnings.into();
            }
            CallToolResult::structured(data)
        }
        CommandAnswer::Failed(mut error) => {
            let known = NEXT.iter().find(|(code, _)| error["code"] == *code);
            error["next"] = known.map_or(ANYTHING, |(_, next)| next).into();
            // A command that a person may type stays whole.
            let hint = error["hint"].take();
            shorten(&mut error);
            error["hint"] = hint;
            failed(&error)
        }
    }
}

/// There is no answer, and why.
pub(crate) fn no_answer(trouble: Trouble) -> CallToolResult {
    match trouble {
        Trouble::Stopped => refused(OwnRefusal::Cancelled, "the call was cancelled", None),
        Trouble::TooLong => refused(
            OwnRefusal::TooLong,
            "the answer is longer than 8 MiB: ask for less, with paths or a limit",
            None,
        ),
        Trouble::Unusable(why) => refused(OwnRefusal::Command, &why, None),
    }
}

/// Refused by this server; `hint` is a command that a person may type.
pub(crate) fn refused(refusal: OwnRefusal, message: &str, hint: Option<&str>) -> CallToolResult {
    let (code, next) = (refusal.code(), refusal.next());
    failed(&json!({ "code": code, "message": brief(message), "hint": hint, "next": next }))
}

/// A text that may repeat what was sent, not longer than anybody would read.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(ECHO_MAX) {
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}… ({more} more characters)", &text[..end])
        }
        None => text.to_owned(),
    }
}

/// The same of every text in `value`.
pub(crate) fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = brief(text),
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Without structured content: that is promised to have the fields of a success.
fn failed(error: &Value) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(json!({ "error": error }).to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;

    fn text(result: &CallToolResult) -> Value {
        let result = serde_json::to_value(result).expect("JSON");
        serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON")
    }

    #[test]
    fn a_grant_is_told_with_its_handle_and_its_warnings() {
        let handle = "main:7:1-a:s".parse::<Handle>().expect("a handle");
        let data = json!({ "worktree": "main" });
        let done = of(CommandAnswer::Done { data, warnings: vec![json!("w")] }, Some(&handle));
        let whole = json!({ "worktree": "main", "handle": "main:7:1-a:s", "warnings": ["w"] });
        assert_eq!(done.structured_content, Some(whole.clone()));
        assert_eq!((text(&done), done.is_error), (whole, Some(false)));
    }

    #[test]
    fn a_failure_says_what_to_call_next() {
        let failed =
            of(CommandAnswer::Failed(json!({ "code": "E_LOCK_CONFLICT", "hint": "h" })), None);
        assert_eq!((failed.is_error, &failed.structured_content), (Some(true), &None));
        let error = &text(&failed)["error"];
        assert!(error["next"].as_str().expect("a next step").starts_with("call acquire"));
        assert_eq!(error["hint"], "h");
        for code in ["E_USAGE", "E_NOT_FOUND", "E_OF_A_LATER_VERSION"] {
            let failed = of(CommandAnswer::Failed(json!({ "code": code })), None);
            assert!(text(&failed)["error"]["next"].is_string(), "{code}");
        }
        let refused = refused(OwnRefusal::Arguments, "m", None);
        assert!(text(&refused)["error"]["next"].is_string());
    }

    #[test]
    fn what_was_sent_is_not_repeated_at_any_length_but_a_command_is_whole() {
        let long = "ä".repeat(20_000);
        let error = json!({ "code": "E_USAGE", "message": long, "details": { "a": [long] } });
        let failed = of(CommandAnswer::Failed(error), None);
        assert!(text(&failed).to_string().chars().count() < 3 * ECHO_MAX);
        let refused = refused(OwnRefusal::NoPerson, &long, Some(&long));
        let error = &text(&refused)["error"];
        assert_eq!(error["hint"], long);
        assert!(error["message"].as_str().expect("text").ends_with("… (19000 more characters)"));
    }

    #[test]
    fn whatever_is_to_be_called_next_is_a_tool() {
        use OwnRefusal::{
            Arguments, Cancelled, Changed, Command, Declined, Handle, NoPerson, TooLong,
        };
        let own = [Arguments, Handle, NoPerson, Declined, Changed, Cancelled, TooLong, Command];
        let own = own.into_iter().map(OwnRefusal::next);
        for next in NEXT.iter().map(|(_, next)| *next).chain(own).chain([ANYTHING]) {
            let mut words = next.split([' ', ',', ';']);
            while let Some(word) = words.next() {
                if word == "call" {
                    let name = words.next().expect("a name");
                    assert!(tool::find(name).is_some(), "{next}");
                }
            }
        }
    }
}
