//! Why a lock could not be taken in one's turn, or handed to one who waits.

use std::fmt;

use jvs_repo::code::{Code, Coded, Layer, Layered};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

use super::acquire::AcquireError;
use super::take::{conflict, frozen, view_details};
use crate::queue::CircleStep;
use crate::span::Span;
use crate::view::{StatusWord, View};

/// Why a lock could not be taken in one's turn.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// It was one's turn, or nobody waits.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// Others wait for it, and it is not this session's turn.
    #[error("{}", in_line(*ahead, *waited_ms, view))]
    InLine {
        /// How many are in front.
        ahead: usize,
        /// How long was waited; `None` if nobody meant to wait.
        waited_ms: Option<u64>,
        /// What was seen.
        view: Box<View>,
    },
    /// Those who hold what is waited for wait for this session, and nobody of them would
    /// ever get on. Of them all this wait is the newest.
    #[error("waiting for worktree '{worktree}' would never end{}", circle(steps))]
    Deadlock {
        /// The worktree.
        worktree: WorktreeName,
        /// How long was waited.
        waited_ms: u64,
        /// Who waits for whom, beginning and ending with this session. Empty if it is a
        /// command of this very session that waits for this one.
        steps: Vec<CircleStep>,
    },
}

/// What keeps a session in line from getting it.
fn in_line(ahead: usize, waited_ms: Option<u64>, view: &View) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let Some(waited) = waited_ms else {
            write!(f, "worktree '{}' is not locked, but ", view.worktree)?;
            return match ahead {
                1 => write!(f, "another session waits for it already"),
                _ => write!(f, "{ahead} sessions wait for it already"),
            };
        };
        write!(f, "gave up after {}: ", Span(waited))?;
        match ahead {
            0 => {}
            1 => write!(f, "one session is still ahead in line; ")?,
            _ => write!(f, "{ahead} sessions are still ahead in line; ")?,
        }
        match view.word() {
            StatusWord::Free => write!(f, "worktree '{}' is free", view.worktree),
            StatusWord::Frozen => write!(f, "{}", frozen(view)),
            _ => write!(f, "{}", conflict(view)),
        }
    })
}

fn is_frozen(view: &View) -> bool {
    view.word() == StatusWord::Frozen
}

/// Who waits for whom.
fn circle(steps: &[CircleStep]) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        if steps.is_empty() {
            write!(f, ": this command was started by a run of this session that has it to itself")?;
        }
        for (at, step) in steps.iter().enumerate() {
            let (mark, what) = if at == 0 { (":", "it") } else { (";", "that") };
            match (step.mine, steps.get(at + 1)) {
                (false, Some(next)) => write!(
                    f,
                    "{mark} session {} holds {what} and waits for worktree '{}'",
                    step.held_by, next.worktree
                )?,
                _ => write!(f, ", which this session holds")?,
            }
        }
        Ok(())
    })
}

impl Layered for TurnError {
    fn layer(&self) -> Layer<'_> {
        match self {
            TurnError::Acquire(error) => Layer::Below(error),
            // A freeze is told as one, however long was waited.
            TurnError::InLine { waited_ms: Some(_), view, .. } if is_frozen(view) => {
                Layer::Own(Code::LockFrozen)
            }
            TurnError::InLine { .. } => Layer::Own(Code::LockConflict),
            TurnError::Deadlock { .. } => Layer::Own(Code::Deadlock),
        }
    }

    fn own_next(&self) -> Option<Next> {
        Some(match self {
            TurnError::Acquire(_) => return None,
            TurnError::InLine { waited_ms: None, view, .. } => {
                Next::StandInLine(view.worktree.clone())
            }
            TurnError::InLine { waited_ms: Some(_), view, .. } if is_frozen(view) => {
                Next::AwaitThawOrWhy(view.worktree.clone())
            }
            TurnError::InLine { waited_ms: Some(_), view, .. } => {
                Next::WaitLongerOrWhy(view.worktree.clone())
            }
            TurnError::Deadlock { worktree, steps, .. } => match steps.last() {
                Some(CircleStep { worktree: own, within: true, .. }) => {
                    Next::RunWithBoth(own.clone(), worktree.clone())
                }
                Some(CircleStep { worktree: own, .. }) => {
                    Next::TakeBoth(own.clone(), worktree.clone())
                }
                None => Next::Join,
            },
        })
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            TurnError::Acquire(_) => None,
            TurnError::InLine { ahead, waited_ms, view } => {
                let mut details = view_details(view);
                details["ahead"] = json!(ahead);
                details["waited_ms"] = json!(waited_ms);
                let word = if is_frozen(view) { "LOCK_FROZEN" } else { "LOCK_HELD" };
                details["reason"] = json!(word);
                Some(details)
            }
            TurnError::Deadlock { worktree, waited_ms, steps } => Some(json!({
                "worktree": worktree,
                "waited_ms": waited_ms,
                "reason": "DEADLOCK",
                "cycle": steps.iter().map(|step| json!({
                    "session_id": step.waits,
                    "waits_for": step.worktree,
                    "held_by": step.held_by,
                })).collect::<Vec<_>>(),
            })),
        }
    }
}

/// Nobody of that session waits in line.
#[derive(Debug, thiserror::Error)]
#[error("{} for the lock of worktree '{worktree}'", does_not_wait(session.as_deref()))]
pub struct NoSuchWaiter {
    /// The worktree.
    pub worktree: WorktreeName,
    /// The session; `None` if anybody would do.
    pub session: Option<String>,
}

fn does_not_wait(session: Option<&str>) -> String {
    match session {
        Some(session) => format!("session {session} does not wait"),
        None => "no other session waits".to_owned(),
    }
}

impl Coded for NoSuchWaiter {
    fn code(&self) -> Code {
        Code::NotFound
    }

    fn next(&self) -> Option<Next> {
        let worktree = self.worktree.clone();
        Some(match &self.session {
            Some(session) => Next::HaveSessionWait(session.clone(), worktree),
            None => Next::Status(worktree),
        })
    }
}
