//! Where an agent's files are: below a worktree or the home directory, and not through any
//! symlink.

use std::io;
use std::path::PathBuf;

use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::id::OpNonce;
use jvs_repo::next::Next;
use jvs_repo::store::{PosixStore, RepoPath, Store};

use rustix::process::geteuid;

use crate::args::Agent;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::render::shown;

/// Largest file that is read.
const SIZE_MAX: usize = 4 << 20;

/// The directory that an agent takes for its project, or for its user's.
pub(super) struct AgentPlace {
    store: PosixStore,
    pub(super) root: PathBuf,
    /// The worktree, if it is one.
    pub(super) here: Option<Here>,
    /// The user has this agent's directory elsewhere than at home, and this is it.
    pub(super) moved: bool,
}

/// Where the user has the directory of an agent, if not at home. A path that depends on where
/// one is says nothing.
fn moved(context: &Context<'_>, agent: Option<Agent>) -> Option<PathBuf> {
    variable(agent?).and_then(|name| context.env().path(name))
}

/// The variable by which an agent has its directory elsewhere.
pub(super) fn variable(agent: Agent) -> Option<&'static str> {
    match agent {
        Agent::Claude => Some("CLAUDE_CONFIG_DIR"),
        Agent::Codex => Some("CODEX_HOME"),
        Agent::Cursor | Agent::Gemini | Agent::AgentsMd => None,
    }
}

/// A file, and who may use it.
#[derive(Debug, Clone)]
pub(super) struct AgentFile {
    pub(super) text: String,
    pub(super) mode: u32,
    pub(super) uid: u32,
}

impl AgentPlace {
    /// The place of `agent`, or of those that have none of their own.
    pub(super) fn of(
        context: &Context<'_>,
        agent: Option<Agent>,
        user: bool,
    ) -> Result<Self, Failure> {
        let elsewhere = moved(context, agent).filter(|_| user);
        let is_moved = elsewhere.is_some();
        let (root, here) = match (user, elsewhere) {
            (true, Some(dir)) => (dir, None),
            (true, None) => {
                let home = context.home().ok_or_else(|| {
                    WrongUsage::new("HOME does not say where the home directory is", "set HOME")
                })?;
                (home, None)
            }
            (false, _) => {
                let here = context.here()?;
                (here.repo.payload(&here.worktree)?, Some(here))
            }
        };
        let store = PosixStore::open(&root)
            .map_err(|error| Stuck::new(format!("open {}", shown(&root)), error))?;
        Ok(AgentPlace { store, root, here, moved: is_moved })
    }

    /// The file at `path`, if there is one.
    pub(super) fn read(&self, path: &str) -> Result<Option<AgentFile>, Failure> {
        let at = self.at(path)?;
        let bytes = match self.store.read(&at, SIZE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unusable(path, error).into()),
        };
        let stat = self.store.stat(&at).map_err(|error| self.unusable(path, error))?;
        let text = String::from_utf8(bytes).map_err(|_| self.unfit(path, "is not UTF-8"))?;
        Ok(Some(AgentFile { text, mode: stat.mode & 0o7777, uid: stat.uid }))
    }

    /// Refuses a file of somebody else, whose owner it would not be any more: it is replaced
    /// by one of whoever writes it, as the superuser may do everywhere.
    pub(super) fn check_owner(&self, path: &str, file: &AgentFile) -> Result<(), Failure> {
        if file.uid == geteuid().as_raw() {
            return Ok(());
        }
        let why = format!("belongs to another user (uid {})", file.uid);
        let next = "run the command as that user, or take the file over with chown".into();
        let refused = self.unfit(path, why);
        Err(UnfitFile { code: Code::Permission, next: Some(next), ..refused }.into())
    }

    /// Writes the file, whole or not at all; names the directories that were made for it.
    pub(super) fn write(
        &self,
        context: &Context<'_>,
        path: &str,
        text: &str,
        mode: u32,
    ) -> Result<Vec<String>, Failure> {
        let stuck = |error| self.unusable(path, error).half_done();
        let at = self.at(path)?;
        let mut made = Vec::new();
        let mut dir = RepoPath::root();
        for step in at.parent().as_str().split('/').filter(|step| !step.is_empty()) {
            dir = dir.child(step).map_err(stuck)?;
            match self.store.make_dir(&dir) {
                Ok(()) => made.push(dir.as_str().to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(stuck(error).into()),
            }
        }
        let nonce = OpNonce::random(context.entropy());
        let name = format!("{}.{nonce}", at.split().1);
        let tmp = at.parent().child(&name).map_err(stuck)?;
        let draft = self.store.write_tmp(&tmp, text.as_bytes()).map_err(stuck)?;
        let placed = self.store.set_mode(&tmp, mode).and_then(|()| {
            self.store.place_over(&draft, &at)?;
            self.store.sync_dir(&at.parent())
        });
        if let Err(error) = placed {
            let _ = self.store.remove(&tmp);
            return Err(stuck(error).into());
        }
        Ok(made)
    }

    pub(super) fn remove(&self, path: &str) -> Result<(), Failure> {
        let removed = self.store.remove(&self.at(path)?);
        removed.map_err(|error| self.unusable(path, error).into())
    }

    /// Removes a directory that was made here, unless somebody else uses it by now.
    pub(super) fn remove_dir(&self, path: &str) {
        if let Ok(at) = self.at(path) {
            let _ = self.store.remove_dir(&at);
        }
    }

    fn at(&self, path: &str) -> Result<RepoPath, Failure> {
        let steps = path.split('/').try_fold(RepoPath::root(), |at, step| at.child(step));
        Ok(steps.map_err(|error| self.unusable(path, error))?)
    }

    /// What is there cannot be what it should be.
    pub(super) fn unfit(&self, path: &str, why: impl Into<String>) -> UnfitFile {
        let hint = "correct it, or move it away, then run the same command again".into();
        let file = shown(&self.root.join(path));
        UnfitFile {
            file,
            why: why.into(),
            code: Code::AgentFileInvalid,
            next: Some(hint),
            half_done: false,
        }
    }

    fn unusable(&self, path: &str, error: io::Error) -> UnfitFile {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::IsADirectory => {
                self.unfit(path, "is no regular file of at most 4 MiB")
            }
            _ => {
                let (file, code) = (shown(&self.root.join(path)), code_of_io(&error));
                let why = match code {
                    Code::PathEscape => "is a symlink, or is reached through one".to_owned(),
                    _ => format!("cannot be used: {error}"),
                };
                UnfitFile { file, why, code, next: None, half_done: false }
            }
        }
    }
}

/// A file that is not touched because of what it is.
#[derive(Debug, thiserror::Error)]
#[error("{file} {why}{}", if *.half_done { "" } else { "; nothing was changed" })]
pub(super) struct UnfitFile {
    file: String,
    why: String,
    code: Code,
    next: Option<Next>,
    /// Other files were changed before.
    half_done: bool,
}

impl UnfitFile {
    /// It was found out in the middle of the work.
    fn half_done(self) -> Self {
        UnfitFile { half_done: true, ..self }
    }

    /// Somebody else's.
    pub(super) fn of_others(self) -> Self {
        UnfitFile { code: Code::Exists, ..self }
    }
}

impl Coded for UnfitFile {
    fn code(&self) -> Code {
        self.code
    }

    fn next(&self) -> Option<Next> {
        self.next.clone()
    }
}
