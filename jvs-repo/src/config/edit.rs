//! Changes one key in the text of a configuration file and leaves every other
//! byte that matters to its author.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value as TomlValue};

use super::{Config, ConfigError, Value, document, key};

/// `text` with `key` set to `value`, valid as a whole; comments stay.
pub fn set(text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let key = key::find(key)?;
    let parsed = key.value_of(value).ok_or_else(|| ConfigError::BadValue {
        line: None,
        key: key.name.to_owned(),
        found: format!("{value:?}"),
        allowed: key.allowed.to_string(),
    })?;
    let mut file: DocumentMut = text.parse().map_err(|error| document::syntax(text, &error))?;
    let (section, last) = key.name.rsplit_once('.').unwrap_or(("", key.name));
    match section_of(&mut file, section) {
        Some(table) => put(table, last, &parsed),
        // Something else is where the section should be: say what and where.
        None => return Config::parse(text).map(|_| text.to_owned()),
    }
    let edited = file.to_string();
    // The key may have been what was wrong, so only the result is checked.
    Config::parse(&edited)?;
    Ok(edited)
}

/// The table of a section, made if need be; `None` if its place is taken.
fn section_of<'d>(file: &'d mut DocumentMut, section: &str) -> Option<&'d mut dyn TableLike> {
    let mut parts = section.split('.').peekable();
    if parts.peek().is_some_and(|first| !file.contains_key(first)) {
        // A new section goes to the end of the file, so what stood there, be it
        // the whole file's comments, has to stay above it.
        let above = file.trailing().as_str().unwrap_or_default().to_owned();
        file.set_trailing("");
        let gap = if file.is_empty() && above.is_empty() { "" } else { "\n" };
        let mut table = Table::new();
        table.decor_mut().set_prefix(format!("{above}{gap}"));
        let mut path: Vec<&str> = section.split('.').collect();
        let last = path.pop()?;
        let mut at = file.as_table_mut();
        for part in path {
            let mut between = Table::new();
            between.set_implicit(true);
            at = at.entry(part).or_insert(Item::Table(between)).as_table_mut()?;
        }
        at.insert(last, Item::Table(table));
    }
    let mut at: &mut dyn TableLike = file.as_table_mut();
    for part in parts {
        at = at.entry(part).or_insert(Item::Table(Table::new())).as_table_like_mut()?;
    }
    Some(at)
}

fn put(table: &mut dyn TableLike, key: &str, value: &Value) {
    let mut new = match value {
        Value::Number(number) => {
            TomlValue::from(i64::try_from(*number).expect("every allowed number is far smaller"))
        }
        Value::Flag(flag) => TomlValue::from(*flag),
        Value::Period(period) => TomlValue::from(period.to_string()),
        Value::Word(word) => TomlValue::from(word.as_str()),
    };
    match table.get_mut(key) {
        Some(item) => {
            // The comment behind the old value is about the key, so it stays.
            if let Some(old) = item.as_value() {
                *new.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(new);
        }
        None => {
            table.insert(key, Item::Value(new));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Code, Coded};
    use crate::config::{INITIAL, KEYS, get};

    #[test]
    fn a_new_key_goes_below_what_was_there() {
        let one = set(INITIAL, "lock.lease_duration_ms", "60000").expect("set");
        assert_eq!(one, format!("{INITIAL}\n[lock]\nlease_duration_ms = 60000\n"));
        let two = set(&one, "ttl.ci.automated", "2h").expect("set");
        assert_eq!(two, format!("{one}\n[ttl.ci]\nautomated = \"2h\"\n"));
        let three = set(&two, "lock.steal_grace_ms", "5").expect("set");
        assert!(
            three.contains("[lock]\nlease_duration_ms = 60000\nsteal_grace_ms = 5\n\n[ttl.ci]")
        );
        let four = set(&three, "ttl.local.emergency", "1m").expect("set");
        assert!(four.contains("[ttl.local]\nemergency = \"1m\"\n"), "{four}");
        assert_eq!(
            set("", "reclaim.same_user", "true").expect("set"),
            "[reclaim]\nsame_user = true\n"
        );
    }

    #[test]
    fn comments_and_order_survive_a_change() {
        let text = "# head\n[lock] # locks\n# why\nsteal_grace_ms = 7 # because\n\n# tail\n";
        let edited = set(text, "lock.steal_grace_ms", "8").expect("set");
        assert_eq!(edited, text.replace("= 7", "= 8"));
        let edited = set(text, "snapshot.engine", "copy").expect("set");
        assert_eq!(edited, format!("{text}\n[snapshot]\nengine = \"copy\"\n"));
        let inline = "lock = { steal_grace_ms = 7 } # x\n";
        assert_eq!(
            set(inline, "lock.steal_grace_ms", "9").expect("set"),
            "lock = { steal_grace_ms = 9 } # x\n"
        );
        let dotted = "lock.steal_grace_ms = 7\n";
        let edited = set(dotted, "lock.max_clock_skew_ms", "9").expect("set");
        assert_eq!(edited, "lock.steal_grace_ms = 7\nlock.max_clock_skew_ms = 9\n");
    }

    #[test]
    fn every_key_can_be_set_and_got() {
        let mut text = String::new();
        for key in KEYS {
            text = set(&text, key.name, key.default).expect(key.name);
        }
        let config = Config::parse(&text).expect("valid");
        for key in KEYS {
            assert_eq!(get(&config, key.name).expect("known"), key.default);
        }
    }

    #[test]
    fn what_would_not_be_valid_is_refused() {
        for (text, key, value, code) in [
            ("", "lock.nothing", "1", Code::NotFound),
            ("", "lock", "1", Code::NotFound),
            ("", "lock.lease_duration_ms", "30s", Code::ConfigInvalid),
            ("", "lock.lease_duration_ms", "5000", Code::ConfigInvalid),
            ("", "ttl.ci.automated", "soon", Code::ConfigInvalid),
            ("", "ttl.ci.automated", "1h\"\nx=1", Code::ConfigInvalid),
            ("", "reclaim.same_user", "yes", Code::ConfigInvalid),
            ("", "snapshot.engine", "", Code::ConfigInvalid),
            ("lock = 3\n", "lock.steal_grace_ms", "1", Code::ConfigInvalid),
            ("[[lock]]\n", "lock.steal_grace_ms", "1", Code::ConfigInvalid),
            ("[oops]\n", "lock.steal_grace_ms", "1", Code::ConfigInvalid),
            ("[lock\n", "lock.steal_grace_ms", "1", Code::ConfigInvalid),
        ] {
            let error = set(text, key, value).expect_err(key);
            assert_eq!(error.code(), code, "{text:?} {key}={value}: {error}");
            assert!(error.next().is_some());
        }
    }

    #[test]
    fn setting_the_key_that_is_wrong_mends_the_file() {
        let broken = "[lock]\nlease_duration_ms = \"long\" # hm\n";
        let mended = set(broken, "lock.lease_duration_ms", "40000").expect("mended");
        assert_eq!(mended, "[lock]\nlease_duration_ms = 40000 # hm\n");
    }
}
