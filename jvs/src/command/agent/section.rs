//! A section of ours in a text that is its owner's, between two lines that mark it. The
//! first says how the text ended before, so that it can end so again.

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
    format!("{text}{before}{}{was} -->\n{body}{}", begin(owner), end(owner))
}

/// What a text is without a section.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Without {
    /// It has none.
    Nothing,
    /// The text was only made for it, and has nothing else.
    Gone,
    Text(String),
    /// It begins, and does not end.
    Torn,
}

/// `text` without the section of `owner`.
pub(super) fn removed(text: &str, owner: &str) -> Without {
    let (begin, end) = (begin(owner), end(owner));
    let Some(start) = text.find(&begin) else { return Without::Nothing };
    let after = &text[start + begin.len()..];
    let found = after.find(&end).or_else(|| {
        // The last line of a text may have lost its end.
        after.ends_with(end.trim_end()).then(|| after.len() - end.trim_end().len())
    });
    let Some(length) = found else { return Without::Torn };
    let was = after.split(" -->").next().unwrap_or_default();
    let rest = after.get(length + end.len()..).unwrap_or_default();
    let mut before = &text[..start];
    for _ in 0..was.parse::<usize>().unwrap_or(0).min(2) {
        before = before.strip_suffix('\n').unwrap_or(before);
    }
    let whole = format!("{before}{rest}");
    if whole.is_empty() && was == NEW { Without::Gone } else { Without::Text(whole) }
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
            let Without::Text(left) = removed(&two, "x") else { panic!("{two}") };
            assert_eq!(removed(&left, "y"), Without::Text(text.to_owned()), "{text:?}");
            let Without::Text(left) = removed(&two, "y") else { panic!("{two}") };
            assert_eq!(removed(&left, "x"), Without::Text(text.to_owned()), "{text:?}");
        }
        let new = added(None, "x", "body\n");
        assert_eq!(removed(&new, "x"), Without::Gone);
        assert_eq!(removed(new.trim_end(), "x"), Without::Gone);
        assert_eq!(removed(&format!("{new}more\n"), "x"), Without::Text("more\n".to_owned()));
    }

    #[test]
    fn what_is_around_it_and_what_is_of_others_stays() {
        let text = added(Some("a\n"), "x", "body\n") + "after\n";
        assert_eq!(removed(&text, "x"), Without::Text("a\nafter\n".to_owned()));
        assert_eq!(removed(&text, "y"), Without::Nothing);
        let torn = text.replace("end -->", "");
        assert_eq!(removed(&torn, "x"), Without::Torn);
    }
}
