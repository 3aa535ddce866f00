//! `jvs doctor --probe`: tests the mount itself, and keeps the verdict.

use std::path::Path;

use jvs_doctor::{Check, Finding, examine};
use jvs_repo::id::OpNonce;
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::probe::{self, Filesystem, Severity, Staleness};
use jvs_repo::proc;
use jvs_repo::record::format::Format;
use jvs_repo::store::{PosixStore, Store};
use serde::{Deserialize, Serialize};

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck, WrongUsage};

/// What a probe came to, as it is kept in the repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Verdict {
    version: u64,
    at: String,
    host: String,
    filesystem: String,
    safe: bool,
    broken: Vec<Broken>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second_mount: Option<Second>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Broken {
    subject: String,
    message: String,
    remedy: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Second {
    renames: u64,
    stale_listings: u64,
    content_ms: u64,
    content_lost: bool,
}

impl Verdict {
    /// The verdict in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let Verdict { at, host, filesystem, .. } = self;
        let kept = if self.safe { "keeps" } else { "breaks" };
        let mut text =
            format!("{filesystem} {kept} the promises that locking needs ({host}, {at})");
        if let Some(second) = &self.second_mount {
            text += &format!(
                "; through the second mount {} of {} renames were seen late, replaced content {}",
                second.stale_listings,
                second.renames,
                match second.content_lost {
                    true => "not at all".to_owned(),
                    false => format!("up to {} ms late", second.content_ms),
                }
            );
        }
        text
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        let broken = self.broken.iter();
        broken
            .map(|broken| {
                let message = format!("{} (seen from {})", broken.message, self.host);
                let path = layout::probe_verdict().to_string();
                examine::finding(Check::FsPromise, path, message, broken.remedy.clone())
            })
            .collect()
    }
}

/// The verdict of the last probe, if there was one.
pub(crate) fn kept(store: &dyn Store) -> Option<Verdict> {
    let verdict: Verdict = json::read_within(store, &layout::probe_verdict(), LIMITS).ok()??;
    (verdict.version == 1).then_some(verdict)
}

const LIMITS: json::Limits = json::Limits { size: 64 * 1024, depth: 8, string: 2048 };

pub(super) fn run(
    context: &Context<'_>,
    args: &DoctorArgs,
    store: &PosixStore,
    filesystem: &Filesystem,
) -> Result<Verdict, Failure> {
    let dir = layout::control_dir();
    let report = probe::probe(store, &dir, filesystem.clone(), context.entropy())?;
    let unsafe_ones = report.findings.iter().filter(|f| f.severity == Severity::Unsafe);
    let mut broken: Vec<Broken> = unsafe_ones
        // What the options alone say is found at every look.
        .filter(|f| !f.subject.starts_with("juicefs_"))
        .map(|f| Broken {
            subject: f.subject.to_owned(),
            message: f.message.clone(),
            remedy: f.remedy.clone(),
        })
        .collect();
    let second = match &args.second_mount {
        Some(path) => Some(measure(context, store, path)?),
        None => None,
    };
    if let Some(seen) = second.filter(|seen| !seen.is_safe()) {
        broken.push(Broken {
            subject: "second_mount".to_owned(),
            message: format!(
                "{} of {} renames were not seen at once through the second mount",
                seen.stale_listings, seen.renames
            ),
            remedy: "mount it without caching of directories".to_owned(),
        });
    }
    let verdict = Verdict {
        version: 1,
        at: context.clock().now().wall.rfc3339(),
        host: proc::hostname(),
        filesystem: filesystem.kind.clone(),
        safe: broken.is_empty(),
        broken,
        second_mount: second.map(|seen| Second {
            renames: seen.renames,
            stale_listings: seen.stale_listings,
            content_ms: seen.content_ms,
            content_lost: seen.content_lost,
        }),
    };
    if !args.dry_run {
        let tmp = layout::probe_verdict_tmp(OpNonce::random(context.entropy()));
        store
            .write_over(&tmp, &layout::probe_verdict(), &json::canonical(&verdict))
            .map_err(|error| Stuck::new("keep the verdict", error))?;
    }
    Ok(verdict)
}

fn measure(context: &Context<'_>, here: &PosixStore, path: &Path) -> Result<Staleness, Failure> {
    let there = PosixStore::open(path).map_err(|e| Stuck::new("open the second mount", e))?;
    let id = |store: &PosixStore| Format::read(store).ok().flatten().map(|f| f.repo_id());
    if id(here).is_none() || id(here) != id(&there) {
        return Err(WrongUsage::new(
            format!("{} does not show this repository", path.display()),
            "give the root of this repository as another mount of the same volume shows it",
        )
        .into());
    }
    let dir = layout::control_dir();
    Ok(probe::staleness(here, &there, &dir, context.clock(), context.entropy())?)
}
