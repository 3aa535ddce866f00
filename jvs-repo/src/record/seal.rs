//! A checksum in a record: a `checksum` field over the canonical bytes of all the
//! others, whatever fields a later version may add.
//!
//! Readers do not ask for it: a record whose seal is broken still says what it
//! says. It is there so that damage can be told from intention, and a single
//! flipped bit be put right.

use serde::Serialize;
use serde_json::Value;

use crate::json;

const FIELD: &str = "checksum";
/// Every bit is tried of a record so long, which is longer than any that is written;
/// the effort grows with the square of the length, and who made it up chose that.
const UNFLIP_MAX: usize = 2 * 1024;

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

/// The bytes of a record on disk, with its checksum.
pub fn seal<T: Serialize>(record: &T) -> Vec<u8> {
    let mut value = serde_json::to_value(record).expect("a record has only text as keys");
    let sum = checksum(&value);
    value[FIELD] = Value::String(sum);
    json::canonical(&value)
}

/// Is it as it was written? An error if it is no record at all.
pub fn look(bytes: &[u8]) -> Result<Seal, String> {
    let mut value: Value = json::parse(bytes)?;
    let fields = value.as_object_mut().ok_or("it is not an object")?;
    Ok(match fields.shift_remove(FIELD) {
        None => Seal::Missing,
        Some(sum) if sum == checksum(&value) => Seal::Whole,
        Some(_) => Seal::Broken,
    })
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

fn checksum(value: &Value) -> String {
    blake3::hash(&json::canonical(value)).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Value {
        serde_json::json!({ "version": 1, "base": "x", "later": ["fields", 7] })
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
    fn more_than_one_flipped_bit_is_not_guessed_at() {
        let mut sealed = seal(&record());
        sealed[20] ^= 1;
        sealed[21] ^= 1;
        assert_eq!(unflip(&sealed), None);
    }
}
