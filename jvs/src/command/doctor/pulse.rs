//! What only metrics tell: how each worktree is used.

use std::collections::{BTreeMap, HashSet};

use jvs_doctor::Examination;
use jvs_lock::Seams;
use jvs_lock::history::read_logs_since;
use jvs_lock::queue::{Queue, SILENT_AFTER_MS};
use jvs_lock::register::Register;
use jvs_lock::state::State;
use jvs_repo::audit::{Event, EventKind, EventPhase};
use jvs_repo::clock::WallMs;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use super::prometheus::{MetricsPage, seconds};

const DAY_MS: u64 = 24 * 3600 * 1000;

/// By which kinds of operation a holder loses its lock; whatever else does it is `other`.
const LOSSES: [&str; 5] = ["steal", "reclaim", "freeze", "acquire", OTHER];
const OTHER: &str = "other";

/// How the worktrees of a repository are used.
pub(super) struct Pulse {
    worktrees: Vec<WorktreePulse>,
    /// How many locks were lost by what within a day; `None` if not all logs can be read.
    lost: Option<BTreeMap<&'static str, u64>>,
}

struct WorktreePulse {
    name: String,
    /// Time since the head was made; `None` if there is none.
    newest_snapshot_age_ms: Option<u64>,
    waiters: u64,
    longest_wait_ms: u64,
}

impl Pulse {
    /// Looks; what cannot be read is not told, and a finding of the examination. Nothing is
    /// looked at in a repository of another format, of which nothing was surveyed either.
    pub(super) fn take(seams: Seams<'_>, examination: &Examination) -> Self {
        if examination.vitals.worktrees == 0 {
            return Pulse { worktrees: Vec::new(), lost: None };
        }
        let now = seams.clock.now().wall;
        let there = seams.store.list(&layout::worktree_records()).unwrap_or_default();
        let mut names: Vec<WorktreeName> = there
            .iter()
            .filter_map(|entry| layout::worktree_of_record(entry.name.to_str()?))
            .collect();
        names.sort();
        let worktrees = names.iter().filter_map(|name| WorktreePulse::take(seams, name, now));
        let logs = read_logs_since(seams.store, WallMs(now.0.saturating_sub(DAY_MS)));
        let logs = logs.ok().filter(|logs| logs.unread.is_empty());
        let since = WallMs(now.0.saturating_sub(DAY_MS));
        let lost = logs.map(|logs| lost(logs.events.iter().map(|logged| &logged.event), since));
        Pulse { worktrees: worktrees.collect(), lost }
    }

    pub(super) fn add_to(&self, page: &mut MetricsPage) {
        let age = "jvs_newest_snapshot_age_seconds";
        page.family(age, "Time since the head of a worktree was made, by the clock of who made it");
        for worktree in &self.worktrees {
            if let Some(ms) = worktree.newest_snapshot_age_ms {
                page.sample(age, &[("worktree", &worktree.name)], seconds(ms));
            }
        }
        let waiters = "jvs_lock_waiters";
        page.family(waiters, "Commands that wait in line for a lock and give signs of life");
        for worktree in &self.worktrees {
            page.sample(waiters, &[("worktree", &worktree.name)], worktree.waiters);
        }
        let longest = "jvs_lock_longest_wait_seconds";
        page.family(longest, "How long the first of those who wait now has waited; 0 if nobody");
        for worktree in &self.worktrees {
            let ms = seconds(worktree.longest_wait_ms);
            page.sample(longest, &[("worktree", &worktree.name)], ms);
        }
        if let Some(lost) = &self.lost {
            let name = "jvs_locks_lost_last_day";
            page.family(name, "Locks that a holder lost in the last 24 hours, by what took them");
            for kind in LOSSES {
                let count = lost.get(kind).copied().unwrap_or_default();
                page.sample(name, &[("kind", kind)], count);
            }
        }
    }
}

impl WorktreePulse {
    fn take(seams: Seams<'_>, name: &WorktreeName, now: WallMs) -> Option<Self> {
        let register = Register::new(seams.store, seams.clock, name.clone());
        let state = register.read().ok()?;
        let line = Queue::new(seams, name).list().ok()?;
        let here = line.iter().filter(|waiter| now.since(waiter.beat) < SILENT_AFTER_MS);
        let waits: Vec<u64> =
            here.map(|waiter| waiter.since.map_or(0, |since| now.since(since))).collect();
        Some(WorktreePulse {
            name: name.to_string(),
            newest_snapshot_age_ms: state.head.map(|head| now.since(WallMs(head.created_ms))),
            waiters: waits.len() as u64,
            longest_wait_ms: waits.into_iter().max().unwrap_or_default(),
        })
    }
}

/// How many locks a holder lost since then, by what took them: a state that was held became one
/// with another token, and the holder did not hand it over.
fn lost<'e>(events: impl Iterator<Item = &'e Event>, since: WallMs) -> BTreeMap<&'static str, u64> {
    let state = |name: &Option<String>| name.as_ref()?.parse::<State>().ok();
    let mut counts = BTreeMap::new();
    let mut seen = HashSet::new();
    for event in events {
        let (Some(from), Some(to)) = (state(&event.from), state(&event.to)) else { continue };
        let done = event.phase == EventPhase::Done && event.kind != EventKind::Transfer;
        let recent = event.at_ms().is_some_and(|at| at >= since);
        let taken = from.holder().is_some() && from.term() != to.term();
        if done && recent && taken && seen.insert(to) {
            let kind = match event.kind {
                EventKind::Steal => "steal",
                EventKind::Reclaim => "reclaim",
                EventKind::Freeze => "freeze",
                EventKind::Acquire => "acquire",
                _ => OTHER,
            };
            *counts.entry(kind).or_default() += 1;
        }
    }
    counts
}
