//! What a JuiceFS client was asked, as it says itself in its `.accesslog`.

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
/// A file that is looked up until the kernel has forgotten it.
const FORGOTTEN: &str = ".forgotten-by-now";
/// How long the log may be silent.
const SILENCE: Duration = Duration::from_secs(20);

/// One request that a client was asked for, without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it was asked for, such as `lookup`.
    pub name: String,
    /// The same with its arguments, and what was answered.
    pub line: String,
}

impl Request {
    /// Does a process wait for the answer? The kernel gives up a descriptor by itself, some
    /// time after it was closed.
    pub fn is_waited_for(&self) -> bool {
        !matches!(self.name.as_str(), "release" | "releasedir")
    }
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

/// `2026.01.01 00:00:00.000000 [uid:0,gid:0,pid:1] lookup (1,x): … <0.000001>`
/// without its times; nothing for the marks that the client writes when idle.
fn request(line: &str) -> Option<Request> {
    let (_, asked) = line.split_once("] ")?;
    let asked = asked.rsplit_once(" <").map_or(asked, |(asked, _)| asked);
    let is_of_log = asked.contains(".accesslog") || asked.contains(LOG_INODE);
    let name = asked.split(' ').next().filter(|_| !is_of_log)?;
    Some(Request { name: name.to_owned(), line: asked.to_owned() })
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
}
