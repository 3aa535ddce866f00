//! What the repository stands on, and how that fails.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use fs_err::os::unix::fs::chown;
use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::{self, SmallFs};
use rustix::process::Signal;

use super::host::TEAM;

/// Where a repository can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An ext4 of its own; all hosts share a kernel.
    Local,
    /// A JuiceFS volume, mounted by each host, with this engine.
    JuiceFs(Engine),
}

/// What a kind of ground can do to those who stand on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// There is no room left.
    Fill,
    /// The clients of a host stop for a while.
    StopMount,
    /// The client of a host is killed, and mounted again.
    KillMount,
    /// The metadata server stops for a while.
    StopServer,
}

/// The ground.
pub(super) enum Ground {
    Local(SmallFs),
    JuiceFs(Mutex<Volume>, Vec<PathBuf>, Engine),
}

const LOCAL_BYTES: u64 = 512 << 20;
const BALLAST: &str = "ballast";

impl Ground {
    /// Makes it, or returns nothing where that cannot be done, which was said aloud.
    pub(super) fn lay(kind: Kind, hosts: usize) -> Option<Self> {
        let wanted = ["faketime", "unshare", "setpriv"].map(Capability::Program);
        if !granted(&[&[Capability::Root], &wanted[..]].concat()) {
            return None;
        }
        let ground = match kind {
            Kind::Local => {
                let files = SmallFs::on_loop_of(loopfs::Kind::Ext4, LOCAL_BYTES)?;
                Self::Local(files)
            }
            Kind::JuiceFs(engine) => {
                let volume = Volume::format(engine)?;
                volume.limit_room(1);
                let mut volume = volume;
                let places = (0..hosts).map(|_| volume.mount(&[])).collect();
                Self::JuiceFs(Mutex::new(volume), places, engine)
            }
        };
        ground.admit_all();
        Some(ground)
    }

    /// Where a host sees it.
    pub(super) fn place(&self, host: usize) -> &Path {
        match self {
            Self::Local(files) => files.path(),
            Self::JuiceFs(_, places, _) => &places[host],
        }
    }

    /// What can be done to it.
    pub(super) fn ways(&self) -> &'static [Way] {
        match self {
            Self::Local(_) => &[Way::Fill],
            Self::JuiceFs(_, _, Engine::Sqlite) => &[Way::Fill, Way::StopMount, Way::KillMount],
            Self::JuiceFs(_, _, Engine::Redis) => {
                &[Way::Fill, Way::StopMount, Way::KillMount, Way::StopServer]
            }
        }
    }

    /// Does it to a host; what stops goes on with [`Ground::undo`].
    pub(super) fn strike(&self, way: Way, host: usize) {
        match (way, self) {
            (Way::Fill, _) => self.fill(),
            (Way::StopMount, Self::JuiceFs(volume, ..)) => {
                lock(volume).signal_host(host, Signal::STOP);
            }
            (Way::KillMount, Self::JuiceFs(volume, ..)) => {
                lock(volume).signal_host(host, Signal::KILL);
            }
            (Way::StopServer, Self::JuiceFs(volume, ..)) => {
                let volume = lock(volume);
                volume.redis().expect("a server").server().signal(Signal::STOP);
            }
            (_, Self::Local(_)) => {}
        }
    }

    /// Takes it back.
    pub(super) fn undo(&self, way: Way, host: usize) {
        match (way, self) {
            // On JuiceFS the host may be the one that is stopped: any other will do.
            (Way::Fill, _) => {
                let _ = fs_err::remove_file(self.place(host).join(BALLAST));
            }
            (Way::StopMount, Self::JuiceFs(volume, ..)) => {
                lock(volume).signal_host(host, Signal::CONT);
            }
            (Way::KillMount, Self::JuiceFs(volume, ..)) => lock(volume).remount(host),
            (Way::StopServer, Self::JuiceFs(volume, ..)) => {
                let volume = lock(volume);
                volume.redis().expect("a server").server().signal(Signal::CONT);
            }
            (_, Self::Local(_)) => {}
        }
    }

    /// Leaves nothing broken.
    pub(super) fn heal(&self) {
        let _ = fs_err::remove_file(self.place(0).join(BALLAST));
    }

    /// Takes all the room there is, and leaves less than a file needs.
    fn fill(&self) {
        let Ok(room) = rustix::fs::statvfs(self.place(0)) else { return };
        let Ok(file) = fs_err::File::create(self.place(0).join(BALLAST)) else { return };
        let mut bytes = room.f_bavail * room.f_frsize;
        // What is told to be free cannot always be had in one piece.
        while bytes > 4096 && !allocated(&file, bytes) {
            bytes -= bytes / 16;
        }
    }

    /// The team may work here, and everything in it is the team's.
    fn admit_all(&self) {
        let place = self.place(0);
        let mut way = place.parent();
        while let Some(dir) = way.filter(|dir| *dir != Path::new("/") && !dir.ends_with("tmp")) {
            let mode = dir.metadata().expect("there").permissions().mode();
            fs_err::set_permissions(dir, Permissions::from_mode(mode | 0o111)).expect("opened");
            way = dir.parent();
        }
        chown(place, None, Some(TEAM)).expect("given");
        fs_err::set_permissions(place, Permissions::from_mode(0o2775)).expect("opened");
    }
}

fn allocated(file: &fs_err::File, bytes: u64) -> bool {
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(file, flags, 0, bytes).is_ok()
}

fn lock(volume: &Mutex<Volume>) -> MutexGuard<'_, Volume> {
    volume.lock().expect("nobody panics with a volume")
}
