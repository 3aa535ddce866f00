//! What the repository stands on, and how that fails.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use fs_err::os::unix::fs::chown;
use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::{self, Volume};
use jvs_kit::live::loopfs::{self, SmallFs};
use rustix::process::Signal;
use tempfile::TempDir;

use super::engine::{Engine, Server};
use super::host::TEAM;
use super::proxy::{Proxy, Weather};

/// Where a repository can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An ext4 of its own; all hosts share a kernel.
    Local,
    /// A JuiceFS volume whose metadata is a file that all clients open.
    Sqlite,
    /// A JuiceFS volume whose metadata is with a server, which each host reaches through
    /// a proxy of its own.
    Served(Engine),
}

/// What a kind of ground can do to those who stand on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// There is no room left.
    Fill,
    /// The client of a host stops for a while.
    StopMount,
    /// The client of a host is killed, and mounted again.
    KillMount,
    /// The metadata server stops for a while.
    StopServer,
    /// A host's connections to the server are slow.
    Slow,
    /// They are stuck.
    Still,
    /// They are cut.
    Cut,
    /// What the server answers to a host is lost.
    LoseReplies,
}

/// The ground.
pub(crate) enum Ground {
    Local(SmallFs),
    JuiceFs(Mutex<Volume>, Vec<PathBuf>, Option<Box<Backend>>),
}

/// A metadata server, and the way to it of each host.
pub(crate) struct Backend {
    server: Server,
    proxies: Vec<Proxy>,
    _dir: TempDir,
}

const LOCAL_BYTES: u64 = 512 << 20;
const BALLAST: &str = "ballast";

impl Ground {
    /// Makes it, or returns nothing where that cannot be done, which was said aloud.
    pub(crate) fn lay(kind: Kind, hosts: usize) -> Option<Self> {
        let wanted = ["faketime", "unshare", "setpriv"].map(Capability::Program);
        if !granted(&[&[Capability::Root], &wanted[..]].concat()) {
            return None;
        }
        let ground = match kind {
            Kind::Local => {
                let files = SmallFs::on_loop_of(loopfs::Kind::Ext4, LOCAL_BYTES)?;
                Self::Local(files)
            }
            Kind::Sqlite => {
                let mut volume = Volume::format(juicefs::Engine::Sqlite)?;
                volume.limit_room(1);
                let places = (0..hosts).map(|_| volume.mount(&[])).collect();
                Self::JuiceFs(Mutex::new(volume), places, None)
            }
            Kind::Served(engine) => served(engine, hosts)?,
        };
        ground.admit_all();
        Some(ground)
    }

    /// Where a host sees it.
    pub(crate) fn place(&self, host: usize) -> &Path {
        match self {
            Self::Local(files) => files.path(),
            Self::JuiceFs(_, places, _) => &places[host],
        }
    }

    /// What can be done to it.
    pub(super) fn ways(&self) -> &'static [Way] {
        match self {
            Self::Local(_) => &[Way::Fill],
            Self::JuiceFs(_, _, None) => &[Way::Fill, Way::StopMount, Way::KillMount],
            Self::JuiceFs(_, _, Some(_)) => &[
                Way::Fill,
                Way::StopMount,
                Way::KillMount,
                Way::StopServer,
                Way::Slow,
                Way::Still,
                Way::Cut,
                Way::LoseReplies,
                Way::LoseReplies,
            ],
        }
    }

    /// Does it to a host. What lasts goes on until [`Ground::undo`].
    pub(super) fn strike(&self, way: Way, host: usize) {
        let Self::JuiceFs(volume, _, backend) = self else { return self.fill() };
        match (way, backend) {
            (Way::Fill, _) => self.fill(),
            (Way::StopMount, _) => lock(volume).signal_host(host, Signal::STOP),
            (Way::KillMount, _) => lock(volume).signal_host(host, Signal::KILL),
            (Way::StopServer, Some(backend)) => backend.server.signal(Signal::STOP),
            (Way::Slow, Some(backend)) => backend.proxies[host].set(Weather::Slow),
            (Way::Still, Some(backend)) => backend.proxies[host].set(Weather::Still),
            (Way::Cut, Some(backend)) => backend.proxies[host].cut(),
            (Way::LoseReplies, Some(backend)) => backend.proxies[host].set(Weather::Deaf),
            (_, None) => {}
        }
    }

    /// Takes it back.
    pub(super) fn undo(&self, way: Way, host: usize) {
        let Self::JuiceFs(volume, _, backend) = self else { return self.make_room() };
        match (way, backend) {
            (Way::Fill, _) => self.make_room(),
            (Way::StopMount, _) => lock(volume).signal_host(host, Signal::CONT),
            (Way::KillMount, _) => lock(volume).remount(host),
            (Way::StopServer, Some(backend)) => backend.server.signal(Signal::CONT),
            (Way::Slow | Way::Still | Way::LoseReplies, Some(backend)) => {
                backend.proxies[host].set(Weather::Clear);
            }
            (Way::Cut, _) | (_, None) => {}
        }
    }

    /// Leaves nothing broken.
    pub(super) fn heal(&self) {
        self.make_room();
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

    fn make_room(&self) {
        let _ = fs_err::remove_file(self.place(0).join(BALLAST));
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

/// A volume that each host mounts through a proxy of its own.
fn served(engine: Engine, hosts: usize) -> Option<Ground> {
    let dir = tempfile::Builder::new().prefix("jvs-server-").tempdir().expect("a directory");
    fs_err::set_permissions(dir.path(), Permissions::from_mode(0o711)).expect("opened");
    let server = engine.start(dir.path())?;
    let first = Proxy::start(server.upstream());
    let mut volume = Volume::format_at(engine.address(first.port()))?;
    volume.limit_room(1);
    let mut proxies = vec![first];
    proxies.extend((1..hosts).map(|_| Proxy::start(server.upstream())));
    let mount = |proxy: &Proxy| volume.mount_through(&engine.address(proxy.port()), &[]);
    let places = proxies.iter().map(mount).collect();
    let backend = Box::new(Backend { server, proxies, _dir: dir });
    Some(Ground::JuiceFs(Mutex::new(volume), places, Some(backend)))
}

fn allocated(file: &fs_err::File, bytes: u64) -> bool {
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(file, flags, 0, bytes).is_ok()
}

fn lock(volume: &Mutex<Volume>) -> MutexGuard<'_, Volume> {
    volume.lock().expect("nobody panics with a volume")
}
