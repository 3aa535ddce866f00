//! `jvs doctor --probe`: tests the mount itself, and keeps the verdict.

use std::path::Path;

use jvs_doctor::{Check, Finding, examine};
use jvs_repo::clock::shown_as_written;
use jvs_repo::id::OpNonce;
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::probe::{self, Filesystem, ProbeSeverity, Promise, Staleness, Subject};
use jvs_repo::proc;
use jvs_repo::record::format::FormatRecord;
use jvs_repo::record::probe::{Broken, LIMITS, SecondMount, Verdict};
use jvs_repo::store::{PosixStore, Store};

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck, WrongUsage};

/// The verdict in one sentence.
pub(crate) fn sentence(verdict: &Verdict) -> String {
    let Verdict { host, filesystem, .. } = verdict;
    let at = shown_as_written(&verdict.at);
    let kept = if verdict.safe { "keeps" } else { "breaks" };
    let mut text = format!("{filesystem} {kept} the promises that locking needs ({host}, {at})");
    if let Some(second) = &verdict.second_mount {
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

/// What is broken, as doctor reports it.
pub(super) fn findings(verdict: &Verdict) -> impl Iterator<Item = Finding> {
    verdict.broken.iter().map(|broken| {
        let message = format!("{} (seen from {})", broken.message, verdict.host);
        let path = layout::probe_verdict().to_string();
        examine::finding(Check::FsPromise, path, message, broken.remedy.clone().into())
    })
}

/// The verdict of the last probe, if there was one.
pub(crate) fn kept(store: &dyn Store) -> Option<Verdict> {
    json::read_within(store, &layout::probe_verdict(), LIMITS).ok()?
}

pub(super) fn run(
    context: &Context<'_>,
    args: &DoctorArgs,
    store: &PosixStore,
    filesystem: &Filesystem,
) -> Result<Verdict, Failure> {
    let dir = layout::control_dir();
    let report = probe::probe(store, &dir, filesystem.clone(), context.entropy())?;
    let unsafe_ones = report.findings.iter().filter(|f| f.severity == ProbeSeverity::Unsafe);
    let mut broken: Vec<Broken> = unsafe_ones
        // What the options alone say is found at every look.
        .filter(|f| matches!(f.subject, Subject::Promise(_)))
        .map(|f| broken_promise(f.subject, f.message.clone(), f.remedy.clone()))
        .collect();
    let second = match &args.second_mount {
        Some(path) => Some(measure(context, store, path)?),
        None => None,
    };
    if let Some(seen) = second.filter(|seen| !seen.is_safe()) {
        broken.push(broken_promise(
            Subject::Promise(Promise::SecondMount),
            format!(
                "{} of {} renames were not seen at once through the second mount",
                seen.stale_listings, seen.renames
            ),
            "mount it without caching of directories".to_owned(),
        ));
    }
    let verdict = Verdict {
        version: 1,
        at: context.clock().now().wall.rfc3339(),
        host: proc::hostname(),
        filesystem: filesystem.kind.clone(),
        safe: broken.is_empty(),
        broken,
        second_mount: second.map(|seen| SecondMount {
            renames: seen.renames,
            stale_listings: seen.stale_listings,
            content_ms: seen.content_ms,
            content_lost: seen.content_lost,
        }),
    };
    if !args.dry_run {
        let tmp = layout::probe_verdict_tmp(OpNonce::random(context.entropy()));
        store
            .write_over(&tmp, &layout::probe_verdict(), &verdict.to_bytes())
            .map_err(|error| Stuck::new("keep the verdict", error))?;
    }
    Ok(verdict)
}

fn broken_promise(subject: Subject, message: String, remedy: String) -> Broken {
    Broken { subject: subject.to_string(), message, remedy }
}

fn measure(context: &Context<'_>, here: &PosixStore, path: &Path) -> Result<Staleness, Failure> {
    let there = PosixStore::open(path).map_err(|e| Stuck::new("open the second mount", e))?;
    let id = |store: &PosixStore| FormatRecord::read(store).ok().flatten().map(|f| f.repo_id());
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
