//! Somebody with a repository.

use std::path::{Path, PathBuf};

use jvs_kit::live::home::{Home, Jvs, SESSION};
use jvs_kit::live::process::Outcome;
use jvs_lock::State;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use serde_json::Value;

pub(crate) struct User {
    pub(crate) home: Home,
    pub(crate) root: PathBuf,
    session: String,
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
        User { home: Home::new(), root: root.to_owned(), session: SESSION.into() }
    }

    /// In the same repository, seen at `root`.
    pub(crate) fn at(self, root: &Path) -> Self {
        User { root: root.to_owned(), ..self }
    }

    /// As this session.
    pub(crate) fn session(self, id: &str) -> Self {
        User { session: id.into(), ..self }
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.root.join("main")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.main().join(name);
        fs_err::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs_err::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs_err::read_to_string(self.main().join(name)).expect("a file")
    }

    /// What is in a file that may not be there.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        fs_err::read_to_string(self.main().join(name)).ok()
    }

    /// Removes a file that may not be there.
    pub(crate) fn remove(&self, name: &str) {
        match fs_err::remove_file(self.main().join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{name}: {error}"),
            _ => {}
        }
    }

    /// Gives a file an extended attribute, where there are any.
    pub(crate) fn note(&self, name: &str, text: &str) {
        let path = self.main().join(name);
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::setxattr(path, "user.note", text.as_bytes(), flags) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
            Err(error) => panic!("an attribute: {error}"),
        }
    }

    /// A file as a snapshot has it.
    pub(crate) fn read_in(&self, id: &str, name: &str) -> String {
        let dir = layout::snapshot(id.parse().expect("an id"));
        let payload = self.root.join(layout::snapshot_payload(&dir).as_str());
        fs_err::read_to_string(payload.join(name)).expect("a file")
    }

    /// A run of the command, to be started.
    pub(crate) fn command(&self, words: &str) -> Jvs {
        self.home.jvs(words.split(' ')).session(&self.session).cwd(self.main())
    }

    #[track_caller]
    pub(crate) fn jvs(&self, words: &str) -> Outcome {
        self.command(words).run()
    }

    /// Says that it knows of what was done while the lock was not its own, and
    /// keeps nothing.
    #[track_caller]
    pub(crate) fn says_it_knows(&self) {
        self.jvs("lock acquire --no-keeper").ok();
        self.jvs("lock release").ok();
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
        self.ids("history")
    }

    /// Ids of all that is visible, also beside the history, newest first.
    #[track_caller]
    pub(crate) fn committed(&self) -> Vec<String> {
        self.ids("history --all")
    }

    #[track_caller]
    fn ids(&self, words: &str) -> Vec<String> {
        let data = self.data(words);
        let snapshots = data["snapshots"].as_array().expect("a list").clone();
        let id = |snapshot: Value| snapshot["snapshot_id"].as_str().expect("an id").to_owned();
        snapshots.into_iter().map(id).collect()
    }

    /// The register of `main`.
    pub(crate) fn state(&self) -> State {
        let names = self.names(&layout::register(&WorktreeName::main()));
        assert_eq!(names.len(), 1, "{names:?}");
        names[0].parse().expect("a state")
    }

    /// Directories of snapshots, visible or not.
    pub(crate) fn snapshot_dirs(&self) -> Vec<String> {
        let mut names = self.names(&layout::snapshots());
        names.retain(|name| layout::id_of_snapshot(name).is_some());
        names
    }

    /// Names in a directory of the control plane.
    pub(crate) fn names(&self, dir: &jvs_repo::store::RepoPath) -> Vec<String> {
        let entries = fs_err::read_dir(self.root.join(dir.as_str())).expect("listed");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
