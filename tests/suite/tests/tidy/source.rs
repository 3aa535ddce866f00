//! The project's files, and a reading of Rust that is just deep enough: what is
//! code, what is a string, what is a comment, and what is only built for tests.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The project's root.
pub(crate) fn root() -> PathBuf {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"));
    suite.ancestors().nth(2).expect("the suite lies two levels below the root").to_owned()
}

/// A file, its path relative to the root with `/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every text file of the project with one of these extensions, sorted by path.
pub(crate) fn files(extensions: &[&str]) -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    let mut pending = vec![root.clone()];
    while let Some(dir) = pending.pop() {
        for entry in fs_err::read_dir(&dir).expect("a directory of the project") {
            let path = entry.expect("an entry of the project").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if ["target", "dist", ".git"].contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                pending.push(path);
            } else if extensions
                .contains(&path.extension().unwrap_or_default().to_str().unwrap_or(""))
            {
                let relative = path.strip_prefix(&root).expect("found below the root");
                found.push(File {
                    path: relative.to_str().expect("the project's paths are UTF-8").to_owned(),
                    text: fs_err::read_to_string(&path).expect("a text file of the project"),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "no {extensions:?} below {}", root.display());
    found
}

/// A Rust file, read.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// As long as `text`, with comments and the insides of strings blanked.
    pub(crate) code: String,
    /// Where string literals are in `text`, without their quotes.
    pub(crate) strings: Vec<Range<usize>>,
    /// What is imported in braces: each whole path, and where its last name is.
    grouped: Vec<(String, usize)>,
    /// What is only built for tests: `#[cfg(test)] mod … { … }`.
    test_regions: Vec<Range<usize>>,
}

impl Source {
    fn read(file: File) -> Self {
        let (code, strings) = lex(&file.text);
        let test_regions = test_regions(&code);
        let grouped = grouped_imports(&code);
        Self { path: file.path, text: file.text, code, strings, grouped, test_regions }
    }

    /// Whether the byte at `offset` is only built for tests.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.contains("/benches/")
            || self.test_regions.iter().any(|region| region.contains(&offset))
    }

    /// The line that `offset` is on, for messages.
    pub(crate) fn line(&self, offset: usize) -> String {
        let number = self.text[..offset].matches('\n').count() + 1;
        let line = self.text.lines().nth(number - 1).unwrap_or_default().trim();
        format!("{}:{number}: {line}", self.path)
    }

    /// Where `word` stands in the code as a word of its own. A path such as
    /// `Code::Io` is a word too, also where it is imported in braces: `use Code::{Io, Usage}`.
    pub(crate) fn words<'s>(&'s self, word: &'s str) -> impl Iterator<Item = usize> + 's {
        let grouped = self.grouped.iter();
        let imported = grouped.filter(|(path, _)| occurrences(path, word).next() == Some(0));
        occurrences(&self.code, word).chain(imported.map(|(_, at)| *at))
    }

    /// The names of the functions that carry `#[test]`.
    pub(crate) fn test_functions(&self) -> BTreeSet<&str> {
        self.code
            .match_indices("#[test]")
            .filter_map(|(at, _)| {
                let after = &self.code[at..];
                let name = &after[after.find("fn ")? + 3..];
                name.split(|c: char| !is_word(c)).next()
            })
            .collect()
    }
}

/// Every Rust file of the project.
pub(crate) fn sources() -> Vec<Source> {
    files(&["rs"]).into_iter().map(Source::read).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where `word` stands in `text` with no word character on either side.
pub(crate) fn occurrences<'s>(text: &'s str, word: &'s str) -> impl Iterator<Item = usize> + 's {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        !text[..at].chars().next_back().is_some_and(is_word)
            && !text[at + word.len()..].chars().next().is_some_and(is_word)
    })
}

/// Blanks comments and the insides of strings, and says where the strings are.
fn lex(text: &str) -> (String, Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut strings = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let word_before = at > 0 && is_word(char::from(bytes[at - 1]));
        let blanked = if rest.starts_with(b"//") {
            at..at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at..at + block_comment(rest)
        } else if let Some(hashes) = raw_string_hashes(rest).filter(|_| !word_before) {
            let open = at + rest.iter().position(|&b| b == b'"').expect("a raw string opens") + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            let end = text[open..].find(&close).map_or(bytes.len(), |length| open + length);
            strings.push(open..end);
            at = (end + close.len()).min(bytes.len());
            open..end
        } else if rest[0] == b'"' {
            let end = at + 1 + string_length(&rest[1..]);
            strings.push(at + 1..end);
            let inside = at + 1..end;
            at = (end + 1).min(bytes.len());
            inside
        } else if let Some(length) = char_literal(&text[at..]) {
            at + 1..at + length - 1
        } else {
            at += 1;
            continue;
        };
        for byte in &mut code[blanked.clone()] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = at.max(blanked.end + usize::from(rest[0] == b'\''));
    }
    (String::from_utf8(code).expect("blanking whole characters keeps UTF-8"), strings)
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The whole paths of what is imported in braces, and where each name is. A path in front
/// of braces does not show what is taken from it.
fn grouped_imports(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for at in occurrences(code, "use") {
        let length = code[at..].find(';').unwrap_or(0);
        let declared = &code[at..at + length];
        if declared.contains('{') && declared[3..].starts_with(' ') {
            let mut prefixes = Vec::new();
            let (mut prefix, mut from) = (String::new(), 4);
            for (end, c) in declared.char_indices().skip(4).chain([(length, ',')]) {
                let name = declared.get(from..end).unwrap_or_default();
                match c {
                    '{' => {
                        prefixes.push(prefix.clone());
                        prefix.push_str(name.trim());
                    }
                    ',' | '}' => {
                        let name_at = from + name.len() - name.trim_start().len();
                        let name = name.trim().split(' ').next().unwrap_or_default();
                        if !name.is_empty() && !prefixes.is_empty() {
                            let path = format!("{prefix}{name}");
                            found.push((path.trim_end_matches("::self").to_owned(), at + name_at));
                        }
                        if c == '}' {
                            prefix = prefixes.pop().unwrap_or_default();
                        }
                    }
                    _ => continue,
                }
                from = end + 1;
            }
        }
    }
    found
}

/// The number of `#` if a raw string (`r"`, `br#"`, `cr"`) begins here.
fn raw_string_hashes(rest: &[u8]) -> Option<usize> {
    let after = rest.strip_prefix(b"r").or_else(|| rest.strip_prefix(b"br"));
    let after = after.or_else(|| rest.strip_prefix(b"cr"))?;
    let hashes = after.iter().take_while(|&&b| b == b'#').count();
    (after.get(hashes) == Some(&b'"')).then_some(hashes)
}

fn string_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at.min(rest.len())
}

/// The length of a character literal that begins here; a lifetime is none.
fn char_literal(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    if let Some(escape) = inside.strip_prefix('\\') {
        let first = escape.chars().next()?.len_utf8();
        return Some(2 + first + escape[first..].find('\'')? + 1);
    }
    let first = inside.chars().next()?;
    inside[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

/// Bodies of modules behind `#[cfg(test)]`.
fn test_regions(code: &str) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for (at, _) in code.match_indices("#[cfg(test)]") {
        let after = &code[at..];
        let (Some(open), end_of_item) = (after.find('{'), after.find(';')) else { continue };
        if end_of_item.is_some_and(|end| end < open) {
            continue; // `mod tests;`: its file lies elsewhere.
        }
        let mut depth = 0_usize;
        let close = after[open..].char_indices().find_map(|(offset, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(offset)
        });
        regions.push(at..at + open + close.unwrap_or(after.len() - open));
    }
    regions
}

#[test]
fn comments_strings_and_characters_are_not_code() {
    let text = "a(\"x\\\"y\"); // no\n/* /* n */ n */ b('\"', 'c', r#\"z\"\"#, '\\'', b\"q\"); fn f<'a>() {}";
    let (code, strings) = lex(text);
    assert_eq!(code.len(), text.len());
    for word in ["no", "n", "x", "y", "z", "q", "c"] {
        assert_eq!(occurrences(&code, word).count(), 0, "{word} is not code in {code}");
    }
    for word in ["a", "b", "fn", "f"] {
        assert!(occurrences(&code, word).count() > 0, "{word} is code in {code}");
    }
    let inside: Vec<_> = strings.into_iter().map(|at| &text[at]).collect();
    assert_eq!(inside, ["x\\\"y", "z\"", "q"]);
}

#[test]
fn what_is_imported_in_braces_is_a_whole_path() {
    let text = "use std::{fs, io::{self, Read as _}, path::Path};\nuse a::b;\nfn use_it() {}\n\
                pub use x::{\n    y,\n    z::{Z, self},\n};";
    let found = grouped_imports(text);
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    let wanted = ["std::fs", "std::io", "std::io::Read", "std::path::Path", "x::y", "x::z::Z"];
    assert_eq!(paths, [&wanted[..], &["x::z"]].concat());
    assert!(text[found[0].1..].starts_with("fs,") && text[found[4].1..].starts_with("y,"));
    let source = Source::read(File { path: "x/src/y.rs".to_owned(), text: text.to_owned() });
    assert_eq!(source.words("std::fs").count(), 1);
    assert_eq!(source.words("x::z").count(), 2, "itself, and what is in it");
}

#[test]
fn a_test_module_is_told_from_what_is_shipped() {
    let text = "fn shipped() {}\n#[cfg(test)]\nmod tests { fn f() { '}'; } }\nfn also() {}";
    let source = Source::read(File { path: "x/src/y.rs".to_owned(), text: text.to_owned() });
    let at = |word: &str| source.words(word).next().expect("the word is there");
    assert!(!source.is_test(at("shipped")) && !source.is_test(at("also")));
    assert!(source.is_test(at("f")));
}
