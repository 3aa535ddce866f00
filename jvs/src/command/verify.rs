//! `jvs verify`: is every byte what was published? And, with `--files`, what is in the
//! worktree's files, for those who do not trust change times.

use std::fmt::Write;

use jvs_repo::code::{Code, Coded};
use jvs_repo::id::SnapshotId;
use jvs_repo::next::Next;
use jvs_snapshot::compare::{ComparedFiles, Difference, Trust};
use jvs_snapshot::diff;
use jvs_snapshot::ignore::IgnoreRules;
use jvs_snapshot::verify::{Mismatch, Verification, verify, verify_tags};
use jvs_snapshot::{Catalog, SnapshotError};
use serde_json::Value;

use super::diff::{lines, sums, told as differing};
use super::snapshots::{counted, find};
use crate::answer::tree::FilesRead;
use crate::answer::{shown_path, shown_paths, snapshot as answer};
use crate::args::VerifyArgs;
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, WrongUsage, on_one_line};
use crate::hint::OwnNext;
use crate::render::Done;

/// How many findings are told to people, and how many a snapshot has in JSON.
const TOLD: usize = 50;

pub(crate) fn run(context: &Context<'_>, args: &VerifyArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    if args.files {
        return files(context, &here, args);
    }
    let store = here.repo.store();
    let mut verdicts = Vec::new();
    let bar = Bar::new(context, "verifying");
    for id in wanted(context, &here, args)? {
        match verify(store, id, &bar) {
            Ok(verdict) => verdicts.push(verdict),
            // Collected since it was listed.
            Err(SnapshotError::Collected { .. } | SnapshotError::NotFound { .. }) if args.all => {}
            Err(error) => return Err(error.into()),
        }
    }
    drop(bar);
    let tags = if args.all { verify_tags(store)? } else { Vec::new() };
    let mut text = String::new();
    let found = verdicts.iter().flat_map(|verdict| &verdict.mismatches).chain(&tags);
    for mismatch in found.clone().take(TOLD) {
        let _ = writeln!(text, "{}", on_one_line(&mismatch.to_string()));
    }
    let (bad, all) = (verdicts.iter().filter(|v| !v.is_valid()).count(), verdicts.len() as u64);
    if bad == 0 && tags.is_empty() {
        let text =
            format!("Verified {}: every byte is what was published\n", counted(all, "snapshot"));
        return Ok(Done::new(&data(&verdicts, &tags)).with_text(text));
    }
    let damaged = Damaged {
        code: match verdicts.iter().any(|v| !v.descriptor_valid) {
            true => Code::DescriptorCorrupt,
            false if bad > 0 => Code::PayloadHashMismatch,
            false => Code::RecordInvalid,
        },
        message: format!(
            "{bad} of {} and {} are not what was published",
            counted(all, "snapshot"),
            counted(tags.len() as u64, "tag")
        ),
        details: serde_json::json!(data(&verdicts, &tags)),
    };
    Err(Failure::from(damaged).preceded_by(text))
}

/// Reads the worktree's files and compares them with a snapshot. That some differ is
/// no fault; that some differ and look as if they did not is told.
fn files(context: &Context<'_>, here: &Here, args: &VerifyArgs) -> Result<Done, Failure> {
    let name = match args.snapshots.as_slice() {
        [] => "@",
        [one] => one,
        _ => {
            let message = "files are compared with one snapshot";
            return Err(WrongUsage::new(message, OwnNext::VerifyOne).into());
        }
    };
    let (store, snapshot) = (here.repo.store(), find(context, here, name)?);
    let root = here.repo.payload(&here.worktree)?;
    let ignore = IgnoreRules::of_config(&here.repo.config()?.snapshot.ignore);
    let meant = ComparedFiles::of(&root, &ignore);
    let bar = Bar::new(context, "verifying");
    let compare = |trust| -> Result<Vec<Difference>, Failure> {
        let mut found = diff::since(store, &snapshot, meant, trust, &bar)?;
        found.retain(Difference::is_of_substance);
        Ok(found)
    };
    // First, because reading a file may bring to light what was written to it.
    let noticed = compare(diff::trust(&snapshot, &root, &context.clock().boot_id()))?;
    let found = compare(Trust::Nothing)?;
    drop(bar);
    let unnoticed: Vec<String> = found
        .iter()
        .filter(|difference| noticed.iter().all(|seen| seen.path != difference.path))
        .map(|difference| difference.path.to_string())
        .collect();
    let id = snapshot.id();
    let text = match found.is_empty() {
        true => format!("Read all files of {}: every byte is as in {id}\n", here.worktree),
        false => {
            let said = lines(context.paint(), &found, false, TOLD);
            format!(
                "{said}Read all files of {}: {} since {id}\n",
                here.worktree,
                sums(&found).text()
            )
        }
    };
    let told = || {
        let (unnoticed, unnoticed_bytes) = shown_paths(&unnoticed);
        FilesRead {
            differences: differing(&found),
            worktree: here.worktree.clone(),
            snapshot_id: id,
            clean: found.is_empty(),
            unnoticed,
            unnoticed_bytes,
        }
    };
    let warning = (!unnoticed.is_empty()).then(|| {
        format!(
            "{} changed without a change of time, first {}; take them with: jvs snapshot --full",
            counted(unnoticed.len() as u64, "path"),
            on_one_line(&unnoticed[0])
        )
    });
    Ok(warning.into_iter().fold(context.done(told).with_text(text), Done::with_warning))
}

fn wanted(
    context: &Context<'_>,
    here: &Here,
    args: &VerifyArgs,
) -> Result<Vec<SnapshotId>, Failure> {
    if args.all {
        let catalog = Catalog::new(here.repo.store());
        let mut visible = Vec::new();
        for id in catalog.list()?.snapshots {
            if catalog.is_ready(id).map_err(|error| Stuck::new("look at a snapshot", error))? {
                visible.push(id);
            }
        }
        return Ok(visible);
    }
    let names: Vec<&str> = match args.snapshots.is_empty() {
        true => vec!["@"],
        false => args.snapshots.iter().map(String::as_str).collect(),
    };
    let mut ids = Vec::new();
    for name in names {
        // A whole id names a snapshot whose descriptor says nothing any more.
        let id = match name.parse() {
            Ok(id) => id,
            Err(_) => find(context, here, name)?.id(),
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn data(verdicts: &[Verification], tags: &[Mismatch]) -> answer::VerificationTold {
    let snapshots = verdicts.iter().map(|verdict| answer::Verified {
        snapshot_id: verdict.snapshot_id,
        descriptor_valid: verdict.descriptor_valid,
        payload_valid: verdict.payload_valid,
        mismatches: verdict.mismatches.iter().take(TOLD).map(mismatch).collect(),
        mismatch_count: verdict.mismatches.len(),
    });
    answer::VerificationTold {
        snapshots: snapshots.collect(),
        tags: tags.iter().map(mismatch).collect(),
        tamper_detected: !tags.is_empty() || verdicts.iter().any(|verdict| !verdict.is_valid()),
    }
}

fn mismatch(mismatch: &Mismatch) -> answer::MismatchTold {
    let (path, path_bytes) = shown_path(&mismatch.path);
    answer::MismatchTold { path, what: mismatch.what.clone(), path_bytes }
}

/// Something is not what was published.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Damaged {
    code: Code,
    message: String,
    details: Value,
}

impl Coded for Damaged {
    fn code(&self) -> Code {
        self.code
    }

    fn next(&self) -> Option<Next> {
        Some(
            "keep a copy of what is left; restore what you need from a snapshot that verifies"
                .into(),
        )
    }

    fn details(&self) -> Option<Value> {
        Some(self.details.clone())
    }
}
