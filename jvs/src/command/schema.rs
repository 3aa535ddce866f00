//! `jvs schema [COMMAND]`: the JSON Schema of what a command answers.
//!
//! The text was made of the types in `answer` beforehand, for all commands at once: here
//! one command's part of it is taken out, with all that it mentions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::answer::schema::{Commands, OneSchema};
use crate::args::SchemaArgs;
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::hint::OwnNext;
use crate::near;
use crate::render::Done;

/// Written by tests/schema; a symlink to it is `jvs/src/command/schema/jvs-1.json`, which
/// `jvs/build.rs` takes the layout out of.
const ALL: &str = include_str!(concat!(env!("OUT_DIR"), "/schemas.json"));

/// What the name of a command's own schema begins with.
const OF_COMMAND: &str = "jvs ";

/// Where other schemas are mentioned.
const REF: &str = "$ref";
const DEFS: &str = "$defs";

pub(crate) fn run(args: &SchemaArgs) -> Result<Done, Failure> {
    let all: Value = serde_json::from_str(ALL)
        .map_err(|error| Stuck::new("read its own schemas", std::io::Error::other(error)))?;
    if args.list {
        let commands: Vec<String> = commands(&all).map(str::to_owned).collect();
        let text = commands.iter().map(|command| format!("{command}\n")).collect::<String>();
        return Ok(Done::new(&Commands { commands }).with_text(text).paged());
    }
    let (of, schema) = match args.words.join(" ").as_str() {
        "" => (None, all),
        name => (Some(name.to_owned()), one(&all, name)?),
    };
    let text = format!("{schema:#}\n");
    Ok(Done::new(&OneSchema { of, json_schema: schema }).with_text(text).paged())
}

/// The commands, by their names.
fn commands(all: &Value) -> impl Iterator<Item = &str> {
    let defs = all[DEFS].as_object().into_iter().flatten();
    defs.filter_map(|(name, _)| name.strip_prefix(OF_COMMAND))
}

/// What there is about one command, and nothing else.
fn one(all: &Value, name: &str) -> Result<Value, Failure> {
    let defs = &all[DEFS];
    let Some(root) = defs[format!("{OF_COMMAND}{name}")].as_object() else {
        let near = near::nearest(name, commands(all)).into_iter().map(str::to_owned).collect();
        let next = OwnNext::ListSchemas;
        let wrong = WrongUsage::new(format!("there is no command `jvs {name}`"), next);
        return Err(Failure::from(wrong).suggesting(near));
    };
    let mut needed = BTreeSet::new();
    mentioned(&json!(root), defs, &mut needed);
    let kept: Map<String, Value> =
        needed.into_iter().map(|name| (name.to_owned(), defs[name].clone())).collect();
    let mut schema = json!({ "$schema": all["$schema"], "title": format!("jvs {name} --json") });
    for (key, value) in root {
        schema[key] = value.clone();
    }
    schema[DEFS] = kept.into();
    Ok(schema)
}

/// The schemas that `schema` mentions, and those that they do.
fn mentioned<'d>(schema: &Value, defs: &'d Value, needed: &mut BTreeSet<&'d str>) {
    match schema {
        Value::Object(members) => {
            let name = members.get(REF).and_then(Value::as_str);
            let name = name.and_then(|name| name.strip_prefix("#/$defs/"));
            let known =
                defs.as_object().zip(name).and_then(|(defs, name)| defs.get_key_value(name));
            if let Some((name, def)) = known
                && needed.insert(name)
            {
                mentioned(def, defs, needed);
            }
            members.values().for_each(|value| mentioned(value, defs, needed));
        }
        Value::Array(items) => items.iter().for_each(|item| mentioned(item, defs, needed)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_are_carried_without_their_layout_and_whole() {
        let written = include_str!("schema/jvs-1.json");
        let parsed = |text| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(parsed(ALL), parsed(written));
        assert!(!ALL.contains('\n') && ALL.len() * 4 < written.len() * 3, "{}", ALL.len());
    }

    #[test]
    fn a_schema_has_all_that_it_mentions_and_nothing_else() {
        let all: Value = serde_json::from_str(ALL).expect("JSON");
        let names: Vec<&str> = commands(&all).collect();
        assert!(names.contains(&"lock acquire") && names.len() > 40, "{names:?}");
        for name in names {
            let schema = one(&all, name).expect("it is there");
            let mut needed = BTreeSet::new();
            mentioned(&schema, &all[DEFS], &mut needed);
            let kept: BTreeSet<&str> =
                schema[DEFS].as_object().expect("a map").keys().map(String::as_str).collect();
            assert_eq!(kept, needed, "{name}");
        }
    }
}
