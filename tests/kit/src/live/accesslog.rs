//! What a JuiceFS client was asked, as it says itself in its `.accesslog`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use fs_err::File;

use super::process::{DEADLINE, eventually};

/// The inode of the log itself, which is nobody's operation.
const LOG_INODE: &str = "(9223372032559808513,";
/// A name that is looked up once `work` is done, so that the log has an end.
const END: &str = "the-end-of-the-listing";
/// How a request for the attributes of the mount's root begins.
const ROOT: &str = "getattr (1)";
/// A file that is looked up until the kernel has forgotten it.
const FORGOTTEN: &str = ".forgotten-by-now";
/// How long the kernel knows a name or attributes by default (`--attr-cache`, `--entry-cache`).
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// How long the log may be silent.
const SILENCE: Duration = Duration::from_secs(20);

/// One request that a client was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it was asked for, such as `lookup`.
    pub name: String,
    /// The same with its arguments, and what was answered.
    pub line: String,
    /// When it was answered, since midnight.
    at: Duration,
}

impl Request {
    /// Does a process wait for the answer? The kernel gives up a descriptor by itself, some
    /// time after it was closed.
    pub fn is_waited_for(&self) -> bool {
        !matches!(self.name.as_str(), "release" | "releasedir")
    }

    /// The inode whose attributes the answer has, if the request was for a name or attributes
    /// that the kernel remembers: `lookup (1,x): (7,[…` is about 7.
    fn remembered(&self) -> Option<&str> {
        let asks = matches!(self.name.as_str(), "lookup" | "getattr");
        let (_, answer) = self.line.split_once("): (").filter(|_| asks)?;
        answer.split_once(",[").map(|(inode, _)| inode)
    }
}

/// Without those requests that were only made because the work took so long that the kernel
/// forgot what it had been told in the middle of it: on a busy machine every second adds some.
pub fn without_forgotten(requests: Vec<Request>) -> Vec<Request> {
    let mut told: HashMap<String, Duration> = HashMap::new();
    let mut kept = Vec::new();
    for request in requests {
        let before = request.remembered().and_then(|of| told.insert(of.to_owned(), request.at));
        if before.is_none_or(|before| since(before, request.at) < KNOWN_FOR) {
            kept.push(request);
        }
    }
    kept
}

/// From one time of day to a later one, past midnight, too.
fn since(earlier: Duration, later: Duration) -> Duration {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    later.checked_sub(earlier).unwrap_or_else(|| (later + DAY).saturating_sub(earlier))
}

/// The requests that the client at `mount` was asked for during `work`, in their order.
pub fn requests(mount: &Path, work: impl FnOnce()) -> Vec<Request> {
    let log = File::open(mount.join(".accesslog")).expect("a JuiceFS mount has a log");
    let (lines, read) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    work();
    // It is not there; being asked for is all that it is for.
    let _ = rustix::fs::stat(mount.join(END));
    let mut asked = Vec::new();
    loop {
        let line = read.recv_timeout(SILENCE).expect("the log goes on");
        if line.contains(END) {
            // Looking for the end may ask for the attributes of the root first.
            asked.pop_if(|last: &mut Request| last.line.starts_with(ROOT));
            return asked;
        }
        asked.extend(request(&line));
    }
}

/// Waits until the kernel has forgotten all names and attributes of the mount that it knows
/// now, so that whoever comes next has to ask for each.
pub fn all_is_forgotten(mount: &Path) {
    let last = mount.join(FORGOTTEN);
    fs_err::write(&last, "").expect("a file");
    // Remembered last, so forgotten last.
    eventually("the kernel asks again", DEADLINE, || {
        let asked = requests(mount, || {
            rustix::fs::stat(&last).expect("a file");
        });
        asked.iter().any(|request| request.line.contains(FORGOTTEN))
    });
}

/// `2026.01.01 00:00:00.000000 [uid:0,gid:0,pid:1] lookup (1,x): … <0.000001>`, its times
/// apart; nothing for the marks that the client writes when idle.
fn request(line: &str) -> Option<Request> {
    let (who, asked) = line.split_once("] ")?;
    let at = time_of_day(who.split(' ').nth(1)?)?;
    let asked = asked.rsplit_once(" <").map_or(asked, |(asked, _)| asked);
    let is_of_log = asked.contains(".accesslog") || asked.contains(LOG_INODE);
    let name = asked.split(' ').next().filter(|_| !is_of_log)?;
    Some(Request { name: name.to_owned(), line: asked.to_owned(), at })
}

/// `01:02:03.000004` since midnight.
fn time_of_day(text: &str) -> Option<Duration> {
    let (hms, micros) = text.split_once('.')?;
    let seconds = hms
        .split(':')
        .try_fold(0, |seconds: u64, part| Some(seconds * 60 + part.parse::<u64>().ok()?))?;
    Some(Duration::from_secs(seconds) + Duration::from_micros(micros.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_without_its_times() {
        let line = "2026.01.01 00:00:00.000001 [uid:0,gid:0,pid:1] lookup (1,x): OK <0.000001>";
        let told = request(line).expect("a request");
        assert_eq!((told.name.as_str(), told.line.as_str()), ("lookup", "lookup (1,x): OK"));
        assert!(told.is_waited_for());
        assert_eq!(request("#"), None);
    }

    /// The requests of these, each a second's part of a day and what was asked.
    fn of(lines: &[(&str, &str)]) -> Vec<Request> {
        let line = |(at, asked): &(&str, &str)| {
            request(&format!("2026.01.01 {at} [uid:0,gid:0,pid:1] {asked} <0.000001>"))
        };
        lines.iter().map(|told| line(told).expect("a request")).collect()
    }

    #[test]
    fn what_the_kernel_forgot_in_the_middle_is_not_asked_twice() {
        let quick = of(&[
            ("00:00:00.100000", "lookup (1,x): (7,[-]) - OK"),
            ("00:00:00.900000", "getattr (7): (7,[-]) - OK"),
            ("00:00:00.950000", "lookup (1,y): - no such file or directory"),
            ("00:00:03.000000", "lookup (1,y): - no such file or directory"),
            ("00:00:03.100000", "open (7,0x8000) [fh:1] - OK"),
        ]);
        assert_eq!(
            without_forgotten(quick.clone()),
            quick,
            "nothing that was known is asked again"
        );

        let slow = of(&[
            ("23:59:59.100000", "lookup (1,x): (7,[-]) - OK"),
            ("00:00:00.200000", "getattr (7): (7,[-]) - OK"),
            ("00:00:01.300000", "lookup (1,x): (7,[-]) - OK"),
            ("00:00:01.400000", "lookup (1,z): (8,[-]) - OK"),
        ]);
        assert_eq!(without_forgotten(slow.clone()), [slow[0].clone(), slow[3].clone()]);
    }
}
