//! Which descriptors a process has, beyond those that it opened itself.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Closes every descriptor above the standard streams but these. For a process
/// that has just begun, or has just been forked off: whatever it was left by its
/// parent (the lock of a script, the end of a pipe that somebody reads to its end)
/// it neither needs nor may keep.
///
/// Not for a process that uses what it opened itself without naming it here: that
/// would find its descriptors gone.
pub fn close_all_but(kept: &[BorrowedFd<'_>]) {
    let mut kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).filter(|fd| *fd > 2).collect();
    kept.sort_unstable();
    let mut from = 3;
    for fd in kept {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    let ends = (first.unsigned_abs(), last.unsigned_abs());
    // SAFETY: closing a descriptor touches no memory. Who still names one of these
    // gets EBADF, as the documentation says.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, ends.0, ends.1, 0) };
    if answer != 0 {
        // A kernel before 5.9, or a sandbox: one by one, as far as there may be any.
        for fd in first..=last.min(descriptors_max()) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

/// One above the highest descriptor that this process may have, within reason.
fn descriptors_max() -> RawFd {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| RawFd::try_from(limit).ok()).unwrap_or(65_536).min(65_536)
}
