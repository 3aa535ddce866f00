//! `jvs ls`: what is in a snapshot, without restoring it.

use jvs_snapshot::look;
use jvs_snapshot::manifest::{Entry, EntryKind, TreePath};

use super::restore::UserPlace;
use super::snapshots::{find, size};
use crate::answer::shown_path;
use crate::answer::tree::{self, Listing};
use crate::args::LsArgs;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, table};

pub(crate) fn run(context: &Context<'_>, args: &LsArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let ready = find(context, &here, &args.snapshot)?;
    let store = here.repo.store();
    let place = UserPlace::find(context, &here.repo.payload(&here.worktree)?)?;
    let path = match &args.path {
        Some(path) => place.inside(path)?,
        None => TreePath::root(),
    };
    let mut found = look::entries(store, &ready, &path, args.recursive)
        .map_err(|error| place.suggesting(store, &ready, args.path.as_slice(), error))?;
    // A directory is shown by what is in it.
    found.retain(|entry| entry.path != path || entry.kind != EntryKind::Directory);
    let text = match args.long {
        true => {
            let rows: Vec<[String; 3]> = found.iter().map(row).collect();
            table(context.paint(), ["MODE", "SIZE", "PATH"], &rows)
        }
        false => found.iter().map(|entry| shown(entry) + "\n").collect(),
    };
    let answer = || Listing { snapshot_id: ready.id(), entries: told(&found) };
    Ok(context.done(answer).with_text(text).paged())
}

/// As `ls -F` does it.
fn shown(entry: &Entry) -> String {
    let mark = match entry.kind {
        EntryKind::Directory => "/",
        EntryKind::Symlink { .. } => "@",
        EntryKind::Fifo => "|",
        EntryKind::Socket => "=",
        _ => "",
    };
    format!("{}{mark}", entry.path)
}

fn row(entry: &Entry) -> [String; 3] {
    let bytes = look::size(entry).map_or("-".to_owned(), size);
    [format!("{:04o}", entry.mode), bytes, shown(entry)]
}

fn told(entries: &[Entry]) -> Vec<tree::EntryTold> {
    let tell = |entry: &Entry| {
        let (path, path_bytes) = shown_path(&entry.path.to_string());
        tree::EntryTold {
            kind: entry.kind.noun().to_owned(),
            bytes: look::size(entry),
            mode: format!("{:04o}", entry.mode),
            uid: entry.uid,
            gid: entry.gid,
            path,
            path_bytes,
        }
    };
    entries.iter().map(tell).collect()
}
