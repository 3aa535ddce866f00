//! How a payload gets into a snapshot: copied, cloned file by file, or cloned as
//! a whole by JuiceFS.
//!
//! **Responsibility.** An engine makes `payload` in the staging directory from a
//! tree that was walked before, and says what it could not keep. Which engine
//! works is found out by trying, not by the name of the filesystem.
//!
//! **Must not know.** Whether the source was quiet, and what becomes of the
//! snapshot.

mod build;
mod copy;
pub(crate) mod juicefs;
mod reflink;

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jvs_repo::config::Engine as Policy;

pub use juicefs::Mount as JuiceFsMount;
pub(crate) use juicefs::{mount_of as juicefs_mount, was_removed_by_the_mount};

use crate::capture_error::CaptureError;
use crate::descriptor::Loss;
use crate::plan::{LinkGroups, ReusePlan, TreeFacts};
use crate::progress::{Phases, Progress};
use crate::walk::Tree;

/// An engine by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineName {
    /// The mount's control file, or the `juicefs` program.
    JuiceFs,
    /// Clones each file with `FICLONE`.
    Reflink,
    /// `copy_file_range` or reading and writing.
    Copy,
}

impl EngineName {
    /// The word in configuration and descriptor.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JuiceFs => "juicefs",
            Self::Reflink => "reflink",
            Self::Copy => "copy",
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an engine works on.
pub(crate) struct Work<'w> {
    pub(crate) threads: usize,
    pub(crate) source: &'w OwnedFd,
    pub(crate) tree: &'w Tree,
    pub(crate) plan: &'w ReusePlan,
    pub(crate) groups: &'w LinkGroups,
    /// Where `payload` is made.
    pub(crate) staging: &'w OwnedFd,
    /// The parent snapshot's payload, if there is one.
    pub(crate) parent: Option<&'w OwnedFd>,
    /// Whether extended attributes can change without a trace in any time, as on
    /// JuiceFS: then a file that is as it was in the parent may have others.
    pub(crate) timeless_xattrs: bool,
    /// Nothing that was written before the copy is begun is hidden from it.
    pub(crate) hides_nothing: bool,
    pub(crate) progress: &'w dyn Progress,
    pub(crate) phases: &'w Phases<'w>,
}

/// What an engine made.
#[derive(Debug)]
pub(crate) struct Built {
    /// What it learned on the way, the plan's facts included.
    pub(crate) facts: TreeFacts,
    pub(crate) degraded: Vec<Loss>,
    /// On the disk already: the engine's filesystem acknowledges only what is.
    pub(crate) durable: bool,
    /// The copy itself shows that nobody wrote between the walk and the moment at
    /// which it was begun, so that nobody need look a second time.
    pub(crate) proves_quiet: bool,
}

/// A way to make a payload.
pub(crate) trait Engine: Sync {
    fn name(&self) -> EngineName;

    /// Makes `payload`, which is not there yet. What is known of the files before that
    /// becomes part of what is known of the copy.
    fn build(&self, work: &Work<'_>, known: TreeFacts) -> Result<Built, CaptureError>;
}

/// The one that needs nothing but to read and to write.
pub(crate) fn that_always_works() -> Box<dyn Engine> {
    Box::new(copy::Copy)
}

/// The engine for this source and this staging directory: the one that policy
/// names, or the best that works.
pub(crate) fn choose(
    policy: Policy,
    juicefs_program: Option<&Path>,
    source: &OwnedFd,
    staging: &OwnedFd,
) -> Result<Box<dyn Engine>, CaptureError> {
    let unavailable = |engine, why| CaptureError::EngineUnavailable { engine, why };
    let program = juicefs_program.map_or_else(|| PathBuf::from("juicefs"), Path::to_owned);
    match policy {
        Policy::Copy => Ok(Box::new(copy::Copy)),
        Policy::Reflink => match reflink::probe(staging, source)? {
            Ok(()) => Ok(Box::new(reflink::Reflink)),
            Err(error) => Err(unavailable(EngineName::Reflink, error.to_string())),
        },
        Policy::Juicefs => match juicefs::Mount::of(source, staging) {
            Ok(mount) => Ok(Box::new(juicefs::JuiceFsEngine { mount, program })),
            Err(why) => Err(unavailable(EngineName::JuiceFs, why)),
        },
        Policy::Auto => {
            if let Ok(mount) = juicefs::Mount::of(source, staging) {
                return Ok(Box::new(juicefs::JuiceFsEngine { mount, program }));
            }
            Ok(match reflink::probe(staging, source)? {
                Ok(()) => Box::new(reflink::Reflink),
                Err(_) => Box::new(copy::Copy),
            })
        }
    }
}
