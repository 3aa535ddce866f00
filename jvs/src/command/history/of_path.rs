//! `jvs history PATH`: the snapshots in which a path differs from the one before. Read from
//! manifests alone, two imprints in memory at a time.

use std::path::Path;

use jvs_snapshot::imprint::{Change, Imprint};
use jvs_snapshot::line;
use jvs_snapshot::lineage::{Lineage, LineageStep};
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::progress::Progress as _;
use jvs_snapshot::{Catalog, Descriptor, Ready, SnapshotError};

use super::super::audit::story::ago;
use super::super::restore::UserPlace;
use super::super::snapshots::{head, size};
use super::Annotations;
use crate::answer::shown_path;
use crate::answer::snapshot::{ChangedIn, PathHistory, Snapshot};
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::{Done, table};

/// A snapshot in which the path changed, and what it has there then.
struct Found {
    descriptor: Descriptor,
    change: Change,
    bytes: Option<u64>,
}

pub(super) fn run(
    context: &Context<'_>,
    here: &Here,
    path: &Path,
    limit: usize,
    wanted: &dyn Fn(&Descriptor) -> bool,
    mut told: Annotations,
) -> Result<Done, Failure> {
    let path = UserPlace::find(context, &here.repo.payload(&here.worktree)?)?.inside(path)?;
    let head = line::end(Catalog::new(here.repo.store()), head(context, here)?)?;
    told.heads.extend(head.map(|head| (head, vec!["head".to_owned()])));
    let mut found = Vec::new();
    let ever = each(context, here, &path, &mut |one| {
        if found.len() < limit && wanted(&one.descriptor) {
            found.push(one);
        }
        found.len() < limit
    })?;
    if !ever {
        let wanted = format!("'{path}' in any snapshot of {}", here.worktree);
        return Err(SnapshotError::NotFound { wanted }.into());
    }
    let now = context.clock().now().wall;
    let rows = found.iter().map(|Found { descriptor, change, bytes }| {
        [
            told.shorts.of(descriptor.snapshot_id),
            ago(descriptor.created_at, now),
            change.as_str().to_owned(),
            bytes.map_or("-".to_owned(), size),
            told.remark(descriptor),
        ]
    });
    let rows: Vec<[String; 5]> = rows.collect();
    let text = match rows.is_empty() {
        true => "No snapshot in which it changed has such a note\n".to_owned(),
        false => table(context.paint(), ["SNAPSHOT", "TIME", "CHANGE", "SIZE", "NOTE"], &rows),
    };
    let snapshots = found.iter().map(|Found { descriptor, change, bytes }| ChangedIn {
        snapshot: Snapshot::of(descriptor, &told.tags.of(descriptor.snapshot_id), true),
        change: *change,
        bytes_there: *bytes,
    });
    let snapshots = snapshots.collect();
    let (path, path_bytes) = shown_path(&path.to_string());
    let answer = PathHistory { worktree: here.worktree.clone(), snapshots, path, path_bytes };
    Ok(Done::new(&answer).with_text(text).paged())
}

/// Tells `tell` of each snapshot in which the path changed, newest first, until it says that
/// it has enough. Was the path seen in any of those that were read?
fn each(
    context: &Context<'_>,
    here: &Here,
    path: &TreePath,
    tell: &mut dyn FnMut(Found) -> bool,
) -> Result<bool, Failure> {
    let store = here.repo.store();
    let bar = Bar::counting(context, "reading", "snapshot");
    // The newer of two neighbours, until the older one is known.
    let mut newer: Option<(Ready, Option<Imprint>)> = None;
    let mut ever = false;
    for step in Lineage::line(Catalog::new(store), head(context, here)?)? {
        let LineageStep::Ready(ready) = step? else { continue };
        let imprint = match &newer {
            Some((newer, imprint)) if has_the_same_tree(newer, &ready) => imprint.clone(),
            _ => Imprint::of(store, &ready, path)?,
        };
        bar.advance(1, 0);
        ever |= imprint.is_some();
        if let Some((newer, at)) = &newer
            && let Some(one) = change(newer, imprint.as_ref(), at.as_ref())
            && !tell(one)
        {
            return Ok(true);
        }
        newer = Some((*ready, imprint));
    }
    if let Some(one) = newer.and_then(|(first, at)| change(&first, None, at.as_ref())) {
        tell(one);
    }
    Ok(ever)
}

/// Equal trees have equal hashes, and no file of them has to be looked for.
fn has_the_same_tree(one: &Ready, other: &Ready) -> bool {
    let (one, other) = (&one.descriptor().content, &other.descriptor().content);
    one.payload_root_hash == other.payload_root_hash && one.id_map == other.id_map
}

fn change(ready: &Ready, before: Option<&Imprint>, at: Option<&Imprint>) -> Option<Found> {
    let change = Change::between(before, at)?;
    let bytes = at.map(|imprint| imprint.bytes);
    Some(Found { descriptor: ready.descriptor().clone(), change, bytes })
}
