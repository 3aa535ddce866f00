//! The verbs: one file each. A verb asks a library and says what it answered.

mod agent;
mod audit;
mod cat;
mod complete;
mod completions;
mod config;
mod demo;
mod diff;
mod doctor;
mod events;
mod forget;
mod gc;
mod history;
pub(crate) mod hook;
mod info;
mod init;
mod lock;
mod ls;
mod man;
mod path;
mod restore;
pub(crate) mod run;
mod schema;
mod session;
mod show;
mod snapshot;
mod snapshots;
mod status;
mod tag;
mod undo;
mod verify;
mod worktree;

pub(crate) use snapshots::{counted, size};

use jvs_repo::next::Next;

use crate::args::Command;
use crate::context::Context;
use crate::fail::Failure;
use crate::near;
use crate::ownership;
use crate::render::Done;
use crate::session::life::SignsOfLife;

/// A worktree that is not there is probably one that is, mistyped.
fn suggesting(context: &Context<'_>, failure: Failure) -> Failure {
    let Some(Next::FindWorktree(wanted)) = failure.next() else { return failure };
    let Some(there) = context.repo().ok().and_then(|repo| repo.worktrees().ok()) else {
        return failure;
    };
    let names = there.worktrees.iter().map(|(name, _)| name.as_str());
    let near = near::nearest(wanted.as_str(), names);
    let near = near.into_iter().map(str::to_owned).collect();
    failure.suggesting(near)
}

/// Runs one command.
pub(crate) fn run(context: &Context<'_>, command: Command) -> Result<Done, Failure> {
    // A command is a sign of life. Also at its end: it may have taken long.
    let unattended =
        matches!(command, Command::Keeper(_) | Command::Complete(_) | Command::Hook(_));
    let life = (!unattended).then(|| context.life());
    life.iter().for_each(SignsOfLife::sign);
    let answer = match command {
        Command::Init(args) => init::run(context, &args),
        Command::Worktree(command) => worktree::run(context, &command),
        Command::Lock(command) => lock::run(context, &command),
        Command::Snapshot(args) => snapshot::run(context, &args),
        Command::Status(args) => status::run(context, &args),
        Command::Diff(args) => diff::run(context, &args),
        Command::Restore(args) => restore::run(context, &args),
        Command::Undo(args) => undo::run(context, &args),
        Command::Redo(args) => undo::redo(context, &args),
        Command::Verify(args) => verify::run(context, &args),
        Command::History(args) => history::run(context, &args),
        Command::Info(args) => info::run(context, &args),
        Command::Show(args) => show::run(context, &args),
        Command::Ls(args) => ls::run(context, &args),
        Command::Cat(args) => cat::run(context, &args),
        Command::Path(args) => path::run(context, &args),
        Command::Tag(args) => tag::run(context, &args),
        Command::Gc(args) => gc::run(context, &args),
        Command::Forget(args) => forget::run(context, &args),
        Command::Doctor(args) => doctor::run(context, &args),
        Command::Audit(args) => audit::run(context, &args),
        Command::Events(args) => events::run(context, &args),
        Command::Agent(command) => agent::run(context, &command),
        // Its answer is the harness's, in which there is no room for anything else.
        Command::Hook(args) => return hook::run(context, &args),
        Command::Config(command) => config::run(context, &command),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Demo(args) => demo::run(context, &args),
        Command::Run(args) => run::command(context, &args),
        Command::Shell(args) => run::shell(context, &args),
        // What waits to be told is shown, and stays for the command that it is told by.
        Command::Session(args) => return session::run(context, &args),
        // A shell asks it between two keys: what waits to be told is not for it.
        Command::Complete(args) => return Ok(complete::run(context, &args)),
        Command::Keeper(args) => {
            ownership::say_nothing();
            return crate::keeper::run(context, &args);
        }
    };
    life.iter().for_each(SignsOfLife::sign);
    // What happened behind the session's back is told with whatever it asks next.
    let notes: Vec<String> =
        crate::keeper::take_note(context).into_iter().chain(context.take_told()).collect();
    match answer {
        Ok(done) => {
            Ok(context.take_warned().into_iter().chain(notes).fold(done, Done::with_warning))
        }
        Err(failure) => {
            let failure = suggesting(context, failure);
            let preface = notes.iter().map(|note| format!("warning: {note}\n")).collect();
            Err(failure.also_preceded_by(preface))
        }
    }
}
