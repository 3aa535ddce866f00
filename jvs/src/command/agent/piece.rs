//! What is installed for an agent: hooks among its settings, a file of ours, a section in a
//! file of its owner's.

use jvs_repo::json::{self, Limits};
use jvs_repo::layout;
use serde_json::Value;

use super::place::{AgentFile, AgentPlace};
use super::section::{self, Without};
use crate::args::Agent;
use crate::fail::Failure;
use crate::harness::Harness;
use crate::harness::entries::{self, WantedHooks};
use crate::harness::splice::{JsonNode, append, measure, without};

const LIMITS: Limits = Limits { size: 4 << 20, depth: 64, string: 1 << 20 };

/// One file, and what of it is ours.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) path: &'static str,
    pub(super) kind: PieceKind,
}

#[derive(Debug)]
pub(super) enum PieceKind {
    Hooks(Harness),
    /// All of it, beginning with this.
    Whole(&'static str),
    Section(&'static str),
}

/// What there is for `agent`.
pub(super) fn pieces(agent: Agent, user: bool) -> Vec<Piece> {
    const SKILL: &str = "---\nname: jvs\ndescription: Use when files of this directory are about \
                         to be changed. It is a worktree of a JVS repository, in which one session \
                         at a time may write.\n---\n\n# JVS\n\n";
    const RULE: &str = "---\ndescription: One session at a time may write here\nalwaysApply: true\n---\n\n# JVS\n\n";
    let piece = |path, kind| Piece { path, kind };
    let text = match (agent, user) {
        (Agent::Claude, _) => Some(piece(".claude/skills/jvs/SKILL.md", PieceKind::Whole(SKILL))),
        (Agent::Codex, false) => Some(piece("AGENTS.md", PieceKind::Section("codex"))),
        (Agent::Codex, true) => Some(piece(".codex/AGENTS.md", PieceKind::Section("codex"))),
        (Agent::Cursor, false) => Some(piece(".cursor/rules/jvs.mdc", PieceKind::Whole(RULE))),
        (Agent::Gemini, false) => Some(piece("GEMINI.md", PieceKind::Section("gemini"))),
        (Agent::Gemini, true) => Some(piece(".gemini/GEMINI.md", PieceKind::Section("gemini"))),
        (Agent::AgentsMd, false) => Some(piece("AGENTS.md", PieceKind::Section("agents-md"))),
        // The rules of a user are no file there, and no program reads AGENTS.md at home.
        (Agent::Cursor | Agent::AgentsMd, true) => None,
    };
    let hooks = agent.harness();
    let hooks = hooks.map(|it| piece(entries::settings(it), PieceKind::Hooks(it)));
    hooks.into_iter().chain(text).collect()
}

/// The same in a place: in an agent's own directory they lie directly.
pub(super) fn pieces_in(place: &AgentPlace, agent: Agent, user: bool) -> Vec<Piece> {
    let mut all = pieces(agent, user);
    for piece in all.iter_mut().filter(|_| place.moved) {
        piece.path = piece.path.split_once('/').map_or(piece.path, |(_, within)| within);
    }
    all
}

fn instructions(heading: &str) -> String {
    let text = include_str!("instructions.md").replace("CONTROL", layout::CONTROL_DIR);
    format!("{heading}{text}")
}

/// What a section says.
fn body() -> String {
    instructions("## JVS\n\n")
}

/// A file without what is ours.
pub(super) struct Stripped {
    /// `None`: it was only made for that.
    pub(super) less: Option<String>,
    /// Lines of somebody else that were among ours have stayed.
    pub(super) theirs: bool,
}

impl Piece {
    /// The file without what is ours; `None` if nothing of it is.
    pub(super) fn stripped(
        &self,
        place: &AgentPlace,
        file: &AgentFile,
    ) -> Result<Option<Stripped>, Failure> {
        let less = |less| Some(Stripped { less, theirs: false });
        match &self.kind {
            PieceKind::Whole(heading) => {
                Ok(if file.text == instructions(heading) { less(None) } else { None })
            }
            PieceKind::Section(owner) => match section::removed(&file.text, owner, &body()) {
                Without::Nothing => Ok(None),
                Without::Gone => Ok(less(None)),
                Without::Text(text) => Ok(less(Some(text))),
                Without::Theirs(text) => Ok(Some(Stripped { less: Some(text), theirs: true })),
                Without::Torn => {
                    let why = "has the beginning of a section of jvs, but not its end";
                    Err(place.unfit(self.path, why).into())
                }
            },
            PieceKind::Hooks(_) => {
                let text = self.base(place, &file.text)?;
                Ok(if text == file.text { None } else { less(Some(text)) })
            }
        }
    }

    /// What hooks are added to where `before` was there: somebody may have had some already.
    pub(super) fn base(&self, place: &AgentPlace, before: &str) -> Result<String, Failure> {
        let mut text = before.to_owned();
        if let PieceKind::Hooks(harness) = self.kind {
            self.root(place, &text)?;
            while let Some(less) = without_one(&text, harness) {
                text = less;
            }
        }
        Ok(text)
    }

    /// The file with what is ours, which is not in it yet.
    pub(super) fn added(
        &self,
        place: &AgentPlace,
        text: Option<&str>,
        wanted: &WantedHooks,
    ) -> Result<String, Failure> {
        match &self.kind {
            PieceKind::Whole(heading) => Ok(instructions(heading)),
            PieceKind::Section(owner) => Ok(section::added(text, owner, &body())),
            PieceKind::Hooks(harness) => {
                let mut text = text.unwrap_or(entries::empty_settings(*harness)).to_owned();
                if *harness == Harness::Cursor
                    && self.root(place, &text)?.member("version").is_none()
                {
                    text = append(&text, &self.root(place, &text)?, Some("version"), &1.into());
                }
                for (event, entry) in entries::entries(*harness, wanted) {
                    text = self.with_entry(place, &text, event, &entry)?;
                }
                Ok(text)
            }
        }
    }

    /// The options with which the hooks are installed.
    pub(super) fn options(&self, text: &str) -> Option<String> {
        let PieceKind::Hooks(harness) = self.kind else { return None };
        let root: Value = json::parse_within(text.as_bytes(), LIMITS).ok()?;
        let mut commands = Vec::new();
        for groups in root.get("hooks")?.as_object()?.values().filter_map(Value::as_array) {
            for group in groups {
                let hooks = group.get("hooks").and_then(Value::as_array);
                let hooks = hooks.map_or(std::slice::from_ref(group), Vec::as_slice);
                commands.extend(hooks.iter().filter_map(|hook| hook.get("command")?.as_str()));
            }
        }
        commands.into_iter().find_map(|command| entries::options_of(harness, command))
    }

    fn with_entry(
        &self,
        place: &AgentPlace,
        text: &str,
        event: &str,
        entry: &Value,
    ) -> Result<String, Failure> {
        let root = self.root(place, text)?;
        let unfit = |what: &str, should: &str| {
            Failure::from(place.unfit(self.path, format!("has {what} that is no {should}")))
        };
        let Some(hooks) = root.member("hooks") else {
            let hooks = serde_json::json!({ event: [entry] });
            return Ok(append(text, &root, Some("hooks"), &hooks));
        };
        if !hooks.is_object() {
            return Err(unfit("a member \"hooks\"", "object"));
        }
        match hooks.member(event) {
            None => Ok(append(text, hooks, Some(event), &Value::Array(vec![entry.clone()]))),
            Some(list) if list.is_array() => Ok(append(text, list, None, entry)),
            Some(_) => Err(unfit(&format!("a member \"{event}\" of \"hooks\""), "array")),
        }
    }

    fn root(&self, place: &AgentPlace, text: &str) -> Result<JsonNode, Failure> {
        let read: Result<Value, String> = json::parse_within(text.as_bytes(), LIMITS);
        if let Err(why) = read {
            return Err(place.unfit(self.path, format!("cannot be read as JSON: {why}")).into());
        }
        let root = measure(text).filter(JsonNode::is_object);
        root.ok_or_else(|| place.unfit(self.path, "is no JSON object").into())
    }
}

/// `text` without one of the hooks of `harness`, and without what only held it.
fn without_one(text: &str, harness: Harness) -> Option<String> {
    let value: Value = json::parse_within(text.as_bytes(), LIMITS).ok()?;
    let root = measure(text)?;
    let (all, hooks) = (value.get("hooks")?.as_object()?, root.member("hooks")?);
    let is_ours = |hook: &Value| {
        let command = hook.get("command").and_then(Value::as_str);
        command.is_some_and(|command| entries::options_of(harness, command).is_some())
    };
    for (event, groups) in all {
        let (list, groups) =
            (hooks.member(event)?, groups.as_array().map_or(&[][..], Vec::as_slice));
        for (at, group) in groups.iter().enumerate() {
            let inner = group.get("hooks").and_then(Value::as_array);
            let which = inner.and_then(|hooks| hooks.iter().position(is_ours));
            match (which, inner.map_or(0, Vec::len)) {
                (Some(which), 2..) => {
                    return Some(without(text, list.item(at)?.member("hooks")?, which));
                }
                (None, _) if !is_ours(group) => continue,
                _ => {}
            }
            return Some(match (groups.len(), all.len()) {
                (2.., _) => without(text, list, at),
                (_, 2..) => without(text, hooks, hooks.position(event)?),
                _ => without(text, &root, root.position("hooks")?),
            });
        }
    }
    None
}
