//! The files of a hold in the session's private directory: one directory whose
//! only entry is the hold's name, one with the stakes.

use std::io;

use jvs_repo::clock::BootMs;
use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc::ProcessStat;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

use super::claim;
use super::name::{HoldName, HoldState};
use super::refusal::{HoldError, Reliance};
use super::rule::HoldRule;
use super::stake::{ANSWERED, Sight, Stake, StakeEnd, StakeKind, Viewpoint, YIELDS};
use crate::backoff::Backoff;
use crate::lease::Lease;
use crate::seams::Seams;
use crate::session::Identity;

/// How often the hold's name is looked at before it is given up.
const LOOKS: u32 = 12;

/// How often its name is moved from where it was seen before that is given up.
const ROUNDS: u32 = 500;

/// How other processes of this host are seen.
#[derive(Clone, Copy)]
pub struct ProcessLookup<'r> {
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
    /// Those that are over as well once the session gives no sign of life.
    pub yielding: Vec<OpNonce>,
}

/// What one look at the hold's name shows.
enum NameRead {
    Name(HoldName),
    /// The session never touched this worktree.
    NoFiles,
    /// There is a place for it, and nothing in it.
    Nothing,
}

impl Scan {
    /// Is it over once the session gives no sign of life?
    pub fn yields(&self, stake: &Stake) -> bool {
        self.yielding.contains(&stake.id)
    }
}

/// The hold of one worktree of one repository, as one holder knows it. Cheap to
/// clone.
#[derive(Clone)]
pub struct Holds<'r> {
    /// The private directory, the clock, randomness.
    pub(super) seams: Seams<'r>,
    pub(super) processes: ProcessLookup<'r>,
    pub(super) me: Identity,
    pub(super) holder: HolderNonce,
    pub(super) repo: String,
    pub(super) worktree: WorktreeName,
    pub(super) place: RepoPath,
    /// Where all are listed who were this session on this machine.
    pub(super) family: Option<RepoPath>,
    /// Where the repository is, for people.
    pub(super) root: Option<String>,
}

impl<'r> Holds<'r> {
    /// The hold that `holder` has of `worktree` in the repository `repo`, in the
    /// private directory that `seams.store` is. Touches nothing.
    pub fn new(
        seams: Seams<'r>,
        processes: ProcessLookup<'r>,
        me: Identity,
        holder: HolderNonce,
        repo: &str,
        worktree: WorktreeName,
    ) -> Self {
        let place = layout::hold(holder, repo, &worktree);
        let repo = repo.to_owned();
        Holds { seams, processes, me, holder, repo, worktree, place, family: None, root: None }
    }

    /// The same, remembering what other holders knew who were this session on this
    /// machine: `family` is its name, the same for all of them and for nobody else.
    #[must_use]
    pub fn remembering(self, family: &str) -> Self {
        Holds { family: Some(layout::holders(family)), ..self }
    }

    /// The same hold of another holder, to look at.
    pub(super) fn at(&self, place: RepoPath) -> Self {
        Holds { place, family: None, ..self.clone() }
    }

    /// The hold that the same session has of another worktree of the repository.
    #[must_use]
    pub fn of(&self, worktree: &WorktreeName) -> Self {
        let place = layout::hold(self.holder, &self.repo, worktree);
        Holds { worktree: worktree.clone(), place, ..self.clone() }
    }

    /// The same of a repository at `root`, which is written down for people when the
    /// files are made.
    #[must_use]
    pub fn of_repository_at(self, root: String) -> Self {
        Holds { root: Some(root), ..self }
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
    pub(super) fn here(&self) -> Viewpoint<'r> {
        Viewpoint {
            pid_namespace: self.me.pid_namespace,
            time_namespace: self.processes.time_namespace,
            now: self.seams.clock.now().boot,
            lookup: self.processes.lookup,
        }
    }

    /// Those of `scan` that are still a reason to hold.
    pub fn alive<'s>(&self, scan: &'s Scan) -> Vec<&'s Stake> {
        scan.stakes.iter().filter(|stake| self.sight(stake) != Sight::Dead).collect()
    }

    /// What is seen of a stake: its process, or else whether that still claims its file.
    pub fn sight(&self, stake: &Stake) -> Sight {
        let here = self.here();
        let seen = match stake.sight(here) {
            Sight::Unseen if stake.is_over_with_its_maker() => {
                match self.seams.store.is_claimed(&self.of_stake(&stake.to_string())) {
                    Some(true) => Sight::Alive,
                    Some(false) => Sight::Dead,
                    None => Sight::Unseen,
                }
            }
            seen => seen,
        };
        let asked = stake.kind == StakeKind::Acquire && !stake.answered;
        match seen == Sight::Dead && asked && self.has_answered(stake) {
            // Its command has answered since the stakes were listed, and then ended.
            true => Stake { answered: true, ..*stake }.sight(here),
            false => seen,
        }
    }

    /// Has it answered by now? What cannot be told has.
    fn has_answered(&self, stake: &Stake) -> bool {
        self.seams.store.is_there(&self.of_stake(&stake.answered_name())).unwrap_or(true)
    }

    /// Takes the stakes away that `term` rests on, or may soon, and of which nobody can
    /// tell whether they are alive: somebody says that they are not. Answers which.
    pub fn drop_unseen(&self, term: Term) -> Result<Vec<Stake>, HoldError> {
        let mut stakes = self.scan()?.stakes;
        stakes.retain(|stake| stake.term.is_none_or(|its| its == term));
        stakes.retain(|stake| self.sight(stake) == Sight::Unseen);
        stakes.iter().for_each(|stake| self.remove(stake));
        Ok(stakes)
    }

    /// What is known of the commands that `stakes` are of.
    pub fn told(&self, stakes: &[&Stake]) -> Vec<Reliance> {
        let words = |stake: &Stake| {
            let sees = stake.pid_namespace == self.me.pid_namespace;
            sees.then(|| (self.processes.words)(stake.maker.pid)).flatten()
        };
        stakes.iter().map(|stake| Reliance::of(stake, words(stake))).collect()
    }

    /// The hold's name; `None` if the session never touched this worktree. Makes
    /// nothing.
    pub fn peek(&self) -> Result<Option<HoldName>, HoldError> {
        match self.read_name()? {
            NameRead::Name(name) => Ok(Some(name)),
            NameRead::NoFiles => Ok(None),
            // What it said is gone: taken, as far as anybody can know.
            NameRead::Nothing => Ok(Some(HoldName::UNKNOWN)),
        }
    }

    fn read_name(&self) -> Result<NameRead, HoldError> {
        let mut backoff = Backoff::new();
        let mut empty = 0;
        for _ in 0..LOOKS {
            let names = match self.seams.store.first_batch(&self.name_dir()) {
                Ok(names) => names,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(NameRead::NoFiles);
                }
                Err(error) => return Err(self.stuck(error)),
            };
            // What has no such name is nobody's hold.
            let mut holds = names.iter().filter_map(|name| name.to_str()?.parse().ok());
            match (holds.next(), holds.next()) {
                (Some(name), None) => return Ok(NameRead::Name(name)),
                // Names that say nothing may be one that was torn: nobody guesses.
                _ if names.is_empty() => empty += 1,
                _ => {}
            }
            self.seams.clock.sleep_ms(backoff.next_ms());
        }
        match empty {
            LOOKS => Ok(NameRead::Nothing),
            _ => {
                let two = io::Error::new(io::ErrorKind::InvalidData, "it does not have one name");
                Err(self.stuck(two))
            }
        }
    }

    /// The hold's name, made if this is the session's first look.
    pub(super) fn look(&self) -> Result<HoldName, HoldError> {
        match self.read_name()? {
            NameRead::Name(name) => return Ok(name),
            NameRead::NoFiles => self.prepare()?,
            NameRead::Nothing => self.name_anew()?,
        }
        self.peek()?.ok_or_else(|| self.stuck(io::ErrorKind::NotFound.into()))
    }

    /// Gives a hold a name whose own is gone: somebody removed it, or the disk lost it.
    /// Nobody knows what it said, so the session is asked before it writes. Nobody else
    /// moves a name that is not there, and two who do this make the same.
    fn name_anew(&self) -> Result<(), HoldError> {
        let path = self.name_dir().child(&HoldName::UNKNOWN.to_string()).expect("no slash");
        match self.seams.store.create_new(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.stuck(error)),
            _ => Ok(()),
        }
    }

    /// Makes the files. Born like a register: a private directory is filled and then
    /// renamed into place, so that there is exactly one name from the first moment.
    pub fn prepare(&self) -> Result<(), HoldError> {
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
            let past = self.past()?;
            for lost in &past.lost {
                // Before the name, which says that all that is known was taken in.
                let path = self.of_stake(&layout::lost_hold_name(*lost));
                made(store.create_new(&path).map(drop))?;
            }
            if !past.lost.is_empty() {
                store.sync_dir(&self.stakes_dir())?;
            }
            let entry = private.child(&past.name.to_string())?;
            drop(store.create_new(&entry)?);
            // Or a power cut could leave it there without a name.
            store.sync_dir(&private)?;
            let born = store.rename_new(&private, &self.name_dir());
            if born.is_err() {
                // Another process was first, or it failed: nothing can land later here,
                // on a filesystem of this host.
                let _ = store.unlink(&entry);
                let _ = store.remove_dir(&private);
            }
            made(born)?;
            // A process that is told that it holds must be remembered as one who did.
            store.sync_dir(&self.place)?;
            above.iter().try_for_each(|dir| store.sync_dir(&dir.parent()))
        };
        make().map_err(|error| self.stuck(error))?;
        self.tell_repository();
        Ok(())
    }

    /// Moves the hold's name, if it is still `from`. Whatever else is answered: look
    /// again, for nothing rests on having been the one who moved it.
    pub(super) fn swap(&self, from: &HoldName, to: &HoldName) -> Result<bool, HoldError> {
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
    pub(super) fn again(&self, rounds: &mut u32) -> Result<(), HoldError> {
        *rounds += 1;
        match *rounds {
            ..=ROUNDS => Ok(()),
            _ => Err(self.stuck(io::Error::new(io::ErrorKind::TimedOut, "its name does not move"))),
        }
    }

    /// Makes the hold's name and the grant that it rests on survive a power cut: both or
    /// neither may be told of, so neither waits for the other.
    pub(super) fn sync_with(&self, lease: &Lease<'_>) -> io::Result<()> {
        let mut granted = Ok(());
        let mut sync_grant = || granted = lease.sync_grant();
        self.seams.store.sync_dir_beside(&self.name_dir(), &mut sync_grant)?;
        granted
    }

    /// All stakes, and what was lost.
    pub fn scan(&self) -> Result<Scan, HoldError> {
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
            } else if let Some(id) = name.strip_suffix(YIELDS).and_then(|id| id.strip_suffix('.')) {
                scan.yielding.extend(id.parse::<OpNonce>().ok());
            } else if let Some(term) = layout::lost_hold(name) {
                scan.lost.push(term);
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
    pub(super) fn place(&self, stake: &Stake) -> Result<(), HoldError> {
        let path = self.of_stake(&stake.to_string());
        let claim = self.seams.store.create_claimed(&path).map_err(|error| self.stuck(error))?;
        claim::keep(stake.id, claim);
        Ok(())
    }

    /// Says which hold a stake is in, now that it is known.
    pub(super) fn bind(&self, stake: &mut Stake, term: Term) -> Result<(), HoldError> {
        sabotage!(HoldRule::StakeComesFirst => Ok(()));
        self.rewrite(stake, Stake { term: Some(term), ..*stake })
    }

    /// Says something else of a stake of one's own, in one step.
    pub(super) fn rewrite(&self, stake: &mut Stake, anew: Stake) -> Result<(), HoldError> {
        let (from, to) = (self.of_stake(&stake.to_string()), self.of_stake(&anew.to_string()));
        self.seams.store.rename(&from, &to).map_err(|error| self.stuck(error))?;
        *stake = anew;
        Ok(())
    }

    /// Says that the command of a stake has answered, or is about to.
    pub fn answered(&self, stake: &mut Stake) -> Result<(), HoldError> {
        let path = self.of_stake(&stake.answered_name());
        match self.seams.store.create_new(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.stuck(error)),
            _ => {
                stake.answered = true;
                Ok(())
            }
        }
    }

    /// Says of a stake that it is over as well once the session gives no sign of life.
    /// Before its command answers: what is promised then is promised with that.
    pub fn yields_when_idle(&self, stake: &Stake) -> Result<(), HoldError> {
        match self.seams.store.create_new(&self.of_stake(&stake.yields_name())) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.stuck(error)),
            _ => Ok(()),
        }
    }

    /// The time of a stake is over now. Best effort: a process that replaced it since has said
    /// another time.
    pub fn run_out(&self, stake: &Stake, now: BootMs) {
        let over = Stake { over: StakeEnd { at: Some(now), ..stake.over }, ..*stake };
        let (from, to) = (self.of_stake(&stake.to_string()), self.of_stake(&over.to_string()));
        let _ = self.seams.store.rename(&from, &to);
    }

    /// A stake in `term` that is over at a time, for nobody in particular, lasts until
    /// `at` instead, if that is later.
    pub fn prolong(&self, term: Term, at: Option<BootMs>) -> Result<(), HoldError> {
        let scan = self.scan()?;
        for old in &scan.stakes {
            let lasts = old.answered && old.over.with.is_none() && old.over.at.is_some();
            if old.term != Some(term) || !lasts || at <= old.over.at {
                continue;
            }
            // First the new one, so that there is one at every moment.
            let id = OpNonce::random(self.seams.entropy);
            let mut new = Stake { id, over: StakeEnd { with: None, at }, ..*old };
            self.place(&new)?;
            if scan.yields(old) {
                self.yields_when_idle(&new)?;
            }
            self.answered(&mut new)?;
            self.remove(old);
        }
        Ok(())
    }

    /// Takes a stake back. Best effort: one whose process has ended is over anyway.
    pub fn remove(&self, stake: &Stake) {
        let _ = self.seams.store.unlink(&self.of_stake(&stake.to_string()));
        claim::give_up(stake.id);
        if stake.answered {
            let _ = self.seams.store.unlink(&self.of_stake(&stake.answered_name()));
        }
        if stake.kind == StakeKind::Acquire && stake.over.with.is_none() {
            let _ = self.seams.store.unlink(&self.of_stake(&stake.yields_name()));
        }
    }

    /// Clears up what `scan` showed of stakes in the hold `term`, which has ended since.
    /// If the register was then seen free under that token (`confirmed`), also what the
    /// dead left on their way into this hold or an earlier one: no CAS that they had
    /// issued can land beside the process that takes the lock from here on.
    pub(super) fn sweep(&self, scan: &Scan, term: Term, confirmed: bool) {
        for stake in &scan.stakes {
            let earlier = stake.term.is_none_or(|its| its < term);
            let dead = || self.sight(stake) == Sight::Dead;
            if stake.term == Some(term) || confirmed && earlier && dead() {
                self.remove(stake);
            }
        }
    }

    /// The session itself made an end of it: the worktree is gone, or somebody says
    /// that nothing is to be remembered.
    pub fn forget(&self) -> Result<(), HoldError> {
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
    pub(super) fn remember_loss(&self, term: Term) -> Result<(), HoldError> {
        let path = self.of_stake(&layout::lost_hold_name(term));
        match self.seams.store.create_new(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.stuck(error)),
            _ => {
                let synced = self.seams.store.sync_dir(&self.stakes_dir());
                synced.map_err(|error| self.stuck(error))
            }
        }
    }

    /// Somebody said to know of it.
    pub(super) fn forget_loss(&self, term: Term) -> Result<(), HoldError> {
        let path = self.of_stake(&layout::lost_hold_name(term));
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

    pub(super) fn stuck(&self, source: io::Error) -> HoldError {
        if source.kind() == io::ErrorKind::NotFound {
            // Nothing of it goes away but with all of it.
            return HoldError::Forgotten { worktree: self.worktree.clone() };
        }
        HoldError::Io { worktree: self.worktree.clone(), source }
    }
}
