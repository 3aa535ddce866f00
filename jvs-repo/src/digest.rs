//! BLAKE3 digests as a type: of a record, of a file's content, of a tree.

use std::fmt;
use std::str::FromStr;

use crate::id::{NotAnId, hex, strict_hex, text_serde};

/// A BLAKE3 digest of 32 bytes, printed as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        blake3::hash(bytes).into()
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Digest(*hash.as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        strict_hex(text).map(Digest).ok_or(NotAnId::expected("a BLAKE3 digest of 64 hex digits"))
    }
}
text_serde!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_printed() {
        let digest = Digest::of(b"");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("af13".parse::<Digest>().is_err());
    }
}
