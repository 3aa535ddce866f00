//! `jvs status`: what changed since the head, the lock and the session at one
//! glance.

use std::fmt::Write;
use std::path::Path;

use jvs_snapshot::compare::{Compared, ComparedFiles, Difference, Trust};
use jvs_snapshot::ignore::{self, IgnoreRules, IgnoredPath};
use jvs_snapshot::{Catalog, Ready, SnapshotError, diff, line};

use super::diff::{lines, sums, told};
use super::lock::{look, report};
use super::restore::HALF_RESTORED;
use super::snapshots::{counted, remark, tags};
use super::worktree::existing;
use crate::answer;
use crate::answer::tree::{Glance, IgnoredTold};
use crate::args::StatusArgs;
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck, on_one_line};
use crate::render::{Done, fact};

/// How many changed paths are named.
const NAMED: usize = 20;

pub(crate) fn run(context: &Context<'_>, args: &StatusArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let isolation = existing(&here.repo, &here.worktree)?.isolation;
    let view = look(context, &here)?;
    let store = here.repo.store();
    let payload = here.repo.payload(&here.worktree)?;
    let catalog = Catalog::new(store);
    let (head, named) = match view.state.head {
        // A head that nobody has shown yet is the next snapshot's to show.
        Some(head) if catalog.is_ready(head).map_err(|e| Stuck::new("look at the head", e))? => {
            let named = line::end(catalog, Some(head))?;
            (named.map(|head| catalog.open(head)).transpose()?, named)
        }
        unseen => (None, unseen),
    };
    let (changes, ignored) = compared(context, &here, head.as_ref(), &payload, args)?;
    let session = context.session_id().ok();
    let paint = context.paint();
    let mut text = report::lines(&view);
    if let Some(session) = &session {
        let _ = writeln!(text, "session {}", on_one_line(session.as_str()));
    }
    match (&head, &changes) {
        (Some(head), Some(found)) => {
            let changes = &found.differences;
            let tags = tags(&here)?;
            let remark = remark(head.descriptor(), &tags.of(head.id()), &[]);
            text += &fact(None, &format!("head {}", head.id()), &remark);
            match changes.is_empty() {
                true => text += "nothing changed since\n",
                false => {
                    let _ = writeln!(text, "{}", sums(changes).text());
                    text += &lines(paint, changes, false, NAMED);
                    text += &hidden_text(found);
                }
            }
        }
        _ => text += "no snapshot yet; take the first one: jvs snapshot NOTE\n",
    }
    if args.ignored {
        text += &excluded(&ignored);
    }
    let answer = || {
        let (path, path_bytes) = answer::path(&payload);
        let hidden = changes.as_ref().map(hidden).unwrap_or_default();
        let (ignored_now, ignored_now_bytes) = answer::shown_paths(&hidden);
        Glance {
            differences: changes.as_ref().map(|it| told(&it.differences)).unwrap_or_default(),
            worktree: here.worktree.clone(),
            isolation,
            path,
            path_bytes,
            head: named,
            full: args.full,
            clean: changes.as_ref().map(|found| found.differences.is_empty()),
            restoring: view.restoring,
            session_id: session.as_ref().map(|session| session.as_str().to_owned()),
            lock: report::seen(&view),
            ignored_now,
            ignored_now_bytes,
            ignored: args.ignored.then(|| ignored.iter().map(of_ignored).collect()),
        }
    };
    if view.restoring {
        context.tell(HALF_RESTORED.to_owned());
    }
    Ok(context.done(answer).with_text(text))
}

/// What changed since the head, if there is one, and what is ignored.
fn compared(
    context: &Context<'_>,
    here: &Here,
    head: Option<&Ready>,
    payload: &Path,
    args: &StatusArgs,
) -> Result<(Option<Compared>, Vec<IgnoredPath>), Failure> {
    let rules = IgnoreRules::of_config(&here.repo.config()?.snapshot.ignore);
    let files = ComparedFiles::of(payload, &rules);
    let Some(head) = head else {
        let ignored = match args.ignored {
            true => ignore::list(&files).map_err(SnapshotError::Unreadable)?,
            false => Vec::new(),
        };
        return Ok((None, ignored));
    };
    let bar = Bar::new(context, "comparing");
    let trust = match args.full {
        true => Trust::Nothing,
        false => diff::trust(head, payload, &context.clock().boot_id()),
    };
    let mut found = diff::compared_with(here.repo.store(), head, files, trust, &bar)?;
    found.differences.retain(Difference::is_of_substance);
    let ignored = std::mem::take(&mut found.ignored);
    Ok((Some(found), ignored))
}

/// Paths of the head that are removed only because they are ignored now.
fn hidden(found: &Compared) -> Vec<String> {
    let hidden = found.differences.iter().filter(|it| found.is_hidden(&it.path));
    hidden.map(|difference| difference.path.to_string()).collect()
}

fn hidden_text(found: &Compared) -> String {
    match hidden(found).len() {
        0 => String::new(),
        1 => "1 path of the head is ignored now: the next snapshot will not have it\n".to_owned(),
        many => format!(
            "{many} paths of the head are ignored now: the next snapshot will not have them\n"
        ),
    }
}

/// What is ignored, a line each.
fn excluded(ignored: &[IgnoredPath]) -> String {
    if ignored.is_empty() {
        return "nothing is ignored\n".to_owned();
    }
    let mut text = format!("{} ignored\n", counted(ignored.len() as u64, "path"));
    for IgnoredPath { path, by } in ignored {
        let line = format!("! {path}  ({}: {})", by.from, by.rule);
        let _ = writeln!(text, "{}", on_one_line(&line));
    }
    text
}

fn of_ignored(ignored: &IgnoredPath) -> IgnoredTold {
    let (path, path_bytes) = answer::shown_path(&ignored.path.to_string());
    let (from, rule) = (ignored.by.from.clone(), ignored.by.rule.clone());
    IgnoredTold { from, rule, path, path_bytes }
}
