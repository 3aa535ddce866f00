//! Times in sentences for people.
//!
//! A sentence is put together by the code that knows what happened, often as the `Display` of
//! an error inside another error, and printed by a program that knows where its reader
//! is. So a time stays a [`WallMs`] until its sentence is formatted, and the program says
//! once at which offset it wants them. Libraries, files and documents for programs know
//! UTC alone.

use std::fmt;
use std::sync::OnceLock;

use super::WallMs;

/// Seconds east of UTC at a moment, as the program's reader sees it.
static OFFSET: OnceLock<fn(WallMs) -> i64> = OnceLock::new();

/// From now on this process shows times in sentences at `offset`, in seconds east of
/// UTC. The first call counts; without one it is UTC.
pub fn show_times_at(offset: fn(WallMs) -> i64) {
    let _ = OFFSET.set(offset);
}

/// A time in a sentence: RFC 3339 with the offset of its reader.
#[derive(Debug, Clone, Copy)]
pub struct ShownTime(WallMs);

impl WallMs {
    /// As a part of a sentence. For files and programs there is [`WallMs::rfc3339`].
    pub const fn shown(self) -> ShownTime {
        ShownTime(self)
    }
}

/// What a file has in a field for a time, as a part of a sentence; what is no time stays
/// as it was written.
pub fn shown_as_written(field: &str) -> String {
    WallMs::parse_rfc3339(field).map_or_else(|| field.to_owned(), |time| time.shown().to_string())
}

impl fmt::Display for ShownTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&at_offset(self.0, OFFSET.get().map_or(0, |offset| offset(self.0))))
    }
}

/// The same moment, so many seconds east of UTC.
fn at_offset(time: WallMs, seconds: i64) -> String {
    let shifted = time.0.checked_add_signed(seconds.saturating_mul(1_000));
    let text = shifted.map(|shifted| WallMs(shifted).rfc3339());
    // Where no calendar has it, or it is UTC anyway, there is nothing to add.
    match text.as_deref().and_then(|text| text.strip_suffix('Z')) {
        Some(local) if seconds != 0 => {
            let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
            format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
        _ => time.rfc3339(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_with_its_offset_and_means_the_same_moment() {
        let time = |text| WallMs::parse_rfc3339(text).expect("a time");
        for (utc, seconds, told) in [
            ("2025-11-16T23:30:00.123Z", 3_600, "2025-11-17T00:30:00.123+01:00"),
            ("2025-11-16T00:00:00.000Z", -19_800, "2025-11-15T18:30:00.000-05:30"),
            ("2025-11-16T09:00:00.000Z", 0, "2025-11-16T09:00:00.000Z"),
        ] {
            assert_eq!(at_offset(time(utc), seconds), told);
            assert_eq!(time(told), time(utc));
        }
    }

    #[test]
    fn what_no_calendar_has_is_shown_as_it_is() {
        assert_eq!(at_offset(WallMs(0), -3_600), WallMs(0).rfc3339(), "before 1970");
        assert_eq!(at_offset(WallMs(u64::MAX), 3_600), WallMs(u64::MAX).rfc3339());
        let beyond = WallMs(u64::MAX - 3_600_000);
        assert_eq!(at_offset(beyond, 3_600), beyond.rfc3339(), "after the year 9999");
    }

    #[test]
    fn a_sentence_is_in_utc_where_nobody_asked_for_more() {
        let time = WallMs(1_763_283_600_123);
        assert_eq!(format!("until {}", time.shown()), format!("until {}", time.rfc3339()));
    }
}
