//! Tags: readable, and standing for something.

use std::collections::BTreeSet;

use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::tags;

use crate::finding::{Check, Report};
use crate::remedy::Remedy;
use crate::survey::{Survey, is_symlink};

pub(super) fn run(survey: &Survey<'_, '_>, report: &mut Report) {
    let Ok(all) = tags::list(survey.store()) else { return };
    // Set aside by a collection that did not decide yet: the tag brings it back.
    let condemned: BTreeSet<SnapshotId> = survey
        .staging
        .iter()
        .filter_map(|name| match name.to_str()?.parse() {
            Ok(StagingName::Condemned { id, .. }) => Some(id),
            _ => None,
        })
        .collect();
    for (name, tag) in all.tags {
        let path = layout::tag(&name);
        match tag {
            Err(error) => {
                let link = matches!(&error.reason, jvs_repo::json::Reason::Io(e) if is_symlink(e));
                if !link {
                    // It protects whatever it stood for: a person must say what.
                    report.add(Check::TagInvalid, &path, error.to_string()).advice(format!(
                        "restore it from a backup, or remove it and tag the snapshot again; until \
                         then nothing is collected: rm {path}"
                    ));
                }
            }
            Ok(tag) => {
                let id = tag.snapshot_id;
                let there = survey.snapshots.contains_key(&id)
                    || condemned.contains(&id)
                    || !survey.is_missing(&layout::snapshot(id));
                if !there && !survey.is_missing(&path) {
                    let collected = survey.tombstones.contains_key(&id);
                    let what = if collected { "was collected" } else { "is not there" };
                    let message = format!("tag '{name}' stands for {id}, which {what}");
                    // It may be among what the filesystem did not show.
                    let certain = survey.unseen.is_empty();
                    report
                        .add(Check::TagDangling, &path, message)
                        .advice("first make the filesystem answer")
                        .maybe(certain.then(|| Remedy::Quarantine { path: path.clone() }));
                }
            }
        }
    }
}
