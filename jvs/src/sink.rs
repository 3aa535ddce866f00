//! The only module that writes to the standard streams: whatever is said to people or
//! programs goes through one of these functions, and what a terminal would act on
//! instead of showing it does not get out of any of them.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use anstyle::{AnsiColor, Style};
use jvs_repo::inert::{acts, escaped};
use jvs_snapshot::tree::FileStream;

/// How a piece of text is emphasised. In text that is not said yet it stands between
/// two marks, which are no characters and are shown escaped wherever they come from
/// elsewhere; only here they become what a terminal understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emphasis {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

/// How much of a file is in memory at a time.
const PIECE: usize = 1024 * 1024;

const END: char = '\u{fdd0}';

impl Emphasis {
    const ALL: [(Emphasis, char); 6] = [
        (Emphasis::Bold, '\u{fdd1}'),
        (Emphasis::Dim, '\u{fdd2}'),
        (Emphasis::Red, '\u{fdd3}'),
        (Emphasis::Green, '\u{fdd4}'),
        (Emphasis::Yellow, '\u{fdd5}'),
        (Emphasis::Cyan, '\u{fdd6}'),
    ];

    const fn style(self) -> Style {
        match self {
            Emphasis::Bold => Style::new().bold(),
            Emphasis::Dim => Style::new().dimmed(),
            Emphasis::Red => AnsiColor::Red.on_default().bold(),
            Emphasis::Green => AnsiColor::Green.on_default(),
            Emphasis::Yellow => AnsiColor::Yellow.on_default(),
            Emphasis::Cyan => AnsiColor::Cyan.on_default(),
        }
    }

    /// `text`, marked.
    pub(crate) fn of(self, text: &str) -> String {
        let mark = Self::ALL.iter().find(|(emphasis, _)| *emphasis == self).map(|(_, mark)| mark);
        format!("{}{text}{END}", mark.unwrap_or(&END))
    }
}

fn is_mark(c: char) -> bool {
    c == END || Emphasis::ALL.iter().any(|(_, mark)| *mark == c)
}

/// Lines of text as a terminal shows them: inert but for their own ends, and for the
/// emphasis that this module knows.
fn shown(text: &str, colours: bool) -> Cow<'_, str> {
    let mut text = escaped(text, |c| acts(c) && c != '\n' && !is_mark(c));
    if text.contains(is_mark) {
        let mut styled = text.into_owned();
        for (emphasis, mark) in Emphasis::ALL {
            let style = emphasis.style().render().to_string();
            styled = styled.replace(mark, if colours { &style } else { "" });
        }
        let end = anstyle::Reset.render().to_string();
        text = Cow::Owned(styled.replace(END, if colours { &end } else { "" }));
    }
    text
}

/// Goes what is said to `/dev/null`? So it does where standard output was closed: this process
/// has opened that in its place when it began.
pub(crate) fn is_nobody_there() -> bool {
    let null = rustix::fs::stat("/dev/null");
    let out = rustix::fs::fstat(rustix::stdio::stdout());
    null.and_then(|null| out.map(|out| null.st_rdev == out.st_rdev && null.st_mode == out.st_mode))
        .unwrap_or(false)
}

/// Answers with text.
pub(crate) fn answer(text: &str, colours: bool) -> io::Result<()> {
    print(shown(text, colours).as_bytes())
}

/// Answers through a pager. If there is no such program, the answer is just printed; if its
/// user leaves it early, that is all they wanted.
pub(crate) fn answer_in_pager(text: &str, colours: bool, pager: &str) -> io::Result<()> {
    let text = shown(text, colours);
    // Ctrl-C is the pager's to answer, as long as there is one.
    let _ = jvs_kernel::signals::answer_with_nothing(rustix::process::Signal::INT);
    // As git has it: colours are shown, and what fits is left on the screen.
    let script = format!(": \"${{LESS=FRX}}\" \"${{LV=-c}}\"; export LESS LV; {pager}");
    let child = Command::new("sh").arg("-c").arg(script).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return print(text.as_bytes()) };
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text.as_bytes());
    }
    match child.wait()?.code() {
        // The shell found none.
        Some(126 | 127) => print(text.as_bytes()),
        _ => Ok(()),
    }
}

/// Draws `text` over the `above` lines that were drawn before it. The number of lines that
/// it has now.
pub(crate) fn redraw(text: &str, above: usize, colours: bool) -> io::Result<usize> {
    let up = if above > 0 { format!("\x1b[{above}F") } else { String::new() };
    print(format!("{up}\x1b[J{}", shown(text, colours)).as_bytes())?;
    Ok(text.lines().count())
}

/// Answers with the words of the command line's own help, coloured by who made them.
pub(crate) fn answer_with_help(help: &str) -> io::Result<()> {
    print(help.as_bytes())
}

/// Is none of the standard streams a terminal with fewer columns?
pub(crate) fn has_columns(columns: u16) -> bool {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let size = |stream| rustix::termios::tcgetwinsize(stream);
    streams.into_iter().filter_map(|stream| size(stream).ok()).all(|size| size.ws_col >= columns)
}

/// Answers with a path: its very bytes for a program, which goes there, and what can be
/// shown of it for people.
pub(crate) fn answer_with_path(path: &[u8], shown: &str) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => answer(&format!("{shown}\n"), false),
        false => print(&[path, b"\n"].concat()),
    }
}

/// Answers with what is in a file: its very bytes for a program, and what can be shown of
/// them for people.
pub(crate) fn answer_with_content(file: &FileStream) -> io::Result<()> {
    let terminal = io::stdout().is_terminal();
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let got = jvs_snapshot::tree::read_at(file, &mut piece, offset)?;
        let bytes = &piece[..got];
        match terminal {
            true => print(visible(bytes).as_bytes())?,
            false => print(bytes)?,
        }
        offset += got as u64;
        if got < PIECE {
            return Ok(());
        }
    }
}

/// Text with its lines and tabs, and nothing else that a terminal acts on.
fn visible(bytes: &[u8]) -> String {
    escaped(&String::from_utf8_lossy(bytes), |c| acts(c) && c != '\n' && c != '\t').into_owned()
}

/// Answers with one JSON document. What a terminal would act on is spelled as JSON
/// spells it with plain characters: programs read the same text.
pub(crate) fn answer_with_json(document: &str) -> io::Result<()> {
    print(plain_json(document).as_bytes())
}

/// The same, not said yet: it ends with its line.
pub(crate) fn plain_json(document: &str) -> String {
    let mut line = String::with_capacity(document.len() + 1);
    for c in document.chars() {
        // Outside of strings JSON has no such character.
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                line += &format!("\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

/// Says something beside the answer. Nobody is left to be told that standard error is
/// closed.
pub(crate) fn complain(text: &str, colours: bool) {
    write_error(&shown(text, colours));
}

/// One line on a terminal that is written over: cut to `columns`, so that it does not
/// wrap. Nothing takes it away.
pub(crate) fn overwrite(text: &str, columns: usize) {
    write_error(&format!("\r\x1b[K{}", cut(&jvs_repo::inert::on_one_line(text), columns)));
}

fn write_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// `text` in one line of a terminal: a line that wraps cannot be written over.
fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if jvs_repo::inert::columns(text) < columns {
        return Cow::Borrowed(text);
    }
    let most = columns.saturating_sub(2);
    let mut fits = String::new();
    for c in text.chars() {
        fits.push(c);
        // Of the whole: some characters change how wide their neighbours are.
        if jvs_repo::inert::columns(&fits) > most {
            fits.pop();
            break;
        }
    }
    fits.push('…');
    Cow::Owned(fits)
}

#[cfg(test)]
mod tests {
    use jvs_repo::inert::columns;

    use super::*;

    const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{9b}2J\r\u{202e}\u{2028}\u{200b}\u{7f}\u{85}";

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_out_with_or_without_colours() {
        for colours in [false, true] {
            let said = shown(HOSTILE, colours);
            assert!(!said.contains(acts), "{said}");
            let lines = format!("{HOSTILE}\n{}\n", Emphasis::Red.of(HOSTILE));
            let said = shown(&lines, colours);
            assert_eq!(said.matches('\n').count(), 2);
            assert_eq!(said.matches('\u{1b}').count(), if colours { 3 } else { 0 });
        }
    }

    #[test]
    fn a_file_is_shown_on_a_terminal_with_its_lines_and_tabs_alone() {
        assert_eq!(visible(b"a\tb\n"), "a\tb\n");
        let said = visible(HOSTILE.as_bytes());
        assert!(!said.contains(acts), "{said}");
    }

    #[test]
    fn emphasis_ends_where_its_text_does_and_is_nothing_without_colours() {
        for (emphasis, _) in Emphasis::ALL {
            let marked = emphasis.of("x");
            assert_eq!(shown(&marked, false), "x");
            let painted = shown(&marked, true);
            assert!(painted.starts_with("\x1b[") && painted.ends_with("x\x1b[0m"), "{painted:?}");
        }
        assert_eq!(shown(&Emphasis::Red.of("x"), true), "\x1b[1m\x1b[31mx\x1b[0m");
    }

    #[test]
    fn json_says_the_same_in_plain_characters() {
        let text = format!("{HOSTILE}\u{e0041}\"\\ é");
        let document = serde_json::json!({ "path": text }).to_string();
        let plain = plain_json(&document);
        assert!(!plain.trim_end().contains(acts), "{plain}");
        let read: serde_json::Value = serde_json::from_str(&plain).expect("JSON");
        assert_eq!(read["path"], text.as_str());
    }

    #[test]
    fn a_line_of_progress_never_wraps() {
        assert_eq!(cut("waiting", 20), "waiting");
        for text in ["ä".repeat(200), "名".repeat(200), "x名".repeat(20), "x".repeat(20)] {
            let narrow = cut(&text, 20);
            assert!(columns(&narrow) < 20, "the last column wraps, too: {narrow}");
            assert!(narrow.ends_with('…'));
        }
    }
}
