//! The verbs: one file each. A verb asks a library and says what it answered.

mod audit;
mod completions;
mod config;
mod demo;
mod gc;
mod history;
mod info;
mod init;
mod lock;
mod man;
mod snapshots;
mod tag;
mod worktree;

use crate::args::Command;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

/// Runs one command.
pub(crate) fn run(context: &Context<'_>, command: Command) -> Result<Done, Failure> {
    match command {
        Command::Init(args) => init::run(context, &args),
        Command::Worktree(command) => worktree::run(context, &command),
        Command::Lock(command) => lock::run(context, &command),
        Command::History(args) => history::run(context, &args),
        Command::Info(args) => info::run(context, &args),
        Command::Tag(args) => tag::run(context, &args),
        Command::Gc(args) => gc::run(context, &args),
        Command::Audit(args) => audit::run(context, &args),
        Command::Config(command) => config::run(context, &command),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Demo(args) => demo::run(context, &args),
    }
}
