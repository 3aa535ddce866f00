//! May a tool be used? What it writes must be held by the session that uses it.

use std::path::Path;

use jvs_lock::view::StatusWord;
use jvs_repo::code::Code;
use jvs_repo::discover::{DiscoverError, discover_here};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::record::worktree::Isolation;

use super::reach::{Extent, GuardedFiles, found};
use super::who::{Asker, harness_process};
use crate::args::{AcquireArgs, LockCommand};
use crate::command::lock::{self, report};
use crate::command::worktree::existing;
use crate::context::Context;
use crate::fail::{Failure, on_one_line};
use crate::harness::{Call, HookVerdict, ShellUse, ToolUse};
use crate::hint::{OwnNext, spell};
use crate::keeper;
use crate::trust;

/// Is the current directory in a repository?
pub(super) fn is_in_repository(context: &Context<'_>) -> Result<bool, Failure> {
    match discover_here() {
        Ok(found) => trust::check(&found, context.env()).map(|()| true),
        Err(DiscoverError::NotARepository { .. } | DiscoverError::Gone) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Is it a command that is known to write nothing?
pub(super) fn only_reads(command: &str, asker: &Asker) -> bool {
    ShellUse::of(command, asker.id.as_str()) == ShellUse::Reads
}

/// Decides about `tool`.
pub(super) fn judge(
    context: &Context<'_>,
    auto: bool,
    asker: &Asker,
    call: &Call,
    tool: &ToolUse,
) -> Result<HookVerdict, Failure> {
    let mut reach = GuardedFiles::of(context, asker);
    let mut unlocked = false;
    match tool {
        ToolUse::Reads => {}
        ToolUse::Files(paths) => {
            paths.iter().try_for_each(|path| reach.path(path, Extent::Below))?;
        }
        ToolUse::Unknown(paths) => {
            paths.iter().try_for_each(|path| reach.path(path, Extent::Worktrees))?;
        }
        ToolUse::Shell(command, dir) => unlocked = reach.shell(command, dir)?,
        ToolUse::UnknownShell(command, dir, paths) => {
            paths.iter().try_for_each(|path| reach.path(path, Extent::Worktrees))?;
            unlocked = reach.shell(command, dir)?;
        }
    }
    let GuardedFiles { wanted, own_files, .. } = reach;
    if own_files {
        let why = "these files are those of jvs itself, which nobody else may write";
        return Ok(HookVerdict::Deny(why.to_owned()));
    }
    if unlocked && !wanted.is_empty() {
        let why = "what comes after the release of a lock in the same command is not locked; \
                   release it with a command of its own, as the last";
        return Ok(HookVerdict::Deny(why.to_owned()));
    }
    // In the one order in which everybody takes several.
    for (root, worktree) in wanted {
        if let Some(why) = refused(context, auto, asker, call, &root, &worktree)? {
            return Ok(HookVerdict::Deny(why));
        }
    }
    Ok(HookVerdict::Pass)
}

/// Why the session may not write there; `None` if it may.
fn refused(
    context: &Context<'_>,
    auto: bool,
    asker: &Asker,
    call: &Call,
    root: &Path,
    worktree: &WorktreeName,
) -> Result<Option<String>, Failure> {
    let there = asker.at(context, root, Some(worktree));
    let here = there.here()?;
    let view = lock::look(&there, &here)?;
    if view.mine && view.word() == StatusWord::Held {
        return Ok(None);
    }
    if existing(&here.repo, worktree)?.isolation == Isolation::Shared {
        return Ok(None);
    }
    // What happened behind the session's back is told before anything is taken again.
    let note = keeper::take_note(&there);
    let failure = match auto && note.is_empty() {
        true => match lock::run(&there, &LockCommand::Acquire(first_write(asker))) {
            Ok(_) => return Ok(None),
            Err(failure) => Some(failure),
        },
        false => None,
    };
    let how = match (&failure, view.word()) {
        (Some(failure), _) => failure.message(),
        (None, StatusWord::Free) => "nobody has its lock".to_owned(),
        (None, _) => format!("it is {}", report::line(&view)),
    };
    let others = view.word() != StatusWord::Free;
    let first = || spell(&Next::from(OwnNext::HoldFirst(worktree.clone(), others)));
    let hint = match &failure {
        Some(failure) if failure.code() != Code::LockConflict => failure.hint(),
        _ => None,
    };
    // Typed where the agent is, a command finds the repository by itself.
    let is_there = found(context, &call.cwd)?.is_some_and(|located| located.root == *root);
    let options = asker.options((!is_there).then(|| root.to_owned()));
    let hint = options.complete(&hint.unwrap_or_else(first)).into_owned();
    let note: String = note.iter().map(|note| on_one_line(note.trim_end()) + "; ").collect();
    let id = &asker.id;
    Ok(Some(format!("{note}session {id} may not write to worktree '{worktree}': {how}; {hint}")))
}

/// As it is taken for a session that has just wanted to write: at once or not at all, and
/// until its harness ends.
fn first_write(asker: &Asker) -> AcquireArgs {
    // What was lost, the agent acknowledges itself, once it was told.
    let mut args = AcquireArgs { by_itself: true, ..AcquireArgs::default() };
    args.watch.no_watch = true;
    args.lease.note = Some(format!("{}, by its first write", asker.harness.title()));
    args.keep.while_ = harness_process();
    args
}
