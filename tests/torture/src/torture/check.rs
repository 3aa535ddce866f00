//! The checker: what must be true of every book, whatever happened.
//!
//! It reads the book only. Each rule is a function of its own, and each has a forged
//! book that it rejects.

use std::collections::{BTreeMap, BTreeSet};

use super::book::{Entry, Fault, Hold, Line, Outcome, Run};
use super::survey::{Ending, Snapshot};
use super::{CALM, OPEN};

#[cfg(test)]
mod forged;

/// How long a lone newcomer may wait: dead waiters keep a free lock for 15 s each.
const NEWCOMER_MS: u64 = 90_000;
/// How long a wall clock that was far off may show: leases and margins of these
/// repositories are shorter.
const AFTERMATH_MS: u64 = 10_000;

/// What the checker found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) violations: Vec<String>,
    /// Pairs of holds or runs that were compared.
    pub(super) compared: usize,
    /// Pairs that were not, because a clock was further off than is promised.
    pub(super) excused: usize,
}

impl Found {
    fn wrong(&mut self, rule: &str, what: impl std::fmt::Display) {
        self.violations.push(format!("{rule}: {what}"));
    }
}

/// The book, sorted by what its lines are.
#[derive(Default)]
struct Sorted<'a> {
    did: Vec<&'a Entry>,
    held: Vec<&'a Hold>,
    ran: Vec<&'a Run>,
    faults: Vec<&'a Fault>,
    ending: Option<&'a Ending>,
}

/// Applies all the rules to a book.
pub(super) fn check(lines: &[Line]) -> Found {
    let mut sorted = Sorted::default();
    for line in lines {
        match line {
            Line::Did(entry) => sorted.did.push(entry),
            Line::Held(hold) => sorted.held.push(hold),
            Line::Ran(run) => sorted.ran.push(run),
            Line::Fault(fault) => sorted.faults.push(fault),
            Line::Ending(ending) => sorted.ending = Some(ending),
        }
    }
    let mut found = Found::default();
    a_token_is_granted_once(&sorted, &mut found);
    tokens_never_go_back(&sorted, &mut found);
    no_two_believe_at_once(&sorted, &mut found);
    no_two_run_at_once(&sorted, &mut found);
    nothing_breaks_and_nothing_hangs(&sorted, &mut found);
    match sorted.ending {
        Some(ending) => {
            the_lineage_is_one_line(ending, &mut found);
            what_was_told_published_is_there(&sorted, ending, &mut found);
            what_was_told_failed_is_nowhere(&sorted, ending, &mut found);
            newcomers_get_every_lock(ending, &mut found);
            nothing_is_wrong_or_left(ending, &mut found);
        }
        None => found.wrong("ending", "the book has no ending"),
    }
    found
}

fn a_token_is_granted_once(book: &Sorted<'_>, found: &mut Found) {
    let mut owners = BTreeMap::new();
    for entry in book.did.iter().filter(|entry| entry.worktree != OPEN) {
        let Some(token) = entry.told.granted else { continue };
        let owner = owners.entry((&entry.worktree, token)).or_insert(&entry.session);
        if **owner != entry.session {
            let what = format!(
                "token {token} of {} was granted to {owner} and to {}",
                entry.worktree, entry.session
            );
            found.wrong("token granted twice", what);
        }
    }
}

/// Whoever asks after somebody was answered is not told less.
fn tokens_never_go_back(book: &Sorted<'_>, found: &mut Found) {
    let mut told: BTreeMap<&str, Vec<(u64, u64, u64, &str)>> = BTreeMap::new();
    for entry in &book.did {
        if let Some(token) = entry.told.granted.or(entry.told.seen) {
            let one = (entry.begun, entry.ended, token, entry.words.as_str());
            told.entry(&entry.worktree).or_default().push(one);
        }
    }
    for (worktree, mut told) in told {
        let mut ended = told.clone();
        ended.sort_by_key(|one| one.1);
        told.sort_by_key(|one| one.0);
        let (mut past, mut highest) = (ended.into_iter().peekable(), (0, 0, 0, ""));
        for (begun, _, token, words) in told {
            while let Some(one) = past.next_if(|one| one.1 < begun) {
                if one.2 > highest.2 {
                    highest = one;
                }
            }
            if token < highest.2 {
                let what = format!(
                    "{worktree}: `{words}` at {begun} was told {token}, `{}` at {} {}",
                    highest.3, highest.1, highest.2
                );
                found.wrong("token went back", what);
            }
        }
    }
}

/// Whether a wall clock was further off than is promised when a later one came.
fn is_excused(book: &Sorted<'_>, from: u64, until: u64) -> bool {
    let far = book.faults.iter().filter(|fault| fault.kind == "clock far off");
    far.clone().any(|fault| fault.from <= until && from <= fault.until + AFTERMATH_MS)
}

/// Where nobody may overrule others, nobody holds while another one does.
fn no_two_believe_at_once(book: &Sorted<'_>, found: &mut Found) {
    let judged = book.held.iter().filter(|hold| hold.worktree == CALM && hold.from < hold.until);
    let spans = judged.map(|hold| (hold.from, hold.until, hold.session.as_str(), hold.token));
    overlaps(book, "held at once", spans.collect(), 1, found);
}

fn no_two_run_at_once(book: &Sorted<'_>, found: &mut Found) {
    let judged = book.ran.iter().filter(|run| run.worktree == CALM);
    let spans = judged.map(|run| (run.first_ns, run.last_ns, run.session.as_str(), run.token));
    overlaps(book, "ran at once", spans.collect(), 1_000_000, found);
}

/// Compares each span with the ones that begin before it ends.
fn overlaps(
    book: &Sorted<'_>,
    rule: &str,
    mut spans: Vec<(u64, u64, &str, u64)>,
    per_ms: u64,
    found: &mut Found,
) {
    spans.sort_unstable();
    for (at, first) in spans.iter().enumerate() {
        found.compared += usize::from(at > 0);
        let later = spans[at + 1..].iter().take_while(|later| later.0 < first.1);
        for second in later.filter(|second| second.2 != first.2 || second.3 != first.3) {
            // One session may have two processes under one token, never under two.
            if is_excused(book, first.0 / per_ms, second.0 / per_ms) {
                found.excused += 1;
                continue;
            }
            found.wrong(rule, format!("{first:?} and {second:?}"));
        }
    }
}

fn nothing_breaks_and_nothing_hangs(book: &Sorted<'_>, found: &mut Found) {
    // What says that the repository itself is damaged, or that the program is wrong.
    const ALARMS: [&str; 7] = [
        "E_INTERNAL",
        "E_FENCE_CORRUPT",
        "E_LINEAGE_BROKEN",
        "E_DESCRIPTOR_CORRUPT",
        "E_PAYLOAD_HASH_MISMATCH",
        "E_AUDIT_CHAIN_BROKEN",
        "E_FORMAT_UNSUPPORTED",
    ];
    for entry in &book.did {
        let said = || {
            format!(
                "{} on host {}, `{}` in {}, at {}: {}",
                entry.session, entry.host, entry.words, entry.worktree, entry.ended, entry.message
            )
        };
        match &entry.outcome {
            Outcome::Hung => found.wrong("hung", said()),
            Outcome::Broke(how) => found.wrong("broke", format!("{}: {how}", said())),
            Outcome::Failed(code) if ALARMS.contains(&code.as_str()) => {
                found.wrong("alarm", format!("{code}: {}", said()));
            }
            _ => {}
        }
    }
}

/// From the head of each register back to the first: everything is there, tokens never
/// fall on the way forward, and nothing is visible that is not on a line.
fn the_lineage_is_one_line(ending: &Ending, found: &mut Found) {
    let by_id: BTreeMap<&str, &Snapshot> =
        ending.snapshots.iter().map(|one| (one.id.as_str(), one)).collect();
    let mut on_a_line = BTreeSet::new();
    for (worktree, states) in &ending.registers {
        let [state] = &states[..] else {
            found.wrong("register", format!("{worktree} has {} entries", states.len()));
            continue;
        };
        let fields: Vec<&str> = state.split('.').collect();
        let Some((head, commits)) = fields.get(9).zip(fields.get(8)) else {
            found.wrong("register", format!("{worktree}: {state}"));
            continue;
        };
        let (mut at, mut after, mut length) = (Some(*head), (u64::MAX, u64::MAX), 0);
        while let Some(id) = at.filter(|id| *id != "none") {
            let Some(one) = by_id.get(id) else {
                found.wrong("lineage", format!("{worktree}: {id} is missing"));
                break;
            };
            if !on_a_line.insert(id) && one.worktree == *worktree {
                found.wrong("lineage", format!("{worktree}: {id} is reached twice"));
                break;
            }
            if one.worktree == *worktree {
                length += 1;
                if (one.epoch, one.token) > after {
                    found.wrong("lineage", format!("{worktree}: the token falls after {id}"));
                }
                after = (one.epoch, one.token);
            }
            if !one.is_ready && !one.is_gone {
                found.wrong("lineage", format!("{worktree}: {id} is committed and not READY"));
            }
            at = one.parent.as_deref();
        }
        // A worktree that began with another's snapshot counts from there.
        if worktree == CALM && commits.parse() != Ok(length) {
            found.wrong("lineage", format!("{worktree}: {length} snapshots, {commits} commits"));
        }
    }
    for one in ending.snapshots.iter().filter(|one| one.is_ready) {
        let is_judged = ending.registers.contains_key(&one.worktree);
        if is_judged && !on_a_line.contains(one.id.as_str()) {
            found.wrong(
                "lineage",
                format!("{}: {} is visible and on no line", one.worktree, one.id),
            );
        }
    }
}

fn what_was_told_published_is_there(book: &Sorted<'_>, ending: &Ending, found: &mut Found) {
    let by_id: BTreeMap<&str, &Snapshot> =
        ending.snapshots.iter().map(|one| (one.id.as_str(), one)).collect();
    let mut wrote = BTreeMap::new();
    for entry in &book.did {
        let Some(id) = &entry.told.snapshot else { continue };
        let told = &entry.told;
        wrote.insert(id.as_str(), (told.mark.as_deref(), entry.session.as_str()));
        let Some(one) = by_id.get(id.as_str()) else {
            // What was in a worktree that is gone may be collected with all that is of it.
            if ending.registers.contains_key(&entry.worktree) {
                found.wrong("published", format!("{id} was told to {} and is gone", entry.session));
            }
            continue;
        };
        if !one.is_ready && !one.is_gone {
            found
                .wrong("published", format!("{id} was told to {} and is not READY", entry.session));
        }
        let is_noted = one.note.is_empty() || Some(&one.note) == told.note.as_ref();
        if !is_noted || told.under.is_some_and(|t| t != one.token) {
            found.wrong("published", format!("{id} is not what was told: {one:?}, {told:?}"));
        }
        if let Some(mark) = told.mark.as_ref().filter(|_| one.is_ready)
            && one.marks.get(&entry.session) != Some(mark)
        {
            let holds = one.marks.get(&entry.session);
            found.wrong("content", format!("{id} of {}: {holds:?}, not {mark:?}", entry.session));
        }
    }
    for entry in &book.did {
        let Some((id, text)) = &entry.told.read else { continue };
        let known = wrote.get(id.as_str()).and_then(|(mark, _)| *mark);
        if known.is_some_and(|mark| mark != text) {
            found.wrong(
                "content",
                format!("{id}, read on host {}: {text:?}, not {known:?}", entry.host),
            );
        }
    }
}

fn what_was_told_failed_is_nowhere(book: &Sorted<'_>, ending: &Ending, found: &mut Found) {
    let visible = ending.snapshots.iter().filter(|one| one.is_ready || one.is_gone);
    let notes: BTreeMap<&str, &str> =
        visible.map(|one| (one.note.as_str(), one.id.as_str())).collect();
    for entry in &book.did {
        let Some(note) = &entry.told.note else { continue };
        // A run whose command failed is done, and takes no snapshot.
        let told = match &entry.outcome {
            Outcome::Failed(code) => code.as_str(),
            Outcome::Ok if entry.told.snapshot.is_none() => "without a snapshot",
            _ => continue,
        };
        if let Some(id) = notes.get(note.as_str()) {
            found.wrong("failed", format!("{note:?} was told {told} and is there: {id}"));
        }
    }
}

fn newcomers_get_every_lock(ending: &Ending, found: &mut Found) {
    for one in &ending.newcomers {
        if one.outcome != Outcome::Ok || one.took_ms > NEWCOMER_MS {
            found.wrong("stuck", format!("{one:?}"));
        }
    }
}

fn nothing_is_wrong_or_left(ending: &Ending, found: &mut Found) {
    for (words, outcome, complaint) in &ending.examined {
        if *outcome != Outcome::Ok {
            found.wrong("examined", format!("`{words}`: {outcome:?}\n{complaint}"));
        }
    }
    for left in &ending.left {
        found.wrong("left behind", left);
    }
}
