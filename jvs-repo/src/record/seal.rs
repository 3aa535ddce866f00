//! A checksum in a record: a field over the canonical bytes of all the others, whatever
//! fields a later version may add.
//!
//! [`Sealed::parse`] believes only what is as it was written. Other readers do not ask:
//! a record whose seal is broken still says what it says. Then the checksum is there so
//! that damage can be told from intention, and a single flipped bit be put right.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::digest::Digest;
use crate::json::{self, Limits};

/// Every bit is tried of a record this long, which is longer than any that is written;
/// the effort grows with the square of the length, and who made it up chose that.
const UNFLIP_MAX: usize = 2 * 1024;
const FIELD: &str = "checksum";

/// A shape that carries a checksum over its own canonical bytes.
pub trait Sealable: Serialize + DeserializeOwned {
    /// The field with the checksum.
    const CHECKSUM: &'static str = FIELD;
    /// What the file may have at most.
    const LIMITS: Limits = Limits::RECORD;
}

/// A record and its bytes on disk, with their checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed<T> {
    content: T,
    checksum: Digest,
    bytes: Vec<u8>,
}

impl<T: Sealable> Sealed<T> {
    /// What is to be written.
    pub fn of(content: T) -> Self {
        let mut value = value_of(&content);
        let checksum = checksum(&value);
        value[T::CHECKSUM] = Value::String(checksum.to_string());
        Sealed { content, checksum, bytes: json::canonical(&value) }
    }

    /// What was written: every field is there, spelled as it is written. Fields that a
    /// later version added are allowed, under the checksum. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut value: Value = json::parse_within(bytes, T::LIMITS)?;
        if json::canonical(&value) != bytes {
            return Err("it is not spelled as it was written".to_owned());
        }
        let stated = value.as_object_mut().and_then(|fields| fields.shift_remove(T::CHECKSUM));
        let stated: Digest = stated
            .as_ref()
            .and_then(Value::as_str)
            .ok_or_else(|| format!("it has no {}", T::CHECKSUM))?
            .parse()
            .map_err(|error| format!("{}: {error}", T::CHECKSUM))?;
        if checksum(&value) != stated {
            return Err("its content does not match its checksum".to_owned());
        }
        let content: T = serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
        for (name, field) in value_of(&content).as_object().into_iter().flatten() {
            if value.get(name) != Some(field) {
                return Err(format!("{name} is not spelled as it was written"));
            }
        }
        Ok(Sealed { content, checksum: stated, bytes: bytes.to_vec() })
    }

    /// Its bytes on disk.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its checksum.
    pub fn checksum(&self) -> Digest {
        self.checksum
    }

    /// What it says, and its checksum.
    pub fn into_parts(self) -> (T, Digest) {
        (self.content, self.checksum)
    }
}

/// What a record's checksum says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// It is as it was written.
    Whole,
    /// It has none: an earlier version wrote it.
    Missing,
    /// It is not as it was written.
    Broken,
}

/// Is it as it was written? An error if it is no record at all.
pub fn look(bytes: &[u8]) -> Result<Seal, String> {
    let mut value: Value = json::parse(bytes)?;
    let fields = value.as_object_mut().ok_or("it is not an object")?;
    Ok(match fields.shift_remove(FIELD) {
        None => Seal::Missing,
        Some(sum) if sum == checksum(&value).to_string() => Seal::Whole,
        Some(_) => Seal::Broken,
    })
}

/// What it takes to look for a flipped bit, in bytes that are read.
pub fn effort_to_unflip(bytes: &[u8]) -> u64 {
    let length = if bytes.len() > UNFLIP_MAX { 0 } else { bytes.len() as u64 };
    8 * length * length
}

/// The record as it was written, if one flipped bit is all that is wrong with it.
pub fn unflip(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() > UNFLIP_MAX {
        return None;
    }
    let mut tried = bytes.to_vec();
    for at in 0..tried.len() {
        for bit in 0..8 {
            tried[at] ^= 1 << bit;
            if look(&tried) == Ok(Seal::Whole) {
                return Some(tried);
            }
            tried[at] ^= 1 << bit;
        }
    }
    None
}

fn value_of<T: Serialize>(record: &T) -> Value {
    serde_json::to_value(record).expect("a record has only text as keys")
}

fn checksum(value: &Value) -> Digest {
    Digest::of(&json::canonical(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Sealable for Value {}

    fn record() -> Value {
        serde_json::json!({ "version": 1, "base": "x", "later": ["fields", 7] })
    }

    fn seal(record: &Value) -> Vec<u8> {
        Sealed::of(record.clone()).into_bytes()
    }

    #[test]
    fn a_record_is_whole_without_a_checksum_or_broken() {
        let sealed = seal(&record());
        assert_eq!(look(&sealed), Ok(Seal::Whole));
        assert_eq!(look(&json::canonical(&record())), Ok(Seal::Missing));
        let text = String::from_utf8(sealed).expect("text");
        assert_eq!(look(text.replace("fields", "words").as_bytes()), Ok(Seal::Broken));
        assert!(look(b"{").is_err() && look(b"[]").is_err());
    }

    #[test]
    fn a_number_that_a_later_version_adds_is_read_as_it_was_written() {
        for number in ["6666666666666666666666666666666666664775807.0", "0.1", "5e-324"] {
            let text = format!("{{\"x\":{number}}}");
            let mut value: Value = serde_json::from_str(&text).expect("a number");
            value[FIELD] = Value::String(checksum(&value).to_string());
            assert_eq!(look(&json::canonical(&value)), Ok(Seal::Whole), "{number}");
        }
    }

    #[test]
    fn only_what_is_as_it_was_written_is_parsed_as_sealed() {
        let sealed = Sealed::of(record());
        let bytes = sealed.clone().into_bytes();
        assert_eq!(Sealed::parse(&bytes), Ok(sealed));
        let refusal = |bytes: &[u8]| Sealed::<Value>::parse(bytes).expect_err("refused");
        assert!(refusal(&json::canonical(&record())).contains("it has no checksum"));
        assert!(refusal(&[bytes.as_slice(), b" "].concat()).contains("spelled"));
        for end in 0..bytes.len() {
            assert!(Sealed::<Value>::parse(&bytes[..end]).is_err(), "the first {end} bytes");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed_and_put_right() {
        let sealed = seal(&record());
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut flipped = sealed.clone();
                flipped[at] ^= 1 << bit;
                assert_ne!(look(&flipped), Ok(Seal::Whole), "bit {bit} of byte {at}");
                if (at * 8 + bit) % 97 == 0 {
                    assert_eq!(unflip(&flipped).as_ref(), Some(&sealed), "bit {bit} of byte {at}");
                }
            }
        }
    }

    #[test]
    fn a_record_that_is_longer_than_any_that_is_written_is_not_searched() {
        let flipped = |words: usize| {
            let mut sealed = seal(&serde_json::json!({ "x": vec!["word"; words] }));
            let newline = sealed.last_mut().expect("not empty");
            *newline ^= 1;
            sealed
        };
        let (usual, long) = (flipped(10), flipped(UNFLIP_MAX / 4));
        assert!(unflip(&usual).is_some() && effort_to_unflip(&usual) > 0);
        assert_eq!((unflip(&long), effort_to_unflip(&long)), (None, 0));
    }

    #[test]
    fn more_than_one_flipped_bit_is_not_guessed_at() {
        let mut sealed = seal(&record());
        sealed[20] ^= 1;
        sealed[21] ^= 1;
        assert_eq!(unflip(&sealed), None);
    }
}
