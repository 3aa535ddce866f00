//! What garbage collection keeps beyond what heads and tags need.

use std::fmt;
use std::str::FromStr;

use crate::duration::Period;
use crate::name::TagName;

/// A snapshot is kept if any rule keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// The newest so many of each worktree.
    pub keep_last: u64,
    /// The newest of each of so many hours in which there is one, of each worktree.
    pub keep_hourly: u64,
    /// The same of days.
    pub keep_daily: u64,
    /// The same of weeks, which begin on Mondays.
    pub keep_weekly: u64,
    /// The same of months.
    pub keep_monthly: u64,
    /// The same of years.
    pub keep_yearly: u64,
    /// Those younger than this.
    pub keep_within: Period,
    /// Tags without which nothing is collected.
    pub keep_tag: RequiredTags,
}

impl Default for Retention {
    fn default() -> Self {
        Retention {
            keep_last: 10,
            keep_hourly: 0,
            keep_daily: 0,
            keep_weekly: 0,
            keep_monthly: 0,
            keep_yearly: 0,
            keep_within: Period::days(30),
            keep_tag: RequiredTags::NONE,
        }
    }
}

impl Retention {
    /// Does anything that it keeps depend on what a clock said?
    pub fn reads_times(&self) -> bool {
        let by_calendar = [self.keep_hourly, self.keep_daily, self.keep_weekly, self.keep_monthly];
        self.keep_within.as_ms() > 0 || self.keep_yearly > 0 || by_calendar.iter().any(|n| *n > 0)
    }
}

/// How many may be named.
const MAX: usize = 64;
/// What stands there if none is.
const NONE: &str = "none";

/// Tags that must be there: what has one is kept anyway, and a collection that cannot find
/// one of these removes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredTags(Vec<TagName>);

impl RequiredTags {
    /// No tag has to be there.
    pub const NONE: RequiredTags = RequiredTags(Vec::new());

    /// These; nothing if they are too many.
    pub fn new(tags: Vec<TagName>) -> Option<Self> {
        (tags.len() <= MAX).then_some(RequiredTags(tags))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &TagName> {
        self.0.iter()
    }
}

impl FromStr for RequiredTags {
    type Err = ();

    /// `none`, or a list such as `v1,v2`, each named once.
    fn from_str(text: &str) -> Result<Self, ()> {
        if text == NONE {
            return Ok(RequiredTags::NONE);
        }
        let mut named: Vec<TagName> = Vec::new();
        for word in text.split(',') {
            let tag = word.trim().parse().map_err(drop)?;
            if named.contains(&tag) {
                return Err(());
            }
            named.push(tag);
        }
        RequiredTags::new(named).ok_or(())
    }
}

impl fmt::Display for RequiredTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(TagName::as_str).collect();
        f.write_str(if words.is_empty() { NONE } else { "" })?;
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_must_be_there_are_a_list_of_names() {
        let tags: RequiredTags = "v1, v2".parse().expect("valid");
        assert_eq!(tags.to_string(), "v1,v2");
        assert_eq!("none".parse(), Ok(RequiredTags::NONE));
        let many: Vec<String> = (0..65).map(|n| format!("v{n}")).collect();
        for text in ["", "v1,", "v1,v1", "v1 v2", "a/b", many.join(",").as_str()] {
            assert_eq!(text.parse::<RequiredTags>(), Err(()), "{text:?}");
        }
    }

    #[test]
    fn what_reads_no_time_needs_no_clock() {
        let by_number = Retention { keep_within: Period::seconds(0), ..Retention::default() };
        assert!(!by_number.reads_times());
        assert!(Retention::default().reads_times());
        for one in [
            Retention { keep_hourly: 1, ..by_number.clone() },
            Retention { keep_daily: 1, ..by_number.clone() },
            Retention { keep_weekly: 1, ..by_number.clone() },
            Retention { keep_monthly: 1, ..by_number.clone() },
            Retention { keep_yearly: 1, ..by_number },
        ] {
            assert!(one.reads_times(), "{one:?}");
        }
    }
}
