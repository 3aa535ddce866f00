//! What clients can read without calling a tool: `jvs://` and what is there.

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::Value;

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// Who has the locks: `jvs://locks`.
    Locks,
    /// All snapshots: `jvs://snapshots`.
    Snapshots,
    /// One snapshot: `jvs://snapshots/ID`.
    Snapshot(String),
    /// One lock: `jvs://worktrees/NAME/lock`.
    Lock(String),
    /// The snapshots of a worktree: `jvs://worktrees/NAME/history`.
    History(String),
}

const SCHEME: &str = "jvs://";
/// What all of them are written in.
pub(crate) const MIME: &str = "application/json";

impl What {
    /// What a client means by a URI; `None` if there is no such thing.
    pub(crate) fn parse(uri: &str) -> Option<What> {
        let parts: Vec<&str> = uri.strip_prefix(SCHEME)?.split('/').collect();
        let name = |name: &str| is_name(name).then(|| name.to_owned());
        match parts[..] {
            ["locks"] => Some(What::Locks),
            ["snapshots"] => Some(What::Snapshots),
            ["snapshots", id] => Some(What::Snapshot(name(id)?)),
            ["worktrees", worktree, "lock"] => Some(What::Lock(name(worktree)?)),
            ["worktrees", worktree, "history"] => Some(What::History(name(worktree)?)),
            _ => None,
        }
    }

    /// Its URI.
    pub(crate) fn uri(&self) -> String {
        match self {
            What::Locks => format!("{SCHEME}locks"),
            What::Snapshots => format!("{SCHEME}snapshots"),
            What::Snapshot(id) => format!("{SCHEME}snapshots/{id}"),
            What::Lock(worktree) => format!("{SCHEME}worktrees/{worktree}/lock"),
            What::History(worktree) => format!("{SCHEME}worktrees/{worktree}/history"),
        }
    }

    /// The command that shows it.
    pub(crate) fn words(&self) -> Vec<String> {
        let words: Vec<&str> = match self {
            What::Locks => vec!["lock", "list"],
            What::Snapshots => vec!["history", "--all"],
            What::Snapshot(id) => vec!["show", "--", id],
            What::Lock(_) => vec!["lock", "status"],
            What::History(_) => vec!["history"],
        };
        let worktree = match self {
            What::Lock(worktree) | What::History(worktree) => Some(worktree),
            _ => None,
        };
        let worktree = worktree.map(|name| format!("--worktree={name}"));
        words.into_iter().map(str::to_owned).chain(worktree).collect()
    }

    fn shown(&self) -> Resource {
        let (name, about) = match self {
            What::Locks => ("locks".to_owned(), "Who has the lock of each worktree"),
            What::Snapshots => ("snapshots".to_owned(), "All snapshots of the repository"),
            What::Snapshot(id) => (format!("snapshot {id}"), "One snapshot, and what it changed"),
            What::Lock(worktree) => {
                (format!("lock of {worktree}"), "Who has the lock, until when, and who waits")
            }
            What::History(worktree) => {
                (format!("history of {worktree}"), "Its snapshots, from its head back")
            }
        };
        Resource::new(self.uri(), name).with_description(about).with_mime_type(MIME)
    }
}

/// Names of worktrees, snapshots and tags as they may be in a URI: none begins like an option.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}

/// What there is to read, by what `jvs worktree list` answered.
pub(crate) fn list(worktrees: &Value) -> Vec<Resource> {
    let names = worktrees["worktrees"].as_array().into_iter().flatten();
    let names = names.filter_map(|worktree| worktree["name"].as_str()).map(str::to_owned);
    let each = names.flat_map(|name| [What::Lock(name.clone()), What::History(name)]);
    [What::Locks, What::Snapshots].into_iter().chain(each).map(|what| what.shown()).collect()
}

/// What can be read by name.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    [
        ("worktrees/{worktree}/lock", "lock", "Who has the lock of a worktree"),
        ("worktrees/{worktree}/history", "history", "The snapshots of a worktree"),
        ("snapshots/{snapshot}", "snapshot", "One snapshot, and what it changed"),
    ]
    .into_iter()
    .map(|(path, name, about)| {
        ResourceTemplate::new(format!("{SCHEME}{path}"), name)
            .with_description(about)
            .with_mime_type(MIME)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_uri_is_one_thing_and_nothing_else_is() {
        for (uri, words) in [
            ("jvs://locks", "lock list"),
            ("jvs://snapshots", "history --all"),
            ("jvs://snapshots/17-ab", "show -- 17-ab"),
            ("jvs://worktrees/main/lock", "lock status --worktree=main"),
            ("jvs://worktrees/main/history", "history --worktree=main"),
        ] {
            let what = What::parse(uri).expect(uri);
            assert_eq!((what.uri().as_str(), what.words().join(" ").as_str()), (uri, words));
        }
        for uri in [
            "jvs://",
            "jvs://lock",
            "jvs://locks/",
            "jvs://snapshots/",
            "jvs://snapshots/--help",
            "jvs://worktrees/a%2fb/lock",
            "jvs://worktrees//lock",
            "file:///etc/passwd",
        ] {
            assert_eq!(What::parse(uri), None, "{uri}");
        }
    }

    #[test]
    fn each_worktree_has_a_lock_and_a_history() {
        let listed = list(&json!({ "worktrees": [{ "name": "main" }] }));
        let uris: Vec<_> = listed.iter().map(|resource| resource.uri.as_str()).collect();
        let of_main = ["jvs://worktrees/main/lock", "jvs://worktrees/main/history"];
        assert_eq!(uris, [["jvs://locks", "jvs://snapshots"], of_main].concat());
        assert!(uris.iter().all(|uri| What::parse(uri).is_some()));
    }
}
