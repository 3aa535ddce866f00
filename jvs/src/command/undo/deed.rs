//! What takes an operation back: decided from what the log says of it and what is there,
//! told without being done, and done.

use jvs_lock::RegisterError;
use jvs_lock::register::Register;
use jvs_lock::worktrees::{self, WorktreeError};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::Restored;
use jvs_repo::record::tag::LoggedTag;
use jvs_repo::record::worktree::{self as record, Isolation};
use jvs_repo::store::RepoPath;
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::{Catalog, Ready, line, tags};

use super::operations::{PastOperation, WhatWasDone, at_the_root, of, stacks};
use super::{Past, UndoRefused};
use crate::answer::snapshot::TagDeleted;
use crate::answer::undo::TagAgain;
use crate::answer::worktree::RemovedWorktree;
use crate::args::RenameArgs;
use crate::command::{restore, snapshot, worktree};
use crate::context::{Context, Here};
use crate::fail::{Failure, on_one_line};
use crate::given::quoted;
use crate::hint::OwnNext;
use crate::render::{Done, shown};

/// More paths than this are not all in the log.
const PATHS_LOGGED: usize = 50;

/// One thing that is done.
pub(super) enum UndoDeed {
    /// The line of a worktree ends with another snapshot.
    MoveLine {
        worktree: WorktreeName,
        from: Option<SnapshotId>,
        to: Option<SnapshotId>,
    },
    /// All files are those of a snapshot.
    RestoreAll {
        worktree: WorktreeName,
        kept: SnapshotId,
    },
    /// Some are, and those that it has not go; all of them if there was none.
    RestorePaths {
        worktree: WorktreeName,
        kept: Option<SnapshotId>,
        restored: SnapshotId,
        paths: ChosenPaths,
    },
    DeleteTag(LoggedTag),
    MakeTag(LoggedTag),
    RemoveWorktree {
        name: WorktreeName,
        base: Option<SnapshotId>,
        isolation: Isolation,
    },
    CreateWorktree {
        name: WorktreeName,
        base: Option<SnapshotId>,
        isolation: Isolation,
    },
    Rename {
        old: WorktreeName,
        new: WorktreeName,
    },
}

impl UndoDeed {
    /// What takes `target` back, if that can be.
    pub(super) fn that_takes_back(
        context: &Context<'_>,
        here: &Here,
        past: &Past,
        target: &PastOperation,
    ) -> Result<Self, Failure> {
        let deed = UndoDeed::found(context, here, past, target)?;
        deed.check(context, here)?;
        Ok(deed)
    }

    fn found(
        context: &Context<'_>,
        here: &Here,
        past: &Past,
        target: &PastOperation,
    ) -> Result<Self, Failure> {
        let refused = |why: String| UndoRefused::new(why, OwnNext::ListOperations);
        let WhatWasDone::Undo(undo) = &target.what else {
            if !target.done {
                let why = format!("it is not known whether it was done: {}", past.told(target));
                return Err(refused(why).into());
            }
            if !stacks(&past.all, |_| true).done.contains(&target.op) {
                let why = format!("it is taken back already: {}", past.told(target));
                return Err(refused(why).into());
            }
            return UndoDeed::against(context, here, target, None, None);
        };
        let undone = of(&past.all, undo.undoes);
        let Some(deed) = undone.and_then(|undone| target.deed(undone)) else {
            return Err(refused(format!("it changed nothing: {}", past.told(target))).into());
        };
        // What it restored were the paths that had been restored before.
        let paths = match at_the_root(&past.all, undo).map(|root| &root.what) {
            Some(WhatWasDone::Restore(first)) if !first.paths.is_empty() => {
                Some(first.paths.as_slice())
            }
            _ => None,
        };
        UndoDeed::against(context, here, deed, paths, undo.isolation)
    }

    /// What takes back what one operation, or one deed, did; of a restore only `paths`, if
    /// they are given.
    fn against(
        context: &Context<'_>,
        here: &Here,
        one: &PastOperation,
        paths: Option<&[String]>,
        isolation: Option<Isolation>,
    ) -> Result<Self, Failure> {
        let store = here.repo.store();
        let name = || one.event.worktree.clone().unwrap_or_else(|| here.worktree.clone());
        Ok(match &one.what {
            WhatWasDone::Snapshot(id) => UndoDeed::of_snapshot(context, here, name(), *id)?,
            WhatWasDone::Restore(it) => {
                UndoDeed::of_restore(here, name(), it, paths.unwrap_or(&it.paths))?
            }
            WhatWasDone::Tag(tag) => UndoDeed::DeleteTag(tag.clone()),
            WhatWasDone::Untag(tag) => UndoDeed::MakeTag(tag.clone()),
            WhatWasDone::Create { base } => {
                let gone = || UndoRefused::new(gone(&name()), OwnNext::ListOperations);
                let isolation = record::read(store, &name())?.ok_or_else(gone)?.isolation;
                UndoDeed::RemoveWorktree { name: name(), base: *base, isolation }
            }
            WhatWasDone::Remove { head } => match isolation {
                Some(isolation) => {
                    UndoDeed::CreateWorktree { name: name(), base: *head, isolation }
                }
                None => {
                    let why = format!("the files of worktree {} are gone", name());
                    return Err(UndoRefused::new(why, OwnNext::MakeAgain(name(), *head)).into());
                }
            },
            WhatWasDone::Rename { to } => UndoDeed::Rename { old: to.clone(), new: name() },
            WhatWasDone::Collect(_) => {
                let why = "the bytes of collected snapshots are gone";
                return Err(UndoRefused::new(why, OwnNext::ListOperations).into());
            }
            WhatWasDone::Undo(_) => {
                let why = "what takes an operation back is no deed by itself";
                return Err(UndoRefused::new(why, OwnNext::ListOperations).into());
            }
        })
    }

    /// `@` is what it was before.
    fn of_snapshot(
        context: &Context<'_>,
        here: &Here,
        worktree: WorktreeName,
        id: SnapshotId,
    ) -> Result<Self, Failure> {
        let catalog = Catalog::new(here.repo.store());
        let Some((descriptor, _)) = catalog.describe(id)? else {
            let why = format!("snapshot {id} was collected");
            return Err(UndoRefused::new(why, OwnNext::ListOperations).into());
        };
        let from = descriptor.line_head();
        let to = match descriptor.is_aside() {
            true => line::end(catalog, descriptor.parent)?,
            false => descriptor.before(),
        };
        let register = Register::new(here.repo.store(), context.clock(), worktree.clone());
        let head = register.read().map_err(RegisterError::from)?.head;
        ends_with(&worktree, line::end(catalog, head)?, from)?;
        Ok(UndoDeed::MoveLine { worktree, from, to })
    }

    fn of_restore(
        here: &Here,
        worktree: WorktreeName,
        restored: &Restored,
        paths: &[String],
    ) -> Result<Self, Failure> {
        // What is ignored is in no snapshot that was kept: going back to that would take it away.
        if let Some(left) = &restored.left {
            let root = here.repo.store().absolute(&RepoPath::root());
            let left = shown(&root.join(left));
            let why =
                format!("no snapshot has some of the files that it replaced: they are in {left}");
            return Err(UndoRefused::new(why, OwnNext::BringBackByHand(quoted(&left))).into());
        }
        let by_hand = || OwnNext::RestoreByHand(restored.kept.unwrap_or(restored.snapshot_id));
        let refused = |why: &str| Failure::from(UndoRefused::new(why, by_hand()));
        if paths.is_empty() {
            let none = "there were no files before it, and nothing that could be brought back";
            let kept = restored.kept.ok_or_else(|| refused(none))?;
            return Ok(UndoDeed::RestoreAll { worktree, kept });
        }
        if paths.len() >= PATHS_LOGGED {
            return Err(refused("it was of more paths than the log names"));
        }
        let spelled = paths.iter().map(|path| {
            // Shown as a text, in which only odd names have backslashes.
            let plain = (!path.contains('\\')).then(|| path.clone().into_bytes());
            plain.and_then(|bytes| TreePath::new(bytes).ok())
        });
        let spelled: Option<Vec<TreePath>> = spelled.collect();
        let chosen = spelled.and_then(ChosenPaths::new);
        let paths =
            chosen.ok_or_else(|| refused("the log cannot spell the names of its paths exactly"))?;
        let (kept, restored) = (restored.kept, restored.snapshot_id);
        Ok(UndoDeed::RestorePaths { worktree, kept, restored, paths })
    }

    /// Refuses what cannot be done, before anybody says that it is.
    fn check(&self, context: &Context<'_>, here: &Here) -> Result<(), Failure> {
        let catalog = Catalog::new(here.repo.store());
        match self {
            UndoDeed::RestoreAll { kept, .. } => drop(catalog.open(*kept)?),
            UndoDeed::RestorePaths { kept, restored, .. } => {
                drop(catalog.open(kept.unwrap_or(*restored))?);
            }
            UndoDeed::RemoveWorktree { name, base, .. } => {
                if name.is_main() {
                    return Err(WorktreeError::IsMain.into());
                }
                let base = base.map(|id| catalog.open(id)).transpose()?;
                let here = Here { repo: context.repo()?, worktree: name.clone() };
                worktree::check_unchanged(context, &here, base.as_ref())?;
            }
            UndoDeed::CreateWorktree { base: Some(base), .. } => drop(catalog.open(*base)?),
            _ => {}
        }
        Ok(())
    }

    /// What has to be known to do it again.
    pub(super) fn isolation(&self) -> Option<Isolation> {
        match self {
            UndoDeed::RemoveWorktree { isolation, .. } => Some(*isolation),
            _ => None,
        }
    }

    /// What it would do, as a sentence without its subject.
    pub(super) fn told(&self) -> String {
        let kept = |what: String| format!("{what}; what is there is kept first");
        match self {
            UndoDeed::MoveLine { worktree, to: Some(to), .. } => {
                format!("make {to} the head of {worktree} again; no file is touched")
            }
            UndoDeed::MoveLine { worktree, to: None, .. } => {
                format!("leave {worktree} without a snapshot again; no file is touched")
            }
            UndoDeed::RestoreAll { worktree, kept: from } => {
                kept(format!("restore all files of {worktree} from {from}"))
            }
            UndoDeed::RestorePaths { worktree, kept: Some(from), paths, .. } => {
                kept(format!("bring back {} of {worktree} from {from}", spelled(paths)))
            }
            UndoDeed::RestorePaths { worktree, kept: None, paths, .. } => {
                kept(format!("remove {} of {worktree}, not there before", spelled(paths)))
            }
            UndoDeed::DeleteTag(tag) => format!("delete the tag {}", tag.tag),
            UndoDeed::MakeTag(tag) => format!("tag {} as {} again", tag.snapshot_id, tag.tag),
            UndoDeed::RemoveWorktree { name, .. } => {
                format!("remove worktree {name}, if it is as it was made")
            }
            UndoDeed::CreateWorktree { name, .. } => format!("create worktree {name} again"),
            UndoDeed::Rename { old, new } => format!("rename worktree {old} to {new}"),
        }
    }

    pub(super) fn run(
        self,
        context: &Context<'_>,
        here: &Here,
        reason: &str,
    ) -> Result<Done, Failure> {
        let of = |worktree| Ok::<Here, Failure>(Here { repo: context.repo()?, worktree });
        let catalog = Catalog::new(here.repo.store());
        let open = |id: Option<SnapshotId>| -> Result<Option<Ready>, Failure> {
            Ok(id.map(|id| catalog.open(id)).transpose()?)
        };
        match self {
            UndoDeed::MoveLine { worktree, from, to } => {
                snapshot::move_line(context, &of(worktree)?, from, to, reason)
            }
            UndoDeed::RestoreAll { worktree, kept } => {
                let kept = catalog.open(kept)?;
                restore::in_place(context, &of(worktree)?, &kept, Some(reason), &[], false)
            }
            UndoDeed::RestorePaths { worktree, kept, restored, paths } => {
                let (kept, restored) = (open(kept)?, catalog.open(restored)?);
                let here = of(worktree)?;
                restore::bring_back(context, &here, kept.as_ref(), &restored, reason, &paths)
            }
            UndoDeed::DeleteTag(_) | UndoDeed::MakeTag(_) => self.tag(context, here),
            UndoDeed::RemoveWorktree { name, base, .. } => {
                worktree::remove_unchanged(context, &of(name)?, open(base)?.as_ref())
            }
            UndoDeed::CreateWorktree { name, base, isolation } => match open(base)? {
                Some(base) => restore::new_worktree(context, here, &base, &name, isolation),
                None => {
                    let acting = context.session(None)?;
                    let store = here.repo.store();
                    let locks = context.locks(store, here.repo.config()?.lock, &acting)?;
                    worktrees::create(&locks, &name, isolation)?;
                    Ok(Done::new(&RemovedWorktree { name }))
                }
            },
            UndoDeed::Rename { old, new } => {
                let (old, new) = (old.to_string(), new.to_string());
                worktree::rename(context, &RenameArgs { old, new })
            }
        }
    }

    fn tag(self, context: &Context<'_>, here: &Here) -> Result<Done, Failure> {
        let acting = context.session(None)?;
        let store = here.repo.store();
        let locks = context.locks(store, LockPolicy::default(), &acting)?;
        match self {
            UndoDeed::MakeTag(tag) => {
                let made = tags::make_again(&locks, &tag)?;
                Ok(Done::new(&TagAgain { tag: tag.tag.clone(), snapshot_id: made.snapshot_id }))
            }
            UndoDeed::DeleteTag(was) => {
                let there = tags::read(store, &was.tag)?.map(LoggedTag::from);
                let changed = || {
                    let why = format!("the tag {} is not the one that was made", was.tag);
                    UndoRefused::new(why, OwnNext::ListOperations)
                };
                if there.as_ref() != Some(&was) {
                    return Err(changed().into());
                }
                tags::take_away(&locks, &was.tag)?.ok_or_else(changed)?;
                let (deleted, snapshot_id) = (was.tag.clone(), was.snapshot_id);
                Ok(Done::new(&TagDeleted { deleted, snapshot_id }))
            }
            _ => Ok(Done::silent()),
        }
    }
}

fn gone(name: &WorktreeName) -> String {
    format!("there is no worktree '{name}' any more")
}

fn spelled(paths: &ChosenPaths) -> String {
    let all: Vec<String> = paths.paths().map(ToString::to_string).collect();
    on_one_line(&all.join(" "))
}

/// Only the last step of a line is taken back.
pub(in crate::command) fn ends_with(
    worktree: &WorktreeName,
    now: Option<SnapshotId>,
    wanted: Option<SnapshotId>,
) -> Result<(), Failure> {
    if now == wanted {
        return Ok(());
    }
    let now = now.map_or_else(|| "none".to_owned(), |id| id.to_string());
    let why = format!("the head of {worktree} is {now} by now: only the last snapshot goes");
    Err(UndoRefused::new(why, OwnNext::ListOperations).into())
}
