//! A repository as somebody has it who follows what is written, and a shell in it.

use std::path::PathBuf;
use std::process::Command;

use jvs_kit::live::binary;
use jvs_kit::live::home::Home;
use jvs_kit::live::process::{DEADLINE, Outcome, run};

/// Some files, two snapshots of which one is tagged, a second worktree, an edit.
const FURNISH: &str = "\
jvs init r
cd r/main
mkdir src
echo 'int main;' > src/main.c
echo notes > notes.txt
jvs snapshot 'it builds' --tag v1
echo 'int other;' >> src/main.c
jvs snapshot 'tests pass'
jvs worktree create next
echo more >> notes.txt";

/// Programs that a machine may not have, and what they do here.
const STAND_INS: &[(&str, &str)] = &[("make", "echo built > built"), ("man", "cat > /dev/null")];

pub(crate) struct Stage {
    home: Home,
    dir: tempfile::TempDir,
    cwd: PathBuf,
}

impl Stage {
    /// An empty directory.
    pub(crate) fn empty() -> Self {
        let dir = tempfile::Builder::new().prefix("jvs-pages-").tempdir().expect("a directory");
        let bin = dir.path().join("bin");
        fs_err::create_dir(&bin).expect("a directory");
        for (name, script) in STAND_INS {
            fs_err::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).expect("a script");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs_err::set_permissions(bin.join(name), mode).expect("an executable");
        }
        let cwd = dir.path().join("work");
        fs_err::create_dir(&cwd).expect("a directory");
        Stage { home: Home::new(), dir, cwd }
    }

    /// The worktree `main` of a repository.
    pub(crate) fn furnished() -> Self {
        let stage = Stage::empty();
        stage.types(FURNISH).ok();
        Stage { cwd: stage.cwd.join("r/main"), ..stage }
    }

    /// What a shell is started with.
    pub(crate) fn shell(&self, program: &str, words: &[&str]) -> Command {
        let jvs = binary::jvs();
        let jvs = jvs.parent().expect("a program is in a directory").display();
        let mut shell = Command::new(program);
        shell.args(words).current_dir(&self.cwd).env_clear();
        for (key, value) in self.home.jvs([""; 0]).command().get_envs() {
            shell.env(key, value.expect("variables are set, not removed"));
        }
        let bin = self.dir.path().join("bin");
        shell.env("PATH", format!("{}:{jvs}:/usr/bin:/bin", bin.display()));
        shell.env("JVS_ENVIRONMENT", "local").env("SHELL", "/bin/sh");
        shell
    }

    /// A path beside the repository.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a program there.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, words: &[&str]) -> Outcome {
        run(self.shell(program, words), DEADLINE)
    }

    /// Types a script.
    #[track_caller]
    pub(crate) fn types(&self, script: &str) -> Outcome {
        self.run("bash", &["-e", "-o", "pipefail", "-c", script])
    }
}
