//! Leases and freezes that are over, and keepers that are gone.

use jvs_lock::StatusWord;
use jvs_lock::judge::Standing;
use jvs_lock::liveness::Liveness;
use jvs_lock::span::Span;
use jvs_lock::state::Hold;
use jvs_repo::layout;
use jvs_repo::next::Next;

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::remedy::Remedy;
use crate::survey::Survey;

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for (worktree, view) in &survey.views {
        let path = layout::register(worktree);
        let who = match view.record() {
            Some(record) => format!("session {} ({})", record.session_id, record.holder_id),
            None => "an unknown session".to_owned(),
        };
        let over = match view.expires() {
            Some(expires) => Span(view.at.wall.since(expires)).to_string(),
            None => continue,
        };
        // This host's clock alone proves nothing: somebody may renew it anyway.
        let unproven = view.judgement.as_ref().is_some_and(|judged| judged.watch_ms > 0);
        let ended = match unproven {
            true => format!("looks over for {over} by this host's clock, which proves nothing,"),
            false => format!("ended {over} ago"),
        };
        let standing = view.judgement.as_ref().map(|judged| judged.standing);
        match (view.word(), view.state.hold) {
            (StatusWord::Expired, _) => {
                let message = format!("the lease of {who} {ended}");
                report
                    .add(Check::LockExpired, path, message)
                    .of(worktree)
                    .advice(Next::AcquireLater(worktree.clone()));
            }
            (StatusWord::Stealable, _) => {
                let message = format!("the lease of {who} {ended} and was not released");
                report
                    .add(Check::LockAbandoned, path, message)
                    .of(worktree)
                    .remedy(Remedy::Free(worktree.clone()));
            }
            (_, Hold::Frozen(_)) if standing == Some(Standing::Stealable) => {
                let message = format!("the freeze by {who} {ended} and was not lifted");
                report.add(Check::FreezeStale, path, message).of(worktree).remedy(
                    Remedy::Unfreeze { worktree: worktree.clone(), meant: view.state.term() },
                );
            }
            _ => {}
        }
        let keeper = view.record().and_then(|record| record.keeper.as_ref());
        let dead = keeper.filter(|keeper| survey.keeper_liveness(keeper) == Liveness::Dead);
        if let (Some(keeper), StatusWord::Held) = (dead, view.word()) {
            let message = format!(
                "process {}, which renewed the lease of {who}, has ended; the lease ends in {}",
                keeper.pid,
                Span(view.remaining_ms())
            );
            report
                .add(Check::KeeperDead, layout::lock_record(worktree), message)
                .of(worktree)
                .advice(Next::GoOnAsHolder);
        }
    }
}
