//! Words that this version does not know, in the settings of a host that has a later one. Words
//! and status 2 are all that keep a tool from being used: with the status of wrong usage, a
//! write would pass.

use std::ffi::OsString;

use clap::ValueEnum as _;

use super::{BLOCKED, LIMIT, decides, guard, input, watched};
use crate::args::Global;
use crate::context::{Context, Env};
use crate::fail::Failure;
use crate::harness::{Harness, HookVerdict};
use crate::render::Output;

/// `failure` of a hook that was called with `words`: with the status that stops the tool, if it
/// may be about one.
pub(crate) fn stops(words: &[OsString], env: Env<'_>, output: Output, failure: Failure) -> Failure {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if !may_deny(&words) || input::is_typed() {
        return failure;
    }
    let context = Context::new(Global::default(), env, output);
    let limit = u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX);
    let by = context.clock().now().boot.plus(limit);
    let elsewhere = || match guard::is_in_repository(&context) {
        Ok(false) => HookVerdict::Pass,
        _ => HookVerdict::Deny(String::new()),
    };
    match watched::within(&context, by, elsewhere) {
        Ok(HookVerdict::Pass) => failure,
        _ => failure.exiting_with(BLOCKED),
    }
}

/// May what is asked be whether a tool is used, and is it to be denied if nobody knows?
fn may_deny(words: &[String]) -> bool {
    let Some(at) = words.iter().position(|word| word == "hook") else { return false };
    let mut lets_pass = words.windows(2).any(|two| two == ["--on-error", "allow"]);
    lets_pass |= words.iter().any(|word| word == "--on-error=allow");
    let mut named = words[at + 1..].iter().skip_while(|word| word.starts_with('-'));
    let Some(harness) = named.next() else { return false };
    let event = named.next().filter(|word| !word.starts_with('-'));
    let all = Harness::value_variants();
    let known = all.iter().find(|it| it.as_str() == *harness);
    let about_a_tool = match (known, event) {
        // The payload says which event it is, and is not read.
        (_, None) => true,
        (Some(harness), Some(event)) => decides(*harness, event),
        (None, Some(event)) => all.iter().any(|it| decides(*it, event)),
    };
    about_a_tool && !lets_pass
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_known_stop_a_tool_and_nothing_else() {
        let may = |line: &str| {
            may_deny(&line.split_whitespace().map(str::to_owned).collect::<Vec<String>>())
        };
        for line in [
            "jvs hook claude PreToolUse --new",
            "jvs hook codex PreToolUse --on-error deny --new",
            "jvs hook codex PreToolUse --new=allow",
            "jvs hook cursor beforeShellExecution --new",
            "jvs hook claude --new",
            "jvs hook later PreToolUse",
            "jvs --repo x hook claude PreToolUse --new",
            "jvs hook --new claude PreToolUse",
        ] {
            assert!(may(line), "{line}");
        }
        for line in [
            "jvs hook claude PreToolUse --new --on-error allow",
            "jvs hook claude PreToolUse --on-error=allow --new",
            // Status 2 would keep the agent from ever ending its turn.
            "jvs hook claude Stop --new",
            "jvs hook codex Stop --new",
            "jvs hook later Stop",
            "jvs hook",
            "jvs status --new",
        ] {
            assert!(!may(line), "{line}");
        }
    }
}
