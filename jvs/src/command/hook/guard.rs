//! May a tool be used? What it writes must be held by the session that uses it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jvs_lock::view::StatusWord;
use jvs_repo::code::Code;
use jvs_repo::discover::{DiscoverError, Located, discover, discover_here};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::record::worktree::Isolation;

use super::who::{Asker, harness_process};
use crate::args::{AcquireArgs, LockCommand};
use crate::command::lock::{self, report};
use crate::command::worktree::existing;
use crate::context::Context;
use crate::fail::{Failure, on_one_line};
use crate::harness::{Call, HookVerdict, ShellUse, ToolUse, at_home, words_of};
use crate::hint::{OwnNext, spell};
use crate::keeper;
use crate::trust;

/// Worktrees, by repository and name.
type Worktrees = BTreeMap<(PathBuf, WorktreeName), ()>;

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
    let mut wanted = Worktrees::new();
    let mut own_files = false;
    match tool {
        ToolUse::Reads => {}
        ToolUse::Files(paths) | ToolUse::Unknown(paths) => {
            for path in paths {
                own_files |= want(&mut wanted, context, path)?;
            }
        }
        ToolUse::Shell(command, dir) => {
            let uses = ShellUse::of(command, asker.id.as_str());
            if uses != ShellUse::Reads {
                shell(&mut wanted, context, command, dir, uses)?;
            }
        }
    }
    if own_files {
        let why = "these files are those of jvs itself, which nobody else may write";
        return Ok(HookVerdict::Deny(why.to_owned()));
    }
    // In the one order in which everybody takes several.
    for (root, worktree) in wanted.into_keys() {
        if let Some(why) = refused(context, auto, asker, call, &root, &worktree)? {
            return Ok(HookVerdict::Deny(why));
        }
    }
    Ok(HookVerdict::Pass)
}

/// What a command of a shell may write: where it runs, and where its words lead.
fn shell(
    wanted: &mut Worktrees,
    context: &Context<'_>,
    command: &str,
    dir: &Path,
    uses: ShellUse,
) -> Result<(), Failure> {
    let here = found(context, dir)?;
    let inside = here.as_ref().is_some_and(|here| here.worktree.is_some());
    if let Some((root, worktree)) = here.and_then(|here| Some((here.root, here.worktree?)))
        && uses != ShellUse::Acquires
    {
        wanted.insert((root, worktree), ());
    }
    let home = context.home().and_then(|home| home.into_os_string().into_string().ok());
    let command = home.map_or_else(|| command.to_owned(), |home| at_home(command, &home));
    for word in words_of(&command) {
        // In a worktree a plain name is a name in it.
        if !inside || word.starts_with('/') || word.split('/').any(|step| step == "..") {
            want(wanted, context, &dir.join(word))?;
        }
    }
    Ok(())
}

/// Notes the worktree that `path` is in; true if it is among the files of jvs itself.
fn want(wanted: &mut Worktrees, context: &Context<'_>, path: &Path) -> Result<bool, Failure> {
    let Some(located) = found(context, path)? else { return Ok(false) };
    let root = located.root;
    if let Some(worktree) = located.worktree {
        wanted.insert((root, worktree), ());
        return Ok(false);
    }
    Ok(is_in_control_dir(&root, path))
}

/// Does `path` lead to the files of jvs itself, by whatever way?
fn is_in_control_dir(root: &Path, path: &Path) -> bool {
    let real = path.ancestors().find_map(|place| place.canonicalize().ok());
    real.is_some_and(|real| real.starts_with(root.join(layout::CONTROL_DIR)))
}

/// The repository that `path` is in, or would be.
pub(super) fn found(context: &Context<'_>, path: &Path) -> Result<Option<Located>, Failure> {
    // Of a process whose directory nobody told, this one's.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for place in path.ancestors() {
        let located = match discover(place) {
            Ok(located) => located,
            Err(DiscoverError::NotARepository { .. }) => return Ok(None),
            Err(DiscoverError::Io { source, .. }) if is_nowhere(&source) => continue,
            Err(error) => return Err(error.into()),
        };
        trust::check(&located, context.env())?;
        return Ok(Some(located));
    }
    Ok(None)
}

/// Is nothing there, and perhaps something above it?
fn is_nowhere(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
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
