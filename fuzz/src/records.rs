//! Control files in JSON: read strictly, written in one way.

use std::fmt::Debug;

use jvs_repo::digest::Digest;
use jvs_repo::fuzzing;
use jvs_repo::json::{self, Limits};
use jvs_repo::layout;
use jvs_repo::name::{TagName, WorktreeName};
use jvs_repo::record::descriptor::Descriptor;
use jvs_repo::record::format::FormatError;
use jvs_repo::record::keeper::{self, Written};
use jvs_repo::record::lock::Record;
use jvs_repo::record::patch;
use jvs_repo::record::probe::{self, Verdict};
use jvs_repo::record::ready;
use jvs_repo::record::seal::{self, Seal};
use jvs_repo::record::tag::Tag;
use jvs_repo::record::takeover::TakeoverRecord;
use jvs_repo::record::worktree::WorktreeRecord;
use jvs_snapshot::restore::RestoreJournal;
use serde_json::Value;

/// What every record must be: text, one JSON object, no key twice, nothing after it, and
/// within its limits. Told by a reader that shares nothing with the strict one but the
/// grammar.
fn is_strict(data: &[u8], limits: Limits) {
    assert!(data.len() <= limits.size, "larger than allowed");
    let text = std::str::from_utf8(data).expect("a record is text");
    let value: Value = serde_json::from_str(text).expect("one JSON value and nothing after it");
    // Of a key that is there twice a plain reader keeps the last: then it says less than
    // the text does.
    assert_eq!(keys(&value), colons(text), "a key is there twice");
    within(&value, limits, 0);
}

/// How many keys a value has, at all levels.
fn keys(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len() + fields.values().map(keys).sum::<usize>(),
        Value::Array(values) => values.iter().map(keys).sum(),
        _ => 0,
    }
}

/// How many keys a text has: colons that are in no string.
fn colons(text: &str) -> usize {
    let (mut inside, mut escaped, mut count) = (false, false, 0);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}

fn within(value: &Value, limits: Limits, depth: usize) {
    assert!(depth <= limits.depth, "deeper than allowed");
    match value {
        Value::String(text) => assert!(text.len() <= limits.string, "a string is too long"),
        Value::Array(values) => values.iter().for_each(|value| within(value, limits, depth + 1)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            assert!(key.len() <= limits.string, "a key is too long");
            within(value, limits, depth + 1);
        }),
        _ => {}
    }
}

/// A torn record is no record: not one byte may be missing from its end, apart from the
/// space after it.
fn is_whole<T: Debug>(data: &[u8], parse: impl Fn(&[u8]) -> Option<T>) {
    let end = data.trim_ascii_end().len();
    for cut in [data.len() * 31 % end, end - 1] {
        assert!(parse(&data[..cut]).is_none(), "the first {cut} bytes pass for a record");
    }
}

/// What was read is what its bytes are read as.
fn again<T: Debug + PartialEq>(read: &T, bytes: &[u8], parse: impl Fn(&[u8]) -> Option<T>) {
    assert_eq!(parse(bytes).as_ref(), Some(read), "written and read again");
    is_strict(bytes, Limits { size: usize::MAX, ..Limits::RECORD.max(probe::LIMITS) });
}

trait Max {
    fn max(self, other: Self) -> Self;
}

impl Max for Limits {
    fn max(self, other: Self) -> Self {
        Limits {
            size: self.size.max(other.size),
            depth: self.depth.max(other.depth),
            string: self.string.max(other.string).max(4096),
        }
    }
}

/// The same record with the checksum that it should have, spelled as it should be: else
/// hardly an input would come further than that.
fn sealed(data: &[u8], field: &str) -> Option<Vec<u8>> {
    let mut value: Value = json::parse(data).ok()?;
    value.as_object_mut()?.shift_remove(field);
    let sum = Digest::of(&json::canonical(&value)).to_string();
    value[field] = Value::String(sum);
    Some(json::canonical(&value))
}

/// The lock record: whatever its strings say, it is rewritten in its width or not at all.
pub(crate) fn record(data: &[u8]) {
    let Ok(record) = Record::parse(data) else { return };
    is_strict(data, Limits::RECORD);
    is_whole(data, |cut| Record::parse(cut).ok());
    assert!(record.created().is_some() && record.renewed_at().is_some());
    assert!(record.expires().is_some() && record.created_reading().is_some());
    if let Ok(bytes) = record.to_bytes() {
        assert_eq!(bytes.len(), 4096, "every record has one width");
        again(&record, &bytes, |bytes| Record::parse(bytes).ok());
    }
    let other: WorktreeName = "another".parse().expect("a name");
    let found = jvs_lock::record::parse(data, &other);
    assert_eq!(found.record().is_some(), record.worktree_id == other, "it is of one worktree");
}

/// The descriptor of a snapshot.
pub(crate) fn descriptor(data: &[u8]) {
    let parse = |bytes: &[u8]| Descriptor::parse(bytes).ok();
    for bytes in [Some(data.to_vec()), sealed(data, "descriptor_checksum")].into_iter().flatten() {
        let Some((descriptor, checksum)) = parse(&bytes) else { continue };
        is_strict(&bytes, jvs_repo::record::descriptor::LIMITS);
        is_whole(&bytes, parse);
        // What a later version added is under the checksum and is not written again.
        let (written, sum) = descriptor.seal();
        assert_eq!(parse(&written), Some((descriptor.clone(), sum)));
        assert!(written.len() <= bytes.len());
        assert!(written.len() < bytes.len() || (written == bytes && sum == checksum));
        let bound = descriptor.bound();
        let (about, content) = descriptor.clone().into_about_and_content();
        assert_eq!(Descriptor::new(&bound, about, content), descriptor);
    }
}

/// The mark of a snapshot that is whole: its bytes are those that it would have.
pub(crate) fn ready_mark(data: &[u8]) {
    let Ok(mark) = ready::parse(data) else { return };
    is_strict(data, Limits::RECORD);
    assert_eq!(ready::bytes(mark.snapshot_id, mark.descriptor_checksum), data);
}

/// A tag.
pub(crate) fn tag(data: &[u8]) {
    let name: TagName = "v1".parse().expect("a name");
    let parse = |bytes: &[u8]| Tag::parse(&name, bytes).ok();
    for bytes in [Some(data.to_vec()), sealed(data, "checksum")].into_iter().flatten() {
        let Some(tag) = parse(&bytes) else { continue };
        is_strict(&bytes, Limits::RECORD);
        is_whole(&bytes, parse);
        assert_eq!(seal::look(&bytes), Ok(Seal::Whole));
        again(&tag, &tag.to_bytes(), parse);
    }
}

/// The record of a worktree, and what its seal says.
pub(crate) fn worktree_record(data: &[u8]) {
    let parse = |bytes: &[u8]| json::parse::<WorktreeRecord>(bytes).ok();
    let seal = seal::look(data);
    if let Some(record) = parse(data) {
        is_strict(data, Limits::RECORD);
        is_whole(data, parse);
        assert!(seal.is_ok(), "a record has a seal, or none, or a broken one");
        let written = record.to_bytes();
        assert_eq!(seal::look(&written), Ok(Seal::Whole));
        again(&record, &written, parse);
    }
    if let Some(bytes) = sealed(data, "checksum").filter(|_| seal.is_ok()) {
        assert_eq!(seal::look(&bytes), Ok(Seal::Whole));
    }
}

/// The format: any number is told, and only today's is read.
pub(crate) fn format(data: &[u8]) {
    let parse = |bytes: &[u8]| fuzzing::format(bytes).ok();
    match fuzzing::format(data) {
        Ok(format) => {
            is_strict(data, Limits::RECORD);
            is_whole(data, parse);
            again(&format, &format.to_bytes(), parse);
        }
        Err(FormatError::Unsupported { found }) => {
            is_strict(data, Limits::RECORD);
            assert_ne!(found, jvs_repo::record::format::CURRENT);
        }
        Err(FormatError::Record(_)) => {}
    }
}

/// What a keeper wrote of itself.
pub(crate) fn keeper_file(data: &[u8]) {
    let parse = |bytes: &[u8]| Written::parse(bytes).ok();
    let Some(written) = parse(data) else { return };
    is_strict(data, keeper::LIMITS);
    is_whole(data, parse);
    again(&written, &written.to_bytes(), parse);
}

/// What the last probe of the mount came to.
pub(crate) fn probe_verdict(data: &[u8]) {
    let parse = |bytes: &[u8]| Verdict::parse(bytes).ok();
    let Some(verdict) = parse(data) else { return };
    is_strict(data, probe::LIMITS);
    is_whole(data, parse);
    again(&verdict, &verdict.to_bytes(), parse);
}

/// What a restore in place does, path by path: one spelling, and no path leaves the tree.
pub(crate) fn restore_journal(data: &[u8]) {
    let parse = |bytes: &[u8]| RestoreJournal::parse(bytes).ok();
    for bytes in [Some(data.to_vec()), sealed(data, "checksum")].into_iter().flatten() {
        let Some(journal) = parse(&bytes) else { continue };
        is_strict(&bytes, patch::LIMITS);
        is_whole(&bytes, parse);
        let written = journal.to_bytes();
        assert_eq!(parse(&written), Some(journal));
        assert!(written == bytes, "another spelling");
    }
}

/// The record of a takeover by the letter of v6.3, and who wrote it.
pub(crate) fn takeover(data: &[u8]) {
    let Ok(takeover) = TakeoverRecord::parse(data) else { return };
    is_strict(data, Limits::RECORD);
    if let Some(writer) = takeover.writer() {
        let holder = takeover.holder_id.expect("who has no id is nobody");
        assert!(holder.ends_with(&format!(":{}:{}", writer.pid, writer.start_time)), "{holder}");
        assert!(!writer.boot_id.0.is_empty());
    }
}

/// A lock of another tool: whatever it says, it can be told and ends at some time or never.
pub(crate) fn legacy_lock(data: &[u8]) {
    use jvs_lock::legacy;
    let path = layout::lock_record(&WorktreeName::main());
    let Some(lock) = legacy::parse(data, &path) else { return };
    assert!(Record::parse(data).is_err(), "what is ours is not of another tool");
    assert!(!lock.owner.is_empty() && lock.owner.len() <= 256);
    assert!(!lock.owner.chars().any(char::is_control));
    assert!(
        lock.ends.is_none_or(|ends| ends >= lock.since) || lock.format == legacy::LegacyTool::Lokt
    );
    let policy = jvs_repo::config::LockPolicy::default();
    for now in [0, lock.since.0, u64::MAX].map(jvs_repo::clock::WallMs) {
        let lives = lock.is_live(now, &policy);
        assert!(lives || lock.ends.is_some_and(|ends| ends < now), "it is over before its end");
        assert!(!lock.sentence(&WorktreeName::main(), now).contains('\n'));
    }
}
