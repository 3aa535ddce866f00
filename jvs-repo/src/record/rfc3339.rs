//! A [`WallMs`] in a record, as text that people can read: for
//! `#[serde(with = "…")]`.

use serde::{Deserialize, Deserializer, Serializer};

use crate::clock::WallMs;

/// Writes RFC 3339 in UTC with milliseconds.
pub fn serialize<S: Serializer>(at: &WallMs, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&at.rfc3339())
}

/// Reads any RFC 3339 time.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<WallMs, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
    WallMs::parse_rfc3339(&text)
        .ok_or_else(|| serde::de::Error::custom(format_args!("{text:?} is not an RFC 3339 time")))
}
