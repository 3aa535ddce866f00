//! `jvs history`: the snapshots of a worktree, or all there are.

mod graph;
mod of_path;

use std::collections::BTreeMap;

use jvs_repo::id::SnapshotId;
use jvs_snapshot::gc::Registers;
use jvs_snapshot::line;
use jvs_snapshot::lineage::{Lineage, LineageStep};
use jvs_snapshot::short::ShortIds;
use jvs_snapshot::tags::Tags;
use jvs_snapshot::{Catalog, Descriptor, SnapshotError};

use super::audit::story::ago;
use super::snapshots::{head, remark, size, tags};
use crate::answer::snapshot::{History, Snapshot};
use crate::args::HistoryArgs;
use crate::context::Context;
use crate::fail::{Failure, on_one_line};
use crate::render::{Done, table};

pub(crate) fn run(context: &Context<'_>, args: &HistoryArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let catalog = Catalog::new(here.repo.store());
    let limit = args.number.unwrap_or(usize::MAX);
    let grep = args.grep.as_ref().map(|text| text.to_lowercase());
    let wanted = |d: &Descriptor| {
        let note = || d.note.as_deref().unwrap_or_default().to_lowercase();
        grep.as_ref().is_none_or(|text| note().contains(text))
    };
    // For people; nobody else has a use for short names.
    let shorts = match context.output().is_json() {
        true => ShortIds::default(),
        false => ShortIds::read(here.repo.store())?,
    };
    let (heads, warnings) = (BTreeMap::new(), Vec::new());
    let mut told = Annotations { tags: tags(&here)?, shorts, heads, warnings };
    if let Some(path) = &args.path {
        return of_path::run(context, &here, path, limit, &wanted, told);
    }
    let shown = if args.all || args.graph {
        let registers = Registers::read(context.seams(here.repo.store()))?;
        for (worktree, state) in registers.in_place() {
            let Some(head) = line::end(catalog, state.head)? else { continue };
            told.heads.entry(head).or_default().push(worktree.to_string());
        }
        all(catalog, limit, &wanted, &mut told)?
    } else {
        let head = head(context, &here)?;
        if let Some(head) = line::end(catalog, head)? {
            told.heads.insert(head, vec!["head".to_owned()]);
        }
        lineage(catalog, head, limit, &wanted)?
    };
    let snapshots =
        shown.iter().map(|d| Snapshot::of(d, &told.tags.of(d.snapshot_id), true)).collect();
    let text = match (shown.is_empty(), args.graph) {
        (true, _) if args.grep.is_some() => "No snapshot has such a note\n".to_owned(),
        (true, _) => format!("No snapshots of {} yet\n", here.worktree),
        (false, true) => graph::draw(&shown, |descriptor| {
            let remark = told.remark(descriptor);
            let id = context.paint().yellow(&told.shorts.of(descriptor.snapshot_id));
            let when = ago(descriptor.created_at, context.clock().now().wall);
            format!("{id}  {when}  {}", on_one_line(&remark))
        }),
        (false, false) => told.table(context, &shown),
    };
    let mut done =
        Done::new(&History { worktree: here.worktree, snapshots }).with_text(text).paged();
    for warning in told.warnings {
        done = done.with_warning(warning);
    }
    Ok(done)
}

/// What is told beside the snapshots themselves.
struct Annotations {
    tags: Tags,
    shorts: ShortIds,
    heads: BTreeMap<SnapshotId, Vec<String>>,
    warnings: Vec<String>,
}

impl Annotations {
    fn remark(&self, descriptor: &Descriptor) -> String {
        let id = descriptor.snapshot_id;
        let heads = self.heads.get(&id).map_or(&[][..], Vec::as_slice);
        remark(descriptor, &self.tags.of(id), heads)
    }

    fn table(&self, context: &Context<'_>, shown: &[Descriptor]) -> String {
        let now = context.clock().now().wall;
        let rows: Vec<[String; 5]> = shown
            .iter()
            .map(|descriptor| {
                [
                    self.shorts.of(descriptor.snapshot_id),
                    ago(descriptor.created_at, now),
                    descriptor.content.files.to_string(),
                    size(descriptor.content.bytes),
                    self.remark(descriptor),
                ]
            })
            .collect();
        table(context.paint(), ["SNAPSHOT", "TIME", "FILES", "SIZE", "NOTE"], &rows)
    }
}

/// The newest of the line of one worktree: read from the head backwards and no further.
fn lineage(
    catalog: Catalog<'_>,
    head: Option<SnapshotId>,
    limit: usize,
    wanted: &dyn Fn(&Descriptor) -> bool,
) -> Result<Vec<Descriptor>, Failure> {
    let mut shown = Vec::new();
    for step in Lineage::line(catalog, head)? {
        if shown.len() == limit {
            break;
        }
        match step? {
            LineageStep::Ready(ready) if wanted(ready.descriptor()) => {
                shown.push(ready.descriptor().clone());
            }
            LineageStep::Ready(_) | LineageStep::Collected(_) => {}
        }
    }
    Ok(shown)
}

/// The newest of all, whatever they belong to.
fn all(
    catalog: Catalog<'_>,
    limit: usize,
    wanted: &dyn Fn(&Descriptor) -> bool,
    told: &mut Annotations,
) -> Result<Vec<Descriptor>, Failure> {
    let mut shown = Vec::new();
    for id in catalog.list()?.snapshots.into_iter().rev() {
        if shown.len() == limit {
            break;
        }
        match catalog.open(id) {
            Ok(ready) if wanted(ready.descriptor()) => shown.push(ready.descriptor().clone()),
            Ok(_) => {}
            Err(SnapshotError::Hidden { .. } | SnapshotError::Collected { .. }) => {}
            // One bad snapshot does not hide the others.
            Err(error @ SnapshotError::Corrupt { .. }) => told.warnings.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(shown)
}
