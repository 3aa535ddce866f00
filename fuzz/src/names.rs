//! Names of files and directories that say something.

use std::ffi::OsStr;
use std::fmt::{Debug, Display};
use std::str::FromStr;

use jvs_lock::hold::{HoldName, HoldState, Stake};
use jvs_lock::queue::Waiter;
use jvs_lock::state::{LEASE_MAX_MS, NAME_MAX};
use jvs_lock::{SessionId, State};
use jvs_repo::audit::WriterId;
use jvs_repo::clock::WallMs;
use jvs_repo::digest::Digest;
use jvs_repo::id::{Chain, Epoch, HolderNonce, OpNonce, Seq, SnapshotId};
use jvs_repo::layout::{self, staging::StagingName};
use jvs_repo::name::{self, TagName, WorktreeName};
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

/// What is read from `text` prints as `text`, and so nothing else reads as the same.
fn one_spelling<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let read: T = text.parse().ok()?;
    assert_eq!(read.to_string(), text, "{read:?} has another spelling");
    Some(read)
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

fn is_name_of_path(path: &RepoPath, name: &str) {
    assert_eq!(path.as_str().rsplit("/").next(), Some(name), "{path}");
}

/// A state of a register: one spelling, of a bounded length, and whatever may follow it
/// does so and can be read again.
pub(crate) fn register_name(data: &[u8]) {
    let mut names = data.split(|byte| *byte == b'\n').filter_map(text);
    let Some(state) = names.next().and_then(one_spelling::<State>) else { return };
    assert!(state.to_string().len() <= NAME_MAX);
    let (op, holder, now) = (OpNonce([7; 8]), HolderNonce([9; 16]), WallMs(u64::MAX - 3));
    if !state.is_at_an_end() {
        for next in [
            state.granted(holder, LEASE_MAX_MS, now, op),
            state.released(op),
            state.released_untold(),
            state.frozen(holder, 1, now, op),
            state.with_head(SnapshotId { created_ms: u64::MAX, random: u32::MAX }, op),
            state.advanced(op),
            state.fenced(op),
            state.retired(op),
        ] {
            assert!(next.follows(&state) && !state.follows(&next) && !next.is_birth());
            assert_eq!(one_spelling(&next.to_string()), Some(next), "what follows can be read");
            assert!(next.term() >= state.term(), "a term never goes back");
        }
        if state.holder().is_some() {
            let longer = state.extended(LEASE_MAX_MS, now, op);
            assert_eq!(one_spelling(&longer.to_string()), Some(longer));
        }
    }
    if let Some(other) = names.next().and_then(one_spelling::<State>) {
        ordered(state.term(), other.term());
        assert!(!(state.follows(&other) && other.follows(&state)));
    }
}

/// Of two terms at most one came first, and equal ones are the same.
fn ordered(one: Term, other: Term) {
    assert!(!(one < other && other < one));
    assert_eq!(one <= other && other <= one, one == other, "{one} and {other}");
    let newest = Epoch::newest([one.epoch, other.epoch]);
    assert_eq!(newest, Epoch::newest([other.epoch, one.epoch]));
}

/// A ticket.
pub(crate) fn ticket(data: &[u8]) {
    let Some(waiter) = text(data).and_then(one_spelling::<Waiter>) else { return };
    assert!(waiter.since.is_none() || waiter.lease_ms.is_some(), "no such version");
    assert!(data.len() <= 255, "longer than any name of a file");
}

/// A stake.
pub(crate) fn stake(data: &[u8]) {
    let Some(stake) = text(data).and_then(one_spelling::<Stake>) else { return };
    assert!(!stake.answered && data.len() <= 255);
    assert!(stake.answered_name().parse::<Stake>().is_err(), "an answer is no stake");
}

/// The name of a hold: whatever follows it has a name that was never there.
pub(crate) fn hold_name(data: &[u8]) {
    let Some(name) = text(data).and_then(one_spelling::<HoldName>) else { return };
    if name.n == Seq::END.0 {
        // Nobody counts that far: it was made up, and what follows it is not believed.
        let next = name.then(HoldState::Open).to_string();
        assert!(next.parse::<HoldName>().is_err(), "beyond the end of every counter");
        return;
    }
    for state in [HoldState::Open, HoldState::Ending, HoldState::Released, HoldState::Lost] {
        let next = name.then(state);
        assert!(next.n > name.n, "a name comes back");
        assert_eq!(one_spelling(&next.to_string()), Some(next));
    }
    assert!(name.opened(name.term).is_open());
}

/// The name of a directory in staging.
pub(crate) fn staging_name(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Some(name) = one_spelling::<StagingName>(text) {
        is_name_of_path(&name.path(), text);
    }
}

/// Names that people choose, ids, and what the layout makes of a file's name.
pub(crate) fn file_name(data: &[u8]) {
    let name = OsStr::new(text(data).unwrap_or_default());
    layout::init_staging_named(name).inspect(|path| assert_eq!(path.as_str(), name));
    let Some(text) = text(data) else { return };
    for chosen in [
        one_spelling::<WorktreeName>(text).map(|name| name.as_str().to_owned()),
        one_spelling::<TagName>(text).map(|name| name.as_str().to_owned()),
    ] {
        let Some(chosen) = chosen else { continue };
        assert!(chosen.len() <= name::NAME_MAX && chosen.is_ascii());
        assert!(!chosen.contains('/') && chosen != "." && chosen != "..");
    }
    if let Some(id) = one_spelling::<SessionId>(text) {
        assert!(id.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
    }
    one_spelling::<OpNonce>(text).inspect(|op| assert_eq!(op.withdrawn().withdrawn(), *op));
    one_spelling::<HolderNonce>(text);
    one_spelling::<Chain>(text);
    one_spelling::<Digest>(text);
    one_spelling::<WriterId>(text);
    one_spelling::<Epoch>(text);
    one_spelling::<Term>(text);
    one_spelling::<SnapshotId>(text);
    of_layout(text);
}

/// What a name says is what the layout would call it.
fn of_layout(file: &str) {
    let is = |path: RepoPath| is_name_of_path(&path, file);
    layout::worktree_of_record(file).inspect(|name| is(layout::worktree_record(name)));
    layout::note_of(file).inspect(|(name, op)| is(layout::worktree_record_tmp(name, *op)));
    layout::worktree_of_lock(file).inspect(|name| is(layout::lock_record(name)));
    layout::worktree_of_takeover(file).inspect(|name| is(layout::takeover(name)));
    layout::worktree_of_queue(file).inspect(|name| is(layout::queue(name)));
    layout::worktree_of_register(file).inspect(|name| is(layout::register(name)));
    layout::worktree_of_buried(file).inspect(|(name, epoch)| {
        is(layout::buried_register(name, *epoch));
        assert_eq!(layout::buried_epoch(name, file), Some(*epoch));
    });
    layout::id_of_snapshot(file).inspect(|id| is(layout::snapshot(*id)));
    layout::id_of_tombstone(file).inspect(|id| is(layout::tombstone(*id)));
    layout::op_of_ledger(file).inspect(|op| is(layout::ledger(*op)));
    layout::op_of_ledger_tmp(file).inspect(|op| is(layout::ledger_tmp(*op)));
    layout::log_of(file).inspect(|log| is(layout::audit_log(log)));
    layout::lost_hold(file).inspect(|term| assert_eq!(layout::lost_hold_name(*term), file));
    layout::hold_parts(file).inspect(|(repo, worktree)| {
        assert_eq!(layout::worktree_of_hold(file, repo).as_ref(), Some(worktree));
    });
    layout::removed_of(file).inspect(|(name, epoch, op)| {
        let rest = format!("removed-{name}-{epoch}-");
        let token = file.strip_prefix(&rest).and_then(|rest| rest.strip_suffix(&format!("-{op}")));
        let term = token.and_then(|token| format!("{epoch}.{token}").parse::<Term>().ok());
        is(layout::removed_payload(name, term.expect("a term"), *op));
    });
}
