//! JSON Schemas of everything that `--json` says, made of the types in `answer`: what
//! `spec/schema/jvs-1.json` has, which `jvs schema` prints. Built with the feature `schema`
//! only, which nothing that ships has.

use clap::Command;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

use crate::answer::events::{LockChange, LockChanges};
use crate::answer::failure::Failed;
use crate::answer::lock::{Frozen, HeldLock, List, Released, Status, TransferredLock, Why};
use crate::answer::{OfEach, Text, audit, config, doctor, other, run, session, snapshot, tree};
use crate::answer::{agent, schema, undo, worktree};
use crate::args;

macro_rules! answers {
    ($($command:literal => $($answer:ty),*;)*) => {
        /// What each command answers, in one shape or in several.
        fn answers(generator: &mut SchemaGenerator) -> Vec<(&'static str, Vec<Schema>)> {
            vec![$(($command, vec![$(generator.subschema_for::<$answer>()),*]),)*]
        }
    };
}

answers! {
    "jvs" => other::Version;
    "help" => ;
    "init" => worktree::Init;
    "worktree" => ;
    "worktree create" => worktree::CreatedEmpty, tree::RestoredBeside;
    "worktree list" => worktree::WorktreeList;
    "worktree path" => worktree::WorktreePath;
    "worktree rename" => worktree::Renamed;
    "worktree remove" => worktree::RemovedWorktree;
    "lock" => ;
    "lock acquire" => HeldLock, OfEach<HeldLock>;
    "lock renew" => HeldLock;
    "lock release" => Released, OfEach<Released>;
    "lock status" => Status;
    "lock list" => List;
    "lock why" => Why;
    "lock watch" => Status;
    "lock steal" => HeldLock;
    "lock reclaim" => HeldLock;
    "lock transfer" => TransferredLock;
    "lock freeze" => Frozen;
    "lock unfreeze" => Frozen;
    "run" => run::Ran;
    "shell" => run::Ran;
    "session" => session::SessionTold;
    "session show" => session::SessionTold;
    "session list" => session::SessionList;
    "session forget" => session::ForgottenSession;
    "snapshot" => snapshot::TakenTold;
    "status" => tree::Glance;
    "diff" => tree::Diff;
    "restore" => tree::RestoredBeside, tree::RestoredInPlace;
    "undo" => undo::UndoTold, undo::PastOperations;
    "redo" => undo::UndoTold, undo::PastOperations;
    "verify" => snapshot::VerificationTold, tree::FilesRead;
    "history" => snapshot::History, snapshot::PathHistory;
    "info" => snapshot::Info;
    "show" => snapshot::Shown;
    "ls" => tree::Listing;
    "cat" => tree::FileContent;
    "path" => snapshot::SnapshotPath;
    "tag" => snapshot::TagTold, snapshot::TagDeleted, snapshot::TagList;
    "gc" => snapshot::Collection;
    "forget" => snapshot::ForgottenSnapshot;
    "doctor" => doctor::Report;
    "audit" => audit::Events, audit::LoggedEvent, audit::AuditVerification, audit::Page, audit::Trace;
    "events" => LockChanges, LockChange;
    "config" => ;
    "config list" => config::Settings;
    "config get" => config::Setting;
    "config set" => config::Set;
    "agent" => ;
    "agent install" => agent::AgentChanged;
    "agent status" => agent::AgentList;
    "agent uninstall" => agent::AgentChanged;
    "hook" => agent::HookAnswered;
    "completions" => other::Completions;
    "man" => other::ManPage, other::ManPages;
    "schema" => schema::OneSchema, schema::Commands;
    "demo" => other::Demo;
}

/// Every command that can be named in a document, from the command line's own tree.
pub fn commands() -> Vec<String> {
    let mut names = vec!["jvs".to_owned(), "help".to_owned()];
    collect(&args::tree(), "", &mut names);
    names.sort();
    names
}

fn collect(command: &Command, before: &str, names: &mut Vec<String>) {
    for one in command.get_subcommands() {
        let name = format!("{before}{}", one.get_name());
        if one.is_hide_set() || name == "help" || name.ends_with(" help") {
            continue;
        }
        collect(one, &format!("{name} "), names);
        names.push(name);
    }
}

/// One schema that any document of any command satisfies: below `$defs`, that of each
/// command and of everything that it mentions.
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let failed = generator.subschema_for::<Failed>();
    let help = generator.subschema_for::<Text>();
    let report = generator.subschema_for::<doctor::Report>();
    let each = answers(&mut generator);
    let mut defs: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    let mut any = Vec::new();
    for (command, answers) in each {
        any.push(json!({ "$ref": format!("#/$defs/jvs {command}") }));
        let answers: Vec<Value> = answers.iter().chain([&help]).map(|it| json!(it)).collect();
        // Doctor is the only one that has something to say although it failed.
        let although = (command == "doctor").then_some(&report);
        defs.insert(format!("jvs {command}"), envelope(command, answers, &failed, although));
    }
    defs.sort_keys();
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/spec/schema/jvs-1.json"),
        "title": "What jvs says with --json",
        "description": "Fields, words and forms are added in later versions; none is taken away. \
            So whatever is not known is to be ignored.",
        "anyOf": any,
        "$defs": defs,
    });
    without_links(&mut document);
    document
}

/// Comments of types link to other types; people who read a schema cannot follow them.
fn without_links(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`");
            }
            members.values_mut().for_each(without_links);
        }
        Value::Array(items) => items.iter_mut().for_each(without_links),
        _ => {}
    }
}

/// The document of a command: done, or failed.
fn envelope(
    command: &str,
    answers: Vec<Value>,
    failed: &Schema,
    although: Option<&Schema>,
) -> Value {
    let said = |ok: bool| {
        json!({
            "schema": { "type": "string", "const": "jvs/1" },
            "command": { "type": "string", "const": command },
            "ok": { "type": "boolean", "const": ok },
        })
    };
    let warnings = json!({
        "description": "What did not go as it should, and did not stop the command.",
        "type": "array",
        "items": { "type": "string" },
    });
    let (mut done, mut not_done) = (said(true), said(false));
    done["data"] = json!({ "anyOf": answers });
    done["warnings"] = warnings.clone();
    not_done["error"] = json!(failed);
    not_done["warnings"] = warnings;
    if let Some(report) = although {
        not_done["data"] = json!(report);
    }
    json!({
        "description": format!("The answer of `jvs {command} --json`; `--help` answers with text."),
        "type": "object",
        "oneOf": [
            {
                "type": "object",
                "properties": done,
                "required": ["schema", "command", "ok", "data"],
            },
            {
                "type": "object",
                "properties": not_done,
                "required": ["schema", "command", "ok", "error"],
            },
        ],
    })
}

/// A schema that says nothing about what it is of, but that it is one.
pub(crate) fn any_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": true })
}

/// What the commands answer that an undo runs.
pub(crate) fn undone(generator: &mut SchemaGenerator) -> Schema {
    let shapes = [
        generator.subschema_for::<undo::LineMoved>(),
        generator.subschema_for::<undo::TagAgain>(),
        generator.subschema_for::<snapshot::TagDeleted>(),
        generator.subschema_for::<worktree::RemovedWorktree>(),
        generator.subschema_for::<worktree::Renamed>(),
        generator.subschema_for::<worktree::CreatedEmpty>(),
        generator.subschema_for::<tree::RestoredBeside>(),
        generator.subschema_for::<tree::RestoredInPlace>(),
        generator.subschema_for::<()>(),
    ];
    json_schema!({ "anyOf": shapes })
}
