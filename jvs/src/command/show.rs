//! `jvs show [SNAPSHOT]`: what is known about one, and what changed in it.

use std::path::PathBuf;

use jvs_repo::layout;
use jvs_snapshot::compare::Difference;
use jvs_snapshot::{Ready, SnapshotError, diff};

use super::diff::patch::Style;
use super::diff::{lines, patches, sums, told};
use super::info;
use super::snapshots::find;
use crate::answer::snapshot::{ChangesSince, Shown};
use crate::args::ShowArgs;
use crate::context::{Context, Here};
use crate::fail::Failure;
use crate::render::Done;

pub(crate) fn run(context: &Context<'_>, args: &ShowArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let ready = find(context, &here, &args.snapshot)?;
    let (mut text, info) = info::told(&here, &ready)?;
    let changed = changes(&here, &ready)?;
    text.push('\n');
    match &changed {
        Changes::Unknown => {
            text += "what it was made of was collected: what changed is not known\n"
        }
        Changes::Since { parent, differences } if args.patch || args.word_diff => {
            let store = here.repo.store();
            let files = |of: &Ready| store.absolute(&layout::snapshot_payload(&of.dir()));
            let before = parent.as_ref().map_or_else(PathBuf::new, |parent| files(parent));
            let style = Style::of(args.word_diff);
            text += &patches(context, style, differences, &before, &files(&ready))?;
        }
        Changes::Since { differences, .. } => {
            text += &lines(context.paint(), differences, true, usize::MAX);
            text += &format!("{}\n", sums(differences).text());
        }
    }
    Ok(Done::new(&Shown { info, changes: changed.told() }).with_text(text).paged())
}

/// What a snapshot has that the one before it had not, and the other way round.
enum Changes {
    /// The parent was collected.
    Unknown,
    /// Without a parent, everything is new.
    Since { parent: Option<Box<Ready>>, differences: Vec<Difference> },
}

impl Changes {
    fn told(&self) -> Option<ChangesSince> {
        match self {
            Changes::Unknown => None,
            Changes::Since { parent, differences } => Some(ChangesSince {
                differences: told(differences),
                from: parent.as_ref().map(|parent| parent.id()),
            }),
        }
    }
}

fn changes(here: &Here, ready: &Ready) -> Result<Changes, Failure> {
    let store = here.repo.store();
    let parent = match ready.descriptor().before() {
        Some(parent) => match jvs_snapshot::Catalog::new(store).open(parent) {
            Err(SnapshotError::Collected { .. }) => return Ok(Changes::Unknown),
            answer => Some(Box::new(answer?)),
        },
        None => None,
    };
    let mut differences = match &parent {
        Some(parent) => diff::between(store, parent, ready)?,
        None => diff::since_nothing(store, ready)?,
    };
    differences.retain(Difference::is_of_substance);
    Ok(Changes::Since { parent, differences })
}
