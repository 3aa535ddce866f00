//! What to do about an error that only the command can make, spelled as what to type.

use std::path::PathBuf;

use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::next::Next;

/// What the libraries' [`Next`] is for them, for the command itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnNext {
    /// Read the help of this command (`jvs`, or one of its verbs), or use what is spelled
    /// much like what was typed.
    Help(String, Option<String>),
    /// Say how long this verb is to wait.
    WaitThisLong(String),
    /// Use what the word of another tool is called here.
    InOwnWords(&'static str),
    /// Name the snapshot so many generations before the head.
    Generations(usize),
    /// Name one of these, which are several snapshots.
    OneOf(Vec<String>),
    /// See which operations there are, and name one.
    ListOperations,
    /// Take this operation back, whoever did it.
    UndoThat(OpNonce),
    /// Make a worktree of that name once more, of this snapshot if it had one.
    MakeAgain(WorktreeName, Option<SnapshotId>),
    /// Restore paths of this snapshot.
    RestoreByHand(SnapshotId),
    /// Restore all of this snapshot as a new worktree.
    RestoreNew(SnapshotId),
    /// Copy from this directory what was there before.
    BringBackByHand(String),
    /// Give this snapshot a name, too.
    NameTag(String),
    /// Give this snapshot this name.
    TagInOrder(String, String),
    /// See which files this snapshot has.
    ListFiles(SnapshotId),
    /// Name all worktrees after this verb.
    NameAllAfter(String),
    /// Make a worktree that one session writes to at a time.
    CreateExclusive,
    /// Make a repository of this directory below the one that was named.
    InitBelow(PathBuf),
    /// Compare the files with one snapshot.
    VerifyOne,
    /// Restore to a worktree of its own.
    RestoreElsewhere,
    /// Replace all files of the worktree.
    RestoreInPlace,
    /// Restore all to a new worktree of that name, or some of it here.
    RestoreAllInto(String),
    /// Restore paths, and not all in one step.
    WithoutAtomic,
    /// Say whether the file or the snapshot of that name is meant.
    FileOrSnapshot(String),
    /// Take a snapshot of each of these within the command that is run.
    SnapshotEach(Vec<WorktreeName>),
    /// Give a snapshot's id as doctor tells it.
    GiveIdAsDoctor,
    /// Unset a variable that is set for what runs under a lock.
    Unset,
    /// See all that verifying the audit log finds, once there is a copy.
    KeepAuditAndSeeAll,
    /// See all that doctor finds, and what it would do.
    SeeAllOfDoctor,
    /// See what doctor would repair.
    SeeRepairs,
    /// Let doctor repair it.
    Repair,
    /// See how things are, instead of doing it again.
    SeeStatus,
    /// Give the session a name that lasts, or run the work under the lock.
    NameSessionOrRun,
    /// See which sessions there are.
    ListSessions,
    /// See which commands have a schema.
    ListSchemas,
    /// Release this lock, named by these options, as that session; by force if commands
    /// need it.
    ReleaseFirst(String, String, bool),
    /// Mount the repository, or forget this session anyway.
    MountOrForget(String),
    /// Take the lock of this worktree before writing to it; wait, if others have it.
    HoldFirst(WorktreeName, bool),
    /// Install what there is for this agent in the worktree instead.
    InstallHere(&'static str),
    /// Have a harness run the hook, which nobody types.
    InstallAgent,
    /// Acknowledge the loss of this lock, named by these options, as that session; or
    /// forget it.
    AcknowledgeOrForget(String, String),
}

impl From<OwnNext> for Next {
    fn from(own: OwnNext) -> Self {
        spell(&own).into()
    }
}

fn spell(own: &OwnNext) -> String {
    match own {
        OwnNext::Help(of, similar) => {
            let of = if of == "jvs" { of.to_owned() } else { format!("jvs {of}") };
            let similar = similar.as_ref().map(|it| format!("did you mean {it}? "));
            format!("{}see `{of} --help`", similar.unwrap_or_default())
        }
        OwnNext::WaitThisLong(verb) => format!("give one, or none: jvs {verb} --wait=10m"),
        OwnNext::InOwnWords(answer) => (*answer).to_owned(),
        OwnNext::Generations(back) => {
            let name = format!("@{}", "-".repeat(*back));
            format!("here it is called {name}: jvs info {name}")
        }
        OwnNext::OneOf(names) => format!("give more of its id: {}", names.join(", ")),
        OwnNext::ListOperations => {
            "see what was done: jvs undo --list; take one of it back: jvs undo --op OP".into()
        }
        OwnNext::UndoThat(op) => format!("to take that back anyway: jvs undo --op {op}"),
        OwnNext::MakeAgain(name, None) => {
            format!("to make one of that name: jvs worktree create {name}")
        }
        OwnNext::MakeAgain(name, Some(head)) => {
            format!("to have its last snapshot again: jvs restore {head} --into {name}")
        }
        OwnNext::RestoreByHand(id) => {
            format!("restore what is needed: jvs restore {id} PATH")
        }
        OwnNext::RestoreNew(id) => format!("if that snapshot is meant: jvs restore {id}"),
        OwnNext::BringBackByHand(dir) => {
            format!("copy back by hand what is needed; see it with: ls -A {dir}")
        }
        OwnNext::NameTag(snapshot) => format!("say how to call it: jvs tag {snapshot} NAME"),
        OwnNext::TagInOrder(snapshot, name) => {
            format!("the other way round: jvs tag {snapshot} {name}")
        }
        OwnNext::ListFiles(id) => format!("see what it has: jvs ls {id} --recursive"),
        OwnNext::NameAllAfter(verb) => {
            format!("name all of them after it: jvs {verb} -w NAME -w NAME")
        }
        OwnNext::CreateExclusive => {
            "for one writer at a time, create another one: jvs worktree create NAME".into()
        }
        OwnNext::InitBelow(path) => format!(
            "make a directory for it, and move there what belongs to it: jvs init {}",
            ShownName::new(path).typed()
        ),
        OwnNext::VerifyOne => "jvs verify --files SNAPSHOT".into(),
        OwnNext::RestoreElsewhere => {
            "restore to a new worktree: jvs restore SNAPSHOT --into NAME".into()
        }
        OwnNext::RestoreInPlace => {
            "to replace all its files: jvs restore SNAPSHOT --in-place --reason TEXT".into()
        }
        OwnNext::RestoreAllInto(name) => format!(
            "for all of it: jvs restore SNAPSHOT --into {}; for some of it, here: jvs restore \
             SNAPSHOT PATH",
            ShownName::new(name).typed()
        ),
        OwnNext::WithoutAtomic => "path by path: jvs restore SNAPSHOT PATH".into(),
        OwnNext::FileOrSnapshot(name) => {
            let name = ShownName::new(name).typed();
            format!(
                "for the file, from the head: jvs restore -- {name}; for the snapshot: jvs restore \
                 {name} --into NAME, or for a path of it: jvs restore {name} -- PATH"
            )
        }
        OwnNext::SnapshotEach(worktrees) => {
            let each: Vec<_> =
                worktrees.iter().map(|worktree| format!("jvs snapshot -w {worktree}")).collect();
            format!("take each of them under the lock: -- sh -c 'CMD && {}'", each.join(" && "))
        }
        OwnNext::GiveIdAsDoctor => {
            "give the id as `jvs doctor --strict` shows it, or `none`".into()
        }
        OwnNext::Unset => "unset it; `jvs run` sets it for the commands it runs".into(),
        OwnNext::KeepAuditAndSeeAll => {
            "keep a copy of the audit directory, then see all of it: `jvs audit --verify --json`"
                .into()
        }
        OwnNext::SeeAllOfDoctor => {
            "see all of it, and what can be done: jvs doctor --strict --dry-run".into()
        }
        OwnNext::SeeRepairs => "see what would be done: jvs doctor --repair --dry-run".into(),
        OwnNext::Repair => "do it: jvs doctor --repair".into(),
        OwnNext::SeeStatus => {
            "do not run it again just for the answer: `jvs status` shows the present state".into()
        }
        OwnNext::NameSessionOrRun => {
            "export JVS_SESSION_ID=NAME, one name for each agent or script, or run the work under \
             the lock: jvs run -- COMMAND"
                .into()
        }
        OwnNext::ListSessions => "see which there are: jvs session list".into(),
        OwnNext::ListSchemas => "see which there are: jvs schema --list".into(),
        OwnNext::ReleaseFirst(options, session, force) => {
            let force = if *force { "--force " } else { "" };
            format!("release it first: jvs lock release {force}{options} --session {session}")
        }
        OwnNext::MountOrForget(session) => {
            format!("mount it and try again; if it is gone for good: {}", forget(session))
        }
        OwnNext::HoldFirst(worktree, wait) => {
            let wait = if *wait { " --wait=90s" } else { "" };
            format!("take its lock first, then try again: jvs lock acquire{wait} -w {worktree}")
        }
        OwnNext::InstallHere(agent) => {
            format!("install it in a worktree: jvs agent install {agent}")
        }
        OwnNext::InstallAgent => {
            "have the agent run it, once its hooks are installed: jvs agent install claude".into()
        }
        OwnNext::AcknowledgeOrForget(options, session) => format!(
            "see what changed and acknowledge it: jvs lock acquire {options} --session {session}; \
             or forget it: {}",
            forget(session)
        ),
    }
}

fn forget(session: &str) -> String {
    format!("jvs session forget {session} --force")
}
