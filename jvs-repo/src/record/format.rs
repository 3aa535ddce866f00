//! `format`: which layout the repository has, and which repository it is.
//!
//! Invariants: written once, last of all that makes a repository, and never
//! changed; `format` is looked at before anything else is believed, so that a
//! later layout may change every other shape; `repo_id` is a random UUID in
//! its canonical spelling; sealed with a checksum, which formats of earlier
//! versions lack.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::code::{Code, Layer, Layered};
use crate::entropy::Entropy;
use crate::json::{self, Limits, RecordError};
use crate::layout;
use crate::next::Next;
use crate::record::seal::{Sealable, Sealed};
use crate::store::Store;

/// The layout that this version of JVS reads and writes.
pub const CURRENT: u64 = 1;

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatRecord {
    format: u64,
    #[serde(with = "canonical_uuid")]
    repo_id: Uuid,
}

/// The part of the file that every layout, past or to come, has.
#[derive(Deserialize)]
struct Number {
    format: u64,
}

impl Sealable for FormatRecord {}

impl FormatRecord {
    /// Today's format, for a repository that nobody has heard of yet.
    pub fn fresh(entropy: &dyn Entropy) -> Self {
        let mut random = [0; 16];
        entropy.fill(&mut random);
        let repo_id = uuid::Builder::from_random_bytes(random).into_uuid();
        FormatRecord { format: CURRENT, repo_id }
    }

    /// Its bytes on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        Sealed::of(*self).into_bytes()
    }

    /// Which repository this is.
    pub fn repo_id(&self) -> Uuid {
        self.repo_id
    }

    /// Reads the format of the repository in `store`; `None` if there is none.
    pub fn read(store: &dyn Store) -> Result<Option<Self>, FormatError> {
        let path = layout::format();
        let bytes = match store.read(&path, Limits::RECORD.size) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RecordError::io(&path, error).into()),
        };
        FormatRecord::parse(&bytes).map(Some)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let invalid = |reason| RecordError::invalid(&layout::format(), reason);
        let Number { format } = json::parse(bytes).map_err(invalid)?;
        if format != CURRENT {
            return Err(FormatError::Unsupported { found: format });
        }
        Ok(json::parse(bytes).map_err(invalid)?)
    }
}

/// Why a repository's format was refused.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Another version's repository.
    #[error(
        "the repository has format {found}, made by {} version of jvs; this one reads format \
         {CURRENT} only",
        if *found > CURRENT { "a newer" } else { "an older" }
    )]
    Unsupported {
        /// The number in the file.
        found: u64,
    },
    /// The file cannot be believed.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Layered for FormatError {
    fn layer(&self) -> Layer<'_> {
        match self {
            FormatError::Unsupported { .. } => Layer::Own(Code::FormatUnsupported),
            FormatError::Record(error) => Layer::Below(error),
        }
    }

    fn own_next(&self) -> Option<Next> {
        match self {
            FormatError::Unsupported { found } => Some(Next::UseVersionFor(*found)),
            FormatError::Record(_) => None,
        }
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            FormatError::Unsupported { found } => {
                Some(serde_json::json!({ "found": found, "supported": [CURRENT] }))
            }
            FormatError::Record(_) => None,
        }
    }
}

/// One spelling only, so that two repositories with one id look alike.
mod canonical_uuid {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(id: &Uuid, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Uuid, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        let id = Uuid::try_parse(&text).ok().filter(|id| id.to_string() == *text);
        id.ok_or_else(|| Error::custom(format_args!("{text:?} is not a UUID in lower case")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Coded;
    use crate::entropy::SystemEntropy;
    use crate::store::{PosixStore, RepoPath};

    fn stored(content: &[u8]) -> Result<Option<FormatRecord>, FormatError> {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        store.make_dir(&layout::control_dir()).expect("mkdir");
        let tmp = RepoPath::root().child("tmp").expect("plain");
        store.write_new(&tmp, &layout::format(), content).expect("written");
        FormatRecord::read(&store)
    }

    #[test]
    fn a_format_is_read_back() {
        let format = FormatRecord::fresh(&SystemEntropy);
        assert_eq!(stored(&format.to_bytes()).expect("valid"), Some(format));
        assert_ne!(FormatRecord::fresh(&SystemEntropy).repo_id(), format.repo_id());
        assert_eq!(format.repo_id().get_version_num(), 4);
    }

    #[test]
    fn the_bytes_of_a_format_are_these() {
        struct Sevens;
        impl Entropy for Sevens {
            fn fill(&self, bytes: &mut [u8]) {
                bytes.fill(7);
            }
        }
        let bytes = FormatRecord::fresh(&Sevens).to_bytes();
        assert_eq!(String::from_utf8_lossy(&bytes), include_str!("golden/format.json"));
    }

    #[test]
    fn another_number_is_refused_whatever_else_the_file_says() {
        for (text, age) in
            [(r#"{"format":2,"id":[{"new":"shape"}]}"#, "newer"), (r#"{"format":0}"#, "older")]
        {
            let error = stored(text.as_bytes()).expect_err("unsupported");
            assert_eq!(error.code(), Code::FormatUnsupported);
            assert!(error.to_string().contains(age), "{error}");
            assert!(matches!(error.next(), Some(Next::UseVersionFor(0 | 2))), "{error}");
        }
    }

    #[test]
    fn hostile_content_is_an_invalid_record() {
        let id = "6f1d0ab2-5a5e-4b52-8d6c-0a9f2b8d7c11";
        for text in [
            String::new(),
            "{".into(),
            "{}".into(),
            r#"{"format":"1"}"#.into(),
            r#"{"format":1}"#.into(),
            format!(r#"{{"format":1,"format":1,"repo_id":"{id}"}}"#),
            format!(r#"{{"format":1,"repo_id":"{}"}}"#, id.to_uppercase()),
            format!(r#"{{"format":1,"repo_id":"{}"}}"#, id.replace('-', "")),
            format!(r#"{{"format":-1,"repo_id":"{id}"}}"#),
            "[".repeat(60_000),
        ] {
            let error = stored(text.as_bytes()).expect_err("invalid");
            assert_eq!(error.code(), Code::RecordInvalid, "{error}");
        }
    }
}
