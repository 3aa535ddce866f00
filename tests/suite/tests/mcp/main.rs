//! The MCP server as clients meet it: the built `jvs-mcp`, spoken to line by line, and by
//! those of others.

mod asking;
mod broken;
mod client;
mod clients;
mod ends;
mod frames;
mod holding;
mod recorded;
mod resources;
mod shown;

use std::path::PathBuf;
use std::time::Duration;

use jvs_kit::live::binary;
use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::process::eventually;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use serde_json::{Value, json};

use crate::client::{Client, Revision};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A repository, and the user whose agents work in it.
struct World {
    home: Home,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let dir = tempfile::Builder::new().prefix("jvs-mcp-").tempdir().expect("a directory");
        let world = World { home: Home::new(), dir };
        world.home.jvs(["init"]).arg(world.root()).cwd(world.dir.path()).run().ok();
        world
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("r")
    }

    fn main(&self) -> PathBuf {
        self.root().join("main")
    }

    /// The server, not yet started: a session of its own.
    fn server(&self) -> Jvs {
        let jvs = self.home.jvs::<&str>([]).program(&binary::jvs_mcp()).cwd(self.main());
        jvs.env_remove("JVS_SESSION_ID").env_remove("JVS_KEEP_WHILE")
    }

    /// An agent that cannot ask a person.
    #[track_caller]
    fn agent(&self, revision: Revision) -> Client {
        Client::connect(&self.server(), revision, json!({}))
    }

    /// An agent of the current revision.
    #[track_caller]
    fn client(&self) -> Client {
        self.agent(Revision::Current)
    }

    /// What somebody else types.
    fn jvs(&self, words: &str) -> Jvs {
        self.home.jvs(words.split(' ')).session("rival").cwd(self.main())
    }

    #[track_caller]
    fn status(&self) -> Value {
        self.jvs("lock status --json").run().ok().json()["data"].clone()
    }

    /// Another session has the lock from now on, whoever had it.
    #[track_caller]
    fn take_away(&self) {
        self.jvs("config set reclaim.same_user true").run().ok();
        self.jvs("lock reclaim --reason mine").run().ok();
    }

    /// The tickets of those who wait.
    fn tickets(&self) -> usize {
        let queue = self.root().join(layout::queue(&WorktreeName::main()).as_str());
        queue.read_dir().map_or(0, Iterator::count)
    }

    #[track_caller]
    fn eventually_free(&self) {
        eventually("the lock is free", PATIENCE, || self.status()["state"] == "free");
    }

    #[track_caller]
    fn eventually_nobody_waits(&self) {
        eventually("nobody waits in line", PATIENCE, || self.tickets() == 0);
    }
}
