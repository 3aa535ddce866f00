//! Identifiers and counters as types: parsed once at the edge, so that a token
//! can never be passed where a sequence number is meant.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::entropy::Entropy;

/// Text that is not the identifier it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {what}")]
pub struct NotAnId {
    what: &'static str,
}

impl NotAnId {
    /// Says what was expected, for example `a snapshot id`.
    pub const fn expected(what: &'static str) -> Self {
        NotAnId { what }
    }
}

/// Parses a decimal number strictly: digits only, no sign, no leading zero, so
/// that each number has exactly one spelling and no two names mean one state.
pub fn strict_decimal(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

/// Parses exactly `N` bytes of lower-case hexadecimal.
pub fn strict_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    fn digit(b: u8) -> Option<u8> {
        match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        }
    }
    let bytes = text.as_bytes();
    if bytes.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
        *slot = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Where the counters of a register end.
const COUNTER_END: u64 = u64::MAX / 2;

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The largest value that a register may have. Nobody gets there by
            /// counting: at one transition a nanosecond it takes three centuries. So
            /// a larger one was made up, and what was made up to be the largest is
            /// never counted on from: a counter does not wrap.
            pub const END: Self = $name(COUNTER_END);

            /// The next value. A process that counts on from what was read asks first
            /// whether it is at its end.
            #[must_use]
            pub const fn next(self) -> Self {
                $name(self.0.saturating_add(1))
            }

            /// Parses a decimal number that a register may have.
            pub fn parse_strict(text: &str) -> Option<Self> {
                strict_decimal(text).filter(|number| *number <= COUNTER_END).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// The fencing token: raised by every change of holder, never reused.
    FencingToken
}
counter! {
    /// Position of a register state in the register's history.
    Seq
}
counter! {
    /// Number of commits so far: the length of head's lineage.
    Generation
}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            /// A fresh random one.
            pub fn random(entropy: &dyn Entropy) -> Self {
                let mut bytes = [0; $bytes];
                entropy.fill(&mut bytes);
                $name(bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                strict_hex(text).map($name).ok_or(NotAnId::expected($what))
            }
        }

        text_serde!($name);
    };
}

/// Serialises a type as the text of its `Display` and `FromStr`.
macro_rules! text_serde {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    };
}
pub(crate) use text_serde;

hex_id! {
    /// Public name of a lock holder, derived from its session's secret.
    HolderNonce, 16, "32 hexadecimal digits"
}
hex_id! {
    /// Names one operation over all its attempts.
    OpNonce, 8, "16 hexadecimal digits"
}

impl OpNonce {
    /// What the note of this operation goes by while the operation is taken back: so
    /// that everybody finds it and nobody finishes what it says.
    #[must_use]
    pub fn withdrawn(self) -> Self {
        OpNonce(self.0.map(|byte| !byte))
    }
}

hex_id! {
    /// The register's commitment to its own history.
    Chain, 8, "16 hexadecimal digits"
}

/// Which epoch of the register: a counter raised only by a rebuild, with random
/// bits so that two independent rebuilds never look alike.
///
/// Ordered by the counter alone: of two lives with the same counter and other random
/// bits neither came first, and a comparison says so (`None`) instead of guessing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// How many times the register was built.
    pub counter: u32,
    /// Tells two rebuilds with the same counter apart.
    pub salt: u16,
}

impl Epoch {
    /// The largest counter that a register's epoch may have.
    pub const END: u32 = u32::MAX - 1;

    /// A key for maps and listings: it groups the states of one epoch and says nothing
    /// about which of two lives came first.
    pub fn grouping(self) -> (u32, u16) {
        (self.counter, self.salt)
    }

    /// The one of `epochs` that all others are before. `None` also if two lives share
    /// the highest counter: then nobody knows which of them was the last.
    pub fn newest(epochs: impl IntoIterator<Item = Epoch>) -> Option<Epoch> {
        let epochs: Vec<Epoch> = epochs.into_iter().collect();
        epochs.iter().copied().find(|one| epochs.iter().all(|other| other <= one))
    }
}

impl PartialOrd for Epoch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.counter.cmp(&other.counter) {
            Ordering::Equal if self.salt != other.salt => None,
            order => Some(order),
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:04x}", self.counter, self.salt)
    }
}

impl FromStr for Epoch {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let parse = || {
            let (counter, salt) = text.split_once('-')?;
            let counter = u32::try_from(strict_decimal(counter)?).ok()?;
            let salt = u16::from_be_bytes(strict_hex::<2>(salt)?);
            Some(Epoch { counter, salt })
        };
        parse().ok_or(NotAnId::expected("an epoch such as 1-a3f0"))
    }
}
text_serde!(Epoch);

/// `<unix ms>-<8 random hex>`: sorts by time of creation, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId {
    /// Unix milliseconds on the maker's wall clock.
    pub created_ms: u64,
    /// Random part.
    pub random: u32,
}

impl SnapshotId {
    /// A fresh id for a snapshot begun at `created_ms`.
    pub fn fresh(created_ms: u64, entropy: &dyn Entropy) -> Self {
        let mut random = [0; 4];
        entropy.fill(&mut random);
        SnapshotId { created_ms, random: u32::from_be_bytes(random) }
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.created_ms, self.random)
    }
}

impl FromStr for SnapshotId {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let parse = || {
            let (created, random) = text.split_once('-')?;
            let created_ms = strict_decimal(created)?;
            let random = u32::from_be_bytes(strict_hex::<4>(random)?);
            Some(SnapshotId { created_ms, random })
        };
        parse().ok_or(NotAnId::expected("a snapshot id such as 1763283600000-1a2b3c4d"))
    }
}
text_serde!(SnapshotId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        for text in ["", "01", "+1", "-1", " 1", "1 ", "1e3", "99999999999999999999"] {
            assert_eq!(strict_decimal(text), None, "{text:?}");
        }
        assert_eq!(strict_decimal("0"), Some(0));
        assert_eq!(strict_decimal("18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn hexadecimal_is_lower_case_and_exact() {
        assert_eq!(strict_hex::<2>("a3f0"), Some([0xa3, 0xf0]));
        for text in ["A3F0", "a3f", "a3f00", "g3f0", ""] {
            assert_eq!(strict_hex::<2>(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_newest_life_is_the_one_that_all_others_are_before() {
        let newest = |texts: &[&str]| {
            Epoch::newest(texts.iter().map(|text| text.parse().expect("an epoch")))
                .map(|epoch| epoch.to_string())
        };
        assert_eq!(newest(&[]), None);
        assert_eq!(newest(&["1-ffff", "2-0000"]).as_deref(), Some("2-0000"));
        assert_eq!(newest(&["1-0001", "2-0000", "1-0002"]).as_deref(), Some("2-0000"));
        assert_eq!(newest(&["2-0001", "2-0002", "1-0000"]), None, "nobody knows");
        assert_eq!(newest(&["2-0001", "2-0001"]).as_deref(), Some("2-0001"));
    }

    #[test]
    fn ids_round_trip() {
        let id = SnapshotId { created_ms: 1_763_283_600_000, random: 0x00ab_cdef };
        assert_eq!(id.to_string(), "1763283600000-00abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        let epoch = Epoch { counter: 7, salt: 0x0a };
        assert_eq!(epoch.to_string().parse(), Ok(epoch));
        assert!("1763283600000-00ABCDEF".parse::<SnapshotId>().is_err());
        assert!("../../etc".parse::<SnapshotId>().is_err());
    }
}
