//! That what programs have written is where a look at the files sees it.
//!
//! A look compares change times, and a change time is set when a change reaches the
//! filesystem. Two kinds of changes have not reached it when the program that made
//! them has long gone on:
//!
//! - *Stores into a mapped file.* The kernel sets the time at the first store into a
//!   page and at no other, until it has written the page back: from then on the next
//!   store is a first one again. `syncfs` writes all of them back.
//! - *What a JuiceFS mount has not handed in.* It keeps what was written for a second
//!   or so, and until then neither the metadata nor a clone knows of it.
//!
//! So both are forced, once, after the first look and before the first byte is
//! copied. Let e be the end of that. On a disk, whatever is stored after e changes a
//! time, which the second look sees: the files were the same from e on, and what was
//! copied is the tree as it was at e. On JuiceFS whatever had not been handed in when
//! this began, at s, was handed in by e and then changed a time after the first look:
//! if the clone, or the second look, has all the times of the first, there was
//! nothing of the kind, and the clone is the tree as it was at s. The same is done
//! before a second look there, for what was written while files were copied.
//!
//! By induction it holds for what the next snapshot believes: a file whose change
//! time is that of the last snapshot was not stored into since that one's e.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use jvs_kernel::lease;
use jvs_repo::clock::Clock;
use jvs_repo::sabotage;

use crate::capture_error::CaptureError;
use crate::fidelity::is_full;
use crate::ground::Ground;
use crate::mutation::capturing::CaptureRule;
use crate::nobody_else::Ours;
use crate::progress::Progress;
use crate::tree::{self, NodeKind};
use crate::walk::{Tree, WalkError};
use crate::workers;

/// How long a mount may take to hand in what it holds, where it cannot be made to.
const PATIENCE_MS: u64 = 5_000;
/// Between two looks at its counters.
const PAUSE_MS: u64 = 50;
/// Files of one directory that are asked about by one task.
const CHUNK: usize = 64;

/// A tree whose writers' work is to be seen.
pub(crate) struct WriteOut<'w> {
    pub(crate) source: &'w OwnedFd,
    /// What this capture has open, and what it knows to be outside the tree.
    pub(crate) ours: Ours<'w>,
    pub(crate) ground: &'w Ground,
    /// A snapshot's own tree.
    pub(crate) nobody_writes: bool,
    pub(crate) threads: usize,
    pub(crate) clock: &'w dyn Clock,
    pub(crate) progress: &'w dyn Progress,
}

/// Why it is not certain that everything that was written is seen.
pub(crate) type WriteDoubt = String;

impl WriteOut<'_> {
    /// Before the first look: nothing is proven by it, but what was written a moment
    /// ago does not cost a second attempt.
    pub(crate) fn begin(&self) {
        if self.writes_show_late() {
            let _ = tree::sync_filesystem(self.source);
        }
    }

    /// Before the first look of a second attempt. The first may have ended before it
    /// forced what was written while it copied; this one would do it after its first
    /// look, and take that for a second change by a program that wrote once.
    pub(crate) fn begin_again(
        &self,
        files: impl FnOnce() -> Result<Tree, WalkError>,
    ) -> Result<(), CaptureError> {
        sabotage!(CaptureRule::HandedInBetween => Ok(()));
        if !self.writes_show_late() {
            return Ok(());
        }
        bring_in(self.source, &self.ours, self.ground, files, self.threads, self.progress)
    }

    fn writes_show_late(&self) -> bool {
        matches!(self.ground, Ground::JuiceFs(_) | Ground::Remote) && !self.nobody_writes
    }

    /// Forces what was written to where looks see it. `before` is the first look.
    pub(crate) fn force(&self, before: &Tree) -> Result<Option<WriteDoubt>, CaptureError> {
        sabotage!(CaptureRule::WrittenOutFirst => Ok(None));
        // In memory there is nowhere to write to: contents are compared instead.
        if self.nobody_writes || *self.ground == Ground::Memory {
            return Ok(None);
        }
        match sync(self.source, &self.ours, self.ground) {
            Ok(true) => Ok(None),
            Ok(false) => match hand_in(self.source, before, self.threads, self.progress)? {
                0 => Ok(None),
                unknown => self.wait(unknown),
            },
            Err(CaptureError::Io { source, .. }) if !is_full(&source) => {
                Ok(Some(format!("syncfs failed: {source}")))
            }
            Err(error) => Err(error),
        }
    }

    /// As [`WriteOut::force`], before a second look; only where the first store after
    /// the first look changes no time by itself.
    pub(crate) fn force_again(&self, before: &Tree) -> Result<Option<WriteDoubt>, CaptureError> {
        match self.ground {
            Ground::JuiceFs(_) | Ground::Remote => self.force(before),
            Ground::Disk | Ground::Memory => Ok(None),
        }
    }

    /// Waits until the mount holds nothing, for as long as it may take.
    fn wait(&self, unknown: u64) -> Result<Option<WriteDoubt>, CaptureError> {
        let mut waited = 0;
        while !self.ground.holds_nothing(&self.ours) {
            if waited >= PATIENCE_MS {
                return Ok(Some(format!(
                    "somebody has had files of the JuiceFS mount open for {} s, and it cannot be \
                     asked what it holds of {unknown} of the files",
                    PATIENCE_MS / 1000
                )));
            }
            if !self.progress.keep_going() {
                return Err(CaptureError::Stopped);
            }
            self.clock.sleep_ms(PAUSE_MS);
            waited += PAUSE_MS;
        }
        Ok(None)
    }
}

/// Writes out what the kernel has of anybody's writes. Answers whether that is all
/// there is.
fn sync(source: &OwnedFd, ours: &Ours<'_>, ground: &Ground) -> Result<bool, CaptureError> {
    tree::sync_filesystem(source).map_err(CaptureError::whole("write out what was written to"))?;
    Ok(!ground.is_written_to_by_others() || ground.holds_nothing(ours))
}

/// Brings what was written to where a look sees it, as far as that can be done, for
/// those to whom it proves nothing. `files` is asked for only if it has to be.
pub(crate) fn bring_in(
    source: &OwnedFd,
    ours: &Ours<'_>,
    ground: &Ground,
    files: impl FnOnce() -> Result<Tree, WalkError>,
    threads: usize,
    progress: &dyn Progress,
) -> Result<(), CaptureError> {
    if let Ok(false) = sync(source, ours, ground)
        && let Ok(files) = files()
    {
        hand_in(source, &files, threads, progress)?;
    }
    Ok(())
}

/// Makes the mount hand in what it has of each file that is open for writing:
/// closing a file does that, and so does reading from it. Answers with the number
/// of files of which nothing is known.
fn hand_in(
    source: &OwnedFd,
    before: &Tree,
    threads: usize,
    progress: &dyn Progress,
) -> Result<u64, CaptureError> {
    let tasks = before.in_parts(CHUNK, |branch, at| {
        let stat = branch.stat_of(&branch.nodes[at]);
        // What was written makes a file longer at once.
        stat.kind == NodeKind::File && stat.size > 0
    });
    let unknown = AtomicU64::new(0);
    workers::try_each(threads, tasks, |(branch, part), _| {
        if !progress.keep_going() {
            return Err(CaptureError::Stopped);
        }
        // What is gone by now is a change, which the second look will see.
        let Ok(dir) = tree::open_below(source, branch.path.components()) else { return Ok(()) };
        for at in part {
            let Ok(file) = tree::open_file(&dir, branch.name(&branch.nodes[at])) else {
                continue;
            };
            if !is_handed_in(&file) {
                unknown.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    Ok(unknown.into_inner())
}

impl Ground {
    /// Whether the kernel is not the only one that writes out: a mount of JuiceFS holds
    /// what it was handed, and hands it in when it likes.
    fn is_written_to_by_others(&self) -> bool {
        sabotage!(CaptureRule::HandedInFirst => false);
        matches!(self, Ground::JuiceFs(_))
    }

    /// Whether the mount holds nothing of anybody's: nobody else has anything open. The
    /// bytes that it says it holds do not tell: pages of mapped files may be on the way
    /// to it, which it does not count yet, and of which the kernel counts no few exactly.
    fn holds_nothing(&self, ours: &Ours<'_>) -> bool {
        sabotage!(CaptureRule::NobodyElse => matches!(self, Ground::JuiceFs(Some(_))));
        let Ground::JuiceFs(Some(point)) = self else { return false };
        ours.are_all_that_is_open(point)
    }
}

/// Whether all that was written to a file before is handed in now.
fn is_handed_in(file: &OwnedFd) -> bool {
    matches!(lease::is_open_for_writing(file), Ok(false))
        || (has_arrived(file).is_ok() && read_through(file).is_ok())
}

/// Waits until all that was stored into a mapped file has reached the server of it. A
/// `syncfs` of a filesystem in user space sends pages and does not wait for them, and a
/// read waits for those that it reads.
fn has_arrived(file: &OwnedFd) -> io::Result<()> {
    sabotage!(CaptureRule::ArrivedFirst => Ok(()));
    tree::sync_content(file)
}

/// Reads a byte from the server of the file and not from the kernel's memory.
fn read_through(file: &OwnedFd) -> io::Result<()> {
    tree::bypass_memory(file)?;
    tree::read_at(file, &mut [0], 0).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "plays a mount")]
    fn a_mount_that_does_not_say_what_it_holds_may_hold_something() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = tree::open_root(dir.path()).expect("opened");
        let nothing = |point: Option<&Path>| {
            Ground::JuiceFs(point.map(Path::to_owned)).holds_nothing(&Ours::only(&source))
        };
        assert!(!nothing(None));
        assert!(!nothing(Some(dir.path())), "no counters");
        let say = |text: &str| std::fs::write(dir.path().join(".stats"), text).expect("counters");
        say("juicefs_used_buffer_size_bytes 0\n");
        assert!(!nothing(Some(dir.path())), "no count of open files");
    }
}
