//! The handle: which hold of which session a caller means.
//!
//! It names the term (epoch and token) of one grant, so that it is fenced after any change
//! of holder, even if the same session has the lock again.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A hold that was granted, as its caller names it: `WORKTREE:TOKEN:EPOCH:SESSION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) worktree: String,
    token: u64,
    epoch: String,
    session: String,
}

/// Text that is not a handle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoHandle;

impl Handle {
    /// The handle of what `jvs` has just granted to `session`.
    pub(crate) fn of(data: &Value, session: &str) -> Option<Handle> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Handle {
            worktree: text(&data["worktree"])?,
            token: data["fencing_token"].as_u64()?,
            epoch: text(&data["record"]["epoch"])?,
            session: session.to_owned(),
        })
    }

    /// Was it given to that session?
    pub(crate) fn is_of(&self, session: &str) -> bool {
        self.session == session
    }

    /// The session that it was given to.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// What the command is told, so that it acts on this hold and on no other.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("JVS_WORKTREE", self.worktree.clone()),
            ("JVS_FENCING_TOKEN", self.token.to_string()),
            ("JVS_FENCING_EPOCH", self.epoch.clone()),
        ]
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Handle { worktree, token, epoch, session } = self;
        write!(f, "{worktree}:{token}:{epoch}:{session}")
    }
}

impl FromStr for Handle {
    type Err = NoHandle;

    fn from_str(text: &str) -> Result<Self, NoHandle> {
        // A session's id may have colons in it, and is last.
        let mut parts = text.splitn(4, ':');
        let mut part = || parts.next().filter(|part| !part.is_empty()).ok_or(NoHandle);
        let (worktree, token, epoch, session) = (part()?, part()?, part()?, part()?);
        let plain = |word: &str, also: &str| {
            word.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
        };
        let number: u64 = token.parse().map_err(|_| NoHandle)?;
        // A handle has one spelling.
        if number.to_string() != token || !plain(worktree, "._-") || !plain(epoch, "-") {
            return Err(NoHandle);
        }
        Ok(Handle {
            worktree: worktree.to_owned(),
            token: number,
            epoch: epoch.to_owned(),
            session: session.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_handle_names_one_term_of_one_session() {
        let data = json!({
            "worktree": "main", "fencing_token": 7, "record": { "epoch": "1-c81e" }
        });
        let handle = Handle::of(&data, "mcp:10-a").expect("a grant");
        assert_eq!(handle.to_string(), "main:7:1-c81e:mcp:10-a");
        assert_eq!(handle.to_string().parse(), Ok(handle.clone()));
        assert!(handle.is_of("mcp:10-a") && !handle.is_of("mcp:10"));
        assert_eq!(Handle::of(&json!({ "worktree": "main" }), "s"), None);
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        for text in [
            "",
            "main",
            "main:7:1-c81e",
            "main:7:1-c81e:",
            "main:-7:1-c81e:s",
            "main:07:1-c81e:s",
            "main:+7:1-c81e:s",
            "main:99999999999999999999:1-c81e:s",
            "--help:7:1/c:s",
            "a b:7:1:s",
        ] {
            assert_eq!(text.parse::<Handle>(), Err(NoHandle), "{text}");
        }
    }
}
