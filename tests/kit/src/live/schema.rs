//! Is a document of `--json` what its schema says, to the last field? A small validator of
//! the part of JSON Schema that `spec/schema/jvs-1.json` uses: what it does not know is a
//! failure and not ignored.
//!
//! The published schemas allow fields that they do not name, because later versions have
//! more. Here such a field is a mistake: it was forgotten in the type of the answer.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Map, Value};

/// Says nothing about a value.
const NOTES: &[&str] =
    &["$schema", "$id", "$defs", "title", "description", "default", "contentEncoding"];

/// What JSON Schema calls a type, and the formats of numbers that schemas mention.
const UNSIGNED: &[&str] = &["uint", "uint8", "uint16", "uint32", "uint64"];

/// The schemas of this version.
pub fn kept() -> &'static Value {
    static KEPT: OnceLock<Value> = OnceLock::new();
    KEPT.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/schema/jvs-1.json");
        let text = fs_err::read_to_string(path).expect("the schemas can be read");
        serde_json::from_str(&text).expect("the schemas are JSON")
    })
}

/// Why `document`, one that `jvs` printed, is not what its command's schema says; nothing
/// if it is.
pub fn fault(document: &Value) -> Option<String> {
    let command = document["command"].as_str()?;
    // Never typed, and no promise.
    if command.starts_with("__") {
        return None;
    }
    let schemas = Schemas { all: kept() };
    let Some(schema) = schemas.named(&format!("jvs {command}")) else {
        return Some(format!(
            "`jvs {command} --json` has no schema in spec/schema/jvs-1.json: make the type of its \
             answer in jvs/src/answer/, add a line to `answers!` in jvs/src/schemas.rs, then \
             JVS_BLESS=1 cargo nextest run -p jvs-schema-tests, and build jvs again"
        ));
    };
    let at = format!("jvs {command}");
    schemas.check(schema, document, &at).err().map(|fault| {
        format!(
            "{fault}\nThe types are in jvs/src/answer/; after a change there: JVS_BLESS=1 cargo \
             nextest run -p jvs-schema-tests, and build jvs again"
        )
    })
}

/// The documents in what `jvs` printed: the lines that are one each. The last line of a
/// stream that was ended may be half of one.
pub fn documents(stdout: &[u8]) -> impl Iterator<Item = Value> {
    let lines =
        stdout.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{\"schema\":"));
    let parsed = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    parsed.filter(|document| document["schema"] == "jvs/1")
}

/// Fields that some schema knows; `None` if it allows all.
type Known = Option<BTreeSet<String>>;

struct Schemas<'s> {
    all: &'s Value,
}

impl<'s> Schemas<'s> {
    fn named(&self, name: &str) -> Option<&'s Value> {
        self.all["$defs"].get(name)
    }

    /// A value in a place of its own: all of its fields have to be known.
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let known = self.apply(schema, value, at)?;
        let (Some(known), Some(fields)) = (known, value.as_object()) else { return Ok(()) };
        match fields.keys().find(|field| !known.contains(*field)) {
            Some(field) => Err(format!("{at}: its schema does not know the field \"{field}\"")),
            None => Ok(()),
        }
    }

    /// What a schema says of a value, and which fields it knows.
    fn apply(&self, schema: &Value, value: &Value, at: &str) -> Result<Known, String> {
        let members = match schema {
            Value::Bool(true) => return Ok(None),
            Value::Object(members) if members.keys().all(|it| NOTES.contains(&it.as_str())) => {
                return Ok(None);
            }
            Value::Object(members) => members,
            _ => return Err(format!("{at}: {schema} is no schema")),
        };
        let mut known: Known = Some(BTreeSet::new());
        let mut also = |more: Known| match (&mut known, more) {
            (Some(known), Some(more)) => known.extend(more),
            (known, _) => *known = None,
        };
        for (word, said) in members {
            match word.as_str() {
                "$ref" => also(self.apply(self.referred(said, at)?, value, at)?),
                "type" => is_of_type(said, value, at)?,
                "const" => is(said == value, at, || format!("{value} is not {said}"))?,
                "enum" => {
                    is(list(said).contains(value), at, || format!("{value} is not of {said}"))?
                }
                "format" => is_of_format(said, value, at)?,
                "minimum" | "maximum" => is_in_range(word, said, value, at)?,
                "minItems" | "maxItems" => is_as_long(word, said, value, at)?,
                "items" => self.each(said, value, at)?,
                "properties" => also(Some(self.properties(said, value, at)?)),
                "required" => has_all(said, value, at)?,
                "additionalProperties" => also(self.others(said, members, value, at)?),
                "anyOf" | "oneOf" => also(self.one_of(said, word, value, at)?),
                "allOf" => {
                    for schema in list(said) {
                        also(self.apply(schema, value, at)?);
                    }
                }
                note if NOTES.contains(&note) => {}
                other => return Err(format!("{at}: this validator does not know \"{other}\"")),
            }
        }
        Ok(known)
    }

    fn referred(&self, to: &Value, at: &str) -> Result<&'s Value, String> {
        let name = to.as_str().and_then(|to| to.strip_prefix("#/$defs/"));
        let found = name.and_then(|name| self.named(name));
        found.ok_or_else(|| format!("{at}: there is no {to}"))
    }

    fn each(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let items = value.as_array().into_iter().flatten().enumerate();
        items.into_iter().try_for_each(|(n, item)| self.check(schema, item, &format!("{at}[{n}]")))
    }

    fn properties(
        &self,
        schemas: &Value,
        value: &Value,
        at: &str,
    ) -> Result<BTreeSet<String>, String> {
        let schemas = schemas.as_object().ok_or_else(|| format!("{at}: no properties"))?;
        for (name, schema) in schemas {
            if let Some(value) = value.get(name) {
                self.check(schema, value, &format!("{at}.{name}"))?;
            }
        }
        Ok(schemas.keys().cloned().collect())
    }

    /// Fields that have no name in the schema.
    fn others(
        &self,
        schema: &Value,
        members: &Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Result<Known, String> {
        let named = members.get("properties").and_then(Value::as_object);
        let is_named = |name: &str| named.is_some_and(|named| named.contains_key(name));
        let fields = value.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(name, _)| !is_named(name)) {
            match schema {
                Value::Bool(false) => return Err(format!("{at}: no field \"{name}\" is allowed")),
                schema => self.check(schema, value, &format!("{at}.{name}"))?,
            }
        }
        Ok(None)
    }

    /// One of several; of those that hold, each knows some of the fields.
    fn one_of(
        &self,
        schemas: &Value,
        word: &str,
        value: &Value,
        at: &str,
    ) -> Result<Known, String> {
        let tried: Vec<Result<Known, String>> =
            list(schemas).iter().map(|schema| self.apply(schema, value, at)).collect();
        let (held, failed): (Vec<_>, Vec<_>) = tried.into_iter().partition(Result::is_ok);
        let held: Vec<Known> = held.into_iter().flatten().collect();
        if held.is_empty() {
            // The one that came furthest says it best.
            let depth = |why: &String| why.split(": ").next().map_or(0, str::len);
            let why = failed.into_iter().filter_map(Result::err).max_by_key(depth);
            return Err(why.unwrap_or_else(|| format!("{at}: nothing is allowed")));
        }
        is(word == "anyOf" || held.len() == 1, at, || "more than one form holds".to_owned())?;
        held.into_iter()
            .try_fold(BTreeSet::new(), |mut all, one| {
                all.extend(one?);
                Some(all)
            })
            .map_or(Ok(None), |all| Ok(Some(all)))
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is(holds: bool, at: &str, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{at}: {}", otherwise())) }
}

fn is_of_type(types: &Value, value: &Value, at: &str) -> Result<(), String> {
    let holds = |name: &Value| match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => false,
    };
    let any = match types {
        Value::Array(types) => types.iter().any(holds),
        one => holds(one),
    };
    is(any, at, || format!("{value} is not of type {types}"))
}

fn is_of_format(format: &Value, value: &Value, at: &str) -> Result<(), String> {
    let holds = match (format.as_str(), value) {
        (Some("date-time"), Value::String(text)) => is_a_time(text),
        (Some(format), Value::Number(number)) if UNSIGNED.contains(&format) => number.is_u64(),
        (Some(format), Value::Number(number)) if format.starts_with("int") => number.is_i64(),
        // A value of another type is the business of `type`.
        (Some("date-time"), _) => true,
        (Some(format), _) => UNSIGNED.contains(&format) || format.starts_with("int"),
        _ => false,
    };
    is(holds, at, || format!("{value} is no {format}"))
}

/// As all times are spelled: `2026-11-18T21:15:05.986Z`.
fn is_a_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

fn is_in_range(word: &str, bound: &Value, value: &Value, at: &str) -> Result<(), String> {
    let (Some(value), Some(bound)) = (value.as_f64(), bound.as_f64()) else { return Ok(()) };
    let holds = if word == "minimum" { value >= bound } else { value <= bound };
    is(holds, at, || format!("{value}, whose {word} is {bound}"))
}

fn is_as_long(word: &str, bound: &Value, value: &Value, at: &str) -> Result<(), String> {
    let (Some(items), Some(bound)) = (value.as_array(), bound.as_u64()) else { return Ok(()) };
    let holds =
        if word == "minItems" { items.len() as u64 >= bound } else { items.len() as u64 <= bound };
    is(holds, at, || format!("{} items, whose {word} is {bound}", items.len()))
}

fn has_all(names: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(fields) = value.as_object() else { return Ok(()) };
    let missing = list(names).iter().filter_map(Value::as_str).find(|it| !fields.contains_key(*it));
    match missing {
        Some(name) => Err(format!("{at}: the field \"{name}\" is missing")),
        None => Ok(()),
    }
}
