//! `jvs diff`: what differs, path by path.

mod lines;
pub(super) mod patch;
mod words;

use std::fmt::Write;
use std::path::Path;

use jvs_repo::layout;
use jvs_snapshot::compare::{Aspect, ComparedFiles, Difference};
use jvs_snapshot::ignore::IgnoreRules;
use jvs_snapshot::imprint::Change;
use jvs_snapshot::{Ready, diff};

use super::restore::UserPlace;
use super::snapshots::{counted, find, size};
use crate::answer::shown_path;
use crate::answer::tree::{self, Diff, Differences};
use crate::args::DiffArgs;
use crate::bar::Bar;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{Done, Paint};

pub(crate) fn run(context: &Context<'_>, args: &DiffArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let store = here.repo.store();
    let before = find(context, &here, &args.before)?;
    let after = args.after.as_ref().map(|name| find(context, &here, name)).transpose()?;
    let chosen = match args.paths.is_empty() {
        true => None,
        false => {
            let root = here.repo.payload(&here.worktree)?;
            UserPlace::find(context, &root)?.chosen(&args.paths)?
        }
    };
    let mut differences = match &after {
        Some(after) => diff::between(store, &before, after)?,
        None => {
            let bar = Bar::new(context, "comparing");
            let payload = here.repo.payload(&here.worktree)?;
            let trust = diff::trust(&before, &payload, &context.clock().boot_id());
            let ignore = IgnoreRules::of_config(&here.repo.config()?.snapshot.ignore);
            let files = ComparedFiles::of(&payload, &ignore).only(chosen.as_ref());
            diff::since(store, &before, files, trust, &bar)?
        }
    };
    differences.retain(Difference::is_of_substance);
    if let Some(chosen) = &chosen {
        let inside = |at: &Path| chosen.paths().any(|path| at.starts_with(path.as_path()));
        differences.retain(|difference| inside(difference.path.as_path()));
    }
    let answer = || Diff {
        differences: told(&differences),
        from: before.id(),
        to: after.as_ref().map(|ready| ready.id()),
    };
    if args.patch || args.word_diff {
        let files_of = |ready: &Ready| store.absolute(&layout::snapshot_payload(&ready.dir()));
        let after = match &after {
            Some(after) => files_of(after),
            None => here.repo.payload(&here.worktree)?,
        };
        let style = patch::Style::of(args.word_diff);
        let text = patches(context, style, &differences, &files_of(&before), &after)?;
        return Ok(context.done(answer).with_text(text).paged());
    }
    let mut text = lines(context.paint(), &differences, args.stat, usize::MAX);
    if args.stat {
        let (sum, bytes) = (sums(&differences), grown(&differences));
        let sign = if bytes < 0 { "-" } else { "+" };
        let _ = writeln!(text, "{}, {sign}{}", sum.text(), size(bytes.unsigned_abs()));
    }
    Ok(context.done(answer).with_text(text).paged())
}

/// The lines that differ; a path that differs otherwise, or also otherwise, by its name.
pub(super) fn patches(
    context: &Context<'_>,
    style: patch::Style,
    differences: &[Difference],
    before: &Path,
    after: &Path,
) -> Result<String, Failure> {
    let mut text = String::new();
    for difference in differences {
        let found = patch::of(context.paint(), style, difference, before, after)
            .map_err(|error| Stuck::new(format!("read {}", difference.path), error))?;
        let otherwise = difference.aspects.iter().any(|aspect| {
            !matches!(aspect, Aspect::Content | Aspect::Mtime | Aspect::Added | Aspect::Removed)
        });
        if found.is_empty() || otherwise {
            text += &lines(context.paint(), std::slice::from_ref(difference), false, 1);
        }
        text += &found;
    }
    Ok(text)
}

/// How many paths changed in which way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) added: u64,
    pub(super) removed: u64,
    pub(super) changed: u64,
}

impl Sums {
    pub(super) fn text(self) -> String {
        let Sums { added, removed, changed } = self;
        format!(
            "{}: {added} added, {removed} removed, {changed} changed",
            counted(added + removed + changed, "path")
        )
    }
}

pub(super) fn sums(differences: &[Difference]) -> Sums {
    let mut sums = Sums::default();
    for difference in differences {
        match way(difference) {
            Aspect::Added => sums.added += 1,
            Aspect::Removed => sums.removed += 1,
            _ => sums.changed += 1,
        }
    }
    sums
}

fn way(difference: &Difference) -> Aspect {
    match difference.aspects.first() {
        Some(aspect @ (Aspect::Added | Aspect::Removed)) => *aspect,
        _ => Aspect::Content,
    }
}

fn grown(differences: &[Difference]) -> i64 {
    let signed = |bytes: Option<u64>| i64::try_from(bytes.unwrap_or(0)).unwrap_or(i64::MAX);
    differences
        .iter()
        .fold(0, |sum: i64, d| sum.saturating_add(signed(d.after)).saturating_sub(signed(d.before)))
}

/// All that programs are told of differences.
pub(super) fn told(differences: &[Difference]) -> Differences {
    let Sums { added, removed, changed } = sums(differences);
    let told = differences.iter().map(|difference| {
        let (path, path_bytes) = shown_path(&difference.path.to_string());
        tree::DifferenceTold {
            change: match way(difference) {
                Aspect::Added => Change::Added,
                Aspect::Removed => Change::Removed,
                _ => Change::Changed,
            },
            aspects: difference.aspects.clone(),
            before_bytes: difference.before,
            after_bytes: difference.after,
            path,
            path_bytes,
        }
    });
    Differences { differences: told.collect(), added, removed, changed }
}

/// One line a path, at most so many.
pub(super) fn lines(paint: Paint, differences: &[Difference], stat: bool, most: usize) -> String {
    let mut text = String::new();
    for difference in differences.iter().take(most) {
        let path = &difference.path;
        let line = match way(difference) {
            Aspect::Added => paint.green(&format!("A {path}")),
            Aspect::Removed => paint.red(&format!("D {path}")),
            _ => {
                let aspects = difference.aspects.iter().filter(|a| **a != Aspect::Mtime);
                let aspects: Vec<&str> = aspects.map(|aspect| aspect.as_str()).collect();
                paint.yellow(&format!("M {path}")) + &format!(" ({})", aspects.join(", "))
            }
        };
        let sizes = match (stat, difference.before, difference.after) {
            (true, Some(before), Some(after)) if before != after => {
                format!("  {} -> {}", size(before), size(after))
            }
            (true, Some(bytes), _) | (true, None, Some(bytes)) => format!("  {}", size(bytes)),
            _ => String::new(),
        };
        let _ = writeln!(text, "{line}{sizes}");
    }
    if differences.len() > most {
        let _ = writeln!(text, "… and {} more: jvs diff", differences.len() - most);
    }
    text
}
