//! A repository with one of everything, made once and copied for each case.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::process::run;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;

const PATIENCE: Duration = Duration::from_secs(120);
const GROUP: u32 = 4700;
const OWNER: u32 = 4711;
const MEMBER: u32 = 4712;

/// As much memory as any command may have, in bytes.
const MEMORY: u64 = 600 << 20;

/// Who runs the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    /// Root, in a repository of root's.
    Root,
    /// Somebody in their own repository, which is shared with their group.
    Owner,
    /// Another one of that group.
    Member,
}

impl Actor {
    fn uid(self) -> u32 {
        match self {
            Actor::Root => 0,
            Actor::Owner => OWNER,
            Actor::Member => MEMBER,
        }
    }

    /// Who makes the repository.
    fn maker(self) -> Actor {
        if self == Actor::Member { Actor::Owner } else { self }
    }

    /// Whose the object is that is put there.
    pub(super) fn attacker(self) -> u32 {
        if self == Actor::Member { OWNER } else { MEMBER }
    }

    fn home(self) -> &'static str {
        if self == Actor::Member { "home-of-member" } else { "home" }
    }
}

pub(super) struct Mould {
    home: Home,
    dir: tempfile::TempDir,
    actor: Actor,
}

impl Mould {
    pub(super) fn new(actor: Actor) -> Self {
        let dir = tempfile::Builder::new().prefix("jvs-matrix-").tempdir().expect("a directory");
        let mould = Mould { home: Home::new(), dir, actor };
        mould.make();
        mould
    }

    fn make(&self) {
        let work = self.work();
        fs_err::create_dir_all(&work).expect("made");
        for one in [self.actor, self.actor.maker()] {
            let home = work.join(one.home());
            fs_err::create_dir_all(&home).expect("made");
            sh(&format!("chown -R {}:{GROUP} '{}'", one.uid(), home.display()));
        }
        let maker = self.actor.maker().uid();
        let (all, at) = (self.dir.path().display(), work.display());
        sh(&format!("chmod 755 '{all}'; chown {maker}:{GROUP} '{at}'; chmod 2775 '{at}'"));
        let init = self.as_one(self.actor.maker(), "init --shared r").cwd(&work);
        init.run().ok();
        let file = work.join("r/main/file");
        fs_err::write(&file, "one").expect("written");
        sh(&format!("chown {maker}:{GROUP} '{}'", file.display()));
        for words in [
            "snapshot zero",
            "snapshot one",
            "tag @ v1",
            "worktree create x",
            "lock acquire --no-keeper -w x --note held",
            "worktree create gone",
            "worktree remove gone",
            "gc --keep-last 1 --keep-within 0s",
            "config set retention.keep_last 5",
            "doctor --probe",
        ] {
            self.as_one(self.actor.maker(), words).run().ok();
        }
        // The member has a session of their own, with all that it leaves.
        self.as_one(self.actor, "lock acquire --no-keeper").run().ok();
        self.as_one(self.actor, "lock release").run().ok();
        fs_err::rename(work, self.dir.path().join("mould")).expect("moved");
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    pub(super) fn at(&self, path: &Path) -> PathBuf {
        self.work().join(path)
    }

    /// A fresh copy, where the last one was.
    pub(super) fn pour(&self) {
        let dir = self.dir.path().display();
        sh(&format!("rm -rf '{dir}/work' '{dir}/outside'; cp -a '{dir}/mould' '{dir}/work'"));
    }

    /// All that there is in the control plane and in the private directory, what is
    /// made only at times, and where the files of worktrees are.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mould = self.dir.path().join("mould");
        let private = PathBuf::from(self.actor.home());
        let (main, x) = (WorktreeName::main(), "x".parse().expect("a name"));
        let in_the_repository = |path: RepoPath| Path::new("r").join(path.as_str());
        let mut found: Vec<PathBuf> = [
            layout::payload(&main),
            layout::worktrees(),
            layout::payload(&x),
            layout::takeover(&main),
            layout::legacy_lock(&main),
            layout::queue(&main),
            layout::queue(&x),
        ]
        .map(in_the_repository)
        .to_vec();
        let mut pending = vec![in_the_repository(layout::control_dir()), private];
        while let Some(path) = pending.pop() {
            // The files of a snapshot are content.
            if path.file_name().is_some_and(|name| name == "payload") {
                found.push(path);
                continue;
            }
            if mould.join(&path).is_dir() {
                let entries = fs_err::read_dir(mould.join(&path)).expect("listed");
                pending.extend(entries.map(|entry| path.join(entry.expect("listed").file_name())));
            }
            found.push(path);
        }
        found.sort();
        found.dedup();
        assert!(found.len() > 30, "{found:?}");
        found
    }

    /// Is it the home, or a directory there that is not only for jvs? Users have these
    /// elsewhere, and nobody else can put a symlink there.
    pub(super) fn is_the_user_s(&self, path: &Path) -> bool {
        let home = Path::new(self.actor.home());
        [home.to_owned(), home.join(".local"), home.join(".local/state")]
            .iter()
            .any(|it| it == path)
    }

    /// `jvs` as the one whose matrix it is, within its memory.
    pub(super) fn command(&self, words: &str) -> Jvs {
        self.as_one(self.actor, words)
    }

    fn as_one(&self, one: Actor, words: &str) -> Jvs {
        let home = self.work().join(one.home());
        let (uid, group) = (one.uid().to_string(), GROUP.to_string());
        let limit = format!("--as={MEMORY}");
        let root = self.work().join("r");
        let place = [OsStr::new("--repo"), root.as_os_str()];
        let place = place.into_iter().filter(|_| !words.starts_with("init"));
        let words = place.chain(words.split(' ').map(OsStr::new));
        let command = self.home.jvs(words).cwd(self.work()).session("s");
        let command = command.env("HOME", &home).env("XDG_RUNTIME_DIR", &home);
        let become_one = ["setpriv", "--reuid", &uid, "--regid", &group, "--clear-groups"];
        command.under(["prlimit", &limit]).under(become_one)
    }
}

/// What must not be touched: a file and a directory outside, and one of the system's.
pub(super) struct Victim {
    pub(super) file: PathBuf,
    pub(super) dir: PathBuf,
    before: String,
}

impl Victim {
    pub(super) fn new(outside: &Path) -> Self {
        let (file, dir) = (outside.join("victim"), outside.join("dir"));
        fs_err::create_dir_all(&dir).expect("made");
        fs_err::write(&file, "precious\n").expect("written");
        fs_err::write(dir.join("inner"), "precious\n").expect("written");
        let mut victim = Victim { file, dir, before: String::new() };
        victim.before = victim.look();
        victim
    }

    /// Everything but the number of names and the time at which that changed.
    fn look(&self) -> String {
        let list = "find \"$0\" \"$1\" /etc/passwd -printf '%p %y %m %U %s %T@\\n' | sort; \
                    cat \"$0\" \"$1/inner\"";
        let mut find = Command::new("sh");
        find.args(["-c", list]).arg(&self.file).arg(&self.dir);
        run(find, PATIENCE).ok().stdout().to_owned()
    }

    pub(super) fn harm(&self) -> Option<String> {
        let after = self.look();
        (after != self.before).then(|| format!("before:\n{}after:\n{after}", self.before))
    }
}

pub(super) fn sh(script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]);
    run(shell, PATIENCE).ok();
}
