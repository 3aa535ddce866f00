//! The fence register: a directory with exactly one empty file whose *name* is
//! the state. READ, and what the answer of a CAS means. Decides nothing about who may
//! hold, which is for [`crate::decide`], and moves nothing, which is for `drive`.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;

use jvs_repo::clock::Clock;
use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::id::{Epoch, OpNonce, Seq};
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::next::Next;
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};
use rustix::io::Errno;

use crate::backoff::Backoff;
use crate::mutation::Rule;
use crate::state::State;

/// How often a READ that makes no sense is tried again.
const READ_TRIES: u32 = 6;

/// Why the register could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no register for this worktree.
    #[error("the fence register of worktree '{worktree}' is missing")]
    Missing {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// Not exactly one entry with a valid name.
    #[error("the fence register of worktree '{worktree}' is corrupt: {found}")]
    Corrupt {
        /// The worktree.
        worktree: WorktreeName,
        /// What is there instead.
        found: String,
    },
    /// The filesystem shows a state older than one it has shown before.
    #[error(
        "the filesystem went back in time: the register of worktree '{worktree}' was at {}/{} and \
         is now shown at {}/{}",
        seen.0, seen.1, shown.0, shown.1
    )]
    WentBack {
        /// The worktree.
        worktree: WorktreeName,
        /// The newest state seen, as (epoch, seq).
        seen: (Epoch, Seq),
        /// What is shown now.
        shown: (Epoch, Seq),
    },
    /// The filesystem failed.
    #[error("cannot read the fence register of worktree '{worktree}': {source}")]
    Io {
        /// The worktree.
        worktree: WorktreeName,
        /// The system's answer.
        source: io::Error,
    },
}

impl Coded for ReadError {
    fn code(&self) -> Code {
        match self {
            ReadError::Missing { .. } | ReadError::Corrupt { .. } => Code::FenceCorrupt,
            ReadError::WentBack { .. } => Code::UnsafeFilesystem,
            ReadError::Io { source, .. } => code_of_io(source),
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            ReadError::Missing { .. } | ReadError::Corrupt { .. } => Next::StopWritersAndRepair,
            ReadError::WentBack { .. } => Next::ProbeFilesystem,
            ReadError::Io { source, .. } if code_of_io(source) == Code::PathEscape => {
                Next::RemoveSymlink
            }
            ReadError::Io { .. } => {
                "check that the filesystem is mounted and healthy, then try again".into()
            }
        })
    }
}

/// What a rename's answer means.
#[derive(Debug)]
pub enum Answer {
    /// The rename was applied.
    Applied,
    /// Certainly not applied.
    Refused(io::Error),
    /// It may have been applied, or may yet be.
    Unknown(io::Error),
}

impl Answer {
    /// Sorts a rename's answer. Everything that is not a plain refusal is unknown.
    pub fn of(answer: io::Result<()>) -> Self {
        let Err(error) = answer else { return Answer::Applied };
        let refused = match error.raw_os_error() {
            Some(errno) => is_refusal(Errno::from_raw_os_error(errno)),
            // Explained by the store: no errno any more.
            None => matches!(code_of_io(&error), Code::Permission | Code::UnsafeFilesystem),
        };
        if refused { Answer::Refused(error) } else { Answer::Unknown(error) }
    }
}

/// What only a rename that was not applied is answered with.
const REFUSALS: [Errno; 5] =
    [Errno::ROFS, Errno::ACCESS, Errno::PERM, Errno::NAMETOOLONG, Errno::XDEV];

/// Is it one of [`REFUSALS`]? ENOENT is none: metadata engines were seen to answer it for
/// a rename that they had applied and whose reply was lost.
fn is_refusal(errno: Errno) -> bool {
    sabotage!(Rule::EnoentIsUnknown => errno == Errno::NOENT || REFUSALS.contains(&errno));
    REFUSALS.contains(&errno)
}

/// Is this the kind of failure that a network filesystem gets over by itself?
pub fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(
            Errno::IO
                | Errno::STALE
                | Errno::TIMEDOUT
                | Errno::AGAIN
                | Errno::NOTCONN
                | Errno::INTR
        )
    )
}

/// One worktree's register, with a memory of the newest state seen.
pub struct Register<'r> {
    store: &'r dyn Store,
    clock: &'r dyn Clock,
    worktree: WorktreeName,
    dir: RepoPath,
    newest: Cell<Option<(Epoch, Seq)>>,
    marked: Cell<bool>,
}

impl<'r> Register<'r> {
    /// The register of `worktree`. Touches nothing.
    pub fn new(store: &'r dyn Store, clock: &'r dyn Clock, worktree: WorktreeName) -> Self {
        let dir = layout::register(&worktree);
        Register::at(store, clock, worktree, dir)
    }

    /// A register that was put aside: as [`Register::new`], but at `dir`.
    pub fn at(
        store: &'r dyn Store,
        clock: &'r dyn Clock,
        worktree: WorktreeName,
        dir: RepoPath,
    ) -> Self {
        Register { store, clock, worktree, dir, newest: Cell::new(None), marked: Cell::new(false) }
    }

    /// Whose register this is.
    pub fn worktree(&self) -> &WorktreeName {
        &self.worktree
    }

    /// READ: the current state, never an older one than was seen before.
    pub fn read(&self) -> Result<State, ReadError> {
        let mut pauses = pauses();
        loop {
            match (self.read_once(), pauses.next()) {
                (Err(error), Some(pause_ms)) if may_pass(&error) => self.clock.sleep_ms(pause_ms),
                (read, _) => return read,
            }
        }
    }

    /// One try of a READ. What [`may_pass`] of its answers proves nothing yet: a process that
    /// READs many registers pauses for all of them at once, for each of [`pauses`].
    pub fn read_once(&self) -> Result<State, ReadError> {
        let names = self.store.first_batch(&self.dir).map_err(|source| {
            let worktree = self.worktree.clone();
            match source.kind() {
                io::ErrorKind::NotFound => ReadError::Missing { worktree },
                io::ErrorKind::NotADirectory => {
                    ReadError::Corrupt { worktree, found: "it is not a directory".into() }
                }
                _ => ReadError::Io { worktree, source },
            }
        })?;
        let is_mark = |name: &OsString| name.to_str().and_then(layout::restore_mark_of).is_some();
        self.marked.set(names.iter().any(is_mark));
        let is_entry = |name: &&OsString| !name.as_encoded_bytes().starts_with(b".");
        let mut entries = names.iter().filter(is_entry);
        let corrupt = |found: String| ReadError::Corrupt { worktree: self.worktree.clone(), found };
        let name = match (entries.next(), entries.count()) {
            (None, _) => return Err(corrupt("it is empty".into())),
            (Some(name), 0) => name,
            (Some(_), more) => {
                let other = names.iter().filter(is_entry).find(|name| state_of(name).is_none());
                let other = other.map_or_else(String::new, |name| {
                    format!(", and '{}' is not a state", ShownName::new(name))
                });
                return Err(corrupt(format!("it has {} entries{other}", more + 1)));
            }
        };
        let state = state_of(name).ok_or_else(|| {
            corrupt(format!("its entry '{}' is not a state", ShownName::new(name)))
        })?;
        self.remember(state)
    }

    /// Did the last READ see the mark of a restore beside the state? It is there from
    /// before the last renewal under which that restore may be committed, so a
    /// process that moves the register on from what it READ saw it then.
    pub fn is_marked(&self) -> bool {
        self.marked.get()
    }

    /// Takes `state` for what a READ has just shown: another handle's of this process.
    pub(crate) fn take_for_read(&self, state: State) -> Result<State, ReadError> {
        self.remember(state)
    }

    /// Ignores what is older than what was seen: caches, and engines that were
    /// rolled back. Without this a committed publish may be reported as lost.
    fn remember(&self, state: State) -> Result<State, ReadError> {
        let shown = (state.epoch, state.seq);
        if let Some(seen) = self.newest.get()
            && !goes_on(seen, shown)
        {
            return Err(ReadError::WentBack { worktree: self.worktree.clone(), seen, shown });
        }
        self.newest.set(Some(shown));
        Ok(state)
    }

    /// The entry that `state` has. Only [`crate::drive`] needs it, which renames one.
    pub(crate) fn entry_of(&self, state: &State) -> RepoPath {
        self.dir.child(&state.to_string()).expect("a state's name has no slash")
    }

    /// A CAS to `state` was applied: nothing older is believed any more.
    pub(crate) fn was_moved_to(&self, state: &State) {
        self.newest.set(Some((state.epoch, state.seq)));
    }

    /// Makes a mount that serves a cached listing look again, by changing the
    /// directory under a dot-name, which no READ counts.
    pub fn shake(&self, op: OpNonce) -> io::Result<()> {
        let probe = layout::probe_scratch(&self.dir, op);
        drop(self.store.create_own(&probe)?);
        self.store.remove(&probe)
    }

    /// Makes the current state survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.store.sync_dir(&self.dir)
    }
}

/// May a register that was at `seen` be at `shown`? Of another epoch with the same counter
/// nobody knows that it is not older.
fn goes_on(seen: (Epoch, Seq), shown: (Epoch, Seq)) -> bool {
    sabotage!(Rule::MonotoneReads => true);
    shown >= seen
}

fn state_of(name: &OsStr) -> Option<State> {
    name.to_str()?.parse().ok()
}

/// How long a READ pauses before it is tried again, each time.
pub fn pauses() -> impl Iterator<Item = u64> {
    let mut backoff = Backoff::new();
    (1..READ_TRIES).map(move |_| backoff.next_ms())
}

/// Could the next try of a READ answer better? btrfs shows an empty directory for a
/// moment in the middle of a rename, and caches catch up.
pub fn may_pass(error: &ReadError) -> bool {
    match error {
        ReadError::Missing { .. } => false,
        ReadError::Corrupt { .. } | ReadError::WentBack { .. } => true,
        ReadError::Io { source, .. } => is_transient(source),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jvs_repo::clock::{BootId, Discipline, Reading, SystemClock};
    use jvs_repo::store::PosixStore;

    use super::*;

    const OP: OpNonce = OpNonce([1; 8]);

    fn born(counter: u32) -> State {
        State::birth(Epoch { counter, salt: 0 }, OP)
    }

    /// What a READ answers where a register has these entries.
    struct Disk {
        dir: tempfile::TempDir,
        store: PosixStore,
    }

    impl Disk {
        fn with(entries: &[&str]) -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let store = PosixStore::open(dir.path()).expect("open");
            let disk = Disk { dir, store };
            fs_err::create_dir_all(disk.place()).expect("a register");
            entries.iter().for_each(|name| disk.add(name));
            disk
        }

        fn place(&self) -> std::path::PathBuf {
            self.dir.path().join(layout::register(&WorktreeName::main()).as_str())
        }

        fn add(&self, name: &str) {
            fs_err::write(self.place().join(name), "").expect("an entry");
        }

        fn register(&self) -> Register<'_> {
            Register::new(&self.store, &SystemClock, WorktreeName::main())
        }

        fn found(&self) -> String {
            match self.register().read_once().expect_err("corrupt") {
                ReadError::Corrupt { found, .. } => found,
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_register_has_one_entry_whose_name_is_a_state_and_whatever_dots_hide() {
        let state = born(1).to_string();
        let other = born(2).to_string();
        let disk = Disk::with(&[&state, ".probe"]);
        let register = disk.register();
        assert_eq!(register.read().expect("read").to_string(), state);
        assert_eq!(register.worktree(), &WorktreeName::main());
        assert_eq!(Disk::with(&[".probe"]).found(), "it is empty");
        assert_eq!(Disk::with(&["odd"]).found(), "its entry 'odd' is not a state");
        assert_eq!(Disk::with(&[&state, &other]).found(), "it has 2 entries");
        let three = Disk::with(&[&state, "odd", &other]).found();
        assert_eq!(three, "it has 3 entries, and 'odd' is not a state");
        fs_err::remove_dir_all(disk.place()).expect("removed");
        let missing = register.read().expect_err("missing");
        assert!(matches!(missing, ReadError::Missing { .. }), "{missing}");
        fs_err::write(disk.place(), "").expect("a file");
        assert_eq!(disk.found(), "it is not a directory");
    }

    /// A clock on which something happens in each pause.
    struct Pausing<'p> {
        pauses: Mutex<Vec<u64>>,
        meanwhile: &'p (dyn Fn() + Sync),
    }

    impl Clock for Pausing<'_> {
        fn now(&self) -> Reading {
            SystemClock.now()
        }
        fn boot_id(&self) -> BootId {
            SystemClock.boot_id()
        }
        fn discipline(&self) -> Discipline {
            SystemClock.discipline()
        }
        fn sleep_ms(&self, ms: u64) {
            self.pauses.lock().expect("ours").push(ms);
            (self.meanwhile)();
        }
    }

    #[test]
    fn what_may_pass_is_read_again_and_what_is_missing_is_told_at_once() {
        let read = |disk: &Disk, meanwhile: &(dyn Fn() + Sync)| {
            let clock = Pausing { pauses: Mutex::default(), meanwhile };
            let register = Register::new(&disk.store, &clock, WorktreeName::main());
            let read = register.read();
            (read, clock.pauses.into_inner().expect("ours"))
        };
        let state = born(1);
        let empty = Disk::with(&[]);
        let (found, paused) = read(&empty, &|| empty.add(&state.to_string()));
        assert_eq!((found.expect("read"), paused), (state, vec![1]));
        let odd = Disk::with(&["odd"]);
        let (found, paused) = read(&odd, &|| ());
        assert!(found.is_err());
        assert_eq!(paused, pauses().collect::<Vec<_>>());
        fs_err::remove_dir_all(odd.place()).expect("removed");
        let (found, paused) = read(&odd, &|| ());
        assert!(matches!(found, Err(ReadError::Missing { .. })) && paused.is_empty());
    }

    #[test]
    fn nothing_older_is_believed_than_what_was_shown_or_made() {
        let (old, new) = (born(1), born(1).advanced(OP));
        let disk = Disk::with(&[&old.to_string()]);
        let register = disk.register();
        assert_eq!(register.read_once().expect("read"), old);
        register.was_moved_to(&new);
        let back = register.read_once().expect_err("older");
        let places = ((new.epoch, new.seq), (old.epoch, old.seq));
        let told =
            matches!(back, ReadError::WentBack { seen, shown, .. } if (seen, shown) == places);
        assert!(told, "{back}");
        assert!(register.take_for_read(old).is_err());
        assert_eq!(register.take_for_read(new).expect("the same"), new);
        // Of two epochs with one counter neither came first.
        let salted = State::birth(Epoch { counter: 1, salt: 7 }, OP);
        let register = disk.register();
        register.was_moved_to(&salted);
        register.take_for_read(old).expect_err("of another epoch");
        assert_eq!(register.take_for_read(salted).expect("the same"), salted);
    }

    #[test]
    fn the_mark_of_a_restore_is_seen_beside_the_state() {
        let disk = Disk::with(&[&born(1).to_string()]);
        let register = disk.register();
        register.read().expect("read");
        assert!(!register.is_marked());
        let mark = layout::restore_mark(&WorktreeName::main(), OP);
        disk.add(mark.as_str().rsplit('/').next().expect("a name"));
        register.read().expect("read");
        assert!(register.is_marked());
    }

    #[test]
    fn a_mount_is_made_to_look_again_without_a_trace() {
        let disk = Disk::with(&[&born(1).to_string()]);
        let before = fs_err::metadata(disk.place()).expect("there").modified().expect("a time");
        std::thread::sleep(std::time::Duration::from_millis(20));
        disk.register().shake(OP).expect("shaken");
        let after = fs_err::metadata(disk.place()).expect("there").modified().expect("a time");
        assert!(after > before, "the directory was changed");
        assert_eq!(fs_err::read_dir(disk.place()).expect("listed").count(), 1);
        disk.register().sync().expect("made durable");
        fs_err::remove_dir_all(disk.place()).expect("removed");
        disk.register().sync().expect_err("there is nothing to make durable");
        disk.register().shake(OP).expect_err("nor to change");
    }

    #[test]
    fn a_read_is_tried_again_where_the_next_answer_may_be_better() {
        let main = WorktreeName::main;
        let io = |errno: Errno| ReadError::Io {
            worktree: main(),
            source: io::Error::from_raw_os_error(errno.raw_os_error()),
        };
        let passing =
            [Errno::IO, Errno::STALE, Errno::TIMEDOUT, Errno::AGAIN, Errno::NOTCONN, Errno::INTR];
        for errno in (1..=133).map(Errno::from_raw_os_error) {
            assert_eq!(may_pass(&io(errno)), passing.contains(&errno), "{errno:?}");
        }
        let place = (Epoch { counter: 1, salt: 0 }, Seq(0));
        let back = ReadError::WentBack { worktree: main(), seen: place, shown: place };
        let corrupt = ReadError::Corrupt { worktree: main(), found: String::new() };
        let missing = ReadError::Missing { worktree: main() };
        assert!(may_pass(&corrupt) && may_pass(&back) && !may_pass(&missing));
        assert_eq!(pauses().collect::<Vec<_>>(), [1, 2, 4, 8, 16]);

        for (error, code) in [
            (&missing, Code::FenceCorrupt),
            (&corrupt, Code::FenceCorrupt),
            (&back, Code::UnsafeFilesystem),
            (&io(Errno::ACCESS), Code::Permission),
            (&io(Errno::LOOP), Code::PathEscape),
            (&io(Errno::IO), Code::Io),
        ] {
            assert_eq!(error.code(), code, "{error}");
        }
        for error in [&missing, &corrupt] {
            assert_eq!(error.next(), Some(Next::StopWritersAndRepair));
        }
        assert_eq!(back.next(), Some(Next::ProbeFilesystem));
        assert_eq!(io(Errno::LOOP).next(), Some(Next::RemoveSymlink));
        assert!(!matches!(io(Errno::IO).next(), None | Some(Next::RemoveSymlink)));
    }

    #[test]
    fn only_five_answers_say_that_a_rename_was_not_applied() {
        // EPERM, EACCES, EXDEV, EROFS, ENAMETOOLONG; EBUSY, for one, says nothing.
        const REFUSALS: [i32; 5] = [1, 13, 18, 30, 36];
        const LAST_ERRNO: i32 = 133;
        for errno in 1..=LAST_ERRNO {
            let answer = Answer::of(Err(io::Error::from_raw_os_error(errno)));
            let refused = matches!(answer, Answer::Refused(_));
            assert_eq!(refused, REFUSALS.contains(&errno), "errno {errno}");
            assert!(!matches!(answer, Answer::Applied), "errno {errno}");
        }
    }
}
