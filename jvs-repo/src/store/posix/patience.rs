//! Reading what may never answer. A file's content can hang where its name does
//! not: on JuiceFS names are the metadata engine's and content the object store's,
//! and content that a dead host never uploaded is waited for for minutes.
//!
//! What the kernel has in memory is read at once, where it can say that it has. Every
//! other read is done by a helper thread, which is given up when its time is over.
//! One that was given up goes on hanging, so the same file is not asked for again
//! before it has come back: there is at most one such thread a file.

use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs;
use rustix::io::ReadWriteFlags;

/// What a helper thread will answer.
type Pending = Receiver<io::Result<Vec<u8>>>;
/// Device and inode.
type File = (u64, u64);

/// Those who were given up and have not come back.
static HANGING: Mutex<Vec<(File, Pending)>> = Mutex::new(Vec::new());

/// The first `length` bytes of a file if none of them has to be waited for; `None` if some
/// have, or if this filesystem cannot tell.
pub(super) fn at_once(fd: &OwnedFd, length: usize) -> Option<Vec<u8>> {
    const STEP: usize = 8 * 1024;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let done = bytes.len();
        bytes.resize(done + STEP.min(length - done), 0);
        let mut rest = [IoSliceMut::new(&mut bytes[done..])];
        let got = rustix::io::preadv2(fd, &mut rest, done as u64, ReadWriteFlags::NOWAIT).ok()?;
        bytes.truncate(done + got);
        // Only this is the end: what is short of it may be all that is in memory.
        if got == 0 {
            break;
        }
    }
    Some(bytes)
}

/// Runs `read` on the file, for at most `ms`.
pub(super) fn within<R>(fd: &Arc<OwnedFd>, ms: u64, read: R) -> io::Result<Vec<u8>>
where
    R: FnOnce(&OwnedFd) -> io::Result<Vec<u8>> + Send + 'static,
{
    let stat = fs::fstat(fd)?;
    #[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
    let file = (stat.st_dev as u64, stat.st_ino as u64);
    if still_hangs(file) {
        return Err(gave_up(ms));
    }
    let own = Arc::clone(fd);
    let (job, jobs) = mpsc::sync_channel::<R>(1);
    let (answer, answered) = mpsc::sync_channel(1);
    let helper = std::thread::Builder::new().name("read".into()).stack_size(128 * 1024);
    let started = helper.spawn(move || {
        if let Ok(read) = jobs.recv() {
            // Nobody listens any more if it took too long.
            let _ = answer.send(read(&own));
        }
    });
    if started.is_err() {
        // No thread to spare, so nothing can be given up. To refuse would be to call
        // unreadable what is not; to wait is what every other read does.
        return read(fd);
    }
    if job.send(read).is_err() {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    match answered.recv_timeout(Duration::from_millis(ms)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => {
            hanging().push((file, answered));
            Err(gave_up(ms))
        }
        Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn hanging() -> std::sync::MutexGuard<'static, Vec<(File, Pending)>> {
    HANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does a read of this file still hang? Forgets those that came back.
fn still_hangs(file: File) -> bool {
    let mut hanging = hanging();
    hanging.retain(|(_, answer)| matches!(answer.try_recv(), Err(TryRecvError::Empty)));
    hanging.iter().any(|(of, _)| *of == file)
}

fn gave_up(ms: u64) -> io::Error {
    let why = format!("it did not answer within {} s and was given up", ms.div_ceil(1_000));
    io::Error::new(io::ErrorKind::TimedOut, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_file() -> Arc<OwnedFd> {
        Arc::new(tempfile::tempfile().expect("a file").into())
    }

    #[test]
    fn what_is_in_memory_is_read_at_once_and_what_a_pipe_may_say_is_not() {
        let fd = some_file();
        rustix::io::pwrite(&fd, b"content", 0).expect("written");
        // Whether it can tell is up to the filesystem; what it tells is all there is.
        for (length, content) in [(100, "content"), (7, "content"), (3, "con"), (0, "")] {
            let read = at_once(&fd, length);
            assert!(read.is_none_or(|read| read == content.as_bytes()), "{length}");
        }
        let (read, _write) = rustix::pipe::pipe().expect("a pipe");
        assert_eq!(at_once(&read, 1), None);
    }

    #[test]
    fn what_answers_is_read_and_what_does_not_is_given_up() {
        let fd = some_file();
        let read = within(&fd, 60_000, |_| Ok(b"content".to_vec())).expect("answered");
        assert_eq!(read, b"content");
        let refused = within(&fd, 60_000, |_| Err(rustix::io::Errno::IO.into()));
        assert_eq!(refused.expect_err("refused").raw_os_error(), Some(5));

        let (release, held) = mpsc::channel::<()>();
        let given_up = within(&fd, 10, move |_| {
            let _ = held.recv();
            Ok(Vec::new())
        });
        assert_eq!(given_up.expect_err("given up").kind(), io::ErrorKind::TimedOut);
        let again = within(&fd, 60_000, |_| panic!("one thread per file hangs, and no more"));
        assert_eq!(again.expect_err("not asked").kind(), io::ErrorKind::TimedOut);
        let other = within(&some_file(), 60_000, |_| Ok(b"other".to_vec())).expect("asked");
        assert_eq!(other, b"other", "other files are asked for as before");

        drop(release);
        // It comes back when its thread gets to run; bounded by the test's limit.
        let back = loop {
            match within(&fd, 60_000, |_| Ok(b"back".to_vec())) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => std::thread::yield_now(),
                answer => break answer.expect("read again"),
            }
        };
        assert_eq!(back, b"back");
    }
}
