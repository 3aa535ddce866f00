//! Which words differ within the lines that do: `[-removed-]{+added+}`, with the words
//! around them as they are.

use super::lines::{DiffLine, compare};
use super::patch::shown;
use crate::render::Paint;

/// The lines of a hunk as one text.
pub(super) fn marked(paint: Paint, lines: &[DiffLine<'_>]) -> String {
    let mut out = Marked { paint, text: String::new() };
    let mut rest = lines;
    while let Some(first) = rest.first() {
        if let DiffLine::Same(line) = first {
            out.same(line);
            rest = &rest[1..];
            continue;
        }
        let end = rest.iter().position(|line| matches!(line, DiffLine::Same(_)));
        let (changed, after) = rest.split_at(end.unwrap_or(rest.len()));
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for line in changed {
            match line {
                DiffLine::Removed(line) => old.extend(words(line)),
                DiffLine::Added(line) => new.extend(words(line)),
                DiffLine::Same(_) => {}
            }
        }
        out.changed(&compare(&old, &new));
        rest = after;
    }
    if !out.text.ends_with('\n') {
        out.text.push('\n');
    }
    out.text
}

/// Words, what is between them, and the ends of lines.
fn words(line: &[u8]) -> Vec<&[u8]> {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Word,
        Blank,
        /// A character of its own.
        Other,
    }
    let class = |byte: u8| match byte {
        b' ' | b'\t' => Class::Blank,
        // Bytes of longer characters stay together.
        b'_' | 0x80.. => Class::Word,
        byte if byte.is_ascii_alphanumeric() => Class::Word,
        _ => Class::Other,
    };
    let mut found = Vec::new();
    let mut start = 0;
    for at in 1..=line.len() {
        let ends = at == line.len()
            || class(line[at]) != class(line[at - 1])
            || class(line[at]) == Class::Other;
        if ends {
            found.push(&line[start..at]);
            start = at;
        }
    }
    found
}

struct Marked {
    paint: Paint,
    text: String,
}

impl Marked {
    fn same(&mut self, bytes: &[u8]) {
        self.text += &shown(bytes);
        if bytes.ends_with(b"\n") {
            self.text.push('\n');
        }
    }

    /// Words one after the other; those of one kind that follow each other are one.
    fn changed(&mut self, words: &[DiffLine<'_>]) {
        for run in words.chunk_by(DiffLine::is_of_the_kind) {
            let bytes: Vec<u8> = run.iter().flat_map(|word| word.bytes()).copied().collect();
            for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                self.piece(&run[0], piece);
            }
        }
    }

    fn piece(&mut self, of: &DiffLine<'_>, piece: &[u8]) {
        // The end of a line that is gone, and of nothing but its end, does not break one.
        let alone = piece == b"\n";
        let text = if alone { "\\n".to_owned() } else { shown(piece) };
        match of {
            DiffLine::Same(_) => return self.same(piece),
            DiffLine::Removed(_) => self.text += &self.paint.red(&format!("[-{text}-]")),
            DiffLine::Added(_) if alone => {}
            DiffLine::Added(_) => self.text += &self.paint.green(&format!("{{+{text}+}}")),
        }
        let breaks = piece.ends_with(b"\n") && !(alone && matches!(of, DiffLine::Removed(_)));
        if breaks {
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str) -> String {
        let lines =
            |text: &'static str| text.split_inclusive('\n').map(str::as_bytes).collect::<Vec<_>>();
        let leak = |text: &str| -> &'static str { String::leak(text.to_owned()) };
        let (old, new) = (lines(leak(old)), lines(leak(new)));
        let marked = marked(Paint, &compare(&old, &new));
        marked.chars().filter(|c| !('\u{fdd0}'..='\u{fdef}').contains(c)).collect()
    }

    #[test]
    fn words_that_differ_are_marked_and_the_others_stay() {
        for (old, new, marked) in [
            ("int a = 1;\n", "int a = 2;\n", "int a = [-1-]{+2+};\n"),
            ("a b\nc\n", "a b\nc\n", "a b\nc\n"),
            ("one two\n", "one\n", "one[- two-]\n"),
            ("x\n", "x\ny z\n", "x\n{+y z+}\n"),
            ("x\ny z\n", "x\n", "x\n[-y z-]\n"),
            ("naïve\n", "naive\n", "[-naïve-]{+naive+}\n"),
            ("a\n", "a\n\nb\n", "a\n\n{+b+}\n"),
        ] {
            assert_eq!(of(old, new), marked, "{old:?} -> {new:?}");
        }
    }

    /// Whatever is marked, the old words and the new ones are all there.
    #[test]
    fn words_are_all_of_a_line() {
        for line in ["", "a", " a  b ", "x+=1;\n", "é ü\u{1}\n", "\n"] {
            let words = words(line.as_bytes());
            assert_eq!(words.concat(), line.as_bytes(), "{line:?}");
            assert!(words.iter().all(|word| !word.is_empty()), "{line:?}");
        }
    }
}
