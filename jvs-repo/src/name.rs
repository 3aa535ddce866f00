//! Names that people choose: worktrees and tags.

use std::fmt;
use std::str::FromStr;

use crate::code::{Code, Coded};
use crate::id::text_serde;
use crate::inert::acts;
use crate::layout;
use crate::next::Next;

/// Longest name, in bytes.
pub const NAME_MAX: usize = 64;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct NameError {
    name: String,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    Empty,
    TooLong(usize),
    Escapes,
    Character(char),
    LikeAnOption,
    LikeAControlDirectory,
}

impl NameError {
    fn sentence(&self) -> String {
        let shown: String = self.name.chars().take(80).flat_map(char::escape_debug).collect();
        match self.problem {
            Problem::Empty => "a name cannot be empty".to_owned(),
            Problem::TooLong(bytes) => {
                format!("the name \"{shown}\" has {bytes} bytes; at most {NAME_MAX} are allowed")
            }
            Problem::Escapes => format!("the name \"{shown}\" would leave the repository"),
            Problem::Character(c) => {
                format!("the name \"{shown}\" contains {c:?}, which is not allowed")
            }
            Problem::LikeAnOption => {
                format!("the name \"{shown}\" begins with '-', as options do")
            }
            Problem::LikeAControlDirectory => {
                format!("a directory \"{shown}\" would be taken for a repository's own")
            }
        }
    }
}

impl Coded for NameError {
    fn code(&self) -> Code {
        match self.problem {
            Problem::Escapes => Code::PathEscape,
            _ => Code::NameInvalid,
        }
    }

    fn next(&self) -> Option<Next> {
        Some(Next::ChooseValidName(NAME_MAX))
    }
}

fn check(name: &str) -> Result<(), NameError> {
    let refuse = |problem| Err(NameError { name: name.to_owned(), problem });
    if name.is_empty() {
        return refuse(Problem::Empty);
    }
    if name == "." || name == ".." || name.contains('/') {
        return refuse(Problem::Escapes);
    }
    // The alphabet is ASCII, so a name that passes is in Unicode NFC already.
    if let Some(c) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-".contains(*c))) {
        return refuse(Problem::Character(c));
    }
    if name.len() > NAME_MAX {
        return refuse(Problem::TooLong(name.len()));
    }
    Ok(())
}

fn no_option(name: &str) -> Result<(), NameError> {
    if name.starts_with('-') {
        return Err(NameError { name: name.to_owned(), problem: Problem::LikeAnOption });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $more:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                check(name).and_then(|()| $more(name)).map(|()| $name(name.to_owned()))
            }
        }

        text_serde!($name);
    };
}

name! {
    /// The name of a worktree: it is typed as an argument and is the name of a
    /// directory, so it must not be taken for an option by any program.
    WorktreeName, no_option
}
name! {
    /// The name of a tag.
    TagName, |_: &str| Ok(())
}

impl WorktreeName {
    /// The worktree that every repository is born with.
    pub fn main() -> Self {
        WorktreeName("main".to_owned())
    }

    /// Is this the worktree at `<repo>/main`?
    pub fn is_main(&self) -> bool {
        self.0 == "main"
    }

    /// Refuses what no new worktree may be called: whoever looks for the repository from
    /// the directory of another worktree would take that one for its control directory.
    pub fn check_for_new(&self) -> Result<(), NameError> {
        match self.0 == layout::CONTROL_DIR {
            true => {
                Err(NameError { name: self.0.clone(), problem: Problem::LikeAControlDirectory })
            }
            false => Ok(()),
        }
    }
}

/// A name of any bytes on one line of plain text, such that every name can be told from
/// every other: what [`acts`] on a terminal, backslashes and what is not UTF-8 are
/// escaped. [`exact`] turns it back.
#[derive(Debug, Clone, Copy)]
pub struct ShownName<'n>(&'n [u8]);

impl<'n> ShownName<'n> {
    /// The name, as it is to be shown.
    pub fn new(name: &'n (impl AsRef<std::ffi::OsStr> + ?Sized)) -> Self {
        ShownName(name.as_ref().as_encoded_bytes())
    }

    /// The same, of bytes.
    pub fn bytes(name: &'n [u8]) -> Self {
        ShownName(name)
    }

    /// A word that a shell reads as this name.
    pub fn typed(self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%".contains(&byte);
        match std::str::from_utf8(self.0) {
            Ok(text) if !text.is_empty() && text.bytes().all(plain) => text.to_owned(),
            Ok(text) if !text.contains(acts) => format!("'{}'", text.replace('\'', r"'\''")),
            _ => format!("$'{}'", self.0.escape_ascii()),
        }
    }
}

/// The bytes of a name that is [`ShownName`]; nothing if none is shown like that.
pub fn exact(shown: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(shown.len());
    let mut rest = shown;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (kind, after) = (*escape.as_bytes().first()?, escape.get(1..)?);
        rest = after;
        match kind {
            b'\\' => bytes.push(b'\\'),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'x' => {
                bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
                rest = &after[2..];
            }
            b'u' => {
                let (number, after) = after.strip_prefix('{')?.split_once('}')?;
                let c = char::from_u32(u32::from_str_radix(number, 16).ok()?)?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            _ => return None,
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

impl fmt::Display for ShownName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if acts(c) || c == '\\' {
                    write!(f, "{}", c.escape_default())?;
                } else {
                    write!(f, "{c}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_accepted() {
        for name in ["main", "feature-1", "v1.2.3", "_x", "A", "...", "x-", &"x".repeat(64)] {
            assert!(name.parse::<WorktreeName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn hostile_names_are_refused_with_the_right_code() {
        let long = "x".repeat(300);
        for (name, code) in [
            ("", Code::NameInvalid),
            (".", Code::PathEscape),
            ("..", Code::PathEscape),
            ("a/b", Code::PathEscape),
            ("../x", Code::PathEscape),
            ("a\0b", Code::NameInvalid),
            ("a b", Code::NameInvalid),
            ("e\u{301}", Code::NameInvalid),
            ("\u{e9}", Code::NameInvalid),
            ("a\nb", Code::NameInvalid),
            ("-", Code::NameInvalid),
            ("-x", Code::NameInvalid),
            ("--force", Code::NameInvalid),
            (long.as_str(), Code::NameInvalid),
        ] {
            let error = name.parse::<WorktreeName>().expect_err(name);
            assert_eq!(error.code(), code, "{name:?}");
            assert!(error.next().is_some());
        }
    }

    #[test]
    fn no_new_worktree_is_called_as_a_control_directory_is() {
        let check = |name: &str| name.parse::<WorktreeName>().expect(name).check_for_new();
        let error = check(layout::CONTROL_DIR).expect_err("it hides the repository");
        assert_eq!(error.code(), Code::NameInvalid);
        let alike = [format!(".{}", layout::CONTROL_DIR), format!("{}2", layout::CONTROL_DIR)];
        for name in alike.iter().map(String::as_str).chain(["main", ".git"]) {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_name_of_any_bytes_is_shown_and_typed() {
        let name = b"a\xffb\n\\'";
        assert_eq!(ShownName::bytes(name).to_string(), "a\\xffb\\n\\\\'");
        assert_eq!(ShownName::bytes(name).typed(), "$'a\\xffb\\n\\\\\\''");
        assert_eq!(ShownName::new("main.fence/x").typed(), "main.fence/x");
        assert_eq!(ShownName::new("a b; it's").typed(), r"'a b; it'\''s'");
        assert_eq!(ShownName::new("").typed(), "''");
        assert_eq!(ShownName::new("\u{202e}x").typed(), r"$'\xe2\x80\xaex'");
    }

    #[test]
    fn what_is_shown_of_a_name_tells_its_bytes() {
        let names: [&[u8]; 6] = [
            b"plain",
            b"",
            b"a\xffb\n\\'\t\r",
            b"\\n",
            "\u{202e}\u{2028}é".as_bytes(),
            b"\xf0\x9f",
        ];
        for name in names {
            let shown = ShownName::bytes(name).to_string();
            assert_eq!(exact(&shown).as_deref(), Some(name), "{shown}");
        }
        for wrong in ["\\", "\\x", "\\xz", "\\u{", "\\u{110000}", "\\q"] {
            assert_eq!(exact(wrong), None, "{wrong}");
        }
    }
}
