//! The front page: `jvs --help` and `jvs --version`, without the tree of commands.
//!
//! To build the tree costs more than all the rest of these two. So its page is kept beside
//! this file as clap renders it where lines have all the room that they get; a test
//! compares it with what clap renders now. Where there is less room, clap is asked.

use std::ffi::{OsStr, OsString};

use super::Words;
use crate::answer::Text;
use crate::answer::other::Version;
use crate::render::Done;
use crate::sink;

/// As clap renders it, with [`ESCAPE`] for the character that begins a style.
const PAGE: &str = include_str!("front.txt");
/// Where a style begins: a character that can be seen.
const ESCAPE: char = '\u{241b}';
/// Lines get no longer than that.
const WIDTH: u16 = 100;

/// The answer, if the words ask for the front page and nothing else.
pub(super) fn asked(words: &[OsString], columns: Option<&OsStr>) -> Option<Words> {
    let mut plain = words.iter().skip(1).filter(|word| *word != "--json");
    let (word, rest) = (plain.next()?.to_str()?, plain.next());
    let done = match word {
        "--version" | "-V" if rest.is_none() => {
            let version = env!("CARGO_PKG_VERSION");
            Done::new(&Version { version }).with_text(format!("jvs {version}\n"))
        }
        "--help" if rest.is_none() && columns.is_none() && sink::has_columns(WIDTH) => {
            let text = plain_page();
            Done::new(&Text { text: text.clone() }).with_help(text, styled_page())
        }
        _ => return None,
    };
    Some(Words::Help { name: "jvs".to_owned(), done })
}

fn styled_page() -> String {
    PAGE.replace(ESCAPE, "\u{1b}")
}

/// The page without its styles, each of which ends with an `m`.
fn plain_page() -> String {
    let mut pieces = PAGE.split(ESCAPE);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or(piece, |(_, text)| text));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, tree, words_of};

    /// `JVS_BLESS=1` rewrites the page.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a golden file, beside its source")]
    fn the_front_page_is_clap_s() {
        let wide = tree().term_width(WIDTH.into());
        let error = wide.try_get_matches_from(["jvs", "--help"]).expect_err("a page");
        let styled = error.render().ansi().to_string();
        if std::env::var_os("JVS_BLESS").is_some() {
            let page = styled.replace('\u{1b}', &ESCAPE.to_string());
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/args/front.txt");
            std::fs::write(path, page).expect("written");
            return;
        }
        let why = "rewrite it: JVS_BLESS=1 cargo nextest run -p jvs -E 'test(front_page)'";
        assert_eq!(styled_page(), styled, "{why}");
        assert_eq!(plain_page(), error.render().to_string(), "{why}");
    }

    #[test]
    fn the_version_is_clap_s() {
        use clap::Parser as _;
        for line in ["jvs --version", "jvs -V", "jvs --json --version"] {
            let long = Args::try_parse_from(words_of(line)).expect_err("a version").render();
            let Some(Words::Help { name, done }) = asked(&words_of(line), None) else {
                panic!("{line}");
            };
            assert_eq!((name.as_str(), done.text()), ("jvs", long.to_string().as_str()), "{line}");
        }
    }

    #[test]
    fn anything_else_is_asked_of_clap() {
        for line in ["jvs", "jvs -h", "jvs lock --help", "jvs --help lock", "jvs --version lock"] {
            assert!(asked(&words_of(line), None).is_none(), "{line}");
        }
        assert!(asked(&words_of("jvs --help"), Some(OsStr::new("60"))).is_none());
    }
}
