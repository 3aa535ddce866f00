//! The audit log as people read it: one line for each operation that changed something,
//! or tried to. Pure: events in, words out.

use std::collections::BTreeMap;

use jvs_lock::history::Logged;
use jvs_lock::state::State;
use jvs_repo::audit::{Event, EventKind, EventPhase};
use jvs_repo::clock::WallMs;
use jvs_repo::id::OpNonce;
use jvs_repo::name::WorktreeName;
use serde_json::Value;

use super::overruled;
use crate::fail::on_one_line;

/// One operation, whatever was written of it.
#[derive(Debug)]
pub(super) struct Operation<'e> {
    /// What was written last, which says how it ended.
    pub(super) last: &'e Event,
    /// When it ended, or was last tried.
    pub(super) at: Option<WallMs>,
    /// Why, and what else was said: often only with the intent.
    reason: Option<&'e str>,
    details: Option<&'e Value>,
    whom: Option<String>,
}

/// The operations of `events`, which are in order; without renewals, and without what
/// only moves a register on.
pub(super) fn operations(events: &[Logged]) -> Vec<Operation<'_>> {
    let mut places: BTreeMap<(OpNonce, String, Option<&WorktreeName>), usize> = BTreeMap::new();
    let mut found: Vec<Operation<'_>> = Vec::new();
    for Logged { event, .. } in events {
        if matches!(
            event.kind,
            EventKind::Renew | EventKind::Advance | EventKind::Continue | EventKind::Anchor
        ) {
            continue;
        }
        let key = (event.op, event.kind.to_string(), event.worktree.as_ref());
        let at = *places.entry(key).or_insert_with(|| {
            found.push(Operation::of(event));
            found.len() - 1
        });
        found[at].take(event);
    }
    found
}

impl<'e> Operation<'e> {
    fn of(event: &'e Event) -> Self {
        Operation { last: event, at: None, reason: None, details: None, whom: None }
    }

    fn take(&mut self, event: &'e Event) {
        self.reason = self.reason.or(event.reason.as_deref());
        self.details = self.details.or(event.details.as_ref());
        self.whom = self.whom.take().or_else(|| overruled(event));
        // An answer is not taken back by another attempt that did not come to one.
        if self.at.is_none() || self.last.phase != EventPhase::Done {
            (self.last, self.at) = (event, event.at_ms());
        }
    }

    /// What was done, as a sentence without its subject.
    pub(super) fn what(&self) -> String {
        let event = self.last;
        let mut text = done(event, self.details);
        match event.phase {
            EventPhase::Done => {}
            EventPhase::Intent => text = format!("began, and left no answer: {text}"),
            EventPhase::NotApplied => text = format!("tried in vain: {text}"),
            EventPhase::Unknown => text = format!("outcome unknown: {text}"),
        }
        if let Some(whom) = &self.whom {
            text += &format!(" {}", on_one_line(whom));
        }
        match self.reason {
            Some(reason) => format!("{text}: {}", on_one_line(reason)),
            None => text,
        }
    }
}

/// Who did it: a session that has a name of its own, else its user and host.
pub(in crate::command) fn who(event: &Event) -> String {
    if !event.session_id.starts_with("term:") {
        return event.session_id.clone();
    }
    let mut parts = event.holder_id.split(':');
    match (parts.next(), parts.next()) {
        (Some(host), Some(user)) if !user.is_empty() => format!("{user}@{host}"),
        _ => event.session_id.clone(),
    }
}

fn done(event: &Event, details: Option<&Value>) -> String {
    let to: Option<State> = event.to.as_ref().and_then(|name| name.parse().ok());
    let token = to.map(|state| format!(" (token {})", state.token)).unwrap_or_default();
    let said = |name: &str| details.and_then(|it| it[name].as_str()).unwrap_or_default();
    match event.kind {
        EventKind::Create => "created the worktree".to_owned(),
        EventKind::Acquire => format!("took the lock{token}"),
        EventKind::Renew => "renewed the lease".to_owned(),
        EventKind::Steal => format!("took over an abandoned lock{token}"),
        EventKind::Reclaim => format!("took over the lock{token}"),
        EventKind::Transfer => format!("handed the lock over{token}"),
        EventKind::Release => "released the lock".to_owned(),
        EventKind::Freeze => "froze the worktree".to_owned(),
        EventKind::Unfreeze => "lifted the freeze".to_owned(),
        EventKind::Publish => match to.and_then(|state| state.head) {
            Some(head) => format!("published {head}"),
            None => "published".to_owned(),
        },
        EventKind::Advance => "moved the register on".to_owned(),
        EventKind::Retire => "removed the worktree".to_owned(),
        EventKind::Rebuild => "rebuilt the register".to_owned(),
        EventKind::Restore => match said("snapshot_id") {
            "" => "restored files".to_owned(),
            snapshot => format!("restored files of {}", on_one_line(snapshot)),
        },
        EventKind::Gc => match details.and_then(|it| it["snapshots"].as_array()).map(Vec::len) {
            Some(1) => "removed 1 snapshot".to_owned(),
            Some(count) => format!("removed {count} snapshots"),
            None => "removed leftovers".to_owned(),
        },
        EventKind::Repair => match said("check") {
            "" => "repaired".to_owned(),
            check => format!("repaired {}", on_one_line(check)),
        },
        EventKind::Migrate => "took over the lock of another tool".to_owned(),
        EventKind::Tag => format!("tagged as {}", on_one_line(said("tag"))),
        EventKind::Untag => format!("deleted the tag {}", on_one_line(said("tag"))),
        EventKind::Continue => "went on in another log".to_owned(),
        EventKind::Anchor => "dropped what is before this".to_owned(),
        EventKind::Undo => format!("took back operation {}", on_one_line(said("undoes"))),
    }
}

/// How long ago it was, in one unit; the day, if that is long ago or still to come.
pub(in crate::command) fn ago(at: WallMs, now: WallMs) -> String {
    let ms = now.since(at);
    match ms {
        _ if at > now => day(at),
        0..60_000 => "just now".to_owned(),
        60_000..3_600_000 => format!("{} min ago", ms / 60_000),
        3_600_000..86_400_000 => format!("{} h ago", ms / 3_600_000),
        86_400_000..604_800_000 => format!("{} d ago", ms / 86_400_000),
        _ => day(at),
    }
}

fn day(at: WallMs) -> String {
    at.shown().to_string().chars().take(16).collect::<String>().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use jvs_lock::history::LogLine;
    use jvs_repo::audit::WriterId;
    use serde_json::json;

    use super::*;

    fn logged(kind: &str, phase: &str, op: u8) -> Logged {
        let event = json!({
            "kind": kind, "phase": phase, "at": "2025-11-16T09:00:00.000Z",
            "op": format!("{op:016x}"), "worktree": "main", "session_id": "s",
            "holder_id": "h:ann:1:2", "reason": "why\nnot",
        });
        let event = serde_json::from_value(event).expect("an event");
        Logged { place: LogLine { log: WriterId([0; 12]).into(), line: 1 }, event }
    }

    #[test]
    fn an_operation_is_one_line_that_says_how_it_ended() {
        let events = [
            logged("acquire", "intent", 1),
            logged("acquire", "done", 1),
            logged("renew", "done", 2),
            logged("steal", "intent", 3),
            logged("steal", "not_applied", 3),
            logged("release", "intent", 4),
            logged("freeze", "intent", 5),
            Logged {
                event: Event { reason: None, ..logged("freeze", "done", 5).event },
                ..logged("freeze", "done", 5)
            },
        ];
        let told: Vec<String> = operations(&events).iter().map(Operation::what).collect();
        assert_eq!(
            told,
            [
                "took the lock: why\\nnot",
                "tried in vain: took over an abandoned lock: why\\nnot",
                "began, and left no answer: released the lock: why\\nnot",
                "froze the worktree: why\\nnot",
            ]
        );
    }

    #[test]
    fn a_session_without_a_name_is_its_user_and_host() {
        let mut event = logged("acquire", "done", 1).event;
        assert_eq!(who(&event), "s");
        event.session_id = "term:h:1:2".into();
        assert_eq!(who(&event), "ann@h");
        event.holder_id = "odd".into();
        assert_eq!(who(&event), "term:h:1:2");
    }

    #[test]
    fn a_time_is_told_in_one_unit() {
        let now = WallMs(1_763_283_600_000);
        for (ms, text) in [
            (0, "just now"),
            (59_999, "just now"),
            (60_000, "1 min ago"),
            (7_200_000, "2 h ago"),
            (172_800_000, "2 d ago"),
            (604_800_000, "2025-11-09 09:00"),
        ] {
            assert_eq!(ago(WallMs(now.0 - ms), now), text);
        }
        assert_eq!(ago(now.plus(60_000), now), "2025-11-16 09:01", "by another clock");
    }
}
