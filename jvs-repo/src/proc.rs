//! What `/proc` tells of this host and its processes.
//!
//! The only reader of `/proc`; nothing here touches the repository.

#![allow(
    clippy::disallowed_methods,
    reason = "/proc is not the control plane and has no symlinks to escape through"
)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The random id that the kernel drew at boot.
pub fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// The id that this installation drew when it was made; empty if it has none, as
/// in many containers.
pub fn machine_id() -> String {
    let read = |path: &str| fs::read_to_string(path).ok();
    let text = read("/etc/machine-id").or_else(|| read("/var/lib/dbus/machine-id"));
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// The PID namespace that process ids of this process belong to.
pub fn pid_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// The time namespace whose boot-time clock this process reads.
pub fn time_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/time").ok()?;
    link.to_str()?.strip_prefix("time:[")?.strip_suffix(']')?.parse().ok()
}

/// What tells one process from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Clock ticks after boot at which it started.
    pub start_ticks: u64,
    /// The leader of its terminal session.
    pub session_leader: u32,
    /// Exited, but not yet waited for.
    pub zombie: bool,
}

/// Looks a process up; `None` if there is no such process.
pub fn process_stat(pid: u32) -> Option<ProcessStat> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name is in parentheses and may itself contain any of them.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    Some(ProcessStat {
        zombie: matches!(*fields.first()?, "Z" | "X"),
        session_leader: fields.get(3)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

/// A process as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// The process that it is a child of.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Clock ticks after boot at which it started.
    pub start_ticks: u64,
    /// Exited, but not yet waited for.
    pub zombie: bool,
    /// The name of its program, cut by the kernel.
    pub name: String,
}

/// Looks a process up; `None` if there is no such process.
pub fn process(pid: u32) -> Option<Process> {
    // Not as text: whoever names a process may use any bytes.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (before, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        // One that cannot be seen from here has none.
        group: fields.get(2)?.parse().unwrap_or(0),
        start_ticks: fields.get(19)?.parse().ok()?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        name: before.split_once('(')?.1.to_owned(),
    })
}

/// Every process that can be seen from here. Not one moment: some may be gone
/// already, and some may have come.
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// The cgroup of this process in the unified hierarchy, as the kernel writes it.
pub fn cgroup() -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    text.lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned))
}

/// The mounts that this process sees, in the kernel's own format.
pub fn mountinfo() -> Option<String> {
    let bytes = fs::read("/proc/self/mountinfo").ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A path in the kernel's list of mounts, which writes space, tab, newline and
/// backslash as `\` and three octal digits.
pub fn mount_field(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        match tail {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] if *first == b'\\' => {
                plain.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => {
                plain.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(plain).into()
}

/// This host's name.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_and_alive() {
        let me = process_stat(std::process::id()).expect("own stat is readable");
        assert!(!me.zombie);
        assert!(me.start_ticks > 0);
        assert!(pid_namespace().is_some());
        assert!(!hostname().is_empty());
    }

    #[test]
    fn this_process_is_among_all_of_them_and_has_a_parent() {
        let me = std::process::id();
        let found = processes().into_iter().find(|process| process.pid == me).expect("found");
        assert_eq!(Some(&found), process(me).as_ref());
        assert_eq!(found.parent, std::os::unix::process::parent_id());
        assert!(!found.name.is_empty() && !found.zombie);
    }

    #[test]
    fn a_pid_that_cannot_exist_is_not_found() {
        assert_eq!(process_stat(u32::MAX), None);
    }

    #[test]
    fn the_kernel_s_escapes_are_undone() {
        assert_eq!(mount_field(br"/a\040b\134c"), PathBuf::from(r"/a b\c"));
        assert_eq!(mount_field(br"/ends\04"), PathBuf::from(r"/ends\04"));
    }
}
