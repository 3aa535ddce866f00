//! Limits on the length of notes and reasons. A longer text is refused, never cut
//! silently.

use jvs_lock::record::NOTE_MAX;

/// Longest reason, in bytes: a line of the audit log holds it, however it is escaped.
const REASON_MAX: usize = 2 * 1024;

/// A note for others who find a worktree locked or frozen: kept in its record.
pub(super) fn note(text: &str) -> Result<String, String> {
    within(text, NOTE_MAX)
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
