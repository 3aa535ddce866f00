//! The filesystems on which the same must hold.

use std::path::PathBuf;

use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};

/// A directory on a filesystem of its own, which goes away with it.
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    _filesystem: Filesystem,
}

#[expect(dead_code, reason = "kept for what happens when it is dropped")]
enum Filesystem {
    Small(SmallFs),
    Volume(Volume),
}

impl Place {
    /// On a disk, or a skipped test.
    #[track_caller]
    pub(crate) fn on(kind: Kind) -> Option<Self> {
        let filesystem = SmallFs::on_loop(kind)?;
        let dir = filesystem.path().to_owned();
        Some(Place { dir, _filesystem: Filesystem::Small(filesystem) })
    }

    /// On a JuiceFS volume with its metadata there, or a skipped test.
    #[track_caller]
    pub(crate) fn on_juicefs(engine: Engine) -> Option<Self> {
        let volume = Volume::mounted(engine, 1)?;
        let dir = volume.host(0).to_owned();
        Some(Place { dir, _filesystem: Filesystem::Volume(volume) })
    }
}
