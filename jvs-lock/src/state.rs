//! A state of the fence register, its name on disk, and the transitions
//! between states. Pure: no filesystem, no clock.

use std::fmt;
use std::str::FromStr;

use jvs_repo::clock::WallMs;
use jvs_repo::id::{
    Chain, Epoch, FencingToken, Generation, HolderNonce, NotAnId, OpNonce, Seq, SnapshotId,
    strict_decimal,
};
use jvs_repo::sabotage;
use jvs_repo::term::Term;

use crate::mutation::Rule;

/// Longest name of a state, in bytes.
pub const NAME_MAX: usize = 200;
/// Longest lease: a year. Keeps every sum of times far from overflow.
pub const LEASE_MAX_MS: u64 = 366 * 24 * 3600 * 1000;

/// Somebody's claim to the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Whose it is.
    pub holder: HolderNonce,
    /// How long it lasts without renewal.
    pub lease_ms: u64,
    /// Its end on the holder's wall clock.
    pub expires: WallMs,
}

impl Claim {
    /// Its end once it is renewed until `wanted`: never earlier, and always another one,
    /// also if the wall clock was set back. A record that missed a renewal must never
    /// pass for a current one.
    fn end_after_renewal(&self, wanted: WallMs) -> WallMs {
        sabotage!(Rule::RenewalNeverShortens => wanted);
        sabotage!(Rule::RenewalChangesTheEnd => self.expires.max(wanted));
        self.expires.plus(1).max(wanted)
    }
}

/// Who may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Nobody: the next to come.
    Free,
    /// The holder of the claim.
    Held(Claim),
    /// Nobody: an operator's hold.
    Frozen(Claim),
    /// Nobody ever again: the worktree was removed.
    Retired,
}

impl Hold {
    /// The claim, if there is one.
    pub const fn claim(&self) -> Option<&Claim> {
        match self {
            Hold::Held(claim) | Hold::Frozen(claim) => Some(claim),
            Hold::Free | Hold::Retired => None,
        }
    }

    const fn word(&self) -> &'static str {
        match self {
            Hold::Free => "free",
            Hold::Held(_) => "held",
            Hold::Frozen(_) => "frozen",
            Hold::Retired => "retired",
        }
    }
}

/// How a name is spelled and what its chain covers. The first field of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameFormat {
    /// The chain covers the chain of the state before. Still read; no longer made.
    One,
    /// The chain covers the whole name of the state before.
    Two,
}

impl NameFormat {
    const fn word(self) -> &'static str {
        match self {
            NameFormat::One => "1",
            NameFormat::Two => "2",
        }
    }
}

/// The register's whole content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// How its name is spelled.
    pub format: NameFormat,
    /// Which epoch of the register.
    pub epoch: Epoch,
    /// The fencing token.
    pub token: FencingToken,
    /// Number of transitions so far.
    pub seq: Seq,
    /// Who may write.
    pub hold: Hold,
    /// Number of commits so far.
    pub generation: Generation,
    /// The newest committed snapshot.
    pub head: Option<SnapshotId>,
    /// Commits to this state and all before it.
    pub chain: Chain,
    /// The operation that made this state.
    pub op: OpNonce,
}

impl State {
    /// The first state of a register.
    pub fn birth(epoch: Epoch, op: OpNonce) -> Self {
        State::rebuilt(epoch, FencingToken(0), Generation(0), None, op)
    }

    /// The first state of a register that takes the place of a lost one.
    pub fn rebuilt(
        epoch: Epoch,
        token: FencingToken,
        generation: Generation,
        head: Option<SnapshotId>,
        op: OpNonce,
    ) -> Self {
        let unchained = State {
            format: NameFormat::Two,
            epoch,
            token,
            seq: Seq(0),
            hold: Hold::Free,
            generation,
            head,
            chain: Chain([0; 8]),
            op,
        };
        unchained.chained_to(None)
    }

    /// The term that the register is in.
    pub fn term(&self) -> Term {
        Term { epoch: self.epoch, token: self.token }
    }

    /// Is it held by `holder` in `term`?
    pub fn is_held_by(&self, term: Term, holder: HolderNonce) -> bool {
        sabotage!(Rule::BoundToToken => self.epoch == term.epoch && self.holder() == Some(holder));
        self.term() == term && self.holder() == Some(holder)
    }

    /// The holder, if it is held (a freeze has an owner, not a holder).
    pub fn holder(&self) -> Option<HolderNonce> {
        match &self.hold {
            Hold::Held(claim) => Some(claim.holder),
            _ => None,
        }
    }

    /// Acquire, steal, reclaim, transfer: a new holder under a new token.
    #[must_use]
    pub fn granted(&self, holder: HolderNonce, lease_ms: u64, now: WallMs, op: OpNonce) -> Self {
        let claim = Claim { holder, lease_ms, expires: now.plus(lease_ms) };
        let token = self.token_of_next_holder();
        self.followed_by(State { token, hold: Hold::Held(claim), op, ..*self })
    }

    /// Above that of its present holder: a steal raises the token, too.
    fn token_of_next_holder(&self) -> FencingToken {
        sabotage!(Rule::StealRaisesToken => crate::sabotage::token_of_free(self));
        self.token.next()
    }

    /// Renew, refresh: the same holder under the same token, for longer.
    ///
    /// Neither the end nor the length of the lease ever shrinks: another process
    /// of the same session may believe in what it was promised before.
    #[must_use]
    pub fn extended(&self, lease_ms: u64, now: WallMs, op: OpNonce) -> Self {
        let Hold::Held(old) = self.hold else { return *self };
        let expires = old.end_after_renewal(now.plus(lease_ms));
        // What was promised before is over after the old length at the latest,
        // whatever the wall clock says: one that was set back adds nothing.
        let promised_ms = expires.since(now).min(old.lease_ms);
        let lease_ms = lease_ms.max(promised_ms).min(LEASE_MAX_MS);
        let claim = Claim { holder: old.holder, lease_ms, expires };
        self.followed_by(State { hold: Hold::Held(claim), op, ..*self })
    }

    /// Release, unfreeze: nobody holds it; the token stays for ever used.
    #[must_use]
    pub fn released(&self, op: OpNonce) -> Self {
        let token = self.token_after_release();
        self.followed_by(State { token, hold: Hold::Free, op, ..*self })
    }

    fn token_after_release(&self) -> FencingToken {
        sabotage!(Rule::ReleaseKeepsToken => FencingToken(0));
        self.token
    }

    /// Release on a volume without room for its event. Its operation is not drawn but
    /// follows from the place in the history, so that the register itself tells for
    /// ever why no log does.
    #[must_use]
    pub fn released_untold(&self) -> Self {
        let next = self.released(OpNonce([0; 8]));
        self.released(next.untold_op())
    }

    /// Is it a release that found no room for its event?
    pub fn is_untold_release(&self) -> bool {
        self.hold == Hold::Free && self.op == self.untold_op()
    }

    fn untold_op(&self) -> OpNonce {
        let mut hasher = blake3::Hasher::new_derive_key("jvs release without an event v1");
        hasher.update(format!("{}.{}.{}", self.epoch, self.token, self.seq).as_bytes());
        let mut op = [0; 8];
        op.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        OpNonce(op)
    }

    /// Freeze: an operator's hold under a new token.
    #[must_use]
    pub fn frozen(&self, owner: HolderNonce, lease_ms: u64, now: WallMs, op: OpNonce) -> Self {
        let claim = Claim { holder: owner, lease_ms, expires: now.plus(lease_ms) };
        self.followed_by(State { token: self.token.next(), hold: Hold::Frozen(claim), op, ..*self })
    }

    /// Publish: the head moves, the claim stays as it was read.
    #[must_use]
    pub fn with_head(&self, head: SnapshotId, op: OpNonce) -> Self {
        let (hold, generation) = (self.hold_after_commit(), self.generation.next());
        self.followed_by(State { hold, generation, head: Some(head), op, ..*self })
    }

    fn hold_after_commit(&self) -> Hold {
        sabotage!(Rule::HeadMoveCopiesExpiry => crate::sabotage::hold_with_an_earlier_end(self));
        self.hold
    }

    /// Only moves on: makes certain that no earlier attempt can still land.
    #[must_use]
    pub fn advanced(&self, op: OpNonce) -> Self {
        self.followed_by(State { op, ..*self })
    }

    /// A new token and nobody holding: whatever is under way is fenced.
    #[must_use]
    pub fn fenced(&self, op: OpNonce) -> Self {
        self.followed_by(State { token: self.token.next(), hold: Hold::Free, op, ..*self })
    }

    /// The last state: the worktree is gone.
    #[must_use]
    pub fn retired(&self, op: OpNonce) -> Self {
        self.followed_by(State { token: self.token.next(), hold: Hold::Retired, op, ..*self })
    }

    /// Does `self` directly follow `previous`, as far as the chain can tell? A
    /// register that went over to a later format does not go back.
    pub fn follows(&self, previous: &State) -> bool {
        self.seq == previous.seq.next()
            && self.epoch == previous.epoch
            && self.format >= previous.format
            && self.chained_to(Some(previous)).chain == self.chain
    }

    /// Is this the first state of a register, as far as the chain can tell?
    pub fn is_birth(&self) -> bool {
        self.seq == Seq(0) && self.chained_to(None).chain == self.chain
    }

    /// Is this the first state of an epoch that came after another one, and does nobody hold
    /// it?
    pub fn follows_another_epoch(&self) -> bool {
        self.is_birth() && self.epoch.counter > 1 && self.hold == Hold::Free
    }

    /// May it be of a name that is reserved, confirmed or not? A process that has held or
    /// committed since moved it further.
    pub fn may_be_reserved(&self) -> bool {
        self.hold == Hold::Free && self.seq <= Seq(1)
    }

    /// Is one of its counters at its end? Nothing follows such a state.
    pub fn is_at_an_end(&self) -> bool {
        self.token >= FencingToken::END
            || self.seq >= Seq::END
            || self.generation >= Generation::END
    }

    fn followed_by(&self, next: State) -> State {
        State { format: NameFormat::Two, seq: self.seq.next(), ..next }.chained_to(Some(self))
    }

    pub(crate) fn chained_to(self, previous: Option<&State>) -> State {
        let bare = State { chain: Chain([0; 8]), ..self }.to_string();
        let mut hasher = match self.format {
            NameFormat::One => blake3::Hasher::new_derive_key("jvs register chain v1"),
            NameFormat::Two => blake3::Hasher::new_derive_key("jvs register chain v2"),
        };
        hasher.update(&match self.format {
            NameFormat::One => chain_before(previous),
            NameFormat::Two => name_before(previous),
        });
        hasher.update(bare.as_bytes());
        let mut chain = [0; 8];
        chain.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        State { chain: Chain(chain), ..self }
    }
}

/// What a chain of the first format covers of the state before. Not its other fields:
/// the process that changed them and kept the chain was not found out by what came after.
fn chain_before(previous: Option<&State>) -> Vec<u8> {
    previous.map_or([0; 8], |previous| previous.chain.0).to_vec()
}

/// What a chain of the second format covers of it: its whole name.
fn name_before(previous: Option<&State>) -> Vec<u8> {
    sabotage!(Rule::ChainCoversTheName => chain_before(previous));
    let name = previous.map(State::to_string).unwrap_or_default();
    (name + "\n").into_bytes()
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (format, word) = (self.format.word(), self.hold.word());
        write!(f, "{format}.{}.{}.{}.{word}.", self.epoch, self.token, self.seq)?;
        match self.hold.claim() {
            Some(c) => write!(f, "{}.{}.{}.", c.holder, c.lease_ms, c.expires.0)?,
            None => write!(f, "-.0.0.")?,
        }
        match self.head {
            Some(head) => write!(f, "{}.{head}.", self.generation)?,
            None => write!(f, "{}.none.", self.generation)?,
        }
        write!(f, "{}.{}", self.chain, self.op)
    }
}

impl FromStr for State {
    type Err = NotAnId;

    fn from_str(name: &str) -> Result<Self, NotAnId> {
        parse(name).ok_or(NotAnId::expected("the name of a register state"))
    }
}

fn parse(name: &str) -> Option<State> {
    if name.len() > NAME_MAX {
        return None;
    }
    let mut fields = name.split('.');
    let mut next = || fields.next();
    let format = match next()? {
        "1" => NameFormat::One,
        "2" => NameFormat::Two,
        _ => return None,
    };
    let epoch: Epoch = next()?.parse().ok()?;
    if epoch.counter > Epoch::END {
        return None;
    }
    let token = FencingToken::parse_strict(next()?)?;
    let seq = Seq::parse_strict(next()?)?;
    let word = next()?;
    let (holder, lease_ms, expires) = (next()?, strict_decimal(next()?)?, strict_decimal(next()?)?);
    let claim = || {
        let holder = holder.parse().ok()?;
        (lease_ms <= LEASE_MAX_MS).then_some(Claim { holder, lease_ms, expires: WallMs(expires) })
    };
    let unclaimed = holder == "-" && lease_ms == 0 && expires == 0;
    let hold = match word {
        "free" if unclaimed => Hold::Free,
        "retired" if unclaimed => Hold::Retired,
        "held" => Hold::Held(claim()?),
        "frozen" => Hold::Frozen(claim()?),
        _ => return None,
    };
    let generation = Generation::parse_strict(next()?)?;
    let head = match next()? {
        "none" => None,
        id => Some(id.parse().ok()?),
    };
    let chain = next()?.parse().ok()?;
    let op = next()?.parse().ok()?;
    let end = next().is_none();
    end.then_some(State { format, epoch, token, seq, hold, generation, head, chain, op })
}

#[cfg(test)]
mod tests;
