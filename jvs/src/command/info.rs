//! `jvs info [SNAPSHOT]`: all that is known about one.

use jvs_snapshot::Ready;

use super::doctor::probe;
use super::snapshots::{counted, find, size, tags};
use crate::answer;
use crate::answer::snapshot::{Info, Snapshot};
use crate::args::InfoArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::{Done, fact, shown};
use crate::sink::Emphasis;

pub(crate) fn run(context: &Context<'_>, args: &InfoArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let ready = find(context, &here, &args.snapshot)?;
    let (text, answer) = told(&here, &ready)?;
    Ok(Done::new(&answer).with_text(text))
}

/// What people and programs are told about one.
pub(super) fn told(here: &Here, ready: &Ready) -> Result<(String, Info), Failure> {
    let tags = tags(here)?;
    let names = tags.of(ready.id());
    let d = ready.descriptor();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        text += &fact(Some(Emphasis::Dim), &format!("{name:12}"), value);
    };
    line("snapshot", &d.snapshot_id.to_string());
    line("worktree", d.worktree_id.as_str());
    line("parent", &d.before().map_or("none".to_owned(), |before| before.to_string()));
    if d.is_aside() {
        line("line", "beside it: kept, and not a step of the history");
    }
    line(
        "taken",
        &format!("{} by session {} ({})", d.created_at.shown(), d.session_id, d.holder_id),
    );
    line("under", &format!("token {}, commit {}", d.fencing_token, d.commit_seq));
    let content = format!("{}, {}", counted(d.content.files, "file"), size(d.content.bytes));
    line("content", &format!("{content}, made by the {} engine", d.content.engine));
    line("consistency", d.content.consistency.as_str());
    if let Some(risk) = &d.content.risk {
        line("risk", risk);
    }
    for loss in &d.content.degraded {
        let examples = loss.examples.join(", ");
        line("degraded", &format!("{} of {}: {examples}", loss.what, counted(loss.count, "path")));
    }
    for source in &d.content.ignore_rules {
        line("ignored", &format!("{} ({})", source.rules.join(", "), source.from));
    }
    line("root hash", &d.content.payload_root_hash.to_string());
    if !names.is_empty() {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        line("tags", &names.join(", "));
    }
    for (at, note) in d.note.iter().flat_map(|note| note.lines()).enumerate() {
        line(if at == 0 { "note" } else { "" }, note);
    }
    let path = here.repo.store().absolute(&jvs_repo::layout::snapshot_payload(&ready.dir()));
    line("files at", &shown(&path));
    let probed = probe::kept(here.repo.store());
    if let Some(verdict) = &probed {
        line("filesystem", &probe::sentence(verdict));
    }
    let snapshot = Snapshot::of(d, &names, true);
    let (path, path_bytes) = answer::path(&path);
    let descriptor_checksum = ready.descriptor_checksum().to_string();
    Ok((text, Info { snapshot, path, path_bytes, probe: probed, descriptor_checksum }))
}
