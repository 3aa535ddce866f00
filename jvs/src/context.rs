//! What the words and the environment mean: which repository, which worktree,
//! which session. The only reader of the environment.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jvs_lock::hold::{HandedTerm, Holds, ProcessLookup};
use jvs_lock::holder::Onlooker;
use jvs_lock::session::{Purpose, SessionId};
use jvs_lock::{Identity, Locks, Seams, Session, State, Ticket};
use jvs_repo::audit::{Alone, AppendTurn, Log, WriterId};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::config::LockPolicy;
use jvs_repo::discover::{ControlDir, Located, discover, discover_here};
use jvs_repo::entropy::{Entropy, SystemEntropy};
use jvs_repo::id::{FencingToken, HolderNonce, strict_decimal};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc;
use jvs_repo::repo::Repo;
use jvs_repo::store::{PosixStore, RepoPath, Store, WhenAsked};
use jvs_repo::term::Term;
use jvs_snapshot::show_head;

use crate::answer::Told;
use crate::args::Global;
use crate::fail::{Failure, Stuck};
use crate::given::GivenOptions;
use crate::hint::OwnNext;
use crate::render::{Done, Output, Paint};
use crate::session::life::SignsOfLife;
use crate::session::{self, Acting, Unusable, Whence};
use crate::watch_reporter::WatchReporter;
use crate::{ownership, trust, umask};

/// The environment variables, through a door that tests can stand in.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
}

impl<'a> Env<'a> {
    pub(crate) fn new(lookup: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Env { lookup }
    }

    pub(crate) fn of_process() -> Self {
        Env::new(&|name| std::env::var_os(name))
    }

    pub(crate) fn get(self, name: &str) -> Option<OsString> {
        (self.lookup)(name)
    }

    /// A variable that must be text; empty is as good as unset.
    pub(crate) fn text(self, name: &'static str) -> Result<Option<String>, Unusable> {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        value.into_string().map(Some).map_err(|_| {
            Unusable::new(format!("{name} is not UTF-8"), format!("unset {name} or set it again"))
        })
    }

    /// The directory that a variable names, unless that depends on where one is.
    pub(crate) fn path(self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Is a variable set to anything but a plain no?
    pub(crate) fn says_yes(self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !["", "0", "false"].iter().any(|no| value == *no))
    }
}

/// Everything a command is given besides its own arguments.
pub(crate) struct Context<'a> {
    global: Global,
    env: Env<'a>,
    output: Output,
    clock: SystemClock,
    entropy: SystemEntropy,
    watch_reporter: Arc<WatchReporter>,
    found: OnceLock<(ControlDir, PathBuf)>,
    warned: Mutex<Vec<String>>,
    told: Mutex<Vec<String>>,
}

/// A repository, and the worktree in it that is meant.
pub(crate) struct Here {
    pub(crate) repo: Repo,
    pub(crate) worktree: WorktreeName,
}

impl<'a> Context<'a> {
    pub(crate) fn new(global: Global, env: Env<'a>, output: Output) -> Self {
        let watch_reporter = Arc::new(WatchReporter::new(output));
        let (clock, entropy, told) = (SystemClock, SystemEntropy, Mutex::default());
        let (found, warned) = (OnceLock::new(), Mutex::default());
        Context { global, env, output, clock, entropy, watch_reporter, found, warned, told }
    }

    /// Remembers what has to be told with the answer, whatever that will be.
    pub(crate) fn tell(&self, warning: String) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// What was remembered so far.
    pub(crate) fn take_told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How to emphasise text on standard output.
    pub(crate) fn paint(&self) -> Paint {
        Paint
    }

    /// An answer whose data is only made if a program wants it.
    pub(crate) fn done<A: Told>(&self, answer: impl FnOnce() -> A) -> Done {
        if self.output.is_json() { Done::new(&answer()) } else { Done::silent() }
    }

    pub(crate) fn output(&self) -> Output {
        self.output
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    /// Who tells that a lock is watched before it is taken.
    pub(crate) fn watch_reporter(&self) -> &WatchReporter {
        &self.watch_reporter
    }

    /// For how long a lock was watched by this command before it was taken.
    pub(crate) fn watched_ms(&self) -> u64 {
        self.watch_reporter.watched_ms()
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &self.entropy
    }

    /// The repository that is meant.
    pub(crate) fn repo(&self) -> Result<Repo, Failure> {
        let located = self.locate()?;
        Ok(Repo::reached(&located.reach, &located.root)?)
    }

    /// The root of the repository that is meant, whatever state it is in.
    pub(crate) fn root(&self) -> Result<PathBuf, Failure> {
        Ok(self.locate()?.root)
    }

    /// The repository and the worktree that are meant: the one given, the one
    /// the user stands in, else `main`.
    pub(crate) fn here(&self) -> Result<Here, Failure> {
        self.here_as_asked(WhenAsked::Now)
    }

    /// The same for a process that goes on with what its starter has just asked for.
    pub(crate) fn here_of_starter(&self) -> Result<Here, Failure> {
        self.here_as_asked(WhenAsked::ByStarter)
    }

    fn here_as_asked(&self, asked: WhenAsked) -> Result<Here, Failure> {
        let given = self.given_worktree()?;
        let located = self.locate()?;
        let worktree = given.or(located.worktree).unwrap_or_else(WorktreeName::main);
        let memory = || Some(session::remembered::of(self.env));
        let repo = Repo::reached_with(&located.reach, &located.root, &memory, asked)?;
        Ok(Here { repo, worktree })
    }

    /// The same for commands that take several worktrees: each once, in the one order
    /// in which everybody takes them.
    pub(crate) fn all_here(&self) -> Result<Vec<Here>, Failure> {
        if self.global.worktree.len() < 2 {
            return Ok(vec![self.here()?]);
        }
        let mut names: Vec<WorktreeName> = Vec::new();
        for name in &self.global.worktree {
            names.push(name.parse()?);
        }
        names.sort();
        names.dedup();
        let root = self.root()?;
        let here = |worktree| Ok(Here { repo: Repo::open(&root)?, worktree });
        names.into_iter().map(here).collect()
    }

    /// The worktree that was given, if one was.
    pub(crate) fn given_worktree(&self) -> Result<Option<WorktreeName>, Failure> {
        Ok(self.global.worktree.first().map(|name| name.parse()).transpose()?)
    }

    /// The session that was given, if one was.
    pub(crate) fn given_session(&self) -> Option<&str> {
        self.global.session.as_deref()
    }

    /// The fencing token that a parent handed down for `worktree`, if one did, and the
    /// epoch of the register that it was granted in, if that was handed down too.
    pub(crate) fn handed_token(
        &self,
        worktree: &WorktreeName,
    ) -> Result<Option<HandedTerm>, Failure> {
        let meant = self.env.text("JVS_WORKTREE")?.is_none_or(|name| name == worktree.as_str());
        let Some(token) = self.env.text("JVS_FENCING_TOKEN")?.filter(|_| meant) else {
            let handed = self.handed_tokens()?.into_iter();
            let ours = handed.filter(|ticket| ticket.worktree == *worktree);
            let term = |Term { token, epoch }| HandedTerm { token, epoch: Some(epoch) };
            return Ok(ours.map(|ticket| term(ticket.term)).next());
        };
        let unusable = |name: &str, text: &str, what: &str| {
            let message = format!("{name} is \"{text}\", which is not a valid {what}");
            Unusable::new(message, OwnNext::Unset)
        };
        let number =
            strict_decimal(&token).ok_or_else(|| unusable("JVS_FENCING_TOKEN", &token, "token"))?;
        let epoch = match self.env.text("JVS_FENCING_EPOCH")? {
            Some(text) => {
                Some(text.parse().map_err(|_| unusable("JVS_FENCING_EPOCH", &text, "epoch"))?)
            }
            None => None,
        };
        Ok(Some(HandedTerm { token: FencingToken(number), epoch }))
    }

    /// Those that a parent handed down for several worktrees.
    pub(crate) fn handed_tokens(&self) -> Result<Vec<Ticket>, Failure> {
        let Some(text) = self.env.text("JVS_FENCING_TOKENS")? else { return Ok(Vec::new()) };
        let ticket = |word: &str| {
            let [worktree, token, epoch] = word.split(':').collect::<Vec<_>>()[..] else {
                return None;
            };
            Some(Ticket {
                worktree: worktree.parse().ok()?,
                term: Term {
                    epoch: epoch.parse().ok()?,
                    token: FencingToken(strict_decimal(token)?),
                },
            })
        };
        let tickets: Option<Vec<Ticket>> = text.split_whitespace().map(ticket).collect();
        let tickets = tickets.ok_or_else(|| {
            let message =
                format!("JVS_FENCING_TOKENS is \"{text}\", which is not a list of tokens");
            Unusable::new(message, OwnNext::Unset)
        })?;
        Ok(tickets)
    }

    /// The same for ever, for a thread that may hang longer than this process
    /// wants to wait.
    pub(crate) fn for_ever(&self) -> &'static Context<'static> {
        let env = Env::of_process();
        Box::leak(Box::new(Context::new(self.global.clone(), env, self.output)))
    }

    /// How the session's id is known.
    pub(crate) fn whence(&self) -> Result<Whence, Failure> {
        Ok(session::named(self.given_session(), self.env)?.whence)
    }

    /// The process that locks are kept for, if one was named.
    pub(crate) fn keep_while(&self) -> Result<Option<u32>, Failure> {
        let Some(text) = self.env.text("JVS_KEEP_WHILE")? else { return Ok(None) };
        let pid = strict_decimal(&text).and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| {
            let message = format!("JVS_KEEP_WHILE is \"{text}\", which is not a process id");
            Unusable::new(message, "unset it, or set it to the process that locks are kept for")
        })?;
        Ok(Some(pid))
    }

    /// The directory that only this user can read and write, and the name under
    /// which the session has its files there. `None` if there is none yet.
    pub(crate) fn private_dir(&self) -> Result<Option<(OwnedFd, String)>, Failure> {
        session::private_dir(self.global.session.as_deref(), self.env)
    }

    /// Where the session's next command in the repository that is meant finds what
    /// it must be told.
    pub(crate) fn session_note(&self) -> Result<PathBuf, Failure> {
        let repo = self.repo()?.id().to_string();
        session::note_path(self.global.session.as_deref(), self.env, &repo)
    }

    /// The directory of all such notes; there is one only while there are notes.
    pub(crate) fn notes_dir(&self) -> Result<PathBuf, Failure> {
        session::notes_dir(self.env)
    }

    /// Files of sessions that nobody can still need.
    pub(crate) fn session_leftovers(&self) -> Vec<PathBuf> {
        session::leftovers(self.env)
    }

    /// A variable that is handed on to a child with something before it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.env.get(name).filter(|value| !value.is_empty())
    }

    /// The user's shell.
    pub(crate) fn shell(&self) -> OsString {
        self.env.get("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
    }

    /// `path` from the root, so that it means the same from any directory.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
    }

    /// The user's home directory, if the environment tells.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.env.path("HOME")
    }

    /// Where to put what is needed for a moment.
    pub(crate) fn tmp_dir(&self) -> PathBuf {
        self.env.path("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    fn locate(&self) -> Result<Located, Failure> {
        let located = match &self.global.repo {
            Some(path) => discover(path)?,
            None => {
                let found = discover_here()?;
                trust::check(&found, self.env)?;
                found
            }
        };
        umask::open_for(located.control_dir);
        self.found.get_or_init(|| (located.control_dir, located.root.clone()));
        Ok(located)
    }

    /// The world as the lock sees it, on the filesystem `store`.
    pub(crate) fn seams<'r>(&'r self, store: &'r dyn Store) -> Seams<'r> {
        Seams { store, clock: &self.clock, entropy: &self.entropy }
    }

    /// The session's id. Makes nothing.
    pub(crate) fn session_id(&self) -> Result<SessionId, Failure> {
        session::id(self.global.session.as_deref(), self.env)
    }

    /// The session, ready to act; its secret is made if it has none.
    pub(crate) fn session(&self, purpose: Option<Purpose>) -> Result<Acting, Failure> {
        let id = session::id(self.global.session.as_deref(), self.env)?;
        let acting = session::act(id, purpose, self.env, &self.entropy)?;
        if let Some((control_dir, root)) = self.found.get()
            && let Some(warning) = ownership::warning(*control_dir, root)
        {
            self.warn(GivenOptions::of(&self.global).complete(&warning).into_owned());
        }
        Ok(acting)
    }

    /// Warns people now, before anything is done; programs are told with the answer.
    pub(crate) fn warn(&self, warning: String) {
        self.output.warn(&warning);
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// What programs were not warned of yet.
    pub(crate) fn take_warned(&self) -> Vec<String> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *warned).into_iter().filter(|_| self.output.is_json()).collect()
    }

    /// The public nonce under which this session's own holds are known. `None`
    /// if it never acted on this host, so that none can be its own. Makes nothing.
    pub(crate) fn own_nonce(&self) -> Result<Option<HolderNonce>, Failure> {
        session::own_nonce(self.global.session.as_deref(), self.env)
    }

    /// Where this session gives its signs of life.
    pub(crate) fn life(&self) -> SignsOfLife {
        SignsOfLife::of_asker(self.global.session.as_deref(), self.env)
    }

    /// This process as one who looks at the locks of others.
    pub(crate) fn onlooker(&self) -> Option<Onlooker> {
        session::onlooker(self.global.session.as_deref(), self.env)
    }

    /// The locks of a repository in the hands of `acting`, who writes down what
    /// it does in its own log.
    pub(crate) fn locks<'r>(
        &'r self,
        store: &'r dyn Store,
        policy: LockPolicy,
        acting: &'r Acting,
    ) -> Result<Locks<'r>, Failure> {
        let locks = self.locks_of(store, policy, &acting.session, &acting.turns)?;
        Ok(locks.remembering(session::sightings::of(store, self.env)))
    }

    /// What the processes of this session agree on about the lock of a worktree.
    pub(crate) fn holds<'r>(
        &'r self,
        repo: &Repo,
        worktree: &WorktreeName,
        acting: &'r Acting,
    ) -> Result<Holds<'r>, Failure> {
        let identity = acting.session.identity();
        let holds = self.holds_of(repo, worktree, &acting.private, identity)?;
        let root = self.absolute(repo.store().root_path()).display().to_string();
        let holds = holds(acting.session.nonce()).remembering(&acting.family);
        Ok(holds.of_repository_at(root))
    }

    /// Does anything rest on the hold that somebody has in `state`? `None` if that cannot
    /// be seen. Makes nothing.
    pub(crate) fn is_relied_on(
        &self,
        Here { repo, worktree }: &Here,
        state: &State,
    ) -> Option<bool> {
        let private = session::private_store(self.env)?;
        let me = session::imagine(self.session_id().ok()?, self.env).ok()?;
        let holds_of = self.holds_of(repo, worktree, &private, me.identity()).ok()?;
        holds_of(state.holder()?).is_relied_on(state)
    }

    /// The hold of a worktree, no matter who holds it.
    pub(crate) fn holds_of<'r>(
        &'r self,
        repo: &Repo,
        worktree: &WorktreeName,
        private: &'r PosixStore,
        me: &Identity,
    ) -> Result<impl Fn(HolderNonce) -> Holds<'r> + use<'r, 'a>, Failure> {
        let root = repo.store().stat(&RepoPath::root());
        let root = root.map_err(|error| Stuck::new("look at the repository", error))?;
        // A copy of a repository has its id, but neither its locks nor its inode.
        let which = format!("{}-{}", repo.id(), root.inode);
        let (seams, processes) = (self.seams(private), processes());
        let (me, worktree) = (me.clone(), worktree.clone());
        Ok(move |holder| Holds::new(seams, processes, me.clone(), holder, &which, worktree.clone()))
    }

    /// The same of any session of this user, by how the repository is called there.
    pub(crate) fn holds_in<'r>(
        &'r self,
        private: &'r PosixStore,
        me: Identity,
        holder: HolderNonce,
        which: &str,
        worktree: WorktreeName,
    ) -> Holds<'r> {
        Holds::new(self.seams(private), processes(), me, holder, which, worktree)
    }

    /// The environment, for what asks about sessions other than this one.
    pub(crate) fn env(&self) -> Env<'a> {
        self.env
    }

    /// The same for each of several worktrees.
    pub(crate) fn holds_of_all<'r>(
        &'r self,
        all: &[Here],
        acting: &'r Acting,
    ) -> Result<Vec<Holds<'r>>, Failure> {
        all.iter().map(|here| self.holds(&here.repo, &here.worktree, acting)).collect()
    }

    /// The same for a rehearsal on `store`, which is no repository: nothing is
    /// made, not even the session's secret.
    pub(crate) fn locks_to_rehearse<'r>(
        &'r self,
        store: &'r dyn Store,
        policy: LockPolicy,
    ) -> Result<Locks<'r>, Failure> {
        let id = session::id(self.global.session.as_deref(), self.env)?;
        let session = session::imagine(id, self.env)?;
        self.locks_of(store, policy, &session, &Alone)
    }

    fn locks_of<'r>(
        &'r self,
        store: &'r dyn Store,
        policy: LockPolicy,
        session: &Session,
        turn: &'r dyn AppendTurn,
    ) -> Result<Locks<'r>, Failure> {
        let control = store
            .stat(&layout::control_dir())
            .map_err(|error| Stuck::new("look at the repository", error))?;
        // A log of its own in each repository, and so a turn of its own at it.
        let name = format!("{}.{}", session.nonce(), control.inode);
        let writer = WriterId::derive(name.as_bytes(), control.device);
        let log = Log::new(store, turn, writer);
        let locks = Locks::new(self.seams(store), session.clone(), policy, log);
        Ok(locks.watching(self.watch_reporter.clone()).showing(show_head))
    }
}

/// How other processes of this host are seen.
fn processes() -> ProcessLookup<'static> {
    ProcessLookup {
        lookup: &proc::process_stat,
        words: &proc::command_words,
        time_namespace: proc::time_namespace(),
    }
}
