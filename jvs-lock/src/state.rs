//! A state of the fence register, its name on disk, and the transitions
//! between states. Pure: no filesystem, no clock.

use std::fmt;
use std::str::FromStr;

use jvs_repo::clock::WallMs;
use jvs_repo::id::{
    Chain, Epoch, FencingToken, Generation, HolderNonce, NotAnId, OpNonce, Seq, SnapshotId,
    strict_decimal,
};

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

/// The register's whole content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// Which life of the register.
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
            epoch,
            token,
            seq: Seq(0),
            hold: Hold::Free,
            generation,
            head,
            chain: Chain([0; 8]),
            op,
        };
        unchained.chained_to(Chain([0; 8]))
    }

    /// Is it held by `holder` under `token` of `epoch`?
    pub fn is_held_by(&self, epoch: Epoch, token: FencingToken, holder: HolderNonce) -> bool {
        let bound = self.token == token || !Rule::BoundToToken.holds();
        self.epoch == epoch && bound && self.holder() == Some(holder)
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
        let stolen = self.holder().is_some();
        let token =
            if !stolen || Rule::StealRaisesToken.holds() { self.token.next() } else { self.token };
        self.followed_by(State { token, hold: Hold::Held(claim), op, ..*self })
    }

    /// Renew, refresh: the same holder under the same token, for longer.
    ///
    /// Neither the end nor the length of the lease ever shrinks: another process
    /// of the same session may believe in what it was promised before.
    #[must_use]
    pub fn extended(&self, lease_ms: u64, now: WallMs, op: OpNonce) -> Self {
        let Hold::Held(old) = self.hold else { return *self };
        let wanted = now.plus(lease_ms);
        let expires =
            if Rule::RenewalNeverShortens.holds() { old.expires.max(wanted) } else { wanted };
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
        let token = if Rule::ReleaseKeepsToken.holds() { self.token } else { FencingToken(0) };
        self.followed_by(State { token, hold: Hold::Free, op, ..*self })
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
        let hold = match self.hold {
            Hold::Held(claim) if !Rule::HeadMoveCopiesExpiry.holds() => {
                Hold::Held(Claim { expires: WallMs(claim.expires.0 / 2), ..claim })
            }
            hold => hold,
        };
        let generation = self.generation.next();
        self.followed_by(State { hold, generation, head: Some(head), op, ..*self })
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

    /// The same successor of `previous`, made by another operation.
    pub(crate) fn by_another_op(&self, previous: &State, op: OpNonce) -> Self {
        State { op, ..*self }.chained_to(previous.chain)
    }

    /// Does `self` directly follow `previous`, as far as the chain can tell?
    pub fn follows(&self, previous: &State) -> bool {
        self.seq == previous.seq.next()
            && self.epoch == previous.epoch
            && self.chained_to(previous.chain).chain == self.chain
    }

    /// Is this the first state of a register, as far as the chain can tell?
    pub fn is_birth(&self) -> bool {
        self.seq == Seq(0) && self.chained_to(Chain([0; 8])).chain == self.chain
    }

    fn followed_by(&self, next: State) -> State {
        State { seq: self.seq.next(), ..next }.chained_to(self.chain)
    }

    fn chained_to(self, previous: Chain) -> State {
        let mut hasher = blake3::Hasher::new_derive_key("jvs register chain v1");
        hasher.update(&previous.0);
        hasher.update(State { chain: Chain([0; 8]), ..self }.to_string().as_bytes());
        let mut chain = [0; 8];
        chain.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        State { chain: Chain(chain), ..self }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}.{}.{}.", self.epoch, self.token, self.seq, self.hold.word())?;
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
    if next()? != "1" {
        return None;
    }
    let epoch = next()?.parse().ok()?;
    let token = FencingToken(strict_decimal(next()?)?);
    let seq = Seq(strict_decimal(next()?)?);
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
    let generation = Generation(strict_decimal(next()?)?);
    let head = match next()? {
        "none" => None,
        id => Some(id.parse().ok()?),
    };
    let chain = next()?.parse().ok()?;
    let op = next()?.parse().ok()?;
    next().is_none().then_some(State { epoch, token, seq, hold, generation, head, chain, op })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small deterministic generator: enough to reach every field.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            // Mixes small, medium and extreme magnitudes.
            self.0 >> (self.0 % 64)
        }

        fn state(&mut self) -> State {
            let holder = HolderNonce([self.roll() as u8; 16]);
            let claim = Claim {
                holder,
                lease_ms: self.roll() % (LEASE_MAX_MS + 1),
                expires: WallMs(self.roll() % 10_000_000_000_000),
            };
            let hold = match self.roll() % 4 {
                0 => Hold::Free,
                1 => Hold::Held(claim),
                2 => Hold::Frozen(claim),
                _ => Hold::Retired,
            };
            let head = (self.roll().is_multiple_of(2)).then(|| SnapshotId {
                created_ms: self.roll() % 10_000_000_000_000,
                random: self.roll() as u32,
            });
            State {
                epoch: Epoch { counter: self.roll() as u32, salt: self.roll() as u16 },
                token: FencingToken(self.roll()),
                seq: Seq(self.roll()),
                hold,
                generation: Generation(self.roll()),
                head,
                chain: Chain(self.roll().to_be_bytes()),
                op: OpNonce(self.roll().to_be_bytes()),
            }
        }
    }

    #[test]
    fn names_round_trip_and_fit() {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let mut longest = 0;
        for _ in 0..20_000 {
            let state = dice.state();
            let name = state.to_string();
            longest = longest.max(name.len());
            assert_eq!(name.parse(), Ok(state), "{name}");
        }
        assert!(longest <= NAME_MAX, "{longest}");
    }

    #[test]
    fn every_malformed_name_is_rejected() {
        // Each single-character edit of a good name either names another state
        // that prints back to exactly these characters, or is refused.
        let mut dice = Dice(42);
        for _ in 0..60 {
            let name = dice.state().to_string();
            for at in 0..name.len() {
                let (before, after) = (&name[..at], &name[at + 1..]);
                let mut edits = vec![format!("{before}{after}"), before.to_owned()];
                for c in ['.', '-', '0', '9', 'a', 'F', ' ', '/', '+', '\u{e9}'] {
                    edits.push(format!("{before}{c}{after}"));
                    edits.push(format!("{before}{c}{}{after}", &name[at..=at]));
                }
                for edit in edits {
                    if let Ok(state) = edit.parse::<State>() {
                        assert_eq!(state.to_string(), edit);
                    }
                }
            }
        }
        for name in ["", "1", ".", "..", "2.1-0000.0.0.free.-.0.0.0.none.x.y"] {
            assert!(name.parse::<State>().is_err(), "{name:?}");
        }
    }

    fn born() -> State {
        State::birth(Epoch { counter: 1, salt: 7 }, OpNonce([1; 8]))
    }

    const ME: HolderNonce = HolderNonce([3; 16]);

    #[test]
    fn each_transition_raises_seq_and_only_changes_of_holder_raise_the_token() {
        let op = OpNonce([2; 8]);
        let head = SnapshotId { created_ms: 5, random: 6 };
        let held = born().granted(ME, 30_000, WallMs(1_000), op);
        assert_eq!((held.token, held.seq), (FencingToken(1), Seq(1)));
        for (what, next, token) in [
            ("extend", held.extended(30_000, WallMs(2_000), op), 1),
            ("publish", held.with_head(head, op), 1),
            ("release", held.released(op), 1),
            ("advance", held.advanced(op), 1),
            ("steal", held.granted(HolderNonce([4; 16]), 1, WallMs(0), op), 2),
            ("freeze", held.frozen(ME, 1, WallMs(0), op), 2),
            ("fence", held.fenced(op), 2),
            ("retire", held.retired(op), 2),
        ] {
            assert_eq!(next.seq, Seq(2), "{what}");
            assert_eq!(next.token, FencingToken(token), "{what}");
            assert!(next.follows(&held), "{what}");
            assert!(!next.follows(&born()), "{what}");
        }
        assert!(born().is_birth() && !held.is_birth());
    }

    #[test]
    fn a_renewal_never_shortens_what_was_promised() {
        let op = OpNonce([2; 8]);
        let held = born().granted(ME, 30_000, WallMs(100_000), op);
        let Hold::Held(claim) = held.extended(5_000, WallMs(101_000), op).hold else {
            panic!("held")
        };
        assert_eq!(claim.expires, WallMs(130_000));
        assert_eq!(claim.lease_ms, 29_000, "whoever watches the name waits long enough");
    }

    #[test]
    fn a_wall_clock_that_was_set_back_does_not_make_a_lease_longer() {
        let op = OpNonce([2; 8]);
        let held = born().granted(ME, 30_000, WallMs(100_000_000), op);
        let Hold::Held(claim) = held.extended(30_000, WallMs(1_000_000), op).hold else {
            panic!("held")
        };
        assert_eq!(claim.lease_ms, 30_000, "whoever watches the name waits for one lease");
        assert_eq!(claim.expires, WallMs(100_030_000), "and what was written down stays");
    }

    #[test]
    fn a_head_move_copies_the_claim() {
        let held = born().granted(ME, 30_000, WallMs(100_000), OpNonce([2; 8]));
        let moved = held.with_head(SnapshotId { created_ms: 1, random: 1 }, OpNonce([3; 8]));
        assert_eq!(moved.hold, held.hold);
        assert_eq!(moved.generation, Generation(1));
    }
}
