//! The files of a hold in the session's private directory: one directory whose
//! only entry is the hold's name, one with the stakes.

use std::io;

use jvs_repo::clock::BootMs;
use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::store::RepoPath;

use super::name::{HoldName, HoldState, Term};
use super::refusal::Reliance;
use super::stake::{ANSWERED, Here, Over, Stake};
use crate::backoff::Backoff;
use crate::error::LockError;
use crate::seams::Seams;
use crate::session::Identity;

/// How often the hold's name is looked at before it is given up.
const LOOKS: u32 = 12;

/// How often its name is moved from where it was seen before that is given up.
const ROUNDS: u32 = 500;

/// How other processes of this host are seen.
#[derive(Clone, Copy)]
pub struct Eyes<'r> {
    /// Looks a process up.
    pub lookup: &'r (dyn Fn(u32) -> Option<ProcessStat> + Sync),
    /// The words of a process's command, for people.
    pub words: &'r (dyn Fn(u32) -> Option<String> + Sync),
    /// The time namespace that this process tells time in.
    pub time_namespace: Option<u64>,
}

/// What one look at the stakes shows.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// All of them, alive or not.
    pub stakes: Vec<Stake>,
    /// Holds that were taken from the session, which nobody has said to know of.
    pub lost: Vec<Term>,
}

/// The hold of one worktree of one repository, as one holder knows it. Cheap to
/// clone.
#[derive(Clone)]
pub struct Holds<'r> {
    /// The private directory, the clock, randomness.
    pub(super) seams: Seams<'r>,
    pub(super) eyes: Eyes<'r>,
    pub(super) me: Identity,
    pub(super) worktree: WorktreeName,
    place: RepoPath,
}

impl<'r> Holds<'r> {
    /// The hold that `holder` has of `worktree` in the repository `repo`, in the
    /// private directory that `seams.store` is. Touches nothing.
    pub fn new(
        seams: Seams<'r>,
        eyes: Eyes<'r>,
        me: Identity,
        holder: HolderNonce,
        repo: &str,
        worktree: WorktreeName,
    ) -> Self {
        let place = layout::hold(holder, repo, &worktree);
        Holds { seams, eyes, me, worktree, place }
    }

    /// The worktree.
    pub fn worktree(&self) -> &WorktreeName {
        &self.worktree
    }

    /// The directory that changes whenever the hold does.
    pub fn name_dir(&self) -> RepoPath {
        layout::hold_name(&self.place)
    }

    /// From where stakes are judged, now.
    pub(super) fn here(&self) -> Here<'r> {
        Here {
            pid_namespace: self.me.pid_namespace,
            time_namespace: self.eyes.time_namespace,
            now: self.seams.clock.now().boot,
            lookup: self.eyes.lookup,
        }
    }

    /// Those of `scan` that are still a reason to hold.
    pub fn alive<'s>(&self, scan: &'s Scan) -> Vec<&'s Stake> {
        let here = self.here();
        scan.stakes.iter().filter(|stake| stake.is_alive(here)).collect()
    }

    /// What is known of the commands that `stakes` are of.
    pub fn told(&self, stakes: &[&Stake]) -> Vec<Reliance> {
        let words = |stake: &Stake| {
            let sees = stake.pid_namespace == self.me.pid_namespace;
            sees.then(|| (self.eyes.words)(stake.maker.pid)).flatten()
        };
        stakes.iter().map(|stake| Reliance::of(stake, words(stake))).collect()
    }

    /// The hold's name; `None` if the session never touched this worktree. Makes
    /// nothing.
    pub fn peek(&self) -> Result<Option<HoldName>, LockError> {
        let mut backoff = Backoff::new();
        for _ in 0..LOOKS {
            let names = match self.seams.store.first_batch(&self.name_dir()) {
                Ok(names) => names,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(self.stuck(error)),
            };
            if let [name] = &names[..]
                && let Some(name) = name.to_str().and_then(|name| name.parse().ok())
            {
                return Ok(Some(name));
            }
            self.seams.clock.sleep_ms(backoff.next_ms());
        }
        Err(self.stuck(io::Error::new(io::ErrorKind::InvalidData, "it does not have one name")))
    }

    /// The hold's name, made if this is the session's first look.
    pub(super) fn look(&self) -> Result<HoldName, LockError> {
        if let Some(name) = self.peek()? {
            return Ok(name);
        }
        self.prepare()?;
        self.peek()?.ok_or_else(|| self.stuck(io::ErrorKind::NotFound.into()))
    }

    /// Makes the files. Born like a register: a private directory is filled and then
    /// renamed into place, so that there is exactly one name from the first moment.
    pub fn prepare(&self) -> Result<(), LockError> {
        let store = self.seams.store;
        let made = |answer: io::Result<()>| match answer {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        };
        let make = || {
            let mut above = vec![self.place.clone()];
            while let Some(next) = above.last().map(RepoPath::parent)
                && next != RepoPath::root()
            {
                above.push(next);
            }
            for dir in above.iter().rev() {
                made(store.make_dir(dir))?;
            }
            made(store.make_dir(&self.stakes_dir()))?;
            let op = OpNonce::random(self.seams.entropy);
            let private = layout::hold_birth(&self.place, op);
            store.make_dir(&private)?;
            let entry = private.child(&HoldName::NEVER.to_string())?;
            drop(store.create_new(&entry)?);
            let born = store.rename_new(&private, &self.name_dir());
            if born.is_err() {
                // Another process was first, or it failed: nothing can land later here,
                // on a filesystem of this host.
                let _ = store.unlink(&entry);
                let _ = store.remove_dir(&private);
            }
            made(born)?;
            store.sync_dir(&self.place)
        };
        make().map_err(|error| self.stuck(error))
    }

    /// Moves the hold's name, if it is still `from`. Whatever else is answered: look
    /// again, for nothing rests on having been the one who moved it.
    pub(super) fn swap(&self, from: &HoldName, to: &HoldName) -> Result<bool, LockError> {
        let dir = self.name_dir();
        let path = |name: &HoldName| dir.child(&name.to_string()).expect("a name has no slash");
        match self.seams.store.rename(&path(from), &path(to)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.stuck(error)),
        }
    }

    /// One more round of looking and moving the name. Others move it between the two
    /// only by getting somewhere themselves, so there is an end to that.
    pub(super) fn again(&self, rounds: &mut u32) -> Result<(), LockError> {
        *rounds += 1;
        match *rounds {
            ..=ROUNDS => Ok(()),
            _ => Err(self.stuck(io::Error::new(io::ErrorKind::TimedOut, "its name does not move"))),
        }
    }

    /// Makes the hold's name survive a power cut.
    pub(super) fn sync(&self) -> Result<(), LockError> {
        self.seams.store.sync_dir(&self.name_dir()).map_err(|error| self.stuck(error))
    }

    /// All stakes, and what was lost.
    pub fn scan(&self) -> Result<Scan, LockError> {
        let entries = match self.seams.store.list(&self.stakes_dir()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(self.stuck(error)),
        };
        let names: Vec<&str> = entries.iter().filter_map(|entry| entry.name.to_str()).collect();
        let mut scan = Scan::default();
        let mut answered: Vec<OpNonce> = Vec::new();
        for name in names {
            if let Some(id) = name.strip_suffix(ANSWERED).and_then(|id| id.strip_suffix('.')) {
                answered.extend(id.parse::<OpNonce>().ok());
            } else if let Some(term) = layout::lost_hold(name) {
                scan.lost.push(Term { epoch: term.0, token: term.1 });
            } else if let Ok(stake) = name.parse::<Stake>() {
                scan.stakes.push(stake);
            }
        }
        for stake in &mut scan.stakes {
            stake.answered = answered.contains(&stake.id);
        }
        Ok(scan)
    }

    /// Puts a stake there.
    pub(super) fn place(&self, stake: &Stake) -> Result<(), LockError> {
        let path = self.of_stake(&stake.to_string());
        self.seams.store.create_new(&path).map(drop).map_err(|error| self.stuck(error))
    }

    /// Says which hold a stake is in, now that it is known.
    pub(super) fn bind(&self, stake: &mut Stake, term: Term) -> Result<(), LockError> {
        let bound = Stake { term: Some(term), ..*stake };
        let (from, to) = (self.of_stake(&stake.to_string()), self.of_stake(&bound.to_string()));
        self.seams.store.rename(&from, &to).map_err(|error| self.stuck(error))?;
        *stake = bound;
        Ok(())
    }

    /// Says that the command of a stake has answered, or is about to.
    pub fn answered(&self, stake: &mut Stake) -> Result<(), LockError> {
        let path = self.of_stake(&stake.answered_name());
        match self.seams.store.create_new(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.stuck(error)),
            _ => {
                stake.answered = true;
                Ok(())
            }
        }
    }

    /// A stake in `term` that is over at a time, for nobody in particular, lasts until
    /// `at` instead, if that is later.
    pub fn prolong(&self, term: Term, at: Option<BootMs>) -> Result<(), LockError> {
        let scan = self.scan()?;
        for old in &scan.stakes {
            let lasts = old.answered && old.over.with.is_none() && old.over.at.is_some();
            if old.term != Some(term) || !lasts || at <= old.over.at {
                continue;
            }
            // First the new one, so that there is one at every moment.
            let id = OpNonce::random(self.seams.entropy);
            let mut new = Stake { id, over: Over { with: None, at }, ..*old };
            self.place(&new)?;
            self.answered(&mut new)?;
            self.remove(old);
        }
        Ok(())
    }

    /// Takes a stake back. Best effort: one whose process has ended is over anyway.
    pub fn remove(&self, stake: &Stake) {
        let _ = self.seams.store.unlink(&self.of_stake(&stake.to_string()));
        if stake.answered {
            let _ = self.seams.store.unlink(&self.of_stake(&stake.answered_name()));
        }
    }

    /// Clears up what is left of the stakes in a hold that has ended.
    pub(super) fn sweep(&self, term: Term) {
        let Ok(scan) = self.scan() else { return };
        for stake in scan.stakes.iter().filter(|stake| stake.term == Some(term)) {
            self.remove(stake);
        }
    }

    /// The session itself made an end of it: the worktree is gone, or somebody says
    /// that nothing is to be remembered.
    pub fn forget(&self) -> Result<(), LockError> {
        let mut rounds = 0;
        while let Some(hold) = self.peek()? {
            self.again(&mut rounds)?;
            if self.swap(&hold, &hold.then(HoldState::Released))? {
                break;
            }
        }
        for term in self.scan()?.lost {
            self.forget_loss(term)?;
        }
        Ok(())
    }

    /// Keeps in mind, durably, that a hold was taken.
    pub(super) fn remember_loss(&self, term: Term) -> Result<(), LockError> {
        let path = self.of_stake(&layout::lost_hold_name(term.epoch, term.token));
        match self.seams.store.create_new(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.stuck(error)),
            _ => {
                let synced = self.seams.store.sync_dir(&self.stakes_dir());
                synced.map_err(|error| self.stuck(error))
            }
        }
    }

    /// Somebody said to know of it.
    pub(super) fn forget_loss(&self, term: Term) -> Result<(), LockError> {
        let path = self.of_stake(&layout::lost_hold_name(term.epoch, term.token));
        match self.seams.store.unlink(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.stuck(error)),
            _ => Ok(()),
        }
    }

    fn stakes_dir(&self) -> RepoPath {
        layout::hold_stakes(&self.place)
    }

    fn of_stake(&self, name: &str) -> RepoPath {
        self.stakes_dir().child(name).expect("a stake's name has no slash")
    }

    pub(super) fn stuck(&self, source: io::Error) -> LockError {
        let doing = "cannot use the session's private directory for the hold";
        LockError::Io { worktree: self.worktree.clone(), doing, source }
    }
}
