//! `staging/patch.…/journal`: what a restore in place does, path by path, for the
//! process that has to finish it.
//!
//! Invariants: on disk, whole, before the restore is committed, and never edited; its
//! bytes are the canonical ones of what they say, with a checksum over them; its paths are
//! in order. Whoever collects garbage or examines a repository reads the journals of
//! others: nothing but what it says is ever in memory, and that only as far as it is in
//! order.

use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;

use serde::de::{self, DeserializeOwned, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::version;
use crate::digest::Digest;
use crate::json::{self, Limits};

/// What the file may have at most: a step for each of a few hundred thousand paths.
pub const LIMITS: Limits = Limits { size: 32 << 20, depth: 8, string: 1 << 20 };

/// What a step takes beside its path at most, a directory, and everything else.
const STEP_MAX: usize = 96;
const DIRECTORY_MAX: usize = 12;
const AROUND_MAX: usize = 256;

/// What the file says. Paths are in hexadecimal, because they may have any bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    #[serde(with = "version")]
    version: u64,
    /// The paths that are replaced, put or removed: none of them below another.
    #[serde(deserialize_with = "in_order")]
    pub steps: Vec<PatchStep>,
    /// Directories that get the attributes that they have in the snapshot, afterwards.
    #[serde(deserialize_with = "in_order")]
    pub directories: Vec<String>,
}

/// It, and the checksum over its own canonical bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checked {
    #[serde(with = "version")]
    version: u64,
    #[serde(deserialize_with = "in_order")]
    steps: Vec<PatchStep>,
    #[serde(deserialize_with = "in_order")]
    directories: Vec<String>,
    checksum: Digest,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchStep {
    /// Where in the worktree.
    pub path: String,
    /// The inode of what is to be there; none if nothing is.
    pub inode: Option<u64>,
    /// Was something there when the restore was planned?
    pub replaces: bool,
}

impl Patch {
    /// A journal of these steps.
    pub fn new(steps: Vec<PatchStep>, directories: Vec<String>) -> Self {
        Patch { version: version::ONE, steps, directories }
    }

    /// Is there room in a journal for steps and directories whose paths are so long, in
    /// bytes?
    pub fn has_room(
        steps: impl Iterator<Item = usize>,
        directories: impl Iterator<Item = usize>,
    ) -> bool {
        let steps: usize = steps.map(|length| STEP_MAX + 2 * length).sum();
        let directories: usize = directories.map(|length| DIRECTORY_MAX + 2 * length).sum();
        AROUND_MAX + steps + directories <= LIMITS.size
    }

    /// Its bytes on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        let checksum = checksum(self);
        let Patch { version, steps, directories } = self.clone();
        json::canonical(&Checked { version, steps, directories, checksum })
    }

    /// Reads it. The error says what is wrong. Fields of a later version are refused: they
    /// may say what this one would leave out.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let checked: Checked = json::parse_within(bytes, LIMITS)?;
        let mut rest = Expected(bytes);
        let spelled = write_canonical(&checked, &mut rest);
        if spelled.is_err() || !rest.0.is_empty() {
            return Err("it is not spelled as it was written".to_owned());
        }
        let Checked { version, steps, directories, checksum: stated } = checked;
        let patch = Patch { version, steps, directories };
        match checksum(&patch) == stated {
            true => Ok(patch),
            false => Err("its content does not match its checksum".to_owned()),
        }
    }
}

fn checksum(patch: &Patch) -> Digest {
    let mut hasher = blake3::Hasher::new();
    write_canonical(patch, &mut hasher).expect("a hasher takes everything");
    hasher.finalize().into()
}

/// As [`json::canonical`], without the bytes in memory.
fn write_canonical<T: Serialize>(what: &T, to: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, what)?;
    to.write_all(b"\n")
}

/// Takes these bytes, and no others.
struct Expected<'b>(&'b [u8]);

impl Write for Expected<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What has a path. Hexadecimal is in the order of the bytes that it spells.
trait HasPath: DeserializeOwned {
    fn path(&self) -> &str;
}

impl HasPath for PatchStep {
    fn path(&self) -> &str {
        &self.path
    }
}

impl HasPath for String {
    fn path(&self) -> &str {
        self
    }
}

/// A list whose paths are in order, each once: of one that is not, no more is kept than was.
fn in_order<'de, D: Deserializer<'de>, T: HasPath>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(InOrder(PhantomData))
}

struct InOrder<T>(PhantomData<T>);

impl<'de, T: HasPath> Visitor<'de> for InOrder<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list in the order of its paths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list: Vec<T> = Vec::new();
        while let Some(item) = items.next_element::<T>()? {
            if list.last().is_some_and(|last| last.path() >= item.path()) {
                return Err(de::Error::custom("its paths are not in order"));
            }
            list.push(item);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::hex;

    #[test]
    fn a_journal_says_what_it_said_when_it_was_written_and_nothing_else_is_one() {
        let step = |path: &str, inode, replaces| PatchStep { path: path.into(), inode, replaces };
        let steps = vec![
            step("612f62", Some(u64::MAX), true),
            step("63", Some(7), false),
            step("642fff0a", None, true),
        ];
        let patch = Patch::new(steps, vec![String::new(), "61".into()]);
        let bytes = patch.to_bytes();
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            include_str!("golden/patch.json"),
            "the bytes on disk"
        );
        assert_eq!(Patch::parse(&bytes), Ok(patch));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(Patch::parse(&other).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_journal_for_which_there_is_room_is_not_larger_than_it_may_be() {
        for (steps, directories) in [(0, 0), (1, 0), (0, 1), (700, 300)] {
            let path = |n: u32| hex(format!("{n:08}").as_bytes());
            let step = |n| PatchStep { path: path(n), inode: Some(u64::MAX), replaces: false };
            let patch =
                Patch::new((0..steps).map(step).collect(), (0..directories).map(path).collect());
            let most = AROUND_MAX
                + steps as usize * (STEP_MAX + 16)
                + directories as usize * (DIRECTORY_MAX + 16);
            assert!(patch.to_bytes().len() <= most, "{steps} and {directories}");
        }
        let long = |bytes: usize| Patch::has_room([bytes].into_iter(), std::iter::empty());
        assert!(long(LIMITS.size / 4) && !long(LIMITS.size / 2));
        let many = |paths: usize| Patch::has_room([1].into_iter(), std::iter::repeat_n(1, paths));
        assert!(many(1_000_000) && !many(5_000_000));
    }

    #[test]
    fn paths_out_of_order_or_twice_are_no_journal() {
        let step = |path: &str| PatchStep { path: path.into(), inode: None, replaces: true };
        for directories in [&["61", "61"][..], &["62", "61"], &["61", ""]] {
            let named = directories.iter().map(|path| (*path).to_owned());
            let patch = Patch::new(directories.iter().map(|path| step(path)).collect(), Vec::new());
            let why = Patch::parse(&patch.to_bytes()).expect_err("out of order");
            assert!(why.contains("not in order"), "{why}");
            let why = Patch::parse(&Patch::new(Vec::new(), named.collect()).to_bytes());
            assert!(why.expect_err("out of order").contains("not in order"));
        }
    }
}
