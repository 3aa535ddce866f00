//! What processes publish for invariants to look at: facts by key.

use std::collections::BTreeMap;
use std::fmt;

/// One published fact. What it means is the scenario's business.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A number: a token, a moment, a count.
    Number(u64),
    /// Arbitrary text.
    Text(String),
    /// Several facts that belong together, or one after the other.
    List(Vec<Value>),
}

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// The words, if it is words.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The parts of a list; none of anything else.
    pub fn parts(&self) -> &[Value] {
        match self {
            Value::List(parts) => parts,
            _ => &[],
        }
    }

    /// The numbers in a list.
    pub fn numbers(&self) -> Vec<u64> {
        self.parts().iter().filter_map(Value::number).collect()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(n) => write!(f, "{n}"),
            Value::Text(text) => f.write_str(text),
            Value::List(parts) => {
                f.write_str("[")?;
                for (n, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if n == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Number(n)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl<const N: usize> From<[u64; N]> for Value {
    fn from(numbers: [u64; N]) -> Self {
        Value::List(numbers.into_iter().map(Value::Number).collect())
    }
}

impl From<Vec<Value>> for Value {
    fn from(parts: Vec<Value>) -> Self {
        Value::List(parts)
    }
}

/// What one process has published.
pub(crate) type Board = BTreeMap<&'static str, Value>;
