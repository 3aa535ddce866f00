//! `snapshots/ledger-<op>`: what is left of many snapshots that were collected, in one
//! file.
//!
//! Invariants: written once, whole, and never edited; entries by id, each once; what the
//! file says has one spelling; the last 32 bytes are the digest of the rest.
//!
//! Of a collected snapshot somebody still needs to know that it was there, whose it was,
//! what it was taken on top of, and which commit of which term it was: its descendants
//! for their lineage, a register that is rebuilt for the terms above which it goes on.
//! Nobody needs what its files were. An entry takes about fifteen bytes.

use std::collections::BTreeSet;

use crate::id::{Epoch, FencingToken, Generation, SnapshotId};
use crate::name::WorktreeName;
use crate::record::descriptor::Descriptor;
use crate::term::Term;
use crate::varint::{Decoder, MAX_BYTES, push};

/// How many entries a file has at most.
pub const ENTRIES_MAX: usize = 4096;
/// How large a file may be: entries and names of the greatest length.
pub const SIZE_MAX: usize = 2 << 20;

const MAGIC: &[u8] = b"jvs ledger 1\n";
const DIGEST: usize = 32;
/// The parent is none, or is spelled out; anything above counts back in the file.
const NO_PARENT: u64 = 0;
const PARENT_ELSEWHERE: u64 = 1;

/// What is left of a snapshot that was collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Its id.
    pub snapshot_id: SnapshotId,
    /// Whose head it was.
    pub worktree_id: WorktreeName,
    /// What it was taken on top of.
    pub parent: Option<SnapshotId>,
    /// The term it was committed in.
    pub term: Term,
    /// Which commit of its lineage it was, counted from 1.
    pub commit_seq: Generation,
}

impl From<&Descriptor> for Tombstone {
    fn from(descriptor: &Descriptor) -> Self {
        Tombstone {
            snapshot_id: descriptor.snapshot_id,
            worktree_id: descriptor.worktree_id.clone(),
            parent: descriptor.parent,
            term: descriptor.term(),
            commit_seq: descriptor.commit_seq,
        }
    }
}

/// What relatives of a snapshot need to know of it, whether it is there or was
/// collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kin<'s> {
    /// Its id.
    pub snapshot_id: SnapshotId,
    /// Whose head it became.
    pub worktree_id: &'s WorktreeName,
    /// What it was taken on top of.
    pub parent: Option<SnapshotId>,
    /// The term it was committed in.
    pub term: Term,
    /// Which commit of its lineage it is.
    pub commit_seq: Generation,
}

impl<'s> From<&'s Tombstone> for Kin<'s> {
    fn from(tombstone: &'s Tombstone) -> Self {
        let Tombstone { snapshot_id, ref worktree_id, parent, term, commit_seq } = *tombstone;
        Kin { snapshot_id, worktree_id, parent, term, commit_seq }
    }
}

impl<'s> From<&'s Descriptor> for Kin<'s> {
    fn from(descriptor: &'s Descriptor) -> Self {
        Kin {
            snapshot_id: descriptor.snapshot_id,
            worktree_id: &descriptor.worktree_id,
            parent: descriptor.parent,
            term: descriptor.term(),
            commit_seq: descriptor.commit_seq,
        }
    }
}

/// The place of `id` in `entries`, which are by id. Looks next to `near` first: most
/// were taken one on top of the other.
pub fn place_of(entries: &[Tombstone], id: SnapshotId, near: usize) -> Option<usize> {
    let before = near.wrapping_sub(1);
    if entries.get(before).is_some_and(|entry| entry.snapshot_id == id) {
        return Some(before);
    }
    entries.binary_search_by_key(&id, |entry| entry.snapshot_id).ok()
}

/// The bytes of a file with these entries, which are by id, each once.
///
/// # Panics
/// If there are more than [`ENTRIES_MAX`].
pub fn to_bytes(entries: &[Tombstone]) -> Vec<u8> {
    assert!(entries.len() <= ENTRIES_MAX, "a ledger is bounded");
    let names: BTreeSet<&WorktreeName> = entries.iter().map(|entry| &entry.worktree_id).collect();
    let names: Vec<&WorktreeName> = names.into_iter().collect();
    let epochs: BTreeSet<(u32, u16)> = entries.iter().map(|e| e.term.epoch.grouping()).collect();
    let epochs: Vec<(u32, u16)> = epochs.into_iter().collect();
    let mut out = MAGIC.to_vec();
    push(&mut out, names.len() as u64);
    for name in &names {
        push(&mut out, name.as_str().len() as u64);
        out.extend_from_slice(name.as_str().as_bytes());
    }
    push(&mut out, epochs.len() as u64);
    for (counter, salt) in &epochs {
        out.extend_from_slice(&counter.to_be_bytes());
        out.extend_from_slice(&salt.to_be_bytes());
    }
    push(&mut out, entries.len() as u64);
    let mut before = 0;
    for (at, entry) in entries.iter().enumerate() {
        let SnapshotId { created_ms, random } = entry.snapshot_id;
        push(&mut out, created_ms - before);
        before = created_ms;
        out.extend_from_slice(&random.to_be_bytes());
        push(&mut out, index_of(&names, &&entry.worktree_id));
        push(&mut out, index_of(&epochs, &entry.term.epoch.grouping()));
        push(&mut out, entry.term.token.0);
        push(&mut out, entry.commit_seq.0);
        match entry.parent.map(|parent| (parent, place_of(&entries[..at], parent, at))) {
            None => push(&mut out, NO_PARENT),
            Some((_, Some(place))) => push(&mut out, PARENT_ELSEWHERE + (at - place) as u64),
            Some((parent, None)) => {
                push(&mut out, PARENT_ELSEWHERE);
                push(&mut out, parent.created_ms);
                out.extend_from_slice(&parent.random.to_be_bytes());
            }
        }
    }
    let digest = blake3::hash(&out);
    out.extend_from_slice(digest.as_bytes());
    out
}

fn index_of<T: Ord>(table: &[T], item: &T) -> u64 {
    table.binary_search(item).expect("the table was made of all of them") as u64
}

/// Reads what [`to_bytes`] wrote. The error says what is wrong.
pub fn parse(bytes: &[u8]) -> Result<Vec<Tombstone>, String> {
    if bytes.len() > SIZE_MAX {
        return Err(format!("it is larger than {SIZE_MAX} bytes"));
    }
    let not_one = || "it does not begin as a ledger does".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(not_one)?;
    let (body, digest) = rest
        .len()
        .checked_sub(DIGEST)
        .and_then(|end| rest.split_at_checked(end))
        .ok_or("it ends too early")?;
    if blake3::hash(&bytes[..bytes.len() - DIGEST]).as_bytes() != digest {
        return Err("it does not match its digest".to_owned());
    }
    let entries = Pieces(body).entries()?;
    if to_bytes(&entries) != bytes {
        return Err("it is not spelled as it is written".to_owned());
    }
    Ok(entries)
}

/// What is not read yet.
struct Pieces<'b>(&'b [u8]);

impl Pieces<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("it ends too early")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut decoder = Decoder::default();
        for (at, byte) in self.0.iter().enumerate().take(MAX_BYTES) {
            let number =
                decoder.take(*byte).map_err(|_| "a number is not spelled as it is written")?;
            if let Some(number) = number {
                self.0 = &self.0[at + 1..];
                return Ok(number);
            }
        }
        Err("it ends too early".to_owned())
    }

    /// How many of something follow.
    fn count(&mut self) -> Result<usize, String> {
        let count = self.number()?;
        let count = usize::try_from(count).ok().filter(|count| *count <= ENTRIES_MAX);
        count.ok_or_else(|| format!("it has more than {ENTRIES_MAX} entries"))
    }

    fn name(&mut self) -> Result<WorktreeName, String> {
        let length = self.count()?;
        let (name, rest) = self.0.split_at_checked(length).ok_or("it ends too early")?;
        self.0 = rest;
        let name = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        name.ok_or_else(|| "a name in it is none of a worktree".to_owned())
    }

    fn entries(mut self) -> Result<Vec<Tombstone>, String> {
        let mut names = Vec::new();
        for _ in 0..self.count()? {
            names.push(self.name()?);
        }
        let mut epochs = Vec::new();
        for _ in 0..self.count()? {
            let counter = u32::from_be_bytes(self.take()?);
            epochs.push(Epoch { counter, salt: u16::from_be_bytes(self.take()?) });
        }
        let mut entries: Vec<Tombstone> = Vec::new();
        for _ in 0..self.count()? {
            let entry = self.entry(&names, &epochs, &entries)?;
            if entries.last().is_some_and(|before| before.snapshot_id >= entry.snapshot_id) {
                return Err("its entries are not in order".to_owned());
            }
            entries.push(entry);
        }
        match self.0.is_empty() {
            true => Ok(entries),
            false => Err("something follows its end".to_owned()),
        }
    }

    fn entry(
        &mut self,
        names: &[WorktreeName],
        epochs: &[Epoch],
        before: &[Tombstone],
    ) -> Result<Tombstone, String> {
        let last_ms = before.last().map_or(0, |entry| entry.snapshot_id.created_ms);
        let too_large = || "a time in it is too large".to_owned();
        let created_ms = last_ms.checked_add(self.number()?).ok_or_else(too_large)?;
        let snapshot_id = SnapshotId { created_ms, random: u32::from_be_bytes(self.take()?) };
        let worktree_id = self.one_of(names)?.clone();
        let epoch = *self.one_of(epochs)?;
        let term = Term { epoch, token: FencingToken(self.number()?) };
        let commit_seq = Generation(self.number()?);
        if commit_seq == Generation(0) {
            return Err("commits are counted from 1".to_owned());
        }
        let parent = match self.number()? {
            NO_PARENT => None,
            PARENT_ELSEWHERE => {
                let created_ms = self.number()?;
                Some(SnapshotId { created_ms, random: u32::from_be_bytes(self.take()?) })
            }
            back => {
                let back = usize::try_from(back - PARENT_ELSEWHERE).ok();
                let place = back.and_then(|back| before.len().checked_sub(back));
                let parent = place.and_then(|place| before.get(place));
                Some(parent.ok_or("a parent in it is before its start")?.snapshot_id)
            }
        };
        Ok(Tombstone { snapshot_id, worktree_id, parent, term, commit_seq })
    }

    fn one_of<'t, T>(&mut self, table: &'t [T]) -> Result<&'t T, String> {
        let index = usize::try_from(self.number()?).ok();
        index
            .and_then(|index| table.get(index))
            .ok_or_else(|| "a number in it is too large".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(created_ms: u64, random: u32) -> SnapshotId {
        SnapshotId { created_ms, random }
    }

    fn tombstone(id: SnapshotId, parent: Option<SnapshotId>, token: u64, seq: u64) -> Tombstone {
        Tombstone {
            snapshot_id: id,
            worktree_id: WorktreeName::main(),
            parent,
            term: Term { epoch: Epoch { counter: 1, salt: 0xbeef }, token: FencingToken(token) },
            commit_seq: Generation(seq),
        }
    }

    /// A lineage that begins, one that goes on above a parent that is not in the file, a
    /// parent two places back, and another worktree in another epoch.
    fn entries() -> Vec<Tombstone> {
        let begun = 1_763_283_600_123;
        let first = id(begun, 7);
        vec![
            tombstone(first, None, 1, 1),
            tombstone(id(begun, 9), Some(id(1, 2)), 300, 70_000),
            tombstone(id(begun + 5, 0), Some(first), 2, 2),
            Tombstone {
                worktree_id: "side".parse().expect("a name"),
                term: Term { epoch: Epoch { counter: 2, salt: 1 }, token: FencingToken(u64::MAX) },
                ..tombstone(id(u64::MAX, u32::MAX), Some(id(begun + 5, 0)), 0, u64::MAX)
            },
        ]
    }

    #[test]
    fn the_bytes_of_a_ledger_are_these() {
        let bytes = to_bytes(&entries());
        let text: String = bytes.chunks(16).map(|line| crate::id::hex(line) + "\n").collect();
        assert_eq!(text, include_str!("golden/ledger.hex"));
        assert_eq!(parse(&bytes), Ok(entries()));
        assert_eq!(parse(&to_bytes(&[])), Ok(vec![]));
    }

    #[test]
    fn a_change_of_any_byte_of_a_ledger_is_noticed() {
        let bytes = to_bytes(&entries());
        for at in 0..bytes.len() {
            for flip in [0x01, 0x20, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                assert!(parse(&bad).is_err(), "byte {at}");
            }
            assert!(parse(&bytes[..at]).is_err(), "the first {at} bytes");
        }
        assert!(parse(&[bytes.as_slice(), b"\0"].concat()).is_err(), "something after its end");
        assert!(parse(&vec![0; SIZE_MAX + 1]).expect_err("too large").contains("larger than"));
    }

    /// The same bytes with another body, under a digest of its own.
    fn digested(body: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC, body].concat();
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    #[test]
    fn a_ledger_is_spelled_in_one_way_and_hostile_ones_are_refused() {
        for (what, body) in [
            ("a table that nobody uses", vec![1, 1, b'a', 0, 0]),
            ("a name that is none", vec![1, 2, b'.', b'.', 0, 0]),
            ("more entries than allowed", vec![0, 0, 0x81, 0x20]),
            ("a number in more bytes than it needs", vec![0x80, 0, 0, 0]),
            ("an index beyond its table", vec![0, 0, 1, 1, 0, 0, 0, 0, 0]),
            ("nothing", vec![]),
        ] {
            assert!(parse(&digested(&body)).is_err(), "{what}");
        }
        assert_eq!(parse(&digested(&[0, 0, 0])), Ok(vec![]));
    }

    #[test]
    fn the_largest_ledger_is_within_its_limit() {
        let far = |n: u64| id(u64::MAX - 2 * n - 1, u32::MAX);
        let mut entries: Vec<Tombstone> = (0..ENTRIES_MAX as u64)
            .map(|n| Tombstone {
                worktree_id: format!("{n:04}{}", "x".repeat(60)).parse().expect("a name"),
                term: Term {
                    epoch: Epoch { counter: n as u32, salt: u16::MAX },
                    token: FencingToken(u64::MAX),
                },
                ..tombstone(far(n), Some(id(u64::MAX, 0)), 0, u64::MAX)
            })
            .collect();
        entries.sort_by_key(|entry| entry.snapshot_id);
        let bytes = to_bytes(&entries);
        assert!(bytes.len() <= SIZE_MAX, "{}", bytes.len());
        assert_eq!(parse(&bytes), Ok(entries));
    }
}
