//! Ending a process group: asked first, then made to.

use jvs_repo::clock::{BootMs, Clock, SystemClock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

const LOOK_AGAIN_MS: u64 = 10;

/// Asks the group to end and makes it at `kill_at`, if it has not by then.
pub(crate) fn stop_group(group: Pid, kill_at: BootMs) {
    let _ = kill_process_group(group, Signal::TERM);
    // A stopped process cannot even refuse.
    let _ = kill_process_group(group, Signal::CONT);
    while test_kill_process_group(group) != Err(Errno::SRCH) {
        let now = SystemClock.now().boot;
        if now >= kill_at {
            let _ = kill_process_group(group, Signal::KILL);
            return;
        }
        SystemClock.sleep_ms(LOOK_AGAIN_MS.min(kill_at.since(now)));
    }
}
