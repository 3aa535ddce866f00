//! `jvs restore`: the files of a snapshot, as a new worktree or in place.

mod meant;

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use jvs_lock::{Lease, Locks, StatusWord};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::{Config, Consistency};
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::next::Next;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{PosixStore, Store};
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::compare::{ComparedFiles, SeenFiles, Trust};
use jvs_snapshot::ignore::IgnoreRules;
use jvs_snapshot::line::LinePlace;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::restore::{
    FinishedRestore, InPlace, Left, Restore, RestorePlan, RestoreRequest, check_paths,
    check_worktree, finish_interrupted,
};
use jvs_snapshot::stage::Options;
use jvs_snapshot::take::SnapshotHold;
use jvs_snapshot::{Catalog, Ready, SnapshotError, Snapshots, diff, look};

use self::meant::Meant;
use super::lock::reasoned;
use super::snapshot::{self, taken};
use super::snapshots::{WorkHold, counted, hold, lost};
use crate::answer;
use crate::answer::tree::{RestoredBeside, RestoredInPlace};
use crate::args::RestoreArgs;
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::hint::OwnNext;
use crate::render::{Done, shown};
use crate::session::Acting;
use crate::{git, interrupt, near};

pub(crate) fn run(context: &Context<'_>, args: &RestoreArgs) -> Result<Done, Failure> {
    interrupt::listen();
    let here = context.here()?;
    let meant = Meant::by(context, &here, args)?;
    let Meant { source, paths } = &meant;
    let reason = args.reason.as_deref();
    if let (true, Some(into)) = (!paths.is_empty(), &args.into) {
        let message = "a new worktree gets all files of the snapshot";
        return Err(WrongUsage::new(message, OwnNext::RestoreAllInto(into.clone())).into());
    }
    if args.in_place || !paths.is_empty() {
        if args.atomic && !paths.is_empty() {
            let message = "single paths are not replaced in one step with all others";
            return Err(WrongUsage::new(message, OwnNext::WithoutAtomic).into());
        }
        if paths.is_empty() || reason.is_some() {
            reasoned(reason.unwrap_or_default(), "replacing files needs a reason")?;
        }
        return in_place(context, &here, source, reason, paths, args.atomic);
    }
    if reason.is_some() {
        let message = "a reason is for replacing files, and here a new worktree is made";
        return Err(WrongUsage::new(message, OwnNext::RestoreInPlace).into());
    }
    let name = match &args.into {
        Some(name) => name.parse()?,
        None => format!("restored-{:08x}", source.id().random).parse()?,
    };
    new_worktree(context, &here, source, &name, Isolation::Exclusive)
}

/// Makes a worktree from a snapshot.
pub(super) fn new_worktree(
    context: &Context<'_>,
    here: &Here,
    source: &Ready,
    name: &WorktreeName,
    isolation: Isolation,
) -> Result<Done, Failure> {
    let repo = &here.repo;
    let config = repo.config()?;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let at = Snapshots::new(locks.seams(), repo.store());
    // A new worktree has nothing yet that could be ignored.
    let ignore = IgnoreRules::default();
    let (store, engine) = (repo.store(), config.snapshot.engine);
    let restore = Restore { at, store, engine, ignore: &ignore };
    let bar = Bar::new(context, "copying");
    let restored = restore.to_new_worktree(&locks, source, name, isolation, &bar)?;
    drop(bar);
    // It is made: no look at it may say otherwise.
    let path = repo.store().absolute(&layout::payload(name));
    let text = format!(
        "Made {} worktree {} from {} at {}\n",
        isolation.as_str(),
        context.paint().bold(name.as_str()),
        source.id(),
        shown(&path)
    );
    let data = || {
        let (path, path_bytes) = answer::path(&path);
        RestoredBeside {
            name: name.clone(),
            isolation,
            created_at: restored.record.created_at.into(),
            state: StatusWord::Free,
            base: source.id(),
            head: source.id(),
            path,
            path_bytes,
        }
    };
    Ok(lost(&restored.degraded)
        .into_iter()
        .fold(context.done(data).with_text(text), Done::with_warning))
}

/// Replaces files of a worktree with those of a snapshot.
pub(super) fn in_place(
    context: &Context<'_>,
    here: &Here,
    source: &Ready,
    reason: Option<&str>,
    paths: &[PathBuf],
    atomic: bool,
) -> Result<Done, Failure> {
    let repo = &here.repo;
    let config = repo.config()?;
    let root = repo.payload(&here.worktree)?;
    let place = UserPlace::find(context, &root)?;
    let chosen = place.chosen(paths)?;
    if let Some(chosen) = &chosen {
        // Before anything else is done for it.
        let tree = layout::snapshot_payload(&source.dir());
        check_paths(repo.store(), &tree, chosen, source.id())
            .map_err(|error| place.suggesting(repo.store(), source, paths, error))?;
    }
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let mut held = hold(context, &locks, here, &config, &acting)?;
    let ignore = IgnoreRules::of_config(&config.snapshot.ignore);
    let mut swaps_it = false;
    let outcome = match &mut held {
        WorkHold::Shared(_) => Err(is_shared(here)),
        WorkHold::Entered(held) => {
            let (config, locks, acting) = (&config, &locks, &acting);
            let brings_back = false;
            let ignore = &ignore;
            let work = Work { context, here, config, locks, acting, ignore, brings_back };
            let lease = &mut held.lease;
            let way = work.way(lease.worktree(), source, chosen.as_ref(), atomic);
            way.and_then(|(way, seen)| {
                swaps_it = way.is_none() || chosen.is_some();
                let way = Way { plan: way.as_ref(), seen: seen.as_ref() };
                work.restore(lease, source, reason, chosen.as_ref(), way)
            })
        }
    };
    let drift = held.give_back();
    let moves = swaps_it && place.moves_with(chosen.as_ref());
    let moved = (moves && outcome.is_ok()).then(|| {
        "this shell is still in the old directory, which is gone; go to the new one with \
         `cd \"$PWD\"`"
            .to_owned()
    });
    Ok(drift.into_iter().chain(moved).fold(outcome?, Done::with_warning))
}

/// Brings paths back as they were in `kept`: what that has not goes, all of them if there
/// was none, and `restored` had taken their place.
pub(super) fn bring_back(
    context: &Context<'_>,
    here: &Here,
    kept: Option<&Ready>,
    restored: &Ready,
    reason: &str,
    chosen: &ChosenPaths,
) -> Result<Done, Failure> {
    let config = here.repo.config()?;
    let acting = context.session(None)?;
    let locks = context.locks(here.repo.store(), config.lock, &acting)?;
    let mut held = hold(context, &locks, here, &config, &acting)?;
    let ignore = IgnoreRules::of_config(&config.snapshot.ignore);
    let outcome = match &mut held {
        WorkHold::Shared(_) => Err(is_shared(here)),
        WorkHold::Entered(held) => {
            let (config, locks, acting) = (&config, &locks, &acting);
            let (ignore, brings_back) = (&ignore, true);
            let work = Work { context, here, config, locks, acting, ignore, brings_back };
            let lease = &mut held.lease;
            let (engine, worktree) = (work.engine(), lease.worktree());
            let plan = engine
                .check_ignored(kept.unwrap_or(restored), worktree, Some(chosen))
                .and_then(|()| engine.plan_back(kept, worktree, chosen));
            plan.map_err(Failure::from).and_then(|plan| {
                let source = kept.unwrap_or(restored);
                let way = Way { plan: Some(&plan), seen: None };
                work.restore(lease, source, Some(reason), Some(chosen), way)
            })
        }
    };
    let drift = held.give_back();
    Ok(drift.into_iter().fold(outcome?, Done::with_warning))
}

fn is_shared(here: &Here) -> Failure {
    let message = format!("worktree '{}' is shared: its files have no single owner", here.worktree);
    WrongUsage::new(message, OwnNext::RestoreElsewhere).into()
}

struct Work<'w> {
    context: &'w Context<'w>,
    here: &'w Here,
    config: &'w Config,
    locks: &'w Locks<'w>,
    acting: &'w Acting,
    /// What is ignored in every worktree.
    ignore: &'w IgnoreRules,
    /// Are paths brought back as they were, rather than all taken from a snapshot?
    brings_back: bool,
}

/// How files are replaced.
#[derive(Clone, Copy)]
struct Way<'w> {
    /// Path by path, as this says; else all that is meant in one step.
    plan: Option<&'w RestorePlan>,
    /// All files, as they were seen for that.
    seen: Option<&'w SeenFiles>,
}

impl Work<'_> {
    fn engine(&self) -> Restore<'_> {
        let store = self.here.repo.store();
        let at = Snapshots::new(self.locks.seams(), store);
        Restore { at, store, engine: self.config.snapshot.engine, ignore: self.ignore }
    }

    /// What is done path by path; nothing if all that is meant is swapped as it is.
    fn way(
        &self,
        worktree: &WorktreeName,
        source: &Ready,
        chosen: Option<&ChosenPaths>,
        atomic: bool,
    ) -> Result<(Option<RestorePlan>, Option<SeenFiles>), Failure> {
        let bar = Bar::new(self.context, "comparing");
        if atomic {
            self.engine().check_ignored(source, worktree, None)?;
            return Ok((None, None));
        }
        if let Some(chosen) = chosen {
            return Ok((self.engine().plan_chosen(source, worktree, chosen, &bar)?, None));
        }
        let root = self.here.repo.payload(worktree)?;
        let Some((plan, seen)) = self.engine().plan(source, worktree, &root, &bar)? else {
            self.engine().check_ignored(source, worktree, None)?;
            self.context.tell(
                "what differs cannot be replaced path by path here, so all files are replaced in \
                 one step"
                    .to_owned(),
            );
            return Ok((None, None));
        };
        Ok((Some(plan), seen))
    }

    fn restore(
        &self,
        lease: &mut Lease<'_>,
        source: &Ready,
        reason: Option<&str>,
        asked: Option<&ChosenPaths>,
        Way { plan, seen }: Way<'_>,
    ) -> Result<Done, Failure> {
        let Work { context, here, locks, .. } = self;
        let store = here.repo.store();
        // Not all that is brought back is in the snapshot.
        let chosen = asked.filter(|_| !self.brings_back);
        let (kept, fresh) = match (plan, chosen) {
            (Some(plan), None) if plan.is_empty() => (None, false),
            (Some(plan), None) => {
                let replaced = plan.replaced().map_or(Replaced::Nothing, Replaced::Some);
                self.keep(lease, source, &replaced, seen)?
            }
            // Nothing is replaced.
            (Some(plan), Some(_)) if plan.replaced().is_none() => (None, false),
            (Some(_), Some(chosen)) => {
                self.keep(lease, source, &Replaced::Chosen(chosen.clone()), seen)?
            }
            (None, Some(chosen)) => match check_worktree(store, &here.worktree, chosen)? {
                None => (None, false),
                Some(_) => self.keep(lease, source, &Replaced::Chosen(chosen.clone()), seen)?,
            },
            (None, None) => self.keep(lease, source, &Replaced::All, seen)?,
        };
        let wish = RestoreRequest { source, kept: kept.as_ref(), chosen, reason };
        let bar = Bar::new(context, "copying");
        let done = match plan {
            Some(plan) if plan.is_empty() => Ok(InPlace::default()),
            Some(plan) => self.engine().in_parts(locks, lease, &wish, plan, &bar),
            None => self.engine().in_place(locks, lease, &wish, &bar),
        };
        drop(bar);
        if let (Err(_), Some(kept), true) = (&done, &kept, fresh) {
            context.tell(format!("what was there before was kept as snapshot {}", kept.id()));
        }
        let done = done?;
        let paths: Vec<String> =
            asked.map_or_else(Vec::new, |some| some.paths().map(ToString::to_string).collect());
        let what = match paths.len() as u64 {
            0 => "all files".to_owned(),
            number => counted(number, "path"),
        };
        let mut text = format!("Restored {what} of {} from {}\n", here.worktree, source.id());
        let kept = kept.as_ref().map(Ready::id);
        if let (Some(kept), true) = (kept, fresh) {
            text += &format!("What was there before is kept as snapshot {kept}\n");
        }
        let data = || {
            let (paths, paths_bytes) = answer::shown_paths(&paths);
            let stays = plan.map_or(&[][..], RestorePlan::stays);
            let stays = stays.iter().map(|path| answer::shown_path(&path.to_string()));
            let (stays, stays_bytes) = answer::paths(stays);
            let left = done.left.as_ref().map(|left| store.absolute(&left.path));
            let (left, left_bytes) = answer::path_if_any(left.as_deref());
            RestoredInPlace {
                worktree: here.worktree.clone(),
                snapshot_id: source.id(),
                kept,
                kept_is_new: fresh,
                changed: plan.filter(|_| asked.is_none()).map(RestorePlan::paths),
                left,
                paths,
                paths_bytes,
                stays,
                stays_bytes,
                left_bytes,
            }
        };
        let mut answer = context.done(data).with_text(text);
        if git::is_restored(plan, asked) {
            let told = git::restored(store, &here.worktree, fresh);
            answer = told.into_iter().fold(answer, Done::with_warning);
        }
        if let Some(old) = &done.left {
            answer = answer.with_warning(left_behind(store, old));
        }
        if let Some(stays) = plan.map(RestorePlan::stays).filter(|stays| !stays.is_empty()) {
            answer = answer.with_warning(left_alone(stays));
        }
        if !done.unplaced.is_empty() {
            answer = answer.with_warning(unplaced(&done.unplaced));
        }
        Ok(lost(&done.degraded).into_iter().fold(answer, Done::with_warning))
    }

    /// Does a snapshot have what is replaced, as it is now?
    fn has(
        &self,
        one: &Ready,
        root: &Path,
        replaced: &Replaced,
        seen: Option<&SeenFiles>,
    ) -> Result<bool, Failure> {
        let Work { context, here, ignore, .. } = self;
        let store = here.repo.store();
        let bar = Bar::new(context, "comparing");
        let all = ComparedFiles::of(root, ignore);
        // What is in a snapshot may be replaced: that is read, not guessed.
        match replaced {
            Replaced::Chosen(some) | Replaced::Some(some) => {
                let changed = diff::since(store, one, all.only(Some(some)), Trust::Nothing, &bar)?;
                if !changed.is_empty() || matches!(replaced, Replaced::Chosen(_)) {
                    return Ok(changed.is_empty());
                }
            }
            Replaced::Nothing => {}
            Replaced::All => {
                return Ok(diff::since(store, one, all, Trust::Nothing, &bar)?.is_empty());
            }
        }
        let trust = diff::trust(one, root, &context.clock().boot_id());
        // What is not replaced stays, whatever became of it since it was seen.
        let changed = match seen {
            Some(seen) => diff::since_of_seen(store, one, all, seen, trust, &bar)?,
            None => diff::since(store, one, all, trust, &bar)?,
        };
        Ok(changed.is_empty())
    }

    /// A snapshot that has what is replaced as it is now, and whether it was taken for
    /// this; none if there are no files.
    fn keep(
        &self,
        lease: &mut Lease<'_>,
        source: &Ready,
        replaced: &Replaced,
        seen: Option<&SeenFiles>,
    ) -> Result<(Option<Ready>, bool), Failure> {
        let Work { context, here, config, locks, acting, ignore, .. } = self;
        let store = here.repo.store();
        let root = here.repo.payload(&here.worktree)?;
        let catalog = Catalog::new(store);
        let head = lease.fence()?.read()?.head;
        if let Some(head) = head
            && catalog.is_ready(head).map_err(|error| Stuck::new("look at the head", error))?
        {
            let head = catalog.open(head)?;
            if self.has(&head, &root, replaced, seen)? {
                return Ok((Some(head), false));
            }
            // What is there already is restored once more.
            if matches!(replaced, Replaced::Chosen(_) | Replaced::All)
                && self.has(source, &root, replaced, None)?
            {
                return Ok((Some(source.clone()), false));
            }
        } else {
            let files = store.list(&layout::payload(&here.worktree));
            if files.map_err(|error| Stuck::new("list the worktree", error))?.is_empty() {
                return Ok((None, false));
            }
        }
        let options = Options {
            engine: config.snapshot.engine,
            consistency: Consistency::Quiesced,
            ignore: Some((*ignore).clone()),
            ..Options::default()
        };
        let note = format!("before restoring {}", source.id());
        // Not what `@` means from then on: who restores it once more gets the same.
        let place = LinePlace::Aside;
        let wish = snapshot::CaptureRequest { note: Some(&note), tags: &[], options, place };
        let (kept, _) =
            taken(context, here, locks, acting, &mut SnapshotHold::Lease(lease), &wish)?;
        Ok((Some(kept.ready), true))
    }
}

/// What a restore replaces, and may be asked to bring back.
enum Replaced {
    /// These paths, be they there or not.
    Chosen(ChosenPaths),
    /// Of all files only these.
    Some(ChosenPaths),
    /// None of all files: some are added.
    Nothing,
    /// All files.
    All,
}

fn left_behind(store: &PosixStore, old: &Left) -> String {
    let path = shown(&store.absolute(&old.path));
    let why = match &old.why {
        Ok(paths) => format!(
            "no snapshot has some of the old files: they are ignored, or somebody wrote to them \
             while they were being replaced ({})",
            first_of(paths)
        ),
        Err(why) => format!("the old files could not be compared ({why})"),
    };
    format!("{why}; they are in {path}: remove that once nothing in it is needed")
}

/// What the snapshot has otherwise, and that is ignored now.
fn left_alone(paths: &[TreePath]) -> String {
    format!(
        "what is ignored now stays as it is, although the snapshot has it otherwise ({}); a path \
         is replaced if it is named",
        first_of(paths)
    )
}

fn unplaced(paths: &[TreePath]) -> String {
    format!(
        "somebody removed the directory that restored files were to be in, so they are not there \
         ({})",
        first_of(paths)
    )
}

/// Finishes the restores in place that others began and did not finish, before the files
/// are used under `lease`.
pub(super) fn finish_restores(
    context: &Context<'_>,
    here: &Here,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
) -> Result<(), Failure> {
    let store = here.repo.store();
    let at = Snapshots::new(locks.seams(), store);
    for FinishedRestore { restored, left, unplaced: lost } in
        finish_interrupted(&at, store, locks, lease)?
    {
        context.tell(format!("a restore of {restored} was interrupted, and is finished now"));
        left.iter().for_each(|left| context.tell(left_behind(store, left)));
        if !lost.is_empty() {
            context.tell(unplaced(&lost));
        }
    }
    Ok(())
}

/// What a user who only looks at the files of a worktree is told while not all of them are
/// restored.
pub(super) const HALF_RESTORED: &str = "a restore of these files is under way or was interrupted: some may be \
     old and some new; the next command that uses the lock finishes it";

fn first_of(paths: &[TreePath]) -> String {
    match paths {
        [] => String::new(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// No more paths than this are offered for one that is spelled much like them.
const MOST_NEAR: usize = 3;

/// Where the user stands, and what paths mean from there.
pub(super) struct UserPlace {
    /// The worktree's directory.
    root: PathBuf,
    /// The current directory, if it is in the worktree; else the worktree's.
    base: PathBuf,
    stands_in_it: bool,
}

impl UserPlace {
    pub(super) fn find(context: &Context<'_>, root: &Path) -> Result<Self, Failure> {
        let root = root.canonicalize().map_err(|error| Stuck::new("find the worktree", error))?;
        let here = context.absolute(Path::new("."));
        let here = here.canonicalize().map_err(|error| Stuck::new("find this directory", error))?;
        let stands_in_it = here.starts_with(&root);
        let base = if stands_in_it { here } else { root.clone() };
        Ok(UserPlace { root, base, stands_in_it })
    }

    /// What the user named; nothing if they named nothing.
    pub(super) fn chosen(&self, paths: &[PathBuf]) -> Result<Option<ChosenPaths>, Failure> {
        let mut inside = Vec::new();
        for path in paths {
            inside.push(self.inside(path)?);
        }
        Ok(ChosenPaths::new(inside))
    }

    /// A path as it was typed, relative to the worktree. `..` is taken off by its
    /// name, and nothing in the worktree is followed.
    pub(super) fn inside(&self, path: &Path) -> Result<TreePath, Outside> {
        let outside =
            |what: &str| Outside { path: path.to_owned(), what: what.to_owned(), is_all: false };
        if path.as_os_str().is_empty() {
            return Err(Outside { path: "''".into(), ..outside("names nothing") });
        }
        let mut whole = PathBuf::new();
        for component in self.base.join(path).components() {
            match component {
                Component::ParentDir => {
                    whole.pop();
                }
                Component::CurDir => {}
                other => whole.push(other),
            }
        }
        let inside = match whole.strip_prefix(&self.root) {
            Ok(inside) => inside.to_owned(),
            Err(_) => {
                self.by_another_way(&whole).ok_or_else(|| outside("is outside the worktree"))?
            }
        };
        let relative = TreePath::new(inside.into_os_string().into_vec())
            .map_err(|_| outside("cannot be the name of a file"))?;
        if relative.is_root() {
            let all = outside("is the whole worktree: leave it out");
            return Err(Outside { is_all: true, ..all });
        }
        Ok(relative)
    }

    /// A path in the worktree as it would be typed here.
    fn as_typed_here(&self, path: &Path) -> PathBuf {
        let base = self.base.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let alike = base.components().zip(path.components()).take_while(|(a, b)| a == b).count();
        let up = base.components().skip(alike).map(|_| Component::ParentDir);
        up.chain(path.components().skip(alike)).collect()
    }

    /// An error about a path that a snapshot has not, with those that were probably meant:
    /// the same from the root of the worktree, or one that is spelled much like it.
    pub(super) fn suggesting(
        &self,
        store: &dyn Store,
        snapshot: &Ready,
        typed: &[PathBuf],
        error: SnapshotError,
    ) -> Failure {
        let SnapshotError::NoSuchPath { path, .. } = &error else { return error.into() };
        let meant = self.near(store, snapshot, typed, path);
        Failure::from(error).suggesting(meant)
    }

    /// What of a snapshot was probably meant by `path`, which it has not, or by what was typed.
    fn near(
        &self,
        store: &dyn Store,
        snapshot: &Ready,
        typed: &[PathBuf],
        path: &str,
    ) -> Vec<String> {
        let (mut from_root, mut near) = (Vec::new(), Vec::new());
        // Best effort: that it is not there is known without them.
        let _ = look::each_at(store, snapshot, &TreePath::root(), &mut |entry| {
            if typed.iter().any(|typed| typed == entry.path.as_path()) {
                from_root.push(entry.path.clone());
            } else if near.len() < MOST_NEAR
                && !near::nearest(path, [entry.path.to_string().as_str()]).is_empty()
            {
                near.push(entry.path.clone());
            }
        });
        let here = |path: &TreePath| ShownName::new(&self.as_typed_here(path.as_path())).typed();
        from_root.iter().chain(&near).map(here).collect()
    }

    /// What is below the worktree in a path that leads there by symlinks from
    /// outside.
    fn by_another_way(&self, whole: &Path) -> Option<PathBuf> {
        let ways: Vec<&Path> = whole.ancestors().collect();
        let root = ways
            .into_iter()
            .rev()
            .find(|way| way.canonicalize().is_ok_and(|found| found == self.root))?;
        Some(whole.strip_prefix(root).ok()?.to_owned())
    }

    /// Is the current directory swapped away?
    fn moves_with(&self, chosen: Option<&ChosenPaths>) -> bool {
        let Ok(here) = self.base.strip_prefix(&self.root) else { return false };
        self.stands_in_it
            && chosen
                .is_none_or(|chosen| chosen.paths().any(|path| here.starts_with(path.as_path())))
    }
}

/// A path that cannot be restored by its name.
#[derive(Debug, thiserror::Error)]
#[error("{} {what}", shown(path))]
pub(super) struct Outside {
    path: PathBuf,
    what: String,
    is_all: bool,
}

impl Coded for Outside {
    fn code(&self) -> Code {
        Code::PathEscape
    }

    fn next(&self) -> Option<Next> {
        Some("paths are relative to this directory, and inside the worktree".into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn paths_mean_what_they_mean_from_where_the_user_stands() {
        let (root, base) = (PathBuf::from("/r/main"), PathBuf::from("/r/main/a"));
        let place = UserPlace { root, base, stands_in_it: true };
        let path = |text: &str| place.inside(Path::new(text));
        for (typed, meant) in [
            ("b/../c", "a/c"),
            ("../x", "x"),
            ("/r/main/y", "y"),
            (".", "a"),
            ("./b/", "a/b"),
            ("b//c/.", "a/b/c"),
        ] {
            assert_eq!(path(typed).expect("inside").to_string(), meant, "{typed}");
        }
        for text in ["../..", "../../other/x", "/etc/passwd", "..", "", "/r/main/", "/r/mainx"] {
            assert_eq!(path(text).expect_err(text).code(), Code::PathEscape, "{text}");
        }
        let raw = Path::new(std::ffi::OsStr::from_bytes(b"\xff\n"));
        assert_eq!(place.inside(raw).expect("any bytes").as_bytes(), b"a/\xff\n");
    }

    #[test]
    fn a_shell_is_told_only_if_the_directory_it_stands_in_was_swapped() {
        let place =
            UserPlace { root: "/r/main".into(), base: "/r/main/a/b".into(), stands_in_it: true };
        let moves = |paths: &[&str]| {
            let paths = paths.iter().map(|text| TreePath::new(text.as_bytes().to_vec()));
            place.moves_with(ChosenPaths::new(paths.map(|path| path.expect("plain"))).as_ref())
        };
        assert!(moves(&[]), "all of it");
        assert!(moves(&["a"]) && moves(&["x", "a/b"]));
        assert!(!moves(&["a/b/c"]) && !moves(&["a/bc"]));
    }
}
