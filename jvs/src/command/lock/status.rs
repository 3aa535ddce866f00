//! `jvs lock status`.

use std::fmt::Write as _;

use jvs_lock::queue::{Queue, Waiter};
use jvs_lock::state::Hold;
use jvs_lock::view::View;
use jvs_repo::repo::Repo;

use super::{look, report};
use crate::answer::lock::{Freeze, JudgedBy, KeeperSeen, Status, WaiterSeen};
use crate::context::Context;
use crate::fail::Failure;
use crate::keeper;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let here = context.here()?;
    let view = look(context, &here)?;
    let mut text = report::lines(&view);
    if let Some(keeper) = view.record().and_then(|record| record.keeper.as_ref()) {
        let alive = match keeper::running(keeper) {
            Some(true) => "which runs",
            Some(false) => "which has ended: nobody renews it any more",
            None => "which cannot be seen from here",
        };
        let _ = writeln!(text, "  kept by process {}, {alive}", keeper.pid);
    }
    match waiters(context, &here.repo, &view).len() {
        0 => {}
        1 => text += "  one session waits in line\n",
        count => {
            let _ = writeln!(text, "  {count} sessions wait in line");
        }
    }
    Ok(context.done(|| told(context, &here.repo, &view)).with_text(text))
}

/// Those in line, as far as one look can tell. A line that cannot be read is
/// no reason to hide the lock.
fn waiters(context: &Context<'_>, repo: &Repo, view: &View) -> Vec<Waiter> {
    Queue::new(context.seams(repo.store()), &view.worktree).list().unwrap_or_default()
}

/// Everything that one look tells.
pub(super) fn told(context: &Context<'_>, repo: &Repo, view: &View) -> Status {
    let judged = view.judgement.as_ref();
    let clock = judged.map(|judged| JudgedBy {
        observed_skew_ms: judged.observed_skew_ms,
        method: judged.method,
        evidence: judged.evidence.clone(),
        watch_ms: judged.watch_ms,
        nobody_renews: judged.nobody_renews,
    });
    let keeper = view.record().and_then(|record| record.keeper.as_ref());
    let freeze = match view.state.hold {
        Hold::Frozen(claim) => Some(Freeze {
            expires_at: claim.expires.into(),
            remaining_ms: view.remaining_ms(),
            reason: view.record().and_then(|record| record.note.clone()),
        }),
        _ => None,
    };
    let line = waiters(context, repo, view);
    let waiters = line.iter().enumerate().map(|(at, waiter)| WaiterSeen {
        place: at + 1,
        holder_nonce: waiter.holder,
        process_id: waiter.pid,
        last_sign_at: waiter.beat.into(),
    });
    Status {
        seen: report::seen(view),
        clock,
        stealable_in_ms: judged.map(|judged| judged.stealable_in_ms),
        keeper: keeper.map(|it| KeeperSeen { pid: it.pid, alive: keeper::running(it) }),
        freeze,
        waiters: waiters.collect(),
    }
}
