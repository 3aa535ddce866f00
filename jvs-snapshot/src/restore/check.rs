//! A copy beside the manifest of the snapshot that it was made from: before
//! anybody sees it.

use jvs_repo::layout;
use jvs_repo::proc;
use jvs_repo::store::{RepoPath, Store};

use crate::chosen::ChosenPaths;
use crate::compare::{self, Aspect, Difference};
use crate::error::SnapshotError;
use crate::manifest::{ManifestError, ManifestReader};
use crate::ready::Ready;
use crate::stored::{StoredReader, not_believed, proven_manifest};

/// Is the copy in `dir` what `source` says, or what is chosen of it? What was
/// lost on the way is no mismatch, unless nothing was: then it must be exact.
pub(super) fn check_copy(
    store: &dyn Store,
    source: &Ready,
    chosen: Option<&ChosenPaths>,
    dir: &RepoPath,
    exact: bool,
) -> Result<(), SnapshotError> {
    let mut first: Option<Difference> = None;
    let mut count = 0_u64;
    let (taken, here) = (&source.descriptor().content.id_map, proc::id_map());
    let each = |difference: Difference| {
        let found = compare::without_owner(difference, taken, &here);
        if let Some(difference) = found.filter(|it| exact || is_wrong(it)) {
            count += 1;
            first.get_or_insert(difference);
        }
    };
    let copy = layout::manifest(dir);
    let unreadable = |error: ManifestError| not_believed(copy.clone(), error);
    let made = StoredReader::open(store, &copy).map_err(SnapshotError::io("read the copy"))?;
    let made = ManifestReader::open(made).map_err(unreadable)?;
    let expected = proven_manifest(store, source)?;
    match chosen {
        None => compare::with_manifest(expected, made, each),
        Some(chosen) => {
            let again = proven_manifest(store, source)?;
            compare::with_chosen_manifest(expected, again, made, chosen, each)
        }
    }
    .map_err(unreadable)?;
    let Some(Difference { path, aspects, .. }) = first else { return Ok(()) };
    let aspects: Vec<&str> = aspects.iter().map(|aspect| aspect.as_str()).collect();
    let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    let problem = format!("{path} ({}){more}", aspects.join(", "));
    Err(SnapshotError::Mismatch { id: source.id(), problem })
}

/// Wrong also in a copy that could not keep everything.
fn is_wrong(difference: &Difference) -> bool {
    difference.aspects.iter().any(|aspect| match aspect {
        Aspect::Added | Aspect::Type | Aspect::Content => true,
        // Special files get lost; files do not.
        Aspect::Removed => difference.before.is_some(),
        _ => false,
    })
}
