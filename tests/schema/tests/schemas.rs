//! Is what is checked in what the types say, and has every command a schema?

use std::collections::BTreeSet;

use jvs_schema_tests::{path, written};
use serde_json::Value;

/// The shapes that say nothing of what they are of, and why.
const ANYTHING: &[(&str, &str)] = &[
    ("HookAnswered.answer", "a harness reads it in its own form"),
    ("LoggedEvent.details", "a later version says more of an operation, and logs are kept"),
    ("OneSchema.json_schema", "it is a schema"),
];

#[test]
fn the_schemas_that_are_kept_are_those_of_the_types() {
    let new = written(&jvs::schemas::document());
    if std::env::var_os("JVS_BLESS").is_some() {
        fs_err::write(path(), &new).expect("the schemas can be written");
    }
    let kept = fs_err::read_to_string(path()).expect("the schemas can be read");
    let differs = kept.lines().zip(new.lines()).position(|(a, b)| a != b);
    assert!(
        kept == new,
        "spec/schema/jvs-1.json is not what the types in jvs/src/answer say (line {}). If that \
         is intended: JVS_BLESS=1 cargo nextest run -p jvs-schema-tests, and read the diff",
        differs.map_or(0, |at| at + 1)
    );
}

#[test]
fn every_command_has_a_schema_and_every_schema_a_command() {
    let document = jvs::schemas::document();
    let defs = document["$defs"].as_object().expect("a map");
    let have: BTreeSet<String> =
        defs.keys().filter_map(|name| name.strip_prefix("jvs ")).map(str::to_owned).collect();
    let want: BTreeSet<String> = jvs::schemas::commands().into_iter().collect();
    let missing: Vec<&String> = want.difference(&have).collect();
    assert!(
        missing.is_empty(),
        "these commands have no schema: {missing:?}. Make the type of each answer in \
         jvs/src/answer/, give it to Done::new, add a line to `answers!` in \
         jvs/src/schemas.rs, then: JVS_BLESS=1 cargo nextest run -p jvs-schema-tests"
    );
    let left: Vec<&String> = have.difference(&want).collect();
    assert!(left.is_empty(), "no such commands: remove {left:?} from `answers!`");
}

#[test]
fn no_shape_says_nothing_but_those_that_have_a_reason() {
    let document = jvs::schemas::document();
    let mut found = BTreeSet::new();
    for (name, def) in document["$defs"].as_object().expect("a map") {
        for (field, schema) in def["properties"].as_object().into_iter().flatten() {
            if says_nothing(schema) {
                found.insert(format!("{name}.{field}"));
            }
        }
    }
    let known: BTreeSet<String> = ANYTHING.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, known, "a field whose type is `Value` is no promise: make a type for it");
}

fn says_nothing(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return schema == true };
    let open = members.get("additionalProperties") == Some(&Value::Bool(true));
    let silent = ["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"];
    open || !silent.iter().any(|key| members.contains_key(*key))
}
