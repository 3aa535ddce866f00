//! The beginning of a session: the agent is told where it is, and who.

use super::reach::found;
use super::who::Asker;
use crate::context::Context;
use crate::fail::Failure;
use crate::harness::{Call, HookVerdict};

/// What an agent has to know, with the options that its commands need.
pub(super) fn greet(
    context: &Context<'_>,
    asker: &Asker,
    call: &Call,
) -> Result<HookVerdict, Failure> {
    let Some(located) = found(context, &call.cwd)? else { return Ok(HookVerdict::Pass) };
    let place = match &located.worktree {
        Some(worktree) => format!("worktree '{worktree}' of a JVS repository"),
        None => "a JVS repository, in none of its worktrees".to_owned(),
    };
    let text = include_str!("greeting.txt").trim_end();
    let text = text.replace("PLACE", &place).replace("SESSION", asker.id.as_str());
    Ok(HookVerdict::Context(asker.options(None).complete(&text).into_owned()))
}
