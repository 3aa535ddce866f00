//! `jvs init PATH`.

use std::path::Path;

use jvs_lock::worktrees;
use jvs_repo::config::LockPolicy;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::nursery::{Adopt, Unborn};
use jvs_repo::probe::ProbeReport;
use jvs_repo::record::worktree::Isolation;

use crate::answer;
use crate::answer::worktree::{FilesystemProbed, Init, ProbeFound};
use crate::args::InitArgs;
use crate::context::Context;
use crate::fail::{Failure, WrongUsage};
use crate::hint::OwnNext;
use crate::render::{Done, Paint, shown};
use crate::{git, umask};

pub(crate) fn run(context: &Context<'_>, args: &InitArgs) -> Result<Done, Failure> {
    refuse_a_home(context, args)?;
    // First who, then what: a session that cannot act leaves nothing behind.
    let acting = context.session(None)?;
    let adopt = if args.adopt { Adopt::Yes } else { Adopt::No };
    umask::open_for_sharing(args.shared);
    let unborn = Unborn::prepare_shared(&args.path, adopt, args.shared)?;
    let main = WorktreeName::main();
    let locks = context.locks(unborn.store(), LockPolicy::default(), &acting)?;
    worktrees::create(&locks, &main, Isolation::Exclusive)?;
    drop(locks);
    let report = unborn.report().cloned();
    let repo = unborn.finish()?;

    let payload = repo.payload(&main)?;
    let filesystem = report.as_ref().map(|report| report.filesystem.kind.as_str());
    let text =
        text(context.paint(), repo.root(), &payload, filesystem.unwrap_or("unknown"), args.adopt);
    let (root, root_bytes) = answer::path(repo.root());
    let (path, path_bytes) = answer::path(&payload);
    let made = Init {
        repo_id: repo.id().to_string(),
        worktree: main,
        adopted: args.adopt,
        shared: args.shared,
        filesystem: report.as_ref().map(probed),
        root,
        root_bytes,
        path,
        path_bytes,
    };
    let warnings = report.iter().flat_map(ProbeReport::warnings);
    let done = Done::new(&made).with_text(text);
    let of_git = args.adopt.then(|| git::adopted(repo.store(), &WorktreeName::main())).flatten();
    let done = of_git.into_iter().fold(done, Done::with_warning);
    Ok(warnings.fold(done, |done, finding| {
        done.with_warning(format!("{}: {}; {}", finding.subject, finding.message, finding.remedy))
    }))
}

/// Everything in the directory would move into worktree `main`, keys and settings of
/// other programs included: no directory that others rely on becomes a repository.
fn refuse_a_home(context: &Context<'_>, args: &InitArgs) -> Result<(), Failure> {
    const OF_THE_SYSTEM: &[&str] =
        &["/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/run", "/sbin", "/sys", "/usr"];
    let Ok(path) = args.path.canonicalize() else { return Ok(()) };
    let is_empty = path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    let home = context.home().and_then(|home| home.canonicalize().ok());
    let what = if is_empty {
        return Ok(());
    } else if home.as_ref() == Some(&path) {
        "your home directory"
    } else if home.is_some_and(|home| home.starts_with(&path)) {
        "above your home directory"
    } else if OF_THE_SYSTEM.iter().any(|dir| path == std::path::Path::new(dir)) {
        "a directory of the system"
    } else {
        return Ok(());
    };
    let (shown, work) = (shown(&path), path.join("work"));
    Err(WrongUsage::new(
        format!("{shown} is {what}; all that is in it would become worktree main"),
        OwnNext::InitBelow(work),
    )
    .into())
}

fn text(paint: Paint, root: &Path, payload: &Path, filesystem: &str, adopted: bool) -> String {
    let content = if adopted { " with its former content" } else { "" };
    format!(
        "Created a repository in {}\n\
         Worktree main is {}{content}\n\
         Locks can be trusted here: {filesystem} kept every promise that was tried\n\
         {} cd {} && jvs lock acquire\n",
        paint.bold(&shown(root)),
        shown(payload),
        paint.cyan("next:"),
        ShownName::new(payload).typed(),
    )
}

fn probed(report: &ProbeReport) -> FilesystemProbed {
    let findings = report.findings.iter().map(|finding| ProbeFound {
        severity: finding.severity.as_str(),
        subject: finding.subject.as_str(),
        message: finding.message.clone(),
        remedy: finding.remedy.clone(),
    });
    let (mount_point, mount_point_bytes) = answer::path(&report.filesystem.mount_point);
    FilesystemProbed {
        kind: report.filesystem.kind.clone(),
        safe: report.verdict().is_ok(),
        findings: findings.collect(),
        mount_point,
        mount_point_bytes,
    }
}
