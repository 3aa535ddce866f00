//! What a finding of the probe is about, with the word for it that scripts match.

use std::fmt;

use serde::{Serialize, Serializer};

macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* $variant,)* }

        impl $name {
            const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
    };
}

words! {
    /// What the kind of a filesystem and the options of its mount let one say,
    /// without trying anything.
    Setup {
        /// Locking was never tried at length on this kind of filesystem.
        UntriedFilesystem = "untried_filesystem",
        /// It keeps nothing over a reboot.
        VolatileFilesystem = "volatile_filesystem",
        /// The options of a JuiceFS mount cannot be read.
        JuicefsOptions = "juicefs_options",
        /// A JuiceFS mount caches directory listings.
        JuicefsReaddirCache = "juicefs_readdir_cache",
        /// A JuiceFS mount acknowledges writes before they are uploaded.
        JuicefsWriteback = "juicefs_writeback",
        /// A JuiceFS mount caches names or attributes for a long time.
        JuicefsCache = "juicefs_cache",
        /// A JuiceFS client older than the one that locking was tried on.
        JuicefsVersion = "juicefs_version",
    }
}

words! {
    /// What locking needs a filesystem to do, found out by trying.
    Promise {
        /// A rename moves a name, or fails.
        Rename = "rename",
        /// Of two renames of one file, one succeeds.
        RenameRace = "rename_race",
        /// A listing shows what is there, once.
        Listing = "listing",
        /// A file is created exclusively.
        ExclusiveCreate = "exclusive_create",
        /// A rename that must not replace anything does not.
        RenameNew = "rename_new",
        /// A directory does not replace one that has entries.
        DirectoryRename = "directory_rename",
        /// A file can be flushed to disk.
        FsyncFile = "fsync_file",
        /// A directory can be flushed to disk.
        FsyncDirectory = "fsync_directory",
        /// Names can be as long as the state of a lock is.
        LongNames = "long_names",
        /// What was applied is answered with success.
        LostAnswer = "lost_answer",
        /// A second mount of the volume shows at once what the first one did.
        SecondMount = "second_mount",
    }
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// How the filesystem is set up: seen at every look.
    Setup(Setup),
    /// How it behaves: seen by a probe alone.
    Promise(Promise),
}

impl Subject {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Subject::Setup(setup) => setup.as_str(),
            Subject::Promise(promise) => promise.as_str(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
