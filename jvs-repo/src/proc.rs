//! What `/proc` tells of this host and its processes.
//!
//! The only reader of `/proc`; nothing here touches the repository.

#![allow(
    clippy::disallowed_methods,
    reason = "/proc is not the control plane and has no symlinks to escape through"
)]

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::{getegid, geteuid, getgroups};

use crate::account::{Account, are_the_hosts_own};

/// A file of `/proc`, which says nothing of its size: in one read, most of them, where to
/// begin with few bytes takes many.
fn read(path: &str) -> io::Result<Vec<u8>> {
    const PAGE: usize = 4096;
    let mut bytes = Vec::with_capacity(PAGE);
    fs::File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The random id that the kernel drew at boot. It never changes.
pub fn boot_id() -> Option<String> {
    static DRAWN: OnceLock<String> = OnceLock::new();
    if DRAWN.get().is_none() {
        let text = String::from_utf8(read("/proc/sys/kernel/random/boot_id").ok()?).ok()?;
        let _ = DRAWN.set(text.trim().to_owned());
    }
    DRAWN.get().cloned()
}

/// The id that this installation drew when it was made; empty if it has none, as
/// in many containers.
pub fn machine_id() -> String {
    static DRAWN: OnceLock<String> = OnceLock::new();
    let read = |path: &str| fs::read_to_string(path).ok();
    let text = || read("/etc/machine-id").or_else(|| read("/var/lib/dbus/machine-id"));
    DRAWN.get_or_init(|| text().map(|text| text.trim().to_owned()).unwrap_or_default()).clone()
}

/// The PID namespace that process ids of this process belong to. `None` if `/proc` shows
/// those of another one, as where a namespace was made and nothing mounted: what is looked
/// up there is somebody else.
pub fn pid_namespace() -> Option<u64> {
    let status = read("/proc/self/status").ok()?;
    if !shows_own_pids(&String::from_utf8_lossy(&status)) {
        return None;
    }
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// `NSpid` has the ids of a process in the namespace that `/proc` shows and in each below
/// it, down to its own.
fn shows_own_pids(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.is_none_or(|ids| ids.split_ascii_whitespace().count() == 1)
}

/// As whom this process runs; `None` where that says nothing outside of its user namespace.
pub fn account() -> Option<Account> {
    let maps = ["/proc/self/uid_map", "/proc/self/gid_map"];
    if !maps.iter().all(|map| fs::read_to_string(map).is_ok_and(|map| are_the_hosts_own(&map))) {
        return None;
    }
    let further = getgroups().unwrap_or_default();
    let gids = [getegid()].into_iter().chain(further).map(|gid| gid.as_raw()).collect();
    Some(Account { uid: geteuid().as_raw(), gids })
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
    let StatLine { start_ticks, session_leader, zombie, .. } = stat_of(pid)?;
    Some(ProcessStat { start_ticks, session_leader, zombie })
}

/// The controlling terminal of a process, such as `pts/3`; `None` if it has none or
/// there is no such process.
pub fn terminal_of(pid: u32) -> Option<String> {
    terminal_name(stat_of(pid)?.terminal)
}

/// Does a terminal end with that process?
pub fn leads_terminal(pid: u32) -> bool {
    let leads = process_stat(pid).is_some_and(|stat| stat.session_leader == pid);
    leads && terminal_of(pid).is_some()
}

/// The name of the terminal with that device number, as proc(5) encodes it.
fn terminal_name(number: u32) -> Option<String> {
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    match (major, minor) {
        (0, _) => None,
        (4, 0..64) => Some(format!("tty{minor}")),
        (4, _) => Some(format!("ttyS{}", minor - 64)),
        (136..144, _) => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        _ => Some(format!("{major}:{minor}")),
    }
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
    let StatLine { parent, group, start_ticks, zombie, name, .. } = stat_of(pid)?;
    Some(Process { pid, parent, group, start_ticks, zombie, name })
}

/// What is looked at of `/proc/<pid>/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatLine {
    name: String,
    zombie: bool,
    parent: u32,
    group: u32,
    session_leader: u32,
    terminal: u32,
    start_ticks: u64,
}

fn stat_of(pid: u32) -> Option<StatLine> {
    stat_in(&read(&format!("/proc/{pid}/stat")).ok()?)
}

/// `PID (NAME) STATE PARENT GROUP SESSION TERMINAL …`. The name may have parentheses and
/// spaces in it, and any bytes: whoever starts a process chooses it, and the kernel cuts it
/// in the middle of a character.
pub(crate) fn stat_in(bytes: &[u8]) -> Option<StatLine> {
    let stat = String::from_utf8_lossy(bytes);
    let (before, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().take(20).collect();
    Some(StatLine {
        name: before.split_once('(')?.1.to_owned(),
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        // One that cannot be seen from here has none.
        group: fields.get(2)?.parse().unwrap_or(0),
        session_leader: fields.get(3)?.parse().ok()?,
        terminal: fields.get(4)?.parse::<i32>().ok()?.cast_unsigned(),
        start_ticks: fields.get(19)?.parse().ok()?,
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
    let text = String::from_utf8(read("/proc/self/cgroup").ok()?).ok()?;
    text.lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned))
}

/// The environment that a process was given, as the kernel shows it: entries that end in
/// zero bytes. Empty if it cannot be seen.
pub fn environment(pid: u32) -> Vec<u8> {
    const LONGEST: u64 = 4 << 20;
    let mut bytes = Vec::new();
    let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else { return bytes };
    let _ = file.take(LONGEST).read_to_end(&mut bytes);
    bytes
}

/// The words of a process's command, on one line of at most 120 characters; `None`
/// if there is no such process or it has none.
pub fn command_words(pid: u32) -> Option<String> {
    const LONGEST: usize = 120;
    let bytes = read(&format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split('\0').filter(|word| !word.is_empty()).collect();
    let line: String = words
        .join(" ")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST)
        .collect();
    (!line.is_empty()).then_some(line)
}

/// The mounts that this process sees, in the kernel's own format.
pub fn mountinfo() -> io::Result<Vec<u8>> {
    read("/proc/self/mountinfo")
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

/// How the user namespace of this process spells the ids of users and groups; nothing if
/// as the host does, or if that cannot be seen.
pub fn id_map() -> Option<String> {
    let read = |file: &str| -> Option<String> {
        let map = fs::read_to_string(format!("/proc/self/{file}")).ok()?;
        let lines = map.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        Some(lines.collect::<Vec<_>>().join(", "))
    };
    let (users, groups) = (read("uid_map")?, read("gid_map")?);
    let all = |map: &str| map == format!("0 0 {}", u32::MAX);
    (!(all(&users) && all(&groups))).then(|| format!("users {users}; groups {groups}"))
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
        assert!(shows_own_pids("Name:\tjvs\nNSpid:\t7\nNSpgid:\t7\t1\n"));
        assert!(!shows_own_pids("Name:\tjvs\nNSpid:\t4711\t7\n"), "another number from there");
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
    fn terminals_have_the_names_that_people_know() {
        assert_eq!(terminal_name(0), None);
        assert_eq!(terminal_name(136 << 8 | 3).as_deref(), Some("pts/3"));
        assert_eq!(terminal_name(137 << 8 | 1).as_deref(), Some("pts/257"));
        assert_eq!(terminal_name(4 << 8 | 1).as_deref(), Some("tty1"));
        assert_eq!(terminal_name(4 << 8 | 64).as_deref(), Some("ttyS0"));
    }

    #[test]
    fn a_process_with_a_name_in_any_bytes_is_found() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().expect("tempdir");
        // Latin-1; and a character that the kernel cuts in two, as it cuts names after 15
        // bytes.
        for name in [b"gr\xf6sse".as_slice(), "ein-langer-n\u{e4}\u{e4}".as_bytes()] {
            let program = dir.path().join(std::ffi::OsStr::from_bytes(name));
            std::os::unix::fs::symlink("/bin/sleep", &program).expect("linked");
            let mut child = std::process::Command::new(&program).arg("60").spawn().expect("runs");
            let found = (process_stat(child.id()), process(child.id()));
            child.kill().and_then(|()| child.wait()).expect("ended");
            let (stat, process) = (found.0.expect("a stat"), found.1.expect("a process"));
            assert_eq!((stat.start_ticks, stat.zombie), (process.start_ticks, process.zombie));
        }
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
