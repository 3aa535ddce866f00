//! Small files beside the session's secret that may be lost or removed at any time: a process
//! that finds none works longer, and nothing else. A directory for each kind of them.

use std::os::fd::OwnedFd;

use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::entropy::{Entropy, SystemEntropy};
use jvs_repo::id::OpNonce;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::secret;
use crate::context::Env;

/// More than anybody needs at once; the oldest go first.
const MOST: usize = 256;
/// A file that was not written for so long helps nobody.
const OLD_MS: u64 = 24 * 3_600_000;

/// The hints of one kind.
#[derive(Debug)]
pub(super) struct HintFiles {
    /// `None` where there is no private place.
    private: Option<OwnedFd>,
    kind: &'static str,
}

impl HintFiles {
    /// Those in the directory `kind`. Makes nothing before there is one to write.
    pub(super) fn of(kind: &'static str, env: Env<'_>) -> Self {
        HintFiles { private: secret::shared_private_dir(env).ok().flatten(), kind }
    }

    /// Where nothing is kept.
    pub(super) fn nowhere() -> Self {
        HintFiles { private: None, kind: "" }
    }

    fn open_dir(&self) -> Option<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let dir = rustix::fs::openat(self.private.as_ref()?, self.kind, flags, Mode::empty());
        let dir = dir.ok()?;
        let stat = rustix::fs::fstat(&dir).ok()?;
        secret::is_private(&stat).then_some(dir)
    }

    /// The first `at_most` bytes of what is under `name`.
    pub(super) fn read(&self, name: &str, at_most: usize) -> Option<Vec<u8>> {
        let dir = self.open_dir()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&dir, name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        if !secret::is_private(&stat) {
            return None;
        }
        let size = usize::try_from(stat.st_size).ok()?;
        let mut bytes = vec![0; size.min(at_most)];
        let got = rustix::io::pread(&file, &mut bytes, 0).ok()?;
        bytes.truncate(got);
        Some(bytes)
    }

    /// Writes `bytes` under `name`. Best effort.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        let _ = self.try_to_write(name, bytes);
    }

    fn try_to_write(&self, name: &str, bytes: &[u8]) -> Option<()> {
        let dir = match self.open_dir() {
            Some(dir) => dir,
            None => {
                let _ = rustix::fs::mkdirat(self.private.as_ref()?, self.kind, Mode::RWXU);
                self.open_dir()?
            }
        };
        let tmp = format!("{name}.{}", OpNonce::random(&SystemEntropy as &dyn Entropy));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&dir, &tmp, flags, Mode::RUSR | Mode::WUSR).ok()?;
        let written = rustix::io::pwrite(&file, bytes, 0) == Ok(bytes.len());
        if !written || rustix::fs::renameat(&dir, &tmp, &dir, name).is_err() {
            let _ = rustix::fs::unlinkat(&dir, &tmp, AtFlags::empty());
            return None;
        }
        tidy(&dir);
        Some(())
    }
}

/// Removes what is old, and the oldest of what is too much.
fn tidy(dir: &OwnedFd) {
    let Ok(entries) = rustix::fs::Dir::read_from(dir) else { return };
    let now = SystemClock.now().wall.0;
    let mut files = Vec::new();
    for entry in entries.flatten() {
        if entry.file_name().to_bytes().starts_with(b".") {
            continue;
        }
        let name = entry.file_name().to_owned();
        if let Ok(stat) = rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            let changed_ms = u64::try_from(stat.st_mtime).unwrap_or(0).saturating_mul(1_000);
            files.push((changed_ms, name));
        }
    }
    files.sort();
    let too_many = files.len().saturating_sub(MOST);
    for (n, (changed_ms, name)) in files.iter().enumerate() {
        if n < too_many || now.saturating_sub(*changed_ms) > OLD_MS {
            let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
        }
    }
}
