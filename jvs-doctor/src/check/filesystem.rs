//! The filesystem: its kind, its options, its room, and what the last probe
//! found.

use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::probe::{self, Setup, Subject};
use jvs_repo::record::audit::Collected;

use crate::check::{Check, Severity};
use crate::finding::FindingCollector;
use crate::survey::Survey;

/// Less free than one part in this many is nearly full.
const NEARLY_FULL: u64 = 50;

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let around = &survey.patient.surroundings;
    let at = around.filesystem.mount_point.display().to_string();
    for seen in around.filesystem.findings() {
        let check = match seen.subject {
            Subject::Setup(Setup::UntriedFilesystem) => Check::FsUntried,
            Subject::Setup(Setup::VolatileFilesystem) => Check::FsVolatile,
            Subject::Setup(Setup::JuicefsOptions) => Check::FsOptionsUnknown,
            Subject::Setup(Setup::JuicefsReaddirCache) => Check::FsReaddirCache,
            Subject::Setup(Setup::JuicefsWriteback) => Check::FsWriteback,
            Subject::Setup(Setup::JuicefsCache) => Check::FsCache,
            Subject::Setup(Setup::JuicefsVersion) => Check::FsVersion,
            Subject::Promise(_) => Check::FsPromise,
        };
        let found = report.add(check, &at, seen.message).advice(seen.remedy);
        if seen.severity == probe::ProbeSeverity::Unsafe {
            found.severity(Severity::Error);
        }
    }
    let Some(space) = around.space else { return };
    if space.read_only {
        report
            .add(Check::FsReadOnly, &at, "the filesystem is mounted read-only")
            .advice("mount it read-write; until then no lock can be taken or released");
    }
    let low = |free: u64, all: u64| all > 0 && free < all / NEARLY_FULL;
    if low(space.bytes_free, space.bytes) || low(space.inodes_free, space.inodes) {
        let message = format!(
            "the filesystem is nearly full: {} of {} MiB and {} of {} inodes are free",
            space.bytes_free >> 20,
            space.bytes >> 20,
            space.inodes_free,
            space.inodes
        );
        report.add(Check::FsFull, &at, message).advice(Next::FreeSpace(None));
    }
}

/// Snapshots that were collected may still be in the volume's trash.
pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let filesystem = &survey.patient.surroundings.filesystem;
    if filesystem.juicefs.is_none() {
        return;
    }
    const DAY_MS: u64 = 24 * 3600 * 1000;
    let collected: usize = survey
        .logs
        .events
        .iter()
        .map(|logged| &logged.event)
        .filter(|event| event.kind == EventKind::Gc && event.phase == EventPhase::Done)
        .filter(|event| event.at_ms().is_some_and(|at| survey.began.wall.since(at) < DAY_MS))
        .filter_map(|event| event.details_as::<Collected>())
        .map(|collected| collected.snapshots.len())
        .sum();
    if collected > 0 {
        let message = format!(
            "{collected} snapshots were collected in the last day; unless the volume's trash is \
             off, their files still take up space there"
        );
        report
            .add(Check::FsTrash, layout::snapshots(), message)
            .advice("`juicefs status META-URL` shows TrashDays; the volume frees them by itself");
    }
}
