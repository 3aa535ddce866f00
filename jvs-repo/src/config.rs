//! The repository's policy: what each value means, its default, how it is read
//! from `config.toml` and how one key is changed.
//!
//! Strict: a key that is misspelt, a value that is out of range, two values
//! that contradict each other are errors that name the line. A policy that was
//! silently ignored is worse than none.

mod admins;
pub(crate) mod document;
mod edit;
mod error;
mod key;
mod lock_policy;
mod reclaim;
mod retention;
mod snapshot;
mod ttl;

use std::io;

pub use admins::Admins;
pub use edit::set;
pub use error::ConfigError;
pub use key::{Allowed, KEYS, Key, Value};
pub use lock_policy::LockPolicy;
pub use reclaim::ReclaimRules;
pub use retention::{RequiredTags, Retention};
pub use snapshot::{Consistency, Engine, IgnorePatterns, SnapshotPolicy};
pub use ttl::TtlTable;

use crate::entropy::Entropy;
use crate::id::OpNonce;
use crate::layout;
use crate::sharing::Sharing;
use crate::store::Store;

/// Largest configuration file that is read.
const SIZE_MAX: usize = 64 * 1024;

/// What a new repository's file says. Comments only, so that a repository
/// follows the defaults until somebody decides otherwise, and so that no
/// parser is needed to read it.
pub const INITIAL: &str = "\
# Policy of this repository. Every key has a default: `jvs config list` shows
# them all, `jvs config set KEY VALUE` changes one and keeps your comments.
";

/// Everything that a repository can decide for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Leases and clocks.
    pub lock: LockPolicy,
    /// How long a lock is kept or lasts by default.
    pub ttl: TtlTable,
    /// Who may take over a live lock.
    pub reclaim: ReclaimRules,
    /// How snapshots are captured.
    pub snapshot: SnapshotPolicy,
    /// What garbage collection keeps.
    pub retention: Retention,
    /// Who may work in it.
    pub repo: RepoPolicy,
}

/// What holds for the repository as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepoPolicy {
    /// With whom it is shared.
    pub shared: Sharing,
}

impl Default for RepoPolicy {
    fn default() -> Self {
        RepoPolicy { shared: Sharing::Umask }
    }
}

impl Config {
    /// What a new repository's file says that is shared with others.
    pub fn initial(shared: Sharing) -> String {
        match shared {
            Sharing::Umask => INITIAL.to_owned(),
            shared => format!("{INITIAL}\n[repo]\nshared = \"{shared}\"\n"),
        }
    }

    /// Reads and checks the text of a configuration file.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        // Most repositories never change a key, and every lock command comes
        // by here.
        // A lone carriage return or another control character is no part of a comment.
        let plain = |c: char| !c.is_control() || c == '\t';
        let says_nothing = |line: &str| {
            let blank = line.chars().all(|c| c == ' ' || c == '\t');
            (blank || line.starts_with('#')) && line.chars().all(plain)
        };
        if text.lines().all(says_nothing) {
            return Ok(Config::default());
        }
        document::parse(text)
    }

    /// The configuration of the repository in `store`; no file is all defaults.
    pub fn read(store: &dyn Store) -> Result<Config, ConfigError> {
        Config::parse(&read_text(store)?)
    }
}

/// The file's text; empty if there is none.
pub fn read_text(store: &dyn Store) -> Result<String, ConfigError> {
    match store.read(&layout::config(), SIZE_MAX) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            ConfigError::Syntax { line, problem: "it is not UTF-8".to_owned() }
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(ConfigError::Syntax { line: 1, problem: error.to_string() })
        }
        Err(error) => Err(ConfigError::Io(error)),
    }
}

/// Sets one key in the file and returns what is then in force. Comments and all other keys
/// stay; nothing is written unless the whole result is valid.
pub fn change(
    store: &dyn Store,
    key: &str,
    value: &str,
    entropy: &dyn Entropy,
) -> Result<Config, ConfigError> {
    let text = set(&read_text(store)?, key, value)?;
    let parsed = Config::parse(&text)?;
    let tmp = layout::config_tmp(OpNonce::random(entropy));
    store.write_over(&tmp, &layout::config(), text.as_bytes()).map_err(ConfigError::Io)?;
    Ok(parsed)
}

/// The value of a key as text.
pub fn get(config: &Config, key: &str) -> Result<String, ConfigError> {
    key::find(key).map(|key| key.value(config).to_string())
}

/// All keys with their values, in the order of [`KEYS`].
pub fn list(config: &Config) -> impl Iterator<Item = (&'static Key, String)> + '_ {
    KEYS.iter().map(|key| (key, key.value(config).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Code, Coded};
    use crate::next::Next;
    use crate::store::{PosixStore, RepoPath};

    #[test]
    fn a_new_repository_follows_the_defaults() {
        assert_eq!(Config::parse(INITIAL).expect("valid"), Config::default());
        assert_eq!(document::parse(INITIAL).expect("valid TOML"), Config::default());
        assert_eq!(Config::parse("").expect("valid"), Config::default());
        for shared in Sharing::ALL.iter().copied() {
            let config = Config::parse(&Config::initial(shared)).expect("valid");
            assert_eq!(config.repo.shared, shared);
        }
    }

    #[test]
    fn comments_are_read_as_strictly_as_everything_else() {
        for text in ["# a\u{1}b\n", "# a\rb\n", "#\u{7f}\n", "\u{b}\n", "\u{a0}", " \u{3000}\n"] {
            assert!(document::parse(text).is_err(), "{text:?}");
            assert!(Config::parse(text).is_err(), "{text:?}");
        }
        for text in ["# a\tb\r\n\r\n", "  # é\n", "\n"] {
            assert!(document::parse(text).is_ok(), "{text:?}");
            assert!(Config::parse(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn keys_are_listed_and_got_by_name() {
        let config = Config::default();
        assert_eq!(get(&config, "lock.lease_duration_ms").expect("known"), "30000");
        assert_eq!(get(&config, "ttl.ci.automated").expect("known"), "1d");
        assert_eq!(list(&config).count(), KEYS.len());
        let error = get(&config, "lock.lease_duration").expect_err("unknown");
        assert_eq!(error.code(), Code::NotFound);
        assert_eq!(error.next(), Some(Next::ListKeys(Some("lock.lease_duration_ms"))));
        let error = get(&config, "nothing.like.it").expect_err("unknown");
        assert_eq!(error.next(), Some(Next::ListKeys(None)));
    }

    #[test]
    fn files_that_cannot_be_text_are_refused_with_their_line() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        assert_eq!(Config::read(&store).expect("absent"), Config::default());
        store.make_dir(&layout::control_dir()).expect("mkdir");
        let tmp = RepoPath::root().child("tmp").expect("plain");
        for (content, line) in
            [(b"# a\n[lock]\n# \xff\n".to_vec(), ":3:"), (vec![b'#'; SIZE_MAX + 1], ":1:")]
        {
            store.write_over(&tmp, &layout::config(), &content).expect("written");
            let error = Config::read(&store).expect_err("refused");
            assert_eq!(error.code(), Code::ConfigInvalid);
            assert!(error.to_string().contains(line), "{error}");
        }
        store.unlink(&layout::config()).expect("unlink");
        std::os::unix::fs::symlink("x", dir.path().join(layout::config().as_str()))
            .expect("symlink");
        assert_eq!(Config::read(&store).expect_err("symlink").code(), Code::PathEscape);
    }
}
