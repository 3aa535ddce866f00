//! What is meant by the words of `jvs restore`: a snapshot and paths in it, or paths alone,
//! which are those of the head.

use std::path::{Path, PathBuf};

use jvs_repo::code::Code;
use jvs_repo::layout;
use jvs_snapshot::trees::{Spot, Spots as _};
use jvs_snapshot::{Ready, SnapshotError};

use super::UserPlace;
use crate::args::RestoreArgs;
use crate::command::snapshots::{find, near_ids, near_tags};
use crate::context::{Context, Here};
use crate::fail::{Failure, WrongUsage};
use crate::hint::{OwnNext, foreign};

/// Which snapshot, and what of it: all if there are no paths.
pub(super) struct Meant {
    pub(super) source: Ready,
    pub(super) paths: Vec<PathBuf>,
}

/// What the first word is, where nothing else says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstWord {
    Snapshot,
    Path,
    /// Nobody can say: it is refused, for one would be replaced and the other not.
    Either,
    Neither,
}

impl FirstWord {
    fn of(word: &Path, is_snapshot: bool, is_path: bool) -> Self {
        match (is_snapshot, is_path) {
            (true, false) => FirstWord::Snapshot,
            (false, true) => FirstWord::Path,
            (false, false) => FirstWord::Neither,
            // The head and those before it are always meant by that.
            (true, true) if word.to_str().is_some_and(is_ancestor) => FirstWord::Snapshot,
            (true, true) => FirstWord::Either,
        }
    }
}

fn is_ancestor(word: &str) -> bool {
    word.strip_prefix('@').is_some_and(|rest| rest.bytes().all(|byte| byte == b'-'))
}

impl Meant {
    pub(super) fn by(
        context: &Context<'_>,
        here: &Here,
        args: &RestoreArgs,
    ) -> Result<Self, Failure> {
        let RestoreArgs { words, only, .. } = args;
        // These options are about a snapshot, and it comes first.
        if args.in_place || args.into.is_some() {
            let mut all = words.iter().chain(only);
            let first = all.next().map(PathBuf::as_path).unwrap_or(Path::new(""));
            let source = find(context, here, &first.to_string_lossy())?;
            return Ok(Meant { source, paths: all.cloned().collect() });
        }
        let Some((first, rest)) = words.split_first() else {
            return Self::of_head(context, here, only.clone());
        };
        let others: Vec<PathBuf> = rest.iter().chain(only).cloned().collect();
        // What is before `--` and no path.
        if rest.is_empty() && !only.is_empty() {
            return Ok(Meant {
                source: find(context, here, &first.to_string_lossy())?,
                paths: others,
            });
        }
        let found = match first.to_str() {
            Some(name) => match find(context, here, name) {
                Err(error) if error.code() != Code::NotFound => return Err(error),
                found => Some(found),
            },
            None => None,
        };
        let root = here.repo.payload(&here.worktree)?;
        let place = UserPlace::find(context, &root)?;
        let is_snapshot = match &found {
            Some(Ok(source)) => !is_letters_of_an_id(first, source),
            _ => false,
        };
        let is_path = found.is_none() || is_there(context, here, &place, first)?;
        match (FirstWord::of(first, is_snapshot, is_path), found) {
            (FirstWord::Snapshot, Some(Ok(source))) => Ok(Meant { source, paths: others }),
            (FirstWord::Path, _) => {
                Self::of_head(context, here, words.iter().chain(only).cloned().collect())
            }
            (FirstWord::Neither, Some(Ok(source))) => {
                let word = first.display();
                let message = format!("there is no file '{word}', and it is too short for an id");
                Err(WrongUsage::new(message, OwnNext::RestoreNew(source.id())).into())
            }
            (FirstWord::Neither, Some(Err(error))) => {
                Err(neither(context, here, &place, first, error))
            }
            (..) => {
                let word = first.display().to_string();
                let message = format!("'{word}' is a snapshot, and a file as well");
                Err(WrongUsage::new(message, OwnNext::FileOrSnapshot(word)).into())
            }
        }
    }

    fn of_head(context: &Context<'_>, here: &Here, paths: Vec<PathBuf>) -> Result<Self, Failure> {
        Ok(Meant { source: find(context, here, "@")?, paths })
    }
}

/// Is it so little of the snapshot's id that it is likelier a file's name, mistyped? A tag is
/// meant by however few letters.
fn is_letters_of_an_id(word: &Path, source: &Ready) -> bool {
    const FEW: usize = 4;
    let (id, word) = (source.id().to_string(), word.to_string_lossy());
    let random = id.split_once('-').map_or("", |(_, random)| random);
    word.len() < FEW && (id.starts_with(&*word) || random.starts_with(&*word))
}

/// Is it in the worktree, or was it in its head?
fn is_there(
    context: &Context<'_>,
    here: &Here,
    place: &UserPlace,
    word: &Path,
) -> Result<bool, Failure> {
    let path = match place.inside(word) {
        Ok(path) => path,
        Err(outside) if outside.is_all => {
            let message = "that is the whole worktree";
            return Err(WrongUsage::new(message, OwnNext::RestoreInPlace).into());
        }
        // Told as what it is, unless it can only be a name.
        Err(outside) if word.components().count() > 1 => return Err(outside.into()),
        Err(_) => return Ok(false),
    };
    let store = here.repo.store();
    let is_in = |tree| store.look(Spot { tree: &tree, path: &path }).is_ok();
    if is_in(layout::payload(&here.worktree)) {
        return Ok(true);
    }
    // Without a head nothing was in it.
    let head = find(context, here, "@").ok();
    Ok(head.is_some_and(|head| is_in(layout::snapshot_payload(&head.dir()))))
}

fn neither(
    context: &Context<'_>,
    here: &Here,
    place: &UserPlace,
    word: &Path,
    error: Failure,
) -> Failure {
    let name = word.display().to_string();
    if foreign::generations(&name).is_some() || is_ancestor(&name) {
        return error;
    }
    let store = here.repo.store();
    let mut near = near_tags(store, &name);
    near.extend(near_ids(store, &name));
    if let (Ok(head), Ok(path)) = (find(context, here, "@"), place.inside(word)) {
        near.extend(place.near(store, &head, &[word.to_owned()], &path.to_string()));
    }
    let wanted = format!("snapshot, tag or file '{name}'");
    Failure::from(SnapshotError::NotFound { wanted }).suggesting(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_a_snapshot_and_a_file_is_neither_by_guess() {
        for (word, is_snapshot, is_path, meant) in [
            ("v1", true, false, FirstWord::Snapshot),
            ("a", false, true, FirstWord::Path),
            ("v1", true, true, FirstWord::Either),
            ("@", true, true, FirstWord::Snapshot),
            ("@--", true, true, FirstWord::Snapshot),
            ("@x", true, true, FirstWord::Either),
            ("v2", false, false, FirstWord::Neither),
        ] {
            assert_eq!(FirstWord::of(Path::new(word), is_snapshot, is_path), meant, "{word}");
        }
    }
}
