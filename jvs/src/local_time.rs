//! The time zone that people at this terminal live in: text for them shows times with
//! its offset, everything else is in UTC.

use jvs_repo::clock::WallMs;

/// Seconds east of UTC at that moment; zero where that cannot be found out, for
/// then UTC is what is shown.
pub(crate) fn offset_seconds(time: WallMs) -> i64 {
    let seconds = i64::try_from(time.0 / 1_000).unwrap_or(0);
    let moment = time::OffsetDateTime::from_unix_timestamp(seconds).ok();
    let offset = moment.and_then(|moment| time::UtcOffset::local_offset_at(moment).ok());
    offset.map_or(0, |offset| i64::from(offset.whole_seconds()))
}
