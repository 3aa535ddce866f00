//! What the verbs of snapshots share: finding one, and telling about it.

use jvs_lock::hold::{Ask, Holds, Stake, StakeKind};
use jvs_lock::kept::Kept;
use jvs_lock::register::{ReadError, Register};
use jvs_lock::{Lease, Locks, RegisterError, Shared, Want};
use jvs_repo::clock::WallMs;
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::Config;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::TagName;
use jvs_repo::next::Next;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, Store};
use jvs_snapshot::descriptor::Loss;
use jvs_snapshot::gc::{Measured, measure};
use jvs_snapshot::renewed_every_ms;
use jvs_snapshot::select::select;
use jvs_snapshot::short::ShortIds;
use jvs_snapshot::tags::{self, Tags};
use jvs_snapshot::take::SnapshotHold;
use jvs_snapshot::{Catalog, Descriptor, Ready, SnapshotError};
use serde_json::Value;

use super::audit::story::ago;
use super::lock::turn::LockTurn;
use super::worktree::existing;
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::hint::{OwnNext, foreign};
use crate::session::Acting;
use crate::{keeper, near};

/// How many characters of a note are shown where several are told apart.
const NOTE_SHOWN: usize = 32;

/// What a command does its work under.
pub(super) enum WorkHold<'r> {
    /// A stake in the session's hold, taken for just this if there was none.
    Entered(Box<StakedWork<'r>>),
    /// Nobody's: the worktree is shared.
    Shared(Box<Shared<'r>>),
}

/// A stake, and what is needed to take it back.
pub(super) struct StakedWork<'r> {
    pub(super) lease: Lease<'r>,
    stake: Stake,
    locks: Locks<'r>,
    holds: Holds<'r>,
}

impl<'r> WorkHold<'r> {
    pub(super) fn as_hold(&mut self) -> SnapshotHold<'_, 'r> {
        match self {
            WorkHold::Entered(work) => SnapshotHold::Lease(&mut work.lease),
            WorkHold::Shared(shared) => SnapshotHold::Shared(shared),
        }
    }

    /// Takes the stake back, and releases the lock if nobody else needs it; what
    /// went wrong with that is told, and does not undo what was done.
    pub(super) fn give_back(self) -> Option<String> {
        let WorkHold::Entered(work) = self else { return None };
        let error = work.locks.leave(&work.holds, &work.stake).err()?;
        Some(format!("the lock could not be released, and will expire: {error}"))
    }
}

/// A stake in this session's hold if it has one, else the free lock for just this.
pub(super) fn hold<'r>(
    context: &'r Context<'_>,
    locks: &Locks<'r>,
    here: &Here,
    config: &Config,
    acting: &'r Acting,
) -> Result<WorkHold<'r>, Failure> {
    let Here { repo, worktree } = here;
    if existing(repo, worktree)?.isolation == Isolation::Shared {
        return Ok(WorkHold::Shared(Box::new(locks.share(worktree)?)));
    }
    let holds = context.holds(repo, worktree, acting)?;
    let turn = LockTurn { context, here, locks, holds: &holds };
    let handed = context.handed_token(worktree)?;
    let ask = Ask { handed, ..Ask::plain(StakeKind::Work) };
    // Not past those who wait in line for the lock.
    let lease_ms = config.lock.lease_duration_ms;
    let renewed_every_ms = Some(renewed_every_ms(lease_ms));
    let want = Want { renewed_every_ms, kept: Some(&Kept::by_command()), ..Want::lease(lease_ms) };
    let entered = turn.at_once(&ask, want)?;
    if entered.joined {
        keeper::ensure(context, here, &acting.session, &holds, &entered.lease);
    }
    let (lease, stake) = (entered.lease, entered.stake);
    Ok(WorkHold::Entered(Box::new(StakedWork { lease, stake, locks: locks.clone(), holds })))
}

/// What restored files have not, one sentence each.
pub(super) fn lost(degraded: &[Loss]) -> Vec<String> {
    let told = degraded.iter();
    told.map(|loss| format!("{} of {} was not kept", loss.what, counted(loss.count, "path")))
        .collect()
}

/// The head of the worktree that is meant.
pub(super) fn head(context: &Context<'_>, here: &Here) -> Result<Option<SnapshotId>, Failure> {
    let Here { repo, worktree } = here;
    let register = Register::new(repo.store(), context.clock(), worktree.clone());
    match register.read() {
        Ok(state) => Ok(state.head),
        Err(error @ ReadError::Missing { .. }) => {
            existing(repo, worktree)?;
            Err(RegisterError::from(error).into())
        }
        Err(error) => Err(RegisterError::from(error).into()),
    }
}

/// The visible snapshot that the user means.
pub(super) fn find(context: &Context<'_>, here: &Here, name: &str) -> Result<Ready, Failure> {
    // The head is asked for only by those who count from it.
    let head = if name.starts_with('@') { head(context, here)? } else { None };
    let store = here.repo.store();
    select(store, head, name).map_err(|error| match error {
        SnapshotError::NotFound { .. } if let Some(back) = foreign::generations(name) => {
            NoSuchSnapshot { error, next: OwnNext::Generations(back).into() }.into()
        }
        SnapshotError::NotFound { .. } => {
            let near = near_tags(store, name).into_iter().chain(near_ids(store, name));
            Failure::from(error).suggesting(near.collect())
        }
        SnapshotError::Ambiguous { ref candidates, .. } => {
            let next = OwnNext::OneOf(which(context, store, candidates)).into();
            NoSuchSnapshot { error, next }.into()
        }
        error => error.into(),
    })
}

/// The snapshots whose ids are spelled much like this.
pub(super) fn near_ids(store: &dyn Store, name: &str) -> Vec<String> {
    let is_id = name.len() >= 6 && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let Some(all) = is_id.then(|| Catalog::new(store).list().ok()).flatten() else {
        return Vec::new();
    };
    // As much of each as was typed.
    let begin = |text: &str| text.get(..name.len()).unwrap_or(text).to_owned();
    let names = all.snapshots.iter().flat_map(|id| {
        let whole = id.to_string();
        let random = whole.split_once('-').map_or("", |(_, random)| random);
        [begin(random), begin(&whole)]
    });
    let names: Vec<String> = names.collect();
    near::nearest(name, names.iter().map(String::as_str)).into_iter().map(str::to_owned).collect()
}

/// Each of them by a name that means it alone, with when it was taken and its note.
fn which(context: &Context<'_>, store: &dyn Store, candidates: &[SnapshotId]) -> Vec<String> {
    let shorts = ShortIds::read(store).unwrap_or_default();
    let now = context.clock().now().wall;
    let each = candidates.iter().map(|id| {
        let note = Catalog::new(store).open(*id).ok().and_then(|it| it.descriptor().note.clone());
        let note = note.and_then(|note| Some(format!(" \"{}\"", cut(note.lines().next()?))));
        let when = ago(WallMs(id.created_ms), now);
        format!("{} ({when}{})", shorts.of(*id), note.unwrap_or_default())
    });
    each.collect()
}

/// As much of a note as tells it from others.
fn cut(note: &str) -> String {
    let begin: String = note.chars().take(NOTE_SHOWN).collect();
    if begin.len() < note.len() { begin + "…" } else { begin }
}

/// What is called so is not one snapshot; what it is called is known.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
struct NoSuchSnapshot {
    error: SnapshotError,
    next: Next,
}

impl Coded for NoSuchSnapshot {
    fn code(&self) -> Code {
        self.error.code()
    }

    fn next(&self) -> Option<Next> {
        Some(self.next.clone())
    }

    fn details(&self) -> Option<Value> {
        self.error.details()
    }
}

/// The tags that are spelled much like this.
pub(super) fn near_tags(store: &dyn Store, name: &str) -> Vec<String> {
    let Ok(there) = tags::list(store) else { return Vec::new() };
    let names = there.tags.keys().map(TagName::as_str);
    near::nearest(name, names).into_iter().map(str::to_owned).collect()
}

/// The tags of a repository, for telling about snapshots.
pub(super) fn tags(here: &Here) -> Result<Tags, Failure> {
    Ok(tags::list(here.repo.store())?)
}

/// How much room removing these snapshots makes, each with the bytes of its files.
pub(super) fn room(
    store: &PosixStore,
    snapshots: impl IntoIterator<Item = (SnapshotId, u64)>,
    bar: &Bar<'_>,
) -> Result<Measured, Failure> {
    Ok(measure(store, snapshots, bar)
        .map_err(|error| Stuck::new("measure the snapshots", error))?)
}

/// The same for people.
pub(super) fn room_text(measured: Measured) -> String {
    let at_most = if measured.exact { "" } else { "at most " };
    format!("{at_most}{}", size(measured.bytes))
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number and its noun.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The first line of a note, what the snapshot is called, and what to beware of.
pub(super) fn remark(descriptor: &Descriptor, tags: &[&TagName], heads: &[String]) -> String {
    let mut parts = Vec::new();
    for head in heads {
        parts.push(format!("({head})"));
    }
    for tag in tags {
        parts.push(format!("[{tag}]"));
    }
    if let Some(risk) = &descriptor.content.risk {
        parts.push(format!("!{risk}"));
    }
    if !descriptor.content.degraded.is_empty() {
        parts.push("!degraded".to_owned());
    }
    if let Some(line) = descriptor.note.as_ref().and_then(|note| note.lines().next()) {
        parts.push(line.to_owned());
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_572_864, "1.5 MiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!((counted(1, "file"), counted(2, "file")), ("1 file".into(), "2 files".into()));
    }
}
