//! What can go wrong with a command under a lock.

use jvs_repo::code::{Code, Coded};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

use crate::fail::Failure;
use crate::tree::{Member, listed};

/// The command could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {command}: {error}")]
pub(super) struct CannotRun {
    pub(super) command: String,
    #[source]
    pub(super) error: std::io::Error,
}

impl CannotRun {
    /// Ends as a shell does: 127 for what is not there, 126 for what is there and
    /// cannot be executed.
    pub(super) fn failure(self) -> Failure {
        let exit = match self.error.kind() {
            std::io::ErrorKind::NotFound => 127,
            _ => 126,
        };
        Failure::from(self).exiting_with(exit)
    }
}

impl Coded for CannotRun {
    fn code(&self) -> Code {
        Code::Io
    }

    fn next(&self) -> Option<Next> {
        Some("check the command's name and that it may be executed; the lock was released".into())
    }
}

/// A command's lease was lost.
#[derive(Debug, thiserror::Error)]
#[error("the lock of worktree '{worktree}' was lost, {}: {why}", self.how_told())]
pub(super) struct LostLease {
    pub(super) worktree: WorktreeName,
    pub(super) why: String,
    pub(super) exit: u8,
    /// Was it noticed in time to stop it, or only once it had ended by itself?
    pub(super) stopped: bool,
    /// Who could not be ended.
    pub(super) left: Vec<Member>,
}

impl LostLease {
    fn how_told(&self) -> String {
        match &self.left[..] {
            [] if !self.stopped => "noticed when the command had ended".to_owned(),
            [] => "so the command was stopped".to_owned(),
            left => format!("and {} could not be ended", listed(left)),
        }
    }
}

impl Coded for LostLease {
    fn code(&self) -> Code {
        Code::FencingMismatch
    }

    fn next(&self) -> Option<Next> {
        Some(Next::Why(self.worktree.clone()))
    }

    fn details(&self) -> Option<serde_json::Value> {
        Some(json!({
            "worktree": self.worktree,
            "lost": self.why,
            "child_exit": self.exit,
            "not_ended": self.left,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jvs_repo::proc;

    #[test]
    fn only_what_is_gone_is_said_to_be_stopped() {
        let me = proc::process(std::process::id()).expect("it runs");
        let worktree = WorktreeName::main();
        let (why, exit) = ("w".to_owned(), 1);
        let lost = |left| {
            let (worktree, why) = (worktree.clone(), why.clone());
            LostLease { worktree, why, exit, stopped: true, left }
        };
        assert!(lost(Vec::new()).to_string().contains("so the command was stopped"));
        let told = lost(vec![Member::from(&me)]).to_string();
        assert!(!told.contains("was stopped"), "{told}");
        assert!(told.contains(&format!("({}) could not be ended", me.pid)), "{told}");
    }
}
