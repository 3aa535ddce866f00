//! What there is of one session: its holds, what they rest on, who keeps them, what the
//! registers say to that, and what it was not told yet. Changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use jvs_lock::hold::memory::taken;
use jvs_lock::hold::{HoldName, HoldState, Holds, Reliance, Stake, StakeKind};
use jvs_lock::session::{Identity, SessionId};
use jvs_lock::view::{self, View};
use jvs_repo::clock::{BootMs, Reading, WallMs};
use jvs_repo::id::HolderNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::repo::Repo;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use jvs_repo::term::Term;

use crate::answer::lock::KeeperSeen;
use crate::answer::session as answer;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::given::quoted;
use crate::keeper;
use crate::session;
use crate::session::known::{self, Files};

/// One session.
pub(super) struct SessionSurvey {
    /// What the names of its files begin with.
    pub(super) file: String,
    pub(super) id: Option<SessionId>,
    /// `None` if it never acted on this host.
    pub(super) nonce: Option<HolderNonce>,
    pub(super) holds: Vec<SessionHold>,
    /// In which repository, and what.
    pub(super) notes: Vec<(String, String)>,
    /// When one of its files was last changed, in milliseconds after 1970.
    pub(super) changed_ms: u64,
}

/// One hold of it.
pub(super) struct SessionHold {
    /// Who it was of: the session on this boot, or before.
    holder: HolderNonce,
    /// The repository's id.
    pub(super) repository_id: String,
    /// Where it was when that was last written down.
    pub(super) root: Option<String>,
    pub(super) worktree: WorktreeName,
    pub(super) name: HoldName,
    /// What it rests on, as far as that is alive.
    pub(super) stakes: Vec<(Stake, Reliance)>,
    /// Holds that were taken, of which nobody said to know.
    pub(super) lost: Vec<Term>,
    /// Who keeps it renewed, and whether it lives.
    pub(super) keeper: Option<(u32, Option<bool>)>,
    /// What the register says; or why it cannot be asked.
    pub(super) register: Result<Box<View>, String>,
    at: Reading,
}

/// The private directory, and all that is needed to look into it.
pub(super) struct Looking<'c> {
    context: &'c Context<'c>,
    files: &'c Files,
    me: Identity,
}

impl<'c> Looking<'c> {
    pub(super) fn new(context: &'c Context<'c>, files: &'c Files) -> Result<Self, Failure> {
        Ok(Looking { context, files, me: session::asker(context.env())? })
    }

    /// Looks at the session whose files begin with `file`.
    pub(super) fn at(&self, file: &str, id: Option<SessionId>) -> Result<SessionSurvey, Failure> {
        let nonce = match &id {
            Some(id) => session::own_nonce(Some(id.as_str()), self.context.env())?,
            None => None,
        };
        self.with_nonce(file, id, nonce)
    }

    /// Looks once more at the same, whatever has become of its secret.
    pub(super) fn again(&self, survey: &SessionSurvey) -> Result<SessionSurvey, Failure> {
        self.with_nonce(&survey.file, survey.id.clone(), survey.nonce)
    }

    fn with_nonce(
        &self,
        file: &str,
        id: Option<SessionId>,
        nonce: Option<HolderNonce>,
    ) -> Result<SessionSurvey, Failure> {
        let stuck = |error| Stuck::new("look into the private directory", error);
        // By name: what is of this boot counts before what was known before it.
        let mut holds: BTreeMap<String, SessionHold> = BTreeMap::new();
        if let Some(((store, nonce), id)) = self.files.holds.as_ref().zip(nonce).zip(id.as_ref()) {
            let before = known::holders(store, &session::family(id)).map_err(stuck)?;
            let before = before.into_iter().filter(|holder| *holder != nonce);
            for holder in [nonce].into_iter().chain(before) {
                for name in known::holds(store, holder).map_err(stuck)? {
                    let known = holds.get(&name);
                    if known.is_some_and(|known| known.holder == nonce) {
                        continue;
                    }
                    let last = known.map_or(0, |known| known.name.n);
                    let found = self.holding(file, store, (nonce, holder), &name)?;
                    if let Some(found) = found.filter(|found| found.name.n >= last) {
                        holds.insert(name, found);
                    }
                }
            }
        }
        let holds = holds.into_values().collect();
        let notes = known::notes(&self.files.own, file).map_err(stuck)?;
        let changed_ms = known::changed_ms(self.files, file, nonce);
        Ok(SessionSurvey { file: file.to_owned(), id, nonce, holds, notes, changed_ms })
    }

    /// The hold of that name that `holder` has: `nonce` is who the session is now.
    fn holding(
        &self,
        file: &str,
        store: &PosixStore,
        (nonce, holder): (HolderNonce, HolderNonce),
        name: &str,
    ) -> Result<Option<SessionHold>, Failure> {
        let Some((which, worktree)) = layout::hold_parts(name) else { return Ok(None) };
        let context = self.context;
        let me = self.me.clone();
        let holds = context.holds_in(store, me, holder, which, worktree.clone());
        let Some(name) = holds.peek()?.filter(|name| name.term != HoldName::NEVER.term) else {
            return Ok(None);
        };
        let scan = holds.scan()?;
        // Nothing of another boot runs.
        let alive = if holder == nonce { holds.alive(&scan) } else { Vec::new() };
        let told = holds.told(&alive);
        let root = holds.repository();
        let register = match &root {
            Some(root) => self.look(Path::new(root), nonce, which, &worktree),
            None => Err("its location was not recorded".to_owned()),
        };
        Ok(Some(SessionHold {
            holder,
            repository_id: which.rsplit_once('-').map_or(which, |(id, _)| id).to_owned(),
            root,
            keeper: self.keeper(file, which, &holds)?,
            worktree,
            name,
            stakes: alive.into_iter().copied().zip(told).collect(),
            lost: scan.lost,
            register,
            at: context.clock().now(),
        }))
    }

    fn keeper(
        &self,
        file: &str,
        which: &str,
        holds: &Holds<'_>,
    ) -> Result<Option<(u32, Option<bool>)>, Failure> {
        let Some((repo, inode)) = which.rsplit_once('-') else { return Ok(None) };
        let Some(dir) = session::keepers_dir(self.context.env())? else { return Ok(None) };
        let lock = [repo, inode, holds.worktree().as_str()];
        let keeper = keeper::KeeperIdentity::keeping(dir, file, lock).read();
        Ok(keeper.map(|it| (it.keeper.pid, keeper::running(&it.keeper))))
    }

    /// The register of the very repository that is meant, if it is still there.
    fn look(
        &self,
        root: &Path,
        nonce: HolderNonce,
        which: &str,
        worktree: &WorktreeName,
    ) -> Result<Box<View>, String> {
        let repo = Repo::open(root).map_err(|error| error.to_string())?;
        let stat = repo.store().stat(&RepoPath::root()).map_err(|error| error.to_string())?;
        if format!("{}-{}", repo.id(), stat.inode) != which {
            return Err("another repository is there now".to_owned());
        }
        let policy = repo.config().map_err(|error| error.to_string())?.lock;
        let view = view::look(self.context.seams(repo.store()), &policy, worktree, Some(nonce));
        view.map(Box::new).map_err(|error| error.to_string())
    }
}

impl SessionHold {
    /// Does the register say that the session holds it?
    pub(super) fn is_held(&self) -> Option<bool> {
        self.register.as_ref().ok().map(|view| view.mine)
    }

    /// The commands in it: what guards one is not one, unless nothing else is left of it.
    pub(super) fn commands(&self) -> Vec<&(Stake, Reliance)> {
        let runs = self.stakes.iter().any(|(stake, _)| stake.kind.is_run());
        let is_one = |stake: &Stake| match stake.kind {
            StakeKind::Acquire => !stake.answered,
            StakeKind::Guard => !runs,
            StakeKind::Shell | StakeKind::Run | StakeKind::Work => true,
        };
        self.stakes.iter().filter(|(stake, _)| is_one(stake)).collect()
    }

    /// Does anything of it run, as far as can be seen? A time that was asked for does not,
    /// and means nothing once the register says otherwise.
    pub(super) fn is_alive(&self) -> bool {
        let kept = self.keeper.is_some_and(|(_, alive)| alive != Some(false));
        kept || !self.commands().is_empty()
    }

    /// The hold that was taken from the session, of which nobody said to know.
    pub(super) fn taken(&self) -> Option<Term> {
        let lost = self.lost.first().copied();
        let by_name = match &self.register {
            Ok(view) => taken(&self.name, &view.state),
            Err(_) => (self.name.state == HoldState::Lost).then_some(self.name.term),
        };
        lost.or(by_name)
    }

    /// Options that mean this very worktree from anywhere.
    pub(super) fn options(&self) -> String {
        let root = self.root.as_ref().map(|root| format!(" --repo {}", quoted(root)));
        format!("-w {}{}", self.worktree, root.unwrap_or_default())
    }

    /// For people: the worktree, and where.
    pub(super) fn place(&self) -> String {
        match &self.root {
            Some(root) => format!("{} of {root}", self.worktree),
            None => format!("{} of repository {}", self.worktree, self.repository_id),
        }
    }

    /// How it stands, in a word: the register decides whether it is held.
    pub(super) fn state(&self) -> &'static str {
        match (self.name.state, self.is_held()) {
            (HoldState::Released, _) => "released",
            (HoldState::Lost, _) => "lost",
            (_, Some(false)) => "gone",
            (state, _) => state.as_str(),
        }
    }

    /// For programs.
    pub(super) fn told(&self) -> answer::HoldTold {
        let mine = self.register.as_ref().ok().filter(|view| view.mine);
        answer::HoldTold {
            repository: self.root.clone(),
            repository_id: self.repository_id.clone(),
            worktree: self.worktree.clone(),
            fencing_token: self.name.term.token,
            epoch: self.name.term.epoch,
            state: self.name.state.as_str(),
            held: self.is_held(),
            kept_until: mine.and_then(|view| view.holder().kept_until()),
            stakes: self.stakes.iter().map(|it| self.stake_told(it)).collect(),
            keeper: self.keeper.map(|(pid, alive)| KeeperSeen { pid, alive }),
            taken_token: self.taken().map(|term| term.token),
            problem: self.register.as_ref().err().cloned(),
        }
    }

    fn stake_told(&self, (stake, reliance): &(Stake, Reliance)) -> answer::StakeSeen {
        let at = |boot: BootMs| {
            let now = self.at;
            now.wall.plus(boot.since(now.boot)).into()
        };
        let since = self.since_ms(stake).map(|ms| WallMs(self.at.wall.0.saturating_sub(ms)));
        answer::StakeSeen {
            kind: stake.kind.as_str(),
            pid: stake.maker.pid,
            command: reliance.command.clone(),
            exclusive: stake.exclusive,
            answered: stake.answered,
            since: since.map(Into::into),
            until: stake.over.at.map(at),
            with: stake.over.with.map(|who| answer::EndsWith { pid: who.pid }),
        }
    }

    /// For how long its process, or the one that put it there, has been there.
    pub(super) fn since_ms(&self, stake: &Stake) -> Option<u64> {
        /// What the kernel counts start times in, on every architecture of today.
        const TICKS_PER_SECOND: u64 = 100;
        let started = stake.maker.start.saturating_mul(1_000) / TICKS_PER_SECOND;
        self.at.boot.0.checked_sub(started)
    }
}
