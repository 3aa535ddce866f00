use super::*;

fn path(text: &[u8]) -> TreePath {
    TreePath::new(text.to_vec()).expect("a plain path")
}

fn entry(at: &[u8], kind: EntryKind) -> Entry {
    Entry {
        path: path(at),
        kind,
        mode: 0o644,
        uid: 1000,
        gid: 100,
        mtime: Timestamp { seconds: 1_700_000_000, nanos: 123_456_789 },
        link_group: None,
        xattrs: Vec::new(),
    }
}

fn file(at: &[u8]) -> Entry {
    entry(at, EntryKind::File { size: 3, hash: Digest::of(at) })
}

fn directory(at: &[u8]) -> Entry {
    entry(at, EntryKind::Directory)
}

const HINT: Option<Hints> =
    Some(Hints { inode: 77, ctime: Timestamp { seconds: -1, nanos: 999_999_999 } });

type Lines = Vec<(Entry, Option<Hints>)>;

fn written(entries: &[(Entry, Option<Hints>)]) -> (Vec<u8>, Summary) {
    let mut writer = ManifestWriter::new(Vec::new());
    for (entry, hints) in entries {
        writer.write(entry, *hints).expect("in order");
    }
    writer.finish().expect("memory takes it")
}

fn read_all(bytes: &[u8]) -> Result<(Lines, Summary), ManifestError> {
    let mut reader = ManifestReader::open(bytes)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.read()? {
        entries.push(entry);
    }
    Ok((entries, reader.summary().expect("read to the end")))
}

/// One of everything.
fn zoo() -> Lines {
    let mut linked = file(b"a-b");
    linked.link_group = Some(0);
    let mut linked_again = file(b"a/linked");
    linked_again.link_group = Some(0);
    linked_again.kind = linked.kind.clone();
    let mut old = file(b"old");
    old.mtime = Timestamp { seconds: -12_219_292_800, nanos: 0 };
    old.mode = 0o4755;
    old.xattrs = vec![
        Xattr { name: b"security.capability".to_vec(), value: vec![0, 1, 2] },
        Xattr { name: b"user.empty".to_vec(), value: Vec::new() },
    ];
    vec![
        (directory(b""), HINT),
        (directory(b"a"), None),
        (linked, HINT),
        (directory(b"a.d"), None),
        (file(b"a.d/new\nline"), None),
        (file(b"a/c"), None),
        (linked_again, HINT),
        (file(b"a/\xff\xfe"), HINT),
        (file(&[b'n'; 255]), None),
        (old, HINT),
        (entry(b"p", EntryKind::Fifo), None),
        (entry(b"s", EntryKind::Socket), None),
        (entry(b"t", EntryKind::Symlink { target: b"/\xff../..".to_vec() }), HINT),
        (entry(b"u", EntryKind::CharDevice(Device { major: 1, minor: u32::MAX })), None),
        (entry(b"v", EntryKind::BlockDevice(Device { major: 259, minor: 0 })), None),
    ]
}

#[test]
fn what_was_written_is_read_back() {
    let zoo = zoo();
    let (bytes, summary) = written(&zoo);
    let (read, again) = read_all(&bytes).expect("a manifest");
    assert_eq!(read, zoo);
    assert_eq!(again, summary);
    assert_eq!(summary.manifest_hash, Digest::of(&bytes));
    assert_eq!(summary.totals, Totals { entries: 15, files: 7, bytes: 18 });
    let without_hints: Vec<_> =
        ManifestReader::open(&bytes[..]).expect("open").map(|e| e.expect("entry")).collect();
    assert!(without_hints.iter().eq(zoo.iter().map(|(entry, _)| entry)));
}

#[test]
fn equal_trees_have_equal_hashes_whatever_their_inodes_were() {
    let zoo = zoo();
    let bare: Vec<_> = zoo.iter().map(|(entry, _)| (entry.clone(), None)).collect();
    let ((_, a), (_, b)) = (written(&zoo), written(&bare));
    assert_eq!(a.payload_root_hash, b.payload_root_hash);
    assert_ne!(a.manifest_hash, b.manifest_hash, "a forged hint shows");
    for index in 0..zoo.len() {
        let mut other = zoo.clone();
        other[index].0.mode ^= 0o001;
        assert_ne!(written(&other).1.payload_root_hash, a.payload_root_hash, "{index}");
    }
}

#[test]
fn no_changed_or_missing_byte_goes_unnoticed() {
    let (bytes, summary) = written(&zoo());
    for length in 0..bytes.len() {
        assert!(read_all(&bytes[..length]).is_err(), "cut to {length}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(read_all(&longer), Err(ManifestError::Trailing)));
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            if let Ok((_, read)) = read_all(&changed) {
                assert_ne!(read.manifest_hash, summary.manifest_hash, "byte {at}");
                assert_eq!(
                    read.payload_root_hash, summary.payload_root_hash,
                    "only a hint can change and still add up: byte {at}"
                );
            }
        }
    }
}

/// A manifest by hand: each of these is the tag and what follows it.
fn raw(records: &[&[u8]]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    // The root: nothing shared, empty path, mode 0, uid 0, gid 0, time 0.
    bytes.extend_from_slice(&[TAG_DIRECTORY, 0, 0, 0, 0, 0, 0, 0, NO_HINTS]);
    for record in records {
        bytes.extend_from_slice(record);
    }
    bytes
}

fn refusal(records: &[&[u8]]) -> String {
    read_all(&raw(records)).expect_err("hostile").to_string()
}

#[test]
fn a_hostile_manifest_is_an_error_and_nothing_else() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let with_huge = |before: &[u8]| [before, &huge].concat();
    // Lengths that would be terabytes if they were believed.
    for (record, what) in [
        (with_huge(&[TAG_FILE, 0]), "path length"),
        (with_huge(&[TAG_FILE]), "path prefix"),
        (with_huge(&[TAG_SYMLINK, 0, 1, b'x', 0, 0, 0, 0, 0]), "symlink target"),
        (with_huge(&[TAG_FIFO | HAS_XATTRS, 0, 1, b'x', 0, 0, 0, 0, 0]), "number of attributes"),
        (with_huge(&[TAG_FIFO | HAS_XATTRS, 0, 1, b'x', 0, 0, 0, 0, 0, 1]), "attribute name"),
        (with_huge(&[TAG_FIFO, 0, 1, b'x', 0, 0, 0, 0]), "modification time"),
        (with_huge(&[TAG_FIFO, 0, 1, b'x']), "mode"),
        (vec![0x3f], "type"),
        (vec![0x0f, 0, 1, b'x', 0, 0, 0, 0, 0], "type"),
        (vec![TAG_FIFO, 0x80, 0x00], "path prefix"),
    ] {
        let said = refusal(&[&record]);
        assert!(said.contains(what), "{record:?}: {said}");
    }
}

#[test]
fn no_path_leaves_the_tree() {
    for name in [&b".."[..], b".", b"a/../../b", b"/etc", b"a//b", b"a/", b"nul\0"] {
        let mut record = vec![TAG_FIFO, 0, name.len() as u8];
        record.extend_from_slice(name);
        record.extend_from_slice(&[0, 0, 0, 0, 0, NO_HINTS]);
        let said = refusal(&[&record]);
        assert!(said.contains("plain path"), "{name:?}: {said}");
    }
    let symlink = [TAG_SYMLINK, 0, 1, b'd', 0, 0, 0, 0, 0, 1, b'/', NO_HINTS];
    let below_it = [TAG_FIFO, 1, 2, b'/', b'x', 0, 0, 0, 0, 0, NO_HINTS];
    assert!(refusal(&[&symlink, &below_it]).contains("no directory holds it"));
    assert!(
        refusal(&[&[TAG_FIFO, 0, 3, b'd', b'/', b'x', 0, 0, 0, 0, 0, NO_HINTS]])
            .contains("no directory holds it")
    );
    assert!(TreePath::root().child(b"a/b").is_err());
    assert_eq!(TreePath::new(vec![b'x'; 256]), Err(PathError::Component));
    assert_eq!(TreePath::new(b"x/".repeat(MAX_DEPTH)), Err(PathError::Component));
    assert_eq!(
        TreePath::new(vec![b"x".to_vec(); MAX_DEPTH + 1].join(&b'/')),
        Err(PathError::TooDeep)
    );
}

#[test]
fn entries_out_of_place_are_neither_written_nor_read() {
    let mut second_group = file(b"b");
    second_group.link_group = Some(1);
    let mut linked_directory = directory(b"b");
    linked_directory.link_group = Some(0);
    for (entries, why) in [
        (vec![file(b"a")], OutOfPlace::NoRoot),
        (vec![file(b"")], OutOfPlace::NoRoot),
        (vec![directory(b""), file(b"b"), file(b"a")], OutOfPlace::Order),
        (vec![directory(b""), file(b"b"), file(b"b")], OutOfPlace::Order),
        (vec![directory(b""), file(b"b"), file(b"b/x")], OutOfPlace::NoParent),
        (vec![directory(b""), directory(b"a"), file(b"ab/x")], OutOfPlace::NoParent),
        (vec![directory(b""), second_group], OutOfPlace::LinkGroup),
        (vec![directory(b""), linked_directory], OutOfPlace::LinkedDirectory),
    ] {
        let mut writer = ManifestWriter::new(Vec::new());
        let refused = entries.iter().find_map(|entry| writer.write(entry, None).err());
        assert!(
            matches!(&refused, Some(WriteError::OutOfPlace { why: said, .. }) if *said == why),
            "{entries:?}: {refused:?}"
        );
    }
}

#[test]
fn a_long_manifest_streams_through_small_buffers() {
    let mut writer = ManifestWriter::new(Vec::new());
    writer.write(&directory(b""), None).expect("root");
    for n in 0..30_000 {
        writer.write(&file(format!("file-{n:06}").as_bytes()), HINT).expect("in order");
    }
    let (bytes, summary) = writer.finish().expect("written");
    assert!(bytes.len() < 30_000 * 80, "{} bytes", bytes.len());
    let read = ManifestReader::open(Dribble(&bytes)).expect("open").finish().expect("read");
    assert_eq!(read, summary);
}

/// Gives what it has in pieces that fit nothing.
struct Dribble<'a>(&'a [u8]);

impl std::io::Read for Dribble<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.len().min(into.len()).min(977);
        into[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

#[test]
fn paths_are_shown_on_one_line() {
    assert_eq!(path(b"a\nb/\xff").to_string(), "a\\nb/\\xff");
    assert_eq!(TreePath::root().to_string(), ".");
    let (parent, name) = path(b"a/b").split().map(|(p, n)| (p, n.to_vec())).expect("not the root");
    assert_eq!((parent, name), (path(b"a"), b"b".to_vec()));
}
