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

/// Worktrees, with the repositories that they are in.
pub(crate) type Places = Vec<(PathBuf, WorktreeName)>;

/// The locks that a session has and had, as far as that can be seen.
#[derive(Default)]
pub(crate) struct SessionLocks {
    /// What it holds now.
    pub(crate) held: Places,
    /// What was taken from it, and it did not acknowledge that.
    pub(crate) lost: Places,
}

/// The locks of session `id`.
pub(crate) fn locks_of(context: &Context<'_>, id: &SessionId) -> Result<SessionLocks, Failure> {
    let Some(files) = session::files(context.env())? else { return Ok(SessionLocks::default()) };
    let survey = Looking::new(context, &files)?.at(&session::file_of(id), Some(id.clone()))?;
    let mut locks = SessionLocks::default();
    for hold in survey.holds {
        let places = match hold.is_held() {
            Some(true) => &mut locks.held,
            Some(false) if hold.taken().is_some() => &mut locks.lost,
            _ => continue,
        };
        places.extend(hold.root.map(|root| (root.into(), hold.worktree)));
    }
    Ok(locks)
}

pub(crate) fn run(context: &Context<'_>, args: &SessionArgs) -> Result<Done, Failure> {
    match &args.command {
        None | Some(SessionCommand::Show) => show::run(context),
        Some(SessionCommand::List) => list::run(context),
        Some(SessionCommand::Forget { id, force }) => forget::run(context, id.as_deref(), *force),
    }
}
