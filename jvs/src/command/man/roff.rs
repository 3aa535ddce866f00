//! The little of the manual's own language that the generator has no words for.

use std::fmt::Write as _;

/// A part of a page.
#[derive(Debug, Default)]
pub(super) struct Roff {
    text: String,
}

impl Roff {
    pub(super) fn title(&mut self, name: &str, section: u8, manual: &str) {
        let version = concat!("jvs ", env!("CARGO_PKG_VERSION"));
        let name = plain(name);
        let _ = writeln!(self.text, ".TH {name} {section} \"\" \"{version}\" \"{manual}\"");
    }

    pub(super) fn section(&mut self, title: &str) {
        let _ = writeln!(self.text, ".SH {}", plain(title));
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        // Right after a section's title it would be one too many.
        if !self.text.lines().next_back().is_some_and(|line| line.starts_with(".SH")) {
            self.text += ".PP\n";
        }
        let _ = writeln!(self.text, "{}", plain(text));
    }

    pub(super) fn item(&mut self, what: &str, about: &str) {
        let _ = writeln!(self.text, ".TP\n\\fB{}\\fR\n{}", plain(what), plain(about));
    }

    /// Lines that stay as they are.
    pub(super) fn literal<'l>(&mut self, lines: impl IntoIterator<Item = &'l str>) {
        self.text += ".nf\n";
        for line in lines {
            let _ = writeln!(self.text, "{}", plain(line));
        }
        self.text += ".fi\n";
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

/// Text in which nothing means anything to the formatter.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 8);
    if text.starts_with(['.', '\'']) {
        plain += "\\&";
    }
    for c in text.chars() {
        match c {
            '\\' => plain += "\\e",
            '-' => plain += "\\-",
            '\'' => plain += "\\(aq",
            '`' => plain += "\\(ga",
            '^' => plain += "\\(ha",
            '~' => plain += "\\(ti",
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_means_nothing_to_the_formatter() {
        assert_eq!(plain(".SH a-b 'c' \\fB"), "\\&.SH a\\-b \\(aqc\\(aq \\efB");
    }
}
