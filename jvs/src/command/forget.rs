//! `jvs forget`: removes one snapshot because somebody says so.

use std::fmt::Write;

use jvs_repo::config::LockPolicy;
use jvs_snapshot::Snapshots;
use jvs_snapshot::gc;

use super::snapshots::{counted, find, remark, room, room_text, size};
use crate::answer::snapshot::ForgottenSnapshot;
use crate::args::ForgetArgs;
use crate::bar::Bar;
use crate::context::Context;
use crate::fail::{Failure, on_one_line};
use crate::render::Done;

pub(crate) fn run(context: &Context<'_>, args: &ForgetArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let store = here.repo.store();
    let ready = find(context, &here, &args.snapshot)?;
    let (id, descriptor) = (ready.id(), ready.descriptor());
    let acting = context.session(None)?;
    let locks = context.locks(store, LockPolicy::default(), &acting)?;
    let at = Snapshots::new(locks.seams(), store);
    let measured = room(store, [(id, descriptor.content.bytes)], &Bar::new(context, "measuring"))?;
    let forgotten =
        gc::forget(&at, &locks, &ready, args.force, args.reason.as_deref(), args.dry_run)?;
    let content = format!(
        "{}, {}",
        counted(descriptor.content.files, "file"),
        size(descriptor.content.bytes)
    );
    let (forgot, frees, deleted) = match args.dry_run {
        true => ("Would forget", "would free", "Would delete"),
        false => ("Forgot", "freed", "Deleted"),
    };
    let (worktree, room) = (&descriptor.worktree_id, room_text(measured));
    let mut text = format!("{forgot} {id} of {worktree}: {content}; {frees} {room}\n");
    let said = remark(descriptor, &[], &[]);
    if !said.is_empty() {
        let _ = writeln!(text, "  {}", on_one_line(&said));
    }
    for tag in &forgotten.tags {
        let _ = writeln!(text, "{deleted} tag {tag}");
    }
    let answer = ForgottenSnapshot {
        snapshot_id: id,
        worktree_id: descriptor.worktree_id.clone(),
        note: descriptor.note.clone(),
        deleted_tags: forgotten.tags.clone(),
        freed_bytes: measured.bytes,
        freed_exact: measured.exact,
        dry_run: args.dry_run,
    };
    let done = Done::new(&answer).with_text(text);
    Ok(match forgotten.left {
        Some(left) => done.with_warning(format!("some of its files could not be removed: {left}")),
        None => done,
    })
}
