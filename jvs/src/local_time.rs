//! Times as people read them: in the time zone they live in.
//!
//! Everything is kept and sent as RFC 3339 in UTC; text for people shows the
//! same moments in RFC 3339 with the local offset.

use std::fmt::Write as _;

use jvs_repo::clock::WallMs;

/// Length of `2025-11-16T09:00:00.123Z`.
const LENGTH: usize = 24;

/// `text` with every time in UTC replaced by the same in local time.
pub(crate) fn in_text(text: &str) -> String {
    with_offset(text, offset_seconds)
}

fn with_offset(text: &str, offset: impl Fn(WallMs) -> i64) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let candidate = rest.get(..LENGTH).filter(|text| looks_like_utc(text));
        let taken = match candidate.and_then(WallMs::parse_rfc3339) {
            Some(time) => {
                out += &local(time, offset(time));
                LENGTH
            }
            None => {
                out.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

fn looks_like_utc(text: &str) -> bool {
    text.bytes().zip(b"0000-00-00T00:00:00.000Z").all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == *shape,
    })
}

fn local(time: WallMs, offset: i64) -> String {
    let shifted = i64::try_from(time.0).unwrap_or(0).saturating_add(offset * 1_000);
    let mut text = WallMs(u64::try_from(shifted).unwrap_or(0)).rfc3339();
    if offset != 0 {
        text.pop();
        let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
        let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
    text
}

/// Seconds east of UTC at that moment; zero where that cannot be found out, for
/// then UTC is what is shown.
fn offset_seconds(time: WallMs) -> i64 {
    let seconds = i64::try_from(time.0 / 1_000).unwrap_or(0);
    let moment = time::OffsetDateTime::from_unix_timestamp(seconds).ok();
    let offset = moment.and_then(|moment| time::UtcOffset::local_offset_at(moment).ok());
    offset.map_or(0, |offset| i64::from(offset.whole_seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_text_are_shown_with_the_local_offset_and_mean_the_same_moment() {
        let text = "T held since 2025-11-16T23:30:00.123Z, until 2025-11-16T09:00:00.000Z.";
        assert_eq!(
            with_offset(text, |_| 3_600),
            "T held since 2025-11-17T00:30:00.123+01:00, until 2025-11-16T10:00:00.000+01:00."
        );
        assert_eq!(with_offset(text, |_| 0), text, "UTC stays as it is");
        assert_eq!(
            with_offset("2025-11-16T00:00:00.000Z", |_| -19_800),
            "2025-11-15T18:30:00.000-05:30"
        );
    }

    #[test]
    fn what_is_no_time_is_left_alone() {
        for text in ["", "T", "2025-11-16T", "ÄÄÄÄÄÄÄÄÄÄT00", "TTTTTTTTTTTTTTT", "x-é-T-é"]
        {
            assert_eq!(with_offset(text, |_| 3_600), text);
        }
    }
}
