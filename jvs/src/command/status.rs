//! `jvs status`: what changed since the head, the lock and the session at one
//! glance.

use std::fmt::Write;

use jvs_snapshot::compare::{Difference, Trust};
use jvs_snapshot::{Catalog, diff, line};
use serde_json::json;

use super::diff::{data, lines, sums};
use super::lock::{look, report};
use super::restore::HALF_RESTORED;
use super::snapshots::{remark, tags};
use super::worktree::existing;
use crate::args::StatusArgs;
use crate::bar::Bar;
use crate::context::Context;
use crate::fail::{Failure, Stuck, on_one_line};
use crate::render::{Done, fact, tell_path};

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
    let changes = match &head {
        Some(head) => {
            let bar = Bar::new(context, "comparing");
            let trust = match args.full {
                true => Trust::Nothing,
                false => diff::trust(head, &payload, &context.clock().boot_id()),
            };
            let mut changes = diff::since(store, head, &payload, trust, &bar)?;
            changes.retain(Difference::is_of_substance);
            Some(changes)
        }
        None => None,
    };
    let session = context.session_id().ok();
    let paint = context.paint();
    let mut text = report::lines(&view);
    if let Some(session) = &session {
        let _ = writeln!(text, "session {}", on_one_line(session.as_str()));
    }
    match (&head, &changes) {
        (Some(head), Some(changes)) => {
            let tags = tags(&here)?;
            let remark = remark(head.descriptor(), &tags.of(head.id()), &[]);
            text += &fact(None, &format!("head {}", head.id()), &remark);
            match changes.is_empty() {
                true => text += "nothing changed since\n",
                false => {
                    let _ = writeln!(text, "{}", sums(changes).text());
                    text += &lines(paint, changes, false, NAMED);
                }
            }
        }
        _ => text += "no snapshot yet; take the first one: jvs snapshot NOTE\n",
    }
    let told = || {
        let mut told = match &changes {
            Some(changes) => data(changes),
            None => json!({ "differences": [], "added": 0, "removed": 0, "changed": 0 }),
        };
        told["worktree"] = json!(here.worktree);
        told["isolation"] = json!(isolation.as_str());
        tell_path(&mut told, "path", &payload);
        told["head"] = json!(named);
        told["full"] = json!(args.full);
        told["clean"] = json!(changes.as_ref().map(Vec::is_empty));
        told["restoring"] = json!(view.restoring);
        told["session_id"] = json!(session.as_ref().map(|session| session.as_str()));
        told["lock"] = report::seen(&view);
        told
    };
    if view.restoring {
        context.tell(HALF_RESTORED.to_owned());
    }
    Ok(context.done(told).with_text(text))
}
