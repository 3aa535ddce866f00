//! The `jvs` command: words in, words and an exit code out.
//!
//! **Responsibility.** The command line, the environment, the terminal. It asks
//! the libraries and says what they answered.
//!
//! **Must not know.** How a lock, a snapshot or a repair is decided.
//!
//! **Flow.** `args` (raw words) → `context` (what they and the environment
//! mean) → `command` (one file per verb) → `render` or `fail` (one text or
//! one JSON document, one exit code).
//!
//! # How it is used
//! [`main`] is all of the program:
//!
//! ```
//! // Without words it says what to begin with.
//! assert_eq!(jvs::main(), std::process::ExitCode::from(64));
//! ```
//!
//! # Limitations
//! Linux only, as the libraries are. Arguments that JVS itself reads are UTF-8. Programs
//! that need what the command does run the command: there is nothing to call but
//! [`main`].

mod alarm;
mod answer;
mod args;
mod bar;
mod command;
mod context;
mod fail;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod git;
mod given;
mod harness;
#[allow(clippy::too_many_lines, reason = "a table: one sentence per hint")]
mod hint;
mod interrupt;
mod keeper;
mod local_time;
mod near;
mod ownership;
mod render;
#[cfg(feature = "schema")]
pub mod schemas;
mod session;
mod sink;
mod sleeper;
mod taste;
mod tree;
mod trust;
mod umask;
mod watch_reporter;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::args::Words;
use crate::context::{Context, Env};
use crate::fail::Stuck;
use crate::given::GivenOptions;
use crate::render::Output;

/// The whole command, on the words and the environment of this process.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let is_keeper = words.get(1).is_some_and(|word| word == keeper::COMMAND);
    if is_keeper {
        // Before anything is opened: what its starter had open (the lock of a
        // script, a pipe that is read to its end) must not last as long as a keeper.
        jvs_kernel::descriptors::close_all_but(&[]);
    }
    // A file that may not grow is an answer to the write, not a death without a word.
    let _ = jvs_kernel::signals::answer_with_nothing(rustix::process::Signal::XFSZ);
    let env = Env::of_process();
    let output = Output::choose(args::asks_for_json(&words), args::asks_for_no_pager(&words), env);
    // What programs read is in UTC, and so is what a keeper says to the process that started it.
    if !output.is_json() && !is_keeper {
        jvs_repo::clock::show_times_at(local_time::offset_seconds);
    }
    run(words, env, output)
}

fn run(words: Vec<OsString>, env: Env<'_>, output: Output) -> ExitCode {
    let typed = words.clone();
    match args::parse(words, env.get("COLUMNS").as_deref()) {
        Words::Command(args) => {
            let name = args.command.name();
            fail::report_panics(output, name);
            if let Err(error) = jvs_repo::entropy::SystemEntropy.try_fill(&mut [0]) {
                let none = Stuck::new("get random bytes, not even from /dev/urandom", error)
                    .hinting("allow getrandom(2) here, or make /dev/urandom readable");
                return output.failed(name, &none.into());
            }
            let given = GivenOptions::of(&args.global);
            match command::run(&Context::new(args.global, env, output), args.command) {
                Ok(done) => output.done(name, &done.given(&given)),
                Err(failure) => {
                    let failure = failure.given(given);
                    let status = output.failed(name, &failure);
                    if let Some(signal) = failure.dies_of().or_else(interrupt::came) {
                        jvs_kernel::signals::die_of(signal);
                    }
                    status
                }
            }
        }
        Words::Help { name, done } => output.done(&name, &done),
        Words::Wrong { name, failure } if name == "hook" => {
            output.failed(&name, &command::hook::stops(&typed, env, output, failure))
        }
        Words::Wrong { name, failure } => output.failed(&name, &failure),
    }
}
