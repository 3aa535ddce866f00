//! Whether a repository that was found, and not named, may be used. Anybody can put a
//! control directory where everybody can write, above what others work in: its policy and
//! its locks would then be theirs. `--repo`, and a list of the user's own, insist.

use std::path::{Path, PathBuf};

use jvs_repo::code::{Code, Coded};
use jvs_repo::discover::Located;
use jvs_repo::next::Next;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use toml_edit::Document;

use crate::context::Env;
use crate::fail::Failure;
use crate::render::shown;

/// The place is open to everybody.
const EVERYBODY_WRITES: u32 = 0o002;
/// Somebody else may write, if only a group.
const OTHERS_WRITE: u32 = 0o022;
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
    if place.st_mode & EVERYBODY_WRITES == 0 {
        return Ok(());
    }
    let list = list_file(env);
    let unread = match list.as_deref().map_or(Ok(None), read_mine) {
        Ok(Some(text)) => match listed(&text) {
            Some(listed) if listed.names(&located.root) => return Ok(()),
            Some(_) => None,
            None => Some("it does not have a list of paths in quotes under safe.repository"),
        },
        Ok(None) => None,
        Err(why) => Some(why),
    };
    let unread = list.zip(unread).map(|(list, why)| (shown(&list).to_string(), why));
    Err(NotTrusted { root: located.root.clone(), owner, me, unread }.into())
}

/// The user's own list: `safe.repository` in `$XDG_CONFIG_HOME/jvs/config.toml`, else in
/// `~/.config/jvs/config.toml`.
pub(crate) struct Listed(Vec<String>);

impl Listed {
    pub(crate) fn names(&self, root: &Path) -> bool {
        self.0.iter().any(|path| path == "*" || Path::new(path) == root)
    }
}

/// What the text lists; `None` if it is no TOML, or what it has there is no list of text.
pub(crate) fn listed(text: &str) -> Option<Listed> {
    let document = Document::parse(text).ok()?;
    let Some(listed) = document.get("safe").and_then(|safe| safe.get("repository")) else {
        return Some(Listed(Vec::new()));
    };
    let paths = listed.as_array()?.iter().map(|path| path.as_str().map(str::to_owned));
    paths.collect::<Option<Vec<String>>>().map(Listed)
}

/// The same for somebody who has to know why there is none: where it is, and what is wrong
/// with it.
pub(crate) fn read_own_configuration(env: Env<'_>) -> Result<Option<String>, String> {
    let Some(path) = list_file(env) else { return Ok(None) };
    read_mine(&path).map_err(|why| format!("{} is not believed: {why}", shown(&path)))
}

/// The user's own configuration, if there is one that nobody else wrote.
pub(crate) fn own_configuration(env: Env<'_>) -> Option<String> {
    list_file(env).and_then(|path| read_mine(&path).ok().flatten())
}

fn list_file(env: Env<'_>) -> Option<PathBuf> {
    let config = env.path("XDG_CONFIG_HOME").or_else(|| Some(env.path("HOME")?.join(".config")));
    Some(config?.join("jvs/config.toml"))
}

/// A file that nobody else wrote, or nothing if there is none. It may be a symlink: many
/// keep such files elsewhere. A FIFO that somebody put there must not hang us, which is why
/// it is opened without waiting.
fn read_mine(path: &Path) -> Result<Option<String>, &'static str> {
    use std::io::Read as _;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(_) => return Err("it cannot be opened"),
    };
    let stat = rustix::fs::fstat(&file).map_err(|_| "it cannot be read")?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err("it is not a regular file");
    }
    if stat.st_uid != geteuid().as_raw() {
        return Err("it belongs to another user");
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err("others may write it: chmod go-w");
    }
    let mut text = String::new();
    let read = std::fs::File::from(file).take(SIZE_MAX).read_to_string(&mut text);
    read.map_err(|_| "it is not text")?;
    Ok(Some(text))
}

/// A repository that somebody else may have put where it was found.
#[derive(Debug, thiserror::Error)]
#[error(
    "the repository in {} belongs to user {owner}, you are user {me}, and anybody can put one \
     there: it is not used unless you name it{}",
    shown(root),
    in_vain(unread.as_ref())
)]
struct NotTrusted {
    root: PathBuf,
    owner: u32,
    me: u32,
    /// The user's own list, if it is there and says nothing, and why.
    unread: Option<(String, &'static str)>,
}

fn in_vain(unread: Option<&(String, &'static str)>) -> String {
    unread.map(|(list, why)| format!(" ({list} says nothing: {why})")).unwrap_or_default()
}

impl Coded for NotTrusted {
    fn code(&self) -> Code {
        Code::Permission
    }

    fn next(&self) -> Option<Next> {
        Some(Next::NameRepository(self.root.clone()))
    }
}
