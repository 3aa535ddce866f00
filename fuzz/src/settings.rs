//! What people write: configuration, durations, times.

use jvs_repo::clock::WallMs;
use jvs_repo::config::{self, Config, ConfigError, KEYS};
use jvs_repo::duration::Period;
use jvs_repo::fuzzing;

/// The configuration: the short way for files without settings says what the long one
/// says; what is wrong is on a line that there is; and a key that is set is set, and
/// nothing else is.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = Config::parse(text);
    let in_full = fuzzing::config_in_full(text);
    match (&parsed, &in_full) {
        (Ok(one), Ok(other)) => assert_eq!(one, other, "the short way says something else"),
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        _ => panic!("the short way: {parsed:?}, in full: {in_full:?}"),
    }
    if let Err(ConfigError::Syntax { line, .. } | ConfigError::UnknownKey { line, .. }) = &parsed {
        assert!((1..=text.lines().count().max(1) + 1).contains(line), "line {line}");
    }
    let Ok(before) = parsed else { return };
    // One of them, and another one for another length: all of them take their time.
    let key = &KEYS[text.len() % KEYS.len()];
    let value = config::get(&before, key.name).expect("a key has a value");
    // Its own value: nothing changes, and it is set although the file did not say so.
    let Ok(edited) = config::set(text, key.name, &value) else {
        panic!("{} cannot be set to {value}, which it is", key.name);
    };
    assert_eq!(Config::parse(&edited).expect("valid"), before, "{} was set", key.name);
}

/// A duration: never more than the most, and read as it is printed.
pub(crate) fn duration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(period) = text.parse::<Period>() else { return };
    assert!(period <= Period::MAX);
    assert_eq!(period.to_string().parse(), Ok(period));
    assert_eq!(Period::from_ms(period.as_ms()), period);
    // One unit more is a longer duration or none, never a shorter one.
    if let Ok(longer) = format!("{text}1ms").parse::<Period>() {
        assert!(longer > period);
    }
}

/// A time: read as it is printed, and in the order of what is printed.
pub(crate) fn time(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut times = text.split('\n').filter_map(WallMs::parse_rfc3339);
    let Some(at) = times.next() else { return };
    let printed = at.rfc3339();
    assert_eq!(WallMs::parse_rfc3339(&printed), Some(at), "{printed}");
    if let Some(other) = times.next() {
        let both = [printed, other.rfc3339()];
        if both.iter().all(|text| text.len() == 24) {
            assert_eq!(both[0].cmp(&both[1]), at.cmp(&other), "{both:?}");
        }
    }
}
