//! The tools: what each is for, what it takes, what it answers, and which command does it.
//!
//! One table says all of it. The schemas that clients are shown are made of it, and so is
//! the check of what they send.

mod arguments;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as Shown, ToolAnnotations};
use serde_json::{Value, json};

pub(crate) use arguments::{Arguments, WrongArguments};

/// What `hold` asks for: longer than any server runs. It ends with the server.
const FOR_EVER: &str = "--for=3650d";

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only shows.
    Reads,
    /// It adds something, or gives something up that is the caller's own.
    Adds,
    /// It takes something from somebody, or replaces files: a person decides.
    Takes,
}

/// One argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
    about: &'static str,
}

/// What an argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// Any text.
    Text,
    /// A name, which never begins like an option.
    Name,
    /// A duration.
    Duration,
    /// A handle.
    Handle,
    /// A number of at least one.
    Count,
    /// Several names.
    Names,
    /// Several paths.
    Paths,
}

/// One tool.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) verb: Verb,
    pub(crate) name: &'static str,
    title: &'static str,
    about: &'static str,
    pub(crate) fields: &'static [Field],
    /// The fields of its answer that are always there, and their types; with a question mark
    /// if they may be null.
    answer: &'static [(&'static str, &'static str)],
    pub(crate) effect: Effect,
    /// Is twice the same as once?
    repeatable: bool,
}

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Status,
    Why,
    Acquire,
    Hold,
    Release,
    Snapshot,
    History,
    Diff,
    Restore,
    Undo,
    Steal,
    Reclaim,
}

impl Verb {
    /// Does it answer with a handle?
    pub(crate) fn grants(self) -> bool {
        matches!(self, Verb::Acquire | Verb::Hold | Verb::Steal | Verb::Reclaim)
    }
}

const fn may(name: &'static str, kind: FieldKind, about: &'static str) -> Field {
    Field { name, kind, required: false, about }
}

const fn must(name: &'static str, kind: FieldKind, about: &'static str) -> Field {
    Field { name, kind, required: true, about }
}

const WORKTREE: Field = may(
    "worktree",
    FieldKind::Name,
    "The worktree. Default: the one that the server was started in, else main.",
);
const HANDLE: Field =
    must("handle", FieldKind::Handle, "The handle that acquire, hold, steal or reclaim answered.");
const NOTE: Field =
    may("note", FieldKind::Text, "What the lock is for, for others who find the worktree locked.");
const WAIT: Field = may(
    "wait",
    FieldKind::Duration,
    "If another session has the lock, wait in line for at most this long, for example 30s or 5m. \
     Without it the call answers at once. Cancelling the call ends the wait.",
);
const FOR: Field = may(
    "for",
    FieldKind::Duration,
    "How long the lock is kept, for example 20m. Default: the repository's policy.",
);
const PATHS: Field = may(
    "paths",
    FieldKind::Paths,
    "Only these paths: absolute, or from the worktree's root (from the directory that the server \
     was started in, if that is in the worktree).",
);
const REASON: Field = must("reason", FieldKind::Text, "The reason, for the audit log.");

/// What every answer with a handle has.
const GRANT: &[(&str, &str)] = &[
    ("handle", "string"),
    ("worktree", "string"),
    ("state", "string"),
    ("mine", "boolean"),
    ("fencing_token", "integer"),
    ("how", "string"),
];
/// What every answer about one lock has.
const LOCK: &[(&str, &str)] = &[
    ("worktree", "string"),
    ("state", "string"),
    ("mine", "boolean"),
    ("remaining_ms", "integer"),
    ("fencing_token", "integer"),
    ("waiters", "array"),
];

/// All of them.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        verb: Verb::Status,
        name: "status",
        title: "Status of a worktree",
        about: "Shows who has the lock of a worktree, which snapshot is its head, and which \
                files differ from that. Changes nothing.",
        fields: &[WORKTREE],
        answer: &[
            ("worktree", "string"),
            ("path", "string"),
            ("clean", "boolean?"),
            ("differences", "array"),
            ("lock", "object"),
        ],
        effect: Effect::Reads,
        repeatable: true,
    },
    Tool {
        verb: Verb::Why,
        name: "why",
        title: "Why a worktree is locked",
        about: "Explains who has the lock of a worktree, how that is known, until when, who \
                waits for it, and what can be done. Changes nothing.",
        fields: &[WORKTREE],
        answer: LOCK,
        effect: Effect::Reads,
        repeatable: true,
    },
    Tool {
        verb: Verb::Acquire,
        name: "acquire",
        title: "Take the lock of a worktree",
        about: "Takes the lock of a worktree before its files are changed, or refreshes it if \
                this session has it. Answers a handle that every later call about it needs. \
                The lock is kept until release, until its time is over, or until this server \
                ends.",
        fields: &[WORKTREE, WAIT, FOR, NOTE],
        answer: GRANT,
        effect: Effect::Adds,
        repeatable: true,
    },
    Tool {
        verb: Verb::Hold,
        name: "hold",
        title: "Take the lock and keep it",
        about: "As acquire, but the lock is kept for as long as this server runs, or until \
                release.",
        fields: &[WORKTREE, WAIT, NOTE],
        answer: GRANT,
        effect: Effect::Adds,
        repeatable: true,
    },
    Tool {
        verb: Verb::Release,
        name: "release",
        title: "Release a lock",
        about: "Releases exactly the lock that the handle names. Refused if it was lost.",
        fields: &[HANDLE],
        answer: &[("worktree", "string"), ("state", "string"), ("fencing_token", "integer")],
        effect: Effect::Adds,
        repeatable: false,
    },
    Tool {
        verb: Verb::Snapshot,
        name: "snapshot",
        title: "Take a snapshot",
        about: "Keeps the whole worktree as it is now, as its new head. Refused if the lock \
                that the handle names was lost: then stop writing.",
        fields: &[
            HANDLE,
            may("note", FieldKind::Text, "What was done."),
            may("tags", FieldKind::Names, "Names for this snapshot."),
        ],
        answer: &[
            ("snapshot_id", "string"),
            ("worktree_id", "string"),
            ("files", "integer"),
            ("bytes", "integer"),
        ],
        effect: Effect::Adds,
        repeatable: false,
    },
    Tool {
        verb: Verb::History,
        name: "history",
        title: "Snapshots of a worktree",
        about: "Lists the snapshots of a worktree from its head back. Changes nothing.",
        fields: &[
            WORKTREE,
            may("limit", FieldKind::Count, "At most this many."),
            may("grep", FieldKind::Text, "Only those with this text in their note."),
            may("path", FieldKind::Name, "Only those in which something at this path changed."),
        ],
        answer: &[("worktree", "string"), ("snapshots", "array")],
        effect: Effect::Reads,
        repeatable: true,
    },
    Tool {
        verb: Verb::Diff,
        name: "diff",
        title: "What differs",
        about: "Lists the files that differ between two snapshots, or between a snapshot and \
                the working files. Changes nothing.",
        fields: &[
            WORKTREE,
            may("from", FieldKind::Name, "A snapshot or tag. Default: the head."),
            may("to", FieldKind::Name, "Another one. Default: the working files."),
            PATHS,
        ],
        answer: &[
            ("differences", "array"),
            ("added", "integer"),
            ("removed", "integer"),
            ("changed", "integer"),
        ],
        effect: Effect::Reads,
        repeatable: true,
    },
    Tool {
        verb: Verb::Restore,
        name: "restore",
        title: "Replace files by those of a snapshot",
        about: "Replaces the working files, or some paths of them, by those of a snapshot. \
                What is there now is kept as a snapshot first. A person is asked.",
        fields: &[
            HANDLE,
            must("snapshot", FieldKind::Name, "The snapshot, or a tag."),
            REASON,
            PATHS,
        ],
        answer: &[("worktree", "string"), ("snapshot_id", "string")],
        effect: Effect::Takes,
        repeatable: true,
    },
    Tool {
        verb: Verb::Undo,
        name: "undo",
        title: "Take an operation back",
        about: "Takes the last operation of this session in the worktree back: a snapshot, a \
                restore, a tag, or a worktree that was made or renamed. What is there now is kept \
                as a snapshot first. A person is asked. Undoing the operation that is answered \
                as `by` does it again.",
        fields: &[
            HANDLE,
            may("op", FieldKind::Name, "Another operation: its id, or the beginning of that."),
        ],
        answer: &[("op", "string"), ("what", "string"), ("by", "string?")],
        effect: Effect::Takes,
        repeatable: false,
    },
    Tool {
        verb: Verb::Steal,
        name: "steal",
        title: "Take over a lock that was left behind",
        about: "Takes over a lock whose lease ended long enough ago. Answers a handle. A person \
                is asked.",
        fields: &[WORKTREE, REASON, FOR, NOTE],
        answer: GRANT,
        effect: Effect::Takes,
        repeatable: false,
    },
    Tool {
        verb: Verb::Reclaim,
        name: "reclaim",
        title: "Take a lock from its holder",
        about: "Takes a lock from a holder that is alive, where the repository's policy allows \
                it. Answers a handle. A person is asked.",
        fields: &[WORKTREE, REASON, FOR, NOTE],
        answer: GRANT,
        effect: Effect::Takes,
        repeatable: false,
    },
];

/// The tool of that name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// As clients are shown it.
    pub(crate) fn shown(&self) -> Shown {
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(self.effect == Effect::Reads)
            .destructive(self.effect == Effect::Takes)
            .idempotent(self.repeatable)
            .open_world(false);
        let mut shown = Shown::new(self.name, self.about, Arc::new(self.takes()));
        shown.title = Some(self.title.to_owned());
        shown.output_schema = Some(Arc::new(self.answers()));
        shown.annotations = Some(hints);
        shown
    }

    fn takes(&self) -> JsonObject {
        let properties = self.fields.iter().map(|field| (field.name.to_owned(), field.schema()));
        let required = self.fields.iter().filter(|field| field.required).map(|field| field.name);
        object(json!({
            "type": "object",
            "properties": properties.collect::<JsonObject>(),
            "required": required.collect::<Vec<_>>(),
            "additionalProperties": false,
        }))
    }

    fn answers(&self) -> JsonObject {
        let properties = self.answer.iter().map(|(name, kind)| {
            let mut schema = match kind.strip_suffix('?') {
                // Not every client takes a list of types.
                Some(kind) => json!({ "anyOf": [{ "type": kind }, { "type": "null" }] }),
                None => json!({ "type": kind }),
            };
            if *name == "handle" {
                schema["description"] = HANDLE_ANSWERED.into();
            }
            ((*name).to_owned(), schema)
        });
        let required: Vec<_> = self.answer.iter().map(|(name, _)| *name).collect();
        object(json!({
            "type": "object",
            "properties": properties.collect::<JsonObject>(),
            "required": required,
        }))
    }
}

const HANDLE_ANSWERED: &str =
    "Names this hold, and no later one: for release, snapshot, restore, undo.";

impl Field {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            FieldKind::Text | FieldKind::Handle => json!({ "type": "string" }),
            FieldKind::Name => json!({ "type": "string", "pattern": "^[^-]" }),
            FieldKind::Duration => {
                json!({ "type": "string", "pattern": "^([0-9]+(d|h|ms|m|s))+$" })
            }
            FieldKind::Count => json!({ "type": "integer", "minimum": 1 }),
            FieldKind::Names | FieldKind::Paths => {
                json!({ "type": "array", "items": { "type": "string" } })
            }
        };
        schema["description"] = self.about.into();
        schema
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// The words of the command that does it.
pub(crate) fn words(verb: Verb, arguments: &Arguments) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut say = |word: &str| words.push(word.to_owned());
    match verb {
        Verb::Status => say("status"),
        Verb::History => say("history"),
        Verb::Diff => say("diff"),
        Verb::Snapshot => say("snapshot"),
        Verb::Restore => ["restore", "--in-place"].into_iter().for_each(say),
        Verb::Undo => say("undo"),
        Verb::Why => ["lock", "why"].into_iter().for_each(say),
        Verb::Acquire => ["lock", "acquire"].into_iter().for_each(say),
        Verb::Hold => ["lock", "acquire", FOR_EVER].into_iter().for_each(say),
        Verb::Release => ["lock", "release"].into_iter().for_each(say),
        Verb::Steal => ["lock", "steal"].into_iter().for_each(say),
        Verb::Reclaim => ["lock", "reclaim"].into_iter().for_each(say),
    }
    // Joined to its option, no value is taken for an option of its own.
    words.extend(arguments.worktree().map(|name| format!("--worktree={name}")));
    for (field, option) in [
        ("wait", "--wait"),
        ("for", "--for"),
        ("reason", "--reason"),
        ("op", "--op"),
        ("grep", "--grep"),
        ("limit", "-n"),
        ("note", if verb == Verb::Snapshot { "--message" } else { "--note" }),
    ] {
        words.extend(arguments.text(field).map(|value| format!("{option}={value}")));
    }
    words.extend(arguments.texts("tags").iter().map(|tag| format!("--tag={tag}")));
    let names = match verb {
        Verb::Diff => {
            let from = arguments.text("from");
            let to = arguments.text("to");
            let from = from.or_else(|| to.is_some().then(|| "@".to_owned()));
            from.into_iter().chain(to).collect()
        }
        _ => Vec::new(),
    };
    words.extend(names);
    let last: Vec<String> = match verb {
        Verb::Restore => arguments.text("snapshot").into_iter().collect(),
        Verb::History => arguments.text("path").into_iter().collect(),
        _ => Vec::new(),
    };
    let last: Vec<String> = last.into_iter().chain(arguments.texts("paths")).collect();
    if !last.is_empty() {
        words.push("--".to_owned());
        words.extend(last);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str, arguments: Value) -> String {
        let tool = find(name).expect("a tool");
        let arguments = Arguments::check(tool, &object(arguments)).expect("good arguments");
        words(tool.verb, &arguments).join(" ")
    }

    #[test]
    fn a_tool_is_one_command() {
        for (name, arguments, command) in [
            ("status", json!({}), "status"),
            ("why", json!({ "worktree": "a" }), "lock why --worktree=a"),
            (
                "acquire",
                json!({ "wait": "5m", "note": "-x", "for": "1h" }),
                "lock acquire --wait=5m --for=1h --note=-x",
            ),
            ("hold", json!({}), "lock acquire --for=3650d"),
            ("release", json!({ "handle": "a:1:1-a:s" }), "lock release --worktree=a"),
            (
                "snapshot",
                json!({ "handle": "a:1:1-a:s", "note": "n", "tags": ["t", "u"] }),
                "snapshot --worktree=a --message=n --tag=t --tag=u",
            ),
            (
                "history",
                json!({ "limit": 3, "grep": "g", "path": "p" }),
                "history --grep=g -n=3 -- p",
            ),
            ("diff", json!({ "to": "b" }), "diff @ b"),
            ("diff", json!({ "from": "a", "paths": ["-p", "q"] }), "diff a -- -p q"),
            (
                "restore",
                json!({ "handle": "a:1:1-a:s", "snapshot": "b", "reason": "r", "paths": ["p"] }),
                "restore --in-place --worktree=a --reason=r -- b p",
            ),
            ("undo", json!({ "handle": "a:1:1-a:s", "op": "0a" }), "undo --worktree=a --op=0a"),
            ("steal", json!({ "reason": "r" }), "lock steal --reason=r"),
            ("reclaim", json!({ "reason": "r" }), "lock reclaim --reason=r"),
        ] {
            assert_eq!(typed(name, arguments), command);
        }
    }

    #[test]
    fn what_acts_on_a_hold_needs_its_handle_and_what_takes_something_asks() {
        for tool in TOOLS {
            let acts =
                matches!(tool.verb, Verb::Release | Verb::Snapshot | Verb::Restore | Verb::Undo);
            let handle = tool.fields.iter().find(|field| field.kind == FieldKind::Handle);
            assert_eq!(handle.is_some_and(|field| field.required), acts, "{}", tool.name);
            let asks =
                matches!(tool.verb, Verb::Restore | Verb::Undo | Verb::Steal | Verb::Reclaim);
            assert_eq!(tool.effect == Effect::Takes, asks, "{}", tool.name);
            let answers = tool.answer.iter().any(|(name, _)| *name == "handle");
            assert_eq!(answers, tool.verb.grants(), "{}", tool.name);
        }
    }

    #[test]
    fn clients_are_shown_schemas_and_hints() {
        let shown = serde_json::to_value(find("steal").expect("a tool").shown()).expect("JSON");
        assert_eq!(shown["inputSchema"]["required"], json!(["reason"]));
        assert_eq!(shown["inputSchema"]["additionalProperties"], false);
        assert_eq!(shown["outputSchema"]["properties"]["fencing_token"]["type"], "integer");
        let hints = &shown["annotations"];
        assert_eq!(hints["readOnlyHint"], false);
        assert_eq!(hints["destructiveHint"], true);
        assert_eq!(hints["idempotentHint"], false);
        assert_eq!(hints["openWorldHint"], false);
    }
}
