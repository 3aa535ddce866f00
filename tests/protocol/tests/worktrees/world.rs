//! A repository with one more worktree, those who work on its worktrees at once,
//! and what must be true whatever happens to them.

use jvs_doctor::{Check, Finding};
use jvs_kit::sim::{Ctx, Explorer, Image, Process, SimStore, Solo, View};
use jvs_lock::mutation::Rule;
use jvs_lock::worktrees::{self, Base, WorktreeError};
use jvs_lock::{Hold, Locks, State, Want};
use jvs_protocol_tests::actor;
use jvs_protocol_tests::necessity::where_off;
use jvs_protocol_tests::stage::repository;
use jvs_repo::code::{Code, Coded};
use jvs_repo::entropy::Entropy;
use jvs_repo::id::{Generation, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{RepoPath, Store};
use jvs_world::session::locks;
use jvs_world::sim::{seams, seams_of, ward};

/// The snapshot that worktrees are restored from.
pub(crate) const BASE: SnapshotId = SnapshotId { created_ms: 7, random: 7 };

/// What one process does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    Create(&'static str),
    Restore(&'static str),
    Rename(&'static str, &'static str),
    Remove(&'static str),
    /// Takes the lock and commits.
    Publish(&'static str),
}

pub(crate) fn name(text: &str) -> WorktreeName {
    text.parse().expect("valid")
}

/// The file that nobody may lose, in the worktree `of`.
pub(crate) fn kept(of: &str) -> RepoPath {
    layout::payload(&name(of)).child("kept").expect("plain")
}

pub(crate) fn locks_of<'c>(ctx: &'c Ctx) -> Locks<'c> {
    let pid = 10 + u32::try_from(ctx.index()).expect("few processes");
    locks(seams(ctx), actor::session(ctx.name(), pid, ctx.clock()))
}

/// What [`Task::Restore`] has copied: a tree with one file.
fn copy(store: &SimStore, who: &str) -> std::io::Result<RepoPath> {
    let tree = layout::staged(&format!("copy-{who}"))?;
    store.make_dir(&tree)?;
    drop(store.create_new(&tree.child("copied")?)?);
    Ok(tree)
}

/// Makes the worktree `to` from [`BASE`].
pub(crate) fn restore_tree(
    store: &SimStore,
    locks: &Locks<'_>,
    to: &str,
    who: &str,
) -> Result<(), WorktreeError> {
    let base = Base { head: BASE, generation: Generation(1) };
    let begun = worktrees::begin_from(locks, &name(to), Isolation::Exclusive, base)?;
    let Ok(tree) = copy(store, who) else {
        begun.undo();
        return Err(WorktreeError::NotFound { name: name(to) });
    };
    begun.finish(&tree).map(drop)
}

fn publish(locks: &Locks<'_>, of: &str) -> Result<(), Code> {
    let mut lease = locks.acquire(&name(of), Want::lease(30_000)).map_err(|e| e.code())?;
    let head = SnapshotId { created_ms: 9, random: 9 };
    let mut fence = lease.fence().map_err(|e| e.code())?;
    fence.commit(None, head, &|| Ok(false)).map(drop).map_err(|e| e.code())
}

fn perform(ctx: &Ctx, task: Task) {
    let locks = locks_of(ctx);
    let code = |result: Result<(), WorktreeError>| result.map_err(|error| error.code());
    let (done, result) = match task {
        Task::Create(new) => {
            let made = worktrees::create(&locks, &name(new), Isolation::Exclusive);
            (new, code(made.map(drop)))
        }
        Task::Restore(new) => (new, code(restore_tree(ctx.store(), &locks, new, ctx.name()))),
        Task::Rename(old, new) => (new, code(worktrees::rename(&locks, &name(old), &name(new)))),
        Task::Remove(old) => ("", code(worktrees::remove(&locks, &name(old), true).map(drop))),
        Task::Publish(of) => (of, publish(&locks, of)),
    };
    match (result, task) {
        (Ok(()), Task::Publish(_)) => ctx.claim("published", done),
        (Ok(()), Task::Remove(gone)) => ctx.claim("removed", gone),
        (Ok(()), _) => ctx.claim("has", done),
        (Err(Code::OutcomeUnknown), _) => ctx.claim("unknown", 1),
        (Err(code), _) => ctx.claim("failed", code.as_str()),
    }
}

/// A world with worktree `old`, which has a file, and these tasks, each a process
/// of its own session on its own host.
pub(crate) fn world(tasks: &[Task], off: Option<Rule>) -> Explorer<'static> {
    let tasks: Vec<Task> = tasks.to_vec();
    let process = |(n, task): (usize, &Task)| {
        let task = *task;
        let body = move |ctx: &Ctx| where_off(off, || perform(ctx, task));
        let name = if matches!(task, Task::Remove(_)) { "remover" } else { ["a", "b", "c"][n] };
        Process::new(name, body)
    };
    Explorer::new()
        .setup(repository)
        .setup(with_old)
        .processes(tasks.iter().enumerate().map(process))
        .private(is_audit)
        .forget_private()
        .always(whoever_was_told_made_finds_it)
        .always(whoever_published_is_the_head)
        .at_end({
            let tasks = tasks.clone();
            move |view| whoever_was_told_failed_finds_the_world_as_it_was(view, &tasks)
        })
}

pub(crate) fn is_audit(path: &RepoPath) -> bool {
    path.as_str().starts_with(layout::audit().as_str())
}

pub(crate) fn with_old(solo: &Solo) {
    let maker = actor::alone(solo, "maker", 99);
    worktrees::create(&maker, &name("old"), Isolation::Exclusive).expect("made");
    drop(solo.store().create_new(&kept("old")).expect("written"));
}

/// Record, payload and a live register.
pub(crate) fn whole(view: &View<'_>, worktree: &str) -> Result<State, String> {
    whole_in(view.live(), worktree)
}

fn whole_in(live: &Image, worktree: &str) -> Result<State, String> {
    let name = name(worktree);
    let missing = |what: &str| format!("worktree {worktree} has no {what}");
    if !live.exists(&layout::worktree_record(&name)) {
        return Err(missing("record"));
    }
    if !live.exists(&layout::payload(&name)) {
        return Err(missing("files"));
    }
    let entries = live.list(&layout::register(&name));
    let [entry] = &entries[..] else {
        return Err(format!("the register of {worktree} has {} entries", entries.len()));
    };
    let state: State = entry.parse().map_err(|_| format!("not a state: {entry}"))?;
    if state.hold == Hold::Retired {
        return Err(missing("live register"));
    }
    Ok(state)
}

/// Whoever was told that a worktree is made, renamed or restored into finds its
/// record, its files and a live register, and nobody else was told the same.
fn whoever_was_told_made_finds_it(view: &View<'_>) -> Result<(), String> {
    let mut had = Vec::new();
    for process in view.processes() {
        let Some(has) = process.text("has") else { continue };
        if had.contains(&has) {
            return Err(format!("two were told that they made {has}"));
        }
        had.push(has);
        whole(view, has).map_err(|what| {
            format!("{} was told that it made {has}, but {what}", process.name())
        })?;
    }
    Ok(())
}

/// Whoever was told that its snapshot is published finds it as the head, unless the
/// worktree was removed since; whoever was told removed finds no live register.
fn whoever_published_is_the_head(view: &View<'_>) -> Result<(), String> {
    let entries = view.live().list(&layout::register(&name("old")));
    let [entry] = &entries[..] else {
        return Err(format!("the register of old has {} entries", entries.len()));
    };
    let state: State = entry.parse().map_err(|_| format!("not a state: {entry}"))?;
    for process in view.processes() {
        if process.text("published").is_some() && state.head.is_none() {
            return Err(format!("{} published, and it is not the head", process.name()));
        }
        if process.text("removed").is_some() && state.hold != Hold::Retired {
            return Err(format!("{} removed old, and its register lives", process.name()));
        }
    }
    Ok(())
}

/// Whoever died and whatever was left: doctor brings it back. Every worktree on the
/// list is whole, the file that nobody may lose is in one of them, and every name can
/// be had.
pub(crate) fn heals(view: &View<'_>) -> Result<(), String> {
    let solo = Solo::on(view.live().clone());
    // Other nonces than anybody has used.
    solo.entropy().fill(&mut [0; 4_000]);
    solo.pass_ms(100_000);
    let seams = seams_of(&solo);
    let healed = ward::doctor(seams, solo.store(), "doctor");
    // There are no snapshots in this world.
    let is_wrong = |finding: &&Finding| finding.counts() && finding.check != Check::HeadMissing;
    if healed.findings.iter().any(|finding| is_wrong(&finding)) {
        return Err(format!("doctor does not help: {:?}", ward::told(&healed)));
    }
    let image = solo.image();
    let mut recorded = Vec::new();
    for record in image.list(&layout::worktree_records()) {
        // The note of one who died on another host before it came to anything stays,
        // and is told: nothing proves that it is dead.
        let Some(name) = layout::worktree_of_record(&record) else { continue };
        let name = name.as_str().to_owned();
        whole_in(&image, &name).map_err(|what| format!("after doctor, {what}"))?;
        recorded.push(name);
    }
    let is_kept = recorded.iter().any(|name| name != "main" && image.exists(&kept(name)));
    let removed = view.processes().any(|p| p.name() == "remover");
    if !is_kept && !removed {
        return Err(format!("the file of old is lost; there are {recorded:?}"));
    }
    let locks = ward::locks_of(seams, "next");
    for free in ["new", "x", "y"] {
        if !recorded.iter().any(|name| name == free) {
            worktrees::create(&locks, &name(free), Isolation::Exclusive)
                .map_err(|error| format!("after doctor, {free} cannot be had: {error}"))?;
            whole_in(&solo.image(), free)?;
        }
    }
    Ok(())
}

/// If nobody died and no answer was lost for good: what was not told made is not on
/// the list, and what was not told renamed or removed is whole, with its file.
fn whoever_was_told_failed_finds_the_world_as_it_was(
    view: &View<'_>,
    tasks: &[Task],
) -> Result<(), String> {
    let told = |n: usize| view.process(n);
    if view.processes().any(|p| p.crashed() || p.number("unknown").is_some()) {
        return Ok(());
    }
    let went = tasks.iter().enumerate().any(|(n, task)| {
        matches!(task, Task::Rename("old", _) | Task::Remove("old"))
            && told(n).text("failed").is_none()
    });
    if !went {
        whole(view, "old").map_err(|what| format!("nobody was told old is gone, but {what}"))?;
        if !view.live().exists(&kept("old")) {
            return Err("nobody was told old is gone, but its file is".to_owned());
        }
    }
    for record in view.live().list(&layout::worktree_records()) {
        let Some(recorded) = layout::worktree_of_record(&record) else {
            return Err(format!("{record} is left"));
        };
        let known = recorded.is_main()
            || recorded == name("old") && !went
            || view.processes().any(|p| p.text("has") == Some(recorded.as_str()));
        if !known {
            return Err(format!("{recorded} is on the list, and nobody was told so"));
        }
    }
    for (n, task) in tasks.iter().enumerate() {
        if let (Task::Rename("old", to), Some(_)) = (task, told(n).text("has"))
            && !view.live().exists(&kept(to))
        {
            return Err(format!("old was renamed to {to} without its file"));
        }
    }
    Ok(())
}
