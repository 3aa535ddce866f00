//! How snapshots are captured unless the command says otherwise.

use std::fmt;
use std::str::FromStr;

use crate::metadata::words;
use crate::record::ignore_rules::RULE_MAX;

words! {
    /// What copies a payload.
    Engine { Auto "auto" Juicefs "juicefs" Reflink "reflink" Copy "copy" }
}
words! {
    /// What a snapshot promises about files that change while it is taken.
    Consistency { Quiesced "quiesced" BestEffort "best_effort" }
}

/// Defaults of `jvs snapshot`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// `auto` takes the fastest that the filesystem offers.
    pub engine: Engine,
    /// The promise.
    pub consistency: Consistency,
    /// What is ignored in every worktree.
    pub ignore: IgnorePatterns,
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        SnapshotPolicy {
            engine: Engine::Auto,
            consistency: Consistency::Quiesced,
            ignore: IgnorePatterns::NONE,
        }
    }
}

/// How many patterns there may be, and how many bytes in all.
const PATTERNS_MAX: usize = 256;
const TEXT_MAX: usize = 4096;
/// What stands there if there is none.
const NO_PATTERN: &str = "none";

/// Patterns as in a file of rules, in their order: the last that matches decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnorePatterns(Vec<String>);

impl IgnorePatterns {
    /// Nothing is ignored.
    pub const NONE: IgnorePatterns = IgnorePatterns(Vec::new());

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromStr for IgnorePatterns {
    type Err = ();

    /// `none`, or a list such as `target/,*.o`. A comma in a pattern has a backslash before
    /// it, as anything may have in a pattern.
    fn from_str(text: &str) -> Result<Self, ()> {
        if text == NO_PATTERN {
            return Ok(IgnorePatterns::NONE);
        }
        let mut patterns = vec![String::new()];
        let mut escaped = false;
        for c in text.chars() {
            match (c, patterns.last_mut()) {
                (',', _) if !escaped => patterns.push(String::new()),
                (_, Some(last)) => last.push(c),
                (_, None) => {}
            }
            escaped = c == '\\' && !escaped;
        }
        for pattern in &mut patterns {
            *pattern = pattern.trim_matches(' ').to_owned();
        }
        let is_one = |pattern: &String| {
            let body = pattern.strip_prefix('!').unwrap_or(pattern);
            !body.trim_matches('/').is_empty()
                && !pattern.starts_with('#')
                && pattern.len() <= RULE_MAX
                && !pattern.chars().any(char::is_control)
        };
        let fits = text.len() <= TEXT_MAX && patterns.len() <= PATTERNS_MAX;
        (fits && patterns.iter().all(is_one)).then_some(IgnorePatterns(patterns)).ok_or(())
    }
}

impl fmt::Display for IgnorePatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { NO_PATTERN } else { "" })?;
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_patterns_are_a_list() {
        let some: IgnorePatterns = "target/, *.o,a\\,b,!keep.o".parse().expect("valid");
        assert_eq!(some.iter().collect::<Vec<_>>(), ["target/", "*.o", "a\\,b", "!keep.o"]);
        assert_eq!(some.to_string().parse(), Ok(some));
        assert_eq!("none".parse(), Ok(IgnorePatterns::NONE));
        let (long, many) = ("x".repeat(RULE_MAX + 1), "x,".repeat(300) + "x");
        for text in ["", "a,", "/", "!", "#a", "a\nb", long.as_str(), many.as_str()] {
            assert_eq!(text.parse::<IgnorePatterns>(), Err(()), "{text:?}");
        }
    }
}
