//! The rules by which a snapshot left files out, as its descriptor has them.
//!
//! A rule may have any bytes, and a string of JSON may not: what is not printable text is
//! spelled `%XX`, and so is the percent sign. There is exactly one spelling of each rule,
//! and the reader accepts no other.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::hex;

/// Most bytes of all rules and of what they come from together, as they are spelled.
pub const BYTES_MAX: usize = 16 * 1024;
/// Most bytes of one rule.
pub const RULE_MAX: usize = 1024;
/// Longest path of a file of rules, as it is spelled.
pub const FROM_MAX: usize = 4096;
/// Longest name of a directory (`NAME_MAX`).
const NAME_BYTES_MAX: usize = 255;
/// Where the rules of the configuration come from.
pub const OF_CONFIG: &str = "snapshot.ignore";
/// The name of a file of rules.
pub const FILE_NAME: &str = ".jvsignore";

/// Rules that come from one place, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IgnoreSource {
    /// [`OF_CONFIG`], or the path of a file of rules below the worktree.
    pub from: String,
    /// Each as it stands there.
    pub rules: Vec<String>,
}

/// `bytes` as they are spelled in a record.
pub fn spelled(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' || c.is_control() {
                let mut buffer = [0; 4];
                escape(&mut text, c.encode_utf8(&mut buffer).as_bytes());
            } else {
                text.push(c);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push('%');
        text.push_str(&hex(&[*byte]).to_ascii_uppercase());
    }
}

/// What [`spelled`] spelled; nothing if it would have spelled it otherwise.
pub fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    (spelled(&bytes) == text).then_some(bytes)
}

/// How many bytes the rules have as they are spelled, and what they come from.
pub fn size(sources: &[IgnoreSource]) -> usize {
    let each = sources.iter().flat_map(|source| source.rules.iter().chain([&source.from]));
    each.map(String::len).sum()
}

/// Reads rules where there are some: without any, the field is not there.
pub(super) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IgnoreSource>, D::Error> {
    let sources = Vec::deserialize(from)?;
    match sources.is_empty() {
        true => Err(D::Error::custom("no rules are no field")),
        false => Ok(sources),
    }
}

/// Are these rules that could have been written? The error says what is wrong.
pub fn check(sources: &[IgnoreSource]) -> Result<(), String> {
    if size(sources) > BYTES_MAX {
        return Err(format!("its rules have more than {BYTES_MAX} bytes"));
    }
    // The configuration first, then each file once, in the order of paths.
    let directory = |source: &IgnoreSource| directory_of(&source.from);
    let directories: Option<Vec<_>> = sources.iter().map(directory).collect();
    let Some(directories) = directories else {
        return Err("its rules come from no file of rules".to_owned());
    };
    if !directories.is_sorted_by(|one, next| one < next) {
        return Err("its rules are not in order".to_owned());
    }
    for rule in sources.iter().flat_map(|source| &source.rules) {
        match bytes_of(rule) {
            Some(bytes) if bytes.is_empty() || bytes.len() > RULE_MAX => {
                return Err(format!("a rule has no bytes, or more than {RULE_MAX}"));
            }
            Some(_) => {}
            None => return Err("a rule is not spelled as it is written".to_owned()),
        }
    }
    match sources.iter().any(|source| source.rules.is_empty()) {
        true => Err("a file of rules has none".to_owned()),
        false => Ok(()),
    }
}

/// The directory whose rules come `from` there, in bytes, the root's being empty; nothing
/// within for those of the configuration, and nothing at all if it is neither.
pub fn directory_of(from: &str) -> Option<Option<Vec<u8>>> {
    if from == OF_CONFIG {
        return Some(None);
    }
    if from.len() > FROM_MAX {
        return None;
    }
    let bytes = bytes_of(from)?;
    let directory = match bytes.strip_suffix(FILE_NAME.as_bytes())? {
        [] => &[],
        above => above.strip_suffix(b"/")?,
    };
    let is_plain = |part: &[u8]| {
        !matches!(part, b"" | b"." | b"..") && !part.contains(&0) && part.len() <= NAME_BYTES_MAX
    };
    let sound = directory.is_empty() && bytes.len() == FILE_NAME.len()
        || directory.split(|&byte| byte == b'/').all(is_plain);
    sound.then(|| Some(directory.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(from: &str, rules: &[&str]) -> IgnoreSource {
        IgnoreSource { from: from.into(), rules: rules.iter().map(|&rule| rule.into()).collect() }
    }

    #[test]
    fn any_bytes_have_one_spelling_that_is_read_back() {
        for (bytes, text) in [
            (&b"*.o"[..], "*.o"),
            (b"100%", "100%25"),
            (b"a\xff\n", "a%FF%0A"),
            ("n\u{e4}\u{85}".as_bytes(), "nä%C2%85"),
            (b"", ""),
        ] {
            assert_eq!(spelled(bytes), text);
            assert_eq!(bytes_of(text).as_deref(), Some(bytes), "{text}");
        }
        for text in ["%41", "%ff", "%", "%4", "%zz", "\n", "%+5"] {
            assert_eq!(bytes_of(text), None, "{text:?}");
        }
        // Bytes that only together are text.
        assert_eq!(bytes_of("%C3%A4"), None);
    }

    #[test]
    fn rules_come_from_the_configuration_and_then_from_files_in_order() {
        let (config, root) = (source(OF_CONFIG, &["*.o"]), source(".jvsignore", &["a"]));
        let below = source("d/.jvsignore", &["!b", "%FF"]);
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[config.clone(), root.clone(), below.clone()]), Ok(()));
        for wrong in [
            vec![root.clone(), config.clone()],
            vec![root.clone(), root.clone()],
            vec![below.clone(), root.clone()],
            vec![source("d/.gitignore", &["a"])],
            vec![source("/.jvsignore", &["a"])],
            vec![source("x.jvsignore", &["a"])],
            vec![source("../.jvsignore", &["a"])],
            vec![source("a//.jvsignore", &["a"])],
            vec![source(&format!("{}/.jvsignore", "d".repeat(FROM_MAX)), &["a"])],
            vec![source(&format!("{}/.jvsignore", "d".repeat(NAME_BYTES_MAX + 1)), &["a"])],
            vec![source(OF_CONFIG, &[])],
            vec![source(OF_CONFIG, &[""])],
            vec![source(OF_CONFIG, &["a\n"])],
            vec![source(OF_CONFIG, &[&"x".repeat(RULE_MAX + 1)])],
            vec![source(OF_CONFIG, &["x".repeat(RULE_MAX).as_str(); 17])],
        ] {
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
    }
}
