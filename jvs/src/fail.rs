//! From any library's error to a code, a sentence, a hint and an exit status.

use std::io;

use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::next::Next;
use jvs_repo::store::Denied;
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::given::GivenOptions;
use crate::hint;
use crate::render::{Done, Output, tell_path};

/// Why a command failed. `?` makes it from anything that is [`Coded`].
#[derive(Debug)]
pub(crate) struct Failure {
    error: Box<dyn Coded>,
    preface: String,
    report: Option<Box<Done>>,
    dies_of: Option<Signal>,
    exit: Option<u8>,
    given: GivenOptions,
    similar: Box<[String]>,
}

impl<E: Coded + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let (preface, report, dies_of, exit) = (String::new(), None, None, None);
        let (given, similar) = (GivenOptions::default(), Box::default());
        Failure { error: Box::new(error), preface, report, dies_of, exit, given, similar }
    }
}

impl Failure {
    /// Text that people see before the error itself.
    pub(crate) fn preceded_by(mut self, preface: String) -> Self {
        self.preface = preface;
        self
    }

    /// Commands in its hint say what the command line said.
    pub(crate) fn given(mut self, given: GivenOptions) -> Self {
        self.report = self.report.map(|done| Box::new(done.given(&given)));
        self.given = given;
        self
    }

    /// What to do next, as the error itself says it.
    pub(crate) fn next(&self) -> Option<Next> {
        self.error.next()
    }

    /// Names that were probably meant, the likeliest first.
    pub(crate) fn suggesting(mut self, similar: Vec<String>) -> Self {
        self.similar = similar.into();
        self
    }

    /// More of it, before what there is.
    pub(crate) fn also_preceded_by(mut self, preface: String) -> Self {
        self.preface = preface + &self.preface;
        self
    }

    /// The command was ended by a signal, and that is to be seen.
    pub(crate) fn dying_of(mut self, signal: Option<Signal>) -> Self {
        self.dies_of = signal;
        self
    }

    /// The command ends as another program would that met this, and not with the
    /// exit status of the code.
    pub(crate) fn exiting_with(mut self, exit: u8) -> Self {
        self.exit = Some(exit);
        self
    }

    pub(crate) fn exit(&self) -> u8 {
        self.exit.unwrap_or_else(|| self.code().exit())
    }

    pub(crate) fn dies_of(&self) -> Option<Signal> {
        self.dies_of
    }

    /// What the command has to say although it failed: on standard output.
    pub(crate) fn with_report(mut self, report: Done) -> Self {
        self.report = Some(Box::new(report));
        self
    }

    pub(crate) fn report(&self) -> Option<&Done> {
        self.report.as_deref()
    }

    pub(crate) fn preface(&self) -> &str {
        &self.preface
    }

    pub(crate) fn code(&self) -> Code {
        self.error.code()
    }

    /// One line, whatever a hostile name may have put into it.
    pub(crate) fn message(&self) -> String {
        on_one_line(&self.error.to_string())
    }

    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self.denied() {
            // Anyone who was refused is helped by what lets them in.
            Some(denied) => Some(denied.help()),
            None if let Some(limit) = self.limit() => Some(limit.to_owned()),
            None => self.error.next().or_else(|| usual_next(self.code())).as_ref().map(hint::spell),
        };
        let similar = match self.similar.is_empty() {
            true => String::new(),
            false => format!("did you mean {}? ", self.similar.join(" or ")),
        };
        hint.map(|hint| similar + &on_one_line(&self.given.complete(&hint)))
    }

    pub(crate) fn details(&self) -> Option<Value> {
        let details = self.error.details();
        let Some(denied) = self.denied() else { return details };
        let mut details = details.unwrap_or_else(|| json!({}));
        details["permission"] = json!(denied);
        tell_path(&mut details["permission"], "path", denied.path());
        Some(details)
    }

    /// The refusal behind it, explained, if one is.
    fn denied(&self) -> Option<&Denied> {
        self.answers().find_map(Denied::of).filter(|_| self.code() == Code::Permission)
    }

    /// What lifts the limit behind it, if one was reached.
    fn limit(&self) -> Option<&'static str> {
        if self.code() != Code::Io {
            return None;
        }
        let told = self.answers().find_map(io::Error::raw_os_error)?;
        match Errno::from_raw_os_error(told) {
            Errno::MFILE => {
                Some("this process has as many files open as it may: see ulimit -n, and raise it")
            }
            Errno::NFILE => Some(
                "this host has as many files open as it may: see sysctl fs.file-nr fs.file-max",
            ),
            // A filesystem that cannot answer now says the same, and it passes.
            Errno::AGAIN => Some(
                "there are as many processes and threads as there may be, or it passes: see \
                 ulimit -u and pids.max of the cgroup, then try again",
            ),
            Errno::NOMEM => Some("there is no memory left for it: see ulimit -v and free -m"),
            Errno::NOSYS => Some(
                "this kernel, or the sandbox around this process, does not have a system call that \
                 is needed: allow it, or run it elsewhere",
            ),
            _ => None,
        }
    }

    /// What the system answered, of all the errors behind it.
    fn answers(&self) -> impl Iterator<Item = &io::Error> {
        let first: &(dyn std::error::Error + 'static) = &*self.error;
        std::iter::successors(Some(first), |error| error.source())
            .filter_map(|error| error.downcast_ref())
    }
}

/// What to do about an error that does not know better itself.
fn usual_next(code: Code) -> Option<Next> {
    match code {
        Code::Io => Some("check the disk and the mount, then try again".into()),
        Code::Permission => Some(Next::SeeWhose),
        Code::PathEscape => Some(
            "put the real file or directory back where the symlink is; none is followed here"
                .into(),
        ),
        _ => None,
    }
}

/// A path or a record must not drive the terminal or forge a second line.
pub(crate) fn on_one_line(text: &str) -> String {
    jvs_repo::inert::on_one_line(text).into_owned()
}

/// The command line is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct WrongUsage {
    message: String,
    next: Next,
}

impl WrongUsage {
    pub(crate) fn new(message: impl Into<String>, next: impl Into<Next>) -> Self {
        WrongUsage { message: message.into(), next: next.into() }
    }
}

impl Coded for WrongUsage {
    fn code(&self) -> Code {
        Code::Usage
    }

    fn next(&self) -> Option<Next> {
        Some(self.next.clone())
    }
}

/// The operating system refused something that only the command asks of it.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}: {error}")]
pub(crate) struct Stuck {
    doing: String,
    #[source]
    error: io::Error,
    hint: Option<&'static str>,
}

impl Stuck {
    /// `doing` completes the sentence “cannot …”.
    pub(crate) fn new(doing: impl Into<String>, error: io::Error) -> Self {
        Stuck { doing: doing.into(), error, hint: None }
    }

    /// What helps, where the usual hint does not.
    pub(crate) fn hinting(self, hint: &'static str) -> Self {
        Stuck { hint: Some(hint), ..self }
    }
}

impl Coded for Stuck {
    fn code(&self) -> Code {
        code_of_io(&self.error)
    }

    fn next(&self) -> Option<Next> {
        self.hint.map(Next::from)
    }
}

/// A fact that JVS relies on was false.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Bug {
    what: String,
}

impl Coded for Bug {
    fn code(&self) -> Code {
        Code::Internal
    }

    fn next(&self) -> Option<Next> {
        Some(
            concat!("this is a bug in jvs; please report it: ", env!("CARGO_PKG_REPOSITORY"))
                .into(),
        )
    }
}

/// From now on a panic ends the process as any other failure does: in the form
/// that was asked for, with the exit status of `E_INTERNAL`.
pub(crate) fn report_panics(output: Output, command: &str) {
    let command = command.to_owned();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let formatted = payload.downcast_ref::<String>().map(String::as_str);
        let message = formatted.or_else(|| payload.downcast_ref::<&str>().copied());
        let message = message.unwrap_or("no message");
        let place = panic.location().map(|at| format!(" ({at})")).unwrap_or_default();
        let bug = Bug { what: format!("{message}{place}") };
        output.failed(&command, &bug.into());
        #[expect(
            clippy::disallowed_methods,
            clippy::exit,
            reason = "a panic aborts in release builds: this is the last chance to choose the status"
        )]
        std::process::exit(Code::Internal.exit().into());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_drive_the_terminal() {
        let failure = Failure::from(WrongUsage::new("a\nb\x1b[2Jc", "h\r"));
        assert_eq!(failure.message(), "a\\nb\\u{1b}[2Jc");
        assert_eq!(failure.hint().as_deref(), Some("h\\r"));
        let failure = Failure::from(WrongUsage::new("\u{202e}\u{2028}\u{200b}", ""));
        assert_eq!(failure.message(), "\\u{202e}\\u{2028}\\u{200b}");
    }

    #[test]
    fn a_limit_that_was_reached_is_told_as_that() {
        let hint = |errno: Errno| Failure::from(Stuck::new("start x", errno.into())).hint();
        for (errno, helps) in [
            (Errno::MFILE, "ulimit -n"),
            (Errno::NFILE, "fs.file-max"),
            (Errno::AGAIN, "ulimit -u"),
            (Errno::NOMEM, "ulimit -v"),
            (Errno::NOSYS, "sandbox"),
        ] {
            let hint = hint(errno).expect("a hint");
            assert!(hint.contains(helps) && !hint.contains("disk"), "{hint}");
        }
        assert!(hint(Errno::IO).expect("a hint").contains("disk"));
    }

    #[test]
    fn a_symlink_on_the_way_is_an_escape_and_not_plain_io() {
        let error = io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error());
        assert_eq!(Failure::from(Stuck::new("read x", error)).code(), Code::PathEscape);
    }
}
