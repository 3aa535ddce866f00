//! What is at stake where a worktree is one of git's, too: `.git` is a directory like any
//! other, so it is captured and restored with the rest, and commits go and come with it.

use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{PosixStore, RepoPath};
use jvs_snapshot::Ready;
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::restore::RestorePlan;
use jvs_snapshot::trees::{Spot, Spots as _};

/// What git calls its own.
const GIT: &[u8] = b".git";

/// How it is left out.
const LEAVE_OUT: &str = "echo /.git >> .jvsignore";

/// What git has at the top of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GitPlace {
    /// Its history.
    History,
    /// The name of the directory that has it.
    Reference,
}

fn top() -> Option<TreePath> {
    TreePath::new(GIT.to_vec()).ok()
}

/// Best effort: this is for a word of warning.
fn found(store: &PosixStore, tree: &RepoPath) -> Option<GitPlace> {
    let stat = store.look(Spot { tree, path: &top()? }).ok()?;
    Some(if stat.is_directory { GitPlace::History } else { GitPlace::Reference })
}

/// What became of `.git` when a directory was made worktree `name`.
pub(crate) fn adopted(store: &PosixStore, name: &WorktreeName) -> Option<String> {
    Some(match found(store, &layout::payload(name))? {
        GitPlace::History => format!(
            "`.git` went along: run git in {name}; snapshots have it, too, and restoring all files \
             in place takes commits and branches back; to leave it out, in {name}: {LEAVE_OUT}"
        ),
        GitPlace::Reference => format!(
            "`.git` went along, and it names another directory, which names the old place: in \
             {name}, run `git worktree repair`"
        ),
    })
}

/// What is at stake from a snapshot on, if it is the first of its line that has `.git`.
pub(crate) fn captured(
    store: &PosixStore,
    ready: &Ready,
    parent: Option<&Ready>,
) -> Option<String> {
    let has = |ready: &Ready| {
        found(store, &layout::snapshot_payload(&ready.dir())) == Some(GitPlace::History)
    };
    (has(ready) && !parent.is_some_and(has)).then(|| {
        format!(
            "the snapshot has `.git`: restoring all files in place takes git's commits and \
             branches back, too; to leave it out from now on: {LEAVE_OUT}"
        )
    })
}

/// Is `.git`, or something in it, among what is restored?
pub(crate) fn is_restored(plan: Option<&RestorePlan>, chosen: Option<&ChosenPaths>) -> bool {
    let Some(git) = top() else { return false };
    let is_git = |path: &TreePath| path.as_path().starts_with(git.as_path());
    match (plan, chosen) {
        (Some(plan), _) => plan.touched().any(is_git),
        (None, Some(chosen)) => chosen.paths().any(is_git),
        // All of it at once, as it is.
        (None, None) => true,
    }
}

/// What a restore did to `.git` of worktree `name`, where that is restored.
pub(crate) fn restored(store: &PosixStore, name: &WorktreeName, kept: bool) -> Option<String> {
    let place = found(store, &layout::payload(name));
    let what = match place {
        Some(GitPlace::History) => "git's commits, branches and index are those of the snapshot",
        _ => return None,
    };
    let back = if kept { "; the others are in the snapshot that was kept" } else { "" };
    Some(format!("`.git` was restored, too: {what}{back}"))
}

#[cfg(test)]
mod tests {
    use jvs_snapshot::restore::Deed;

    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::new(text.as_bytes().to_vec()).expect("a path")
    }

    #[test]
    fn only_what_is_git_s_is_called_so() {
        for (touched, is_git) in [
            (&[".git"][..], true),
            (&["a", ".git/refs/heads/main"], true),
            (&[".gitignore", ".github/x", "src/.git"], false),
            (&[], false),
        ] {
            let plan = RestorePlan::of(touched.iter().map(|it| (path(it), Deed::Replace)));
            assert_eq!(is_restored(Some(&plan), None), is_git, "{touched:?}");
            let chosen = ChosenPaths::new(touched.iter().map(|it| path(it)));
            assert_eq!(chosen.is_some_and(|it| is_restored(None, Some(&it))), is_git);
        }
        assert!(is_restored(None, None), "all files at once");
    }
}
