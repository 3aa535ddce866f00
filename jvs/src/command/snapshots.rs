//! What the verbs of snapshots share: finding one, and telling about it.

use jvs_lock::register::{ReadError, Register};
use jvs_lock::{Lease, LockError, Locks, Shared, Want};
use jvs_repo::config::Config;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::TagName;
use jvs_repo::proc;
use jvs_repo::record::worktree::Isolation;
use jvs_snapshot::fidelity::Degraded;
use jvs_snapshot::renewed_every_ms;
use jvs_snapshot::select::select;
use jvs_snapshot::tags::{self, Tags};
use jvs_snapshot::take::Hold;
use jvs_snapshot::{Descriptor, Ready};
use serde_json::{Value, json};

use super::lock::{or_no_such_worktree, resume};
use super::worktree::existing;
use crate::context::{Context, Here};
use crate::fail::Failure;

/// What a command does its work under.
pub(super) enum Held<'r> {
    /// A lease taken for just this, given back afterwards.
    Own(Lease<'r>),
    /// The session's lease, which stays.
    Borrowed(Lease<'r>),
    /// Nobody's: the worktree is shared.
    Shared(Shared<'r>),
}

impl<'r> Held<'r> {
    pub(super) fn as_hold(&mut self) -> Hold<'_, 'r> {
        match self {
            Held::Own(lease) | Held::Borrowed(lease) => Hold::Lease(lease),
            Held::Shared(shared) => Hold::Shared(shared),
        }
    }

    /// Gives back what was taken for just this; what went wrong with that is
    /// told, and does not undo what was done.
    pub(super) fn give_back(self) -> Option<String> {
        let Held::Own(lease) = self else { return None };
        let error = lease.release().err()?.error;
        Some(format!("the lock could not be given back, and will expire: {error}"))
    }
}

/// This session's lease if it holds one, else the free lock for just this.
pub(super) fn hold<'r>(
    context: &Context<'_>,
    locks: &Locks<'r>,
    here: &Here,
    config: &Config,
) -> Result<Held<'r>, Failure> {
    let Here { repo, worktree } = here;
    if existing(repo, worktree)?.isolation == Isolation::Shared {
        return Ok(Held::Shared(locks.share(worktree)?));
    }
    let handed = context.handed_token(worktree)?.is_some();
    let me = Some(locks.session().nonce());
    let mine = || Ok::<_, LockError>(locks.inspect(worktree)?.state.holder() == me);
    if handed || mine().map_err(|error| or_no_such_worktree(repo, worktree, error))? {
        return Ok(Held::Borrowed(resume(context, locks, here)?));
    }
    // Not past those who wait in line for the lock.
    let lease_ms = config.lock.lease_duration_ms;
    let renewed_every_ms = Some(renewed_every_ms(lease_ms));
    let want = Want { renewed_every_ms, ..Want::lease(lease_ms) };
    Ok(Held::Own(locks.acquire_in_turn(worktree, want, &proc::process_stat)?))
}

/// What restored files have not, one sentence each.
pub(super) fn lost(degraded: &Degraded) -> Vec<String> {
    let told = degraded.counts.iter();
    told.map(|(kind, count)| format!("{kind} of {} was not kept", counted(*count, "path")))
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
            Err(LockError::from(error).into())
        }
        Err(error) => Err(LockError::from(error).into()),
    }
}

/// The visible snapshot that the user means.
pub(super) fn find(context: &Context<'_>, here: &Here, name: &str) -> Result<Ready, Failure> {
    // The head is asked for only by those who count from it.
    let head = if name.starts_with('@') { head(context, here)? } else { None };
    Ok(select(here.repo.store(), head, name)?)
}

/// The tags of a repository, for telling about snapshots.
pub(super) fn tags(here: &Here) -> Result<Tags, Failure> {
    Ok(tags::list(here.repo.store())?)
}

/// All that programs are told of a snapshot.
pub(super) fn data(descriptor: &Descriptor, tags: &[&TagName], ready: bool) -> Value {
    let mut data = json!(descriptor);
    data["tags"] = json!(tags);
    data["ready"] = json!(ready);
    data
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
    if let Some(risk) = &descriptor.risk {
        parts.push(format!("!{risk}"));
    }
    if !descriptor.degraded.is_empty() {
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
