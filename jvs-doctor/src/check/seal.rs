//! Checksums of the control files that are written once: damage is
//! told from intention, and a single flipped bit corrected.

use jvs_repo::json::Limits;
use jvs_repo::layout;
use jvs_repo::record::format::Format;
use jvs_repo::record::seal::{self, Seal, Sealable, Sealed};
use jvs_repo::record::worktree::WorktreeRecord;
use jvs_repo::store::RepoPath;

use crate::check::Check;
use crate::finding::Report;
use crate::remedy::{How, Remedy};
use crate::survey::Survey;

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut Report) {
    look::<Format>(survey, &layout::format(), report);
    for (worktree, record) in &survey.worktrees.worktrees {
        if record.is_ok() {
            look::<WorktreeRecord>(survey, &layout::worktree_record(worktree), report);
        }
    }
}

fn look<T: Sealable>(survey: &Survey<'_, '_>, path: &RepoPath, report: &mut Report) {
    let Ok(seen) = survey.store().read(path, Limits::RECORD.size) else { return };
    let Ok(sealed) = seal::look(&seen) else { return };
    if sealed == Seal::Whole {
        return;
    }
    let remedy = unflipped(path, &seen).or_else(|| {
        // Without a checksum it is as an earlier version wrote it.
        let says: T = jvs_repo::json::parse(&seen).ok().filter(|_| sealed == Seal::Broken)?;
        let bytes = Sealed::of(says).into_bytes();
        Some(Remedy::Replace { path: path.clone(), seen: seen.clone(), bytes, how: How::Believed })
    });
    if let Some(remedy) = remedy {
        report.add(Check::Altered, path, "it was changed since it was written").remedy(remedy);
    }
}

/// What to do about a file of which one bit was flipped, if that is so.
pub(super) fn unflipped(path: &RepoPath, seen: &[u8]) -> Option<Remedy> {
    let bytes = seal::unflip(seen)?;
    Some(Remedy::Replace { path: path.clone(), seen: seen.to_vec(), bytes, how: How::Flipped })
}
