//! `jvs snapshot`: captures, publishes, and says what was captured.

use jvs_lock::{Lease, Locks};
use jvs_repo::config::{Config, Consistency};
use jvs_repo::id::SnapshotId;
use jvs_repo::name::TagName;
use jvs_snapshot::descriptor::{About, check_note};
use jvs_snapshot::ignore::IgnoreRules;
use jvs_snapshot::line::{self, LineClaim, LinePlace};
use jvs_snapshot::stage::Options;
use jvs_snapshot::take::{Request, SnapshotHold, Taken, take};
use jvs_snapshot::{Catalog, SnapshotError, Snapshots, tags};

use super::snapshots::{WorkHold, counted, hold, size};
use super::undo::deed::ends_with;
use crate::answer::snapshot as answer;
use crate::answer::undo::LineMoved;
use crate::args::SnapshotArgs;
use crate::bar::Bar;
use crate::context::{Context, Here};
use crate::fail::{Failure, WrongUsage};
use crate::render::Done;
use crate::session::Acting;
use crate::{git, interrupt};

pub(crate) fn run(context: &Context<'_>, args: &SnapshotArgs) -> Result<Done, Failure> {
    interrupt::listen();
    let here = context.here()?;
    let config = here.repo.config()?;
    let names = new_tags(&here, &args.tags)?;
    let acting = context.session(None)?;
    let locks = context.locks(here.repo.store(), config.lock, &acting)?;
    let mut held = hold(context, &locks, &here, &config, &acting)?;
    let wish = CaptureRequest {
        note: args.note.as_deref().or(args.message.as_deref()),
        tags: &names,
        options: options(args, &config),
        place: LinePlace::Next,
    };
    let taken = taken(context, &here, &locks, &acting, &mut held.as_hold(), &wish);
    let drift = held.give_back();
    let (taken, untagged) = taken?;
    let done = drift
        .into_iter()
        .chain(untagged)
        .chain(of_git(&here, &taken))
        .fold(told(context, &here, &taken, &names), Done::with_warning);
    Ok(done)
}

/// A snapshot with `note`, under a lease that is held already, and the words for it.
pub(super) fn under_lease(
    context: &Context<'_>,
    here: &Here,
    locks: &Locks<'_>,
    acting: &Acting,
    lease: &mut Lease<'_>,
    note: &str,
) -> Result<(answer::TakenTold, String), Failure> {
    let config = here.repo.config()?;
    let args = SnapshotArgs { note: Some(note.to_owned()), ..SnapshotArgs::default() };
    let options = options(&args, &config);
    let wish = CaptureRequest { note: Some(note), tags: &[], options, place: LinePlace::Next };
    let (taken, _) = taken(context, here, locks, acting, &mut SnapshotHold::Lease(lease), &wish)?;
    Ok((captured(&taken, &[]), text(context, here, &taken)))
}

/// Makes the line of a worktree that ends with `from` end with `to`: what says so is a
/// snapshot beside it, of the files as they are.
pub(super) fn move_line(
    context: &Context<'_>,
    here: &Here,
    from: Option<SnapshotId>,
    to: Option<SnapshotId>,
    note: &str,
) -> Result<Done, Failure> {
    let config = here.repo.config()?;
    let acting = context.session(None)?;
    let locks = context.locks(here.repo.store(), config.lock, &acting)?;
    let mut held = hold(context, &locks, here, &config, &acting)?;
    let mut options = options(&SnapshotArgs::default(), &config);
    if let WorkHold::Shared(_) = held {
        options.consistency = Consistency::BestEffort;
    }
    let place = LinePlace::Move { from, to };
    let wish = CaptureRequest { note: Some(note), tags: &[], options, place };
    let moved = moved(context, here, &locks, &acting, &mut held, &wish, (from, to));
    let drift = held.give_back();
    let head = to.map(|id| format!("The head of {} is {id} again\n", here.worktree));
    let none = || format!("{} has no snapshot again\n", here.worktree);
    let said = moved?;
    let data = || LineMoved { worktree: here.worktree.clone(), head: to, said_by: said };
    let done = context.done(data).with_text(head.unwrap_or_else(none));
    Ok(drift.into_iter().fold(done, Done::with_warning))
}

fn moved(
    context: &Context<'_>,
    here: &Here,
    locks: &Locks<'_>,
    acting: &Acting,
    held: &mut WorkHold<'_>,
    wish: &CaptureRequest<'_>,
    (from, to): (Option<SnapshotId>, Option<SnapshotId>),
) -> Result<SnapshotId, Failure> {
    let store = here.repo.store();
    let at = Snapshots::new(locks.seams(), store);
    let state = match held {
        WorkHold::Entered(work) => work.lease.fence()?.read()?,
        WorkHold::Shared(shared) => shared.fence().read()?,
    };
    ends_with(&here.worktree, line::end(at.catalog(), state.head)?, from)?;
    let claim = to.map(|to| LineClaim::new(&at, &here.worktree, &state, to)).transpose()?;
    let taken = taken(context, here, locks, acting, &mut held.as_hold(), wish);
    if let Some(claim) = claim {
        claim.give_up(&at);
    }
    Ok(taken?.0.ready.id())
}

/// What is to be captured, and under which words.
pub(super) struct CaptureRequest<'w> {
    pub(super) note: Option<&'w str>,
    pub(super) tags: &'w [TagName],
    pub(super) options: Options,
    pub(super) place: LinePlace,
}

fn options(args: &SnapshotArgs, config: &Config) -> Options {
    Options {
        engine: args.engine.unwrap_or(config.snapshot.engine),
        consistency: args.consistency.unwrap_or(config.snapshot.consistency),
        full: args.full,
        ignore: Some(IgnoreRules::of_config(&config.snapshot.ignore)),
        ..Options::default()
    }
}

/// Names that nothing has yet: asked before the work, so that a slip costs nothing.
fn new_tags(here: &Here, words: &[String]) -> Result<Vec<TagName>, Failure> {
    let mut names: Vec<TagName> = Vec::new();
    for word in words {
        let name: TagName = word.parse()?;
        tags::check_name(&name)?;
        if let Some(tag) = tags::read(here.repo.store(), &name)? {
            return Err(SnapshotError::TagExists { tag: name, id: tag.snapshot_id }.into());
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Takes a snapshot under a hold, and names it. What could not be named is told.
pub(super) fn taken(
    context: &Context<'_>,
    here: &Here,
    locks: &Locks<'_>,
    acting: &Acting,
    hold: &mut SnapshotHold<'_, '_>,
    wish: &CaptureRequest<'_>,
) -> Result<(Taken, Vec<String>), Failure> {
    if let Some(problem) = wish.note.and_then(|note| check_note(note).err()) {
        return Err(WrongUsage::new(problem, "a note is text of up to 4096 bytes").into());
    }
    let store = here.repo.store();
    let source = here.repo.payload(&here.worktree)?;
    let session = &acting.session;
    let about = About {
        created_at: context.clock().now().wall,
        note: wish.note.map(str::to_owned).filter(|note| !note.is_empty()),
        tags: wish.tags.to_vec(),
        holder_id: session.holder_id(),
        session_id: session.id().as_str().to_owned(),
        line: None,
    };
    let options = wish.options.clone();
    let request = Request { source: &source, about, options, place: wish.place };
    let at = Snapshots::new(locks.seams(), store);
    let bar = Bar::new(context, "looking");
    let taken = take(&at, hold, request, &bar)?;
    drop(bar);
    let mut untagged = Vec::new();
    for name in wish.tags {
        if let Err(error) = tags::make(locks, name, &taken.ready) {
            untagged.push(format!("the snapshot was published but not tagged '{name}': {error}"));
        }
    }
    Ok((taken, untagged))
}

/// Whether git's own directory is in a snapshot for the first time.
fn of_git(here: &Here, taken: &Taken) -> Option<String> {
    let store = here.repo.store();
    let parent = taken.ready.descriptor().parent;
    let parent = parent.and_then(|id| Catalog::new(store).open(id).ok());
    git::captured(store, &taken.ready, parent.as_ref())
}

fn told(context: &Context<'_>, here: &Here, taken: &Taken, names: &[TagName]) -> Done {
    context.done(|| captured(taken, names)).with_text(text(context, here, taken))
}

/// What people are told of a snapshot just taken.
fn text(context: &Context<'_>, here: &Here, taken: &Taken) -> String {
    let ready = &taken.ready;
    let d = ready.descriptor();
    let id = context.paint().bold(&ready.id().to_string());
    let mut text = format!(
        "Snapshot {id} of {}: {}, {} ({} engine)\n",
        here.worktree,
        counted(d.content.files, "file"),
        size(d.content.bytes),
        d.content.engine
    );
    if let Some(risk) = &d.content.risk {
        text += &format!("risk: {risk}\n");
    }
    for loss in &d.content.degraded {
        text += &format!("degraded: {} of {}\n", loss.what, counted(loss.count, "path"));
    }
    text
}

/// All that programs are told of a snapshot just taken.
fn captured(taken: &Taken, names: &[TagName]) -> answer::TakenTold {
    let names: Vec<&TagName> = names.iter().collect();
    let phases = taken.phases.iter().map(|(phase, ms)| (phase.as_str().to_owned(), *ms));
    answer::TakenTold {
        snapshot: answer::Snapshot::of(taken.ready.descriptor(), &names, true),
        reused: taken.reused,
        parent_ignored: taken.parent_ignored.clone(),
        phases_ms: phases.collect(),
    }
}
