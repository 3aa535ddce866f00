//! Whether a repository that was found, and not named, may be used. Anybody can put a
//! control directory where everybody can write, above what others work in: its policy and
//! its locks would then be theirs. `--repo`, and a list of the user's own, insist.

use std::path::{Path, PathBuf};

use jvs_repo::code::{Code, Coded};
use jvs_repo::discover::Located;
use jvs_repo::next::Next;
use rustix::process::geteuid;
use toml_edit::{Document, Item};

use crate::context::Env;
use crate::fail::Failure;
use crate::render::shown;

const OTHERS_WRITE: u32 = 0o002;
const ROOT: u32 = 0;
/// Largest list that is read.
const SIZE_MAX: u64 = 64 * 1024;

/// Refuses a repository of neither this user nor root in a place where others may write.
pub(crate) fn check(located: &Located, env: Env<'_>) -> Result<(), Failure> {
    let me = geteuid().as_raw();
    let owner = located.control_dir.owner;
    if owner == me || owner == ROOT {
        return Ok(());
    }
    let Ok(place) = rustix::fs::stat(&located.reach) else { return Ok(()) };
    if place.st_mode & OTHERS_WRITE == 0 || is_listed(&located.root, env) {
        return Ok(());
    }
    Err(NotTrusted { root: located.root.clone(), owner, me }.into())
}

/// Is the repository in the user's own list: `safe.repository` in
/// `$XDG_CONFIG_HOME/jvs/config.toml`, else in `~/.config/jvs/config.toml`?
fn is_listed(root: &Path, env: Env<'_>) -> bool {
    own_configuration(env).is_some_and(|text| lists(&text, root))
}

/// Does the user's own list name that repository? A list that cannot be read names none.
pub(crate) fn lists(text: &str, root: &Path) -> bool {
    let Ok(document) = Document::parse(text) else { return false };
    let listed = document.get("safe").and_then(|safe| safe.get("repository"));
    let listed = listed.and_then(Item::as_array).into_iter().flatten();
    listed.filter_map(|path| path.as_str()).any(|path| path == "*" || Path::new(path) == root)
}

/// The user's own configuration, if there is one that nobody else wrote.
pub(crate) fn own_configuration(env: Env<'_>) -> Option<String> {
    list_file(env).and_then(|path| read_mine(&path))
}

fn list_file(env: Env<'_>) -> Option<PathBuf> {
    let config = env.path("XDG_CONFIG_HOME").or_else(|| Some(env.path("HOME")?.join(".config")));
    Some(config?.join("jvs/config.toml"))
}

/// A file that nobody else wrote. It may be a symlink: many keep such files elsewhere.
#[expect(clippy::disallowed_methods, reason = "the user's own file, in no repository")]
fn read_mine(path: &Path) -> Option<String> {
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;
    let file = std::fs::File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.uid() != geteuid().as_raw() || meta.mode() & OTHERS_WRITE != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(SIZE_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A repository that somebody else may have put where it was found.
#[derive(Debug, thiserror::Error)]
#[error(
    "the repository in {} belongs to user {owner}, you are user {me}, and anybody can put one \
     there: it is not used unless you name it",
    shown(root)
)]
struct NotTrusted {
    root: PathBuf,
    owner: u32,
    me: u32,
}

impl Coded for NotTrusted {
    fn code(&self) -> Code {
        Code::Permission
    }

    fn next(&self) -> Option<Next> {
        Some(Next::NameRepository(self.root.clone()))
    }
}
