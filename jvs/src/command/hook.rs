//! `jvs hook`: answers a coding agent's harness in its own words, in time, whatever
//! becomes of the repository.

mod end;
mod guard;
mod input;
mod misused;
mod reach;
mod start;
mod watched;
mod who;
mod worktree;

use std::time::Duration;

use serde_json::Value;

pub(crate) use self::misused::stops;
use self::who::Asker;
use crate::answer::agent::HookAnswered;
use crate::args::{HookArgs, OnError};
use crate::context::Context;
use crate::fail::{Failure, WrongUsage};
use crate::harness::{self, Call, Happening, Harness, HookAnswer, HookVerdict, Misread, ToolUse};
use crate::hint::OwnNext;
use crate::ownership;
use crate::render::Done;

/// How long an agent waits for an answer at most.
const LIMIT: Duration = Duration::from_secs(2);
/// How much of it the payload may take.
const LIMIT_OF_PAYLOAD: Duration = Duration::from_millis(1_500);
/// The same for what copies a worktree: the harness is told to wait that long.
const LIMIT_OF_COPIES: Duration = Duration::from_secs(60);

/// The status of what was asked for and could not be done.
const FAILED: u8 = 1;

/// The status that keeps a tool from being used, in every harness, where words do not.
const BLOCKED: u8 = 2;

pub(crate) fn run(context: &Context<'_>, args: &HookArgs) -> Result<Done, Failure> {
    if input::is_typed() {
        let nobody = "there is no payload: standard input is a terminal";
        return Err(WrongUsage::new(nobody, OwnNext::InstallAgent).into());
    }
    ownership::say_nothing();
    let started = context.clock().now().boot;
    let limit = |of: Duration| started.plus(u64::try_from(of.as_millis()).unwrap_or(u64::MAX));
    let told = args.event.as_deref();
    let read = input::read(context, limit(LIMIT_OF_PAYLOAD))
        .map_err(|why| Misread { event: told.map(str::to_owned), why })
        .and_then(|bytes| harness::read(args.harness, told, &bytes));
    let (event, verdict) = match read {
        Ok(call) => {
            let verdict = match quickly(context, args, &call) {
                Some(verdict) => verdict,
                None => {
                    let copies = may_copy(args, &call.what);
                    let by = limit(if copies { LIMIT_OF_COPIES } else { LIMIT });
                    let answered = watched::within(context, by, || slowly(context, args, &call));
                    answered.unwrap_or_else(|why| in_trouble(args, &call.what, why))
                }
            };
            (Some(call.event), verdict)
        }
        Err(Misread { event, why }) => {
            let guards = event.as_deref().is_none_or(|event| decides(args.harness, event));
            let unread = || match guard::is_in_repository(context) {
                Ok(false) => HookVerdict::Pass,
                Ok(true) | Err(_) => trouble(args.ways.on_error, guards, why.clone()),
            };
            let answered = watched::within(context, limit(LIMIT), unread);
            let verdict = answered.unwrap_or_else(|why| trouble(args.ways.on_error, guards, why));
            (event, verdict)
        }
    };
    // A decision that no event was named for is one about a tool.
    let event = event.unwrap_or_else(|| deciding(args.harness).to_owned());
    Ok(said(context, args.harness, &event, verdict))
}

/// The answer, as this command prints it.
fn said(context: &Context<'_>, harness: Harness, event: &str, verdict: HookVerdict) -> Done {
    let word = verdict.word();
    let denied = match &verdict {
        HookVerdict::Deny(why) => Some(why.clone()),
        _ => None,
    };
    let answer = harness::answer(harness, event, verdict);
    let document = match &answer {
        HookAnswer::Document(document) => document.clone(),
        _ => Value::Null,
    };
    let done = context.done(|| HookAnswered {
        harness: harness.as_str(),
        event: event.to_owned(),
        verdict: word,
        answer: document,
    });
    let done = match denied {
        Some(why) => done.or_else_exit(BLOCKED, why),
        None => done,
    };
    match answer {
        HookAnswer::Silence => done,
        HookAnswer::Document(document) => done.with_text(harness::line(&document)),
        HookAnswer::Path(path) => done.with_path(&input::as_path(path)),
        HookAnswer::Complaint(why) => done.with_warning(why).with_exit(FAILED),
    }
}

/// What needs no look at any file.
fn quickly(context: &Context<'_>, args: &HookArgs, call: &Call) -> Option<HookVerdict> {
    let passes = match &call.what {
        Happening::Other | Happening::Tool(ToolUse::Reads) => true,
        Happening::Tool(ToolUse::Unknown(paths)) => paths.is_empty(),
        Happening::Tool(ToolUse::Shell(command, _)) => {
            let asker = Asker::of(context, args.harness, &call.session).ok()?;
            guard::only_reads(command, &asker)
        }
        Happening::TurnEnd => !args.ways.checkpoint,
        _ => false,
    };
    if passes && let Ok(asker) = Asker::of(context, args.harness, &call.session) {
        // Also who only reads is still at work.
        asker.life(context);
    }
    passes.then_some(HookVerdict::Pass)
}

/// What does: in a process of its own, which may hang.
fn slowly(context: &Context<'_>, args: &HookArgs, call: &Call) -> HookVerdict {
    let answered = Asker::of(context, args.harness, &call.session).and_then(|asker| {
        asker.life(context);
        match &call.what {
            Happening::Tool(tool) => guard::judge(context, args.ways.auto, &asker, call, tool),
            Happening::Start => start::greet(context, &asker, call),
            Happening::TurnEnd => end::checkpoint(context, &asker),
            Happening::End => end::release(context, &asker),
            Happening::CreateWorktree(name) => {
                worktree::create(context, args.ways.checkpoint, &asker, call, name)
            }
            Happening::RemoveWorktree(path) => worktree::remove(context, &asker, path),
            Happening::Other => Ok(HookVerdict::Pass),
        }
    });
    answered.unwrap_or_else(|failure| in_trouble(args, &call.what, in_words(&failure)))
}

/// A failure in one line, with what to do about it.
fn in_words(failure: &Failure) -> String {
    let hint = failure.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}: {}{hint}", failure.code(), failure.message())
}

fn in_trouble(args: &HookArgs, what: &Happening, why: String) -> HookVerdict {
    match what {
        Happening::CreateWorktree(_) => HookVerdict::Failed(why),
        what => trouble(args.ways.on_error, matches!(what, Happening::Tool(_)), why),
    }
}

/// What is answered where nobody can tell who holds the lock.
fn trouble(on_error: OnError, decides: bool, why: String) -> HookVerdict {
    match (decides, on_error) {
        (true, OnError::Deny) => HookVerdict::Deny(format!("jvs could not check the lock: {why}")),
        (true, OnError::Allow) => {
            HookVerdict::Tell(format!("jvs could not check the lock, and let it pass: {why}"))
        }
        (false, _) => HookVerdict::Tell(format!("jvs: {why}")),
    }
}

/// May it take as long as copying a worktree does?
fn may_copy(args: &HookArgs, what: &Happening) -> bool {
    match what {
        Happening::TurnEnd => args.ways.checkpoint,
        Happening::CreateWorktree(_) | Happening::RemoveWorktree(_) => true,
        _ => false,
    }
}

/// Can the answer to this event keep a tool from being used?
fn decides(harness: Harness, event: &str) -> bool {
    match harness {
        Harness::Cursor => {
            ["preToolUse", "beforeShellExecution", "beforeMCPExecution"].contains(&event)
        }
        harness => event == deciding(harness),
    }
}

/// The event about tools.
fn deciding(harness: Harness) -> &'static str {
    match harness {
        Harness::Claude | Harness::Codex => "PreToolUse",
        Harness::Cursor => "preToolUse",
        Harness::Gemini => "BeforeTool",
    }
}
