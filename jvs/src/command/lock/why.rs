//! `jvs lock why`: who holds, how that is known, and what to do next, in words.

use std::path::Path;

use jvs_lock::judge::{Judgement, Method};
use jvs_lock::liveness::{Liveness, Observer, Unknowable, liveness};
use jvs_lock::record::{FoundRecord, Record};
use jvs_lock::span::Span;
use jvs_lock::view::{StatusWord, View};
use jvs_repo::clock::shown_as_written;
use jvs_repo::name::ShownName;
use jvs_repo::proc;

use super::{look, status, ways};
use crate::answer::lock::Why;
use crate::context::Context;
use crate::fail::{Failure, on_one_line};
use crate::keeper;
use crate::render::{self, Done};

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let here = context.here()?;
    let view = look(context, &here)?;
    let clock = context.clock().boot_clock();
    let place = Observer { clock: &clock, pid_namespace: proc::pid_namespace() };
    let alive = view.record().map(|record| liveness(record, place, proc::process_stat));
    let root = context.absolute(here.repo.store().root_path());
    let unneeded = keeper_is_dead(&view) && context.is_relied_on(&here, &view.state) == Some(false);
    let (facts, next) = (facts(&view, alive), next(&view, &root, unneeded));

    let paint = context.paint();
    let mut text = format!("{}\n", verdict(&view));
    for fact in &facts {
        text += &render::fact(None, &format!("  {:10}", fact.label), &fact.sentence);
    }
    let ways = ways::out(context, &view, &here.repo.config()?, unneeded);
    text += &ways::text(&ways);
    text += &format!("{} {next}\n", paint.cyan("next:"));
    let answer = Why {
        status: status::told(context, &here.repo, &view),
        process: alive,
        explanation: facts.into_iter().map(|fact| fact.sentence).collect(),
        ways,
        next,
    };
    Ok(Done::new(&answer).with_text(text))
}

/// One thing that is known.
struct Fact {
    label: &'static str,
    sentence: String,
}

fn verdict(view: &View) -> String {
    let worktree = &view.worktree;
    if view.held_by_other_tool().is_some() {
        return format!("Worktree {worktree} is locked by another tool.");
    }
    match (view.word(), view.mine) {
        (StatusWord::Free, _) => format!("Worktree {worktree} is free: nobody holds its lock."),
        (StatusWord::Retired, _) => format!("Worktree {worktree} was removed."),
        (StatusWord::Frozen, _) => {
            format!("Worktree {worktree} is frozen: nobody may take its lock.")
        }
        (StatusWord::Held, true) => format!("Worktree {worktree} is locked by this session."),
        (StatusWord::Held, false) => format!("Worktree {worktree} is locked by another session."),
        (_, true) => {
            format!("Worktree {worktree} was locked by this session, but the lease is over.")
        }
        (_, false) => {
            format!("Worktree {worktree} was locked by another session, whose lease is over.")
        }
    }
}

fn facts(view: &View, alive: Option<Liveness>) -> Vec<Fact> {
    let mut facts = Vec::new();
    // Some of it was written by others: it must not drive the terminal.
    let mut know = |label, sentence: String| {
        facts.push(Fact { label, sentence: on_one_line(&sentence) });
    };
    if let Some(foreign) = &view.foreign {
        know("other tool", format!("held {}", foreign.described(view.at.wall)));
    }
    if let Some(unheard) = &view.unheard {
        know("other tool", format!("a file that may be its lock cannot be read: {unheard}"));
    }
    match (view.record(), &view.found) {
        (Some(record), _) => about_holder(view, record, alive, &mut know),
        (None, _) if view.state.hold.claim().is_none() => {}
        (None, FoundRecord::Unreadable(why) | FoundRecord::Refused(why)) => {
            know("record", format!("cannot be read ({why}); the rest is from the register alone"));
        }
        (None, _) => know("record", "missing; the rest is from the register alone".to_owned()),
    }
    know("token", format!("{}, raised by every change of holder", view.state.token));
    if let Some(judged) = &view.judgement {
        about_lease(view, judged, &mut know);
    }
    facts
}

fn about_holder(
    view: &View,
    record: &Record,
    alive: Option<Liveness>,
    know: &mut impl FnMut(&'static str, String),
) {
    let meta = &record.metadata;
    let me = if view.mine { " (this session)" } else { "" };
    if !view.mine {
        know("holder", view.holder().who());
    }
    know("session", format!("{}{me}", record.session_id));
    let user = &meta.user_identity;
    know(
        "user",
        match record.uid {
            Some(uid) => format!("{user} (self-declared), user id {uid}"),
            None => format!("{user} (self-declared), user id not known"),
        },
    );
    know("purpose", format!("{}, {} (self-declared)", meta.purpose, meta.environment));
    if let Some(note) = &record.note {
        know("note", note.clone());
    }
    know("kept", view.holder().until_when());
    let ago = record.created().map_or(0, |created| view.at.wall.since(created));
    let since = shown_as_written(&record.created_at);
    know("since", format!("{since} ({} ago)", Span(ago)));
    if let Some(keeper) = &record.keeper {
        let pid = keeper.pid;
        know(
            "keeper",
            match keeper::running(keeper) {
                Some(true) => format!("process {pid} runs and renews the lease"),
                Some(false) => format!("process {pid} has ended: nobody renews the lease any more"),
                None => format!("process {pid}, which cannot be seen from here"),
            },
        );
    }
    let process = format!("{} on host {}", meta.process_id, meta.hostname);
    know(
        "process",
        match alive {
            Some(Liveness::Alive) => {
                format!("{process} runs: this boot has a process with its pid and start time")
            }
            Some(Liveness::Dead) => format!(
                "{process} has ended: this boot has no process with its pid and start time; the \
                 lease lasts without it"
            ),
            Some(Liveness::Unknown(Unknowable::OtherHost)) => {
                format!("{process}: cannot be seen from this host or boot")
            }
            Some(Liveness::Unknown(Unknowable::OtherPidNamespace)) => {
                format!("{process}: cannot be seen from this container")
            }
            Some(Liveness::Unknown(Unknowable::NoProcess | Unknowable::OtherUser)) | None => {
                "not named by the record".to_owned()
            }
        },
    );
}

/// Is it certain that nobody renews it any more?
fn keeper_is_dead(view: &View) -> bool {
    let keeper = view.record().and_then(|record| record.keeper.as_ref());
    keeper.and_then(keeper::running) == Some(false)
}

fn about_lease(view: &View, judged: &Judgement, know: &mut impl FnMut(&'static str, String)) {
    let end = view.expires().map(|expires| expires.shown().to_string()).unwrap_or_default();
    let left = if judged.remaining_ms > 0 {
        format!("ends in {} ({end}) unless it is renewed", Span(judged.remaining_ms))
    } else {
        format!("is over ({end})")
    };
    know("lease", left);
    let clock = match judged.method {
        Method::SameBoot => "by this host's boot-time clock, which is also the holder's: exact",
        Method::WallClock => "by comparing this host's wall clock with the holder's",
        Method::Observed => "by watching the register, without any wall clock",
    };
    know("judged", clock.to_owned());
    if judged.method == Method::WallClock && judged.nobody_renews {
        let sure = "nobody renews this lease, so watching it for less than a lease proves nothing";
        know("watched", sure.to_owned());
    } else if judged.watch_ms > 0 {
        let left = Span(judged.watch_ms);
        know("watched", format!("not for long enough; to take it, it is first watched for {left}"));
    }
    for evidence in &judged.evidence {
        know("doubt", evidence.to_string());
    }
    know(
        "stealable",
        match (view.word(), judged.stealable_in_ms) {
            (StatusWord::Frozen, _) => "never: a freeze ends by itself or is lifted".to_owned(),
            (_, 0) => "now".to_owned(),
            (_, ms) => format!("in {} unless it is renewed", Span(ms)),
        },
    );
}

/// The command to run next.
fn next(view: &View, root: &Path, unneeded: bool) -> String {
    let worktree = &view.worktree;
    if let Some(foreign) = view.held_by_other_tool().filter(|foreign| foreign.ends.is_none()) {
        // To wait for what never ends is no advice.
        let file = root.join(&foreign.path);
        return format!("if that tool is gone for good: rm {}", ShownName::new(&file).typed());
    }
    match (view.word(), view.mine) {
        (StatusWord::Free, _) => format!("jvs lock acquire -w {worktree}"),
        (StatusWord::Retired, _) => "jvs worktree list".to_owned(),
        (StatusWord::Held, true) => format!("jvs lock release -w {worktree}"),
        (StatusWord::Stealable, false) => format!("jvs lock steal -w {worktree} --reason TEXT"),
        (StatusWord::Expired | StatusWord::Stealable, true) => {
            format!("jvs lock acquire -w {worktree}")
        }
        (StatusWord::Frozen, _) => format!("jvs lock unfreeze -w {worktree} --reason TEXT"),
        (StatusWord::Held, false) if unneeded => {
            format!("jvs lock reclaim -w {worktree} --reason TEXT")
        }
        (StatusWord::Held | StatusWord::Expired, false) => {
            format!("jvs lock acquire --wait -w {worktree}")
        }
    }
}
