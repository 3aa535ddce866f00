//! The schemas of what `--json` says are of use: what is not so is refused. That what is so
//! is accepted, every test sees whose commands answer with JSON.

use jvs_kit::live::home::Home;
use jvs_kit::live::schema;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Fields that need not be there: the ends of their paths.
const NOT_ALWAYS: &[&str] = &[
    ".agent",
    ".boot_id",
    ".hint",
    ".keeper",
    ".kept",
    ".kept_with",
    ".note",
    ".place",
    ".renews",
    ".sort",
    ".terminal",
    ".uid",
    ".until",
    ".private_dir",
    ".record.lease_expires_at",
    ".with",
    ".idle_ms",
    ".audit_logs",
    ".done",
    ".events.to",
    ".events.worktree",
    // Known of a lock that is kept by a keeper, and of any that is looked at.
    "lock acquire.data.host",
    "lock acquire.data.idle_release_ms",
    "lock acquire.data.same_id_elsewhere",
    "lock acquire.data.same_user",
    "lock acquire.data.self_declared",
    "lock acquire.data.user",
];

/// Real answers: to commands that did something, that told much, and that failed.
fn answers() -> Vec<Value> {
    let (home, dir) = (Home::new(), TempDir::new().expect("a directory"));
    let root = dir.path().join("repo");
    let main = root.join("main");
    let said = |words: &[&str], session: &str| {
        let words = [&["--json"][..], words].concat();
        home.jvs(words).session(session).cwd(&main).run().json()
    };
    let made = home.jvs(["init", "--json"]).arg(&root).run().ok().json();
    fs_err::write(main.join("file"), "content\n").expect("written");
    let mut all = vec![made];
    for words in [
        &["lock", "acquire", "--note", "for the schemas"][..],
        &["lock", "status"],
        &["snapshot", "the first", "--tag", "v1"],
        &["history"],
        &["status"],
        &["lock", "list"],
        &["session"],
        &["worktree", "list"],
        &["gc", "--dry-run"],
        &["doctor", "--strict"],
        &["audit"],
        &["audit", "--verify"],
        &["config", "list"],
        &["run", "--", "true"],
    ] {
        all.push(said(words, "ann"));
    }
    for words in [&["lock", "acquire"][..], &["lock", "why"], &["info", "nothing"], &["nonsense"]] {
        all.push(said(words, "bob"));
    }
    said(&["lock", "release"], "ann");
    all
}

/// What a document is with one thing in it changed, and what that is.
fn mutants(document: &Value, at: &str) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    match document {
        Value::Object(fields) => {
            let mut more = document.clone();
            more["not_in_the_schema"] = json!(true);
            all.push((format!("{at} has a field more"), more));
            for (name, value) in fields {
                let here = format!("{at}.{name}");
                if !NOT_ALWAYS.iter().any(|end| here.ends_with(end)) && !at.ends_with("_ms") {
                    let mut less = fields.clone();
                    less.shift_remove(name);
                    all.push((format!("{here} is gone"), less.into()));
                }
                let wrong = if value.is_object() { json!(7) } else { json!({ "wrong": true }) };
                let each = mutants(value, &here).into_iter();
                for (what, value) in each.chain([(format!("{here} is of another type"), wrong)]) {
                    let mut other = fields.clone();
                    other.insert(name.clone(), value);
                    all.push((what, other.into()));
                }
            }
        }
        Value::Array(items) => {
            for (what, item) in items.first().into_iter().flat_map(|it| mutants(it, at)) {
                let mut other = items.clone();
                other[0] = item;
                all.push((what, other.into()));
            }
        }
        _ => {}
    }
    all
}

#[test]
fn an_answer_with_any_field_gone_added_or_of_another_type_is_refused() {
    let mut tried = 0;
    let mut accepted = Vec::new();
    for document in answers() {
        assert_eq!(schema::fault(&document), None, "{document:#}");
        let command = document["command"].as_str().expect("a command").to_owned();
        for (what, mutant) in mutants(&document, &command) {
            tried += 1;
            // Without its command it is no document at all.
            let is_named = mutant["command"].is_string();
            if is_named && schema::fault(&mutant).is_none() {
                accepted.push(what);
            }
        }
    }
    accepted.sort();
    accepted.dedup();
    assert!(
        accepted.is_empty(),
        "of {tried} mutants these were accepted:\n{}",
        accepted.join("\n")
    );
    assert!(tried > 1000, "{tried} mutants");
}
