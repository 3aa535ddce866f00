//! The memory that the program itself takes, and programs that end with it.

use std::ffi::{CStr, c_void};
use std::io;
use std::os::raw::c_int;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// A program that is started by `command` is asked to end (SIGTERM) as soon as the thread
/// that started it has ended, in whatever way. What that program starts in turn is not.
pub fn end_with_this_process(command: &mut Command) {
    let starter = std::process::id();
    let bind = move || {
        // SAFETY: both calls only speak to the kernel, and take no pointer.
        let (bound, parent) = unsafe {
            let term = libc::SIGTERM as libc::c_ulong;
            (libc::prctl(libc::PR_SET_PDEATHSIG, term), libc::getppid())
        };
        if bound != 0 {
            return Err(io::Error::last_os_error());
        }
        // It ended before it was bound to: there will be no signal.
        match u32::try_from(parent) == Ok(starter) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: between fork and exec the function makes two system calls and allocates nothing.
    unsafe { command.pre_exec(bind) };
}

/// Lets go of the pages of this program and of its libraries that nothing was ever written
/// to: its code and its constants. What is used again comes back from where it came from, a
/// page that the system has in its cache as a rule. For a process that waits for hours after
/// a beginning that needed far more of the program than it will ever need again.
pub fn let_go_of_unused() {
    // SAFETY: the callback takes what the loader gives it, and no pointer outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(let_go), std::ptr::null_mut()) };
}

fn page_size() -> u64 {
    // SAFETY: it only answers.
    let answer = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // More than any machine has, should it not be known: fewer pages are whole then.
    u64::try_from(answer).unwrap_or(1 << 20)
}

/// Of one loaded object. Never ends the walk.
unsafe extern "C" fn let_go(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut c_void,
) -> c_int {
    // SAFETY: the loader gives a valid description of an object that stays loaded meanwhile,
    // with a name that ends.
    let (base, headers, name) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (info.dlpi_addr, headers, CStr::from_ptr(info.dlpi_name).to_bytes())
    };
    // The program has no name here, and what comes from no file (the kernel's own) no path.
    if !(name.is_empty() || name.starts_with(b"/")) {
        return 0;
    }
    let page = page_size();
    for header in headers {
        let is_written = header.p_flags & libc::PF_W != 0;
        if header.p_type != libc::PT_LOAD || is_written {
            continue;
        }
        // Whole pages of this segment alone: what relocations were written to is in others.
        let start = (base + header.p_vaddr).next_multiple_of(page);
        let end = (base + header.p_vaddr + header.p_memsz) / page * page;
        if start < end {
            let length = usize::try_from(end - start).unwrap_or(0);
            // SAFETY: a private mapping of a file that is never written to, so that each of
            // its pages reads the same when it is taken from the file again.
            unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_DONTNEED) };
        }
    }
    0
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what the kernel tells of this process")]
mod tests {
    use super::*;

    fn resident_kb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("readable");
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).expect("told");
        line.split_whitespace().next().and_then(|kb| kb.parse().ok()).expect("a number")
    }

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let started = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("600");
            end_with_this_process(&mut command);
            command.spawn().expect("started")
        });
        let status = started.join().expect("the thread ends").wait().expect("it ends, too");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(libc::SIGTERM));
    }

    #[test]
    fn what_is_let_go_of_is_there_again_when_it_is_used() {
        let before = (resident_kb(), format!("{:?}", resident_kb as fn() -> u64));
        let_go_of_unused();
        assert!(resident_kb() < before.0);
        assert_eq!(format!("{:?}", resident_kb as fn() -> u64), before.1);
    }
}
