//! Tags: readable, and pointing to a snapshot that exists.

use std::collections::BTreeSet;

use jvs_repo::id::SnapshotId;
use jvs_repo::json::{Limits, RecordError, UnusableReason};
use jvs_repo::layout;
use jvs_repo::name::TagName;
use jvs_repo::next::Next;
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::tags::{self, LoggedTag};

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::remedy::{Provenance, Remedy};
use crate::survey::{Survey, is_symlink};

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let Ok(all) = tags::list(survey.store()) else { return };
    // Set aside by a collection that did not decide yet: the tag brings it back.
    let condemned: BTreeSet<SnapshotId> = survey
        .staging
        .iter()
        .filter_map(|staged| match staged.parsed() {
            Some(StagingName::Condemned { id, .. }) => Some(*id),
            _ => None,
        })
        .collect();
    let told = tags::remembered(survey.logs.events.iter().map(|logged| &logged.event));
    missing(survey, &told, report);
    for (name, tag) in all.tags {
        let path = layout::tag(&name);
        match tag {
            // What the filesystem does not show is not damaged; symlinks are found elsewhere.
            Err(RecordError { reason: UnusableReason::Io(error), .. }) => {
                if !is_symlink(&error) {
                    report.unreadable(&path, &error);
                }
            }
            Err(error) => {
                // It protects whatever it stood for: the log or a person must say what.
                let advice = format!(
                    "restore it from a backup, or remove it and tag the snapshot again; until then \
                     nothing is collected: rm {path}"
                );
                let seen = survey.store().read(&path, Limits::RECORD.size);
                let remedy = seen.ok().zip(only(&told, &name)).map(|(seen, told)| {
                    let (path, bytes) = (path.clone(), told.to_bytes());
                    Remedy::Replace { path, seen, bytes, how: Provenance::Remembered }
                });
                report
                    .add(Check::TagInvalid, &path, error.to_string())
                    .advice(advice)
                    .maybe(remedy);
            }
            Ok(tag) => {
                let id = tag.snapshot_id;
                let there = survey.snapshots.contains_key(&id)
                    || condemned.contains(&id)
                    || !survey.is_missing(&layout::snapshot(id));
                if !there && !survey.is_missing(&path) {
                    let collected = survey.tombstones.has(id);
                    let what = if collected { "was collected" } else { "does not exist" };
                    let message = format!("tag '{name}' points to {id}, which {what}");
                    // It may be among what the filesystem did not show.
                    let certain = survey.unseen.is_empty();
                    report
                        .add(Check::TagDangling, &path, message)
                        .advice("first make the filesystem accessible")
                        .maybe(certain.then(|| Remedy::Quarantine { path: path.clone() }));
                }
            }
        }
    }
}

/// What a tag must have said, if the log leaves one possibility.
fn only<'t>(told: &'t [LoggedTag], name: &TagName) -> Option<&'t LoggedTag> {
    let mut of = told.iter().filter(|told| told.tag == *name);
    of.next().filter(|_| of.next().is_none())
}

/// Tags that were made and not deleted, of snapshots that are still there.
fn missing(survey: &Survey<'_, '_>, told: &[LoggedTag], report: &mut FindingCollector) {
    for told in told {
        let path = layout::tag(&told.tag);
        // Asked after the log was read: what was deleted since then is no fault,
        // and the log of the next examination says so.
        let there = survey.snapshots.get(&told.snapshot_id).is_some_and(|snap| snap.ready);
        if !there || !survey.is_missing(&path) || deleted_since(survey, told) {
            continue;
        }
        let message = format!(
            "tag '{}' of {} was created and never deleted, and is missing",
            told.tag, told.snapshot_id
        );
        report
            .add(Check::TagMissing, &path, message)
            .advice(Next::TagAgain(told.snapshot_id, told.tag.clone()))
            .maybe(
                (survey.unseen.is_empty() && !survey.is_missing(&layout::tags()))
                    .then(|| Remedy::RestoreTag(told.clone())),
            );
    }
}

fn deleted_since(survey: &Survey<'_, '_>, told: &LoggedTag) -> bool {
    let logs = jvs_lock::history::read_logs(survey.store());
    logs.map_or(true, |logs| {
        // Who deleted it may have said so in a log that cannot be read.
        !logs.unread.is_empty()
            || !tags::remembered(logs.events.iter().map(|logged| &logged.event)).contains(told)
    })
}
