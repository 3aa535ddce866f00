//! Somebody with a repository.

use std::path::{Path, PathBuf};

use jvs_kit::live::home::Home;
use jvs_kit::live::process::Outcome;
use serde_json::Value;

pub(crate) struct User {
    pub(crate) home: Home,
    pub(crate) root: PathBuf,
}

impl User {
    /// Makes a repository at `root`.
    pub(crate) fn with_new_repository(root: &Path) -> Self {
        let user = User::of(root);
        user.home.jvs(["init"]).arg(root).run().ok();
        user
    }

    /// Works in the repository at `root`.
    pub(crate) fn of(root: &Path) -> Self {
        User { home: Home::new(), root: root.to_owned() }
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.root.join("main")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.main().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.main().join(name)).expect("a file")
    }

    #[track_caller]
    pub(crate) fn jvs(&self, words: &str) -> Outcome {
        self.home.jvs(words.split(' ')).cwd(self.main()).run()
    }

    /// The data of a command that succeeds.
    #[track_caller]
    pub(crate) fn data(&self, words: &str) -> Value {
        self.jvs(&format!("{words} --json")).ok().json()["data"].clone()
    }

    #[track_caller]
    pub(crate) fn snapshot(&self) -> String {
        let data = self.data("snapshot");
        data["snapshot_id"].as_str().expect("an id").to_owned()
    }

    /// Ids of the worktree's history, newest first.
    #[track_caller]
    pub(crate) fn history(&self) -> Vec<String> {
        let data = self.data("history");
        let snapshots = data["snapshots"].as_array().expect("a list").clone();
        let id = |snapshot: Value| snapshot["snapshot_id"].as_str().expect("an id").to_owned();
        snapshots.into_iter().map(id).collect()
    }

    /// Names in a directory of the control plane.
    pub(crate) fn names(&self, dir: &jvs_repo::store::RepoPath) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(dir.as_str())).expect("listed");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
