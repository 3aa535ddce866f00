//! What can go wrong with a lock, each with its code, a sentence and the next
//! command to run.

mod birth;
mod register;

use std::fmt;

use jvs_repo::clock::WallMs;
use jvs_repo::code::{Code, Layer, Layered};
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use serde_json::json;

pub use self::birth::BirthError;
pub use self::register::{OfRegister, RegisterError};
use crate::hold::HoldRefusal;
use crate::judge::{Evidence, Judgement, Method, Standing};
use crate::legacy::Legacy;
use crate::policy::Act;
use crate::queue::CircleStep;
use crate::reclaim::WhyNot;
use crate::record::FoundRecord;
use crate::register::ReadError;
use crate::span::Span;
use crate::state::Hold;
use crate::view::{StatusWord, View};

/// Why an operation on a lock failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The register, whatever was wanted of it.
    #[error(transparent)]
    Register(#[from] RegisterError),
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
    /// A live holder, and no rule that allows to overrule it.
    #[error("{}; {}: {why_not}", conflict(view), cannot(*act))]
    ReclaimDenied {
        /// What was seen.
        view: Box<View>,
        /// What was asked for.
        act: Act,
        /// Which rules there are and why none applies.
        why_not: WhyNot,
    },
    /// The repository names who may, and this user is not among them.
    #[error(
        "worktree '{worktree}': only those named in policy.admins ({admins}) may {doing}, and {} \
         not one of them",
        who(*uid)
    )]
    NotAdmin {
        /// The worktree.
        worktree: WorktreeName,
        /// What was asked for.
        doing: &'static str,
        /// Those who may.
        admins: String,
        /// Who asked.
        uid: Option<u32>,
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
    /// There is no freeze to lift.
    #[error("worktree '{worktree}' is not frozen")]
    NotFrozen {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// Nobody of that session waits in line.
    #[error("session {session} does not wait for the lock of worktree '{worktree}'")]
    NoSuchWaiter {
        /// The worktree.
        worktree: WorktreeName,
        /// The session.
        session: String,
    },
    /// The clocks disagree.
    #[error("{}", skew(view, *max_clock_skew_ms))]
    ClockSkew {
        /// What was seen.
        view: Box<View>,
        /// What the policy allows.
        max_clock_skew_ms: u64,
    },
    /// This session does not hold it.
    #[error("{}", not_held(view))]
    NotHeld {
        /// What was seen.
        view: Box<View>,
    },
    /// This session's hold was taken over.
    #[error(
        "the lock of worktree '{worktree}' was taken over: this session held token {token}, the \
         token is now {current}"
    )]
    Fenced {
        /// The worktree.
        worktree: WorktreeName,
        /// The token that this session held.
        token: FencingToken,
        /// The token now.
        current: FencingToken,
    },
    /// The lease ran out before it was renewed.
    #[error("the lease of worktree '{worktree}' (token {token}) ran out {} ago", Span(*since_ms))]
    Expired {
        /// The worktree.
        worktree: WorktreeName,
        /// The token of the hold.
        token: FencingToken,
        /// How long ago, on this host's boot-time clock.
        since_ms: u64,
    },
    /// Its name is reserved, and it is not made yet.
    #[error("worktree '{worktree}' is not created yet")]
    NotMade {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// The worktree was removed.
    #[error("worktree '{worktree}' was removed")]
    Retired {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// The head is not the parent that a commit was built on.
    #[error("{}", moved_head(worktree, *current))]
    HeadMoved {
        /// The worktree.
        worktree: WorktreeName,
        /// The head now.
        current: Option<SnapshotId>,
    },
    /// A value that cannot be used.
    #[error("{problem}")]
    Invalid {
        /// What is wrong with it.
        problem: String,
    },
    /// The session says no to itself.
    #[error(transparent)]
    Hold(Box<HoldRefusal>),
}

impl LockError {
    /// The refusal because of a lock of another tool, which `view` has seen.
    pub(crate) fn of_other_tool(view: &View) -> Self {
        match &view.foreign {
            Some(legacy) => LockError::Legacy {
                worktree: view.worktree.clone(),
                legacy: Box::new(legacy.clone()),
                now: view.at.wall,
            },
            None => RegisterError::internal("a lock of another tool was seen").into(),
        }
    }
}

impl From<ReadError> for LockError {
    fn from(error: ReadError) -> Self {
        LockError::Register(error.into())
    }
}

impl OfRegister for LockError {
    fn of_register(&self) -> Option<&RegisterError> {
        match self {
            LockError::Register(error) => Some(error),
            _ => None,
        }
    }
}

impl From<HoldRefusal> for LockError {
    fn from(refusal: HoldRefusal) -> Self {
        LockError::Hold(Box::new(refusal))
    }
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
            _ => write!(f, "{}", conflict(view)),
        }
    })
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

/// Until when it is frozen, and why.
fn frozen(view: &View) -> impl fmt::Display {
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

/// Who has what this session does not.
fn not_held(view: &View) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        write!(f, "this session does not hold the lock of worktree '{}': ", view.worktree)?;
        match (view.word(), view.record()) {
            (StatusWord::Free, _) => write!(f, "it is free"),
            (StatusWord::Frozen, Some(_)) => write!(f, "it was frozen by {}", view.holder().who()),
            (_, Some(_)) => write!(f, "it is held by {}", view.holder().who()),
            (word, None) => write!(f, "it is {}", word.as_str()),
        }
    })
}

/// The lock of another tool, over by its own end or not.
fn of_legacy(worktree: &WorktreeName, legacy: &Legacy, now: WallMs) -> impl fmt::Display {
    // Over by its own end, and still within the margin for clocks.
    let doubt = legacy.ends.is_some_and(|ends| ends < now);
    let sentence = legacy.sentence(worktree, now);
    sentence + if doubt { ", and clocks may differ" } else { "" }
}

fn moved_head(worktree: &WorktreeName, current: Option<SnapshotId>) -> String {
    match current {
        Some(head) => format!("the head of worktree '{worktree}' is now {head}"),
        None => format!("worktree '{worktree}' has no head"),
    }
}

fn widest(judged: &Judgement) -> Option<&Evidence> {
    judged.evidence.iter().max_by_key(|evidence| evidence.lower_bound_ms())
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

/// Held by whom, since when, for how long, until when.
fn conflict(view: &View) -> impl fmt::Display {
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

/// Is it a freeze whose time is over by a wall clock that nobody vouches for?
fn is_over_by_a_doubtful_clock(view: &View) -> bool {
    let over = |judged: &Judgement| {
        judged.method == Method::WallClock
            && judged.standing == Standing::Expired
            && judged.evidence.contains(&Evidence::Unsynchronised)
    };
    matches!(view.state.hold, Hold::Frozen(_)) && view.judgement.as_ref().is_some_and(over)
}

impl Layered for LockError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            LockError::Register(error) => return Layer::Below(error),
            LockError::Hold(refusal) => return Layer::Below(&**refusal),
            LockError::Conflict(_)
            | LockError::Unproven(_)
            | LockError::InLine { .. }
            | LockError::ReclaimDenied { .. }
            | LockError::Legacy { .. } => Code::LockConflict,
            LockError::NotAdmin { .. } => Code::Permission,
            LockError::Deadlock { .. } => Code::Deadlock,
            LockError::Frozen(_) => Code::LockFrozen,
            LockError::ClockSkew { .. } => Code::ClockSkewExceeded,
            LockError::NotHeld { .. } | LockError::NotFrozen { .. } => Code::LockNotHeld,
            LockError::Fenced { .. } | LockError::HeadMoved { .. } => Code::FencingMismatch,
            LockError::Expired { .. } => Code::LockExpired,
            LockError::NotMade { .. }
            | LockError::Retired { .. }
            | LockError::NoSuchWaiter { .. } => Code::NotFound,
            LockError::Invalid { .. } => Code::Usage,
        })
    }

    fn own_next(&self) -> Option<Next> {
        let stealable_in = |view: &View| view.judgement.as_ref().map_or(0, |it| it.stealable_in_ms);
        Some(match self {
            LockError::Register(_) | LockError::Hold(_) => return None,
            LockError::Conflict(view) if view.word() == StatusWord::Expired => {
                Next::TryLaterOrWhy(stealable_in(view), view.worktree.clone())
            }
            LockError::Conflict(view) => next_in_conflict(view),
            LockError::NotAdmin { .. } => Next::AskAdmin,
            LockError::ReclaimDenied { view, why_not, .. } => match why_not.off.as_slice() {
                [] => next_in_conflict(view),
                _ => next_in_conflict(view).or(Next::AllowReclaim),
            },
            LockError::Legacy { worktree, legacy, .. } => match legacy.ends {
                Some(_) => Next::AwaitOtherTool(worktree.clone(), legacy.path.clone()),
                None => format!(
                    "it ends only when that tool releases it; if the tool is gone for good, in the \
                     repository's root: rm {}",
                    legacy.path
                )
                .into(),
            },
            LockError::NotFrozen { worktree } => Next::Status(worktree.clone()),
            LockError::NoSuchWaiter { worktree, session } => {
                Next::HaveSessionWait(session.clone(), worktree.clone())
            }
            LockError::InLine { waited_ms: None, view, .. } => {
                Next::StandInLine(view.worktree.clone())
            }
            LockError::InLine { waited_ms: Some(_), view, .. } => {
                Next::WaitLongerOrWhy(view.worktree.clone())
            }
            LockError::Deadlock { worktree, steps, .. } => match steps.last() {
                Some(CircleStep { worktree: own, within: true, .. }) => {
                    Next::RunWithBoth(own.clone(), worktree.clone())
                }
                Some(CircleStep { worktree: own, .. }) => {
                    Next::TakeBoth(own.clone(), worktree.clone())
                }
                None => Next::Join,
            },
            LockError::Unproven(view) => {
                Next::Watch(view.judgement.as_ref().map_or(0, |judged| judged.watch_ms))
            }
            LockError::Frozen(view) if is_over_by_a_doubtful_clock(view) => {
                Next::SteerClockOrUnfreeze(view.worktree.clone())
            }
            LockError::Frozen(view) => Next::AwaitThawOrWhy(view.worktree.clone()),
            LockError::ClockSkew { view, .. } => Next::SetClocksOrObserve(view.worktree.clone()),
            LockError::NotHeld { view } => {
                let acquire = || Next::Acquire(view.worktree.clone());
                view.holder().advice().unwrap_or_else(acquire)
            }
            LockError::Fenced { worktree, .. } => Next::StopWriting(worktree.clone()),
            LockError::Expired { worktree, .. } => Next::AcquireAgain(worktree.clone()),
            LockError::NotMade { .. } | LockError::Retired { .. } => Next::ListWorktrees,
            LockError::HeadMoved { .. } => "take the snapshot again on top of the new head".into(),
            LockError::Invalid { .. } => Next::ReadHelpOfLocks,
        })
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            LockError::Conflict(view) | LockError::Frozen(view) | LockError::NotHeld { view } => {
                Some(view_details(view))
            }
            LockError::Unproven(view) => {
                let mut details = view_details(view);
                details["watch_ms"] = json!(view.judgement.as_ref().map(|judged| judged.watch_ms));
                Some(details)
            }
            LockError::NotAdmin { worktree, admins, uid, .. } => {
                Some(json!({"worktree": worktree, "admins": admins, "uid": uid}))
            }
            LockError::ReclaimDenied { view, why_not, .. } => {
                let mut details = view_details(view);
                details["reason"] = json!("LOCK_HELD");
                details["priority"] = json!("low");
                details["why_not"] = json!(why_not.to_string());
                Some(details)
            }
            LockError::Legacy { worktree, legacy, now } => {
                Some(legacy_details(worktree, legacy, *now))
            }
            LockError::InLine { ahead, waited_ms, view } => {
                let mut details = view_details(view);
                details["ahead"] = json!(ahead);
                details["waited_ms"] = json!(waited_ms);
                details["reason"] = json!("LOCK_HELD");
                Some(details)
            }
            LockError::Deadlock { worktree, waited_ms, steps } => Some(json!({
                "worktree": worktree,
                "waited_ms": waited_ms,
                "reason": "DEADLOCK",
                "cycle": steps.iter().map(|step| json!({
                    "session_id": step.waits,
                    "waits_for": step.worktree,
                    "held_by": step.held_by,
                })).collect::<Vec<_>>(),
            })),
            LockError::ClockSkew { view, max_clock_skew_ms } => {
                let mut details = view_details(view);
                details["max_clock_skew_ms"] = json!(max_clock_skew_ms);
                if let Some(judged) = &view.judgement {
                    details["observed_skew_ms"] = json!(judged.observed_skew_ms);
                    details["evidence"] = json!(judged.evidence);
                }
                Some(details)
            }
            LockError::Fenced { token, current, .. } => {
                Some(json!({"fencing_token": token, "current_token": current}))
            }
            LockError::Expired { token, since_ms, .. } => {
                Some(json!({"fencing_token": token, "expired_since_ms": since_ms}))
            }
            _ => None,
        }
    }
}

fn cannot(act: Act) -> &'static str {
    match act {
        Act::FreezeByForce => "it cannot be frozen by force",
        _ => "it cannot be reclaimed",
    }
}

fn who(uid: Option<u32>) -> String {
    match uid {
        Some(uid) => format!("user {uid} is"),
        None => "a user whose id is not known outside of its namespace is".to_owned(),
    }
}

fn next_in_conflict(view: &View) -> Next {
    let wait = Next::WaitOrWhy(view.worktree.clone());
    match view.holder().advice() {
        Some(advice) => advice.or(wait),
        None => wait,
    }
}

fn view_details(view: &View) -> serde_json::Value {
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
