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
            OwnRefusal::Cancelled => "M_CANCELLED",
            OwnRefusal::TooLong => "M_TOO_LONG",
            OwnRefusal::Command => "M_COMMAND",
        }
    }
}

/// What to do next in the words of tools: what the command hints at is typed by people.
const NEXT: &[(&str, &str)] = &[
    ("E_LOCK_CONFLICT", "call acquire with wait, for example 5m, or why to see who has it"),
    ("E_LOCK_FROZEN", "call why to see until when it is frozen"),
    ("E_LOCK_NOT_HELD", "call acquire, and use the handle that it answers"),
    ("E_LOCK_EXPIRED", "call acquire, and use the handle that it answers"),
    (
        "E_FENCING_MISMATCH",
        "stop writing: this handle is of a hold that is over; call status and why; acquire answers \
         a new handle",
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
            let code = error["code"].as_str().unwrap_or_default();
            if let Some((_, next)) = NEXT.iter().find(|(known, _)| *known == code) {
                error["next"] = (*next).into();
            }
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
    failed(&json!({ "code": refusal.code(), "message": message, "hint": hint }))
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
    }

    #[test]
    fn whatever_is_to_be_called_next_is_a_tool() {
        for (_, next) in NEXT {
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
