//! A source, a place for snapshots, and a look at both that shares nothing with
//! the code under test.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use jvs_repo::clock::{BootId, Clock, Discipline, Reading, SystemClock};
use jvs_snapshot::descriptor::Content;
use jvs_snapshot::hash::Digest;
use jvs_snapshot::manifest::{Entry, EntryKind, ManifestReader};
use jvs_snapshot::progress::{Progress, Silent};
use jvs_snapshot::stage::{CaptureError, Captured, Options, Parent, Source, capture};
use tempfile::TempDir;

/// A source tree and snapshots of it.
pub(crate) struct World {
    pub(crate) source: PathBuf,
    snapshots: PathBuf,
    pub(crate) options: Options,
    pub(crate) clock: Box<dyn Clock>,
    _dirs: Vec<TempDir>,
}

impl World {
    /// In a temporary directory.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut world = Self::at(dir.path(), dir.path());
        world._dirs.push(dir);
        world
    }

    /// The source below one directory, snapshots below another.
    pub(crate) fn at(source: &Path, snapshots: &Path) -> Self {
        let world = Self::found(source, snapshots);
        fs_err::create_dir(&world.source).expect("the source");
        fs_err::create_dir(&world.snapshots).expect("the snapshots");
        world
    }

    /// As [`World::at`], of what is there already.
    pub(crate) fn found(source: &Path, snapshots: &Path) -> Self {
        World {
            source: source.join("source"),
            snapshots: snapshots.join("snapshots"),
            options: Options::default(),
            clock: Box::new(SystemClock),
            _dirs: Vec::new(),
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.source.join(name.as_ref())
    }

    pub(crate) fn write(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        fs_err::write(self.path(name), content).expect("a file of the source");
    }

    pub(crate) fn make_dir(&self, name: impl AsRef<OsStr>) {
        fs_err::create_dir(self.path(name)).expect("a directory of the source");
    }

    pub(crate) fn snapshot(&self, name: &str) -> PathBuf {
        self.snapshots.join(name)
    }

    pub(crate) fn payload(&self, name: &str) -> PathBuf {
        self.snapshot(name).join("payload")
    }

    pub(crate) fn try_capture(
        &self,
        name: &str,
        parent: Option<(&str, &Captured)>,
        progress: &dyn Progress,
    ) -> Result<Captured, CaptureError> {
        let staging = self.snapshot(name);
        fs_err::create_dir(&staging).expect("a staging directory");
        let parent = parent.map(|(name, captured)| Parent {
            directory: self.snapshot(name),
            manifest_hash: captured.content.manifest_hash,
            boot_id: captured.content.boot_id.clone(),
        });
        let answer = Source::open(&self.source).and_then(|source| {
            capture(&source, &staging, parent.as_ref(), &self.options, &*self.clock, progress)
        });
        if answer.is_err() {
            let left = fs_err::read_dir(&staging).expect("the staging directory").count();
            assert_eq!(left, 0, "a failed capture leaves nothing");
        }
        answer
    }

    /// Captures, and checks that copy and manifest are what the source is.
    pub(crate) fn capture(&self, name: &str, parent: Option<(&str, &Captured)>) -> Captured {
        let captured = self.try_capture(name, parent, &Silent).expect("captured");
        assert!(captured.content.degraded.is_empty(), "{:?}", captured.content.degraded);
        assert!(captured.content.quiescence.proven, "{:?}", captured.content);
        let (source, copy) = (look(&self.source), look(&self.payload(name)));
        assert_eq!(source.keys().collect::<Vec<_>>(), copy.keys().collect::<Vec<_>>());
        for (path, original) in &source {
            assert_eq!(original, &copy[path], "{path:?}");
        }
        self.check_manifest(name, &captured);
        captured
    }

    /// The manifest says of the payload what the payload is.
    pub(crate) fn check_manifest(&self, name: &str, captured: &Captured) {
        let bytes = fs_err::read(self.snapshot(name).join("manifest")).expect("the manifest");
        assert_eq!(Digest::of(&bytes), captured.content.manifest_hash);
        let mut reader = ManifestReader::open(&bytes[..]).expect("a manifest");
        let mut entries = Vec::new();
        while let Some((entry, _)) = reader.read().expect("an entry") {
            entries.push(entry);
        }
        let summary = reader.summary().expect("the end");
        assert_eq!(summary.payload_root_hash, captured.content.payload_root_hash);
        let Content { files, bytes, .. } = captured.content;
        assert_eq!((summary.totals.files, summary.totals.bytes), (files, bytes));
        let copy = look(&self.payload(name));
        let said: BTreeMap<_, _> =
            entries.iter().map(|entry| (entry.path.as_bytes().to_vec(), as_seen(entry))).collect();
        assert_eq!(said.keys().collect::<Vec<_>>(), copy.keys().collect::<Vec<_>>());
        for (path, seen) in &copy {
            let mut seen = seen.clone();
            seen.group = None;
            assert_eq!(said[path], seen, "{path:?}");
        }
        assert_eq!(groups_said(&entries), groups_seen(&copy));
    }

    pub(crate) fn entries(&self, name: &str) -> Vec<Entry> {
        let bytes = fs_err::read(self.snapshot(name).join("manifest")).expect("the manifest");
        let reader = ManifestReader::open(&bytes[..]).expect("a manifest");
        reader.map(|entry| entry.expect("an entry")).collect()
    }
}

/// The host's clocks after it was started again.
pub(crate) struct Rebooted(pub(crate) &'static str);

impl Clock for Rebooted {
    fn now(&self) -> Reading {
        SystemClock.now()
    }
    fn boot_id(&self) -> BootId {
        BootId(self.0.to_owned())
    }
    fn discipline(&self) -> Discipline {
        SystemClock.discipline()
    }
    fn sleep_ms(&self, ms: u64) {
        SystemClock.sleep_ms(ms);
    }
}

/// All that a copy must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: String,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: (i64, i64),
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first path, in order, that is the same file.
    pub(crate) group: Option<Vec<u8>>,
}

/// A tree by path, the root with an empty one.
pub(crate) fn look(root: &Path) -> BTreeMap<Vec<u8>, Seen> {
    let mut found = BTreeMap::new();
    let mut inodes = BTreeMap::new();
    look_at(root, Vec::new(), &mut found, &mut inodes);
    for paths in inodes.values_mut().filter(|paths: &&mut Vec<Vec<u8>>| paths.len() > 1) {
        paths.sort();
        for path in paths.iter() {
            found.get_mut(path).expect("just found").group = Some(paths[0].clone());
        }
    }
    found
}

fn look_at(
    at: &Path,
    path: Vec<u8>,
    found: &mut BTreeMap<Vec<u8>, Seen>,
    inodes: &mut BTreeMap<u64, Vec<Vec<u8>>>,
) {
    let metadata = at.symlink_metadata().expect("a name just listed");
    let kind = metadata.file_type();
    let described = if kind.is_dir() {
        for entry in fs_err::read_dir(at).expect("a directory") {
            let name = entry.expect("an entry").file_name();
            let mut below = path.clone();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(name.as_bytes());
            look_at(&at.join(name), below, found, inodes);
        }
        "directory".to_owned()
    } else if kind.is_file() {
        let content = fs_err::read(at).expect("a file");
        format!("file {} {}", content.len(), Digest::of(&content))
    } else if kind.is_symlink() {
        format!("symlink {:?}", fs_err::read_link(at).expect("a symlink"))
    } else if kind.is_fifo() {
        "fifo".to_owned()
    } else if kind.is_socket() {
        "socket".to_owned()
    } else {
        format!("device {}", metadata.rdev())
    };
    if !kind.is_dir() {
        inodes.entry(metadata.ino()).or_default().push(path.clone());
    }
    // A symlink's mode means nothing.
    let mode = if kind.is_symlink() { 0 } else { metadata.mode() & 0o7777 };
    let seen = Seen {
        kind: described,
        mode,
        owner: (metadata.uid(), metadata.gid()),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        xattrs: xattrs(at),
        group: None,
    };
    found.insert(path, seen);
}

fn xattrs(at: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut buffer = vec![0; 65_536];
    let Ok(length) = rustix::fs::llistxattr(at, &mut buffer[..]) else { return BTreeMap::new() };
    buffer[..length]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 65_536];
            let length = rustix::fs::lgetxattr(at, name, &mut value[..]).expect("an attribute");
            (name.to_vec(), value[..length].to_vec())
        })
        .collect()
}

fn as_seen(entry: &Entry) -> Seen {
    let kind = match &entry.kind {
        EntryKind::File { size, hash } => format!("file {size} {hash}"),
        EntryKind::Symlink { target } => {
            format!("symlink {:?}", Path::new(OsStr::from_bytes(target)))
        }
        EntryKind::CharDevice(device) | EntryKind::BlockDevice(device) => {
            format!("device {}", rustix::fs::makedev(device.major, device.minor))
        }
        other => other.noun().to_owned(),
    };
    let mode = if matches!(entry.kind, EntryKind::Symlink { .. }) { 0 } else { entry.mode };
    Seen {
        kind,
        mode,
        owner: (entry.uid, entry.gid),
        mtime: (entry.mtime.seconds, i64::from(entry.mtime.nanos)),
        xattrs: entry.xattrs.iter().map(|x| (x.name.clone(), x.value.clone())).collect(),
        group: None,
    }
}

fn groups_said(entries: &[Entry]) -> Vec<Vec<Vec<u8>>> {
    let mut groups: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for entry in entries {
        if let Some(group) = entry.link_group {
            groups.entry(group).or_default().push(entry.path.as_bytes().to_vec());
        }
    }
    groups.into_values().collect()
}

fn groups_seen(tree: &BTreeMap<Vec<u8>, Seen>) -> Vec<Vec<Vec<u8>>> {
    let mut groups: BTreeMap<&Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (path, seen) in tree {
        if let Some(group) = &seen.group {
            groups.entry(group).or_default().push(path.clone());
        }
    }
    groups.into_values().collect()
}

/// Is this test run by root? Only root can make devices and give files away.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Fills the source with one of everything that this filesystem takes.
pub(crate) fn zoo(world: &World) {
    use fs_err::os::unix::fs::symlink;
    use std::os::unix::fs::PermissionsExt as _;
    world.write("plain", "content");
    world.write("empty", "");
    world.write(OsStr::from_bytes(b"new\nline"), "1");
    world.write("n".repeat(255), "3");
    world.make_dir("a");
    world.make_dir("a-b");
    world.make_dir("a/deep");
    world.write("a/deep/file", vec![7; 300_000]);
    world.write("a-b/file", "x");
    world.write("a.txt", "x");
    for (target, name) in
        [("nowhere", "dangling"), ("/etc/passwd", "absolute"), ("loop", "loop"), ("..", "a/up")]
    {
        symlink(target, world.path(name)).expect("a symlink");
    }
    fs_err::hard_link(world.path("plain"), world.path("a/plain-again")).expect("a hard link");
    fs_err::hard_link(world.path("plain"), world.path("a-b/plain-too")).expect("a hard link");
    for (name, mode) in [("setuid", 0o4755), ("none", 0o000), ("odd", 0o2640)] {
        world.write(name, name);
        let mode = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(world.path(name), mode).expect("a mode");
    }
    world.make_dir("sticky");
    let sticky = std::fs::Permissions::from_mode(0o1777);
    fs_err::set_permissions(world.path("sticky"), sticky).expect("a mode");
    world.make_dir("closed");
    world.write("closed/inside", "seen by its owner only");
    let old =
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(999_999_999, 123_456_789);
    let file = fs_err::File::options().write(true).open(world.path("a.txt")).expect("open");
    file.set_modified(old).expect("an old file");
    let closed = std::fs::Permissions::from_mode(0o555);
    fs_err::set_permissions(world.path("closed"), closed).expect("a mode");
    special(world, "fifo", rustix::fs::FileType::Fifo);
    special(world, "a/socket", rustix::fs::FileType::Socket);
    if is_root() {
        let device = rustix::fs::makedev(1, 3);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, world.path("null"), kind, mode, device)
            .expect("a device");
        fs_err::os::unix::fs::chown(world.path("odd"), Some(1234), Some(4321)).expect("given away");
        fs_err::os::unix::fs::lchown(world.path("dangling"), Some(7), Some(8)).expect("given away");
    }
}

/// Names that are no text. JuiceFS refuses them with some metadata engines.
pub(crate) fn names_of_any_bytes(world: &World) {
    world.write(OsStr::from_bytes(b"\xff\xfe"), "2");
    world.make_dir(OsStr::from_bytes(b"dir-\x80"));
    world.write(OsStr::from_bytes(b"dir-\x80/\x01"), "4");
}

pub(crate) fn special(world: &World, name: &str, kind: rustix::fs::FileType) {
    let mode = rustix::fs::Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(rustix::fs::CWD, world.path(name), kind, mode, 0).expect("a special file");
}

/// Gives files attributes, if the filesystem keeps them.
pub(crate) fn attributes(world: &World) -> bool {
    let flags = rustix::fs::XattrFlags::empty();
    for (name, key, value) in [
        ("plain", "user.note", &b"hello"[..]),
        ("plain", "user.empty", b""),
        ("a", "user.dir", &[0xff; 700]),
    ] {
        match rustix::fs::setxattr(world.path(name), key, value, flags) {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP) => return false,
            Err(error) => panic!("{name}: {error}"),
        }
    }
    true
}

/// The rest of a test in which this process is not root any more.
const UNPRIVILEGED: &str = "JVS_TEST_UNPRIVILEGED";
/// Somebody who owns nothing but a temporary directory.
pub(crate) const SOMEBODY: u32 = 12_345;

/// Lets root prepare a directory and an ordinary user do the rest, in a process of
/// its own: threads share their user. Where the tests are not run by root, nothing
/// is prepared. `test` is the path of the calling test.
pub(crate) fn unprivileged(test: &str, prepare: impl Fn(&Path), rest: impl Fn(&Path)) {
    let place = || {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().to_owned();
        Some((dir, path))
    };
    match is_root() || std::env::var_os(UNPRIVILEGED).is_some() {
        true => as_somebody(test, place, prepare, rest),
        false => rest(&place().expect("made").1),
    }
}

/// As [`unprivileged`], in a place that only root can make: it, and where it is.
pub(crate) fn as_somebody<P>(
    test: &str,
    place: impl FnOnce() -> Option<(P, PathBuf)>,
    prepare: impl Fn(&Path),
    rest: impl Fn(&Path),
) {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    if let Some(place) = std::env::var_os(UNPRIVILEGED) {
        return rest(place.as_ref());
    }
    let Some((_stays, place)) = place() else { return };
    prepare(&place);
    let open = |path: &Path| {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    };
    open(&place);
    // Mount points are in directories of root's alone.
    let temporary = std::env::temp_dir();
    for above in place.ancestors().skip(1).take_while(|above| *above != temporary) {
        open(above);
    }
    let dir = tempfile::tempdir().expect("a directory");
    open(dir.path());
    let copy = dir.path().join("test");
    let program = std::env::current_exe().expect("this test");
    fs_err::copy(program, &copy).expect("a copy that everybody may run");
    let mut command = std::process::Command::new(copy);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(UNPRIVILEGED, &place).uid(SOMEBODY).gid(SOMEBODY);
    let outcome = jvs_kit::live::process::run(command, std::time::Duration::from_secs(60)).ok();
    assert!(outcome.stdout().contains("1 passed"), "{outcome}");
}
