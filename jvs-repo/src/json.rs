//! Strict, bounded reading of JSON control files, and their canonical bytes.
//!
//! Two passes: the first knows no shape and refuses what no control file may
//! have (too large, too deep, too long a string, a key twice, anywhere); the
//! second reads the shape. So a field that today's shape ignores cannot smuggle
//! in what tomorrow's would choke on, and two readers never pick different
//! values for one key.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::io;

use serde::Serialize;
use serde::de::{self, DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::code::{Code, Coded, code_of_io};
use crate::next::Next;
use crate::store::{RepoPath, Store};

/// What a control file may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole file.
    pub size: usize,
    /// Objects and arrays inside one another.
    pub depth: usize,
    /// Bytes of one string, keys included.
    pub string: usize,
}

impl Limits {
    /// What every record keeps to unless its shape says otherwise.
    pub const RECORD: Limits = Limits { size: 64 * 1024, depth: 16, string: 256 };
}

/// A control file that is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct RecordError {
    /// Which file.
    pub path: RepoPath,
    /// What is wrong with it.
    #[source]
    pub reason: UnusableReason,
}

/// Why a control file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum UnusableReason {
    /// Its content is torn, oversized or of another shape.
    #[error("{0}")]
    Invalid(String),
    /// The filesystem refused.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl RecordError {
    fn sentence(&self) -> String {
        let RecordError { path, reason } = self;
        match reason {
            UnusableReason::Invalid(reason) => format!("{path} cannot be used: {reason}"),
            UnusableReason::Io(error) if code_of_io(error) == Code::PathEscape => {
                format!("{path} is reached through a symlink, which is not followed")
            }
            UnusableReason::Io(error) => format!("{path}: {error}"),
        }
    }

    /// The file at `path` has content that cannot be believed.
    pub fn invalid(path: &RepoPath, reason: impl Into<String>) -> Self {
        RecordError { path: path.clone(), reason: UnusableReason::Invalid(reason.into()) }
    }

    /// A call on `path` failed. What is no file of acceptable size was reported
    /// as bad data by the store, and is an invalid record here.
    pub fn io(path: &RepoPath, error: io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::InvalidData => UnusableReason::Invalid(error.to_string()),
            _ => UnusableReason::Io(error),
        };
        RecordError { path: path.clone(), reason }
    }
}

impl Coded for RecordError {
    fn code(&self) -> Code {
        match &self.reason {
            UnusableReason::Invalid(_) => Code::RecordInvalid,
            UnusableReason::Io(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Code::Exists
            }
            UnusableReason::Io(error) => code_of_io(error),
        }
    }

    fn next(&self) -> Option<Next> {
        match self.code() {
            Code::RecordInvalid => Some(Next::AskDoctorAbout(self.path.clone())),
            Code::PathEscape => Some(Next::ReplaceSymlink(self.path.clone())),
            _ => None,
        }
    }
}

/// Reads one JSON document within [`Limits::RECORD`]. The error says what is
/// wrong and where.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    parse_within(bytes, Limits::RECORD)
}

/// Reads one JSON document within `limits`.
pub fn parse_within<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, String> {
    if bytes.len() > limits.size {
        return Err(format!("it is larger than {} bytes", limits.size));
    }
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| format!("it is not UTF-8 at byte {}", error.valid_up_to()))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    Acceptable { limits, depth: 0 }
        .deserialize(&mut reader)
        .and_then(|()| reader.end())
        .map_err(|error| error.to_string())?;
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Reads a record; `None` if there is no such file.
pub fn read<T: DeserializeOwned>(
    store: &dyn Store,
    path: &RepoPath,
) -> Result<Option<T>, RecordError> {
    read_within(store, path, Limits::RECORD)
}

/// As [`read`], within other limits.
pub fn read_within<T: DeserializeOwned>(
    store: &dyn Store,
    path: &RepoPath,
    limits: Limits,
) -> Result<Option<T>, RecordError> {
    match store.read(path, limits.size) {
        Ok(bytes) => parse_within(&bytes, limits)
            .map(Some)
            .map_err(|reason| RecordError::invalid(path, reason)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::io(path, error)),
    }
}

/// The bytes of a record on disk: indented for people, fields in the order of
/// their shape, one newline at the end.
pub fn canonical<T: Serialize>(record: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(record)
        .expect("a record has only text as keys and writes to memory");
    bytes.push(b'\n');
    bytes
}

/// Accepts any JSON value that keeps to the limits, and keeps nothing of it.
#[derive(Clone, Copy)]
struct Acceptable {
    limits: Limits,
    depth: usize,
}

impl Acceptable {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == self.limits.depth {
            let most = self.limits.depth;
            return Err(E::custom(format_args!("nested deeper than {most} levels")));
        }
        Ok(Acceptable { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Acceptable {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Acceptable {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        let most = self.limits.string;
        if text.len() > most {
            return Err(E::custom(format_args!("a string longer than {most} bytes")));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let inside = self.deeper()?;
        while seq.next_element_seed(inside)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let inside = self.deeper()?;
        let mut seen = SeenKeys::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            inside.visit_str::<A::Error>(&key)?;
            if let Some(key) = seen.insert(key) {
                return Err(de::Error::custom(format_args!("the key {key:?} appears twice")));
            }
            map.next_value_seed(inside)?;
        }
        Ok(())
    }
}

/// The keys of one object. Nearly all have few, and comparing those is cheaper than hashing
/// them; how many there are is up to whoever wrote them.
#[derive(Default)]
struct SeenKeys<'de> {
    few: Vec<Cow<'de, str>>,
    more: HashSet<Cow<'de, str>>,
}

impl<'de> SeenKeys<'de> {
    const FEW: usize = 16;

    /// The key itself, if it was there before.
    fn insert(&mut self, key: Cow<'de, str>) -> Option<Cow<'de, str>> {
        if self.few.contains(&key) || self.more.contains(&key) {
            return Some(key);
        }
        match self.few.len() < Self::FEW {
            true => self.few.push(key),
            false => drop(self.more.insert(key)),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::store::PosixStore;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Shape {
        number: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    }

    fn refusal(bytes: &[u8]) -> String {
        parse::<Shape>(bytes).expect_err("refused")
    }

    #[test]
    fn what_was_written_is_read_back_and_extra_fields_are_tolerated() {
        let shape = Shape { number: 7, text: Some("x".into()) };
        let bytes = canonical(&shape);
        assert_eq!(bytes, b"{\n  \"number\": 7,\n  \"text\": \"x\"\n}\n");
        assert_eq!(parse::<Shape>(&bytes), Ok(shape));
        let more = br#"{"number":1,"new":{"deep":[1,null,true,-2.5]}}"#;
        assert_eq!(parse::<Shape>(more), Ok(Shape { number: 1, text: None }));
    }

    #[test]
    fn every_prefix_of_a_record_is_refused_so_a_torn_one_is_noticed() {
        let bytes = br#"{"number": 12, "text": "abc"}"#;
        for end in 0..bytes.len() {
            assert!(parse::<Shape>(&bytes[..end]).is_err(), "the first {end} bytes");
        }
        let mut zeroed = bytes.to_vec();
        zeroed[20..].fill(0);
        assert!(parse::<Shape>(&zeroed).is_err(), "blocks that never reached the disk");
        assert!(refusal(b"").contains("empty"));
    }

    /// An object of forty keys, and one more.
    fn many_keys(last: &str) -> String {
        let keys: String = (0..40).map(|n| format!(r#""k{n}":1,"#)).collect();
        format!(r#"{{"number":1,{keys}"{last}":2}}"#)
    }

    #[test]
    fn a_key_twice_is_refused_at_every_level_known_or_not() {
        for text in [
            r#"{"number":1,"number":1}"#,
            r#"{"number":1,"extra":1,"extra":2}"#,
            r#"{"number":1,"extra":{"a":1,"a":1}}"#,
            r#"{"number":1,"extra":[{"a":1,"\u0061":1}]}"#,
            &many_keys("k1"),
            &many_keys("k39"),
        ] {
            let reason = refusal(text.as_bytes());
            assert!(reason.contains("appears twice"), "{text}: {reason}");
        }
    }

    #[test]
    fn hostile_sizes_are_refused_before_they_cost_anything() {
        assert!(refusal(&vec![b' '; 10 << 20]).contains("larger than 65536 bytes"));
        let deep = format!(r#"{{"number":1,"x":{}{}}}"#, "[".repeat(30_000), "]".repeat(30_000));
        assert!(refusal(deep.as_bytes()).contains("nested deeper than 16"));
        let long = format!(r#"{{"number":1,"x":"{}"}}"#, "y".repeat(257));
        assert!(refusal(long.as_bytes()).contains("longer than 256"));
        let long_key = format!(r#"{{"number":1,"{}":0}}"#, "y".repeat(257));
        assert!(refusal(long_key.as_bytes()).contains("longer than 256"));
        let fits = format!(r#"{{"number":1,"x":"{}"}}"#, "y".repeat(256));
        assert!(parse::<Shape>(fits.as_bytes()).is_ok());
    }

    #[test]
    fn wrong_types_numbers_out_of_range_and_trailing_text_are_refused() {
        for text in [
            "[]",
            "null",
            "7",
            r#"{"number":"7"}"#,
            r#"{"number":-1}"#,
            r#"{"number":1.5}"#,
            r#"{"number":1e400}"#,
            r#"{"number":18446744073709551616}"#,
            r#"{"text":"x"}"#,
            r#"{"number":1}{"number":2}"#,
            r#"{"number":1,}"#,
            "{\"number\":1,\"text\":\"\u{0}\"}",
        ] {
            assert!(parse::<Shape>(text.as_bytes()).is_err(), "{text}");
        }
        assert!(refusal(b"{\"number\":1,\"x\":\"\xff\"}").contains("UTF-8 at byte 17"));
    }

    #[test]
    fn a_file_is_absent_or_valid_or_an_error_that_names_it() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        let at = RepoPath::root().child("r.json").expect("plain");
        let tmp = RepoPath::root().child("tmp").expect("plain");
        assert_eq!(read::<Shape>(&store, &at).expect("absent"), None);

        store.write_over(&tmp, &at, &canonical(&Shape { number: 1, text: None })).expect("written");
        assert_eq!(read(&store, &at).expect("valid"), Some(Shape { number: 1, text: None }));

        store.write_over(&tmp, &at, &vec![b'['; 10 << 20]).expect("written");
        let error = read::<Shape>(&store, &at).expect_err("10 MB");
        assert_eq!(error.code(), Code::RecordInvalid);
        assert!(error.to_string().starts_with("r.json cannot be used: "), "{error}");
        assert_eq!(error.next(), Some(Next::AskDoctorAbout(at.clone())));

        store.unlink(&at).expect("unlink");
        std::os::unix::fs::symlink("elsewhere", dir.path().join("r.json")).expect("symlink");
        let error = read::<Shape>(&store, &at).expect_err("symlink");
        assert_eq!(error.code(), Code::PathEscape);
        assert_eq!(error.next(), Some(Next::ReplaceSymlink(at)));
    }
}
