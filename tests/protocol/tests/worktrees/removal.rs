//! A removal that is paused while others bring its worktree back and work in it.

use jvs_kit::sim::{Ctx, Explorer, Process, View};
use jvs_lock::mutation::{self, Rule};
use jvs_lock::{Want, worktrees};
use jvs_protocol_tests::necessity::needed;
use jvs_protocol_tests::stage::repository;
use jvs_repo::layout;
use jvs_repo::store::{RepoPath, Store};

use crate::world::{is_audit, kept, locks_of, name, with_old};

fn mine() -> RepoPath {
    layout::payload(&name("old")).child("mine").expect("plain")
}

fn remove(ctx: &Ctx) {
    match worktrees::remove(&locks_of(ctx), &name("old"), true) {
        Ok(_) => ctx.claim("removed", 1),
        Err(error) => ctx.claim("failed", error.to_string()),
    }
}

/// What doctor does with it.
fn heal(ctx: &Ctx) {
    let _ = worktrees::unfinished::end(&locks_of(ctx), &name("old"));
}

/// Takes the lock and writes a file.
fn work(ctx: &Ctx) {
    let locks = locks_of(ctx);
    // It is held to the end.
    if locks.acquire(&name("old"), Want::lease(30_000)).is_ok()
        && ctx.store().create_new(&mine()).is_ok()
    {
        ctx.claim("wrote", 1);
    }
}

fn world(off: Option<Rule>) -> Explorer<'static> {
    let body = move |act: fn(&Ctx)| {
        move |ctx: &Ctx| match off {
            Some(rule) => mutation::without(rule, || act(ctx)),
            None => act(ctx),
        }
    };
    Explorer::new()
        .setup(repository)
        .setup(with_old)
        .process(Process::new("remover", body(remove)))
        .process(Process::new("healer", body(heal)))
        .process(Process::new("worker", body(work)))
        .private(is_audit)
        .forget_private()
        .early_wakes(1)
        .at_end(whoever_wrote_finds_it)
}

/// Whoever wrote a file under the lock finds it, and nobody was told removed; whoever
/// was told that the removal failed finds the files that were there.
fn whoever_wrote_finds_it(view: &View<'_>) -> Result<(), String> {
    let told = |n: usize, what| view.process(n).number(what).is_some();
    if told(2, "wrote") && !view.live().exists(&mine()) {
        return Err("a file that was written under the lock is lost".to_owned());
    }
    if told(2, "wrote") && told(0, "removed") {
        return Err("what somebody writes to was told removed".to_owned());
    }
    if view.process(0).text("failed").is_some() && !view.live().exists(&kept("old")) {
        return Err("the removal failed, and the files are gone".to_owned());
    }
    Ok(())
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]
fn a_paused_removal_takes_nothing_of_whoever_has_the_worktree_next() {
    let report = world(None).preemptions(6).run();
    eprintln!("remove, end, work: {report}");
    report.holds();
}

#[test]
fn what_a_removal_took_is_looked_at_again_before_it_may_be_deleted() {
    needed(Rule::TakenThenLooked, "written under the lock is lost", |off| {
        world(off).preemptions(3)
    });
}
