//! Why a lock could not be taken from whoever has it.

use std::fmt;

use jvs_repo::clock::WallMs;
use jvs_repo::code::{Code, Coded, Layer, Layered};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

use super::register::RegisterError;
use crate::judge::{Evidence, Judgement, Method, Standing};
use crate::legacy::Legacy;
use crate::record::FoundRecord;
use crate::span::Span;
use crate::state::Hold;
use crate::view::{StatusWord, View};

/// Why a lock could not be taken from whoever has it: to hold, to freeze or to retire it,
/// or to share the worktree.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// The register, whatever was wanted of it.
    #[error(transparent)]
    Register(RegisterError),
    /// Another session holds it.
    #[error("{}", conflict(.0))]
    Conflict(Box<View>),
    /// An operator froze it.
    #[error("{}", frozen(.0))]
    Frozen(Box<View>),
    /// Another session holds it, and its lease is over by a clock of another host.
    /// Nobody has watched it for long enough to believe that.
    #[error("{}", unproven(.0))]
    Unproven(Box<View>),
    /// The clocks disagree.
    #[error("{}", skew(view, *max_clock_skew_ms))]
    ClockSkew {
        /// What was seen.
        view: Box<View>,
        /// What the policy allows.
        max_clock_skew_ms: u64,
    },
    /// A lock of another tool, which may still be at work.
    #[error("{}", of_legacy(worktree, legacy, *now))]
    Legacy {
        /// The worktree.
        worktree: WorktreeName,
        /// The lock.
        legacy: Box<Legacy>,
        /// This host's wall clock when it was seen.
        now: WallMs,
    },
    /// Its name is reserved, and it is not made yet.
    #[error("worktree '{worktree}' is not created yet")]
    NotMade {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// Its epoch has just begun: a waiter leaves it to the session that held it before.
    #[error("worktree '{worktree}' has just been brought back")]
    JustBegun {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// The worktree was removed.
    #[error(transparent)]
    Retired(#[from] WasRemoved),
}

impl TakeOverError {
    /// The refusal because of a lock of another tool, which `view` has seen.
    pub(crate) fn of_other_tool(view: &View) -> Self {
        match &view.foreign {
            Some(legacy) => TakeOverError::Legacy {
                worktree: view.worktree.clone(),
                legacy: Box::new(legacy.clone()),
                now: view.at.wall,
            },
            None => RegisterError::internal("a lock of another tool was seen").into(),
        }
    }

    /// Is this a refusal that time may lift?
    pub fn is_worth_waiting(&self) -> bool {
        match self {
            TakeOverError::Conflict(_)
            | TakeOverError::Frozen(_)
            | TakeOverError::ClockSkew { .. }
            | TakeOverError::Unproven(_)
            | TakeOverError::JustBegun { .. }
            | TakeOverError::Legacy { .. } => true,
            TakeOverError::Register(_)
            | TakeOverError::NotMade { .. }
            | TakeOverError::Retired(_) => false,
        }
    }
}

/// The worktree was removed.
#[derive(Debug, thiserror::Error)]
#[error("worktree '{worktree}' was removed")]
pub struct WasRemoved {
    /// The worktree.
    pub worktree: WorktreeName,
}

impl Coded for WasRemoved {
    fn code(&self) -> Code {
        Code::NotFound
    }

    fn next(&self) -> Option<Next> {
        Some(Next::ListWorktrees)
    }
}

impl Layered for TakeOverError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            TakeOverError::Register(error) => return Layer::Below(error),
            TakeOverError::Retired(error) => return Layer::Below(error),
            TakeOverError::Conflict(_)
            | TakeOverError::Unproven(_)
            | TakeOverError::JustBegun { .. }
            | TakeOverError::Legacy { .. } => Code::LockConflict,
            TakeOverError::Frozen(_) => Code::LockFrozen,
            TakeOverError::ClockSkew { .. } => Code::ClockSkewExceeded,
            TakeOverError::NotMade { .. } => Code::NotFound,
        })
    }

    fn own_next(&self) -> Option<Next> {
        let stealable_in = |view: &View| view.judgement.as_ref().map_or(0, |it| it.stealable_in_ms);
        Some(match self {
            TakeOverError::Register(_) | TakeOverError::Retired(_) => return None,
            TakeOverError::Conflict(view) if view.word() == StatusWord::Expired => {
                Next::TryLaterOrWhy(stealable_in(view), view.worktree.clone())
            }
            TakeOverError::Conflict(view) => next_in_conflict(view),
            TakeOverError::Legacy { worktree, legacy, .. } => match legacy.ends {
                Some(_) => Next::AwaitOtherTool(worktree.clone(), legacy.path.clone()),
                None => format!(
                    "it ends only when that tool releases it; if the tool is gone for good, in the \
                     repository's root: rm {}",
                    legacy.path
                )
                .into(),
            },
            TakeOverError::Unproven(view) => {
                Next::Watch(view.judgement.as_ref().map_or(0, |judged| judged.watch_ms))
            }
            TakeOverError::Frozen(view) if is_over_by_a_doubtful_clock(view) => {
                Next::SteerClockOrUnfreeze(view.worktree.clone())
            }
            TakeOverError::Frozen(view) => Next::AwaitThawOrWhy(view.worktree.clone()),
            TakeOverError::ClockSkew { view, .. } => {
                Next::SetClocksOrObserve(view.worktree.clone())
            }
            TakeOverError::NotMade { worktree } => Next::FindWorktree(worktree.clone()),
            TakeOverError::JustBegun { worktree } => Next::WaitOrWhy(worktree.clone()),
        })
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            TakeOverError::Conflict(view) | TakeOverError::Frozen(view) => Some(view_details(view)),
            TakeOverError::Unproven(view) => {
                let mut details = view_details(view);
                details["watch_ms"] = json!(view.judgement.as_ref().map(|judged| judged.watch_ms));
                Some(details)
            }
            TakeOverError::Legacy { worktree, legacy, now } => {
                Some(legacy_details(worktree, legacy, *now))
            }
            TakeOverError::ClockSkew { view, max_clock_skew_ms } => {
                let mut details = view_details(view);
                details["max_clock_skew_ms"] = json!(max_clock_skew_ms);
                if let Some(judged) = &view.judgement {
                    details["observed_skew_ms"] = json!(judged.observed_skew_ms);
                    details["evidence"] = json!(judged.evidence);
                }
                Some(details)
            }
            TakeOverError::Register(_)
            | TakeOverError::NotMade { .. }
            | TakeOverError::JustBegun { .. }
            | TakeOverError::Retired(_) => None,
        }
    }
}

pub(super) fn next_in_conflict(view: &View) -> Next {
    let wait = Next::WaitOrWhy(view.worktree.clone());
    match view.holder().advice() {
        Some(advice) => advice.or(wait),
        None => wait,
    }
}

/// Held by whom, since when, for how long, until when.
pub(super) fn conflict(view: &View) -> impl fmt::Display {
    fmt::from_fn(move |f| conflict_sentence(f, view))
}

fn conflict_sentence(f: &mut fmt::Formatter<'_>, view: &View) -> fmt::Result {
    if let Some(legacy) = view.held_by_other_tool() {
        return f.write_str(&legacy.sentence(&view.worktree, view.at.wall));
    }
    write!(f, "worktree '{}' is locked by ", view.worktree)?;
    let holder = view.holder();
    match (view.record(), view.state.hold.claim()) {
        (None, Some(claim))
            if matches!(view.found, FoundRecord::Nothing | FoundRecord::Record(_)) =>
        {
            write!(f, "holder {}", claim.holder)?;
        }
        _ => f.write_str(&holder.who())?,
    }
    if let Some((since, ms)) = holder.since().zip(holder.held_ms()) {
        write!(f, " since {}, for {}", since.shown(), Span(ms))?;
    }
    match (view.word(), &view.judgement) {
        (StatusWord::Expired, Some(judged)) => {
            write!(f, "; its lease is over and it can be taken in {}", Span(judged.stealable_in_ms))
        }
        _ => write!(f, ", {}", holder.until()),
    }?;
    if let Some(note) = holder.note() {
        write!(f, ": \"{note}\"")?;
    }
    // A session that is kept out by a wrong clock is told which clock, and how far it is off.
    let doubt = view.judgement.as_ref().and_then(widest);
    match doubt.filter(|evidence| evidence.lower_bound_ms() > WORTH_TELLING_MS) {
        Some(evidence) => write!(f, "; but {evidence}"),
        None => Ok(()),
    }
}

/// A disagreement of clocks that is worth a word to one who is refused anyway.
const WORTH_TELLING_MS: u64 = 2_000;

/// Until when it is frozen, and why.
pub(super) fn frozen(view: &View) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        write!(f, "worktree '{}' is frozen", view.worktree)?;
        if let Some(expires) = view.expires() {
            let more = Span(view.remaining_ms());
            write!(f, " until {} (for {more} more)", expires.shown())?;
        }
        if let Some(note) = view.record().and_then(|record| record.note.as_deref()) {
            write!(f, ": {note}")?;
        }
        match is_over_by_a_doubtful_clock(view) {
            true => write!(
                f,
                "; by this host's clock the freeze is over, but nothing synchronises that clock"
            ),
            false => Ok(()),
        }
    })
}

/// Is it a freeze whose time is over by a wall clock that nobody vouches for?
fn is_over_by_a_doubtful_clock(view: &View) -> bool {
    let over = |judged: &Judgement| {
        judged.method == Method::WallClock
            && judged.standing == Standing::Expired
            && judged.evidence.contains(&Evidence::Unsynchronised)
    };
    matches!(view.state.hold, Hold::Frozen(_)) && view.judgement.as_ref().is_some_and(over)
}

/// By whose word it is over, and what is missing to believe it.
fn unproven(view: &View) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let judged = view.judgement.as_ref();
        let over = view.expires().map_or(0, |expires| view.at.wall.since(expires));
        write!(f, "worktree '{}' looks abandoned", view.worktree)?;
        if view.record().is_some() {
            write!(f, " by {}", view.holder().who())?;
        }
        write!(
            f,
            ": by this host's wall clock its lease ended {} ago; its holder's may say otherwise, \
             and it was not watched for long enough to tell ({} more are needed)",
            Span(over),
            Span(judged.map_or(0, |judged| judged.watch_ms))
        )
    })
}

/// How far clocks are apart, and by whose word.
fn skew(view: &View, allowed_ms: u64) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let judged = view.judgement.as_ref();
        let observed = judged.map_or(0, |judged| judged.observed_skew_ms);
        write!(
            f,
            "the clocks of this host and of the holder of worktree '{}' are at least {} apart ({} \
             allowed)",
            view.worktree,
            Span(observed),
            Span(allowed_ms)
        )?;
        judged.and_then(widest).map_or(Ok(()), |evidence| write!(f, ": {evidence}"))
    })
}

fn widest(judged: &Judgement) -> Option<&Evidence> {
    judged.evidence.iter().max_by_key(|evidence| evidence.lower_bound_ms())
}

/// The lock of another tool, over by its own end or not.
fn of_legacy(worktree: &WorktreeName, legacy: &Legacy, now: WallMs) -> impl fmt::Display {
    // Over by its own end, and still within the margin for clocks.
    let doubt = legacy.ends.is_some_and(|ends| ends < now);
    let sentence = legacy.sentence(worktree, now);
    sentence + if doubt { ", and clocks may differ" } else { "" }
}

pub(super) fn view_details(view: &View) -> serde_json::Value {
    if let Some(legacy) = view.held_by_other_tool() {
        return legacy_details(&view.worktree, legacy, view.at.wall);
    }
    let record = view.record();
    let reason = match view.word() {
        StatusWord::Held | StatusWord::Expired => Some("LOCK_HELD"),
        StatusWord::Frozen => Some("LOCK_FROZEN"),
        StatusWord::Stealable => Some("LOCK_EXPIRED"),
        StatusWord::Free | StatusWord::Retired => None,
    };
    let mut details = json!({
        "worktree": view.worktree,
        "state": view.word(),
        "holder_id": record.map(|r| &r.holder_id),
        "session_id": record.map(|r| &r.session_id),
        "since": record.map(|r| &r.created_at),
        "lease_expires_at": view.expires().map(|expires| expires.rfc3339()),
        "remaining_ms": view.remaining_ms(),
        "stealable_in_ms": view.judgement.as_ref().map(|judged| judged.stealable_in_ms),
        "fencing_token": view.state.token,
        "reason": reason,
        "observed_skew_ms": view.judgement.as_ref().map(|judged| judged.observed_skew_ms),
    });
    view.holder().add_to(&mut details);
    details
}

fn legacy_details(worktree: &WorktreeName, legacy: &Legacy, now: WallMs) -> serde_json::Value {
    json!({
        "worktree": worktree,
        "state": StatusWord::Held,
        "holder_id": legacy.owner,
        "session_id": null,
        "since": legacy.since.rfc3339(),
        "lease_expires_at": legacy.ends.map(|ends| ends.rfc3339()),
        "remaining_ms": legacy.ends.map(|ends| ends.since(now)),
        "fencing_token": null,
        "reason": "LOCK_HELD",
        "legacy": legacy,
    })
}
