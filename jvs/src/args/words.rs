//! Limits on numbers, and on the length of notes and reasons. A longer text is refused, never
//! cut silently.

use jvs_lock::record::NOTE_MAX;
use jvs_repo::id::strict_decimal;

/// Longest reason, in bytes: a line of the audit log holds it, however it is escaped.
const REASON_MAX: usize = 2 * 1024;

/// The largest number of snapshots that a policy can name: as in the settings.
const NUMBER_MAX: u64 = 1_000_000;

/// A note for others who find a worktree locked or frozen: kept in its record.
pub(super) fn note(text: &str) -> Result<String, String> {
    within(text, NOTE_MAX)
}

/// How many of something are kept.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let number = strict_decimal(text).filter(|number| *number <= NUMBER_MAX);
    number.ok_or_else(|| format!("a whole number from 0 to {NUMBER_MAX} is expected"))
}

/// How many of something are shown.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    let number = strict_decimal(text).and_then(|number| usize::try_from(number).ok());
    let number = number.filter(|number| *number > 0);
    number.ok_or_else(|| "a whole number from 1 on is expected".to_owned())
}

/// Why something is done, for the audit log.
pub(super) fn reason(text: &str) -> Result<String, String> {
    within(text, REASON_MAX)
}

fn within(text: &str, most: usize) -> Result<String, String> {
    match text.len() {
        length if length > most => Err(format!("it has {length} bytes; at most {most} are kept")),
        _ => Ok(text.to_owned()),
    }
}
