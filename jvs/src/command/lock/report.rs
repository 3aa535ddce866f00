//! What all lock commands say alike.

use jvs_lock::kept::{Kept, With};
use jvs_lock::record::Record;
use jvs_lock::span::Span;
use jvs_lock::view::{StatusWord, View};
use jvs_lock::{Lease, LeaseOrigin};

use crate::answer::lock::{HeldLock, KeeperSeen, Seen};
use crate::context::Context;
use crate::fail::on_one_line;
use crate::render::{Done, fact};
use crate::sink::Emphasis;

/// A lock that is kept renewed: for how long at most, by whom, and what observers see of it.
pub(super) struct KeptRenewed<'k> {
    pub(super) for_ms: u64,
    pub(super) told: &'k Kept,
    pub(super) pid: u32,
    /// Only looked at for programs.
    pub(super) view: Option<View>,
}

/// The answer to a command that ends with this session holding the lock.
pub(super) fn held(context: &Context<'_>, lease: &Lease<'_>, how: LeaseOrigin) -> Done {
    held_as(context, lease, how, None)
}

/// The same, if the lease is kept renewed.
pub(super) fn held_as(
    context: &Context<'_>,
    lease: &Lease<'_>,
    how: LeaseOrigin,
    kept: Option<&KeptRenewed<'_>>,
) -> Done {
    let now = context.clock().now();
    let remaining_ms = lease.belief().until().map_or(0, |end| end.since(now.boot));
    let (worktree, token, claim) = (lease.worktree(), lease.token(), lease.claim());
    let first = match how {
        LeaseOrigin::Acquired | LeaseOrigin::Resumed => "Locked worktree",
        LeaseOrigin::Refreshed => "Renewed the lock of worktree",
        LeaseOrigin::Stolen | LeaseOrigin::Reclaimed => "Took over the lock of worktree",
    };
    let lease_ms = Span(claim.lease_ms);
    let lasts = match kept {
        Some(KeptRenewed { for_ms, told, .. }) => {
            format!("Lease of {lease_ms}, kept renewed for {}{}", Span(*for_ms), or_less(told))
        }
        None => format!("Lease of {lease_ms}, until {}", claim.expires.shown()),
    };
    let by = lease.by().map(|by| format!(", by {}", by.reason)).unwrap_or_default();
    let text = format!(
        "{first} {} (fencing token {token}{by})\n{lasts}\n",
        context.paint().bold(worktree.as_str()),
    );
    let answer = || {
        let held = HeldLock {
            worktree: worktree.clone(),
            state: StatusWord::Held,
            mine: true,
            remaining_ms,
            head: lease.head(),
            how,
            fencing_token: token,
            record: lease.record().map(record),
            kept_until: Some(claim.expires.rfc3339()),
            watched_ms: context.watched_ms(),
            reclaim: lease.by(),
            holder: None,
            keeper: None,
        };
        kept.into_iter().fold(held, as_observed)
    };
    let longer = lease.asked_for_less().map(|asked| {
        format!(
            "the lease lasts {lease_ms}, as promised before, not {} as requested: to shorten it, \
             release it first",
            Span(asked)
        )
    });
    let done = longer.into_iter().fold(context.done(answer).with_text(text), Done::with_warning);
    lease.drift().iter().fold(done, |done, drift| {
        done.with_warning(format!("{drift}; the lock itself is not affected"))
    })
}

/// What observers see of it now that its keeper speaks for the session.
fn as_observed(held: HeldLock, KeptRenewed { pid, view, .. }: &KeptRenewed<'_>) -> HeldLock {
    let Some(view) = view else { return held };
    HeldLock {
        remaining_ms: view.remaining_ms(),
        record: view.record().map(record),
        kept_until: view.holder().kept_until(),
        holder: Some(view.holder().known()),
        keeper: Some(KeeperSeen { pid: *pid, alive: Some(true) }),
        ..held
    }
}

/// What ends it before its time, as its holder is told.
fn or_less(kept: &Kept) -> String {
    let with = kept.with.map(|with| match with {
        With::Command => ", or until its command ends".to_owned(),
        With::Terminal => ", or until this terminal closes".to_owned(),
        With::Process { pid } => format!(", or until process {pid} ends"),
    });
    let idle = kept
        .idle_ms
        .map(|ms| format!(", or until no command of this session has run for {}", Span(ms)));
    with.into_iter().chain(idle).collect()
}

/// What one look tells.
pub(crate) fn seen(view: &View) -> Seen {
    Seen {
        worktree: view.worktree.clone(),
        state: view.word(),
        mine: view.mine,
        remaining_ms: Some(view.remaining_ms()).filter(|ms| *ms < u64::MAX),
        head: view.state.head,
        how: None,
        fencing_token: view.state.token,
        record: view.record().map(record),
        kept_until: view.holder().kept_until(),
        holder: view.holder().known(),
        other_tool: view.foreign.clone(),
    }
}

/// A record with all of its fields, whatever an older tool left out.
fn record(record: &Record) -> Record {
    let expires = || record.expires().map(|expires| expires.rfc3339());
    let lease_expires_at = record.lease_expires_at.clone().or_else(expires);
    Record { lease_expires_at, ..record.clone() }
}

/// Which worktree it is and how its lock stands, in lines of which none is long.
pub(crate) fn lines(view: &View) -> String {
    let worktree = format!("{}:", view.worktree);
    if view.word() != StatusWord::Held || view.foreign.is_some() {
        return fact(Some(Emphasis::Bold), &worktree, &line(view));
    }
    let holder = view.holder();
    let title = fact(Some(Emphasis::Bold), &worktree, &format!("held by {}", holder.title()));
    let until = holder.until_when();
    until.split(", ").fold(title, |text, part| text + &fact(None, " ", part))
}

/// How a lock stands, in one line that is short if it can be.
pub(super) fn brief(view: &View) -> String {
    match view.word() == StatusWord::Held && view.foreign.is_none() {
        true => on_one_line(&format!("held by {}", view.holder().brief())),
        false => line(view),
    }
}

/// How a lock stands, in one line.
pub(crate) fn line(view: &View) -> String {
    if let Some(foreign) = view.held_by_other_tool() {
        return on_one_line(&format!("held {}", foreign.described(view.at.wall)));
    }
    match &view.foreign {
        Some(foreign) => {
            let also = on_one_line(&foreign.described(view.at.wall));
            format!("{}; also held {also}", own_line(view))
        }
        None => own_line(view),
    }
}

/// The same without other tools.
fn own_line(view: &View) -> String {
    let holder = || on_one_line(&view.holder().who());
    let left = Span(view.remaining_ms());
    let until = || view.expires().map(|it| it.shown().to_string()).unwrap_or_default();
    match view.word() {
        StatusWord::Free => "free".to_owned(),
        StatusWord::Retired => "removed".to_owned(),
        StatusWord::Held => format!("held by {}", on_one_line(&view.holder().line())),
        StatusWord::Expired => {
            let wait = Span(view.judgement.as_ref().map_or(0, |judged| judged.stealable_in_ms));
            format!("held by {}, whose lease is over; stealable in {wait}", holder())
        }
        StatusWord::Stealable => {
            let judged = view.judgement.as_ref();
            let first = match judged.map_or(0, |judged| judged.watch_ms) {
                0 => String::new(),
                ms => format!(" once it was watched for {}", Span(ms)),
            };
            format!("held by {}, whose lease is over; stealable{first}", holder())
        }
        StatusWord::Frozen => {
            let why = view.record().and_then(|record| record.note.as_deref());
            let why = why.map(|why| format!(": {}", on_one_line(why))).unwrap_or_default();
            format!("frozen by {} for {left} more, until {}{why}", holder(), until())
        }
    }
}
