//! A section of ours in a text that is its owner's, between two lines that mark it. The
//! first says how the text ended before, so that it can end so again, and what was written
//! between them, so that lines of anybody else are known, whichever version wrote the rest.

use std::collections::BTreeSet;

use super::receipt::digest;

/// What the first line says of a text that was not there.
const NEW: &str = "new";

fn begin(owner: &str) -> String {
    format!("<!-- jvs:{owner} begin ")
}

fn end(owner: &str) -> String {
    format!("<!-- jvs:{owner} end -->\n")
}

/// `text` with the section `body` of `owner` at its end. It must not have one.
pub(super) fn added(text: Option<&str>, owner: &str, body: &str) -> String {
    let (before, was) = match text {
        None => ("", NEW.to_owned()),
        Some("") => ("", "0".to_owned()),
        Some(text) if text.ends_with("\n\n") => ("", "0".to_owned()),
        Some(text) if text.ends_with('\n') => ("\n", "1".to_owned()),
        Some(_) => ("\n\n", "2".to_owned()),
    };
    let text = text.unwrap_or_default();
    format!("{text}{before}{}{was} {} -->\n{body}{}", begin(owner), digest(body), end(owner))
}

/// What a text is without a section.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Without {
    /// It has none.
    Nothing,
    /// The text was only made for it, and has nothing else.
    Gone,
    Text(String),
    /// The same, and in the place of the section are lines that somebody else wrote in it.
    Theirs(String),
    /// It begins, and does not end.
    Torn,
}

/// `text` without the section of `owner`, which would be written as `body` now.
pub(super) fn removed(text: &str, owner: &str, body: &str) -> Without {
    let (begin, end) = (begin(owner), end(owner));
    let Some(start) = text.find(&begin) else { return Without::Nothing };
    let after = &text[start + begin.len()..];
    let found = after.find(&end).or_else(|| {
        // The last line of a text may have lost its end.
        after.ends_with(end.trim_end()).then(|| after.len() - end.trim_end().len())
    });
    let Some(length) = found else { return Without::Torn };
    let (says, is) = after[..length].split_once(" -->\n").unwrap_or((&after[..length], ""));
    let (was, written) = says.split_once(' ').unwrap_or((says, ""));
    let rest = after.get(length + end.len()..).unwrap_or_default();
    let theirs = if digest(is) == written { String::new() } else { foreign(is, body) };
    if !theirs.is_empty() {
        return Without::Theirs(format!("{}{theirs}{rest}", &text[..start]));
    }
    let mut before = &text[..start];
    for _ in 0..was.parse::<usize>().unwrap_or(0).min(2) {
        before = before.strip_suffix('\n').unwrap_or(before);
    }
    let whole = format!("{before}{rest}");
    if whole.is_empty() && was == NEW { Without::Gone } else { Without::Text(whole) }
}

/// The lines of `text` that `body` has not, with the empty ones between them.
fn foreign(text: &str, body: &str) -> String {
    let ours: BTreeSet<&str> = body.lines().map(str::trim_end).collect();
    let (mut theirs, mut empty) = (String::new(), String::new());
    for line in text.split_inclusive('\n') {
        match line.trim_end() {
            "" => empty += line,
            known if ours.contains(known) => empty.clear(),
            _ if theirs.is_empty() => theirs += line,
            _ => theirs += &format!("{empty}{line}"),
        }
        if !line.trim_end().is_empty() {
            empty.clear();
        }
    }
    theirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_it_was_when_its_section_is_gone() {
        for text in ["", "\n", "a", "a\n", "a\n\n", "a\n\n\n", "a\r\n", "# T\n\ntext\n"] {
            let one = added(Some(text), "x", "body\n");
            let two = added(Some(&one), "y", "other\n");
            // In whatever order they go.
            let Without::Text(left) = removed(&two, "x", "body\n") else { panic!("{two}") };
            assert_eq!(removed(&left, "y", "other\n"), Without::Text(text.to_owned()), "{text:?}");
            let Without::Text(left) = removed(&two, "y", "other\n") else { panic!("{two}") };
            assert_eq!(removed(&left, "x", "body\n"), Without::Text(text.to_owned()), "{text:?}");
        }
        let new = added(None, "x", "body\n");
        assert_eq!(removed(&new, "x", "body\n"), Without::Gone);
        assert_eq!(removed(new.trim_end(), "x", "body\n"), Without::Gone);
        assert_eq!(
            removed(&format!("{new}more\n"), "x", "body\n"),
            Without::Text("more\n".to_owned())
        );
    }

    #[test]
    fn what_is_around_it_and_what_is_of_others_stays() {
        let text = added(Some("a\n"), "x", "body\n") + "after\n";
        assert_eq!(removed(&text, "x", "body\n"), Without::Text("a\nafter\n".to_owned()));
        assert_eq!(removed(&text, "y", "other\n"), Without::Nothing);
        let torn = text.replace("end -->", "");
        assert_eq!(removed(&torn, "x", "body\n"), Without::Torn);
    }

    #[test]
    fn lines_of_others_in_it_stay_whichever_version_wrote_the_rest() {
        let text = added(Some("a\n"), "x", "one\n\ntwo\n") + "after\n";
        let less = Without::Text("a\nafter\n".to_owned());
        assert_eq!(removed(&text, "x", "another version\n"), less);
        let with = text.replace("two\n", "two\n- mine\n\n  and more\n");
        assert_eq!(
            removed(&with, "x", "one\n\ntwo\n"),
            Without::Theirs("a\n\n- mine\n\n  and more\nafter\n".to_owned())
        );
        // Of what another version wrote nobody can say which lines are its own.
        let Without::Theirs(left) = removed(&with, "x", "two\n") else { panic!("{with}") };
        assert_eq!(left, "a\n\none\n- mine\n\n  and more\nafter\n");
        let edited = text.replace("two", "TWO");
        assert_eq!(
            removed(&edited, "x", "one\n\ntwo\n"),
            Without::Theirs("a\n\nTWO\nafter\n".to_owned())
        );
        // A line of ours that is gone is nobody's loss.
        assert_eq!(removed(&text.replace("two\n", ""), "x", "one\n\ntwo\n"), less);
    }
}
