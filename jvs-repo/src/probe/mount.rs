//! What kind of filesystem it is and how it is mounted, as far as the kernel
//! and, on JuiceFS, the mount itself tell.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{ProbeFinding, ProbeSeverity, Setup, Subject};
use crate::duration::Period;
use crate::json::{self, Limits};
use crate::proc;
use crate::store::{PosixStore, RepoPath, Store};

/// Kinds on which the register was tried for hundreds of thousands of races.
const TRIED: &[&str] = &["ext4", "xfs", "btrfs", "tmpfs", "overlay", JUICEFS];
/// Those that live in memory.
const VOLATILE: &[&str] = &["tmpfs", "ramfs"];
const JUICEFS: &str = "fuse.juicefs";
/// The version that was tried.
const JUICEFS_TRIED: [u64; 3] = [1, 4, 2];
/// JuiceFS keeps names and attributes for this long unless told otherwise.
const CACHE_DEFAULT: Period = Period::seconds(1);
/// Where a JuiceFS mount shows its own configuration, at its root.
const JUICEFS_CONFIG: [&str; 2] = [".jfs.config", ".config"];

/// Entries of a JuiceFS mount's root that are the mount's own; the second list
/// if it was told to keep out of the way of the user's names.
const JUICEFS_OWN: [&[&str]; 2] = [
    &[".accesslog", ".config", ".control", ".stats", ".trash"],
    &[".jfs.accesslog", ".jfs.config", ".jfs.control", ".jfs.stats", ".jfs.trash"],
];

/// The filesystem that a path is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filesystem {
    /// Its type in the kernel's words; `unknown` if the kernel did not say.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// What a JuiceFS mount tells of itself.
    pub juicefs: Option<JuiceFsMount>,
}

/// What matters of the configuration of a JuiceFS mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JuiceFsMount {
    /// This user may not read it (it is root's), or it is hidden.
    Unreadable,
    /// What it says.
    Mounted {
        /// Version of the client.
        version: String,
        /// Are writes acknowledged before they are uploaded?
        writeback: bool,
        /// Does the kernel keep whole directory listings?
        readdir_cache: bool,
        /// How long attributes, names, names of directories and the absence of
        /// names are kept.
        caches: [(&'static str, Period); 4],
    },
}

impl Filesystem {
    /// The filesystem that `path` is on.
    pub fn at(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let Some((mount_point, kind)) =
            mount_of(&String::from_utf8_lossy(&proc::mountinfo().unwrap_or_default()), &path)
        else {
            return Ok(Self::unknown());
        };
        let juicefs = (kind == JUICEFS).then(|| JuiceFsMount::at(&mount_point));
        Ok(Filesystem { kind, mount_point, juicefs })
    }

    /// The names in `dir` that belong to the filesystem itself and not to its
    /// users: some filesystems have such names at their root.
    pub fn own_names(&self, dir: &Path) -> &'static [&'static str] {
        if dir != self.mount_point {
            return &[];
        }
        match self.kind.as_str() {
            "ext2" | "ext3" | "ext4" => &["lost+found"],
            JUICEFS if dir.join(JUICEFS_OWN[1][1]).exists() => JUICEFS_OWN[1],
            JUICEFS => JUICEFS_OWN[0],
            _ => &[],
        }
    }

    /// A filesystem of which nothing is known, such as a simulated one.
    pub fn unknown() -> Self {
        Filesystem { kind: "unknown".to_owned(), mount_point: PathBuf::from("/"), juicefs: None }
    }

    /// What its kind and its options alone let one say.
    pub fn findings(&self) -> Vec<ProbeFinding> {
        let mut findings = Vec::new();
        let mut say = |severity, setup, message: String, remedy: &str| {
            let subject = Subject::Setup(setup);
            findings.push(ProbeFinding { severity, subject, message, remedy: remedy.to_owned() });
        };
        if !TRIED.contains(&self.kind.as_str()) {
            say(
                ProbeSeverity::Warning,
                Setup::UntriedFilesystem,
                format!(
                    "locking has not been tested at length on this kind of filesystem ({})",
                    self.kind
                ),
                "run `jvs doctor --probe` on every host that will use the repository",
            );
        }
        if VOLATILE.contains(&self.kind.as_str()) {
            say(
                ProbeSeverity::Warning,
                Setup::VolatileFilesystem,
                format!("{} loses its files at a reboot, snapshots included", self.kind),
                "keep what must survive a reboot on a disk",
            );
        }
        if let Some(juicefs) = &self.juicefs {
            juicefs.judge(&mut say);
        }
        findings
    }
}

/// Is `store` on a JuiceFS mount that acknowledges writes before they are uploaded?
pub fn uploads_later(store: &PosixStore) -> bool {
    if !store.names_are_durable() {
        return false;
    }
    store.of_mount("--writeback", || {
        let mount = Filesystem::at(store.root_path()).ok().and_then(|it| it.juicefs);
        matches!(mount, Some(JuiceFsMount::Mounted { writeback: true, .. }))
    })
}

/// The mount point and type of the mount that `path` is on. The last mount over
/// a place hides the earlier ones.
pub(crate) fn mount_of(mountinfo: &str, path: &Path) -> Option<(PathBuf, String)> {
    let mut best: Option<(PathBuf, String)> = None;
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let (Some(point), Some(kind)) = (before.split(' ').nth(4), after.split(' ').next()) else {
            continue;
        };
        let point = proc::mount_field(point.as_bytes());
        let nearer = best
            .as_ref()
            .is_none_or(|(best, _)| point.components().count() >= best.components().count());
        if path.starts_with(&point) && nearer {
            best = Some((point, kind.to_owned()));
        }
    }
    best
}

pub(crate) fn version_of(text: &str) -> Option<[u64; 3]> {
    let digits = |c: char| !c.is_ascii_digit();
    let mut numbers = text.split(['.', '+', '-', ' ']).take(3);
    let mut next = || numbers.next()?.trim_end_matches(digits).parse().ok();
    Some([next()?, next()?, next()?])
}

/// The part of the mount's own configuration that is looked at. Field names
/// are those of the JuiceFS client; durations are in nanoseconds.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MountConfig {
    #[serde(default)]
    version: String,
    #[serde(default)]
    readdir_cache: bool,
    #[serde(default)]
    attr_timeout: u64,
    #[serde(default)]
    entry_timeout: u64,
    #[serde(default)]
    dir_entry_timeout: u64,
    #[serde(default)]
    neg_entry_timeout: u64,
    #[serde(default)]
    chunk: Option<ChunkConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChunkConfig {
    #[serde(default)]
    writeback: bool,
}

impl JuiceFsMount {
    /// What the options of the mount let one say.
    fn judge(&self, say: &mut impl FnMut(ProbeSeverity, Setup, String, &str)) {
        match self {
            JuiceFsMount::Unreadable => say(
                ProbeSeverity::Warning,
                Setup::JuicefsOptions,
                "the options of this JuiceFS mount cannot be read by this user".to_owned(),
                "run `sudo jvs doctor --probe` once, or look at the mount command yourself: \
                 --readdir-cache must not be used",
            ),
            JuiceFsMount::Mounted { version, writeback, readdir_cache, caches } => {
                if *readdir_cache {
                    say(
                        ProbeSeverity::Unsafe,
                        Setup::JuicefsReaddirCache,
                        "this JuiceFS mount caches directory listings (--readdir-cache), so it \
                         may show a holder who has long released the lock"
                            .to_owned(),
                        "mount it again without --readdir-cache",
                    );
                }
                if *writeback {
                    say(
                        ProbeSeverity::Warning,
                        Setup::JuicefsWriteback,
                        "this JuiceFS mount acknowledges writes before they are uploaded \
                         (--writeback): a snapshot could be committed and not be readable on \
                         other hosts"
                            .to_owned(),
                        "mount it again without --writeback",
                    );
                }
                for (option, kept) in caches {
                    if *kept > CACHE_DEFAULT {
                        say(
                            ProbeSeverity::Warning,
                            Setup::JuicefsCache,
                            format!(
                                "this JuiceFS mount caches metadata for {kept} (--{option}): \
                                 details of a holder on another host may be that old"
                            ),
                            "mount it again without that option",
                        );
                    }
                }
                if version_of(version).is_some_and(|version| version < JUICEFS_TRIED) {
                    say(
                        ProbeSeverity::Warning,
                        Setup::JuicefsVersion,
                        format!("locking was tested with JuiceFS 1.4.2; this mount is {version}"),
                        "install JuiceFS 1.4.2 or later",
                    );
                }
            }
        }
    }

    fn at(mount_point: &Path) -> Self {
        let Ok(root) = PosixStore::open(mount_point) else { return JuiceFsMount::Unreadable };
        JUICEFS_CONFIG
            .iter()
            .filter_map(|name| RepoPath::root().child(name).ok())
            .filter_map(|path| root.read(&path, 1 << 20).ok())
            .find_map(|bytes| JuiceFsMount::parse(&bytes))
            .unwrap_or(JuiceFsMount::Unreadable)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let limits = Limits { size: 1 << 20, depth: 32, string: 1 << 16 };
        let config: MountConfig = json::parse_within(bytes, limits).ok()?;
        let span = |nanoseconds: u64| Period::from_ms(nanoseconds.div_ceil(1_000_000));
        Some(JuiceFsMount::Mounted {
            version: config.version,
            writeback: config.chunk.is_some_and(|chunk| chunk.writeback),
            readdir_cache: config.readdir_cache,
            caches: [
                ("attr-cache", span(config.attr_timeout)),
                ("entry-cache", span(config.entry_timeout)),
                ("dir-entry-cache", span(config.dir_entry_timeout)),
                ("negative-entry-cache", span(config.neg_entry_timeout)),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/root rw
30 22 0:25 / /mnt/a\\040b rw shared:3 - fuse.juicefs JuiceFS:x rw,user_id=0
31 22 0:26 / /mnt rw - tmpfs tmpfs rw
32 22 0:27 / /mnt rw master:1 - xfs /dev/x rw
broken line
";

    fn kind(path: &str) -> String {
        mount_of(MOUNTINFO, Path::new(path)).expect("some mount").1
    }

    #[test]
    fn the_nearest_and_last_mount_above_a_path_is_the_one() {
        assert_eq!(kind("/home/x"), "ext4");
        assert_eq!(kind("/mnt/x"), "xfs");
        assert_eq!(kind("/mntx"), "ext4");
        assert_eq!(kind("/mnt/a b/r"), "fuse.juicefs");
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    #[test]
    fn the_filesystem_under_our_feet_is_known() {
        let dir = tempfile::tempdir().expect("tempdir");
        let filesystem = Filesystem::at(dir.path()).expect("there");
        assert_ne!(filesystem.kind, "unknown");
        let canonical = dir.path().canonicalize().expect("canonical");
        assert!(canonical.starts_with(&filesystem.mount_point));
    }

    fn subjects(config: &str) -> Vec<(ProbeSeverity, Subject)> {
        let juicefs = JuiceFsMount::parse(config.as_bytes()).expect("parses");
        let mount = Filesystem {
            kind: JUICEFS.to_owned(),
            mount_point: "/jfs".into(),
            juicefs: Some(juicefs),
        };
        mount.findings().into_iter().map(|f| (f.severity, f.subject)).collect()
    }

    #[test]
    fn options_of_a_juicefs_mount_are_judged() {
        let defaults = r#"{"Meta":{"Strict":true},"Version":"1.4.2+2025-10-20.1a2b3c4",
            "AttrTimeout":1000000000,"EntryTimeout":1000000000,"DirEntryTimeout":1000000000,
            "NegEntryTimeout":0,"ReaddirCache":false,"Chunk":{"Writeback":false,"CacheDir":"/var/jfsCache"}}"#;
        assert_eq!(subjects(defaults), []);
        let all = defaults
            .replace("1.4.2", "1.3.0")
            .replace("\"ReaddirCache\":false", "\"ReaddirCache\":true")
            .replace("\"Writeback\":false", "\"Writeback\":true")
            .replace("\"EntryTimeout\":1000000000", "\"EntryTimeout\":5000000000");
        assert_eq!(
            subjects(&all),
            [
                (ProbeSeverity::Unsafe, Subject::Setup(Setup::JuicefsReaddirCache)),
                (ProbeSeverity::Warning, Subject::Setup(Setup::JuicefsWriteback)),
                (ProbeSeverity::Warning, Subject::Setup(Setup::JuicefsCache)),
                (ProbeSeverity::Warning, Subject::Setup(Setup::JuicefsVersion)),
            ]
        );
        assert_eq!(JuiceFsMount::parse(b"not json"), None);
    }

    #[test]
    fn what_cannot_be_known_is_said() {
        let unreadable = Filesystem {
            kind: JUICEFS.to_owned(),
            mount_point: "/jfs".into(),
            juicefs: Some(JuiceFsMount::Unreadable),
        };
        assert_eq!(unreadable.findings()[0].subject, Subject::Setup(Setup::JuicefsOptions));
        assert_eq!(
            Filesystem::unknown().findings()[0].subject,
            Subject::Setup(Setup::UntriedFilesystem)
        );
    }

    #[test]
    fn a_filesystem_s_own_names_are_known_at_its_root_only() {
        let root = tempfile::tempdir().expect("tempdir");
        let mut mount = Filesystem {
            kind: "ext4".to_owned(),
            mount_point: root.path().to_owned(),
            juicefs: None,
        };
        assert_eq!(mount.own_names(root.path()), ["lost+found"]);
        assert!(mount.own_names(&root.path().join("below")).is_empty());
        mount.kind = JUICEFS.to_owned();
        assert!(mount.own_names(root.path()).contains(&".config"));
        std::fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(root.path().join(".jfs.config"))
            .expect("create");
        assert!(!mount.own_names(root.path()).contains(&".config"), "now that is the user's");
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version_of("1.4.2+2025-10-20.1a2b3c4"), Some([1, 4, 2]));
        assert_eq!(version_of("1.10.0-beta1"), Some([1, 10, 0]));
        assert_eq!(version_of("dev"), None);
        assert!(version_of("1.10.0").expect("version") > JUICEFS_TRIED);
    }
}
