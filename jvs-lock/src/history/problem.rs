//! What may not add up, and what explains it.

use std::fmt;

use jvs_repo::audit::{Flaw, LogName};
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use super::logs::LogLine;

const CRASH: &str = "a crash";

/// Something that does not add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum Problem {
    /// A line is not as it was written.
    Line {
        /// The line of the log.
        place: LogLine,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// An event names register states that cannot be read.
    NotAState {
        /// The line of the log.
        place: LogLine,
    },
    /// An event's new state does not follow from its old one.
    BadLink {
        /// The line of the log.
        place: LogLine,
        /// The new state.
        to: String,
    },
    /// States are missing from the history, and lost renewals do not explain it.
    Gap {
        /// The worktree.
        worktree: WorktreeName,
        /// The last state before the gap, if any is known.
        after: Option<String>,
        /// The first state after it.
        before: String,
    },
    /// A transition that must be announced was not.
    Unannounced {
        /// The worktree.
        worktree: WorktreeName,
        /// The state it led to.
        to: String,
    },
    /// A log does not go on after what it says: one of the two was changed or put there.
    Spliced {
        /// Where it says so.
        place: LogLine,
        /// The other log.
        after: LogName,
    },
    /// The log that another one goes on after is neither there nor known to be dropped.
    LogMissing {
        /// Where the other one says so.
        place: LogLine,
        /// The log.
        after: LogName,
    },
    /// Lines are missing from an anchor.
    AnchorCut {
        /// Its last line.
        place: LogLine,
    },
    /// An event says it was done, but the history does not contain it.
    NotInHistory {
        /// The line of the log.
        place: LogLine,
        /// The state it claims.
        to: String,
    },
    /// Two states of one place in the history: somebody wrote to the register itself.
    Forged {
        /// The worktree.
        worktree: WorktreeName,
        /// What the register went on from, or shows.
        state: String,
        /// What was there by the word of a log.
        instead: String,
        /// Where that word stands.
        place: LogLine,
    },
    /// A step that no operation makes: a token or a number of commits that falls or
    /// leaps, a head that moved without a commit, a holder who was not granted it.
    Unlawful {
        /// The worktree.
        worktree: WorktreeName,
        /// The state before.
        from: String,
        /// The state after.
        to: String,
        /// What is wrong with it.
        why: Wrong,
    },
    /// A register that is behind what was reached.
    SetBack {
        /// The worktree.
        worktree: WorktreeName,
        /// Where it is.
        state: String,
        /// What was reached.
        reached: String,
        /// Where that is said.
        place: LogLine,
    },
    /// Renewals that a power cut took from the register. A crash explains it.
    LostRenewals {
        /// The worktree.
        worktree: WorktreeName,
        /// The renewal that was lost.
        lost: String,
        /// Where it is told.
        place: LogLine,
    },
    /// A release that was made although the volume had no room for its event, and says
    /// so itself.
    UntoldRelease {
        /// The worktree.
        worktree: WorktreeName,
        /// The state it led to.
        to: String,
    },
    /// Renewals whose event was lost with their process. A crash explains it.
    UnloggedRenewals {
        /// The worktree.
        worktree: WorktreeName,
        /// How many.
        count: u64,
        /// The state after them.
        before: String,
    },
}

impl Problem {
    /// Could a log that cannot be read hold what is missing?
    pub fn is_of_absence(&self) -> bool {
        matches!(
            self,
            Problem::Gap { .. } | Problem::Unannounced { .. } | Problem::LogMissing { .. }
        )
    }

    /// Was the register itself written to? Then whose it is, it cannot be trusted.
    pub fn of_register(&self) -> Option<&WorktreeName> {
        match self {
            Problem::Forged { worktree, .. }
            | Problem::Unlawful { worktree, .. }
            | Problem::SetBack { worktree, .. } => Some(worktree),
            _ => None,
        }
    }

    /// What explains it without anybody's ill will, if anything does.
    pub fn explained_by(&self) -> Option<&'static str> {
        match self {
            Problem::Line { flaw, .. } => flaw.is_crash().then_some(CRASH),
            Problem::UnloggedRenewals { .. } | Problem::LostRenewals { .. } => Some(CRASH),
            Problem::UntoldRelease { .. } => Some("a full volume"),
            _ => None,
        }
    }

    /// Can crashes alone explain it?
    pub fn is_crash(&self) -> bool {
        self.explained_by() == Some(CRASH)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Line { place, flaw } => match flaw {
                Flaw::TornEnd | Flaw::TornInside => write!(f, "{place} was cut short by a crash"),
                Flaw::BrokenLink => write!(
                    f,
                    "{place} does not follow from the lines before it: it, or one before it, was \
                     changed, removed or moved"
                ),
                Flaw::Unreadable => write!(f, "{place} is not an event"),
                Flaw::TooLong => write!(f, "{place} is longer than an event can be"),
            },
            Problem::NotAState { place } => write!(f, "{place} names an invalid state"),
            Problem::BadLink { place, to } => {
                write!(f, "{place} leads to a state that does not follow from the one before: {to}")
            }
            Problem::Gap { worktree, after: Some(after), before } => write!(
                f,
                "the history of worktree '{worktree}' has a gap between {after} and {before}"
            ),
            Problem::Gap { worktree, after: None, before } => {
                write!(f, "the history of worktree '{worktree}' before {before} is missing")
            }
            Problem::Unannounced { worktree, to } => {
                write!(f, "no event announces the change of worktree '{worktree}' to {to}")
            }
            Problem::Spliced { place, after } => write!(
                f,
                "{place} says what log {after} ended with, and it ends otherwise: one of the two \
                 was changed"
            ),
            Problem::LogMissing { place, after } => {
                write!(f, "log {after} is missing, which {place} goes on after")
            }
            Problem::AnchorCut { place } => {
                write!(f, "lines of log {} were removed: it ends with {place}", place.log)
            }
            Problem::NotInHistory { place, to } => write!(
                f,
                "{place} says that {to} was reached, but the register's history does not have it"
            ),
            Problem::UnloggedRenewals { worktree, count, .. } => write!(
                f,
                "{count} renewal(s) of worktree '{worktree}' have no event: their process died first"
            ),
            Problem::UntoldRelease { worktree, to } => write!(
                f,
                "worktree '{worktree}' was released without an event, because the volume was \
                 full: {to}"
            ),
            Problem::Forged { worktree, state, instead, place } => write!(
                f,
                "somebody wrote to the register of worktree '{worktree}': it continued from {state}, \
                 but {place} has {instead} in that place"
            ),
            Problem::Unlawful { worktree, from, to, why } => {
                write!(f, "no operation leads worktree '{worktree}' from {from} to {to}: {why}")
            }
            Problem::SetBack { worktree, state, reached, place } => write!(
                f,
                "the register of worktree '{worktree}' is at {state}, but {place} says that \
                 {reached} was reached: it was rolled back"
            ),
            Problem::LostRenewals { lost, place, .. } => {
                write!(f, "{place} records a renewal that the register lost in a power cut: {lost}")
            }
        }
    }
}

/// What is wrong with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Wrong {
    /// The token falls.
    TokenFell,
    /// The token leaps.
    TokenLeapt,
    /// The number of commits falls.
    CommitsFell,
    /// The number of commits leaps, or rises without a head.
    CommitsLeapt,
    /// The head moves without a commit.
    HeadMoved,
    /// Somebody holds it without a token of their own.
    NotGranted,
    /// It goes on after its end.
    NotRetired,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrong::TokenFell => "the token decreases",
            Wrong::TokenLeapt => "the token skips a number",
            Wrong::CommitsFell => "the number of commits decreases",
            Wrong::CommitsLeapt => "the number of commits skips a number",
            Wrong::HeadMoved => "the head moves without a commit",
            Wrong::NotGranted => "the holder changes under the same token",
            Wrong::NotRetired => "it continues after it was retired",
        })
    }
}
