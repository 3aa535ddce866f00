//! A repository in a directory of any name, and whoever works in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::process::Outcome;
use jvs_repo::store::RepoPath;

pub(crate) struct World {
    pub(crate) home: Home,
    dir: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    /// A repository below a directory of that name.
    pub(crate) fn named(name: &OsStr) -> Self {
        let dir = tempfile::Builder::new().prefix("jvs-hostile-").tempdir().expect("a directory");
        let above = dir.path().canonicalize().expect("it has a path").join(name);
        fs_err::create_dir(&above).expect("made");
        let world = World { home: Home::new(), dir, root: above.join("r") };
        world.home.jvs(["init", "r"]).cwd(above).run().ok();
        world
    }

    pub(crate) fn new() -> Self {
        World::named("plain".as_ref())
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A directory beside the repository.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Gives all of it, and the home, to another user.
    pub(crate) fn give_to(&self, uid: u32) {
        self.home.give_to(uid, self.dir.path());
    }

    pub(crate) fn at(&self, path: &RepoPath) -> PathBuf {
        self.root.join(path.as_str())
    }

    pub(crate) fn file(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.root.join("main").join(name.as_ref())
    }

    /// `jvs` as session `s`, in the worktree.
    pub(crate) fn command(&self, words: &[&str]) -> Jvs {
        self.home.jvs(words).cwd(self.root.join("main")).session("s")
    }

    pub(crate) fn jvs(&self, words: &[&str]) -> Outcome {
        self.command(words).run()
    }
}
