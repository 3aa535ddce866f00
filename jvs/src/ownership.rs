//! A word to whoever is about to write in a repository that belongs to somebody else and is
//! not shared: what it makes there, its owner could neither change nor remove.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use jvs_repo::discover::ControlDir;
use jvs_repo::layout;
use rustix::process::geteuid;

use crate::given::quoted;
use crate::render::shown;

const ROOT: u32 = 0;
/// Others than the owner of what is made may write it, and so may the repository's owner.
const OTHERS_WRITE: u32 = 0o022;

/// Once per process is enough, and a keeper's starter was told.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Nothing is said in this process.
pub(crate) fn say_nothing() {
    TOLD.store(true, Ordering::Relaxed);
}

/// What to say to this user before it writes there; only once.
pub(crate) fn warning(control_dir: ControlDir, root: &Path) -> Option<String> {
    let me = geteuid().as_raw();
    if !is_lost_to_owner(me, control_dir) || TOLD.swap(true, Ordering::Relaxed) {
        return None;
    }
    let owner = control_dir.owner;
    let afterwards = match me {
        // The files of snapshots and of main keep their owners, which are their content.
        ROOT => format!(
            ", or hand it over afterwards: find {} -user 0 -not -path '*/{}/*' -not -path {} -exec \
             chown -h {owner} {{}} +",
            quoted(&shown(root)),
            layout::PAYLOAD,
            quoted(&shown(&root.join(layout::MAIN_DIR).join("*"))),
        ),
        _ => String::new(),
    };
    Some(format!(
        "this repository belongs to user {owner}, who could not change or remove what user {me} \
         makes in it: run this as its owner (sudo -u '#{owner}' jvs …), let its owner share it \
         (jvs config set repo.shared group){afterwards}"
    ))
}

/// Could the owner not change what user `me` makes? Root always can.
fn is_lost_to_owner(me: u32, ControlDir { owner, mode, .. }: ControlDir) -> bool {
    owner != me && owner != ROOT && mode & OTHERS_WRITE == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_to_its_owner_is_what_neither_mode_nor_root_gives_back() {
        let lost = |me, owner, mode| is_lost_to_owner(me, ControlDir { owner, mode });
        assert!(lost(0, 1000, 0o755) && lost(1001, 1000, 0o755) && lost(0, 1000, 0o700));
        assert!(!lost(1000, 1000, 0o755), "its owner");
        assert!(!lost(1000, 0, 0o777) && !lost(1000, 0, 0o755), "root owns it");
        assert!(!lost(0, 1000, 0o2775) && !lost(1001, 1000, 0o777), "shared");
    }
}
