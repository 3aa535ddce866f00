//! `jvs-mcp`: worktree locks, snapshots and history for coding agents, over the Model
//! Context Protocol on standard input and output.
//!
//! **Responsibility.** The protocol: tools, resources, notices, questions to a person, and
//! that nothing is left behind when a client or this server is gone.
//!
//! **Must not know.** What a lock, a snapshot or a repository is. It runs the command `jvs`
//! beside it and passes on what that answers; it reads no control file and decides nothing.
//!
//! **Flow.** `frames` (lines) → `server` (the protocol) → `tool` or `resource` (which
//! command) → `call` (one process of `jvs`) → `answer`.
//!
//! # How it is used
//! The program is this, and serves until its standard input ends:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     jvs_mcp::main()
//! }
//! ```
//!
//! # Limitations
//! Linux only. One repository and one client for each server.

mod answer;
mod call;
mod frames;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handle;
mod held;
mod notice;
mod person;
mod progress;
mod resource;
mod server;
mod session;
mod tool;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::call::Jvs;
use crate::held::Held;
use crate::server::Server;

/// How long the release of what is held may take at the end. What is left then ends with
/// this process.
const RELEASED_WITHIN: Duration = Duration::from_secs(10);

const USAGE: &str = "\
Worktree locks, snapshots and history for coding agents, over the Model Context Protocol.

Usage: jvs-mcp [--repo PATH]

Speaks on standard input and output, and is started by an MCP client, not by hand: see
docs/agents.md for what to paste into its configuration.

Options:
      --repo PATH  The repository [default: found from the current directory]
  -h, --help       Print help
  -V, --version    Print version

Environment:
  JVS_SESSION_ID   The session that it speaks for [default: one of its own]
";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Serve { repo: Option<PathBuf> },
    Say(String),
    WrongArguments(String),
}

/// The whole server, on the words, the environment and the streams of this process.
pub fn main() -> ExitCode {
    let repo = match wish(std::env::args_os().skip(1)) {
        Wish::Serve { repo } => repo,
        Wish::Say(text) => {
            let said = std::io::stdout().write_all(text.as_bytes());
            return if said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Wish::WrongArguments(message) => {
            complain(&message);
            return ExitCode::from(64);
        }
    };
    if rustix::termios::isatty(rustix::stdio::stdin()) {
        complain("waits for an MCP client on standard input; see `jvs-mcp --help`");
    }
    let session = session::of(&|name| std::env::var_os(name));
    let (id, refusal) = match &session {
        Ok(session) => (session.id.clone(), None),
        Err(why) => {
            complain(why);
            (String::new(), Some(why.clone()))
        }
    };
    let here = std::env::current_dir().unwrap_or_default();
    let jvs = Jvs { program: program(), repo, here, session: id };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let served = runtime.block_on(serve(jvs, refusal));
    // What still waits in the kernel is not waited for.
    runtime.shutdown_background();
    if served && session.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn wish(words: impl Iterator<Item = OsString>) -> Wish {
    let mut repo = None;
    let mut words = words;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let given = match text.split_once('=') {
            Some(("--repo", path)) => Some(OsString::from(path)),
            _ if text == "--repo" => words.next(),
            _ => None,
        };
        match (&*text, given) {
            ("-h" | "--help", _) => return Wish::Say(USAGE.to_owned()),
            ("-V" | "--version", _) => {
                return Wish::Say(format!("jvs-mcp {}\n", env!("CARGO_PKG_VERSION")));
            }
            (_, Some(path)) if !path.is_empty() => {
                // What is told to people is typed elsewhere.
                let path = PathBuf::from(path);
                repo = Some(std::path::absolute(&path).unwrap_or(path));
            }
            _ => {
                return Wish::WrongArguments(format!("unexpected {text:?}; see `jvs-mcp --help`"));
            }
        }
    }
    Wish::Serve { repo }
}

/// To whoever started this: clients keep it in their logs.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "jvs-mcp: {}", message.escape_debug());
}

/// The command beside this program, else the one that a shell would find.
fn program() -> PathBuf {
    let me = std::env::current_exe().ok();
    let beside = me.and_then(|me| Some(me.parent()?.join("jvs")));
    let there = |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    beside.filter(there).unwrap_or_else(|| PathBuf::from("jvs"))
}

/// Serves the one client until it is gone, or until this process is asked to end; then
/// nothing is held any more. False if it could not.
async fn serve(jvs: Jvs, refusal: Option<String>) -> bool {
    let (Ok(mut term), Ok(mut int), Ok(mut hup)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
        signal(SignalKind::hangup()),
    ) else {
        complain("cannot catch signals");
        return false;
    };
    let (stdio, ends) = frames::open(refusal);
    let held = Arc::new(Held::default());
    {
        let over = async {
            tokio::select! {
                () = ends.gone() => {}
                _ = term.recv() => {}
                _ = int.recv() => {}
                _ = hup.recv() => {}
            }
        };
        tokio::pin!(over);
        let serving = Server::new(jvs.clone(), held.clone()).serve(stdio);
        let running = tokio::select! {
            running = serving => running.ok(),
            () = &mut over => None,
        };
        if let Some(running) = running {
            // Every call that is not done yet ends, and leaves nothing.
            let stop = running.cancellation_token();
            let done = running.waiting();
            tokio::pin!(done);
            tokio::select! {
                _ = &mut done => {}
                () = over => {
                    stop.cancel();
                    let _ = done.await;
                }
            }
        }
    }
    release_all(&jvs, &held).await;
    ends.written().await;
    true
}

/// Best effort, and not for ever: a keeper is bound to this process, and ends with it.
async fn release_all(jvs: &Jvs, held: &Held) {
    let each = held.take_all().into_iter().map(|handle| {
        let jvs = jvs.clone();
        tokio::spawn(async move { server::release(&jvs, &handle).await })
    });
    let each: Vec<_> = each.collect();
    let _ = tokio::time::timeout(RELEASED_WITHIN, async {
        for one in each {
            let _ = one.await;
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Wish {
        wish(words.iter().map(OsString::from))
    }

    #[test]
    fn there_is_little_to_ask_for() {
        let at = |path: &str| Wish::Serve { repo: Some(PathBuf::from(path)) };
        assert_eq!(asked(&[]), Wish::Serve { repo: None });
        assert_eq!(asked(&["--repo", "/a b"]), at("/a b"));
        assert_eq!(asked(&["--repo=/a"]), at("/a"));
        assert!(
            matches!(asked(&["--repo=a"]), Wish::Serve { repo: Some(path) } if path.is_absolute())
        );
        assert!(matches!(asked(&["--help"]), Wish::Say(text) if text.contains("--repo PATH")));
        assert!(matches!(asked(&["-V"]), Wish::Say(text) if text.starts_with("jvs-mcp ")));
        for words in [&["--repo"][..], &["--repo="], &["x"], &["--json"]] {
            assert!(matches!(asked(words), Wish::WrongArguments(_)), "{words:?}");
        }
    }
}
