//! The umask of a command in a repository that others share: what it makes there is as
//! open as the control directory, and what the commands make that it runs is as its user
//! wants it.

use std::sync::OnceLock;

use jvs_repo::discover::ControlDir;
use jvs_repo::sharing::{Sharing, umask_in};
use rustix::fs::Mode;
use rustix::process::umask;

/// What the user has set.
static OF_THE_USER: OnceLock<Mode> = OnceLock::new();

/// For work in a repository.
pub(crate) fn open_for(control_dir: ControlDir) {
    set(|umask| umask_in(control_dir.mode, umask));
}

/// For making a repository that is shared.
pub(crate) fn open_for_sharing(sharing: Sharing) {
    set(|umask| sharing.umask(umask));
}

/// As the user has it, in a process that becomes another program.
pub(crate) fn give_back() {
    if let Some(of_the_user) = OF_THE_USER.get() {
        umask(*of_the_user);
    }
}

fn set(of: impl Fn(u32) -> u32) {
    let of_the_user = *OF_THE_USER.get_or_init(|| umask(Mode::from_raw_mode(0o077)));
    umask(Mode::from_raw_mode(of(of_the_user.bits())));
}
