//! Changes to a JSON text that leave every other byte of it as it is.
//!
//! The text was read by the strict reader before: here it is only measured.

use std::ops::Range;

use serde_json::Value;

/// A value, and where it is.
#[derive(Debug)]
pub(crate) struct JsonNode {
    pub(crate) at: Range<usize>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<Member>),
    Array(Vec<JsonNode>),
    /// Text, a number, a word.
    Plain,
}

#[derive(Debug)]
struct Member {
    name: String,
    at: Range<usize>,
    value: JsonNode,
}

/// Measures a text that is known to be JSON; `None` if it is not.
pub(crate) fn measure(text: &str) -> Option<JsonNode> {
    let mut measurer = Measurer { text, at: 0 };
    measurer.blanks();
    let node = measurer.value()?;
    measurer.blanks();
    (measurer.at == text.len()).then_some(node)
}

struct Measurer<'t> {
    text: &'t str,
    at: usize,
}

impl Measurer<'_> {
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.next().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.next()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self) -> Option<JsonNode> {
        let start = self.at;
        let kind = match self.next()? {
            b'{' => {
                let members = self.list(b'}', |it| {
                    let start = it.at;
                    let name = it.string()?;
                    it.expect(b':')?;
                    it.blanks();
                    let value = it.value()?;
                    Some(Member { name, at: start..it.at, value })
                });
                Kind::Object(members?)
            }
            b'[' => Kind::Array(self.list(b']', Self::value)?),
            b'"' => {
                self.string()?;
                Kind::Plain
            }
            _ => {
                while self.next().is_some_and(|b| !b",]}".contains(&b) && !b.is_ascii_whitespace())
                {
                    self.at += 1;
                }
                Kind::Plain
            }
        };
        (self.at > start).then_some(JsonNode { at: start..self.at, kind })
    }

    fn list<T>(&mut self, close: u8, each: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.next()? == close {
            self.at += 1;
            return Some(items);
        }
        loop {
            self.blanks();
            items.push(each(self)?);
            self.blanks();
            let byte = self.next()?;
            self.at += 1;
            match byte {
                b',' => {}
                byte if byte == close => return Some(items),
                _ => return None,
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        jvs_repo::json::parse(self.text.get(start..self.at)?.as_bytes()).ok()
    }
}

impl JsonNode {
    /// The member of that name.
    pub(crate) fn member(&self, name: &str) -> Option<&JsonNode> {
        match &self.kind {
            Kind::Object(members) => members.iter().find(|it| it.name == name).map(|it| &it.value),
            _ => None,
        }
    }

    /// The item at that place.
    pub(crate) fn item(&self, which: usize) -> Option<&JsonNode> {
        match &self.kind {
            Kind::Array(items) => items.get(which),
            _ => None,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array(_))
    }

    /// Which of its members has that name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.names().iter().position(|it| *it == name)
    }

    /// What it consists of: members with their names, or items.
    fn children(&self) -> Vec<(Range<usize>, &JsonNode)> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|it| (it.at.clone(), &it.value)).collect(),
            Kind::Array(items) => items.iter().map(|it| (it.at.clone(), it)).collect(),
            Kind::Plain => Vec::new(),
        }
    }

    /// The names of its members, or as many empty names as it has items.
    fn names(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|it| it.name.as_str()).collect(),
            Kind::Array(items) => vec![""; items.len()],
            Kind::Plain => Vec::new(),
        }
    }
}

/// `text` with `value` at the end of the object or array `node`: under `name` if it is an
/// object. It is laid out as its surroundings are.
pub(crate) fn append(text: &str, node: &JsonNode, name: Option<&str>, value: &Value) -> String {
    let inside = &text[node.at.clone()];
    let children = node.children();
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let key = name.map(|name| format!("{}: ", Value::from(name))).unwrap_or_default();
    let Some((last, _)) = children.last() else {
        let (outer, unit) = (indent_of(text, node.at.start), unit(text));
        let body = pretty(value, &unit).replace('\n', &format!("{line_end}{outer}{unit}"));
        let (open, close) = (&inside[..1], &inside[inside.len() - 1..]);
        let new = format!("{open}{line_end}{outer}{unit}{key}{body}{line_end}{outer}{close}");
        return replaced(text, node.at.clone(), &new);
    };
    if !inside.contains('\n') {
        return replaced(text, last.end..last.end, &format!(", {key}{value}"));
    }
    let indent = match text[..last.start].rsplit('\n').next() {
        Some(before) if before.trim().is_empty() => before.to_owned(),
        _ => indent_of(text, node.at.start) + &unit(text),
    };
    let body = pretty(value, &unit(text)).replace('\n', &format!("{line_end}{indent}"));
    replaced(text, last.end..last.end, &format!(",{line_end}{indent}{key}{body}"))
}

/// `text` without child number `which` of `node`.
pub(crate) fn without(text: &str, node: &JsonNode, which: usize) -> String {
    let children = node.children();
    let at = |which: usize| children[which].0.clone();
    let gone = match (which, children.len()) {
        (0, 1) => node.at.start + 1..node.at.end - 1,
        (0, _) => at(0).start..at(1).start,
        (which, _) => at(which - 1).end..at(which).end,
    };
    replaced(text, gone, "")
}

fn replaced(text: &str, at: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..at.start], &text[at.end..])
}

/// The blanks that the line of `at` begins with.
fn indent_of(text: &str, at: usize) -> String {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    line.chars().take_while(|c| *c == ' ' || *c == '\t').collect()
}

/// What one step inwards is in this text.
fn unit(text: &str) -> String {
    let first = text.lines().find(|line| line.starts_with([' ', '\t']));
    let blanks = first.map(|line| indent_of(line, line.len())).filter(|it| it.len() <= 8);
    blanks.unwrap_or_else(|| "  ".to_owned())
}

/// A value over several lines, as far as one line would not do.
fn pretty(value: &Value, unit: &str) -> String {
    let inner = |text: String| text.replace('\n', &format!("\n{unit}"));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let each = fields.iter().map(|(name, it)| {
                format!("\n{unit}{}: {}", Value::from(name.as_str()), inner(pretty(it, unit)))
            });
            format!("{{{}\n}}", each.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) if !items.is_empty() => {
            let each = items.iter().map(|it| format!("\n{unit}{}", inner(pretty(it, unit))));
            format!("[{}\n]", each.collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn appended(text: &str, path: &[&str], name: Option<&str>, value: &Value) -> String {
        let root = measure(text).expect("JSON");
        let node = path.iter().fold(&root, |node, name| node.member(name).expect("there"));
        append(text, node, name, value)
    }

    #[test]
    fn what_is_added_looks_like_what_is_around_it_and_nothing_else_changes() {
        let value = json!({ "x": [1] });
        for (text, path, name, wanted) in [
            ("{}\n", &[][..], Some("a"), "{\n  \"a\": {\n    \"x\": [\n      1\n    ]\n  }\n}\n"),
            ("{ \"b\" : 1 }", &[], Some("a"), "{ \"b\" : 1, \"a\": {\"x\":[1]} }"),
            (
                "{\n\t\"b\": [\n\t\t1,\n\t\t2\n\t]\n}",
                &["b"],
                None,
                "{\n\t\"b\": [\n\t\t1,\n\t\t2,\n\t\t{\n\t\t\t\"x\": [\n\t\t\t\t1\n\t\t\t]\n\t\t}\n\t]\n}",
            ),
            (
                "{\r\n    \"b\": []\r\n}",
                &["b"],
                None,
                "{\r\n    \"b\": [\r\n        {\r\n            \"x\": [\r\n                1\r\n            ]\r\n        }\r\n    ]\r\n}",
            ),
            ("{\"a,]}\\\"\": \"{\"}", &[], Some("b"), "{\"a,]}\\\"\": \"{\", \"b\": {\"x\":[1]}}"),
        ] {
            assert_eq!(appended(text, path, name, &value), wanted, "{text}");
        }
    }

    #[test]
    fn what_was_added_can_be_taken_away_again() {
        for text in ["{\"b\": 1}", "{\n  \"b\": 1,\n  \"c\": [1, 2]\n}\n", "{\r\n\t\"b\":1\r\n}"] {
            let more = appended(text, &[], Some("a"), &json!([{ "x": 1 }]));
            let root = measure(&more).expect("JSON");
            let which = root.position("a").expect("added");
            assert_eq!(without(&more, &root, which), text);
        }
        let root = measure("[1, 2, 3]").expect("JSON");
        let each = [0, 1, 2].map(|which| without("[1, 2, 3]", &root, which));
        assert_eq!(each, ["[2, 3]", "[1, 3]", "[1, 2]"]);
        assert_eq!(without("[ 1 ]", &measure("[ 1 ]").expect("JSON"), 0), "[]");
    }

    #[test]
    fn what_is_no_json_is_not_measured_and_harms_nobody() {
        for text in ["", "{", "[1,", "{\"a\"}", "\"", "\"\\", "{\"a\":}", "[1 2]", "{} {}"] {
            assert!(measure(text).is_none(), "{text}");
        }
    }
}
