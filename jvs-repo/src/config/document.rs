//! From the text of a configuration file to a [`Config`], with the line of
//! whatever is wrong.

use std::collections::HashMap;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use super::key::{self, Key};
use super::{Allowed, Config, ConfigError, Value};

/// Reads and checks `text`.
pub(crate) fn parse(text: &str) -> Result<Config, ConfigError> {
    let document = Document::parse(text).map_err(|error| syntax(text, &error))?;
    let mut reader = Reader { text, config: Config::default(), lines: HashMap::new() };
    reader.section(document.as_table(), "")?;
    reader.contradictions()?;
    Ok(reader.config)
}

pub(super) fn syntax(text: &str, error: &toml_edit::TomlError) -> ConfigError {
    let problem = error.message().lines().collect::<Vec<_>>().join(", ");
    ConfigError::Syntax { line: line_of(text, error.span()), problem }
}

/// The line on which a span begins, counted from one.
fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start).min(text.len());
    1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count()
}

struct Reader<'t> {
    text: &'t str,
    config: Config,
    /// Where each key that the file has is.
    lines: HashMap<&'static str, usize>,
}

impl Reader<'_> {
    fn section(&mut self, table: &dyn TableLike, prefix: &str) -> Result<(), ConfigError> {
        for (part, item) in table.iter() {
            let span = table.key(part).and_then(|key| key.span()).or_else(|| item.span());
            let line = line_of(self.text, span);
            // A dot inside a part is not the dot between parts.
            let part = if part.contains('.') { format!("{part:?}") } else { part.to_owned() };
            let name = if prefix.is_empty() { part } else { format!("{prefix}.{part}") };
            if let Ok(key) = key::find(&name) {
                self.value(key, item, line)?;
            } else if !key::is_section(&name) {
                return Err(ConfigError::UnknownKey { line, key: name });
            } else if let Some(table) = item.as_table_like() {
                self.section(table, &name)?;
            } else {
                let allowed = format!("a section: [{name}]");
                return Err(self.bad_value(&name, item, line, allowed));
            }
        }
        Ok(())
    }

    fn value(&mut self, key: &'static Key, item: &Item, line: usize) -> Result<(), ConfigError> {
        let value = match key.allowed {
            Allowed::Number { .. } => {
                item.as_integer().and_then(|n| u64::try_from(n).ok()).map(Value::Number)
            }
            Allowed::Period { .. } => {
                item.as_str().and_then(|text| text.parse().ok()).map(Value::Period)
            }
            Allowed::Flag => item.as_bool().map(Value::Flag),
            Allowed::Word(_) | Allowed::Admins | Allowed::Tags | Allowed::Patterns => {
                item.as_str().map(|word| Value::Word(word.to_owned()))
            }
        };
        self.lines.insert(key.name, line);
        if value.is_some_and(|value| key.put(&mut self.config, &value)) {
            return Ok(());
        }
        Err(self.bad_value(key.name, item, line, key.allowed.to_string()))
    }

    fn bad_value(&self, key: &str, item: &Item, line: usize, allowed: String) -> ConfigError {
        let written = item.span().and_then(|span| self.text.get(span)).unwrap_or(item.type_name());
        let mut found: String =
            written.lines().next().unwrap_or_default().chars().take(60).collect();
        if found.len() < written.len() {
            found.push('…');
        }
        ConfigError::BadValue { line: Some(line), key: key.to_owned(), found, allowed }
    }

    /// A renewal that comes when the lease is over renews nothing.
    fn contradictions(&self) -> Result<(), ConfigError> {
        let lock = &self.config.lock;
        if lock.renew_interval_ms < lock.lease_duration_ms {
            return Ok(());
        }
        // Blame what the file says, not what it left to the default.
        let renew_line = self.lines.get("lock.renew_interval_ms").copied();
        let lease_line = self.lines.get("lock.lease_duration_ms").copied();
        Err(if renew_line.is_some() || lease_line.is_none() {
            ConfigError::Contradiction {
                line: renew_line,
                key: "lock.renew_interval_ms",
                found: lock.renew_interval_ms.to_string(),
                allowed: format!("less than lock.lease_duration_ms = {}", lock.lease_duration_ms),
            }
        } else {
            ConfigError::Contradiction {
                line: lease_line,
                key: "lock.lease_duration_ms",
                found: lock.lease_duration_ms.to_string(),
                allowed: format!("more than lock.renew_interval_ms = {}", lock.renew_interval_ms),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Code, Coded};
    use crate::config::{Consistency, Engine};
    use crate::metadata::{Environment, Purpose};

    #[test]
    fn every_way_to_write_a_section_is_read() {
        let text = r#"
            lock.lease_duration_ms = 60_000
            lock.renew_interval_ms = 20000
            reclaim = { same_user = true, holder_dead = false }
            [ttl]
            ci = { automated = "2d" }
            [ttl.local]
            emergency = "90s"
            [snapshot]
            engine = "copy"
            consistency = 'best_effort'
            [retention]
            keep_last = 3
            keep_daily = 7
            keep_within = "1d12h"
            keep_tag = "v1, v2"
        "#;
        let config = Config::parse(text).expect("valid");
        assert_eq!(config.lock.lease_duration_ms, 60_000);
        assert_eq!(config.lock.max_clock_skew_ms, 2_000, "left to the default");
        assert_eq!(config.ttl.get(Environment::Ci, Purpose::Automated).to_string(), "2d");
        assert_eq!(config.ttl.get(Environment::Local, Purpose::Emergency).to_string(), "1m30s");
        assert!(config.reclaim.same_user && !config.reclaim.holder_dead);
        assert_eq!(config.snapshot.engine, Engine::Copy);
        assert_eq!(config.snapshot.consistency, Consistency::BestEffort);
        assert_eq!((config.retention.keep_last, config.retention.keep_daily), (3, 7));
        assert_eq!(config.retention.keep_yearly, 0, "left to the default");
        assert_eq!(config.retention.keep_tag.to_string(), "v1,v2");
        assert_eq!(config.retention.keep_within.to_string(), "1d12h");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, word) in [
            ("\n[lock]\nlease_duration = 1\n", 3, "no key lock.lease_duration"),
            ("[lokc]\nlease_duration_ms = 1\n", 1, "no key lokc"),
            ("\"lock.lease_duration_ms\" = 1\n", 1, "no key \"lock.lease_duration_ms\""),
            ("[ttl.moon]\nautomated = \"1h\"\n", 1, "no key ttl.moon"),
            ("# x\n\nlock = 7\n", 3, "a section: [lock]"),
            ("[[lock]]\nlease_duration_ms = 200\n", 1, "a section: [lock]"),
            ("[lock]\n\nlease_duration_ms = \"30s\"\n", 3, "cannot be \"30s\"; it is a whole"),
            ("[lock]\nlease_duration_ms = -1\n", 2, "cannot be -1"),
            ("[lock]\nlease_duration_ms = 199\n", 2, "from 200 to 86400000"),
            ("[lock]\nlease_duration_ms = 86400001\n", 2, "from 200"),
            ("[lock]\nlease_duration_ms = 3e4\n", 2, "cannot be 3e4"),
            ("[lock]\nlease_duration_ms = []\n", 2, "cannot be []"),
            ("[ttl.ci]\nautomated = 3600\n", 2, "a duration from \"1s\" to \"365d\""),
            ("[ttl.ci]\nautomated = \"1 h\"\n", 2, "cannot be \"1 h\""),
            ("[ttl.ci]\nautomated = \"366d\"\n", 2, "365d"),
            ("[reclaim]\nsame_user = \"yes\"\n", 2, "true or false"),
            ("[snapshot]\nengine = \"zfs\"\n", 2, "one of \"auto\", \"juicefs\""),
            ("[retention]\nkeep_last = 1000001\n", 2, "from 0"),
            ("[retention]\nkeep_tag = \"v1,\"\n", 2, "such as \"v1,v2\""),
            ("[policy]\nadmins = \"ann\"\n", 2, "such as \"uid:1000,gid:50\""),
            ("[policy]\nadmins = [1000]\n", 2, "cannot be [1000]"),
            ("[policy]\nadmin = \"uid:1\"\n", 2, "no key policy.admin"),
            ("[lock]\nsteal_grace_ms = 1\nsteal_grace_ms = 2\n", 3, "duplicate key"),
            ("[lock]\n[retention]\n[lock]\n", 3, "duplicate key"),
            ("[lock]\nsteal_grace_ms 1\n", 2, ""),
            ("[lock", 1, ""),
            ("[lock]\nrenew_interval_ms = 30000\n", 2, "less than lock.lease_duration_ms = 30000"),
            ("[lock]\nlease_duration_ms = 10000\n", 2, "more than lock.renew_interval_ms = 10000"),
        ] {
            let error = Config::parse(text).expect_err(text);
            assert_eq!(error.code(), Code::ConfigInvalid);
            let said = error.to_string();
            assert!(said.starts_with(&format!("{}:{line}: ", crate::layout::config())), "{said}");
            assert!(said.contains(word), "{said}\nshould say {word}");
            assert!(!said.contains('\n'), "one line: {said}");
            assert!(error.next().is_some(), "{said}");
            assert_eq!(error.details().expect("details")["line"], line);
        }
    }

    #[test]
    fn hostile_files_are_refused_and_end() {
        let deep = format!("a = {}{}", "[".repeat(30_000), "]".repeat(30_000));
        let dotted = format!("{}x = 1", "a.".repeat(30_000));
        for text in [deep, dotted, "\0".into(), "[lock]\nsteal_grace_ms = 1\0".into()] {
            assert_eq!(Config::parse(&text).expect_err("refused").code(), Code::ConfigInvalid);
        }
    }
}
