//! Worktrees for a harness that lets a hook make them: copies of the head that share its
//! blocks where the filesystem can do that.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use jvs_repo::code::Code;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use super::reach::found;
use super::who::Asker;
use super::{end, in_words};
use crate::args::{CreateArgs, RemoveArgs, WorktreeCommand};
use crate::command::{lock, session, worktree};
use crate::context::Context;
use crate::fail::Failure;
use crate::harness::{Call, HookVerdict};

/// Makes the worktree `name` from the head of the one that the agent is in, and says where
/// it is. One that is there already is that one.
pub(super) fn create(
    context: &Context<'_>,
    checkpoint: bool,
    asker: &Asker,
    call: &Call,
    name: &str,
) -> Result<HookVerdict, Failure> {
    let Some(located) = found(context, &call.cwd)? else {
        return Ok(HookVerdict::Failed(format!(
            "{} is in no JVS repository, so jvs makes no worktree of it",
            call.cwd.display()
        )));
    };
    let wanted: WorktreeName = name.parse()?;
    let from = located.worktree.unwrap_or_else(WorktreeName::main);
    let there = asker.at(context, &located.root, Some(&from));
    let here = there.here()?;
    let place = |repo: &jvs_repo::repo::Repo| repo.store().absolute(&layout::payload(&wanted));
    if here.repo.worktree(&wanted)?.is_some() {
        return Ok(made(&place(&here.repo)));
    }
    let mine = |held: &(PathBuf, WorktreeName)| *held == (located.root.clone(), from.clone());
    if checkpoint && session::locks_of(context, &asker.id)?.held.iter().any(mine) {
        end::keep(context, asker, &located.root, &from)?;
    }
    let head = lock::look(&there, &here)?.state.head;
    let from = head.map(|_| "@".to_owned());
    let args = CreateArgs { name: name.to_owned(), from, shared: false };
    match worktree::run(&there, &WorktreeCommand::Create(args)) {
        Ok(_) => Ok(made(&place(&here.repo))),
        // Somebody else made it meanwhile.
        Err(failure) if failure.code() == Code::Exists => Ok(made(&place(&here.repo))),
        Err(failure) => Ok(HookVerdict::Failed(in_words(&failure))),
    }
}

fn made(path: &Path) -> HookVerdict {
    HookVerdict::Made(path.as_os_str().as_bytes().to_vec())
}

/// Removes the worktree at `path`, if its files are those of a snapshot.
pub(super) fn remove(
    context: &Context<'_>,
    asker: &Asker,
    path: &Path,
) -> Result<HookVerdict, Failure> {
    let located = found(context, path)?;
    let Some((root, name)) = located.and_then(|it| Some((it.root, it.worktree?))) else {
        return Ok(HookVerdict::Pass);
    };
    let there = asker.at(context, &root, Some(&name));
    if there.here()?.repo.payload(&name)? != path {
        return Ok(HookVerdict::Pass);
    }
    if end::has_changed(&there)? {
        return Ok(HookVerdict::Tell(format!(
            "jvs: worktree '{name}' has files that no snapshot has, and was not removed"
        )));
    }
    let args = RemoveArgs { name: name.to_string(), force: true };
    worktree::run(&there, &WorktreeCommand::Remove(args)).map(|_| HookVerdict::Pass)
}
