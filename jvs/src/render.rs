//! What is said, and how: text for people, one JSON document for programs. All of it
//! goes through [`sink`].
//!
//! A reader that went away (`jvs worktree list | head -1`) ends the command
//! quietly with the status that a shell gives to a death by SIGPIPE.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitCode;

use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::inert;
use jvs_repo::name::ShownName;
use jvs_repo::next::Next;
use jvs_snapshot::tree::FileStream;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{OfEach, Told};
use crate::context::Env;
use crate::fail::{Failure, Stuck, on_one_line};
use crate::given::GivenOptions;
use crate::hint::OwnNext;
use crate::sink::{self, Emphasis};
use crate::taste::Taste;

/// 128 + SIGPIPE.
const READER_GONE: u8 = 141;

/// What a command has to say when it succeeded.
#[derive(Debug)]
pub(crate) struct Done {
    data: Value,
    text: String,
    form: Form,
    warnings: Vec<String>,
    reader_gone: bool,
    exit: u8,
    /// What stops whoever asked, if the answer cannot be read: said on standard error.
    unread: Option<(u8, String)>,
    /// May it be long, and is it read rather than used?
    pages: bool,
}

/// What kind of text it is.
#[derive(Debug)]
enum Form {
    Lines,
    /// The command line's own help, with its colours.
    Help(String),
    /// One path, in its very bytes.
    Path(Vec<u8>),
    /// A file, in its very bytes.
    Content(FileStream),
}

impl Done {
    /// The answer for programs; the text is empty until told.
    pub(crate) fn new(answer: &impl Told) -> Self {
        let data = serde_json::to_value(answer).expect("all keys of an answer are text");
        Done::of(data)
    }

    /// An answer for people alone.
    pub(crate) fn silent() -> Self {
        Done::of(Value::Null)
    }

    fn of(data: Value) -> Self {
        let (text, form, warnings) = (String::new(), Form::Lines, Vec::new());
        Done { data, text, form, warnings, reader_gone: false, exit: 0, unread: None, pages: false }
    }

    /// The end of a stream that nobody reads any more.
    pub(crate) fn reader_gone() -> Self {
        Done { reader_gone: true, ..Done::silent() }
    }

    /// The text for people, newline included.
    pub(crate) fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// After a sentence of its own, and with its data in that of another command.
    pub(crate) fn wrapped(mut self, before: String, data: impl FnOnce(Value) -> Value) -> Self {
        self.text = before + &self.text;
        self.data = data(self.data);
        self
    }

    /// The same, through a pager if it does not fit on a terminal.
    pub(crate) fn paged(mut self) -> Self {
        self.pages = true;
        self
    }

    /// The text for people.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Something that did not go as it should, but did not stop the command.
    pub(crate) fn with_warning(mut self, warning: String) -> Self {
        self.warnings.push(warning);
        self
    }

    /// Commands in its warnings say what the command line said.
    pub(crate) fn given(mut self, given: &GivenOptions) -> Self {
        for warning in &mut self.warnings {
            if let Cow::Owned(complete) = given.complete(warning) {
                *warning = complete;
            }
        }
        self
    }

    /// The answers for several worktrees as one.
    pub(crate) fn of_each(each: Vec<Done>) -> Self {
        let mut all = Done::silent();
        let mut worktrees = Vec::new();
        for one in each {
            all.text += &one.text;
            all.warnings.extend(one.warnings);
            worktrees.push(one.data);
        }
        all.data = serde_json::to_value(OfEach { worktrees }).expect("they are data already");
        all
    }

    /// Where nobody can read the answer, it ends with this status and says this on standard
    /// error.
    pub(crate) fn or_else_exit(mut self, exit: u8, why: String) -> Self {
        self.unread = Some((exit, why));
        self
    }

    /// The exit status of a child, passed on.
    pub(crate) fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// The command line's own help, without and with colours. Words of others are not
    /// in it.
    pub(crate) fn with_help(mut self, plain: String, styled: String) -> Self {
        self.text = plain;
        self.form = Form::Help(styled);
        self
    }

    /// What is in a file.
    pub(crate) fn with_content(mut self, file: FileStream) -> Self {
        self.form = Form::Content(file);
        self
    }

    /// A path, for a program to go to.
    pub(crate) fn with_path(mut self, path: &Path) -> Self {
        self.text = shown(path);
        self.form = Form::Path(path.as_os_str().as_encoded_bytes().to_vec());
        self
    }
}

/// How this process talks: decided once, before anything can go wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    colour_out: bool,
    colour_err: bool,
    /// What shows long answers; `None` where nobody looks.
    pager: Option<&'static str>,
}

impl Output {
    pub(crate) fn choose(json: bool, no_pager: bool, env: Env<'_>) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let taste = if out || err { Taste::of(env) } else { Taste::default() };
        let wanted = |terminal: bool| {
            let set = |name| env.get(name).is_some_and(|value| !value.is_empty());
            let forced =
                set("CLICOLOR_FORCE") && env.get("CLICOLOR_FORCE").is_some_and(|v| v != "0");
            let dumb = env.get("TERM").is_some_and(|term| term == "dumb");
            !set("NO_COLOR") && (forced || terminal && !dumb && taste.likes_colours())
        };
        Output {
            json,
            colour_out: wanted(out),
            colour_err: wanted(err),
            // For as long as this process lives: it is decided once.
            pager: taste
                .pager(env)
                .filter(|_| out && !json && !no_pager)
                .map(|pager| &*String::leak(pager)),
        }
    }

    /// Is one JSON document wanted?
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Says that a command succeeded.
    pub(crate) fn done(self, command: &str, done: &Done) -> ExitCode {
        if done.reader_gone {
            return ExitCode::from(READER_GONE);
        }
        let said = self.say(command, done);
        if let Some((exit, why)) = &done.unread
            && (said.is_err() || sink::is_nobody_there())
        {
            sink::complain(&format!("{}\n", on_one_line(why)), self.colour_err);
            return ExitCode::from(*exit);
        }
        match said {
            Ok(()) => ExitCode::from(done.exit),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(READER_GONE),
            Err(error) => {
                self.complain(&Unsaid { error }.into());
                ExitCode::FAILURE
            }
        }
    }

    fn say(self, command: &str, done: &Done) -> io::Result<()> {
        if self.json {
            let mut document = Envelope::new(command, AnswerBody::Data(&done.data));
            document.warnings = &done.warnings;
            return print_line(&document);
        }
        for warning in &done.warnings {
            let line = format!("{} {}\n", Paint.yellow("warning:"), on_one_line(warning));
            sink::complain(&line, self.colour_err);
        }
        match &done.form {
            Form::Help(styled) if self.colour_out => sink::answer_with_help(styled),
            Form::Lines if done.pages => match self.pager.filter(|_| is_long(&done.text)) {
                Some(pager) => sink::answer_in_pager(&done.text, self.colour_out, pager),
                None => sink::answer(&done.text, self.colour_out),
            },
            Form::Content(file) => sink::answer_with_content(file),
            Form::Path(path) => sink::answer_with_path(path, &done.text),
            Form::Help(_) | Form::Lines => sink::answer(&done.text, self.colour_out),
        }
    }

    /// A command that answers in many pieces: one document or text each.
    pub(crate) fn stream(self, command: &'static str) -> AnswerStream {
        AnswerStream { output: self, command }
    }

    /// Says that a command failed.
    pub(crate) fn failed(self, command: &str, failure: &Failure) -> ExitCode {
        if self.json {
            let mut document = Envelope::new(command, AnswerBody::Error(ErrorBody::of(failure)));
            document.data = failure.report().map(|done| &done.data);
            // The exit code still tells what a reader that went away cannot read.
            let _ = print_line(&document);
        } else {
            if let Some(done) = failure.report() {
                let _ = self.say(command, done);
            }
            self.complain(failure);
        }
        ExitCode::from(failure.exit())
    }

    fn complain(self, failure: &Failure) {
        let mut text = failure.preface().to_owned();
        let label = format!("error[{}]:", failure.code());
        let columns = io::stderr().is_terminal().then(terminal_columns);
        let message = told_after(&label, &failure.message(), columns);
        text += &format!("{} {message}\n", Paint.red(&label));
        if let Some(hint) = failure.hint() {
            text += &format!("{} {hint}\n", Paint.cyan("hint:"));
        }
        sink::complain(&text, self.colour_err);
    }

    /// A word on the side, for people only.
    pub(crate) fn aside(self, text: &str) {
        if !self.json {
            sink::complain(&format!("{}\n", on_one_line(text)), false);
        }
    }

    /// A warning before anything is done, for people only.
    pub(crate) fn warn(self, warning: &str) {
        if !self.json {
            let line = format!("{} {}\n", Paint.yellow("warning:"), on_one_line(warning));
            sink::complain(&line, self.colour_err);
        }
    }

    /// A place that is drawn over, where somebody sits and looks.
    pub(crate) fn screen(self) -> Option<Screen> {
        let on = !self.json && io::stdout().is_terminal();
        on.then_some(Screen { colours: self.colour_out, drawn: 0 })
    }

    /// A line that says how far long work is, where somebody sits and looks.
    pub(crate) fn progress(self) -> ProgressLine {
        let on = !self.json && io::stderr().is_terminal();
        let due_ms = (!on && !self.json).then_some(LOG_FIRST_MS);
        ProgressLine { on, shown: false, due_ms }
    }
}

/// It was done, and its answer could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the command was done, but cannot write to standard output: {error}")]
struct Unsaid {
    #[source]
    error: io::Error,
}

impl Coded for Unsaid {
    fn code(&self) -> Code {
        code_of_io(&self.error)
    }

    fn next(&self) -> Option<Next> {
        Some(OwnNext::SeeStatus.into())
    }
}

/// Answers one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerStream {
    output: Output,
    command: &'static str,
}

impl AnswerStream {
    /// Says one piece; false if nobody reads any more.
    pub(crate) fn item(self, done: &Done) -> Result<bool, Failure> {
        match self.output.say(self.command, done) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Stuck::new("write to standard output", error).into()),
        }
    }

    /// Says that something beside the answers went wrong.
    pub(crate) fn complain(self, warning: &str) {
        let line = format!("{} {}\n", Paint.yellow("warning:"), on_one_line(warning));
        sink::complain(&line, self.output.colour_err);
    }

    /// Waits this long, or until nobody reads any more: then false, even if there
    /// is nothing to say.
    pub(crate) fn wait(self, ms: u32) -> bool {
        self.wait_or(None, ms)
    }

    /// The same, and no longer than until there is something to read in `woken_by`.
    pub(crate) fn wait_or(self, woken_by: Option<BorrowedFd<'_>>, ms: u32) -> bool {
        let stdout = io::stdout();
        let timeout =
            Timespec { tv_sec: (ms / 1000).into(), tv_nsec: (ms % 1000 * 1_000_000).into() };
        let mut polled = vec![PollFd::new(&stdout, PollFlags::empty())];
        polled.extend(woken_by.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(_) => !polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            // Interrupted by a signal that did not end us: look again.
            Err(_) => true,
        }
    }
}

/// Some lines at the end of a terminal that are drawn over and over.
pub(crate) struct Screen {
    colours: bool,
    drawn: usize,
}

impl Screen {
    /// Draws `text` over what was drawn before, as far as it fits.
    pub(crate) fn draw(&mut self, text: &str) -> Result<(), Failure> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
        let rows = size.map_or(24, |size| usize::from(size.ws_row)).max(2);
        // A screen that scrolls could not be drawn over.
        let text: String = text.lines().take(rows - 1).flat_map(|line| [line, "\n"]).collect();
        let drawn = sink::redraw(&text, self.drawn, self.colours);
        self.drawn = drawn.map_err(|error| Stuck::new("write to standard output", error))?;
        Ok(())
    }
}

/// One line on a terminal's standard error, written over and over; for a log that people
/// read, a line now and then.
pub(crate) struct ProgressLine {
    on: bool,
    shown: bool,
    /// When the next line of a log is due, in milliseconds of waiting; `None` if nobody
    /// reads one.
    due_ms: Option<u64>,
}

/// When a log gets its first line about a wait, and how long after it the next one.
const LOG_FIRST_MS: u64 = 10_000;
const LOG_EVERY_MS: u64 = 60_000;

impl ProgressLine {
    /// The first of `texts` that fits into one line; if none does, as much of the last
    /// as there is room for.
    pub(crate) fn show_fitting(&mut self, texts: &[String]) {
        let columns = terminal_columns();
        let fits = |text: &&String| inert::columns(&inert::on_one_line(text)) < columns;
        let fits = texts.iter().find(fits);
        if let Some(text) = fits.or(texts.last()) {
            self.show(text);
        }
    }

    /// The same of a wait that lasts for `waited_ms`: without a terminal the first text is a
    /// line of its own, after a while and then once a minute.
    pub(crate) fn show_wait(&mut self, texts: &[String], waited_ms: u64) {
        self.show_fitting(texts);
        if let (Some(due), Some(text)) = (self.due_ms, texts.first())
            && waited_ms >= due
        {
            sink::complain(&format!("{}\n", on_one_line(text)), false);
            self.due_ms = Some(due.max(waited_ms - waited_ms % LOG_EVERY_MS) + LOG_EVERY_MS);
        }
    }

    pub(crate) fn show(&mut self, text: &str) {
        if self.on {
            sink::overwrite(text, terminal_columns());
            self.shown = true;
        }
    }
}

/// Does the text need more lines than the terminal on standard output has?
fn is_long(text: &str) -> bool {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let Some(size) = size.filter(|size| size.ws_row > 0) else { return false };
    let columns = usize::from(size.ws_col).max(1);
    let rows = text.lines().map(|line| inert::columns(line).div_ceil(columns).max(1));
    rows.sum::<usize>() >= usize::from(size.ws_row)
}

/// How wide the terminal on standard output is; `None` if it is not one.
pub(crate) fn answer_columns() -> Option<usize> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(out).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// How wide the terminal on standard error is now: it may have been resized.
fn terminal_columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    // A terminal that does not know its size says zero.
    let known = size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    known.unwrap_or(80).max(20)
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            sink::overwrite("", terminal_columns());
        }
    }
}

/// The one JSON document. Made of plain structs: a panic about missing
/// randomness must still get out, and a map would ask for more of it.
#[derive(Serialize)]
struct Envelope<'a> {
    schema: &'static str,
    command: &'a str,
    ok: bool,
    #[serde(flatten)]
    answer: AnswerBody<'a>,
    /// What a command that failed has to say anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum AnswerBody<'a> {
    Data(&'a Value),
    Error(ErrorBody),
}

#[derive(Serialize)]
struct ErrorBody {
    code: &'static str,
    message: String,
    hint: Option<String>,
    details: Details,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Details {
    None {},
    Some(Value),
}

impl<'a> Envelope<'a> {
    fn new(command: &'a str, answer: AnswerBody<'a>) -> Self {
        let ok = matches!(answer, AnswerBody::Data(_));
        Envelope { schema: "jvs/1", command, ok, answer, data: None, warnings: &[] }
    }
}

impl ErrorBody {
    fn of(failure: &Failure) -> Self {
        ErrorBody {
            code: failure.code().as_str(),
            message: failure.message(),
            hint: failure.hint(),
            details: failure.details().map_or(Details::None {}, Details::Some),
        }
    }
}

fn print_line(document: &Envelope<'_>) -> io::Result<()> {
    sink::answer_with_json(&serde_json::to_string(document)?)
}

/// Emphasis, where the sink shows any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint;

impl Paint {
    pub(crate) fn bold(self, text: &str) -> String {
        Emphasis::Bold.of(text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        Emphasis::Dim.of(text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        Emphasis::Red.of(text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        Emphasis::Green.of(text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        Emphasis::Yellow.of(text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        Emphasis::Cyan.of(text)
    }
}

/// Columns that line up. What others wrote into a cell stays in it.
/// On a terminal that is too narrow, the last one is continued below itself, word by word.
pub(crate) fn table<const N: usize>(paint: Paint, head: [&str; N], rows: &[[String; N]]) -> String {
    table_within(paint, head, rows, answer_columns())
}

fn table_within<const N: usize>(
    paint: Paint,
    head: [&str; N],
    rows: &[[String; N]],
    columns: Option<usize>,
) -> String {
    let rows = rows.iter().map(|row| row.each_ref().map(|cell| on_one_line(cell)));
    let rows: Vec<[String; N]> = rows.collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| inert::columns(&row[column]));
        cells.chain([inert::columns(head[column])]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| {
            format!("{cell}{}", " ".repeat(width.saturating_sub(inert::columns(cell))))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut text = paint.dim(&line(head)) + "\n";
    let before: usize = widths.iter().take(N.saturating_sub(1)).map(|width| width + 2).sum();
    let room = columns.map(|columns| columns.saturating_sub(before));
    for row in &rows {
        let last = row.last().map(String::as_str).unwrap_or_default();
        let parts = match room.filter(|room| *room >= NARROWEST) {
            Some(room) => wrapped(last, room),
            None => vec![last.to_owned()],
        };
        for (at, part) in parts.iter().enumerate() {
            text += &line(std::array::from_fn(|column| match column + 1 == N {
                true => part.as_str(),
                false if at == 0 => row[column].as_str(),
                false => "",
            }));
            text.push('\n');
        }
    }
    text
}

/// A column that is narrower is left to the terminal.
const NARROWEST: usize = 16;

/// `text` in lines of at most `room` columns, broken between words. A word that is longer, a
/// path or an id, stays whole: it can be copied from a terminal that breaks it itself.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if inert::columns(line) + 1 + inert::columns(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A sentence after its `label`, continued at the beginning of the next line where the terminal
/// is too narrow.
fn told_after(label: &str, sentence: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return sentence.to_owned() };
    // Its lines are those of whoever wrote it.
    let mut lines = Vec::new();
    for (at, line) in sentence.lines().enumerate() {
        let lead = if at == 0 { format!("{label} ") } else { String::new() };
        let whole = wrapped(&format!("{lead}{line}"), columns).join("\n");
        lines.push(whole.get(lead.len()..).unwrap_or(line).to_owned());
    }
    lines.join("\n")
}

/// A line `lead value` of a list. On a terminal that is too narrow, the value is continued
/// below itself, word by word. It may be what others wrote.
pub(crate) fn fact(emphasis: Option<Emphasis>, lead: &str, value: &str) -> String {
    fact_within(emphasis, lead, value, answer_columns())
}

fn fact_within(
    emphasis: Option<Emphasis>,
    lead: &str,
    value: &str,
    columns: Option<usize>,
) -> String {
    let value = on_one_line(value);
    let before = inert::columns(lead) + 1;
    let room = columns.map(|columns| columns.saturating_sub(before));
    let lines = match room.filter(|room| *room >= NARROWEST) {
        Some(room) => wrapped(&value, room),
        None => vec![value],
    };
    let lead = emphasis.map_or_else(|| lead.to_owned(), |emphasis| emphasis.of(lead));
    let text = format!("{lead} {}", lines.join(&format!("\n{}", " ".repeat(before))));
    text.trim_end().to_owned() + "\n"
}

/// An answer as one line of JSON, for people who read that, in characters that no terminal
/// acts on.
pub(crate) fn line_of(answer: &impl Told) -> String {
    sink::plain_json(&serde_json::to_string(answer).expect("all keys of an answer are text"))
}

/// Bytes as text that every program can turn back (RFC 4648).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            let filled = digit <= group.len();
            text.push(if filled { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

/// A path for people.
pub(crate) fn shown(path: &Path) -> String {
    ShownName::new(path).to_string()
}

/// A path for programs, in the field `name`. JSON knows no bytes beyond UTF-8: those of
/// any other path are beside it.
pub(crate) fn tell_path(data: &mut Value, name: &str, path: &Path) {
    if let Some(text) = path.to_str() {
        data[name] = text.into();
        return;
    }
    data[name] = shown(path).into();
    data[format!("{name}_bytes")] = base64(path.as_os_str().as_encoded_bytes()).into();
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn bytes_are_told_as_the_standard_spells_them() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"a\nb\xff", "YQpi/w=="),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }

    fn colour(variables: &[(&str, &str)]) -> bool {
        let get = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        // Tests do not run on a terminal, so only force can turn colours on.
        Output::choose(false, true, Env::new(&get)).colour_out
    }

    #[test]
    fn colours_need_a_terminal_or_force_and_no_color_always_wins() {
        assert!(colour(&[("CLICOLOR_FORCE", "1")]));
        assert!(!colour(&[("CLICOLOR_FORCE", "0")]));
        assert!(!colour(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(colour(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]), "empty means unset");
    }

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_blanks() {
        let rows = [["a".into(), "long cell".into()], ["longer".into(), String::new()]];
        let text = table(Paint, ["X", "Y"], &rows);
        let (head, text) = text.split_once('\n').expect("a head");
        assert_eq!(head, Paint.dim("X       Y"));
        assert_eq!(text, "a       long cell\nlonger\n");
    }

    #[test]
    fn a_narrow_terminal_breaks_no_word_of_a_table() {
        let rows = [["名前".into(), "seven short words in one long note".into()]];
        let text = table_within(Paint, ["X", "NOTE"], &rows, Some(24));
        let (_, text) = text.split_once('\n').expect("a head");
        assert_eq!(text, "名前  seven short words\n      in one long note\n");
        assert_eq!(wrapped("ab cdefgh ij", 4), ["ab", "cdefgh", "ij"]);
        assert_eq!(told_after("error[E]:", "is held by ann", Some(15)), "is\nheld by ann");
        assert_eq!(told_after("error[E]:", "is held by ann", None), "is held by ann");
        assert_eq!(wrapped("", 4), [""]);
        for width in [24, 40, 80, 120] {
            let text = table_within(Paint, ["X", "NOTE"], &rows, Some(width));
            assert!(text.lines().skip(1).all(|line| inert::columns(line) <= width), "{text}");
        }
        let fact = |columns| fact_within(None, "  note", "seven short words", columns);
        assert_eq!(fact(None), "  note seven short words\n");
        assert_eq!(fact_within(None, "note", "", None), "note\n");
        assert_eq!(fact(Some(23)), "  note seven short\n       words\n");
        // There is no room for words: it is the terminal's to break.
        assert_eq!(fact(Some(12)), fact(None));
        assert_eq!(table_within(Paint, ["X", "NOTE"], &rows, Some(10)).lines().count(), 2);
    }
}
