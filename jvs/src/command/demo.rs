//! `jvs demo`: two sessions, one worktree, a holder that goes silent, what the
//! lock does about it, and what becomes of the snapshots of both. Every line shown was really run, by this program.

use std::fmt::Write as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use jvs_repo::id::OpNonce;
use serde_json::Value;

use crate::answer::other::{Demo, DemoStep};
use crate::args::DemoArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{AnswerStream, Done, shown};

/// Long enough for every step on a slow machine, short enough to wait for.
const PATIENCE_MS: u64 = 30_000;

pub(crate) fn run(context: &Context<'_>, args: &DemoArgs) -> Result<Done, Failure> {
    let stage = Stage::new(context, args.keep)?;
    let mut play =
        Play { context, stage: &stage, stream: context.output().stream("demo"), steps: Vec::new() };
    play.all()?;
    let kept = args.keep.then(|| shown(&stage.dir));
    let mut text = String::new();
    if let Some(dir) = &kept {
        let _ = writeln!(text, "\nThe repository is still there: {dir}/repo");
    }
    Ok(Done::new(&Demo { steps: play.steps, kept }).with_text(text))
}

/// A directory of its own, gone at the end.
struct Stage {
    dir: PathBuf,
    keep: bool,
}

impl Stage {
    fn new(context: &Context<'_>, keep: bool) -> Result<Self, Failure> {
        let dir =
            context.tmp_dir().join(format!("jvs-demo-{}", OpNonce::random(context.entropy())));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|error| Stuck::new(format!("make {}", dir.display()), error))?;
        Ok(Stage { dir, keep })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.keep {
            #[expect(
                clippy::disallowed_methods,
                reason = "its own directory, just made, no repository of anybody's"
            )]
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Who runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Alice,
    Bob,
}

impl Who {
    const fn name(self) -> &'static str {
        match self {
            Who::Alice => "alice",
            Who::Bob => "bob",
        }
    }
}

struct Play<'p> {
    context: &'p Context<'p>,
    stage: &'p Stage,
    stream: AnswerStream,
    steps: Vec<DemoStep>,
}

impl Play<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        self.tell("A repository, with short timeouts so that this takes seconds.")?;
        self.runs(Who::Alice, &["init", "repo"], None)?;
        self.runs(Who::Alice, &["config", "set", "lock.max_clock_skew_ms", "200"], None)?;
        self.runs(Who::Alice, &["config", "set", "lock.steal_grace_ms", "200"], None)?;
        self.tell("Alice takes the lock of worktree main for three seconds, and goes silent.")?;
        self.runs(
            Who::Alice,
            &["lock", "acquire", "--no-keeper", "--lease", "3s", "--note", "rebuilding"],
            None,
        )?;
        self.write("Alice was here\n")?;
        self.runs(Who::Alice, &["snapshot", "before the rebuild", "--tag", "v1"], None)?;
        self.tell(
            "Bob wants it too. Her lease is live, so he is told who holds it and for how long.",
        )?;
        self.runs(Who::Bob, &["lock", "acquire"], None)?;
        self.runs(Who::Bob, &["lock", "why"], None)?;
        self.tell("Nobody hears of Alice again. Once her lease and the grace are over …")?;
        self.wait_until_stealable()?;
        self.runs(
            Who::Bob,
            &["lock", "steal", "--lease", "1m", "--reason", "alice is silent"],
            None,
        )?;
        self.tell(
            "… the token went up. Alice wakes and still believes in token 1: she is fenced.",
        )?;
        self.runs(Who::Alice, &["lock", "renew"], Some("1"))?;
        self.runs(Who::Alice, &["snapshot", "the rebuild"], Some("1"))?;
        self.tell("Nothing of hers was published. Bob holds the token, so Bob can.")?;
        self.write("Bob was here\n")?;
        self.runs(Who::Bob, &["status"], None)?;
        self.runs(Who::Bob, &["snapshot", "after the rebuild"], None)?;
        self.runs(Who::Bob, &["history"], None)?;
        self.runs(Who::Bob, &["verify", "--all"], None)?;
        self.tell("Bob is done. Everything that happened is in the log, and the log adds up.")?;
        self.runs(Who::Bob, &["lock", "release"], None)?;
        self.runs(Who::Bob, &["audit"], None)?;
        self.runs(Who::Bob, &["audit", "--verify"], None)?;
        self.runs(Who::Bob, &["doctor", "--strict"], None)
    }

    /// What somebody does to the worktree's files meanwhile.
    fn write(&self, text: &str) -> Result<(), Failure> {
        let path = self.stage.dir.join("repo/main/story");
        #[expect(clippy::disallowed_methods, reason = "a user's file, no control file")]
        let written = std::fs::write(&path, text);
        Ok(written.map_err(|error| Stuck::new(format!("write {}", path.display()), error))?)
    }

    fn tell(&mut self, sentence: &str) -> Result<(), Failure> {
        let paint = self.context.paint();
        self.show(&format!("\n{}\n", paint.bold(sentence)))
    }

    fn show(&self, text: &str) -> Result<(), Failure> {
        if self.context.output().is_json() {
            return Ok(());
        }
        // A demo that nobody watches may as well run to its end.
        self.stream.item(&Done::silent().with_text(text)).map(|_| ())
    }

    /// Runs `jvs` as `who` and shows what was typed and what came back.
    fn runs(&mut self, who: Who, words: &[&str], token: Option<&str>) -> Result<(), Failure> {
        let output = self.start(who, words, token)?;
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let typed = typed(words);
        let mut text =
            format!("{} jvs {typed}\n", self.context.paint().green(&format!("{}$", who.name())));
        for line in stdout.lines().chain(stderr.lines()) {
            let _ = writeln!(text, "  {line}");
        }
        self.steps.push(DemoStep {
            who: who.name(),
            command: format!("jvs {typed}"),
            exit: output.status.code(),
            stdout: stdout.into_owned(),
            stderr: stderr.into_owned(),
        });
        self.show(&text)
    }

    fn start(
        &self,
        who: Who,
        words: &[&str],
        token: Option<&str>,
    ) -> Result<std::process::Output, Failure> {
        let stuck = |error| Stuck::new("run itself", error);
        let program = std::env::current_exe().map_err(stuck)?;
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(if words[0] == "init" {
                self.stage.dir.clone()
            } else {
                self.stage.dir.join("repo/main")
            })
            .env("JVS_SESSION_ID", who.name())
            .env("JVS_USER", who.name())
            .env("XDG_RUNTIME_DIR", &self.stage.dir)
            .env("JVS_KEEP_WHILE", std::process::id().to_string())
            .env_remove("CLICOLOR_FORCE")
            .env_remove("JVS_FENCING_TOKEN")
            .env_remove("JVS_FENCING_EPOCH")
            .env_remove("JVS_FENCING_TOKENS")
            .stdin(Stdio::null());
        if let Some(token) = token {
            command.env("JVS_FENCING_TOKEN", token);
        }
        Ok(command.output().map_err(stuck)?)
    }

    fn wait_until_stealable(&self) -> Result<(), Failure> {
        let clock = self.context.clock();
        let end = clock.now().boot.plus(PATIENCE_MS);
        let words = ["lock", "status", "--json"];
        while clock.now().boot < end {
            let status = self.start(Who::Bob, &words, None)?;
            let answer: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            if answer["data"]["state"] == "stealable" {
                break;
            }
            clock.sleep_ms(100);
        }
        Ok(())
    }
}

/// The words as they would be typed.
fn typed(words: &[&str]) -> String {
    let quote =
        |word: &&str| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
