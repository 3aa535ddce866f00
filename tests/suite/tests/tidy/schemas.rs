//! What was released still holds: fields, words, forms and commands may be added to what
//! `--json` says, and none may be taken away, made optional or given another type.

use std::collections::BTreeSet;

use jvs_kit::live::schema;
use serde_json::{Value, json};

use crate::source::root;

const RELEASED: &str = "spec/schema/released";

/// Compares a schema that was released with the one of now.
struct Comparison<'s> {
    old: &'s Value,
    new: &'s Value,
    /// Pairs of names that were compared, or are being compared: schemas may recur.
    seen: BTreeSet<(String, String)>,
    broken: Vec<String>,
}

/// Every promise of `old` that `new` does not keep.
fn broken(old: &Value, new: &Value) -> Vec<String> {
    let mut comparison = Comparison { old, new, seen: BTreeSet::new(), broken: Vec::new() };
    let commands = old["$defs"].as_object().expect("schemas have definitions").iter();
    for (name, schema) in commands.filter(|(name, _)| name.starts_with("jvs ")) {
        match new["$defs"].get(name) {
            Some(now) => comparison.compare(schema, now, name),
            None => comparison.broken.push(format!("{name}: the command is gone")),
        }
    }
    comparison.broken
}

impl Comparison<'_> {
    fn compare(&mut self, old: &Value, new: &Value, at: &str) {
        let (old, new) = match self.followed(old, new) {
            Some(pair) => pair,
            None => return,
        };
        if may_be_null(&new) && !may_be_null(&old) {
            self.broken.push(format!("{at}: may be null now"));
        }
        let (was, is) = (forms(&old), forms(&new));
        if !was.is_empty() || !is.is_empty() {
            self.compare_forms(&old, &new, at);
        }
        if was.is_empty() && !is.is_empty() {
            return;
        }
        self.fields(&old, &new, at);
        if let (Some(was), Some(is)) = (types(&old), types(&new)) {
            for word in is.difference(&was).filter(|word| *word != "null") {
                self.broken.push(format!("{at}: may be {word} now, and was {was:?}"));
            }
        } else if types(&old).is_some() && types(&new).is_none() {
            self.broken.push(format!("{at}: has no type any more"));
        }
        let is: Vec<&Value> = list(&new["enum"]);
        for word in list(&old["enum"]) {
            if !is.is_empty() && !is.contains(&word) {
                self.broken.push(format!("{at}: {word} is not a word any more"));
            }
        }
        if !old["const"].is_null() && old["const"] != new["const"] {
            self.broken.push(format!("{at}: was always {}", old["const"]));
        }
        if !old["items"].is_null() {
            self.compare(&old["items"], &new["items"], &format!("{at}[]"));
        }
    }

    /// Each form that there was is still one of those that there are.
    fn compare_forms(&mut self, old: &Value, new: &Value, at: &str) {
        let of = |schema: &Value| match forms(schema) {
            none if none.is_empty() => vec![schema.clone()],
            forms => forms,
        };
        let is = of(new);
        for form in of(old).iter().filter(|form| form["type"] != "null") {
            if !is.iter().any(|now| self.keeps(form, now, at)) {
                self.broken.push(format!("{at}: no form is what this one was: {form}"));
            }
        }
    }

    fn fields(&mut self, old: &Value, new: &Value, at: &str) {
        for (name, was) in old["properties"].as_object().into_iter().flatten() {
            match new["properties"].get(name) {
                Some(is) => self.compare(was, is, &format!("{at}.{name}")),
                None => self.broken.push(format!("{at}: the field \"{name}\" is gone")),
            }
        }
        let needed = list(&new["required"]);
        for name in list(&old["required"]) {
            if !needed.contains(&name) {
                self.broken.push(format!("{at}: the field {name} need not be there any more"));
            }
        }
    }

    /// Does `new` keep all that `old` promised? What it does not is not told.
    fn keeps(&mut self, old: &Value, new: &Value, at: &str) -> bool {
        let mut apart = Comparison {
            old: self.old,
            new: self.new,
            seen: self.seen.clone(),
            broken: Vec::new(),
        };
        apart.compare(old, new, at);
        apart.broken.is_empty()
    }

    /// Both, behind their references; nothing if these two were compared before.
    fn followed(&mut self, old: &Value, new: &Value) -> Option<(Value, Value)> {
        let name = |schema: &Value| schema["$ref"].as_str().unwrap_or_default().to_owned();
        let pair = (name(old), name(new));
        if !pair.0.is_empty() && !self.seen.insert(pair) {
            return None;
        }
        Some((behind(self.old, old), behind(self.new, new)))
    }
}

/// A schema, behind its reference.
fn behind(all: &Value, schema: &Value) -> Value {
    let name = schema["$ref"].as_str().and_then(|to| to.strip_prefix("#/$defs/"));
    name.map_or_else(|| schema.clone(), |name| all["$defs"][name].clone())
}

/// The forms that something may have.
fn forms(schema: &Value) -> Vec<Value> {
    ["anyOf", "oneOf"].iter().flat_map(|word| list(&schema[*word])).cloned().collect()
}

fn may_be_null(schema: &Value) -> bool {
    types(schema).is_some_and(|types| types.contains("null"))
        || forms(schema).iter().any(|form| form["type"] == "null")
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map(|all| all.iter().collect()).unwrap_or_default()
}

fn types(schema: &Value) -> Option<BTreeSet<String>> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    match &schema["type"] {
        Value::Null => None,
        Value::Array(all) => Some(all.iter().filter_map(word).collect()),
        one => Some(word(one).into_iter().collect()),
    }
}

#[test]
fn what_was_released_still_holds() {
    let dir = root().join(RELEASED);
    let mut releases = 0;
    for entry in fs_err::read_dir(dir).expect("the schemas of releases") {
        let path = entry.expect("an entry").path();
        let text = fs_err::read_to_string(&path).expect("a released schema");
        let old: Value = serde_json::from_str(&text).expect("JSON");
        let broken = broken(&old, schema::kept());
        assert!(
            broken.is_empty(),
            "{} was promised and does not hold any more. Keep the field, its type and its words \
             (a new one may be beside it):\n{}",
            path.display(),
            broken.join("\n")
        );
        releases += 1;
    }
    assert!(releases > 0, "there is a release to compare with");
}

/// Changes of one schema, and whether a program that knew it before can live with them.
fn changes() -> Vec<(&'static str, bool, Value)> {
    let released = || -> Value {
        json!({ "$defs": {
            "jvs x": { "type": "object", "anyOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }] },
            "A": {
                "type": "object",
                "properties": {
                    "n": { "type": "integer" },
                    "word": { "$ref": "#/$defs/Word" },
                    "text": { "type": ["string", "null"] },
                    "all": { "type": "array", "items": { "$ref": "#/$defs/A" } },
                },
                "required": ["n", "text"],
            },
            "B": { "type": "object", "properties": { "b": { "type": "boolean" } }, "required": ["b"] },
            "Word": { "type": "string", "enum": ["one", "two"] },
        } })
    };
    let with = |change: fn(&mut Value)| {
        let mut schema = released();
        change(&mut schema["$defs"]);
        schema
    };
    vec![
        ("nothing", true, released()),
        ("a field more", true, with(|it| it["A"]["properties"]["new"] = json!({ "type": "null" }))),
        ("a word more", true, with(|it| it["Word"]["enum"] = json!(["one", "two", "three"]))),
        ("a command more", true, with(|it| it["jvs y"] = json!({ "type": "object" }))),
        ("null no more", true, with(|it| it["A"]["properties"]["text"]["type"] = json!("string"))),
        ("always there", true, with(|it| it["A"]["required"] = json!(["n", "text", "word"]))),
        (
            "a form more",
            true,
            with(|it| {
                it["C"] = json!({ "type": "object", "properties": { "c": { "type": "null" } } });
                it["jvs x"]["anyOf"] = json!([{ "$ref": "#/$defs/B" }, { "$ref": "#/$defs/C" }, { "$ref": "#/$defs/A" }]);
            }),
        ),
        (
            "a field less",
            false,
            with(|it| {
                it["A"]["properties"].as_object_mut().expect("fields").shift_remove("word");
            }),
        ),
        ("another type", false, with(|it| it["A"]["properties"]["n"]["type"] = json!("string"))),
        (
            "null as well",
            false,
            with(|it| {
                it["B"]["properties"]["b"]["type"] = json!(["boolean", "null"]);
            }),
        ),
        ("perhaps not there", false, with(|it| it["A"]["required"] = json!(["text"]))),
        ("a word less", false, with(|it| it["Word"]["enum"] = json!(["one"]))),
        ("a form less", false, with(|it| it["jvs x"]["anyOf"] = json!([{ "$ref": "#/$defs/A" }]))),
        (
            "a command less",
            false,
            with(|it| {
                it.as_object_mut().expect("schemas").shift_remove("jvs x");
            }),
        ),
        (
            "two types",
            false,
            with(|it| {
                it["A"]["properties"]["n"] =
                    json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] });
            }),
        ),
        ("anything", false, with(|it| it["A"]["properties"]["n"] = json!({}))),
        (
            "other items",
            false,
            with(|it| {
                it["A"]["properties"]["all"]["items"] = json!({ "type": "string" });
            }),
        ),
    ]
}

#[test]
fn what_breaks_a_program_is_told_from_what_does_not() {
    let changes = changes();
    for (what, may_be, new) in &changes {
        let broken = broken(&changes[0].2, new);
        assert_eq!(broken.is_empty(), *may_be, "{what}: {broken:#?}");
    }
}
