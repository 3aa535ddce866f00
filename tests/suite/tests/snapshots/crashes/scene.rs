//! A repository in which commands die, and those who come next.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::{DEADLINE, Running, eventually};
use jvs_lock::{Hold, State};
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::term::Term;
use jvs_snapshot::staging_name::{SnapshotBound, StagingName};
use rustix::process::Signal;

use super::rows::Row;
use crate::user::User;

pub(crate) struct Scene {
    /// Who types the command.
    pub(crate) user: User,
    /// Another session of the same host.
    pub(crate) rival: User,
    /// Who only looks.
    pub(crate) stranger: User,
    heir: User,
    waiting: RefCell<Option<Running>>,
    number: Cell<usize>,
    old: String,
}

impl Scene {
    /// A new repository below `dir`, with a snapshot that has a tag.
    pub(crate) fn at(dir: &Path) -> Self {
        let root = dir.join("r");
        let user = User::with_new_repository(&root);
        for setting in [
            "lock.max_clock_skew_ms 0",
            "lock.steal_grace_ms 0",
            "reclaim.same_user true",
            "reclaim.emergency_override true",
        ] {
            user.jvs(&format!("config set {setting}")).ok();
        }
        user.write("a", "old");
        user.write("d/b", "old");
        let old = user.snapshot();
        user.data("tag @ old");
        let of = |session: &str| User::of(&root).session(session);
        Scene {
            user,
            rival: of("rival"),
            stranger: of("stranger"),
            heir: of("heir"),
            waiting: RefCell::new(None),
            number: Cell::new(0),
            old,
        }
    }

    /// The command of a row.
    pub(crate) fn command(&self, row: &Row) -> Jvs {
        let words = self.numbered(row.words);
        self.user.command(&words).env("SHELL", "/bin/true")
    }

    /// What the register of `main` says, beside whatever marks are in it.
    pub(crate) fn hold(&self) -> Hold {
        let names = self.user.names(&layout::register(&WorktreeName::main()));
        let states: Vec<State> = names.iter().filter_map(|name| name.parse().ok()).collect();
        assert_eq!(states.len(), 1, "{names:?}");
        states[0].hold
    }

    /// Words in which `{n}` is the number of this time.
    pub(crate) fn numbered(&self, words: &str) -> String {
        let root = self.user.root.to_str().expect("text");
        words.replace("{n}", &format!("{}", 100 + self.number.get())).replace("{root}", root)
    }

    /// Where `init` makes one more repository.
    pub(crate) fn made(&self) -> PathBuf {
        PathBuf::from(self.numbered("{root}-{n}"))
    }

    /// A directory with a file in it, which is to become a repository.
    pub(crate) fn make_room(&self) {
        fs_err::create_dir_all(self.made()).expect("made");
        fs_err::write(self.made().join("precious"), "precious").expect("written");
    }

    /// A session holds the lock, and its lease is over.
    pub(crate) fn have_a_lease_run_out(&self) {
        self.rival.jvs("lock acquire --no-keeper --lease 200ms").ok();
        eventually("its lease is over", DEADLINE, || {
            self.stranger.data("lock status")["stealable_in_ms"] == 0
        });
    }

    /// One session waits for the lock.
    pub(crate) fn have_the_heir_wait(&self) {
        let running = self.heir.command("lock acquire --wait=60s --no-keeper").start();
        *self.waiting.borrow_mut() = Some(running);
        eventually("the heir waits", DEADLINE, || {
            let line = self.user.root.join(layout::queue(&WorktreeName::main()).as_str());
            fs_err::read_dir(line).is_ok_and(|line| line.count() == 1)
        });
    }

    /// Whatever earlier rows left is taken away, and another number begins.
    pub(crate) fn clear(&self) {
        self.number.set(self.number.get() + 1);
        self.let_nobody_wait();
        self.free_the_lock("cleared");
        for name in ["old", "new"] {
            let _ = self.user.jvs(&format!("worktree remove {name} --force"));
        }
        self.user.write("a", "old");
        self.user.write("d/b", "old");
    }

    fn let_nobody_wait(&self) {
        if let Some(mut running) = self.waiting.borrow_mut().take()
            && !running.ended()
        {
            running.signal(Signal::KILL);
            let _ = running.wait(DEADLINE);
        }
    }

    /// Somebody else gets the lock: at once if nobody has it, else because the rules of
    /// the repository allow it.
    fn free_the_lock(&self, what: &str) {
        if matches!(self.hold(), Hold::Frozen(_)) {
            self.rival.jvs("lock unfreeze").ok();
        }
        let taken = match self.hold() {
            Hold::Free => self.rival.jvs("lock acquire --no-keeper"),
            // An emergency: who died before its record was there is of no known user.
            _ => self.rival.jvs("lock reclaim --reason test --emergency --no-keeper"),
        };
        assert_eq!(taken.code(), 0, "{what}: a lone survivor does not get the lock: {taken}");
        self.rival.jvs("lock release").ok();
        self.user.says_it_knows();
    }

    pub(crate) fn a_survivor_gets_the_lock(&self, what: &str) {
        self.let_nobody_wait();
        self.free_the_lock(what);
    }

    pub(crate) fn doctor_leaves_nothing(&self, what: &str) {
        let repaired = self.stranger.jvs("doctor --strict --repair --json");
        assert_eq!(repaired.json()["data"]["healthy"], true, "{what}: {repaired}");
        let then = self.stranger.jvs("doctor --strict --json");
        assert_eq!(then.json()["data"]["healthy"], true, "{what}: {then}");
    }

    /// What was there before all deaths.
    pub(crate) fn everything_promised_is_there(&self, what: &str) {
        let info = self.stranger.jvs("info old --json");
        assert_eq!(info.json()["data"]["snapshot_id"], *self.old, "{what}: {info}");
        assert_eq!(self.user.read_in(&self.old, "d/b"), "old", "{what}");
        let made = self.made();
        if made.exists() {
            let homes = ["precious", "main/precious"].map(|file| made.join(file));
            let own = self.private_copies(&made);
            let kept = homes.iter().chain(&own).filter(|file| file.is_file()).count();
            assert_eq!(kept, 1, "{what}: the file of the one who adopts");
        }
    }

    /// Where an interrupted `init` has the file for a moment.
    fn private_copies(&self, made: &Path) -> Vec<PathBuf> {
        let entries = fs_err::read_dir(made).expect("listed").map(|entry| entry.expect("listed"));
        let hidden = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        hidden.map(|entry| entry.path().join("main/precious")).collect()
    }

    /// A snapshot that was begun under a token that is over.
    pub(crate) fn leave_a_dead_draft(&self) {
        self.user.snapshot();
        let state = self.user.state();
        let bound = SnapshotBound {
            worktree: WorktreeName::main(),
            term: Term { token: FencingToken(state.token.0 - 1), ..state.term() },
            parent: state.head,
            generation: state.generation,
            id: SnapshotId { created_ms: 1_700_000_000_000, random: 7 },
        };
        let dir = self.user.root.join(StagingName::Snapshot(bound).path().as_str());
        fs_err::create_dir_all(dir.join("payload")).expect("made");
        fs_err::write(dir.join("payload/a"), "never finished").expect("written");
    }
}
