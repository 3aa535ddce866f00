//! One line of a file of rules, in the syntax of gitignore.

use super::glob::Glob;

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// As it stands there.
    pub(super) text: Vec<u8>,
    /// What matches is not ignored after all.
    pub(super) is_exception: bool,
    /// It matches directories only.
    of_directories: bool,
    /// It has a slash, so it is about the path from where it stands, and else about a name.
    of_path: bool,
    glob: Glob,
}

impl Pattern {
    /// The rule on a line without its end; none if there is nothing on it but a comment.
    pub(super) fn of_line(line: &[u8]) -> Option<Self> {
        if line.first() == Some(&b'#') {
            return None;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Git reads no further than that.
        let end = line.iter().position(|&byte| byte == 0).unwrap_or(line.len());
        Self::of_text(without_trailing_spaces(&line[..end]))
    }

    /// The rule that was read from a line and has this text, to the last byte.
    pub(super) fn of_text(text: &[u8]) -> Option<Self> {
        let body = text.strip_prefix(b"!").unwrap_or(text);
        let is_exception = body.len() < text.len();
        let inner = body.strip_suffix(b"/").unwrap_or(body);
        let of_directories = inner.len() < body.len();
        if inner.is_empty() {
            return None;
        }
        let of_path = inner.contains(&b'/');
        let glob = Glob::new(inner.strip_prefix(b"/").unwrap_or(inner), of_path);
        Some(Pattern { text: text.to_vec(), is_exception, of_directories, of_path, glob })
    }

    /// Does it match `path`, relative to where it stands? Whether that is a directory is
    /// asked only if it matters.
    pub(super) fn matches(&self, path: &[u8], is_directory: &mut dyn FnMut() -> bool) -> bool {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        self.glob.matches(if self.of_path { path } else { name })
            && (!self.of_directories || is_directory())
    }
}

/// Spaces at the end, unless there is a backslash before them.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => at += 1,
            b'\\' => {
                at = (at + 2).min(line.len());
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end]
}

/// The rules of a file.
pub(super) fn of_file(bytes: &[u8]) -> Vec<Pattern> {
    // As some editors begin a file of text.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.split(|&byte| byte == b'\n').filter_map(Pattern::of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(rule: &[u8], path: &str) -> bool {
        let pattern = Pattern::of_line(rule).expect("a rule");
        let (path, is_directory) = match path.strip_suffix('/') {
            Some(path) => (path, true),
            None => (path, false),
        };
        pattern.matches(path.as_bytes(), &mut || is_directory)
    }

    #[test]
    fn comments_and_empty_lines_are_no_rules() {
        for line in ["", "# a", "#", "   ", "\r", "!", "/", "!/"] {
            assert_eq!(Pattern::of_line(line.as_bytes()), None, "{line:?}");
        }
        assert_eq!(of_file(b"\xef\xbb\xbfa\r\n\n#b\nc").len(), 2);
    }

    #[test]
    fn spaces_at_the_end_count_only_after_a_backslash() {
        for (line, text) in [
            ("a  ", "a"),
            ("a\\ ", "a\\ "),
            ("a\\  ", "a\\ "),
            ("a \\", "a \\"),
            (" a b ", " a b"),
            ("a\t", "a\t"),
            ("a \r", "a"),
        ] {
            let rule = Pattern::of_line(line.as_bytes()).expect(line);
            assert_eq!(rule.text, text.as_bytes(), "{line:?}");
        }
        // What was read from a line is not read as one again.
        let rule = Pattern::of_line(b"a\\ \r \r").expect("a rule");
        assert_eq!(Pattern::of_text(&rule.text), Some(rule));
        assert!(matches(b"a\\ ", "a ") && !matches(b"a ", "a "));
    }

    #[test]
    fn a_pattern_without_a_slash_is_about_names_and_one_with_a_slash_about_paths() {
        for (rule, path, holds) in [
            ("a", "a", true),
            ("a", "x/a", true),
            ("/a", "x/a", false),
            ("/a", "a", true),
            ("x/a", "x/a", true),
            ("x/a", "y/x/a", false),
            ("a/", "a", false),
            ("a/", "x/a/", true),
            ("x/a/", "x/a/", true),
            ("**/a", "x/y/a", true),
            ("**/a", "a", true),
            ("x/**", "x/y/z", true),
            ("x/**", "x", false),
            ("x/**/a", "x/a", true),
            ("x/**/a", "x/y/z/a", true),
            ("x/**/a", "xa", false),
            ("x**/a", "xy/a", true),
            ("x*/a", "xy/z/a", false),
            ("*.o", "x/a.o", true),
            ("*", ".a", true),
            ("a?c", "a/c", false),
            ("a\\?c", "a?c", true),
            ("\\!a", "!a", true),
            ("\\#a", "#a", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]a]", "]", true),
            ("[a", "[a", false),
            ("[[:digit:]]", "7", true),
            ("[[:digits:]]", "7", false),
            ("a\\", "a\\", false),
            ("{a,b}", "a", false),
            ("{a,b}", "{a,b}", true),
        ] {
            assert_eq!(matches(rule.as_bytes(), path), holds, "{rule} {path}");
        }
        let raw = Pattern::of_line(b"*\xff").expect("a rule");
        assert!(raw.matches(b"d/a\xfe\xff", &mut || false), "names are bytes");
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let rule = "*a".repeat(500) + "b";
        assert!(!matches(rule.as_bytes(), &"a".repeat(255)));
        let rule = "**/a/".repeat(200) + "b";
        assert!(!matches(rule.as_bytes(), &"a/".repeat(2_000)));
    }
}
