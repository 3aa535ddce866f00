//! Checksums of the control files that are written once: damage is
//! told from intention, and a single flipped bit corrected.

use jvs_repo::json::Limits;
use jvs_repo::layout;
use jvs_repo::record::format::FormatRecord;
use jvs_repo::record::seal::{self, Seal, Sealable, Sealed};
use jvs_repo::record::worktree::WorktreeRecord;
use jvs_repo::store::RepoPath;

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::remedy::{Provenance, Remedy};
use crate::survey::Survey;

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    look::<FormatRecord>(survey, &layout::format(), report);
    for (worktree, record) in &survey.worktrees.worktrees {
        if record.is_ok() {
            look::<WorktreeRecord>(survey, &layout::worktree_record(worktree), report);
        }
    }
}

fn look<T: Sealable>(survey: &Survey<'_, '_>, path: &RepoPath, report: &mut FindingCollector) {
    let Ok(seen) = survey.store().read(path, Limits::RECORD.size) else { return };
    let Ok(sealed) = seal::look(&seen) else { return };
    if sealed == Seal::Whole {
        return;
    }
    let altered = "it was changed since it was written";
    let remedy = match flip(survey, path, &seen) {
        Flip::Found(remedy) => Some(*remedy),
        Flip::NotTried => {
            // What it says now is not believed as long as it may be a flipped bit.
            report.add(Check::Altered, path, altered).advice(NOT_TRIED);
            return;
        }
        Flip::None => {
            // Without a checksum it is as an earlier version wrote it.
            let says = jvs_repo::json::parse(&seen).ok().filter(|_| sealed == Seal::Broken);
            says.map(|says: T| {
                let bytes = Sealed::of(says).into_bytes();
                let (path, seen) = (path.clone(), seen.clone());
                Remedy::Replace { path, seen, bytes, how: Provenance::Believed }
            })
        }
    };
    if let Some(remedy) = remedy {
        report.add(Check::Altered, path, altered).remedy(remedy);
    }
}

/// What is spent in one look on searching files for a flipped bit: enough for a hundred of
/// the usual length, or for four of the longest, which take a tenth of a second each. Who
/// fills a directory chooses how many there are, and a repair looks several times.
pub(crate) const MOST_EFFORT: u64 = 8 * 100 * 410 * 410;

pub(super) const NOT_TRIED: &str = "there are too many such files to look for a flipped bit in each: repair \
                         the others or move them away, then look again";

/// Was one bit of a file flipped?
pub(super) enum Flip {
    Found(Box<Remedy>),
    None,
    NotTried,
}

pub(super) fn flip(survey: &Survey<'_, '_>, path: &RepoPath, seen: &[u8]) -> Flip {
    if !survey.may_spend(seal::effort_to_unflip(seen)) {
        return Flip::NotTried;
    }
    seal::unflip(seen).map_or(Flip::None, |bytes| {
        let (path, seen) = (path.clone(), seen.to_vec());
        Flip::Found(Box::new(Remedy::Replace { path, seen, bytes, how: Provenance::Flipped }))
    })
}
