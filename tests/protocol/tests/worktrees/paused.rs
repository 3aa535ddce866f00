//! A removal or a rename that is paused while others end it and go on.

use jvs_kit::sim::{Ctx, Explorer, Process, View};
use jvs_lock::mutation::Rule;
use jvs_lock::register::Register;
use jvs_lock::{Hold, Want, worktrees};
use jvs_protocol_tests::necessity::{needed, where_off};
use jvs_protocol_tests::stage::repository;
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
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

fn rename(ctx: &Ctx) {
    let _ = worktrees::rename(&locks_of(ctx), &name("old"), &name("new"));
}

/// Gives what was renamed one more name, and makes another worktree of the first.
fn begin_anew(ctx: &Ctx) {
    let locks = locks_of(ctx);
    if worktrees::rename(&locks, &name("new"), &name("y")).is_ok()
        && worktrees::create(&locks, &name("old"), Isolation::Exclusive).is_ok()
        && ctx.store().create_new(&mine()).is_ok()
    {
        ctx.claim("made", 1);
        ctx.claim("wrote", 1);
    }
}

/// Makes another worktree of the name that is being given up.
fn make_anew(ctx: &Ctx) {
    if worktrees::create(&locks_of(ctx), &name("old"), Isolation::Shared).is_ok() {
        ctx.claim("made", 1);
    }
}

/// One who is paused, one who ends what it began, and one who comes next.
fn world(paused: fn(&Ctx), next: fn(&Ctx), off: Option<Rule>) -> Explorer<'static> {
    let body = move |act: fn(&Ctx)| move |ctx: &Ctx| where_off(off, || act(ctx));
    Explorer::new()
        .setup(repository)
        .setup(with_old)
        .process(Process::new("paused", body(paused)))
        .process(Process::new("healer", body(heal)))
        .process(Process::new("next", body(next)))
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
        return Err("a file that was written is lost".to_owned());
    }
    if told(2, "made") && !view.live().exists(&layout::worktree_record(&name("old"))) {
        return Err("a record that was placed is lost".to_owned());
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
    let report = world(remove, work, None).preemptions(6).run();
    eprintln!("remove, end, work: {report}");
    report.holds();
}

#[test]
fn what_a_removal_took_is_looked_at_again_before_it_may_be_deleted() {
    needed(Rule::TakenThenLooked, "was written is lost", |off| {
        world(remove, work, off).preemptions(3)
    });
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]
fn a_paused_rename_takes_nothing_of_whoever_has_the_old_name_next() {
    let report = world(rename, begin_anew, None).preemptions(3).run();
    eprintln!("rename, end, rename and create: {report}");
    report.holds();
}

#[test]
fn what_a_rename_moved_is_looked_at_again() {
    needed(Rule::MovedThenLooked, "was written is lost", |off| {
        world(rename, begin_anew, off).preemptions(3)
    });
}

/// Removes without the files, so that nothing is left to wait for.
fn remove_empty(ctx: &Ctx) {
    let _ = ctx.store().unlink(&kept("old"));
    let _ = worktrees::remove(&locks_of(ctx), &name("old"), false);
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]
fn a_paused_removal_forgets_no_record_but_its_own() {
    let report = world(remove_empty, make_anew, None).preemptions(3).run();
    eprintln!("remove, end, create: {report}");
    report.holds();
}

#[test]
fn what_a_removal_forgets_is_looked_at_before_it_goes() {
    needed(Rule::ForgottenThenLooked, "a record that was placed is lost", |off| {
        world(remove_empty, make_anew, off).preemptions(3)
    });
}

fn take_and_release(ctx: &Ctx) {
    if let Ok(lease) = locks_of(ctx).acquire(&name("old"), Want::lease(30_000)) {
        let _ = lease.release();
    }
}

/// Another tool, which takes what it sees to be free.
fn lock_by_another_tool(ctx: &Ctx) {
    let (store, record) = (ctx.store(), layout::lock_record(&name("old")));
    let state = Register::new(store, ctx.clock(), name("old")).read();
    if state.is_ok_and(|state| state.hold == Hold::Free && state.token.0 > 0)
        && store.write_over(&layout::lock_tmp(&name("old"), "tool"), &record, b"tool").is_ok()
    {
        ctx.claim("locked", 1);
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]
fn a_paused_release_removes_nobody_else_s_lock() {
    let report = Explorer::new()
        .setup(repository)
        .setup(with_old)
        .process(Process::new("paused", take_and_release))
        .process(Process::new("tool", lock_by_another_tool))
        .private(is_audit)
        .forget_private()
        .at_end(|view: &View<'_>| {
            let locked = view.process(1).number("locked").is_some();
            if locked && !view.live().exists(&layout::lock_record(&name("old"))) {
                return Err("the lock of another tool is gone".to_owned());
            }
            Ok(())
        })
        .preemptions(4)
        .run();
    eprintln!("release, another tool: {report}");
    report.holds();
}
