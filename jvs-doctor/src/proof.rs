//! Why something is dead. A proof is made here and nowhere else, from a register
//! that was READ or from what was seen on disk, and never from age.
//!
//! A proof is about one thing and carries it, together with what it rests on: a
//! remedy that removes something is given a proof and takes from it what to remove.
//!
//! A proof does not grow old: tokens and epochs only rise, an entry that was
//! overtaken stays so, a process that ended does not come back. So what was
//! proven when it was looked at may be acted on later.
//!
//! # What cannot be written
//! Code outside this crate can look at proofs and hand them on:
//!
//! ```
//! use jvs_doctor::Remedy;
//! use jvs_doctor::proof::{File, Proof};
//!
//! fn remedy(proof: Proof<File>) -> Remedy {
//!     println!("{}: {proof}", proof.thing().0);
//!     Remedy::Remove(proof)
//! }
//! ```
//!
//! It cannot make one,
//!
//! ```compile_fail,E0451
//! use jvs_doctor::proof::{File, Proof};
//!
//! fn proof(other: Proof<File>) -> Proof<File> {
//!     Proof { thing: File(jvs_repo::layout::config()), ..other }
//! }
//! ```
//!
//! use the proof of one thing to remove another,
//!
//! ```compile_fail,E0308
//! use jvs_doctor::Remedy;
//! use jvs_doctor::proof::{Birth, Proof};
//!
//! fn remedy(proof: Proof<Birth>) -> Remedy {
//!     Remedy::Remove(proof)
//! }
//! ```
//!
//! or have something removed without one:
//!
//! ```compile_fail,E0308
//! use jvs_doctor::Remedy;
//! use jvs_doctor::proof::File;
//!
//! let remedy = Remedy::Remove(File(jvs_repo::layout::config()));
//! ```

use std::fmt;

use jvs_lock::State;
use jvs_lock::liveness::Liveness;
use jvs_lock::queue::Waiter;
use jvs_lock::record::{Meaning, Record};
use jvs_repo::id::{FencingToken, OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;
use jvs_repo::store::{DirEntryKind, RepoPath};
use jvs_repo::term::Term;
use jvs_snapshot::garbage::{self, Candidate, Disposal, Uncommittable};
use jvs_snapshot::gc::Dead;
use jvs_snapshot::staging_name::{SnapshotBound, StagingName};

use crate::check::takeover::Leftover;
use crate::mutation::Rule;
use crate::read::Read;
use crate::survey::{Lineages, StagedEntry, Survey};

/// The proof that nobody can still need a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof<T> {
    thing: T,
    because: Because,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File(pub RepoPath);

/// The private directory in which a register was to be born.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth(pub RepoPath);

/// The lock record of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRecord(pub WorktreeName);

/// What an interrupted takeover by the letter of v6.3 left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takeover {
    /// Whose lock was to be taken over.
    pub worktree: WorktreeName,
    /// The content of the file.
    pub seen: Vec<u8>,
}

/// What a garbage collection began to remove and did not come to the end of. Whether
/// somebody needs it after all is the collection's own to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncollected(pub StagingName);

/// What a proof rests on: the state that was READ, or what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Because {
    /// It belongs to a token that the register has left behind.
    Fenced { term: Term, read: State },
    /// The head is no longer the parent that it can be committed on top of.
    HeadMoved { parent: Option<SnapshotId>, read: State },
    /// The hold that it is about has ended.
    HoldOver { token: FencingToken, read: State },
    /// There is a register already.
    Born { read: State },
    /// The operation that put it aside has removed its worktree.
    WorktreeRemoved { read: State },
    /// It can only ever be renamed to this name, which is taken.
    NameTaken(RepoPath),
    /// The process that made it has ended.
    ProcessEnded { pid: u32 },
    /// It is an empty file under a name that no reader counts.
    NotCounted,
    /// Only a garbage collection gives it such a name.
    CollectionBegan,
    /// Nothing at all: what the rules exist to prevent.
    #[cfg(feature = "mutations")]
    Nothing,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Fenced { term: Term { epoch, token }, read } => write!(
                f,
                "it was made under token {token} of epoch {epoch}, and the register is at token \
                 {} of epoch {}",
                read.token, read.epoch
            ),
            Because::HeadMoved { parent: Some(parent), read } => {
                write!(f, "it was taken on top of {parent}, and ")?;
                match read.head {
                    Some(head) => write!(f, "the head is {head} now"),
                    None => f.write_str("there is no head now"),
                }
            }
            Because::HeadMoved { parent: None, .. } => f.write_str("the head has moved on"),
            Because::HoldOver { token, .. } => write!(f, "the hold under token {token} is over"),
            Because::Born { read } => {
                write!(f, "the register was created by another operation ({})", read.op)
            }
            Because::WorktreeRemoved { .. } => f.write_str("its worktree was removed by force"),
            Because::NameTaken(name) => {
                write!(f, "it could only be renamed to {name}, which exists")
            }
            Because::ProcessEnded { pid } => {
                write!(f, "process {pid}, which made it, has ended on this host")
            }
            Because::NotCounted => f.write_str("it is an empty file that no reader counts"),
            Because::CollectionBegan => f.write_str("a garbage collection began to remove it"),
            #[cfg(feature = "mutations")]
            Because::Nothing => f.write_str("nobody looked"),
        }
    }
}

impl<T> fmt::Display for Proof<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.because.fmt(f)
    }
}

impl<T> Proof<T> {
    /// What nobody can still need.
    pub fn thing(&self) -> &T {
        &self.thing
    }
}

impl Proof<File> {
    /// A temporary file beside the locks, by the token in its name.
    pub(crate) fn of_lock_tmp(survey: &Survey<'_, '_>, name: &str) -> Option<Self> {
        let (worktree, term) = layout::lock_tmp_term(name)?;
        let because = fenced(survey.state(&worktree)?, term)?;
        Some(Proof { thing: File(layout::locks().child(name).ok()?), because })
    }

    /// A temporary file that can only ever be renamed to a name that is taken, which
    /// fails. A name that was not shown proves nothing.
    pub(crate) fn of_taken_name(survey: &Survey<'_, '_>, path: &RepoPath) -> Option<Self> {
        let (dir, name) = path.split();
        let becomes = if dir == layout::tags() {
            layout::tag(&layout::tag_of_tmp(name)?)
        } else if dir == layout::snapshots() {
            match layout::op_of_ledger_tmp(name) {
                Some(op) => layout::ledger(op),
                None => layout::tombstone(layout::id_of_tombstone_tmp(name)?),
            }
        } else if dir == layout::worktree_records() {
            layout::worktree_record(&layout::worktree_of_record_tmp(name)?)
        } else {
            return None;
        };
        survey.store().stat(&becomes).ok()?;
        Some(Proof { thing: File(path.clone()), because: Because::NameTaken(becomes) })
    }

    /// The note of an operation on a worktree, by the process that it names.
    pub(crate) fn of_note(
        survey: &Survey<'_, '_>,
        worktree: &WorktreeName,
        op: OpNonce,
    ) -> Option<Self> {
        let path = layout::worktree_record_tmp(worktree, op);
        if survey.is_only_record(worktree, op) {
            return None;
        }
        let maker = survey.note(worktree, op).and_then(|note| note.maker);
        match maker.as_ref().map(|maker| (survey.maker_liveness(maker), maker.pid)) {
            Some((Liveness::Alive, _)) => None,
            Some((Liveness::Dead, pid)) => {
                Some(Proof { thing: File(path), because: Because::ProcessEnded { pid } })
            }
            Some((Liveness::Unknown(_), _)) | None => Proof::of_taken_name(survey, &path),
        }
    }

    /// The ticket of a waiter, by the process that it names.
    pub(crate) fn of_ticket(
        survey: &Survey<'_, '_>,
        worktree: &WorktreeName,
        waiter: &Waiter,
    ) -> Option<Self> {
        let path = layout::queue(worktree).child(&waiter.to_string()).ok()?;
        let because = Because::ProcessEnded { pid: waiter.pid };
        survey.is_gone(waiter).then_some(Proof { thing: File(path), because })
    }

    /// A file in a register that was made to shake a cache awake.
    pub(crate) fn of_scratch(survey: &Survey<'_, '_>, path: &RepoPath) -> Option<Self> {
        let stat = survey.store().stat(path).ok()?;
        let empty = stat.kind == DirEntryKind::File && stat.size == 0;
        let uncounted = layout::is_probe_scratch(path.split().1) && empty;
        uncounted.then(|| Proof { thing: File(path.clone()), because: Because::NotCounted })
    }
}

impl Proof<Birth> {
    /// A register's private directory of birth, while there is a register.
    pub(crate) fn of_birth(survey: &Survey<'_, '_>, name: &str) -> Option<Self> {
        let (worktree, op) = layout::register_birth_of(name)?;
        let read = survey.state(&worktree).filter(|read| read.op != op)?;
        let thing = Birth(layout::register_birth(&worktree, op));
        Some(Proof { thing, because: Because::Born { read: **read } })
    }
}

impl Proof<LockRecord> {
    /// A lock record of a hold that is over. `read` was READ after the record.
    pub(crate) fn of_record(read: &Read, record: &Record) -> Option<Self> {
        if record.worktree_id != *read.worktree() || record.is_of(read) {
            return None;
        }
        let because =
            fenced(read, record.term()).or_else(|| hold_over(read, record.fencing_token))?;
        Some(Proof { thing: LockRecord(read.worktree().clone()), because })
    }
}

impl Proof<Takeover> {
    /// What a takeover left, by its token or by the process that wrote it.
    pub(crate) fn of_takeover(survey: &Survey<'_, '_>, leftover: &Leftover) -> Option<Self> {
        let moved_on = || {
            // READ after the file: what the register was before proves nothing.
            let read = survey.read_again(leftover.worktree()).ok()?;
            hold_over(&read, leftover.token()?)
        };
        let ended = || {
            let writer = leftover.writer()?;
            let dead = survey.keeper_liveness(&writer) == Liveness::Dead;
            dead.then_some(Because::ProcessEnded { pid: writer.pid })
        };
        let because = moved_on().or_else(ended)?;
        let worktree = leftover.worktree().clone();
        Some(Proof { thing: Takeover { worktree, seen: leftover.seen().to_vec() }, because })
    }
}

impl Proof<Dead> {
    /// A snapshot that is being built and can never be committed.
    pub(crate) fn of_draft(survey: &Survey<'_, '_>, staged: &StagedEntry) -> Option<Self> {
        let Some(name @ StagingName::Snapshot(bound)) = staged.parsed() else { return None };
        let because = uncommittable(survey, bound)?;
        Some(Proof { thing: Dead::Draft(name.clone()), because })
    }

    /// A complete snapshot that nobody sees and that can never be committed.
    ///
    /// Without READY.staged it was visible once, and somebody took READY away: not
    /// what the rules for work in progress are about. The same if it could be an
    /// ancestor that a broken lineage does not lead to.
    pub(crate) fn of_hidden(
        survey: &Survey<'_, '_>,
        lineages: &Lineages,
        id: SnapshotId,
    ) -> Option<Self> {
        let snap = survey.snapshots.get(&id).filter(|snap| snap.staged && !snap.ready)?;
        if !lineages.is_whole() || lineages.reaches(id) {
            return None;
        }
        let because = uncommittable(survey, &snap.described()?.bound())?;
        Some(Proof { thing: Dead::Hidden(id), because })
    }

    /// A restore whose hold is over.
    pub(crate) fn of_restore(survey: &Survey<'_, '_>, staged: &StagedEntry) -> Option<Self> {
        let name = staged.parsed()?;
        let (worktree, term, thing) = match name {
            StagingName::Restore { worktree, term, .. } => {
                (worktree, term, Dead::Restore(name.clone()))
            }
            StagingName::Swap { worktree, term, .. } => (worktree, term, Dead::Swap(name.clone())),
            _ => return None,
        };
        let because = fenced(survey.judging(worktree)?, *term)?;
        Some(Proof { thing, because })
    }

    /// Files that the operation which removed their worktree put aside.
    pub(crate) fn of_removed(survey: &Survey<'_, '_>, staged: &StagedEntry) -> Option<Self> {
        let name = staged.text()?;
        let (worktree, epoch, op) = layout::removed_of(name)?;
        let read = survey.judging(&worktree)?;
        let because = Because::WorktreeRemoved { read: **read };
        let thing = Dead::Removed(layout::staged(name).ok()?);
        garbage::is_removed(read, epoch, op).then_some(Proof { thing, because })
    }
}

impl Proof<Uncollected> {
    /// What a garbage collection set aside or began to delete.
    pub(crate) fn of_collection(staged: &StagedEntry) -> Option<Self> {
        let name = staged.parsed()?;
        let begun = matches!(name, StagingName::Condemned { .. } | StagingName::Doomed { .. });
        let because = Because::CollectionBegan;
        begun.then(|| Proof { thing: Uncollected(name.clone()), because })
    }
}

/// Made under a token that the register has left behind.
fn fenced(read: &Read, term: Term) -> Option<Because> {
    garbage::is_dead(read, term).then_some(Because::Fenced { term, read: **read })
}

/// About a hold that is over: tokens never go back, not even in another epoch.
fn hold_over(read: &Read, token: FencingToken) -> Option<Because> {
    let over = read.hold.claim().is_none() && read.token >= token || read.token > token;
    over.then_some(Because::HoldOver { token, read: **read })
}

/// A snapshot, bound as given, that can never be committed. Registers are READ
/// before anything is listed, so what was committed since the READ was listed as
/// visible.
fn uncommittable(survey: &Survey<'_, '_>, bound: &SnapshotBound) -> Option<Because> {
    let read = survey.judging(&bound.worktree)?;
    let parent_ready = bound.parent.is_some_and(|parent| survey.was_ready(parent));
    match garbage::removable(read, &Candidate::new(bound, false, parent_ready)) {
        Disposal::Garbage(Uncommittable::Fenced) => {
            Some(Because::Fenced { term: bound.term, read: **read })
        }
        Disposal::Garbage(Uncommittable::HeadMoved) => {
            Some(Because::HeadMoved { parent: bound.parent, read: **read })
        }
        Disposal::Work => of_work(),
        Disposal::Committed => None,
    }
}

/// Work in progress is removed only if it is proven dead.
fn of_work() -> Option<Because> {
    sabotage!(Rule::ProvenDead => Some(Because::Nothing));
    None
}
