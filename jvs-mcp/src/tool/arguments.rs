//! What a client sent for a tool, checked against what the tool takes.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{Field, FieldKind, Tool};
use crate::answer::brief;
use crate::handle::Handle;

/// Arguments that are what the tool takes.
#[derive(Debug)]
pub(crate) struct Arguments {
    fields: JsonObject,
    /// The hold that is meant, if the tool acts on one.
    pub(crate) handle: Option<Handle>,
}

/// Arguments that are not: one sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongArguments(pub(crate) String);

impl Arguments {
    /// Checks all of them, and guesses nothing.
    pub(crate) fn check(tool: &Tool, sent: &JsonObject) -> Result<Arguments, WrongArguments> {
        for name in sent.keys() {
            if !tool.fields.iter().any(|field| field.name == name) {
                let known: Vec<_> = tool.fields.iter().map(|field| field.name).collect();
                let (name, known) = (brief(name), known.join(", "));
                let tool = tool.name;
                let message = format!("{tool} takes no argument {name:?}; it takes {known}");
                return Err(WrongArguments(message));
            }
        }
        let mut handle = None;
        for field in tool.fields {
            match sent.get(field.name).filter(|value| !value.is_null()) {
                Some(value) => check(field, value)?,
                None if field.required => {
                    return Err(WrongArguments(format!(
                        "{} needs the argument {}",
                        tool.name, field.name
                    )));
                }
                None => continue,
            }
            if field.kind == FieldKind::Handle {
                let text = sent[field.name].as_str().unwrap_or_default();
                handle = Some(text.parse().map_err(|_| {
                    let text = brief(text);
                    WrongArguments(format!("{text:?} is no handle; acquire and hold answer one"))
                })?);
            }
        }
        Ok(Arguments { fields: sent.clone(), handle })
    }

    /// The worktree that is meant, if one was named.
    pub(crate) fn worktree(&self) -> Option<String> {
        let held = self.handle.as_ref().map(|handle| handle.worktree.clone());
        held.or_else(|| self.text("worktree"))
    }

    /// A text or a number, as a word.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.fields.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Several texts.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let list = self.fields.get(name).and_then(Value::as_array);
        let words = list.into_iter().flatten().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    }

    /// The same, with this text as one of them.
    pub(crate) fn naming(mut self, name: &str, text: &str) -> Arguments {
        self.fields.insert(name.to_owned(), text.into());
        self
    }

    /// All of them, so that two calls can be compared.
    pub(crate) fn fields(&self) -> &JsonObject {
        &self.fields
    }
}

fn check(field: &Field, value: &Value) -> Result<(), WrongArguments> {
    let is_name = |value: &Value| {
        value.as_str().is_some_and(|name| !name.is_empty() && !name.starts_with('-') && plain(name))
    };
    let is_text = |value: &Value| value.as_str().is_some_and(plain);
    let all =
        |is: &dyn Fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(is));
    let (good, wanted) = match field.kind {
        FieldKind::Text | FieldKind::Handle => (is_text(value), "text"),
        FieldKind::Name => (is_name(value), "a name, which does not begin with a dash"),
        FieldKind::Duration => {
            (value.as_str().is_some_and(is_duration), "a duration like 30s, 5m or 1h30m")
        }
        FieldKind::Count => (value.as_u64().is_some_and(|number| number > 0), "a number from 1 on"),
        FieldKind::Names => (all(&is_name), "a list of names"),
        FieldKind::Paths => (all(&is_text), "a list of paths"),
    };
    if good { Ok(()) } else { Err(WrongArguments(format!("{} has to be {wanted}", field.name))) }
}

/// Can it be a word of a command line?
fn plain(text: &str) -> bool {
    !text.contains('\0')
}

/// As the command's own durations look; which of them make sense is the command's business.
fn is_duration(text: &str) -> bool {
    let ends = text.ends_with(['d', 'h', 'm', 's']);
    ends && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || "dhms".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::find;

    fn wrong(name: &str, sent: Value) -> String {
        let Value::Object(sent) = sent else { panic!("an object") };
        let checked = Arguments::check(find(name).expect("a tool"), &sent);
        checked.expect_err("refused").0
    }

    #[test]
    fn what_a_tool_does_not_take_is_refused_by_name() {
        for (name, sent, part) in [
            ("status", json!({ "wroktree": "main" }), "\"wroktree\"; it takes worktree"),
            ("snapshot", json!({}), "needs the argument handle"),
            ("snapshot", json!({ "handle": null }), "needs the argument handle"),
            ("release", json!({ "handle": "main" }), "\"main\" is no handle"),
            ("status", json!({ "worktree": "--help" }), "worktree has to be a name"),
            ("status", json!({ "worktree": "" }), "worktree has to be a name"),
            ("status", json!({ "worktree": ["main"] }), "worktree has to be a name"),
            ("acquire", json!({ "wait": 5 }), "wait has to be a duration"),
            ("acquire", json!({ "wait": "--force" }), "wait has to be a duration"),
            ("history", json!({ "limit": 0 }), "limit has to be a number from 1 on"),
            ("diff", json!({ "paths": "a" }), "paths has to be a list"),
            ("diff", json!({ "paths": ["a\0b"] }), "paths has to be a list"),
            ("steal", json!({ "reason": 1 }), "reason has to be text"),
        ] {
            let message = wrong(name, sent);
            assert!(message.contains(part), "{message}");
        }
    }
}
