//! Whether a file is open for writing somewhere on this host.
//!
//! The kernel counts writers of every file and tells nobody, except by refusing a
//! read lease (`F_SETLEASE`): that is asked for, and released at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Which signal tells that somebody waits for a lease. Not in the C library's list.
const F_SETSIG: libc::c_int = 10;

/// Whether anybody on this host has the file open for writing, or mapped so that it
/// can be written to. `file` is open for reading only. The kernel answers the process that
/// owns the file, and root; others get an error.
///
/// A process that opens the file for writing in this very moment waits for the lease, a
/// few microseconds, and this process is sent a signal: one that is ignored unless
/// somebody asked for it.
pub fn is_open_for_writing(file: impl AsFd) -> io::Result<bool> {
    let fd = file.as_fd().as_raw_fd();
    let call = |command, argument: libc::c_int| {
        // SAFETY: these three commands take an integer and touch no memory.
        match unsafe { libc::fcntl(fd, command, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // The usual signal would end the process.
    call(F_SETSIG, libc::SIGURG)?;
    match call(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => {
            call(libc::F_SETLEASE, libc::F_UNLCK)?;
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_file_has_a_writer_as_long_as_somebody_has_it_open_for_writing() {
        let dir = std::env::temp_dir().join(format!("jvs-lease-{}", std::process::id()));
        let writer = File::create(&dir).expect("a file");
        let reader = File::open(&dir).expect("the file");
        assert!(is_open_for_writing(&reader).expect("our own file"));
        drop(writer);
        for _ in 0..3 {
            assert!(!is_open_for_writing(&reader).expect("our own file"), "and left as it was");
        }
        drop(File::options().append(true).open(&dir).expect("nobody is in the way"));
        std::fs::remove_file(&dir).expect("removed");
    }
}
