//! The `version` of a shape: for `#[serde(with = "…")]`. One is the only one so far.

use serde::{Deserialize, Deserializer, Serializer};

/// The version that this program writes, and reads.
pub(super) const ONE: u64 = 1;

pub(super) fn serialize<S: Serializer>(version: &u64, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(*version)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    match u64::deserialize(d)? {
        ONE => Ok(ONE),
        other => Err(serde::de::Error::custom(format_args!("version {other}; 1 is the only one"))),
    }
}
