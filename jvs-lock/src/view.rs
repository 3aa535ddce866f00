//! One look at a worktree's lock: the register, the record, and what they mean
//! here and now. Changes nothing.

use jvs_repo::clock::{Reading, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::HolderNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use crate::advisory::read_advisory;
use crate::error::RegisterError;
use crate::holder::Onlooker;
use crate::judge::{Facts, Judgement, Standing, Watch, judge};
use crate::legacy::{self, Legacy};
use crate::record::{self, FoundRecord, Meaning};
use crate::register::Register;
use crate::seams::Seams;
use crate::state::{Hold, State};

/// How a lock stands, in one word for people and scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    /// Nobody has it.
    Free,
    /// Its lease runs.
    Held,
    /// Its lease is over, but not yet for long enough to take it.
    Expired,
    /// Anyone may take it.
    Stealable,
    /// An operator froze it.
    Frozen,
    /// The worktree was removed.
    Retired,
}

impl StatusWord {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            StatusWord::Free => "free",
            StatusWord::Held => "held",
            StatusWord::Expired => "expired",
            StatusWord::Stealable => "stealable",
            StatusWord::Frozen => "frozen",
            StatusWord::Retired => "retired",
        }
    }
}

/// What one look saw.
#[derive(Debug, Clone)]
pub struct View {
    /// The worktree.
    pub worktree: WorktreeName,
    /// The register.
    pub state: State,
    /// What stands where the record should be.
    pub found: FoundRecord,
    /// What was made of the claim, if there is one.
    pub judgement: Option<Judgement>,
    /// Is it this session's?
    pub mine: bool,
    /// A lock of another tool that may be live: it counts as held, whatever the
    /// register says.
    pub foreign: Option<Legacy>,
    /// A file that may be a lock of another tool and cannot be read: where, why.
    pub unheard: Option<String>,
    /// Is a restore of its files under way, or was one left unfinished?
    pub restoring: bool,
    /// When the look was taken.
    pub at: Reading,
    /// Who looked, if that is known: a process that is told of a holder wants to know
    /// whether it is oneself.
    pub seen_by: Option<Box<Onlooker>>,
}

impl View {
    /// The same, as `onlooker` sees it.
    #[must_use]
    pub fn seen_by(self, onlooker: Onlooker) -> Self {
        View { seen_by: Some(Box::new(onlooker)), ..self }
    }

    /// How the lock stands.
    pub fn word(&self) -> StatusWord {
        match (self.own_word(), &self.foreign) {
            (StatusWord::Free | StatusWord::Stealable, Some(_)) => StatusWord::Held,
            (word, _) => word,
        }
    }

    /// Is it another tool that holds it, and no session of ours?
    pub fn held_by_other_tool(&self) -> Option<&Legacy> {
        let nobody = matches!(self.own_word(), StatusWord::Free | StatusWord::Stealable);
        self.foreign.as_ref().filter(|_| nobody)
    }

    /// How it would stand without other tools.
    fn own_word(&self) -> StatusWord {
        match (&self.state.hold, &self.judgement) {
            (Hold::Free, _) => StatusWord::Free,
            (Hold::Retired, _) => StatusWord::Retired,
            (Hold::Frozen(_), Some(judged)) if judged.standing == Standing::Stealable => {
                StatusWord::Free
            }
            (Hold::Frozen(_), _) => StatusWord::Frozen,
            (Hold::Held(_), Some(judged)) => match judged.standing {
                Standing::Live => StatusWord::Held,
                Standing::Expired => StatusWord::Expired,
                Standing::Stealable => StatusWord::Stealable,
            },
            (Hold::Held(_), None) => StatusWord::Held,
        }
    }

    /// Would the next one to come get it?
    pub fn is_takeable(&self) -> bool {
        matches!(self.word(), StatusWord::Free | StatusWord::Stealable)
    }

    /// The record, if it is about the claim that the register shows. A record
    /// that disagrees with the register says nothing about the holder.
    pub fn record(&self) -> Option<&record::Record> {
        self.found.record().filter(|record| record.is_of(&self.state))
    }

    /// Milliseconds until the lease ends; `u64::MAX` if it never does.
    pub fn remaining_ms(&self) -> u64 {
        if let Some(foreign) = self.held_by_other_tool() {
            return foreign.ends.map_or(u64::MAX, |ends| ends.since(self.at.wall));
        }
        self.judgement.as_ref().map_or(0, |judged| judged.remaining_ms)
    }

    /// End of the lease on the holder's wall clock.
    pub fn expires(&self) -> Option<WallMs> {
        if let Some(foreign) = self.held_by_other_tool() {
            return foreign.ends;
        }
        self.state.hold.claim().map(|claim| claim.expires)
    }
}

/// Looks at the lock of `worktree`. `me` tells whether it is one's own; without
/// it nothing is.
pub fn look(
    seams: Seams<'_>,
    policy: &LockPolicy,
    worktree: &WorktreeName,
    me: Option<HolderNonce>,
) -> Result<View, RegisterError> {
    let register = Register::new(seams.store, seams.clock, worktree.clone());
    let state = register.read()?;
    let view = complete(seams, policy, worktree, state, me, None)?;
    Ok(View { restoring: register.is_marked(), ..view })
}

/// Completes a READ to a view: what the record and other tools tell, and what is
/// made of the claim, if there is one.
pub fn complete(
    seams: Seams<'_>,
    policy: &LockPolicy,
    worktree: &WorktreeName,
    state: State,
    me: Option<HolderNonce>,
    watch: Option<&Watch>,
) -> Result<View, RegisterError> {
    let stuck =
        |doing| move |source| RegisterError::Io { worktree: worktree.clone(), doing, source };
    let heard = read_advisory(seams.store, &layout::lock_record(worktree))
        .map_err(stuck("cannot read the lock record"))?;
    let found = record::found(&heard, worktree);
    let others = legacy::beside(seams.store, worktree, &heard)
        .map_err(stuck("cannot look for locks of other tools"))?;
    let at = seams.clock.now();
    let judgement = state.hold.claim().and_then(|_| {
        judge(Facts {
            state: &state,
            record: found.record(),
            now: at,
            clock: &seams.clock.boot_clock(),
            discipline: seams.clock.discipline(),
            watch,
            policy,
        })
    });
    let mine = me.is_some() && state.holder() == me;
    let live = others.live(at.wall, policy);
    let (foreign, unheard) = (live.cloned(), others.unread);
    let (worktree, seen_by) = (worktree.clone(), None);
    let restoring = false;
    Ok(View { worktree, state, found, judgement, mine, foreign, unheard, restoring, at, seen_by })
}
