//! One snapshot from beginning to end: bind, capture while the lease is kept
//! alive, seal, publish.

use std::path::Path;

use jvs_lock::{Fence, Lease, LeaseError, Shared};
use jvs_repo::code::{Code, Layer, Layered};
use jvs_repo::config::Consistency;
use jvs_repo::next::Next;
use jvs_repo::store::RepoPath;

use crate::descriptor::About;
use crate::error::SnapshotError;
use crate::line::{self, LinePlace};
use crate::nobody_else::bystanders;
use crate::progress::{CapturePhase, Progress};
use crate::publish::{Draft, PublishError, Snapshots, Staged};
use crate::ready::Ready;
use crate::stage::{CaptureError, Captured, Options, Parent, Source, capture};
use crate::under_lease::while_renewing;
use crate::writeback::wait_for_upload;

/// How often a snapshot is put on top of another that came first.
const REBASES: u32 = 16;

/// What a snapshot is taken under.
pub enum SnapshotHold<'h, 'r> {
    /// A lease, which is renewed meanwhile.
    Lease(&'h mut Lease<'r>),
    /// Nobody's: the worktree is shared.
    Shared(&'h mut Shared<'r>),
}

impl<'r> SnapshotHold<'_, 'r> {
    fn fence(&mut self) -> Result<Fence<'_, 'r>, LeaseError> {
        match self {
            SnapshotHold::Lease(lease) => lease.fence(),
            SnapshotHold::Shared(shared) => Ok(shared.fence()),
        }
    }
}

/// What is to be taken.
pub struct Request<'q> {
    /// The worktree's files.
    pub source: &'q Path,
    /// What only the caller knows.
    pub about: About,
    /// How to capture.
    pub options: Options,
    /// Where it is to stand in the line.
    pub place: LinePlace,
}

/// A snapshot that was taken.
#[derive(Debug)]
pub struct Taken {
    /// It, visible.
    pub ready: Ready,
    /// Files that are as in the parent and were not read.
    pub reused: u64,
    /// Why the parent was of no use, if it was not.
    pub parent_ignored: Option<String>,
    /// Milliseconds per phase, in order; of the last attempt.
    pub phases: Vec<(CapturePhase, u64)>,
}

/// Why none was taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// The files could not be captured.
    #[error(transparent)]
    Capture(CaptureError),
    /// It could not be bound, written or moved.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// It was not published. Already thrown away if that is certain.
    #[error(transparent)]
    NotPublished(Box<PublishError<()>>),
    /// Each time it was to be published another one had come first. It was thrown away.
    #[error("the snapshot was not published: other snapshots of this worktree keep coming first")]
    Overtaken,
    /// A quiet worktree cannot be promised where anyone may write.
    #[error("a shared worktree has no single writer, so its snapshots cannot be quiesced")]
    SharedIsNeverQuiet,
}

impl Layered for TakeError {
    fn layer(&self) -> Layer<'_> {
        match self {
            TakeError::Capture(error) => Layer::Below(error),
            TakeError::Snapshot(error) => Layer::Below(error),
            TakeError::NotPublished(error) => Layer::Below(&**error),
            TakeError::Overtaken => Layer::Own(Code::LockConflict),
            TakeError::SharedIsNeverQuiet => Layer::Own(Code::ConsistencyUnavailable),
        }
    }

    fn own_next(&self) -> Option<Next> {
        match self {
            TakeError::Overtaken => Some("let the others finish, then take it again".into()),
            TakeError::SharedIsNeverQuiet => Some(Next::TakeUnquiet),
            _ => None,
        }
    }
}

impl From<LeaseError> for TakeError {
    fn from(error: LeaseError) -> Self {
        TakeError::Snapshot(error.into())
    }
}

/// Takes a snapshot of `request.source` under `hold`.
pub fn take(
    at: &Snapshots<'_>,
    hold: &mut SnapshotHold<'_, '_>,
    request: Request<'_>,
    progress: &dyn Progress,
) -> Result<Taken, TakeError> {
    let shared = matches!(hold, SnapshotHold::Shared(_));
    if shared && request.options.consistency == Consistency::Quiesced {
        return Err(TakeError::SharedIsNeverQuiet);
    }
    let draft = at.begin(&hold.fence()?)?;
    let captured = match capture_under(at, hold, &draft, request.source, request.options, progress)
    {
        Ok(captured) => captured,
        Err(error) => {
            // Best effort: what stays is known by its name to be garbage once
            // the token moves.
            let _ = draft.discard();
            return Err(error);
        }
    };
    let Captured { content, reused, parent_ignored, phases } = captured;
    let about = match line::on_top_of(at.catalog(), draft.bound().parent, request.place) {
        Ok(Ok(line)) => About { line, ..request.about },
        answer => {
            let _ = draft.discard();
            return Err(answer.map_or_else(TakeError::from, |_| TakeError::Overtaken));
        }
    };
    let staged = draft.seal(about, content).map_err(|failed| {
        let _ = failed.draft.discard();
        SnapshotError::Io { doing: "complete the snapshot".into(), source: failed.source }
    })?;
    let bound_to_one_head = matches!(request.place, LinePlace::Move { .. });
    let ready = publish(hold, staged, bound_to_one_head, |hold| upload_under(at, hold, progress))?;
    Ok(Taken { ready, reused, parent_ignored, phases })
}

/// Captures into the draft's directory, with the lease kept alive meanwhile.
fn capture_under(
    at: &Snapshots<'_>,
    hold: &mut SnapshotHold<'_, '_>,
    draft: &Draft<'_>,
    source: &Path,
    options: Options,
    progress: &dyn Progress,
) -> Result<Captured, TakeError> {
    let (clock, trees) = (at.seams.clock, at.trees);
    let staging = trees.absolute(&draft.dir());
    // A parent that cannot be read makes the capture slower, not impossible.
    let parent =
        draft.bound().parent.and_then(|id| at.catalog().open(id).ok()).map(|ready| Parent {
            directory: trees.absolute(&ready.dir()),
            manifest_hash: ready.descriptor().content.manifest_hash,
            boot_id: ready.descriptor().content.boot_id.clone(),
        });
    let options = Options { bystanders: bystanders(trees), ..options };
    let source = Source::open(source).map_err(TakeError::Capture)?;
    let work = |progress: &dyn Progress| {
        capture(&source, &staging, parent.as_ref(), &options, clock, progress)
            .map_err(TakeError::Capture)
    };
    let SnapshotHold::Lease(lease) = hold else { return work(progress) };
    if source.is_remote() {
        // Otherwise its last line would look like somebody's unwritten work.
        lease.rest_the_log();
    }
    while_renewing(lease, clock, progress, work)
}

/// Waits until all that was written, the descriptor included, can be read on other
/// hosts.
fn upload_under(
    at: &Snapshots<'_>,
    hold: &mut SnapshotHold<'_, '_>,
    progress: &dyn Progress,
) -> Result<(), TakeError> {
    let clock = at.seams.clock;
    let root = at.trees.absolute(&RepoPath::root());
    let wait =
        |progress: &dyn Progress| Ok(wait_for_upload(&root, clock, &|| progress.keep_going())?);
    progress.phase(CapturePhase::Sync);
    match hold {
        SnapshotHold::Lease(lease) => while_renewing(lease, clock, progress, wait),
        SnapshotHold::Shared(_) => wait(progress),
    }
}

/// Publishes, on top of whatever snapshots of the same hold came first unless it is bound
/// to one head, once it is uploaded.
fn publish(
    hold: &mut SnapshotHold<'_, '_>,
    staged: Staged<'_>,
    bound_to_one_head: bool,
    upload: impl Fn(&mut SnapshotHold<'_, '_>) -> Result<(), TakeError>,
) -> Result<Ready, TakeError> {
    let mut staged = Box::new(staged);
    for _ in 0..REBASES {
        let uploaded = upload(hold);
        let fence = match uploaded.and_then(|()| Ok(hold.fence()?)) {
            Ok(fence) => fence,
            Err(error) => {
                let _ = staged.discard();
                return Err(error);
            }
        };
        let error = match staged.publish(fence) {
            Ok(ready) => return Ok(ready),
            Err(error) => error,
        };
        staged = match error {
            PublishError::HeadMoved { staged: moved, .. } if bound_to_one_head => {
                staged = moved;
                break;
            }
            PublishError::HeadMoved { staged: moved, .. } => {
                let rebased = hold.fence().map_err(SnapshotError::from);
                match rebased.map(|fence| moved.rebase(&fence)) {
                    Ok(Ok(rebased)) => Box::new(rebased),
                    Ok(Err(failed)) => {
                        let _ = failed.staged.map(|staged| staged.discard());
                        return Err(failed.error.into());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            error => return Err(not_published(error)),
        };
    }
    let _ = staged.discard();
    Err(TakeError::Overtaken)
}

fn not_published(error: PublishError<Box<Staged<'_>>>) -> TakeError {
    let (staged, error) = error.hand_back();
    if let Some(staged) = staged {
        let _ = staged.discard();
    }
    TakeError::NotPublished(Box::new(error))
}
