//! Text that is only shown and does nothing: names, notes and paths are written by
//! others, and a terminal acts on some characters instead of showing them.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Does a terminal act on this character, or does it change how its neighbours look
/// without being seen itself? Controls (C0, DEL, C1), format characters (bidirectional
/// marks, joiners, zero-width ones, tags), separators of lines and paragraphs, fillers
/// that look like nothing, and what is no character at all.
pub const fn acts(c: char) -> bool {
    // Most text is this, and is looked at character by character.
    if c >= ' ' && c < '\u{7f}' {
        return false;
    }
    matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || c as u32 & 0xfffe == 0xfffe
}

/// `text` on one line, with `\n` and `\u{202e}` for what [`acts`].
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// `text` with what `hidden` says escaped.
pub fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&hidden) else { return Cow::Borrowed(text) };
    let mut line = String::with_capacity(text.len() + 16);
    line.push_str(&text[..first]);
    for c in text[first..].chars() {
        if hidden(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    Cow::Owned(line)
}

/// How many columns of a terminal a character that does not [act](acts) takes alone.
pub fn columns_of(c: char) -> usize {
    c.width().unwrap_or(1)
}

/// How many columns of a terminal a text takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of all characters that there are.
    #[test]
    fn what_a_terminal_acts_on_is_escaped_and_what_it_shows_is_not() {
        let named = "\u{0}\n\r\t\u{1b}\u{7f}\u{85}\u{9b}\u{61c}\u{200b}\u{200c}\u{200d}\u{200e}\
                     \u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2060}\
                     \u{2066}\u{2067}\u{2068}\u{2069}\u{feff}\u{ad}\u{e0041}\u{fdd0}\u{10ffff}";
        for c in named.chars() {
            assert!(acts(c), "{}", c.escape_unicode());
            let line = on_one_line(c.encode_utf8(&mut [0; 4])).into_owned();
            assert!(line.starts_with('\\') && line.is_ascii(), "{line}");
        }
        for text in ["plain text, 100 %", "Grüße", "名前", "é", "🚀", "ש", "\u{fffd}"] {
            assert_eq!(on_one_line(text), text);
        }
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| c.is_control()) {
            assert!(acts(c), "{}", c.escape_unicode());
        }
    }

    #[test]
    fn an_escape_is_the_one_that_programmers_know() {
        assert_eq!(on_one_line("a\nb\u{1b}[2J\u{202e}c"), "a\\nb\\u{1b}[2J\\u{202e}c");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!((columns("abc"), columns("名前"), columns("🚀")), (3, 4, 2));
        // Marks are above their letters, and a flag is one picture.
        assert_eq!((columns("e\u{301}"), columns("ก็"), columns("🇩🇪")), (1, 1, 2));
    }
}
