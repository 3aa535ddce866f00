//! What is said at the beginning and at the end of a shell under a lock, its mark in
//! the prompt, and what is said of processes in the background.

use std::ffi::OsString;
use std::process::Command;

use jvs_lock::Lease;
use jvs_lock::holder::kept_until_when;
use jvs_lock::span::Span;

use super::held::{HoldOutcome, RunLock};
use crate::context::Context;
use crate::tree::{Containment, Member, ProcessTree, listed};

/// Puts the mark before the prompt of a shell that reads its settings first and only
/// then shows a prompt; once, whatever those settings do.
const MARK: &str = r#"case "$PS1" in "$JVS_PROMPT"*) ;; *) PS1="$JVS_PROMPT$PS1" ;; esac"#;

/// Marks the prompt of the shell that `command` starts: `JVS_PROMPT` for the process that wants
/// to place it, `PS1` for shells that take it from the environment, and for bash, which
/// sets its own, the line that it runs before each prompt.
pub(super) fn mark_prompt(context: &Context<'_>, command: &mut Command, worktrees: &str) {
    let mark = format!("[jvs {worktrees}] ");
    let mut prompt = OsString::from(&mark);
    prompt.push(context.variable("PS1").unwrap_or_else(|| "$ ".into()));
    let mut before = OsString::from(MARK);
    if let Some(own) = context.variable("PROMPT_COMMAND") {
        before.push("; ");
        before.push(own);
    }
    command.env("JVS_PROMPT", mark).env("PS1", prompt).env("PROMPT_COMMAND", before);
}

pub(super) fn begin(context: &Context<'_>, lease: &Lease<'_>) {
    let (worktree, token) = (lease.worktree(), lease.token());
    let (lease_ms, until) = (lease.claim().lease_ms, lease.claim().expires.shown());
    context.output().aside(&format!(
        "Locked worktree {worktree} (fencing token {token}) until this shell ends; \
         lease of {}, kept renewed, now until {until}",
        Span(lease_ms)
    ));
}

/// The last line of a shell.
pub(super) fn end(context: &Context<'_>, held: &RunLock<'_, '_>, outcome: &HoldOutcome) {
    let which = format!("{} (fencing token {})", held.turn.here.worktree, held.lease.token());
    let line = match (&outcome.lost, &outcome.released) {
        (Some(_), _) => format!("The lock of worktree {which} was lost"),
        (None, Some(None)) if outcome.kept => {
            let now = context.clock().now().wall;
            let until = held.kept().map(|kept| format!(": {}", kept_until_when(&kept, now)));
            format!("Worktree {which} stays locked by this session{}", until.unwrap_or_default())
        }
        (None, Some(None)) => format!("Released worktree {which}"),
        // A warning says why.
        (None, _) => return,
    };
    context.output().aside(&line);
}

pub(super) fn tell_containment(context: &Context<'_>, tree: &ProcessTree, passed_over: &[String]) {
    let how = match &tree.hold {
        Containment::Cgroup(cgroup) => format!("the cgroup {}", cgroup.dir().display()),
        Containment::Namespace => "a PID namespace of its own".to_owned(),
        Containment::Reaper => format!("its guardian, process {}", tree.guardian.pid),
    };
    for why in passed_over {
        context.output().aside(why);
    }
    let word = tree.hold.word();
    context.output().aside(&format!("contained by {how} ({word})"));
}

/// Nobody is ended, or left alone, without a word.
pub(super) fn tell_background(
    context: &Context<'_>,
    leave: bool,
    swept: &[Member],
    left: &[Member],
) {
    let output = context.output();
    if !swept.is_empty() {
        output.aside(&format!("ended background processes of the command: {}", listed(swept)));
    }
    if leave && !left.is_empty() {
        output.aside(&format!("left in the background, without the lock: {}", listed(left)));
    }
}
