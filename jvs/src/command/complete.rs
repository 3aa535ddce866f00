//! What a shell offers for the word that is being typed: asked by the scripts of
//! `jvs completions`. Whatever goes wrong, nothing is offered.
//!
//! The first line of the answer says what the shell adds of its own: `files`,
//! `directories`, `programs` or `none`. Each further line is a word, and after a blank what
//! it is. A word that others wrote is only offered if no shell and no terminal would act
//! on a character of it.

use std::path::Path;

use jvs_repo::name::WorktreeName;
use jvs_repo::{clock::WallMs, config};
use jvs_snapshot::manifest::{EntryKind, TreePath};
use jvs_snapshot::{Catalog, look, tags};

use super::snapshots::find;
use super::undo;
use crate::answer::Text;
use crate::args::{CompleteArgs, Wanted, asked};
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::ownership;
use crate::render::Done;
use crate::session::{self, known};

/// How many of the newest snapshots are offered.
const SNAPSHOTS: usize = 40;

/// Longest remark beside a word, in characters.
const ABOUT: usize = 60;

/// A word, and what it is.
type Offer = (String, String);

pub(crate) fn run(context: &Context<'_>, args: &CompleteArgs) -> Done {
    ownership::say_nothing();
    let asked = asked(&args.words);
    let there = Context::new(asked.global, context.env(), context.output());
    let (adds, offers) = match asked.wanted {
        Wanted::Files => ("files", Vec::new()),
        Wanted::Directories => ("directories", Vec::new()),
        Wanted::Programs => ("programs", Vec::new()),
        Wanted::Anything => ("none", Vec::new()),
        Wanted::SnapshotsAndFiles => ("files", snapshots(&there, &asked.begun).unwrap_or_default()),
        wanted => ("none", offers(&there, wanted, &asked.begun).unwrap_or_default()),
    };
    let mut text = format!("{adds}\n");
    for (word, about) in offers {
        if word.starts_with(&asked.begun) && word.chars().all(is_plain) {
            text += format!("{}{word} {}", asked.before, short(&about)).trim_end();
            text.push('\n');
        }
    }
    Done::new(&Text { text: text.clone() }).with_text(text)
}

/// What a word is, in less than a line.
fn short(about: &str) -> String {
    let line = about.lines().next().unwrap_or_default();
    match line.chars().count() > ABOUT {
        true => line.chars().take(ABOUT - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

/// Characters that stand for themselves in every shell.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "._-@:/+,%=".contains(c)
}

fn offers(context: &Context<'_>, wanted: Wanted, begun: &str) -> Result<Vec<Offer>, Failure> {
    match wanted {
        Wanted::Words(words) => Ok(words),
        Wanted::Worktrees => worktrees(context),
        Wanted::Tags => named(context),
        Wanted::Snapshots => snapshots(context, begun),
        Wanted::Sessions => sessions(context),
        Wanted::Keys => {
            let usual = config::Config::default();
            let keys = config::list(&usual);
            Ok(keys.into_iter().map(|(key, _)| (key.name.to_owned(), key.doc.to_owned())).collect())
        }
        Wanted::Operations => undo::offered(context),
        Wanted::FilesOf(snapshot) => files_of(context, &snapshot, begun),
        Wanted::SnapshotsAndFiles
        | Wanted::Files
        | Wanted::Directories
        | Wanted::Programs
        | Wanted::Anything => Ok(Vec::new()),
    }
}

fn worktrees(context: &Context<'_>) -> Result<Vec<Offer>, Failure> {
    let there = context.repo()?.worktrees()?.worktrees;
    let name = |name: &WorktreeName| (name.to_string(), String::new());
    Ok(there.iter().map(|(it, _)| name(it)).collect())
}

fn named(context: &Context<'_>) -> Result<Vec<Offer>, Failure> {
    let repo = context.repo()?;
    let there = tags::list(repo.store()).map_err(Failure::from)?;
    Ok(there.tags.keys().map(|tag| (tag.to_string(), "tag".to_owned())).collect())
}

/// The head, what has a name, then the newest.
fn snapshots(context: &Context<'_>, begun: &str) -> Result<Vec<Offer>, Failure> {
    let mut offers =
        vec![("@".to_owned(), "the head".to_owned()), ("@-".to_owned(), "its parent".to_owned())];
    offers.extend(named(context)?);
    let repo = context.repo()?;
    let catalog = Catalog::new(repo.store());
    let now = context.clock().now().wall;
    for id in catalog.list()?.snapshots.into_iter().rev().take(SNAPSHOTS) {
        let word = id.to_string();
        if !word.starts_with(begun) {
            continue;
        }
        let Ok(ready) = catalog.open(id) else { continue };
        let ago = jvs_lock::span::Span(now.since(WallMs(id.created_ms)));
        let note = ready.descriptor().note.clone().unwrap_or_default();
        offers.push((word, format!("{ago} ago  {note}")));
    }
    Ok(offers)
}

fn sessions(context: &Context<'_>) -> Result<Vec<Offer>, Failure> {
    let Some(files) = session::files(context.env())? else { return Ok(Vec::new()) };
    let all = known::all(&files.own).unwrap_or_default();
    let ids = all.into_iter().filter_map(|it| it.id);
    Ok(ids.map(|id| (id.as_str().to_owned(), String::new())).collect())
}

/// What is in one directory of a snapshot.
fn files_of(context: &Context<'_>, snapshot: &str, begun: &str) -> Result<Vec<Offer>, Failure> {
    let here: Here = context.here()?;
    let ready = find(context, &here, snapshot)?;
    let dir = begun.rsplit_once('/').map_or("", |(dir, _)| dir);
    let root = here.repo.payload(&here.worktree)?;
    let inside = super::restore::UserPlace::find(context, &root)?;
    let at = match dir {
        // The whole worktree is no path in it.
        "" => inside.inside(Path::new(".")).unwrap_or_else(|_| TreePath::root()),
        dir => inside.inside(Path::new(dir))?,
    };
    let found = look::entries(here.repo.store(), &ready, &at, false)?;
    let before = if dir.is_empty() { String::new() } else { format!("{dir}/") };
    let offer = |path: &TreePath, is_dir: bool| {
        let path = path.to_string();
        let name = path.rsplit('/').next().unwrap_or_default();
        (format!("{before}{name}{}", if is_dir { "/" } else { "" }), String::new())
    };
    let inner = found.iter().filter(|entry| entry.path != at);
    Ok(inner.map(|it| offer(&it.path, it.kind == EntryKind::Directory)).collect())
}
