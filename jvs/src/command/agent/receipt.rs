//! What was there before something was installed, kept beside it: so that it can be put
//! back byte for byte.

use jvs_repo::id::hex;
use jvs_repo::json::{self, Limits};
use serde_json::{Value, json};

use super::place::AgentPlace;
use crate::args::Agent;
use crate::context::Context;
use crate::fail::Failure;

/// Its name, below a worktree or the home directory.
const PATH: &str = ".jvs-agent.json";
const VERSION: u64 = 1;
const LIMITS: Limits = Limits { size: 16 << 20, depth: 8, string: 4 << 20 };

/// Only for those who may read all that is copied into it.
const MODE: u32 = 0o600;

/// All that was installed there.
pub(super) struct Receipts {
    all: Value,
}

/// What is kept of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptFile {
    pub(super) path: String,
    /// As it was; `None` if there was none.
    pub(super) before: Option<String>,
    /// A digest of what it was then made.
    pub(super) after: String,
}

/// A digest of a text.
pub(super) fn digest(text: &str) -> String {
    hex(&blake3::derive_key("jvs agent file v1", text.as_bytes())[..16])
}

impl Receipts {
    pub(super) fn read(place: &AgentPlace) -> Result<Self, Failure> {
        let Some(file) = place.read(PATH)? else {
            return Ok(Receipts { all: json!({ "version": VERSION, "installed": {} }) });
        };
        let all: Value = json::parse_within(file.text.as_bytes(), LIMITS)
            .map_err(|why| place.unfit(PATH, format!("cannot be read as JSON: {why}")))?;
        let known = all["version"] == VERSION && all["installed"].is_object();
        match known {
            true => Ok(Receipts { all }),
            false => Err(place.unfit(PATH, "was not written by this version of jvs").into()),
        }
    }

    /// What is kept of the files of `agent`.
    pub(super) fn of(&self, agent: Agent) -> Vec<KeptFile> {
        let files = self.all["installed"][agent.as_str()]["files"].as_array();
        let kept = |file: &Value| {
            Some(KeptFile {
                path: file["path"].as_str()?.to_owned(),
                before: file["before"].as_str().map(str::to_owned),
                after: file["after"].as_str()?.to_owned(),
            })
        };
        files.into_iter().flatten().filter_map(kept).collect()
    }

    /// The directories that were made for them, the innermost first.
    pub(super) fn dirs(&self, agent: Agent) -> Vec<String> {
        let dirs = self.all["installed"][agent.as_str()]["dirs"].as_array();
        let dirs = dirs.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let mut dirs: Vec<String> = dirs.collect();
        dirs.sort_by_key(|dir| std::cmp::Reverse(dir.len()));
        dirs
    }

    pub(super) fn put(&mut self, agent: Agent, kept: &[KeptFile], dirs: &[String]) {
        let files = kept.iter().map(|KeptFile { path, before, after }| {
            json!({ "path": path, "before": before, "after": after })
        });
        self.all["installed"][agent.as_str()] =
            json!({ "files": files.collect::<Vec<_>>(), "dirs": dirs });
    }

    pub(super) fn remove(&mut self, agent: Agent) {
        if let Some(installed) = self.all["installed"].as_object_mut() {
            installed.shift_remove(agent.as_str());
        }
    }

    /// Writes it, or removes it with the last that is in it.
    pub(super) fn write(&self, context: &Context<'_>, place: &AgentPlace) -> Result<(), Failure> {
        if self.all["installed"].as_object().is_none_or(serde_json::Map::is_empty) {
            return place.remove(PATH);
        }
        let text = format!("{:#}\n", self.all);
        place.write(context, PATH, &text, MODE).map(drop)
    }
}
