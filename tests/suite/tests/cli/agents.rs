//! Coding agents: conversations of their harnesses with the hook, and their files. The
//! payloads are in `payload/`, with where they are from.

use crate::transcript::play;

/// Every transcript that is played here.
pub(crate) const PLAYED: &[&str] = &[
    "hook_claude",
    "hook_codex",
    "hook_cursor",
    "hook_gemini",
    "hook",
    "agent_install",
    "agent_uninstall",
    "agent_status",
];

#[test]
fn claude_code_is_answered_in_its_own_words() {
    play("hook_claude");
}

#[test]
fn codex_is_answered_in_its_own_words() {
    play("hook_codex");
}

#[test]
fn cursor_is_answered_in_its_own_words() {
    play("hook_cursor");
}

#[test]
fn gemini_is_answered_in_its_own_words() {
    play("hook_gemini");
}

#[test]
fn what_cannot_be_read_is_denied_or_passed_as_was_said() {
    play("hook");
}

#[test]
fn what_is_installed_leaves_all_else_as_it_is() {
    play("agent_install");
}

#[test]
fn what_is_uninstalled_leaves_all_as_it_was() {
    play("agent_uninstall");
}

#[test]
fn the_status_of_hooks_says_what_they_cannot_do() {
    play("agent_status");
}
