//! The lock record `<worktree>.lock`: for people, other tools and details of
//! the holder. Never asked who holds: the register says that.

use std::io;

use jvs_repo::clock::{BootId, BootMs, Clock, Reading, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{Epoch, FencingToken, HolderNonce, OpNonce, Seq, hex};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{Draft, Store, StoredFile};
use serde::{Deserialize, Serialize};

use crate::hearsay::{Heard, PATIENCE_MS, READ_MAX, hear};
use crate::mutation::Rule;
use crate::session::{Environment, Purpose, Session};
use crate::state::{Claim, State};

/// Every record has this size, padded with spaces, so that a renewal is one
/// write in place and a reader never sees a mixture of lengths.
const WIDTH: usize = 4096;
/// Longest note, in bytes.
pub const NOTE_MAX: usize = 256;

/// Who holds and what for, as seed 002 has it: a closed list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of seed 002")]
pub struct Metadata {
    pub hostname: String,
    pub process_id: u32,
    pub user_identity: String,
    pub session_id: String,
    pub environment: Environment,
    pub purpose: Purpose,
}

/// The process that keeps renewing a lease. Its end means that nobody does any
/// more; a lease without one was taken by a command that ended by design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// Which boot.
    pub boot_id: BootId,
    /// The PID namespace that `pid` belongs to, if known.
    pub pid_namespace: Option<u64>,
    /// The time namespace that `start_time` belongs to, if there are any.
    #[serde(default)]
    pub time_namespace: Option<u64>,
}

impl Keeper {
    /// The process that speaks for `session`, on `clock`.
    pub fn of(session: &Session, clock: &dyn Clock) -> Self {
        let identity = session.identity();
        Keeper {
            pid: identity.pid,
            start_time: identity.start_time,
            boot_id: identity.boot_id.clone(),
            pid_namespace: identity.pid_namespace,
            time_namespace: clock.time_namespace(),
        }
    }
}

/// When a claim was confirmed, on clocks that the record names.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// Both clocks.
    pub at: Reading,
    /// The time namespace of the boot-time clock, if there are any.
    pub time_namespace: Option<u64>,
}

/// Who renews a lease, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// As the record has it: this process only goes on with what another began.
    AsRecorded,
    /// Nobody: it simply lasts.
    Nobody,
    /// Somebody, at least every so many milliseconds.
    Every(u64),
}

/// How often a lease of `lease_ms` is renewed by whoever keeps it: the policy's
/// share of it, and never less than twice a lease.
pub fn renew_interval_ms(lease_ms: u64, policy: &LockPolicy) -> u64 {
    /// Shortest time between two renewals.
    const SHORTEST_MS: u64 = 20;
    let share = u128::from(lease_ms) * u128::from(policy.renew_interval_ms)
        / u128::from(policy.lease_duration_ms.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).min(lease_ms / 2).max(SHORTEST_MS)
}

/// The record: 14 fields of v6.3, and what else is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Shape of this file.
    pub version: u32,
    /// Names this acquisition.
    pub lock_id: OpNonce,
    /// The worktree.
    pub worktree_id: WorktreeName,
    /// `host:user:pid:start_time`.
    pub holder_id: String,
    /// Public nonce of the holder.
    pub holder_nonce: HolderNonce,
    /// The session.
    pub session_id: String,
    /// Position in the register's history at which it was acquired.
    pub acquire_seq: Seq,
    /// When it was acquired.
    pub created_at: String,
    /// When it was last renewed.
    pub last_renewed_at: String,
    /// Length of the lease.
    pub lease_duration_ms: u64,
    /// How often it is renewed, if anybody does.
    pub renew_interval_ms: u64,
    /// Does anybody? Absent in records that do not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renews: Option<bool>,
    /// Policy of the holder.
    pub max_clock_skew_ms: u64,
    /// Policy of the holder.
    pub steal_grace_ms: u64,
    /// End of the lease on the holder's wall clock. Absent in records of older
    /// tools, which leave the sum to the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<String>,
    /// The fencing token.
    pub fencing_token: FencingToken,
    /// Which life of the register the token belongs to.
    pub epoch: Epoch,
    /// Which boot the boot-time readings belong to.
    pub boot_id: BootId,
    /// Time namespace whose clock the boot-time readings are of, if there are any.
    #[serde(default)]
    pub time_namespace: Option<u64>,
    /// PID namespace of the holder's process.
    #[serde(default)]
    pub pid_namespace: Option<u64>,
    /// Boot time at acquisition.
    pub created_boot_ms: BootMs,
    /// Boot time at the last renewal.
    pub renewed_boot_ms: BootMs,
    /// Who keeps it renewed, if anybody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<Keeper>,
    /// Frozen rather than held.
    #[serde(default)]
    pub frozen: bool,
    /// In the holder's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who and what for.
    pub metadata: Metadata,
}

impl Record {
    /// The record of a claim just granted to `session`.
    pub fn of_grant(
        session: &Session,
        worktree: &WorktreeName,
        state: &State,
        claim: &Claim,
        stamp: Stamp,
        policy: &LockPolicy,
        note: Option<&str>,
    ) -> Self {
        let identity = session.identity();
        let at = stamp.at;
        let mut record = Record {
            version: 1,
            lock_id: state.op,
            worktree_id: worktree.clone(),
            holder_id: String::new(),
            holder_nonce: claim.holder,
            session_id: session.id().as_str().to_owned(),
            acquire_seq: state.seq,
            created_at: at.wall.rfc3339(),
            last_renewed_at: String::new(),
            lease_duration_ms: 0,
            renew_interval_ms: renew_interval_ms(claim.lease_ms, policy),
            renews: None,
            max_clock_skew_ms: policy.max_clock_skew_ms,
            steal_grace_ms: policy.steal_grace_ms,
            lease_expires_at: None,
            fencing_token: state.token,
            epoch: state.epoch,
            boot_id: identity.boot_id.clone(),
            time_namespace: stamp.time_namespace,
            pid_namespace: None,
            created_boot_ms: at.boot,
            renewed_boot_ms: at.boot,
            keeper: None,
            frozen: matches!(state.hold, crate::state::Hold::Frozen(_)),
            note: None,
            metadata: Metadata {
                hostname: String::new(),
                process_id: 0,
                user_identity: String::new(),
                session_id: session.id().as_str().to_owned(),
                environment: identity.environment,
                purpose: identity.purpose,
            },
        };
        record.set_note(note);
        record.renewed(session, claim, stamp);
        record
    }

    /// Brings it up to date after a renewal by a process of the session.
    pub fn renewed(&mut self, session: &Session, claim: &Claim, stamp: Stamp) {
        let Stamp { at, time_namespace } = stamp;
        let identity = session.identity();
        let clock = (&identity.boot_id, time_namespace);
        if (&self.boot_id, self.time_namespace) != clock
            && let Some(created) = self.created()
        {
            // Two clocks' readings cannot be compared; count back from this one,
            // so that a reboot is not taken for a clock that was set.
            self.created_boot_ms = BootMs(at.boot.0.saturating_sub(at.wall.since(created)));
        }
        self.holder_id = session.holder_id();
        self.last_renewed_at = at.wall.rfc3339();
        self.renewed_boot_ms = at.boot;
        self.boot_id = identity.boot_id.clone();
        self.time_namespace = time_namespace;
        self.pid_namespace = identity.pid_namespace;
        self.lease_duration_ms = claim.lease_ms;
        self.lease_expires_at = Some(claim.expires.rfc3339());
        self.metadata.hostname = bounded(&identity.host, 64);
        self.metadata.user_identity = user_as_recorded(&identity.user);
        self.metadata.process_id = identity.pid;
        self.metadata.environment = identity.environment;
        self.metadata.purpose = identity.purpose;
    }

    /// Says who renews it, and how often.
    pub(crate) fn set_renewal(&mut self, renewal: Renewal, policy: &LockPolicy) {
        let usual = renew_interval_ms(self.lease_duration_ms, policy);
        (self.renews, self.renew_interval_ms) = match renewal {
            Renewal::AsRecorded => return,
            Renewal::Nobody => (Some(false), usual),
            Renewal::Every(ms) => (Some(true), ms),
        };
    }

    /// What it is held for, in the holder's words.
    pub(crate) fn set_note(&mut self, note: Option<&str>) {
        self.note = note.map(|note| bounded(note, NOTE_MAX));
    }

    /// End of the lease on the holder's wall clock.
    pub fn expires(&self) -> Option<WallMs> {
        match &self.lease_expires_at {
            Some(text) => WallMs::parse_rfc3339(text),
            None => Some(self.last_renewed()?.plus(self.lease_duration_ms)),
        }
    }

    /// When it was last renewed, on the holder's wall clock.
    pub fn last_renewed(&self) -> Option<WallMs> {
        WallMs::parse_rfc3339(&self.last_renewed_at)
    }

    /// When it was acquired, on the holder's wall clock.
    pub fn created(&self) -> Option<WallMs> {
        WallMs::parse_rfc3339(&self.created_at)
    }

    /// Both of the holder's clocks at the last renewal.
    pub fn renewed_at(&self) -> Option<Reading> {
        Some(Reading { wall: self.last_renewed()?, boot: self.renewed_boot_ms })
    }

    /// Both of the holder's clocks at the acquisition.
    pub fn created_reading(&self) -> Option<Reading> {
        Some(Reading { wall: self.created()?, boot: self.created_boot_ms })
    }

    /// Is it about the claim in `state`, however late?
    pub fn is_of(&self, state: &State) -> bool {
        let holder = state.hold.claim().map(|claim| claim.holder);
        self.fencing_token == state.token
            && self.epoch == state.epoch
            && Some(self.holder_nonce) == holder
    }

    /// Is it about the claim in `state` as it stands, last renewal included?
    /// End *and* length: a refresh may keep the one and change the other.
    pub fn is_current(&self, state: &State) -> bool {
        let Some(claim) = state.hold.claim() else { return false };
        let same_length = self.lease_duration_ms == claim.lease_ms;
        self.is_of(state)
            && self.expires() == Some(claim.expires)
            && (same_length || !Rule::CurrentByLength.holds())
    }

    /// As written to disk.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        if bytes.len() >= WIDTH {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "lock record is too large"));
        }
        bytes.resize(WIDTH - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// `text` cut to at most `max` bytes, at a character boundary.
fn bounded(text: &str, max: usize) -> String {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// A user's name as a record carries it. One that is too long keeps its beginning
/// for people and gets a digest of the whole: cut short alone, it would be the
/// name of whoever is called like its beginning.
pub(crate) fn user_as_recorded(user: &str) -> String {
    const MAX: usize = 64;
    const DIGITS: usize = 16;
    if user.len() <= MAX {
        return user.to_owned();
    }
    let digest = blake3::derive_key("jvs user name v1", user.as_bytes());
    format!("{}~{}", bounded(user, MAX - 1 - DIGITS), hex(&digest[..DIGITS / 2]))
}

/// What stands where the record should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A record.
    Record(Box<Record>),
    /// Something that is no record; why not.
    Unreadable(String),
    /// The filesystem does not show it, or not in time; why. No damage follows
    /// from that, and nothing about the holder.
    Refused(String),
}

impl Found {
    /// The record, if there is one.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Found::Record(record) => Some(record),
            Found::Nothing | Found::Unreadable(_) | Found::Refused(_) => None,
        }
    }
}

/// Reads the record. Torn, foreign, oversized, refused or hanging content is an
/// answer, not a failure: no decision rests on it.
pub fn read(store: &dyn Store, worktree: &WorktreeName) -> io::Result<Found> {
    Ok(found(&hear(store, &layout::lock_record(worktree))?, worktree))
}

/// What was heard of the record.
pub(crate) fn found(heard: &Heard, worktree: &WorktreeName) -> Found {
    match heard {
        Heard::Nothing => Found::Nothing,
        Heard::Bytes(bytes) => parse(bytes, worktree),
        Heard::Unfit(why) => Found::Unreadable(why.clone()),
        Heard::Refused(why) => Found::Refused(why.clone()),
    }
}

/// Makes sense of a record's bytes.
pub fn parse(bytes: &[u8], worktree: &WorktreeName) -> Found {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Found::Unreadable("it is empty".into());
    }
    match serde_json::from_slice::<Record>(bytes) {
        Err(error) => Found::Unreadable(error.to_string()),
        Ok(record) if record.version != 1 => {
            Found::Unreadable(format!("version {} is not known", record.version))
        }
        Ok(record) if record.worktree_id != *worktree => {
            Found::Unreadable(format!("it is about worktree '{}'", record.worktree_id))
        }
        Ok(record) if record.last_renewed().is_none() || record.expires().is_none() => {
            Found::Unreadable("a time in it cannot be read".into())
        }
        Ok(record) => Found::Record(Box::new(record)),
    }
}

/// A record held open through its own inode, so that a late renewal can only
/// ever touch its own dead file, and never a successor's.
pub(crate) struct OwnRecord {
    file: Box<dyn StoredFile>,
    pub(crate) record: Record,
}

impl OwnRecord {
    /// Writes the record of a new claim. What a former holder left behind is
    /// replaced whole, if `may_replace` says so of what is there.
    pub(crate) fn place(
        store: &dyn Store,
        record: Record,
        may_replace: impl FnOnce() -> bool,
    ) -> io::Result<Self> {
        let path = layout::lock_record(&record.worktree_id);
        let bytes = record.to_bytes()?;
        match store.create_new(&path) {
            Ok(file) => {
                // What a full volume did not take is not left as an empty file.
                file.write_at(0, &bytes).and_then(|()| file.sync()).inspect_err(|_| {
                    let _ = store.unlink(&path);
                })?;
                store.sync_dir(&layout::locks())?;
                Ok(OwnRecord { file, record })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !may_replace() {
                    return Err(io::Error::other("a lock of another tool is in its place"));
                }
                let mark = format!("{}-{}-{}", record.epoch, record.fencing_token, record.lock_id);
                let tmp = layout::lock_tmp(&record.worktree_id, &mark);
                let file = store.create_own(&tmp)?;
                let put = || {
                    file.write_at(0, &bytes)?;
                    file.sync()?;
                    store.place_over(&Draft::of(&tmp, file.as_ref())?, &path)
                };
                put().inspect_err(|_| {
                    let _ = store.unlink(&tmp);
                })?;
                store.sync_dir(&layout::locks())?;
                Ok(OwnRecord { file, record })
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the record that another process of the session wrote for `state`.
    pub(crate) fn adopt(
        store: &dyn Store,
        worktree: &WorktreeName,
        state: &State,
    ) -> io::Result<Option<Self>> {
        let file = match store.open_writable(&layout::lock_record(worktree)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Read through the descriptor that will be written through: the name
        // may come to mean another file at any moment.
        match parse(&file.read_within(READ_MAX, PATIENCE_MS)?, worktree) {
            Found::Record(record) if record.is_of(state) => {
                Ok(Some(OwnRecord { file, record: *record }))
            }
            _ => Ok(None),
        }
    }

    /// Brings the file up to date: one write, in place.
    pub(crate) fn rewrite(&self) -> io::Result<()> {
        self.file.write_at(0, &self.record.to_bytes()?)
    }

    /// Does the file still have a name? Asked through its descriptor, so that a
    /// renewal needs no look-up by path.
    pub(crate) fn is_linked(&self) -> io::Result<bool> {
        Ok(self.file.links()? > 0)
    }

    /// Does the record's name still mean this file?
    pub(crate) fn is_in_place(&self, store: &dyn Store) -> io::Result<bool> {
        match store.stat(&layout::lock_record(&self.record.worktree_id)) {
            Ok(stat) => Ok(stat.inode == self.file.inode()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the record if it is still this file. Between the look and the
    /// removal a successor may put its own there and lose it: drift, which the
    /// successor's next renewal mends.
    pub(crate) fn remove(self, store: &dyn Store) -> io::Result<()> {
        if self.is_in_place(store)? {
            store.unlink(&layout::lock_record(&self.record.worktree_id))?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::session::tests::session;
    use crate::state::Hold;

    pub(crate) fn granted() -> (State, Record) {
        let me = session("s", 1);
        let state = State::birth(Epoch { counter: 1, salt: 0 }, OpNonce([0; 8])).granted(
            me.nonce(),
            30_000,
            WallMs(1_000_000),
            OpNonce([1; 8]),
        );
        let Hold::Held(claim) = state.hold else { panic!("held") };
        let at = Reading { wall: WallMs(1_000_000), boot: BootMs(77) };
        let stamp = Stamp { at, time_namespace: Some(1) };
        let note = Some("why");
        let record = Record::of_grant(
            &me,
            &WorktreeName::main(),
            &state,
            &claim,
            stamp,
            &LockPolicy::default(),
            note,
        );
        (state, record)
    }

    #[test]
    fn the_fourteen_fields_are_there_under_their_names() {
        let (_, record) = granted();
        let value = serde_json::to_value(&record).expect("json");
        for field in [
            "lock_id",
            "worktree_id",
            "holder_id",
            "holder_nonce",
            "session_id",
            "acquire_seq",
            "created_at",
            "last_renewed_at",
            "lease_duration_ms",
            "renew_interval_ms",
            "max_clock_skew_ms",
            "steal_grace_ms",
            "lease_expires_at",
            "fencing_token",
        ] {
            assert!(value.get(field).is_some(), "{field}");
        }
        assert_eq!(value["lease_duration_ms"], 30_000);
        assert_eq!(value["renew_interval_ms"], 10_000);
        assert_eq!(value["max_clock_skew_ms"], 2_000);
        assert_eq!(value["steal_grace_ms"], 1_000);
    }

    #[test]
    fn a_record_has_a_fixed_width_and_reads_back() {
        let (state, record) = granted();
        let bytes = record.to_bytes().expect("fits");
        assert_eq!(bytes.len(), WIDTH);
        let Found::Record(back) = parse(&bytes, &WorktreeName::main()) else { panic!("readable") };
        assert_eq!(*back, record);
        assert!(back.is_current(&state));
    }

    #[test]
    fn a_record_without_its_expiry_is_completed() {
        let (_, mut record) = granted();
        record.lease_expires_at = None;
        assert_eq!(record.expires(), Some(WallMs(1_030_000)));
    }

    #[test]
    fn torn_foreign_and_unknown_records_are_told_apart_from_none() {
        let (_, record) = granted();
        let whole = record.to_bytes().expect("fits");
        for bytes in [&whole[..100], b"", b"   \n", b"{}", b"[]", b"\xff\xfe"] {
            assert!(matches!(parse(bytes, &WorktreeName::main()), Found::Unreadable(_)));
        }
        let other: WorktreeName = "other".parse().expect("valid");
        assert!(matches!(parse(&whole, &other), Found::Unreadable(_)));
    }

    #[test]
    fn the_longest_legal_strings_still_fit() {
        let (_, mut record) = granted();
        record.note = Some(bounded(&"\"".repeat(300), NOTE_MAX));
        record.session_id = "\\".repeat(crate::session::SESSION_ID_MAX);
        record.metadata.session_id = record.session_id.clone();
        record.metadata.hostname = "\u{1}".repeat(64);
        record.metadata.user_identity = "\u{1}".repeat(64);
        record.holder_id = "x".repeat(170);
        assert!(record.to_bytes().is_ok());
    }
}
