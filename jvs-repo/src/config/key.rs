//! All keys as data: name, default, meaning, what is allowed, and where in
//! [`Config`] the value lives. Reading, listing, setting and the reference
//! pages all go over this one table.

use std::fmt;

use strsim::levenshtein;

use super::{Admins, Config, ConfigError, Consistency, Engine, IgnorePatterns, RequiredTags};
use crate::duration::Period;
use crate::id::strict_decimal;
use crate::metadata::{Environment, Purpose};
use crate::sharing::Sharing;

/// One key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Full name: section and key.
    pub name: &'static str,
    /// The value where the file says nothing.
    pub default: &'static str,
    /// What it decides, in one sentence.
    pub doc: &'static str,
    /// What may stand there.
    pub allowed: Allowed,
    slot: Slot,
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Allowed {
    Number { min: u64, max: u64 },
    Period { min: Period, max: Period },
    Flag,
    Word(&'static [&'static str]),
    Admins,
    Tags,
    Patterns,
}

/// A value of any key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Value {
    Number(u64),
    Period(Period),
    Flag(bool),
    Word(String),
}

/// Where in a [`Config`] the value lives.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Number(fn(&mut Config) -> &mut u64),
    Period(fn(&mut Config) -> &mut Period),
    Ttl(Environment, Purpose),
    Flag(fn(&mut Config) -> &mut bool),
    Engine,
    Consistency,
    Sharing,
    Admins,
    Tags,
    Patterns,
}

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

const fn number(
    name: &'static str,
    default: &'static str,
    (min, max): (u64, u64),
    slot: fn(&mut Config) -> &mut u64,
    doc: &'static str,
) -> Key {
    Key { name, default, doc, allowed: Allowed::Number { min, max }, slot: Slot::Number(slot) }
}

const fn flag(
    name: &'static str,
    default: &'static str,
    slot: fn(&mut Config) -> &mut bool,
    doc: &'static str,
) -> Key {
    Key { name, default, doc, allowed: Allowed::Flag, slot: Slot::Flag(slot) }
}

const fn ttl(
    name: &'static str,
    default: &'static str,
    environment: Environment,
    purpose: Purpose,
    doc: &'static str,
) -> Key {
    let allowed = Allowed::Period { min: Period::seconds(1), max: Period::days(365) };
    Key { name, default, doc, allowed, slot: Slot::Ttl(environment, purpose) }
}

/// All keys, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    number(
        "lock.lease_duration_ms",
        "30000",
        (200, DAY_MS),
        |c| &mut c.lock.lease_duration_ms,
        "Length of a kept lease: how long a dead holder keeps others out.",
    ),
    number(
        "lock.renew_interval_ms",
        "10000",
        (20, DAY_MS),
        |c| &mut c.lock.renew_interval_ms,
        "Time between two renewals of a kept lease; shorter than the lease.",
    ),
    number(
        "lock.max_clock_skew_ms",
        "2000",
        (0, HOUR_MS),
        |c| &mut c.lock.max_clock_skew_ms,
        "Largest tolerated difference between the wall clocks of any two hosts.",
    ),
    number(
        "lock.steal_grace_ms",
        "1000",
        (0, HOUR_MS),
        |c| &mut c.lock.steal_grace_ms,
        "How much longer others wait once a lease is over.",
    ),
    number(
        "lock.idle_release_ms",
        "1800000",
        (0, 365 * DAY_MS),
        |c| &mut c.lock.idle_release_ms,
        "Idle time after which a session without a terminal releases what it locked without \
         --for; 0: never.",
    ),
    ttl(
        "ttl.local.interactive",
        "1h",
        Environment::Local,
        Purpose::Interactive,
        "How long a lock taken by hand on a workstation is kept.",
    ),
    ttl(
        "ttl.local.automated",
        "30m",
        Environment::Local,
        Purpose::Automated,
        "How long a lock taken by a script on a workstation is kept.",
    ),
    ttl(
        "ttl.local.emergency",
        "5m",
        Environment::Local,
        Purpose::Emergency,
        "How long an emergency lock on a workstation is kept.",
    ),
    ttl(
        "ttl.ci.interactive",
        "1h",
        Environment::Ci,
        Purpose::Interactive,
        "How long a lock taken by a manual CI job is kept.",
    ),
    ttl(
        "ttl.ci.automated",
        "1d",
        Environment::Ci,
        Purpose::Automated,
        "How long a lock taken by a CI pipeline is kept.",
    ),
    ttl(
        "ttl.ci.emergency",
        "5m",
        Environment::Ci,
        Purpose::Emergency,
        "How long an emergency lock in CI is kept.",
    ),
    ttl(
        "ttl.cloud.interactive",
        "2h",
        Environment::Cloud,
        Purpose::Interactive,
        "How long a lock taken by hand in a cloud session is kept.",
    ),
    ttl(
        "ttl.cloud.automated",
        "4h",
        Environment::Cloud,
        Purpose::Automated,
        "How long a lock taken by cloud automation is kept.",
    ),
    ttl(
        "ttl.cloud.emergency",
        "5m",
        Environment::Cloud,
        Purpose::Emergency,
        "How long an emergency lock in the cloud is kept.",
    ),
    ttl(
        "ttl.container.interactive",
        "30m",
        Environment::Container,
        Purpose::Interactive,
        "How long a lock taken by hand in a container is kept.",
    ),
    ttl(
        "ttl.container.automated",
        "1h",
        Environment::Container,
        Purpose::Automated,
        "How long a lock taken by container automation is kept.",
    ),
    ttl(
        "ttl.container.emergency",
        "5m",
        Environment::Container,
        Purpose::Emergency,
        "How long an emergency lock in a container is kept.",
    ),
    flag(
        "reclaim.same_user",
        "false",
        |c| &mut c.reclaim.same_user,
        "May the same user take over a live lock of another session?",
    ),
    flag(
        "reclaim.higher_privilege",
        "false",
        |c| &mut c.reclaim.higher_privilege,
        "May an environment that ranks higher (ci, cloud, local) take over a live lock?",
    ),
    flag(
        "reclaim.emergency_override",
        "false",
        |c| &mut c.reclaim.emergency_override,
        "May anyone who declares an emergency take over a live lock?",
    ),
    flag(
        "reclaim.holder_dead",
        "true",
        |c| &mut c.reclaim.holder_dead,
        "May a live lock be taken over if its process is gone (same host, same boot)?",
    ),
    Key {
        name: "policy.admins",
        default: "none",
        doc: "Who may use --force and --emergency on locks: user and group ids such as \
              uid:1000,gid:50; none: the reclaim rules decide.",
        allowed: Allowed::Admins,
        slot: Slot::Admins,
    },
    Key {
        name: "snapshot.engine",
        default: "auto",
        doc: "How files are copied into a snapshot; auto is the fastest way that the filesystem offers.",
        allowed: Allowed::Word(Engine::WORDS),
        slot: Slot::Engine,
    },
    Key {
        name: "snapshot.consistency",
        default: "quiesced",
        doc: "What a snapshot promises about files that change while it is taken.",
        allowed: Allowed::Word(Consistency::WORDS),
        slot: Slot::Consistency,
    },
    Key {
        name: "snapshot.ignore",
        default: "none",
        doc: "What no snapshot has, as in a .jvsignore at the root of every worktree: patterns \
              such as target/,.cache/.",
        allowed: Allowed::Patterns,
        slot: Slot::Patterns,
    },
    number(
        "retention.keep_last",
        "10",
        (0, 1_000_000),
        |c| &mut c.retention.keep_last,
        "Garbage collection keeps this many of the newest snapshots per worktree.",
    ),
    number(
        "retention.keep_hourly",
        "0",
        (0, 1_000_000),
        |c| &mut c.retention.keep_hourly,
        "Garbage collection keeps the newest snapshot in each of this many UTC hours that have one, per worktree.",
    ),
    number(
        "retention.keep_daily",
        "0",
        (0, 1_000_000),
        |c| &mut c.retention.keep_daily,
        "Garbage collection keeps the newest snapshot in each of this many UTC days that have one, per worktree.",
    ),
    number(
        "retention.keep_weekly",
        "0",
        (0, 1_000_000),
        |c| &mut c.retention.keep_weekly,
        "Garbage collection keeps the newest snapshot in each of this many UTC weeks (from Monday) that have one, per worktree.",
    ),
    number(
        "retention.keep_monthly",
        "0",
        (0, 1_000_000),
        |c| &mut c.retention.keep_monthly,
        "Garbage collection keeps the newest snapshot in each of this many UTC months that have one, per worktree.",
    ),
    number(
        "retention.keep_yearly",
        "0",
        (0, 1_000_000),
        |c| &mut c.retention.keep_yearly,
        "Garbage collection keeps the newest snapshot in each of this many UTC years that have one, per worktree.",
    ),
    Key {
        name: "retention.keep_within",
        default: "30d",
        doc: "Garbage collection keeps every snapshot younger than this.",
        allowed: Allowed::Period { min: Period::seconds(0), max: Period::MAX },
        slot: Slot::Period(|c| &mut c.retention.keep_within),
    },
    Key {
        name: "retention.keep_tag",
        default: "none",
        doc: "Tags, such as v1,v2, without which nothing is collected; every tag keeps its snapshot.",
        allowed: Allowed::Tags,
        slot: Slot::Tags,
    },
    number(
        "audit.keep_kib",
        "512",
        (128, 1 << 40),
        |c| &mut c.lock.audit_keep_kib,
        "How many KiB of audit logs are kept beside those that are being written; of more, the \
         oldest go.",
    ),
    Key {
        name: "repo.shared",
        default: "umask",
        doc: "Who may work in the repository: whom the umask lets in, its group, or its group and \
              all others to read.",
        allowed: Allowed::Word(Sharing::WORDS),
        slot: Slot::Sharing,
    },
];

/// The key of that name.
pub(super) fn find(name: &str) -> Result<&'static Key, ConfigError> {
    let found = KEYS.iter().find(|key| key.name == name);
    found.ok_or_else(|| ConfigError::NoSuchKey { key: name.to_owned() })
}

/// Is this the name of a section: does any key lie below it?
pub(super) fn is_section(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The key that was probably meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name: String = name.chars().take(80).collect();
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let edits = |key: &str| levenshtein(key, &name).min(levenshtein(&last(key), &last(&name)));
    KEYS.iter()
        .map(|key| (edits(key.name), key.name))
        .min()
        .filter(|(edits, _)| *edits <= 3)
        .map(|(_, name)| name)
}

impl Key {
    /// The value in `config`.
    pub fn value(&self, config: &Config) -> Value {
        let mut config = config.clone();
        match self.slot {
            Slot::Number(slot) => Value::Number(*slot(&mut config)),
            Slot::Period(slot) => Value::Period(*slot(&mut config)),
            Slot::Ttl(environment, purpose) => Value::Period(config.ttl.get(environment, purpose)),
            Slot::Flag(slot) => Value::Flag(*slot(&mut config)),
            Slot::Engine => Value::Word(config.snapshot.engine.to_string()),
            Slot::Consistency => Value::Word(config.snapshot.consistency.to_string()),
            Slot::Sharing => Value::Word(config.repo.shared.to_string()),
            Slot::Admins => Value::Word(config.reclaim.admins.to_string()),
            Slot::Tags => Value::Word(config.retention.keep_tag.to_string()),
            Slot::Patterns => Value::Word(config.snapshot.ignore.to_string()),
        }
    }

    /// Puts `value` into `config`; false, and nothing changed, if it is not
    /// allowed.
    #[must_use]
    pub(super) fn put(&self, config: &mut Config, value: &Value) -> bool {
        if !self.allowed.holds(value) {
            return false;
        }
        match (self.slot, value) {
            (Slot::Number(slot), Value::Number(number)) => *slot(config) = *number,
            (Slot::Period(slot), Value::Period(span)) => *slot(config) = *span,
            (Slot::Ttl(environment, purpose), Value::Period(span)) => {
                *config.ttl.slot(environment, purpose) = *span;
            }
            (Slot::Flag(slot), Value::Flag(flag)) => *slot(config) = *flag,
            (Slot::Engine, Value::Word(word)) => match word.parse::<Engine>() {
                Ok(engine) => config.snapshot.engine = engine,
                Err(_) => return false,
            },
            (Slot::Consistency, Value::Word(word)) => match word.parse::<Consistency>() {
                Ok(consistency) => config.snapshot.consistency = consistency,
                Err(_) => return false,
            },
            (Slot::Sharing, Value::Word(word)) => match word.parse::<Sharing>() {
                Ok(sharing) => config.repo.shared = sharing,
                Err(_) => return false,
            },
            (Slot::Admins, Value::Word(word)) => match word.parse::<Admins>() {
                Ok(admins) => config.reclaim.admins = admins,
                Err(()) => return false,
            },
            (Slot::Tags, Value::Word(word)) => match word.parse::<RequiredTags>() {
                Ok(tags) => config.retention.keep_tag = tags,
                Err(()) => return false,
            },
            (Slot::Patterns, Value::Word(word)) => match word.parse::<IgnorePatterns>() {
                Ok(patterns) => config.snapshot.ignore = patterns,
                Err(()) => return false,
            },
            _ => return false,
        }
        true
    }

    /// Reads a value as a user types it on the command line.
    pub(super) fn value_of(&self, text: &str) -> Option<Value> {
        let value = match self.allowed {
            Allowed::Number { .. } => Value::Number(strict_decimal(text)?),
            Allowed::Period { .. } => Value::Period(text.parse().ok()?),
            Allowed::Flag => Value::Flag(text.parse().ok()?),
            Allowed::Word(_) | Allowed::Admins | Allowed::Tags | Allowed::Patterns => {
                Value::Word(text.to_owned())
            }
        };
        self.allowed.holds(&value).then_some(value)
    }
}

impl Allowed {
    fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Allowed::Number { min, max }, Value::Number(number)) => (min..=max).contains(&number),
            (Allowed::Period { min, max }, Value::Period(span)) => (min..=max).contains(&span),
            (Allowed::Flag, Value::Flag(_)) => true,
            (Allowed::Word(words), Value::Word(word)) => words.contains(&word.as_str()),
            (Allowed::Admins, Value::Word(word)) => word.parse::<Admins>().is_ok(),
            (Allowed::Tags, Value::Word(word)) => word.parse::<RequiredTags>().is_ok(),
            (Allowed::Patterns, Value::Word(word)) => word.parse::<IgnorePatterns>().is_ok(),
            _ => false,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Number { min, max } => write!(f, "a whole number from {min} to {max}"),
            Allowed::Period { min, max } => {
                write!(f, "a duration from \"{min}\" to \"{max}\", such as \"1h30m\"")
            }
            Allowed::Flag => f.write_str("true or false"),
            Allowed::Word(words) => write!(f, "one of \"{}\"", words.join("\", \"")),
            Allowed::Admins => {
                f.write_str("a list of numbers such as \"uid:1000,gid:50\", or \"none\"")
            }
            Allowed::Tags => f.write_str("a list of tags such as \"v1,v2\", or \"none\""),
            Allowed::Patterns => {
                f.write_str("a list of patterns such as \"target/,*.o\", or \"none\"")
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Period(span) => span.fmt(f),
            Value::Flag(flag) => flag.fmt(f),
            Value::Word(word) => f.write_str(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_the_defaults_that_the_code_has() {
        let config = Config::default();
        for key in KEYS {
            assert_eq!(key.value(&config).to_string(), key.default, "{}", key.name);
            assert_eq!(key.value_of(key.default), Some(key.value(&config)), "{}", key.name);
            assert!(key.doc.ends_with(['.', '?']), "{}", key.name);
        }
    }

    #[test]
    fn each_key_has_its_own_place() {
        for key in KEYS {
            let mut config = Config::default();
            let other = match key.value(&config) {
                Value::Number(number) => Value::Number(number + 1),
                Value::Period(span) => Value::Period(Period::from_ms(span.as_ms() + 1)),
                Value::Flag(flag) => Value::Flag(!flag),
                Value::Word(_) if key.name == "snapshot.engine" => Value::Word("copy".into()),
                Value::Word(_) if key.name == "repo.shared" => Value::Word("group".into()),
                Value::Word(_) if key.name == "policy.admins" => Value::Word("uid:7".into()),
                Value::Word(_) if key.name == "retention.keep_tag" => Value::Word("v1".into()),
                Value::Word(_) if key.name == "snapshot.ignore" => Value::Word("*.o".into()),
                Value::Word(_) => Value::Word("best_effort".into()),
            };
            assert!(key.put(&mut config, &other), "{}", key.name);
            for each in KEYS {
                let changed = each.value(&config) != each.value(&Config::default());
                assert_eq!(changed, each.name == key.name, "{} changes {}", key.name, each.name);
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        assert_eq!(nearest("lock.lease_duration"), Some("lock.lease_duration_ms"));
        assert_eq!(nearest("lock.leese_duration_ms"), Some("lock.lease_duration_ms"));
        assert_eq!(nearest("keep_last"), Some("retention.keep_last"));
        assert_eq!(nearest("colour"), None);
        assert_eq!(nearest(&"x".repeat(100_000)), None);
    }
}
