//! `jvs verify`: is every byte what was published?

use std::fmt;
use std::fmt::Write;

use jvs_repo::code::{Code, Coded};
use jvs_repo::id::SnapshotId;
use jvs_snapshot::verify::{Mismatch, Verdict, verify, verify_tags};
use jvs_snapshot::{Catalog, SnapshotError};
use serde_json::{Value, json};

use super::snapshots::{counted, find};
use crate::args::VerifyArgs;
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, on_one_line};
use crate::render::Done;

/// How many findings are told to people, and how many a snapshot has in JSON.
const TOLD: usize = 50;

pub(crate) fn run(context: &Context<'_>, args: &VerifyArgs) -> Result<Done, Failure> {
    let here = context.here()?;
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
        return Ok(Done::new(data(&verdicts, &tags)).with_text(text));
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
        details: data(&verdicts, &tags),
    };
    Err(Failure::from(damaged).preceded_by(text))
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

fn data(verdicts: &[Verdict], tags: &[Mismatch]) -> Value {
    let snapshots: Vec<Value> = verdicts
        .iter()
        .map(|verdict| {
            let mut told = json!(verdict);
            told["mismatches"] = json!(&verdict.mismatches[..verdict.mismatches.len().min(TOLD)]);
            told["mismatch_count"] = json!(verdict.mismatches.len());
            told
        })
        .collect();
    let tampered = !tags.is_empty() || verdicts.iter().any(|verdict| !verdict.is_valid());
    json!({ "snapshots": snapshots, "tags": tags, "tamper_detected": tampered })
}

/// Something is not what was published.
#[derive(Debug)]
struct Damaged {
    code: Code,
    message: String,
    details: Value,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Damaged {}

impl Coded for Damaged {
    fn code(&self) -> Code {
        self.code
    }

    fn hint(&self) -> Option<String> {
        Some(
            "keep a copy of what is left; restore what you need from a snapshot that verifies"
                .into(),
        )
    }

    fn details(&self) -> Option<Value> {
        Some(self.details.clone())
    }
}
