//! `jvs tag`: names for snapshots that stay until they are deleted.

use jvs_repo::code::Coded;
use jvs_repo::config::LockPolicy;
use jvs_repo::name::TagName;
use jvs_snapshot::short::ShortIds;
use jvs_snapshot::{SnapshotError, tags};

use super::audit::story::ago;
use super::snapshots::{find, near_tags};
use crate::answer::Unreadable;
use crate::answer::snapshot::{BrokenTag, ListedTag, TagDeleted, TagList, TagTold};
use crate::args::TagArgs;
use crate::context::Context;
use crate::fail::{Failure, WrongUsage};
use crate::hint::OwnNext;
use crate::render::{Done, table};

pub(crate) fn run(context: &Context<'_>, args: &TagArgs) -> Result<Done, Failure> {
    match (&args.snapshot, &args.name, &args.delete) {
        (Some(snapshot), Some(name), _) => match name.parse() {
            Ok(name) => create(context, snapshot, &name),
            // As git takes them: first the name.
            Err(_) if name.starts_with('@') && snapshot.parse::<TagName>().is_ok() => {
                let next = OwnNext::TagInOrder(name.clone(), snapshot.clone());
                let message = format!("the snapshot comes before the name, and '{name}' is none");
                Err(WrongUsage::new(message, next).into())
            }
            Err(error) => Err(error.into()),
        },
        (Some(name), None, None) => create_at_head(context, name),
        (_, _, Some(name)) => delete(context, &name.parse()?),
        _ if args.list => list(context),
        _ => {
            let help = OwnNext::Help("tag".to_owned(), None);
            Err(WrongUsage::new("a snapshot and a name are needed", help).into())
        }
    }
}

/// One word is the name, and the head gets it; unless it is a snapshot's, so that the
/// name is what is missing.
fn create_at_head(context: &Context<'_>, name: &str) -> Result<Done, Failure> {
    let is_tag = name.parse::<TagName>().ok();
    let here = context.here()?;
    let is_snapshot = match &is_tag {
        Some(tag) => tags::read(here.repo.store(), tag)?.is_none(),
        None => true,
    };
    if is_snapshot && find(context, &here, name).is_ok() {
        let next = OwnNext::NameTag(name.to_owned());
        return Err(WrongUsage::new(format!("'{name}' is a snapshot, and no name"), next).into());
    }
    create(context, "@", &name.parse()?)
}

fn create(context: &Context<'_>, snapshot: &str, name: &TagName) -> Result<Done, Failure> {
    let here = context.here()?;
    let ready = find(context, &here, snapshot)?;
    let acting = context.session(None)?;
    let locks = context.locks(here.repo.store(), LockPolicy::default(), &acting)?;
    let tag = tags::make(&locks, name, &ready)?;
    let id = tag.snapshot_id;
    let text = format!("Tagged {id} as {}\n", context.paint().bold(name.as_str()));
    let answer = TagTold { tag: name.clone(), snapshot_id: id, created_at: tag.created_at.into() };
    Ok(Done::new(&answer).with_text(text))
}

fn delete(context: &Context<'_>, name: &TagName) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), LockPolicy::default(), &acting)?;
    match tags::take_away(&locks, name)? {
        Some(tag) => {
            let id = tag.snapshot_id;
            let text = format!("Deleted tag {name}, which pointed to {id}\n");
            Ok(Done::new(&TagDeleted { deleted: name.clone(), snapshot_id: id }).with_text(text))
        }
        None => {
            let near = near_tags(repo.store(), name.as_str());
            Err(Failure::from(SnapshotError::NoSuchTag { tag: name.clone() }).suggesting(near))
        }
    }
}

fn list(context: &Context<'_>) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let shorts = ShortIds::read(repo.store())?;
    let mut rows = Vec::new();
    let mut told = Vec::new();
    let now = context.clock().now().wall;
    for (name, tag) in tags::list(repo.store())?.tags {
        match tag {
            Ok(tag) => {
                let (snapshot_id, at) = (tag.snapshot_id, tag.created_at);
                rows.push([name.to_string(), shorts.of(snapshot_id), ago(at, now)]);
                told.push(ListedTag::Tag(TagTold {
                    tag: name,
                    snapshot_id,
                    created_at: at.into(),
                }));
            }
            // One bad tag does not hide the others.
            Err(error) => {
                rows.push([name.to_string(), error.code().to_string(), String::new()]);
                let error = Unreadable::because(&error);
                told.push(ListedTag::Broken(BrokenTag { tag: name, error }));
            }
        }
    }
    let text = match rows.is_empty() {
        true => "No tags\n".to_owned(),
        false => table(context.paint(), ["TAG", "SNAPSHOT", "MADE"], &rows),
    };
    Ok(Done::new(&TagList { tags: told }).with_text(text))
}
