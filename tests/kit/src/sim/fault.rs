//! One call, carried out in one of the ways in which the world can treat it.

use rustix::io::Errno;

use super::call::{Answer, Call};
use super::choice::Way;
use super::kernel::{Caller, Kernel};

/// What came of it.
pub(crate) struct Outcome {
    /// What the process is told, if it lives to hear it.
    pub(crate) answer: Answer,
    /// The call may still be applied later.
    pub(crate) late: bool,
    pub(crate) died: bool,
    /// What a reader of the trace must know beyond the answer.
    pub(crate) note: &'static str,
}

pub(crate) fn carry_out(kernel: &mut Kernel, caller: Caller, call: &Call, way: Way) -> Outcome {
    let plain = |answer| Outcome { answer, late: false, died: false, note: "" };
    let failed = |errno: Errno| Answer::Failed(errno.into());
    match way {
        Way::Plain | Way::Picks(_) => plain(kernel.perform(caller, call, false)),
        Way::Stale => Outcome { note: " (stale)", ..plain(kernel.perform(caller, call, true)) },
        Way::Fails(errno) => Outcome { note: " (injected, not applied)", ..plain(failed(errno)) },
        Way::AppliedBut(errno) => match kernel.perform(caller, call, false) {
            // What failed by itself tells the truth.
            answer @ Answer::Failed(_) => plain(answer),
            Answer::Opened(fd) => {
                kernel.close(caller.lane, fd);
                Outcome { note: " (applied)", ..plain(failed(errno)) }
            }
            _ => Outcome { note: " (applied)", ..plain(failed(errno)) },
        },
        Way::Torn => Outcome { note: " (torn)", ..plain(kernel.tear(caller, call)) },
        Way::Late => {
            Outcome { late: true, note: " (may be applied later)", ..plain(failed(Errno::IO)) }
        }
        Way::DiesFirst => {
            Outcome { died: true, note: " (dies before it is applied)", ..plain(Answer::Done) }
        }
        Way::ThenDies => {
            let answer = kernel.perform(caller, call, false);
            Outcome { died: true, note: " (applied, then dies)", ..plain(answer) }
        }
    }
}
