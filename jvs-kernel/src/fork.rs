//! A copy of this process that goes on with a function of its own.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::Pid;

/// Where the copy is put at its birth, so that there is no moment in which it is
/// elsewhere.
#[derive(Debug, Clone, Copy)]
pub enum ForkInto<'p> {
    /// Where its parent is.
    Here,
    /// Into a cgroup, named by a descriptor of its directory. A process that is moved
    /// there later makes the kernel wait for all processors: milliseconds, not
    /// microseconds.
    Cgroup(BorrowedFd<'p>),
    /// The first process of a new PID namespace, with mounts of its own. With `user`
    /// also in a user namespace of its own, which a user other than root needs.
    Namespace {
        /// A user namespace too.
        user: bool,
    },
}

/// Forks. The copy calls `child` and ends with its answer; nothing else of the
/// program runs in it.
///
/// Refused in a process with several threads: only the one that forks is copied, and
/// whatever the others had locked would stay locked in the copy for ever.
pub fn fork(place: ForkInto<'_>, child: impl FnOnce() -> u8) -> io::Result<Pid> {
    if !has_one_thread()? {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this process has threads"));
    }
    let answer = match place {
        // SAFETY: the only thread is the one that forks, so the copy is whole.
        ForkInto::Here => i64::from(unsafe { libc::fork() }),
        ForkInto::Cgroup(cgroup) => {
            let fd = u64::try_from(cgroup.as_raw_fd()).unwrap_or(u64::MAX);
            clone3(Flags { flags: INTO_CGROUP, cgroup: fd, ..Flags::default() })
        }
        ForkInto::Namespace { user } => {
            let user = if user { libc::CLONE_NEWUSER } else { 0 };
            let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | user;
            clone3(Flags { flags: u64::from(flags.unsigned_abs()), ..Flags::default() })
        }
    };
    match answer {
        0 => {
            // A panic must not unwind into what the parent was about to do.
            let status = Exit(1);
            let answer = child();
            std::mem::forget(status);
            exit_now(answer)
        }
        pid => match i32::try_from(pid).ok().and_then(|pid| Pid::from_raw(pid.max(0))) {
            Some(pid) => Ok(pid),
            None => Err(io::Error::last_os_error()),
        },
    }
}

/// Ends the process when it is dropped.
struct Exit(u8);

impl Drop for Exit {
    fn drop(&mut self) {
        exit_now(self.0);
    }
}

/// Ends the process and runs nothing that the program wanted run at its end: that is
/// for the process that it was copied from.
fn exit_now(status: u8) -> ! {
    // SAFETY: it does not return, and touches no memory of the program.
    unsafe { libc::_exit(i32::from(status)) }
}

/// `/proc/self/task` is a directory with one directory per thread.
fn has_one_thread() -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(std::path::Path::new("/proc/self/task").metadata()?.nlink() == 3)
}

/// `CLONE_INTO_CGROUP`, which does not fit into the type that the C library has it in.
const INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` of the kernel, as of version 2.
#[repr(C)]
#[derive(Default)]
struct Flags {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

fn clone3(flags: Flags) -> i64 {
    let flags = Flags { exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()), ..flags };
    // SAFETY: without CLONE_VM and with no stack of its own the copy has this very
    // stack and memory, copied: as fork. `flags` outlives the call.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const flags, size_of::<Flags>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_not_copied() {
        // The test itself runs in one beside the first.
        let refused = fork(ForkInto::Here, || 0).expect_err("several threads");
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
    }
}
