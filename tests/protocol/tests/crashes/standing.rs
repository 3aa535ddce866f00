//! What was promised before a command began, and whether it is kept.

use std::io;

use jvs_kit::sim::Image;
use jvs_lock::register::Register;
use jvs_lock::{Hold, State};
use jvs_repo::config::Config;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::tags;
use jvs_world::repository::{main, names};
use jvs_world::sim::ward::Ward;

pub(crate) fn name(text: &str) -> WorktreeName {
    text.parse().expect("valid")
}

/// The file that nobody may lose, in the worktree `of`.
pub(crate) fn kept(of: &str) -> RepoPath {
    layout::payload(&name(of)).child("kept").expect("plain")
}

pub(crate) fn exists(ward: &Ward<'_>, path: &RepoPath) -> bool {
    ward.store().stat(path).is_ok()
}

/// The state of a worktree's register: exactly one.
pub(crate) fn state_of(ward: &Ward<'_>, of: &WorktreeName) -> Result<State, String> {
    let register = Register::new(ward.store(), ward.solo.clock(), of.clone());
    register.read().map_err(|error| format!("the register of {of}: {error}"))
}

/// The worktrees on the list.
pub(crate) fn worktrees(ward: &Ward<'_>) -> Vec<WorktreeName> {
    let records = names(ward.store(), &layout::worktree_records());
    records.iter().filter_map(|record| layout::worktree_of_record(record)).collect()
}

/// Files and a live register.
pub(crate) fn whole(ward: &Ward<'_>, of: &WorktreeName) -> Result<(), String> {
    if !exists(ward, &layout::worktree_record(of)) {
        return Err(format!("worktree {of} has no record"));
    }
    if !exists(ward, &layout::payload(of)) {
        return Err(format!("worktree {of} has no files"));
    }
    match state_of(ward, of)?.hold {
        Hold::Retired => Err(format!("worktree {of} has a register that is retired")),
        _ => Ok(()),
    }
}

/// What is there once a row is prepared, and must be there ever after.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// Published, and not to be removed by the command.
    pub(crate) published: Vec<SnapshotId>,
    /// The register of `main`.
    pub(crate) state: State,
    has_old: bool,
}

impl Standing {
    pub(crate) fn of(ward: &Ward<'_>) -> Self {
        let state = ward.state();
        let mut published = ward.ids.clone();
        published.extend(state.head.filter(|head| !ward.ids.contains(head)));
        Standing { published, state, has_old: exists(ward, &kept("old")) }
    }

    /// Nothing that was told before is lost. `removes` says that the worktree `old` may go.
    pub(crate) fn is_kept(&self, ward: &Ward<'_>, removes: bool) -> Result<(), String> {
        ward.check(&self.published)?;
        let state = state_of(ward, &main())?;
        let went_on = match state.epoch == self.state.epoch {
            true => state.token >= self.state.token && state.seq >= self.state.seq,
            // Doctor begins another epoch where a record is ahead of the register.
            false => state.token > self.state.token,
        };
        if !went_on {
            return Err(format!("{} went back to {state}", self.state));
        }
        Config::read(ward.store()).map_err(|error| format!("the configuration: {error}"))?;
        for (tag, read) in tags::list(ward.store()).map_err(|error| error.to_string())?.tags {
            read.map_err(|error| format!("tag {tag}: {error}"))?;
        }
        let homes = ["old", "new"].into_iter().filter(|of| exists(ward, &kept(of))).count();
        if homes > 1 || self.has_old && homes == 0 && !removes {
            return Err(format!("the file of old is in {homes} worktrees"));
        }
        Ok(())
    }

    /// As [`Self::is_kept`], once somebody has repaired: no worktree is half there.
    pub(crate) fn is_whole(&self, ward: &Ward<'_>, removes: bool) -> Result<(), String> {
        self.is_kept(ward, removes)?;
        worktrees(ward).iter().try_for_each(|of| whole(ward, of))
    }
}

/// Once every lock has gone on to another token, nothing that was begun is left.
pub(crate) fn nothing_is_left(ward: &Ward<'_>) -> Result<(), String> {
    let left = names(ward.store(), &layout::staging());
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("staging has {left:?}")),
    }
}

/// Writes a file durably, for whoever prepares.
pub(crate) fn write(store: &dyn Store, path: &RepoPath, text: &str) -> io::Result<()> {
    let file = store.create_new(path)?;
    file.write_at(0, text.as_bytes())?;
    file.sync()?;
    store.sync_dir(&path.parent())
}

/// The same disk after a reboot.
pub(crate) fn rebooted(ward: &Ward<'_>, image: Image) -> Ward<'static> {
    let ward = ward.on(image);
    ward.solo.power_cut(0);
    ward
}
