//! What runs under `jvs run`: it writes its mark, and then again and again, outside of
//! the repository, that it is alive.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use fs_err::OpenOptions;

use crate::clock::boot_ns;

/// Lives for `ms`, writes `note` into `mark`, and tells `file` when it was alive.
///
/// # Errors
/// If it cannot write.
pub fn beat(file: &Path, mark: &Path, note: &str, ms: u64) -> std::io::Result<()> {
    let token = std::env::var("JVS_FENCING_TOKEN").unwrap_or_default();
    let mut beats = OpenOptions::new().create(true).append(true).open(file)?;
    let end = boot_ns() + ms * 1_000_000;
    beats.write_all(format!("token {token}\n").as_bytes())?;
    // A line is one write: what follows a kill is never half a number.
    let mut tell = || beats.write_all(format!("{}\n", boot_ns()).as_bytes());
    tell()?;
    super::worker::write_mark(mark, note)?;
    while boot_ns() < end {
        tell()?;
        std::thread::sleep(Duration::from_millis(10));
    }
    tell()
}

/// The token of a run, and when it was first and last alive. A last line that was cut
/// short is none.
pub(super) fn heard(file: &Path) -> Option<(u64, u64, u64)> {
    let text = fs_err::read_to_string(file).ok()?;
    let whole = &text[..=text.rfind('\n')?];
    let mut lines = whole.lines();
    let token = lines.next()?.strip_prefix("token ")?.parse().ok()?;
    let mut beats = lines.filter_map(|line| line.parse().ok());
    let first = beats.next()?;
    Some((token, first, beats.next_back().unwrap_or(first)))
}
