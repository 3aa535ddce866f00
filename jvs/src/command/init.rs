//! `jvs init PATH`.

use jvs_lock::worktrees;
use jvs_repo::config::LockPolicy;
use jvs_repo::name::WorktreeName;
use jvs_repo::nursery::{Adopt, Unborn};
use jvs_repo::probe::ProbeReport;
use jvs_repo::record::worktree::Isolation;
use serde_json::{Value, json};

use crate::args::InitArgs;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, Paint, shown};

pub(crate) fn run(context: &Context<'_>, args: &InitArgs) -> Result<Done, Failure> {
    // First who, then what: a session that cannot act leaves nothing behind.
    let acting = context.session(None)?;
    let adopt = if args.adopt { Adopt::Yes } else { Adopt::No };
    let unborn = Unborn::prepare(&args.path, adopt)?;
    let main = WorktreeName::main();
    let locks = context.locks(unborn.store(), LockPolicy::default(), &acting)?;
    worktrees::create(&locks, &main, Isolation::Exclusive)?;
    drop(locks);
    let report = unborn.report().cloned();
    let repo = unborn.finish()?;

    let root = shown(repo.root());
    let payload = shown(&repo.payload(&main)?);
    let filesystem = report.as_ref().map(|report| report.filesystem.kind.as_str());
    let text = text(context.paint(), &root, &payload, filesystem.unwrap_or("unknown"), args.adopt);
    let data = json!({
        "root": root,
        "repo_id": repo.id().to_string(),
        "worktree": main,
        "path": payload,
        "adopted": args.adopt,
        "filesystem": report.as_ref().map(filesystem_data),
    });
    let warnings = report.iter().flat_map(ProbeReport::warnings);
    Ok(warnings.fold(Done::new(data).with_text(text), |done, finding| {
        done.with_warning(format!("{}: {}; {}", finding.subject, finding.message, finding.remedy))
    }))
}

fn text(paint: Paint, root: &str, payload: &str, filesystem: &str, adopted: bool) -> String {
    let content = if adopted { " with what was in it" } else { "" };
    format!(
        "Made a repository in {}\n\
         Worktree main is {payload}{content}\n\
         Locks can be trusted here: {filesystem} kept every promise that was tried\n\
         {} cd {payload} && jvs lock acquire\n",
        paint.bold(root),
        paint.cyan("next:"),
    )
}

fn filesystem_data(report: &ProbeReport) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "severity": finding.severity.as_str(),
            "subject": finding.subject,
            "message": finding.message,
            "remedy": finding.remedy,
        })
    });
    json!({
        "kind": report.filesystem.kind,
        "mount_point": shown(&report.filesystem.mount_point),
        "safe": report.verdict().is_ok(),
        "findings": findings.collect::<Vec<_>>(),
    })
}
