//! What differs in the content of files, line by line, in the form that `diff -u` has. It
//! is for people: what a terminal would act on is escaped, and tabs are spaces.

use std::io::{self, Read as _};
use std::path::Path;

use jvs_snapshot::compare::{Aspect, Difference};
use jvs_snapshot::look;
use jvs_snapshot::manifest::TreePath;

use super::lines::{DiffLine, compare};
use super::words;
use crate::fail::on_one_line;
use crate::render::Paint;

/// Larger files are only named.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// How much of a file is searched for a NUL, by which it is binary.
const LOOKED_AT: usize = 8000;
/// Lines around a change.
const AROUND: usize = 3;

/// How what differs is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) enum Style {
    /// Line by line.
    Lines,
    /// Word by word, within the lines.
    Words,
}

impl Style {
    pub(in crate::command) fn of(word_diff: bool) -> Self {
        if word_diff { Style::Words } else { Style::Lines }
    }
}

/// What a path is on one side.
enum Side {
    Nothing,
    Text(Vec<u8>),
    Binary,
    Large,
}

/// The patch of one path; empty if its content does not differ.
pub(super) fn of(
    paint: Paint,
    style: Style,
    difference: &Difference,
    before: &Path,
    after: &Path,
) -> io::Result<String> {
    let relevant = [Aspect::Added, Aspect::Removed, Aspect::Type, Aspect::Content];
    if !difference.aspects.iter().any(|aspect| relevant.contains(aspect)) {
        return Ok(String::new());
    }
    let path = &difference.path;
    let old = if is(difference, Aspect::Added) { Side::Nothing } else { side(before, path)? };
    let new = if is(difference, Aspect::Removed) { Side::Nothing } else { side(after, path)? };
    let name = |side: &Side, letter: char| match side {
        Side::Nothing => "/dev/null".to_owned(),
        _ => format!("{letter}/{path}"),
    };
    let (from, to) = (name(&old, 'a'), name(&new, 'b'));
    let (old, new) = match (&old, &new) {
        (Side::Large, _) | (_, Side::Large) => {
            return Ok(format!("Large files {from} and {to} differ\n"));
        }
        (Side::Binary, _) | (_, Side::Binary) => {
            return Ok(format!("Binary files {from} and {to} differ\n"));
        }
        (old, new) => (text(old), text(new)),
    };
    let hunks = hunks(paint, style, &compare(&split(old), &split(new)));
    if hunks.is_empty() {
        return Ok(String::new());
    }
    let head = paint.bold(&format!("--- {from}")) + "\n" + &paint.bold(&format!("+++ {to}")) + "\n";
    Ok(head + &hunks)
}

/// The same of two texts that are in no worktree.
pub(in crate::command) fn of_texts(
    paint: Paint,
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> String {
    let name = |text: Option<&str>, letter: char| match text {
        None => "/dev/null".to_owned(),
        Some(_) => format!("{letter}/{path}"),
    };
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let lines = compare(&split(old.as_bytes()), &split(new.as_bytes()));
    let (from, to) = (name(before, 'a'), name(after, 'b'));
    let head = paint.bold(&format!("--- {from}")) + "\n" + &paint.bold(&format!("+++ {to}")) + "\n";
    head + &hunks(paint, Style::Lines, &lines)
}

fn is(difference: &Difference, aspect: Aspect) -> bool {
    difference.aspects.contains(&aspect)
}

fn text(side: &Side) -> &[u8] {
    match side {
        Side::Text(text) => text,
        _ => &[],
    }
}

fn side(root: &Path, path: &TreePath) -> io::Result<Side> {
    // A symlink has one line, which does not end.
    if let Ok(target) = look::target(root, path) {
        return Ok(Side::Text(target));
    }
    let file = match look::open(root, path) {
        Ok(file) => file,
        // A directory, a pipe, or gone by now: it has no lines.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
        Err(_) => return Ok(Side::Nothing),
    };
    let mut bytes = Vec::new();
    match file.take(MOST_BYTES + 1).read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Ok(Side::Nothing),
        Err(error) => return Err(error),
    }
    Ok(match bytes {
        bytes if bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0) => Side::Binary,
        bytes if bytes.len() as u64 > MOST_BYTES => Side::Large,
        bytes => Side::Text(bytes),
    })
}

/// The lines, each with its end.
fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The changes with the lines around them.
fn hunks(paint: Paint, style: Style, lines: &[DiffLine<'_>]) -> String {
    let changed = |line: &DiffLine<'_>| !matches!(line, DiffLine::Same(_));
    let mut text = String::new();
    let mut done = 0;
    while let Some(first) = (done..lines.len()).find(|at| changed(&lines[*at])) {
        let start = first.saturating_sub(AROUND).max(done);
        // Up to where more than twice as many lines as are shown around are the same.
        let mut last = first;
        while let Some(next) =
            (last + 1..lines.len().min(last + 2 + 2 * AROUND)).find(|at| changed(&lines[*at]))
        {
            last = next;
        }
        let end = lines.len().min(last + 1 + AROUND);
        text += &hunk(paint, style, &lines[..start], &lines[start..end]);
        done = end;
    }
    text
}

fn hunk(paint: Paint, style: Style, before: &[DiffLine<'_>], lines: &[DiffLine<'_>]) -> String {
    let old =
        |lines: &[DiffLine<'_>]| lines.iter().filter(|l| !matches!(l, DiffLine::Added(_))).count();
    let new = |lines: &[DiffLine<'_>]| {
        lines.iter().filter(|l| !matches!(l, DiffLine::Removed(_))).count()
    };
    // A side without lines begins before its first one.
    let range = |before: usize, count: usize| match count {
        1 => format!("{}", before + 1),
        _ => format!("{},{count}", before + usize::from(count > 0)),
    };
    let (from, to) = (range(old(before), old(lines)), range(new(before), new(lines)));
    let mut text = paint.cyan(&format!("@@ -{from} +{to} @@")) + "\n";
    if style == Style::Words {
        return text + &words::marked(paint, lines);
    }
    for line in lines {
        let (bytes, shown) = match line {
            DiffLine::Same(bytes) => (bytes, format!(" {}", shown(bytes))),
            DiffLine::Removed(bytes) => (bytes, paint.red(&format!("-{}", shown(bytes)))),
            DiffLine::Added(bytes) => (bytes, paint.green(&format!("+{}", shown(bytes)))),
        };
        text += &shown;
        text.push('\n');
        if !bytes.ends_with(b"\n") {
            text += "\\ No newline at end of file\n";
        }
    }
    text
}

/// A line without its end.
pub(super) fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut out = String::new();
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => out += &" ".repeat(8 - out.chars().count() % 8),
                c => out.push(c),
            }
        }
        // As in a path, or lines that differ in nothing else would look the same.
        out.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    on_one_line(&out)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the files that are compared")]
mod tests {
    use super::*;

    #[test]
    fn binary_files_and_large_ones_are_told_by_their_bytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = TreePath::new(b"file".to_vec()).expect("a path");
        let side_of = |bytes: &[u8]| {
            std::fs::write(dir.path().join("file"), bytes).expect("written");
            side(dir.path(), &path).expect("read")
        };
        let with_nul_at = |at: usize| {
            let mut bytes = vec![b'a'; 10_000];
            bytes[at] = 0;
            bytes
        };
        assert!(matches!(side_of(&with_nul_at(7999)), Side::Binary));
        assert!(matches!(side_of(&with_nul_at(8000)), Side::Text(_)));
        let mut most = vec![b'a'; 8 << 20];
        assert!(matches!(side_of(&most), Side::Text(_)));
        most.push(b'a');
        assert!(matches!(side_of(&most), Side::Large));
    }

    #[test]
    fn a_line_of_another_encoding_differs_where_its_bytes_do() {
        assert_eq!(shown(b"caf\xe9\n"), "caf\\xe9");
        assert_eq!(shown(b"caf\xe8\n"), "caf\\xe8");
        assert_eq!(shown("caf\u{e9}\tx\n".as_bytes()), "caf\u{e9}    x");
        assert_eq!(shown(b"\x1b[31m"), "\\u{1b}[31m");
    }
}
