//! Which way there is to hold together everything that a run starts, and starting the
//! command in it.

use std::io;
use std::process::Command;

use jvs_repo::code::{Code, Coded};
use jvs_repo::next::Next;
use jvs_repo::proc;

use super::child::{Child, RunControl};
use crate::args::Contain;
use crate::fail::{Failure, WrongUsage};
use crate::tree::{Cgroup, Containment};

/// Starts the command, held together as wanted. Also answers, for each better way that
/// was tried, why it could not be used.
pub(super) fn start(
    command: &mut Command,
    wanted: Contain,
    leave_background: bool,
    control: &RunControl<'_>,
) -> Result<(Child, Vec<String>), Failure> {
    let mut passed_over = Vec::new();
    for way in ways(wanted, leave_background, rustix::process::geteuid().is_root()) {
        let hold = match way {
            Contain::Cgroup => Cgroup::make().map(Containment::Cgroup),
            Contain::Pidns => Ok(Containment::Namespace),
            Contain::Reap | Contain::Auto => Ok(Containment::Reaper),
        };
        match hold.and_then(|hold| in_hold(command, hold, control)) {
            Ok(child) => return Ok((child, passed_over)),
            Err(error) if wanted == Contain::Auto && *way != Contain::Reap => {
                passed_over.push(format!("no {way}: {error}"));
            }
            Err(error) => return Err(CannotContain { way: *way, error }.into()),
        }
    }
    Err(CannotContain { way: wanted, error: io::ErrorKind::Unsupported.into() }.into())
}

fn in_hold(
    command: &mut Command,
    hold: Containment,
    control: &RunControl<'_>,
) -> io::Result<Child> {
    let cgroup = match &hold {
        Containment::Cgroup(cgroup) => Some(cgroup.clone()),
        Containment::Namespace | Containment::Reaper => None,
    };
    let started = Child::start(command, hold, control);
    if let (Err(_), Some(cgroup)) = (&started, cgroup) {
        cgroup.remove();
    }
    started
}

/// The best first. A PID namespace is not made for the process that would need a user namespace
/// for it, unless it is asked for: in one `sudo` fails, and files of others look like
/// nobody's.
fn ways(wanted: Contain, leave_background: bool, root: bool) -> &'static [Contain] {
    match wanted {
        Contain::Auto if root && !leave_background => {
            &[Contain::Cgroup, Contain::Pidns, Contain::Reap]
        }
        Contain::Auto => &[Contain::Cgroup, Contain::Reap],
        Contain::Cgroup => &[Contain::Cgroup],
        Contain::Pidns => &[Contain::Pidns],
        Contain::Reap => &[Contain::Reap],
    }
}

/// What cannot be had together.
pub(super) fn check(wanted: Contain, leave_background: bool) -> Result<(), Failure> {
    if proc::pid_namespace().is_none() {
        return Err(CannotWatch.into());
    }
    if leave_background && wanted == Contain::Pidns {
        let message = "a PID namespace ends with the command, and so does everything in it";
        let hint = "use `--leave-background` with `--contain auto`, or without it";
        return Err(WrongUsage::new(message, hint).into());
    }
    Ok(())
}

/// Nothing that is started could be told from other processes.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot watch over a command: /proc is not there or shows the processes of another PID \
     namespace"
)]
struct CannotWatch;

impl Coded for CannotWatch {
    fn code(&self) -> Code {
        Code::Io
    }

    fn next(&self) -> Option<Next> {
        Some("mount the one of this namespace first: mount -t proc proc /proc".into())
    }
}

/// What was started could not be held together as it was asked for.
#[derive(Debug, thiserror::Error)]
#[error("cannot give the command {}: {error}", self.what())]
struct CannotContain {
    way: Contain,
    #[source]
    error: io::Error,
}

impl CannotContain {
    fn what(&self) -> &'static str {
        match self.way {
            Contain::Cgroup => "a cgroup of its own",
            Contain::Pidns => "a PID namespace of its own",
            Contain::Reap | Contain::Auto => "a guardian",
        }
    }
}

impl Coded for CannotContain {
    fn code(&self) -> Code {
        Code::Io
    }

    fn next(&self) -> Option<Next> {
        Some("have the best way chosen that there is: --contain auto; nothing was run".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_used_or_refused_and_the_rest_is_the_best_there_is() {
        use Contain::{Auto, Cgroup, Pidns, Reap};
        assert_eq!(ways(Auto, false, true), [Cgroup, Pidns, Reap]);
        assert_eq!(ways(Auto, false, false), [Cgroup, Reap], "no user namespace unasked");
        assert_eq!(ways(Auto, true, true), [Cgroup, Reap], "a namespace leaves nobody");
        for way in [Cgroup, Pidns, Reap] {
            assert_eq!(ways(way, false, false), [way]);
        }
        assert!(check(Pidns, true).is_err());
        assert!(check(Auto, true).is_ok() && check(Pidns, false).is_ok());
    }
}
