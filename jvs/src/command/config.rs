//! `jvs config …`.

mod get;
mod list;
mod set;

use crate::args::ConfigCommand;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(crate) fn run(context: &Context<'_>, command: &ConfigCommand) -> Result<Done, Failure> {
    match command {
        ConfigCommand::List => list::run(context),
        ConfigCommand::Get { key } => get::run(context, key),
        ConfigCommand::Set { key, value } => set::run(context, key, value),
    }
}
