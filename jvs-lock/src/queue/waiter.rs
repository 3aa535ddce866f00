//! A ticket's name: who waits, where in the line, and the last sign of life.

use std::fmt;
use std::str::FromStr;

use jvs_repo::clock::{BootId, Clock, WallMs};
use jvs_repo::id::{HolderNonce, NotAnId, OpNonce, hex, strict_decimal, strict_hex};
use jvs_repo::sabotage;

use crate::mutation::Rule;
use crate::session::{Session, SessionId};

/// A short fingerprint of a text that is too long for a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 8]);

impl Fingerprint {
    /// The mark of a session's id: how a holder finds the waiter it hands over to.
    pub fn of_session(id: &SessionId) -> Self {
        Fingerprint::of(id.as_str())
    }

    /// The mark of a boot-time clock: whether a waiter's process can be looked up
    /// here, by a start time that is counted on it.
    pub fn of_clock(id: &BootId, time_namespace: Option<u64>) -> Self {
        match time_namespace {
            Some(namespace) => Fingerprint::of(&format!("{id} {namespace}")),
            None => Fingerprint::of(&id.0),
        }
    }

    fn of(text: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jvs queue mark v1");
        hasher.update(text.as_bytes());
        let mut mark = [0; 8];
        mark.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Fingerprint(mark)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// Place in the line: one more than the last when it came.
    pub order: u64,
    /// Names this wait; settles who of two that came at once is first.
    pub op: OpNonce,
    /// Public nonce of its session: whom a transfer goes to.
    pub holder: HolderNonce,
    /// Mark of its session id.
    pub session: Fingerprint,
    /// Mark of the boot-time clock that its process started on.
    pub boot: Fingerprint,
    /// PID namespace that its process belongs to.
    pub pid_namespace: Option<u64>,
    /// Its process.
    pub pid: u32,
    /// When that process started, in clock ticks after boot.
    pub start_time: u64,
    /// The length of lease that it wants: what a transfer gives it. `None` in
    /// tickets that do not say.
    pub lease_ms: Option<u64>,
    /// When it came, on its wall clock. `None` in tickets that do not say.
    pub since: Option<WallMs>,
    /// Its last sign of life, on its wall clock. Changes with every sign.
    pub beat: WallMs,
}

impl Waiter {
    /// Has it waited for longer? Of those who wait in a circle the newest gives up, and
    /// nobody else.
    pub(super) fn came_before(&self, other: &Waiter) -> bool {
        sabotage!(Rule::NewestGivesUp => true);
        self.age() < other.age()
    }

    pub(super) fn of(
        session: &Session,
        clock: &dyn Clock,
        order: u64,
        op: OpNonce,
        lease_ms: u64,
    ) -> Self {
        let identity = session.identity();
        let now = clock.now().wall;
        Waiter {
            order,
            op,
            holder: session.nonce(),
            session: Fingerprint::of_session(session.id()),
            boot: Fingerprint::of_clock(&identity.boot_id, clock.time_namespace()),
            pid_namespace: identity.pid_namespace,
            pid: identity.pid,
            start_time: identity.start_time,
            lease_ms: Some(lease_ms),
            since: Some(now),
            beat: now,
        }
    }

    /// What the line is sorted by.
    pub(super) fn rank(&self) -> (u64, OpNonce) {
        (self.order, self.op)
    }

    /// How long it has waited, compared with those in other lines: the greater, the
    /// newer. Never changes, and no two have the same. Between hosts it is as good as
    /// their clocks agree; nothing but who of a cycle gives up rests on it.
    pub(super) fn age(&self) -> (WallMs, OpNonce) {
        (self.since.unwrap_or(WallMs(0)), self.op)
    }

    /// The same waiter with a new sign of life; never the same name twice.
    pub(super) fn beaten(&self, now: WallMs) -> Self {
        Waiter { beat: now.max(self.beat.plus(1)), ..*self }
    }
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiter { order, op, holder, session, boot, pid, start_time, beat, .. } = self;
        let version = match (self.lease_ms, self.since) {
            (Some(_), Some(_)) => 3,
            (Some(_), None) => 2,
            (None, _) => 1,
        };
        write!(f, "{version}.{order}.{op}.{holder}.{session}.{boot}.")?;
        match self.pid_namespace {
            Some(namespace) => write!(f, "{namespace}.")?,
            None => write!(f, "-.")?,
        }
        write!(f, "{pid}.{start_time}.")?;
        if let Some(lease_ms) = self.lease_ms {
            write!(f, "{lease_ms}.")?;
        }
        if let Some(since) = self.since.filter(|_| version == 3) {
            write!(f, "{}.", since.0)?;
        }
        write!(f, "{}", beat.0)
    }
}

impl FromStr for Waiter {
    type Err = NotAnId;

    fn from_str(name: &str) -> Result<Self, NotAnId> {
        parse(name).ok_or(NotAnId::expected("the name of a ticket"))
    }
}

fn parse(name: &str) -> Option<Waiter> {
    let mut fields = name.split('.');
    let mut next = || fields.next();
    let (says_lease, says_since) = match next()? {
        "1" => (false, false),
        "2" => (true, false),
        "3" => (true, true),
        _ => return None,
    };
    let waiter = Waiter {
        order: strict_decimal(next()?)?,
        op: next()?.parse().ok()?,
        holder: next()?.parse().ok()?,
        session: Fingerprint(strict_hex(next()?)?),
        boot: Fingerprint(strict_hex(next()?)?),
        pid_namespace: match next()? {
            "-" => None,
            number => Some(strict_decimal(number)?),
        },
        pid: u32::try_from(strict_decimal(next()?)?).ok()?,
        start_time: strict_decimal(next()?)?,
        lease_ms: match says_lease {
            true => Some(strict_decimal(next()?)?),
            false => None,
        },
        since: match says_since {
            true => Some(WallMs(strict_decimal(next()?)?)),
            false => None,
        },
        beat: WallMs(strict_decimal(next()?)?),
    };
    next().is_none().then_some(waiter)
}
