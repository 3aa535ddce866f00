//! What a JuiceFS client was asked, as it says itself in its `.accesslog`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use fs_err::File;

/// The inode of the log itself, which is nobody's operation.
const LOG_INODE: &str = "(9223372032559808513,";
/// A name that is looked up once `work` is done, so that the log has an end.
const END: &str = "the-end-of-the-listing";
const DEADLINE: Duration = Duration::from_secs(20);

/// The operations that the client at `mount` was asked for during `work`,
/// without their times.
pub(crate) fn operations(mount: &Path, work: impl FnOnce()) -> Vec<String> {
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
        let line = read.recv_timeout(DEADLINE).expect("the log goes on");
        if line.contains(END) {
            return asked;
        }
        asked.extend(operation(&line));
    }
}

/// `2026.01.01 00:00:00.000000 [uid:0,gid:0,pid:1] lookup (1,x): … <0.000001>`
/// without its times; nothing for the marks that the client writes when idle.
fn operation(line: &str) -> Option<String> {
    let (_, asked) = line.split_once("] ")?;
    let asked = asked.rsplit_once(" <").map_or(asked, |(asked, _)| asked);
    (!asked.contains(".accesslog") && !asked.contains(LOG_INODE)).then(|| asked.to_owned())
}
