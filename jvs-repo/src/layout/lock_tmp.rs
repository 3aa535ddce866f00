//! Temporary names beside the locks: `<worktree>.tmp-<mark>`. The mark says who made it,
//! so that doctor can prove it dead.

use std::fmt::Display;

use super::locks;
use crate::id::{FencingToken, OpNonce, strict_decimal};
use crate::name::WorktreeName;
use crate::store::RepoPath;
use crate::term::Term;

/// A temporary file or directory beside the locks.
pub fn lock_tmp(name: &WorktreeName, mark: &str) -> RepoPath {
    locks().plain_child(&format!("{name}.tmp-{mark}"))
}

/// Whose temporary file of that name in [`locks`] is, and its mark. No mark has a dot:
/// what has one is the lock, the register or the queue of a worktree whose own name has
/// `.tmp-` in it.
pub fn lock_tmp_of(file: &str) -> Option<(WorktreeName, &str)> {
    let (name, mark) = file.rsplit_once(".tmp-")?;
    if mark.contains('.') {
        return None;
    }
    Some((name.parse().ok()?, mark))
}

/// One that is over when `term` is. `own` tells two of them apart, and has no dash.
pub fn lock_tmp_under(name: &WorktreeName, term: Term, own: impl Display) -> RepoPath {
    let Term { epoch, token } = term;
    lock_tmp(name, &format!("{epoch}-{token}-{own}"))
}

/// For which worktree, and under which term, a file of that name in [`locks`] was made.
pub fn lock_tmp_term(file: &str) -> Option<(WorktreeName, Term)> {
    let (name, mark) = lock_tmp_of(file)?;
    let mut parts = mark.rsplitn(3, '-');
    let (_own, token, epoch) = (parts.next()?, parts.next()?, parts.next()?);
    let token = FencingToken(strict_decimal(token)?);
    Some((name, Term { epoch: epoch.parse().ok()?, token }))
}

/// Where the register of a worktree is made before it is renamed into place.
pub fn register_birth(name: &WorktreeName, op: OpNonce) -> RepoPath {
    lock_tmp(name, &format!("{BIRTH}{op}"))
}

/// Whose register a directory of that name in [`locks`] was to become, and by which
/// operation.
pub fn register_birth_of(file: &str) -> Option<(WorktreeName, OpNonce)> {
    let (name, mark) = lock_tmp_of(file)?;
    Some((name, mark.strip_prefix(BIRTH)?.parse().ok()?))
}

const BIRTH: &str = "birth-";

/// Where a lock of another tool is while it is looked at once more and removed.
pub fn legacy_lock_aside(name: &WorktreeName, op: OpNonce) -> RepoPath {
    lock_tmp(name, &format!("legacy-{op}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Epoch;
    use crate::layout::{buried_register, lock_record, queue, register, takeover};

    fn name(text: &str) -> WorktreeName {
        text.parse().expect("a name")
    }

    #[test]
    fn what_a_worktree_with_tmp_in_its_name_has_is_not_temporary() {
        let name = name("main.tmp-0-0000-1-x");
        let epoch: Epoch = "3-00ff".parse().expect("an epoch");
        let own = [
            lock_record(&name),
            register(&name),
            buried_register(&name, epoch),
            takeover(&name),
            queue(&name),
        ];
        for path in own {
            assert_eq!(lock_tmp_of(path.split().1), None, "{path}");
        }
        let tmp = lock_tmp(&name, "3-00ff-9-id");
        assert_eq!(lock_tmp_of(tmp.split().1), Some((name, "3-00ff-9-id")));
    }

    #[test]
    fn a_temporary_name_tells_who_made_it() {
        let (main, op) = (name("main"), OpNonce([7; 8]));
        let term: Term = "3-00ff.9".parse().expect("a term");
        let under = lock_tmp_under(&main, term, op);
        assert_eq!(lock_tmp_term(under.split().1), Some((main.clone(), term)));
        assert_eq!(register_birth_of(under.split().1), None);
        let birth = register_birth(&main, op);
        assert_eq!(register_birth_of(birth.split().1), Some((main.clone(), op)));
        assert_eq!(lock_tmp_term(birth.split().1), None);
        assert_eq!(lock_tmp_term(legacy_lock_aside(&main, op).split().1), None);
    }
}
