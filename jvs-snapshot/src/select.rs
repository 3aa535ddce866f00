//! What people call a snapshot: `@` and what is before it on the line, a tag, an id, or enough
//! of an id to be the only one.

use jvs_repo::id::SnapshotId;
use jvs_repo::name::TagName;
use jvs_repo::store::Store;

use crate::catalog::Catalog;
use crate::error::SnapshotError;
use crate::lineage::{Lineage, LineageStep};
use crate::ready::Ready;
use crate::tags;

/// How many candidates of an ambiguous name are told.
const CANDIDATES_SHOWN: usize = 5;

/// The visible snapshot that `name` means, where the head is `head`.
pub fn select(
    store: &dyn Store,
    head: Option<SnapshotId>,
    name: &str,
) -> Result<Ready, SnapshotError> {
    let catalog = Catalog::new(store);
    if let Some(back) = ancestor(name) {
        return nth(catalog, head, back, name);
    }
    if let Ok(id) = name.parse::<SnapshotId>() {
        return catalog.open(id);
    }
    let not_found = || SnapshotError::NotFound { wanted: format!("snapshot or tag '{name}'") };
    if let Ok(tag) = name.parse::<TagName>()
        && let Some(tag) = tags::read(store, &tag)?
    {
        return catalog.open(tag.snapshot_id);
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Err(not_found());
    }
    let mut matching = Vec::new();
    for id in catalog.list()?.snapshots {
        let visible = || catalog.is_ready(id).map_err(SnapshotError::io("look at a snapshot"));
        if goes_by(id, name) && visible()? {
            matching.push(id);
        }
    }
    match matching.as_slice() {
        [] => Err(not_found()),
        [id] => catalog.open(*id),
        _ => {
            matching.truncate(CANDIDATES_SHOWN);
            Err(SnapshotError::Ambiguous { wanted: name.to_owned(), candidates: matching })
        }
    }
}

/// Is `name` the beginning of this id, or of its random part?
pub(crate) fn goes_by(id: SnapshotId, name: &str) -> bool {
    let whole = id.to_string();
    let random = whole.split_once('-').map_or("", |(_, random)| random);
    whole.starts_with(name) || random.starts_with(name)
}

/// How many steps back `@`, `@-`, `@--` and so on mean.
fn ancestor(name: &str) -> Option<usize> {
    let minuses = name.strip_prefix('@')?;
    minuses.bytes().all(|b| b == b'-').then_some(minuses.len())
}

fn nth(
    catalog: Catalog<'_>,
    head: Option<SnapshotId>,
    back: usize,
    name: &str,
) -> Result<Ready, SnapshotError> {
    let missing = || match back {
        0 => SnapshotError::NoneYet,
        _ => SnapshotError::NotFound { wanted: format!("such ancestor: {name}") },
    };
    let mut lineage = Lineage::line(catalog, head)?;
    for _ in 0..back {
        lineage.next().ok_or_else(missing)??;
    }
    match lineage.next().ok_or_else(missing)?? {
        LineageStep::Ready(ready) => Ok(*ready),
        LineageStep::Collected(id) => Err(SnapshotError::Collected { id }),
    }
}
