//! What a turn must survive a power cut for, and nothing else: the floor under a lock that
//! is as durable as that of jvs.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The first word of this program when it is what runs under `flock(1)`.
pub(crate) const ROLE: &str = "durable";

/// As many as an acquisition and a release make (`benches/lock/README.md`).
const FSYNCS: usize = 5;

/// The command that writes to the file, under a lock that is another file.
pub(crate) fn under_flock(lock: &Path, file: &Path) -> Command {
    let mut command = Command::new("flock");
    command.arg(lock).arg(std::env::current_exe().expect("this program")).arg(ROLE).arg(file);
    command
}

/// Makes a line durable once for every fsync of a turn.
pub(crate) fn write(file: &Path) {
    let mut file = fs_err::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .expect("a file to append to");
    for _ in 0..FSYNCS {
        file.write_all(b"a line of an audit log\n").expect("a line");
        file.sync_all().expect("an fsync");
    }
}
