//! Where the holder is to be found, as the record has it.

use serde::{Deserialize, Serialize};

use super::bounded;

/// What a session is known by, in words that people know. For display alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// It was given a name.
    Named,
    /// The agent or CI system that it runs under calls it so.
    Agent,
    /// A terminal.
    Terminal,
}

/// Where a session is to be found, in words that people know. For display alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// What its id is made of; `None` if nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<Sort>,
    /// Its terminal, such as `pts/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// The agent or CI system that it runs under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where it keeps its secret: the same id elsewhere is another holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_dir: Option<String>,
}

impl Place {
    /// Does it tell anything?
    pub fn is_unknown(&self) -> bool {
        *self == Place::default()
    }

    /// What is known now, and what was known `before` of what is not: a keeper has no
    /// terminal of its own. Cut so that a record with it always fits.
    pub fn as_recorded(&self, before: &Place) -> Self {
        let cut = |now: &Option<String>, before: &Option<String>, max| {
            now.as_ref().or(before.as_ref()).map(|text| plain(text, max))
        };
        Place {
            sort: self.sort.or(before.sort),
            terminal: cut(&self.terminal, &before.terminal, 32),
            agent: cut(&self.agent, &before.agent, 32),
            private_dir: cut(&self.private_dir, &before.private_dir, 192),
        }
    }
}

/// `text` without characters that JSON would have to spell out, at most `max` bytes.
fn plain(text: &str, max: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    bounded(&clean, max)
}
