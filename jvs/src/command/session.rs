//! `jvs session …`: who am I, why, what do I hold where, what relies on that, and what
//! have I not been told yet. All of it from the user's private directory, and from the
//! registers that it leads to.

mod forget;
mod list;
mod show;
mod survey;

use crate::args::{SessionArgs, SessionCommand};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(crate) fn run(context: &Context<'_>, args: &SessionArgs) -> Result<Done, Failure> {
    match &args.command {
        None | Some(SessionCommand::Show) => show::run(context),
        Some(SessionCommand::List) => list::run(context),
        Some(SessionCommand::Forget { id, force }) => forget::run(context, id.as_deref(), *force),
    }
}
