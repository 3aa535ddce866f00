//! `jvs cat`: a file of a snapshot, in its very bytes.

use std::io::Read as _;

use jvs_repo::layout;
use jvs_snapshot::look;

use super::restore::UserPlace;
use super::snapshots::find;
use crate::answer::tree::FileContent;
use crate::answer::{Base64, shown_path};
use crate::args::CatArgs;
use crate::context::Context;
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::hint::OwnNext;
use crate::render::Done;

/// Largest content that a JSON document has in it.
const MOST_IN_JSON: u64 = 1024 * 1024;

pub(crate) fn run(context: &Context<'_>, args: &CatArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let store = here.repo.store();
    let ready = find(context, &here, &args.snapshot)?;
    let place = UserPlace::find(context, &here.repo.payload(&here.worktree)?)?;
    let path = place.inside(&args.path)?;
    let found = look::entries(store, &ready, &path, false).map_err(|error| {
        place.suggesting(store, &ready, std::slice::from_ref(&args.path), error)
    })?;
    let Some(bytes) = found.first().and_then(look::size) else {
        let noun = found.first().map_or("directory", |entry| entry.kind.noun());
        let next = OwnNext::ListFiles(ready.id());
        return Err(WrongUsage::new(format!("{path} is not a file but a {noun}"), next).into());
    };
    let root = store.absolute(&layout::snapshot_payload(&ready.dir()));
    let stuck = |error| Stuck::new(format!("read {path} of {}", ready.id()), error);
    let mut file = look::open(&root, &path).map_err(stuck)?;
    if !context.output().is_json() {
        return Ok(Done::silent().with_content(file));
    }
    let (path, path_bytes) = shown_path(&path.to_string());
    let (mut text, mut text_bytes) = (None, None);
    if bytes <= MOST_IN_JSON {
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(stuck)?;
        match String::from_utf8(content) {
            Ok(content) => text = Some(content),
            Err(other) => text_bytes = Some(Base64::of(other.as_bytes())),
        }
    }
    Ok(Done::new(&FileContent {
        snapshot_id: ready.id(),
        bytes,
        text,
        path,
        path_bytes,
        text_bytes,
    }))
}
