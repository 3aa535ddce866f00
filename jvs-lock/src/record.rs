//! The lock record: what it means, and how it is written and replaced. Never asked who
//! holds: the register says that.

use std::io;

use jvs_repo::clock::{BootMs, Reading};
use jvs_repo::config::LockPolicy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
pub use jvs_repo::record::keeper::Keeper;
pub use jvs_repo::record::lock::{Metadata, NOTE_MAX, Record};
pub(crate) use jvs_repo::record::lock::{host_as_recorded, user_as_recorded};
use jvs_repo::sabotage;
use jvs_repo::store::{DraftFile, RepoPath, Store, StoredFile};

use crate::advisory::{Advisory, PATIENCE_MS, READ_MAX, read_advisory};
use crate::mutation::Rule;
use crate::session::{Place, Session};
use crate::state::{Claim, State};

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

/// How often a lease of `lease_ms` is renewed by the process that keeps it: the policy's
/// share of it, and never less than twice a lease.
pub fn renew_interval_ms(lease_ms: u64, policy: &LockPolicy) -> u64 {
    /// Shortest time between two renewals.
    const SHORTEST_MS: u64 = 20;
    let share = u128::from(lease_ms) * u128::from(policy.renew_interval_ms)
        / u128::from(policy.lease_duration_ms.max(1));
    u64::try_from(share).unwrap_or(u64::MAX).min(lease_ms / 2).max(SHORTEST_MS)
}

/// What a record means: which claim it is of.
pub trait Meaning: Sized {
    /// The record of a claim just granted to `session`.
    fn of_grant(
        session: &Session,
        worktree: &WorktreeName,
        state: &State,
        claim: &Claim,
        stamp: Stamp,
        policy: &LockPolicy,
        note: Option<&str>,
    ) -> Self;

    /// Brings it up to date after a renewal by a process of the session.
    fn renewed(&mut self, session: &Session, claim: &Claim, stamp: Stamp);

    /// Says who renews it, and how often.
    fn set_renewal(&mut self, renewal: Renewal, policy: &LockPolicy);

    /// Is it the record of the claim in `state` or of one before it? Of another epoch with
    /// the same counter nobody knows.
    fn is_not_after(&self, state: &State) -> bool;

    /// Is it about the claim in `state`, however late?
    fn is_of(&self, state: &State) -> bool;

    /// Is it about the claim in `state` as it stands, last renewal included?
    /// End *and* length: a refresh may keep the one and change the other.
    fn is_current(&self, state: &State) -> bool;
}

impl Meaning for Record {
    fn of_grant(
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
            uid: None,
            created_boot_ms: at.boot,
            renewed_boot_ms: at.boot,
            keeper: None,
            frozen: matches!(state.hold, crate::state::Hold::Frozen(_)),
            note: None,
            place: Place::default(),
            kept: None,
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

    fn renewed(&mut self, session: &Session, claim: &Claim, stamp: Stamp) {
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
        self.uid = identity.uid();
        self.lease_duration_ms = claim.lease_ms;
        self.lease_expires_at = Some(claim.expires.rfc3339());
        self.metadata.hostname = host_as_recorded(&identity.host);
        self.metadata.user_identity = user_as_recorded(&identity.user);
        self.metadata.process_id = identity.pid;
        self.metadata.environment = identity.environment;
        self.metadata.purpose = identity.purpose;
        self.place = session.place().as_recorded(&self.place);
    }

    fn set_renewal(&mut self, renewal: Renewal, policy: &LockPolicy) {
        let usual = renew_interval_ms(self.lease_duration_ms, policy);
        (self.renews, self.renew_interval_ms) = match renewal {
            Renewal::AsRecorded => return,
            Renewal::Nobody => (Some(false), usual),
            Renewal::Every(ms) => (Some(true), ms),
        };
    }

    fn is_not_after(&self, state: &State) -> bool {
        self.term() <= state.term()
    }

    fn is_of(&self, state: &State) -> bool {
        let holder = state.hold.claim().map(|claim| claim.holder);
        self.term() == state.term() && Some(self.holder_nonce) == holder
    }

    fn is_current(&self, state: &State) -> bool {
        let Some(claim) = state.hold.claim() else { return false };
        self.is_of(state) && self.expires() == Some(claim.expires) && is_of_length(self, claim)
    }
}

/// Is the length of the lease the register's, too? Its end alone does not tell when it
/// began.
fn is_of_length(record: &Record, claim: &Claim) -> bool {
    sabotage!(Rule::CurrentByLength => true);
    record.lease_duration_ms == claim.lease_ms
}

/// What stands where the record should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundRecord {
    /// There is no file.
    Nothing,
    /// A record.
    Record(Box<Record>),
    /// Something that is no record; why not.
    Unreadable(String),
    /// The filesystem does not show it, or not in time; why. No damage follows
    /// from that, and nothing about the holder.
    Refused(String),
}

impl FoundRecord {
    /// The record, if there is one.
    pub fn record(&self) -> Option<&Record> {
        match self {
            FoundRecord::Record(record) => Some(record),
            FoundRecord::Nothing | FoundRecord::Unreadable(_) | FoundRecord::Refused(_) => None,
        }
    }
}

/// Reads the record. Torn, foreign, oversized, refused or hanging content is an
/// answer, not a failure: no decision rests on it.
pub fn read(store: &dyn Store, worktree: &WorktreeName) -> io::Result<FoundRecord> {
    Ok(found(&read_advisory(store, &layout::lock_record(worktree))?, worktree))
}

/// What was heard of the record.
pub(crate) fn found(heard: &Advisory, worktree: &WorktreeName) -> FoundRecord {
    match heard {
        Advisory::Nothing => FoundRecord::Nothing,
        Advisory::Bytes(bytes) => parse(bytes, worktree),
        Advisory::Unfit(why) => FoundRecord::Unreadable(why.clone()),
        Advisory::Refused(why) => FoundRecord::Refused(why.clone()),
    }
}

/// Makes sense of a record's bytes.
pub fn parse(bytes: &[u8], worktree: &WorktreeName) -> FoundRecord {
    match Record::parse(bytes) {
        Err(why) => FoundRecord::Unreadable(why),
        Ok(record) if record.worktree_id != *worktree => {
            FoundRecord::Unreadable(format!("it is about worktree '{}'", record.worktree_id))
        }
        Ok(record) => FoundRecord::Record(Box::new(record)),
    }
}

/// A record held open through its own inode, so that a late renewal can only
/// ever touch its own dead file, and never a successor's.
pub(crate) struct OwnRecord {
    file: Box<dyn StoredFile>,
    pub(crate) record: Record,
}

/// A name beside the locks that only the process that writes or removes this record uses.
fn name_of_its_own(record: &Record) -> RepoPath {
    layout::lock_tmp_under(&record.worktree_id, record.term(), record.lock_id)
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
                let written = file.write_at(0, &bytes).and_then(|()| file.sync());
                let own = OwnRecord { file, record };
                if let Err(error) = written {
                    let _ = own.remove(store);
                    return Err(error);
                }
                store.sync_dir(&layout::locks())?;
                Ok(own)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !may_replace() {
                    return Err(io::Error::other("a lock of another tool is in its place"));
                }
                let tmp = name_of_its_own(&record);
                let file = store.create_own(&tmp)?;
                let put = || {
                    file.write_at(0, &bytes)?;
                    file.sync()?;
                    store.place_over(&DraftFile::of(&tmp, file.as_ref())?, &path)
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
            FoundRecord::Record(record) if record.is_of(state) => {
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

    /// Removes what is left of the record of a claim that ended before `now`, if it is
    /// the record of that claim or of one before it, and not of the process that came next nor a
    /// lock of another tool. Best effort: a record without a holder is drift.
    pub(crate) fn forget(store: &dyn Store, worktree: &WorktreeName, now: &State) {
        let Ok(file) = store.open(&layout::lock_record(worktree)) else { return };
        let Ok(bytes) = file.read_within(READ_MAX, PATIENCE_MS) else { return };
        if let FoundRecord::Record(record) = parse(&bytes, worktree)
            && record.is_not_after(now)
        {
            let _ = OwnRecord { file, record: *record }.remove(store);
        }
    }

    /// Removes the record if it is still this file. A process that is paused between the look
    /// and the removal may find the record of the next holder there, or a lock of
    /// another tool: so it is looked at once more, under a name of its own.
    pub(crate) fn remove(self, store: &dyn Store) -> io::Result<()> {
        let path = layout::lock_record(&self.record.worktree_id);
        let inode = self.file.inode()?;
        match store.inode(&path) {
            Ok(seen) if seen == inode => {
                store.remove_inode(&path, &name_of_its_own(&self.record), inode).map(drop)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use jvs_repo::clock::WallMs;
    use jvs_repo::id::{Epoch, OpNonce};
    use jvs_repo::record::lock::{Kept, With, bounded};

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
    fn a_record_of_another_life_with_the_same_counter_is_not_known_to_be_over() {
        let (state, record) = granted();
        assert!(record.is_not_after(&state) && record.is_not_after(&state.fenced(state.op)));
        assert!(
            !Record { fencing_token: state.token.next(), ..record.clone() }.is_not_after(&state)
        );
        for (his, now) in [(1, 2), (2, 1)] {
            let life = |salt| Epoch { counter: 1, salt };
            let his = Record { epoch: life(his), ..record.clone() };
            let now = State { epoch: life(now), ..state.fenced(state.op) };
            assert!(!his.is_not_after(&now), "{now}");
        }
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
        assert_eq!(bytes.len(), 4096);
        let FoundRecord::Record(back) = parse(&bytes, &WorktreeName::main()) else {
            panic!("readable")
        };
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
            assert!(matches!(parse(bytes, &WorktreeName::main()), FoundRecord::Unreadable(_)));
        }
        let other: WorktreeName = "other".parse().expect("valid");
        assert!(matches!(parse(&whole, &other), FoundRecord::Unreadable(_)));
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
        record.place = Place {
            sort: Some(crate::session::Sort::Terminal),
            terminal: Some("\u{1}".repeat(300)),
            agent: Some("\"".repeat(300)),
            private_dir: Some("\"".repeat(300)),
        }
        .as_recorded(&Place::default());
        let until = Some(record.created_at.clone());
        let with = Some(With::Process { pid: u32::MAX });
        record.kept = Some(Kept { until, with, idle_ms: Some(u64::MAX) });
        assert!(record.to_bytes().is_ok());
    }
}
