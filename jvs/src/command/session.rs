//! `jvs session …`: who am I, why, what do I hold where, what relies on that, and what
//! have I not been told yet. All of it from the user's private directory, and from the
//! registers that it leads to.

mod forget;
mod list;
mod show;
mod survey;

use std::path::PathBuf;

use jvs_lock::session::SessionId;
use jvs_repo::name::WorktreeName;

use self::survey::Looking;
use crate::args::{SessionArgs, SessionCommand};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;
use crate::session;

/// What session `id` holds now, as far as that can be seen: in which repositories, and
/// which worktrees.
pub(crate) fn held(
    context: &Context<'_>,
    id: &SessionId,
) -> Result<Vec<(PathBuf, WorktreeName)>, Failure> {
    let Some(files) = session::files(context.env())? else { return Ok(Vec::new()) };
    let survey = Looking::new(context, &files)?.at(&session::file_of(id), Some(id.clone()))?;
    let held = survey.holds.into_iter().filter(|hold| hold.is_held() == Some(true));
    Ok(held.filter_map(|hold| Some((hold.root?.into(), hold.worktree))).collect())
}

pub(crate) fn run(context: &Context<'_>, args: &SessionArgs) -> Result<Done, Failure> {
    match &args.command {
        None | Some(SessionCommand::Show) => show::run(context),
        Some(SessionCommand::List) => list::run(context),
        Some(SessionCommand::Forget { id, force }) => forget::run(context, id.as_deref(), *force),
    }
}
