//! Who asks: the session that the payload names, as the agent's own commands know it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jvs_lock::session::SessionId;
use jvs_repo::name::WorktreeName;
use jvs_repo::proc;

use crate::args::Global;
use crate::context::{Context, Env};
use crate::fail::Failure;
use crate::given::GivenOptions;
use crate::harness::Harness;
use crate::session;
use crate::session::life::SignsOfLife;

/// A session of a harness.
pub(super) struct Asker {
    pub(super) harness: Harness,
    pub(super) id: SessionId,
    /// Would a command that the agent types be of another session, unless it is told?
    pub(super) must_be_named: bool,
}

impl Asker {
    /// The session that `harness` calls `name`; a name that was given to all that runs here
    /// comes first, as for every other command.
    pub(super) fn of(context: &Context<'_>, harness: Harness, name: &str) -> Result<Self, Failure> {
        let env = context.env();
        let of_payload = session::id_of_run(harness.system(), name);
        let given = context.given_session().map(str::to_owned);
        let given = given.map_or_else(|| env.text("JVS_SESSION_ID"), |it| Ok(Some(it)))?;
        let id = given.map(|id| id.parse()).transpose()?.unwrap_or(of_payload);
        // What the harness sets for the agent's commands, it does not set for its hooks.
        let variable = harness.variable();
        let lookup = |wanted: &str| match variable == Some(wanted) {
            true => Some(OsString::from(name)),
            false => env.get(wanted),
        };
        let known = session::said(Env::new(&lookup));
        Ok(Asker { harness, must_be_named: known.as_ref() != Some(&id), id })
    }

    /// Gives a sign of life.
    pub(super) fn life(&self, context: &Context<'_>) {
        SignsOfLife::of(&self.id, context.env()).sign();
    }

    /// The world as a command of this session in that worktree sees it.
    pub(super) fn at<'c>(
        &self,
        context: &Context<'c>,
        root: &Path,
        worktree: Option<&WorktreeName>,
    ) -> Context<'c> {
        let global = Global {
            repo: Some(root.to_owned()),
            worktree: worktree.iter().map(|name| name.to_string()).collect(),
            session: Some(self.id.as_str().to_owned()),
            ..Global::default()
        };
        Context::new(global, context.env(), context.output())
    }

    /// What a command has to say to mean the same, typed by the agent where it is: in the
    /// repository `root` if it is not there.
    pub(super) fn options(&self, root: Option<PathBuf>) -> GivenOptions {
        let session = self.must_be_named.then(|| self.id.as_str().to_owned());
        GivenOptions::of(&Global { repo: root, session, ..Global::default() })
    }
}

/// The process of the harness: who started this one, but for the shells in between.
pub(super) fn harness_process() -> Option<u32> {
    const BETWEEN: usize = 8;
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "busybox"];
    let me = proc::process(std::process::id())?;
    let name = me.name.clone();
    let mut at = proc::process(me.parent)?;
    for _ in 0..BETWEEN {
        // This very command, and what a harness runs commands with.
        let runs_a_script = || {
            let words = proc::command_words(at.pid).unwrap_or_default();
            words
                .split(' ')
                .skip(1)
                .take(3)
                .any(|word| word.starts_with('-') && word.ends_with('c'))
        };
        let is_between = at.name == name || SHELLS.contains(&at.name.as_str()) && runs_a_script();
        if !is_between {
            return Some(at.pid).filter(|pid| *pid > 0);
        }
        at = proc::process(at.parent)?;
    }
    None
}
