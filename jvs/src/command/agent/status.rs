//! `jvs agent status`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum as _;

use super::piece::{Piece, PieceKind, pieces_in};
use super::place::AgentPlace;
use super::receipt::{Receipts, digest};
use crate::answer;
use crate::answer::agent::{AgentFileSeen, AgentList, AgentSeen};
use crate::args::{Agent, AgentPlaceArgs};
use crate::context::Context;
use crate::fail::{Failure, on_one_line};
use crate::render::{Done, shown};

pub(super) fn run(context: &Context<'_>, args: &AgentPlaceArgs) -> Result<Done, Failure> {
    let place = AgentPlace::of(context, args.agent, args.user)?;
    let all = args.agent.map_or(Agent::value_variants().to_vec(), |agent| vec![agent]);
    let mut told = Vec::new();
    let mut text = format!("in {}\n", shown(&place.root));
    for agent in all {
        let own = AgentPlace::of(context, Some(agent), args.user);
        let (state, files) = match &own {
            Ok(own) => look(own, agent, args.user, &Receipts::read(own)?),
            // One of several agents; whoever asks for it alone is told why.
            Err(_) => ("not installed: its directory cannot be opened", Vec::new()),
        };
        let elsewhere = own.as_ref().ok().map(|own| &own.root).filter(|dir| **dir != place.root);
        let name = context.paint().bold(agent.as_str());
        let _ = match elsewhere {
            Some(dir) => writeln!(text, "{name}: {state}, in {}", shown(dir)),
            None => writeln!(text, "{name}: {state}"),
        };
        let (elsewhere, elsewhere_bytes) = answer::path_if_any(elsewhere.map(PathBuf::as_path));
        for file in &files {
            let AgentFileSeen { path, state: how, options, .. } = file;
            let options = options.as_ref().filter(|it| !it.is_empty());
            let options = options.map(|it| format!(",{it}")).unwrap_or_default();
            let _ = writeln!(text, "  {}", on_one_line(&format!("{path}: {how}{options}")));
        }
        for line in abilities(agent) {
            let _ = writeln!(text, "  {line}");
        }
        told.push(AgentSeen {
            agent: agent.as_str(),
            state,
            elsewhere,
            elsewhere_bytes,
            denies: agent.harness().is_some(),
            abilities: abilities(agent),
            files,
        });
    }
    let answer = || {
        let (place, place_bytes) = answer::path(&place.root);
        AgentList { agents: told, place, place_bytes }
    };
    Ok(context.done(answer).with_text(text))
}

/// How it stands with `agent` in a word or two, and with each of its files.
fn look(
    place: &AgentPlace,
    agent: Agent,
    user: bool,
    receipts: &Receipts,
) -> (&'static str, Vec<AgentFileSeen>) {
    let kept = receipts.of(agent);
    let mut files = Vec::new();
    let (mut there, mut missing) = (0, 0);
    for piece in pieces_in(place, agent, user) {
        let read = place.read(piece.path).and_then(|file| {
            let less = file.as_ref().map(|it| piece.stripped(place, it)).transpose()?;
            Ok((file, less.flatten().is_some_and(|it| it.less.is_some())))
        });
        let (file, ours) = match read {
            Ok(read) => read,
            Err(failure) => {
                missing += 1;
                let state = format!("not usable ({})", failure.code());
                let (path, kind) = (piece.path, kind(&piece));
                files.push(AgentFileSeen { path, kind, state, options: None });
                continue;
            }
        };
        let known = kept.iter().find(|kept| kept.path == piece.path);
        let same =
            file.as_ref().zip(known).is_some_and(|(it, kept)| digest(&it.text) == kept.after);
        let state = match (ours || same, &file) {
            (true, _) if same => "as installed",
            (true, _) if matches!(piece.kind, PieceKind::Section(_)) => "installed",
            (true, _) => "installed, and changed since",
            (false, Some(_)) if known.is_some() => "changed since, ours is not in it",
            (false, Some(_)) => "there, nothing of it is ours",
            (false, None) => "not there",
        };
        if ours || same {
            there += 1;
        } else {
            missing += 1;
        }
        let options = file.as_ref().and_then(|file| piece.options(&file.text));
        let (path, kind, state) = (piece.path, kind(&piece), state.to_owned());
        files.push(AgentFileSeen { path, kind, state, options });
    }
    let state = match (there, missing) {
        (0, _) => "not installed",
        (_, 0) => "installed",
        _ => "incomplete: install it again",
    };
    (state, files)
}

/// What a file is for.
fn kind(piece: &Piece) -> &'static str {
    match piece.kind {
        PieceKind::Hooks(_) => "hooks",
        PieceKind::Whole(_) | PieceKind::Section(_) => "instructions",
    }
}

/// What the hooks of an agent can and cannot do, in sentences.
fn abilities(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => {
            &["denies writes without the lock; releases it when the session ends; makes worktrees"]
        }
        Agent::Codex => &[
            "denies commands and patches without the lock, in versions with PreToolUse",
            "tells nobody that a session ends: the lock ends with the process, or when it is idle",
            "runs hooks only once they were reviewed there: /hooks",
        ],
        Agent::Cursor => &[
            "denies commands without the lock, and edits in versions with preToolUse",
            "shows no message but a denial",
        ],
        Agent::Gemini => &["denies writes without the lock; releases it when the session ends"],
        Agent::AgentsMd => &["denies nothing: instructions only"],
    }
}
