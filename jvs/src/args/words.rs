//! Limits on numbers and times, and on the length of notes and reasons. A longer text is refused, never
//! cut silently.

use jvs_lock::record::NOTE_MAX;
use jvs_lock::state::LEASE_MAX_MS;
use jvs_repo::duration::{NotAPeriod, Period};
use jvs_repo::id::strict_decimal;

/// Longest reason, in bytes: a line of the audit log holds it, however it is escaped.
const REASON_MAX: usize = 2 * 1024;

/// The largest number of snapshots that a policy can name: as in the settings.
const NUMBER_MAX: u64 = 1_000_000;

/// The shortest time that anything is locked or frozen for: no command could use less, and
/// a keeper could not renew it on a slow filesystem.
const SHORTEST: Period = Period::from_ms(200);

/// For how long something is kept locked.
pub(super) fn kept_for(text: &str) -> Result<Period, String> {
    let period: Period = text.parse().map_err(|error: NotAPeriod| error.to_string())?;
    match period >= SHORTEST {
        true => Ok(period),
        false => {
            Err(format!("it is too short: {SHORTEST} is the least, such as 30s, 10m or 1h30m"))
        }
    }
}

/// How long a lease or a freeze lasts by itself.
pub(super) fn lasting(text: &str) -> Result<Period, String> {
    const LONGEST: Period = Period::from_ms(LEASE_MAX_MS);
    let period = kept_for(text)?;
    match period <= LONGEST {
        true => Ok(period),
        false => Err(format!("it is too long: {LONGEST} is the most")),
    }
}

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
