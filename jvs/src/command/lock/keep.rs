//! What happens to a lease that a command has just taken: a keeper goes on with
//! it, or it simply lasts.

use jvs_lock::{How, Lease};
use jvs_repo::config::Config;
use serde_json::json;

use super::{look, report};
use crate::args::KeepArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::keeper::{self, Identity, Order};
use crate::render::Done;
use crate::session::Acting;

/// Leaves the lease to a keeper and answers for the command.
pub(super) fn leave(
    context: &Context<'_>,
    here: &Here,
    config: &Config,
    acting: &Acting,
    mut lease: Lease<'_>,
    args: &KeepArgs,
) -> Result<Done, Failure> {
    let how = lease.how();
    let handed = context.handed_token(&here.worktree)?;
    let inside_run = handed.is_some_and(|(token, _)| token == lease.token());
    if inside_run && is_kept(context, here)? {
        // `jvs run` keeps it and will give it back.
        return Ok(report::held(context, &lease, how));
    }
    keeper::stand_down(context, here)?;
    if args.no_keeper {
        if lease.record().is_some_and(|record| record.keeper.is_some()) {
            let _ = lease.set_keeper(None);
        }
        return Ok(report::held(context, &lease, how));
    }
    let identity = acting.session.identity();
    let for_ms =
        args.for_.unwrap_or_else(|| config.ttl.get(identity.environment, identity.purpose));
    let started = keeper::follow(context, args.while_).and_then(|follow| {
        keeper::start(
            context,
            &Order {
                here,
                session: &acting.session,
                ticket: lease.ticket(),
                for_ms: Some(for_ms.as_ms()),
                follow,
                attached: None,
            },
            None,
        )
    });
    let started = match started {
        Ok(started) => started,
        Err(failure) => {
            if how != How::Refreshed {
                // Best effort: otherwise it runs out by itself.
                let _ = lease.release();
            }
            return Err(failure);
        }
    };
    let mut done = report::held_as(context, &lease, how, Some(for_ms.as_ms()));
    if !context.output().is_json() {
        return Ok(done);
    }
    // The keeper has renewed it and speaks for the session now.
    let view = look(context, here)?;
    let kept_until = context.clock().now().wall.plus(for_ms.as_ms());
    done.amend(|data| {
        data["record"] = report::seen(&view)["record"].take();
        data["remaining_ms"] = json!(view.remaining_ms());
        data["keeper"] = json!({ "pid": started.pid(), "alive": true });
        data["kept_until"] = json!(kept_until.rfc3339());
    });
    Ok(done)
}

/// Does a process of this session keep the lock, as far as can be told? Inside a
/// PID namespace of its own a command cannot see the keeper that it runs under.
fn is_kept(context: &Context<'_>, here: &Here) -> Result<bool, Failure> {
    let identity = Identity::of(context, here)?;
    let keeper = identity.and_then(|identity| identity.read());
    Ok(keeper.is_some_and(|keeper| keeper::running(&keeper) != Some(false)))
}
