//! Who held which worktree when, as far as the audit log tells. Pure.

use std::collections::BTreeMap;

use jvs_lock::history::Logged;
use jvs_lock::state::{Hold, State};
use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::clock::WallMs;
use jvs_repo::name::WorktreeName;
use serde_json::{Value, json};

use super::story::{Operation, operations, who};

/// A time in which one session held a worktree, or nobody could.
struct HoldSpan {
    worktree: WorktreeName,
    who: String,
    token: u64,
    frozen: bool,
    from: WallMs,
    /// When its lease was over, by the last renewal that is known.
    expires: WallMs,
    until: Option<(WallMs, &'static str)>,
}

/// What the page shows, in milliseconds since 1970.
pub(super) fn timeline(events: &[Logged], now: WallMs) -> Value {
    let mut open: BTreeMap<WorktreeName, HoldSpan> = BTreeMap::new();
    let mut spans: Vec<HoldSpan> = Vec::new();
    for Logged { event, .. } in events {
        let (Some(worktree), Some(at)) = (&event.worktree, event.at_ms()) else { continue };
        let to: Option<State> = event.to.as_ref().and_then(|name| name.parse().ok());
        let Some(to) = to.filter(|_| event.phase == EventPhase::Done) else { continue };
        let claim = to.hold.claim();
        let token = to.token.0;
        let frozen = matches!(to.hold, Hold::Frozen(_));
        if let Some(span) = open.get_mut(worktree)
            && let Some(claim) = claim
            && (span.token, span.frozen) == (token, frozen)
        {
            // The same one, renewed or with a new head.
            span.expires = span.expires.max(claim.expires);
            continue;
        }
        if let Some(mut span) = open.remove(worktree) {
            span.until = Some((at, ending(event.kind)));
            spans.push(span);
        }
        if let Some(claim) = claim {
            let (worktree, who) = (worktree.clone(), who(event));
            let expires = claim.expires;
            let span = HoldSpan { worktree, who, token, frozen, from: at, expires, until: None };
            open.insert(span.worktree.clone(), span);
        }
    }
    spans.extend(open.into_values().map(|span| closed(span, now)));
    let spans: Vec<Value> = spans.iter().map(told).collect();
    let marks: Vec<Value> = operations(events).iter().filter_map(mark).collect();
    json!({ "now": now.0, "holds": spans, "marks": marks })
}

/// What became of a hold that nothing in the log ends.
fn closed(span: HoldSpan, now: WallMs) -> HoldSpan {
    let until = match span.expires < now {
        true => (span.expires, "the lease ran out"),
        false => (now, "still so"),
    };
    HoldSpan { until: Some(until), ..span }
}

fn ending(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Steal => "lost: the lease was over, and somebody took over",
        EventKind::Reclaim => "lost: somebody took over",
        EventKind::Transfer => "handed over",
        EventKind::Freeze => "frozen",
        EventKind::Unfreeze => "lifted",
        EventKind::Retire => "the worktree was removed",
        EventKind::Rebuild => "lost: the register was rebuilt",
        _ => "released",
    }
}

fn told(span: &HoldSpan) -> Value {
    let (until, how) = span.until.unwrap_or((span.expires, "unknown"));
    json!({
        "worktree": span.worktree,
        "who": span.who,
        "token": span.token,
        "frozen": span.frozen,
        "from": span.from.0,
        "until": until.0.max(span.from.0),
        "ended": how,
    })
}

/// What a mark on the timeline is of, for its colour and for the filter.
fn mark(operation: &Operation<'_>) -> Option<Value> {
    let event = operation.last;
    let kind = match (event.phase, event.kind) {
        (EventPhase::NotApplied, _) => "refused",
        (EventPhase::Intent | EventPhase::Unknown, _) => "unknown",
        (_, EventKind::Steal | EventKind::Reclaim | EventKind::Rebuild) => "taken",
        (_, EventKind::Publish) => "published",
        (_, EventKind::Acquire | EventKind::Release | EventKind::Transfer) => "lock",
        _ => "other",
    };
    Some(json!({
        "worktree": event.worktree,
        "who": who(event),
        "session": event.session_id,
        "at": operation.at?.0,
        "kind": kind,
        "what": operation.what(),
    }))
}
