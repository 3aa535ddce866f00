//! `jvs restore`: the files of a snapshot, as a new worktree or in place.

use std::path::{Component, Path, PathBuf};

use jvs_lock::{Lease, Locks};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::{Config, Consistency};
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::restore::{Restore, Wish, check_paths};
use jvs_snapshot::stage::Options;
use jvs_snapshot::take::Hold;
use jvs_snapshot::{Catalog, Ready, Snapshots, diff};
use serde_json::json;

use super::lock::reasoned;
use super::snapshot::{self, taken};
use super::snapshots::{Held, counted, find, hold, lost};
use crate::args::RestoreArgs;
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::render::{Done, shown};
use crate::session::Acting;

pub(crate) fn run(context: &Context<'_>, args: &RestoreArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let source = find(context, &here, &args.snapshot)?;
    match &args.reason {
        Some(reason) if args.in_place => in_place(context, &here, &source, reason, &args.paths),
        _ => {
            let name = match &args.into {
                Some(name) => name.parse()?,
                None => format!("restored-{:08x}", source.id().random).parse()?,
            };
            new_worktree(context, &here, &source, &name, Isolation::Exclusive)
        }
    }
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
    let restore = Restore { at, store: repo.store(), engine: config.snapshot.engine };
    let bar = Bar::new(context, "copying");
    let restored = restore.to_new_worktree(&locks, source, name, isolation, &bar)?;
    drop(bar);
    let path = shown(&repo.payload(name)?);
    let text = format!(
        "Made {} worktree {} from {} at {path}\n",
        isolation.as_str(),
        context.paint().bold(name.as_str()),
        source.id()
    );
    let data = || {
        json!({
            "name": name,
            "isolation": isolation.as_str(),
            "path": path,
            "created_at": restored.record.created_at.rfc3339(),
            "state": "free",
            "base": source.id(),
            "head": source.id(),
        })
    };
    Ok(lost(&restored.degraded)
        .into_iter()
        .fold(context.done(data).with_text(text), Done::with_warning))
}

fn in_place(
    context: &Context<'_>,
    here: &Here,
    source: &Ready,
    reason: &str,
    paths: &[PathBuf],
) -> Result<Done, Failure> {
    reasoned(reason, "files are not replaced without saying why")?;
    let repo = &here.repo;
    let config = repo.config()?;
    let root = repo.payload(&here.worktree)?;
    let stands_in_it = stands_in(context, &root);
    let paths = inside(context, &root, paths)?;
    // Before anything else is done for it.
    let tree = jvs_repo::layout::snapshot_payload(&source.dir());
    check_paths(repo.store(), &tree, &paths, source.id())?;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let mut held = hold(context, &locks, here, &config)?;
    let outcome = match &mut held {
        Held::Shared(_) => {
            let message =
                format!("worktree '{}' is shared: its files have no one owner", here.worktree);
            let hint = "restore to a new worktree: jvs restore SNAPSHOT --into NAME";
            Err(WrongUsage::new(message, hint).into())
        }
        Held::Own(lease) | Held::Borrowed(lease) => {
            let work = Work { context, here, config: &config, locks: &locks, acting: &acting };
            work.swap(lease, source, reason, &paths)
        }
    };
    let drift = held.give_back();
    let moved = (stands_in_it && paths.is_empty() && outcome.is_ok()).then(|| {
        "this shell still stands in the old directory, which is gone; go to the new one with \
         `cd \"$PWD\"`"
            .to_owned()
    });
    Ok(drift.into_iter().chain(moved).fold(outcome?, Done::with_warning))
}

/// Is the current directory one of those that are swapped?
fn stands_in(context: &Context<'_>, root: &Path) -> bool {
    let here = context.absolute(Path::new(".")).canonicalize();
    let root = root.canonicalize();
    matches!((here, root), (Ok(here), Ok(root)) if here.starts_with(&root))
}

struct Work<'w> {
    context: &'w Context<'w>,
    here: &'w Here,
    config: &'w Config,
    locks: &'w Locks<'w>,
    acting: &'w Acting,
}

impl Work<'_> {
    fn swap(
        &self,
        lease: &mut Lease<'_>,
        source: &Ready,
        reason: &str,
        paths: &[RepoPath],
    ) -> Result<Done, Failure> {
        let Work { context, here, config, locks, .. } = self;
        let store = here.repo.store();
        let (kept, fresh) = self.keep(lease, source)?;
        let restore = Restore {
            at: Snapshots::new(locks.seams(), store),
            store,
            engine: config.snapshot.engine,
        };
        let wish = Wish { source, kept: kept.as_ref(), paths, reason };
        let bar = Bar::new(context, "copying");
        let done = restore.in_place(locks, lease, &wish, &bar)?;
        drop(bar);
        let what = match paths.len() as u64 {
            0 => "all files".to_owned(),
            number => counted(number, "path"),
        };
        let mut text = format!("Restored {what} of {} from {}\n", here.worktree, source.id());
        let kept = kept.as_ref().map(Ready::id);
        if let (Some(kept), true) = (kept, fresh) {
            text += &format!("What was there before is snapshot {kept}\n");
        }
        let left = done.left.as_ref().map(|(path, _)| shown(&store.absolute(path)));
        let data = || {
            json!({
                "worktree": here.worktree,
                "snapshot_id": source.id(),
                "kept": kept,
                "kept_is_new": fresh,
                "paths": paths.iter().map(RepoPath::as_str).collect::<Vec<_>>(),
                "left": left,
            })
        };
        let mut answer = context.done(data).with_text(text);
        if let Some(left) = &left {
            let warning = format!(
                "somebody wrote to the old files while they were being replaced; they are in {left}"
            );
            answer = answer.with_warning(warning);
        }
        Ok(lost(&done.degraded).into_iter().fold(answer, Done::with_warning))
    }

    /// A snapshot of the files as they are now, and whether it was taken for
    /// this; none if there are no files.
    fn keep(
        &self,
        lease: &mut Lease<'_>,
        source: &Ready,
    ) -> Result<(Option<Ready>, bool), Failure> {
        let Work { context, here, config, locks, acting } = self;
        let store = here.repo.store();
        let root = here.repo.payload(&here.worktree)?;
        let catalog = Catalog::new(store);
        let head = lease.fence()?.read()?.head;
        if let Some(head) = head
            && catalog.is_ready(head).map_err(|error| Stuck::new("look at the head", error))?
        {
            let head = catalog.open(head)?;
            let bar = Bar::new(context, "comparing");
            if diff::since(store, &head, &root, &bar)?.is_empty() {
                return Ok((Some(head), false));
            }
        } else {
            let payload = jvs_repo::layout::payload(&here.worktree);
            let files = store.list(&payload);
            if files.map_err(|error| Stuck::new("list the worktree", error))?.is_empty() {
                return Ok((None, false));
            }
        }
        let options = Options {
            engine: config.snapshot.engine,
            consistency: Consistency::Quiesced,
            ..Options::default()
        };
        let note = format!("before restoring {}", source.id());
        let wish = snapshot::Wish { note: Some(&note), tags: &[], options };
        let (kept, _) = taken(context, here, locks, acting, &mut Hold::Lease(lease), &wish)?;
        Ok((Some(kept.ready), true))
    }
}

/// Paths as the user sees them from where they stand, relative to the worktree.
fn inside(context: &Context<'_>, root: &Path, paths: &[PathBuf]) -> Result<Vec<RepoPath>, Failure> {
    let root = root.canonicalize().map_err(|error| Stuck::new("find the worktree", error))?;
    let here = context.absolute(Path::new("."));
    let here = here.canonicalize().map_err(|error| Stuck::new("find this directory", error))?;
    let base = if here.starts_with(&root) { &here } else { &root };
    paths.iter().map(|path| relative(&root, base, path).map_err(Failure::from)).collect()
}

fn relative(root: &Path, base: &Path, path: &Path) -> Result<RepoPath, Outside> {
    let outside = |what: &str| Outside { path: path.to_owned(), what: what.to_owned() };
    let mut whole = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    let inside = whole.strip_prefix(root).map_err(|_| outside("lies outside of the worktree"))?;
    let mut relative = RepoPath::root();
    for name in inside {
        let name = name.to_str().ok_or_else(|| outside("is not UTF-8: restore what it is in"))?;
        relative = relative.child(name).map_err(|_| outside("cannot be the name of a file"))?;
    }
    if relative == RepoPath::root() {
        return Err(outside("is the whole worktree: leave it out"));
    }
    Ok(relative)
}

/// A path that cannot be restored by its name.
#[derive(Debug)]
struct Outside {
    path: PathBuf,
    what: String,
}

impl std::fmt::Display for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.path.display(), self.what)
    }
}

impl std::error::Error for Outside {}

impl Coded for Outside {
    fn code(&self) -> Code {
        Code::PathEscape
    }

    fn hint(&self) -> Option<String> {
        Some("paths are relative to this directory, and inside the worktree".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_what_they_mean_from_where_the_user_stands() {
        let (root, base) = (Path::new("/r/main"), Path::new("/r/main/a"));
        let path = |text: &str| relative(root, base, Path::new(text));
        assert_eq!(path("b/../c").expect("inside").as_str(), "a/c");
        assert_eq!(path("../x").expect("inside").as_str(), "x");
        assert_eq!(path("/r/main/y").expect("inside").as_str(), "y");
        for text in ["../..", "../../other/x", "/etc/passwd", ".."] {
            assert_eq!(path(text).expect_err(text).code(), Code::PathEscape, "{text}");
        }
    }
}
