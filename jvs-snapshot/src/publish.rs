//! From captured files to a visible snapshot, in the order of the protocol:
//! build under a name that says whose it is, make it durable, move it into
//! place unseen, commit by moving the head, and only then show it.
//!
//! Must not know how files are captured or how a lock is decided. The commit is
//! the lock's rename; what is around it is here, one step after the other.

use std::fmt;
use std::io;

use jvs_lock::{CommitError, Fence, LeaseError, RegisterError, Seams, State};
use jvs_repo::code::{Code, Coded, Layer, Layered};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use crate::aside::{delete_dir, move_dir};
use crate::catalog::Catalog;
use crate::descriptor::{About, Content, Descriptor, LineStanding};
use crate::error::SnapshotError;
use crate::hash::Digest;
use crate::line::{self, LinePlace};
use crate::mutation::Rule;
use crate::ready::{self, Ready};
use crate::shown::show;
use crate::staging_name::{SnapshotBound, StagingName};
use crate::trees::Trees;

/// The snapshots of a repository, to add to.
#[derive(Clone, Copy)]
pub struct Snapshots<'r> {
    pub(crate) seams: Seams<'r>,
    pub(crate) trees: &'r dyn Trees,
}

impl<'r> Snapshots<'r> {
    /// Works through these seams. Touches nothing.
    pub fn new(seams: Seams<'r>, trees: &'r dyn Trees) -> Self {
        Snapshots { seams, trees }
    }

    /// The snapshots to look at.
    pub fn catalog(&self) -> Catalog<'r> {
        Catalog::new(self.seams.store)
    }

    /// Binds a new snapshot to the head and token of now, and makes the
    /// directory in which it is built. The head is made visible first if it is
    /// not, so that every ancestor of a head always is.
    pub fn begin(&self, fence: &Fence<'_, '_>) -> Result<Draft<'r>, SnapshotError> {
        let bound = self.bind(fence)?;
        let dir = StagingName::Snapshot(bound.clone()).path();
        self.seams
            .store
            .ensure_dir(&dir)
            .map_err(SnapshotError::io("make a directory for the snapshot"))?;
        Ok(Draft { at: *self, bound })
    }

    fn bind(&self, fence: &Fence<'_, '_>) -> Result<SnapshotBound, SnapshotError> {
        let state = fence.read()?;
        self.show_head(fence, &state)?;
        let now = self.seams.clock.now().wall;
        Ok(SnapshotBound {
            worktree: fence.worktree().clone(),
            term: state.term(),
            parent: state.head,
            generation: state.generation,
            id: SnapshotId::fresh(now.0, self.seams.entropy),
        })
    }

    /// The head is shown before another snapshot is begun on top of it.
    fn show_head(&self, fence: &Fence<'_, '_>, state: &State) -> Result<(), SnapshotError> {
        sabotage!(Rule::HeadShownFirst => Ok(()));
        self.help(fence, state)
    }

    /// Where a snapshot stands in the line once it is bound to another head.
    fn line_again(&self, bound: &SnapshotBound, about: About) -> Result<About, SnapshotError> {
        let place = match about.line {
            Some(LineStanding { aside: true, .. }) => LinePlace::Aside,
            _ => LinePlace::Next,
        };
        let line = line::on_top_of(self.catalog(), bound.parent, place)?;
        // Only what was to be moved from elsewhere has no place.
        Ok(About { line: line.unwrap_or_default(), ..about })
    }

    /// Makes the head visible if its publisher did not come to it. `state` was
    /// READ through `fence`.
    pub fn help(&self, fence: &Fence<'_, '_>, state: &State) -> Result<(), SnapshotError> {
        let Some(head) = state.head else { return Ok(()) };
        let stuck = SnapshotError::io("look at the head");
        if self.catalog().is_ready(head).map_err(stuck)? {
            return Ok(());
        }
        make_commit_durable(fence)?;
        show(self.seams, head).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => SnapshotError::Broken {
                child: None,
                problem: format!("the head {head} has nothing to make it visible with"),
            },
            _ => SnapshotError::Io { doing: format!("make the head {head} visible"), source },
        })
    }
}

/// A commit is durable before somebody else shows what was committed, whose publisher may
/// have died before it saw to that: READY must not survive a power cut that it does not.
fn make_commit_durable(fence: &Fence<'_, '_>) -> Result<(), RegisterError> {
    sabotage!(Rule::DurableBeforeHelped => Ok(()));
    fence.sync()
}

/// A snapshot being built: a directory to capture into.
#[must_use = "a draft that is dropped stays on disk until it is collected"]
pub struct Draft<'r> {
    at: Snapshots<'r>,
    bound: SnapshotBound,
}

impl fmt::Debug for Draft<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Draft").field(&self.bound).finish()
    }
}

impl<'r> Draft<'r> {
    /// What it is bound to.
    pub fn bound(&self) -> &SnapshotBound {
        &self.bound
    }

    /// Where to capture to. Everything in it must be on disk before
    /// [`Draft::seal`]: files, and the directories that name them.
    pub fn dir(&self) -> RepoPath {
        StagingName::Snapshot(self.bound.clone()).path()
    }

    /// Completes what was captured and moves it to where snapshots are, still
    /// unseen.
    pub fn seal(self, about: About, content: Content) -> Result<Staged<'r>, SealError<'r>> {
        let descriptor = Descriptor::new(&self.bound, about, content);
        match self.complete(&descriptor) {
            Ok(checksum) => Ok(Staged { at: self.at, bound: self.bound, descriptor, checksum }),
            Err(source) => Err(SealError { draft: Box::new(self), source }),
        }
    }

    fn complete(&self, descriptor: &Descriptor) -> io::Result<Digest> {
        let (seams, dir) = (self.at.seams, self.dir());
        let (bytes, checksum) = descriptor.seal();
        let ready = ready::bytes(self.bound.id, checksum);
        for (path, bytes) in
            [(layout::descriptor(&dir), &bytes), (layout::ready_staged(&dir), &ready)]
        {
            write_durably(seams, &dir, &path, bytes)?;
        }
        move_dir(seams, &dir, &layout::snapshot(self.bound.id))?;
        Ok(checksum)
    }

    /// Gives it up.
    pub fn discard(self) -> io::Result<()> {
        delete_dir(&self.at, &self.dir())?;
        // Its last move may have been applied without an answer.
        delete_dir(&self.at, &layout::snapshot(self.bound.id))
    }
}

/// What a snapshot promises is durable before it is committed.
fn write_durably(
    seams: Seams<'_>,
    dir: &RepoPath,
    path: &RepoPath,
    bytes: &[u8],
) -> io::Result<()> {
    sabotage!(Rule::DurableBeforeCommitted => seams.store.create_new(path)?.write_at(0, bytes));
    let tmp = layout::snapshot_tmp(dir, OpNonce::random(seams.entropy));
    seams.store.write_over(&tmp, path, bytes)
}

/// A draft that could not be completed, handed back.
#[derive(Debug)]
pub struct SealError<'r> {
    /// The draft, to discard or to try again with.
    pub draft: Box<Draft<'r>>,
    /// How it failed.
    pub source: io::Error,
}

/// A snapshot that is complete, durable and in its place, and that nobody sees.
#[must_use = "a staged snapshot that is dropped is never seen"]
pub struct Staged<'r> {
    at: Snapshots<'r>,
    bound: SnapshotBound,
    descriptor: Descriptor,
    checksum: Digest,
}

impl fmt::Debug for Staged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Staged").field(&self.bound.id).finish()
    }
}

/// Why a staged snapshot is not visible. While that is certain it is handed
/// back, as `S`, to go on with or to discard.
#[derive(Debug, thiserror::Error)]
#[must_use]
pub enum PublishError<S> {
    /// The lock was lost: it can never be published.
    #[error("the snapshot was not published: {error}")]
    Fenced {
        /// The snapshot.
        staged: S,
        /// How it was lost.
        #[source]
        error: LeaseError,
    },
    /// Another snapshot of the same hold came first. [`Staged::rebase`] puts
    /// this one on top of it.
    #[error("the snapshot was not published: the head is {}", head_now(*current))]
    HeadMoved {
        /// The snapshot.
        staged: S,
        /// The head now.
        current: Option<SnapshotId>,
    },
    /// It failed, and certainly was not published.
    #[error("the snapshot was not published: {error}")]
    NotPublished {
        /// The snapshot.
        staged: S,
        /// The underlying error.
        #[source]
        error: RegisterError,
    },
    /// It may have been published, or may yet be: everything was left in place.
    #[error("it is not known whether snapshot {id} was published: {error}")]
    OutcomeUnknown {
        /// The snapshot's id.
        id: SnapshotId,
        /// The last answer.
        #[source]
        error: RegisterError,
    },
    /// It is committed, and a process that next works on the worktree will show it.
    #[error("snapshot {id} is committed but could not be made visible: {source}")]
    NotYetVisible {
        /// The snapshot's id.
        id: SnapshotId,
        /// Why it could not be shown now.
        source: io::Error,
    },
}

fn head_now(head: Option<SnapshotId>) -> String {
    head.map_or_else(|| "gone".to_owned(), |head| format!("now {head}"))
}

impl<S: fmt::Debug> Layered for PublishError<S> {
    fn layer(&self) -> Layer<'_> {
        match self {
            PublishError::NotPublished { error, .. } => Layer::Below(error),
            PublishError::Fenced { .. } | PublishError::HeadMoved { .. } => {
                Layer::Own(Code::FencingMismatch)
            }
            PublishError::OutcomeUnknown { .. } | PublishError::NotYetVisible { .. } => {
                Layer::Own(Code::OutcomeUnknown)
            }
        }
    }

    fn own_next(&self) -> Option<Next> {
        match self {
            PublishError::NotPublished { .. } => None,
            PublishError::Fenced { error, .. } => error.next(),
            PublishError::HeadMoved { .. } => Some("take the snapshot again".into()),
            PublishError::OutcomeUnknown { id, .. } | PublishError::NotYetVisible { id, .. } => {
                Some(Next::SeeSnapshotOnceMounted(*id))
            }
        }
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            PublishError::Fenced { error, .. } => error.details(),
            PublishError::NotPublished { .. } | PublishError::HeadMoved { .. } => None,
            PublishError::OutcomeUnknown { id, .. } | PublishError::NotYetVisible { id, .. } => {
                Some(serde_json::json!({"snapshot_id": id}))
            }
        }
    }
}

impl<S> PublishError<S> {
    /// The snapshot, if it certainly was not published, and the error without it.
    pub fn hand_back(self) -> (Option<S>, PublishError<()>) {
        match self {
            PublishError::Fenced { staged, error } => {
                (Some(staged), PublishError::Fenced { staged: (), error })
            }
            PublishError::HeadMoved { staged, current } => {
                (Some(staged), PublishError::HeadMoved { staged: (), current })
            }
            PublishError::NotPublished { staged, error } => {
                (Some(staged), PublishError::NotPublished { staged: (), error })
            }
            PublishError::OutcomeUnknown { id, error } => {
                (None, PublishError::OutcomeUnknown { id, error })
            }
            PublishError::NotYetVisible { id, source } => {
                (None, PublishError::NotYetVisible { id, source })
            }
        }
    }
}

impl<'r> Staged<'r> {
    /// Its id.
    pub fn id(&self) -> SnapshotId {
        self.bound.id
    }

    /// What it is bound to.
    pub fn bound(&self) -> &SnapshotBound {
        &self.bound
    }

    /// Commits it and makes it visible.
    ///
    /// ```compile_fail,E0382
    /// use jvs_lock::Fence;
    /// use jvs_snapshot::Staged;
    /// fn twice(staged: Staged<'_>, one: Fence<'_, '_>, other: Fence<'_, '_>) {
    ///     let _ = staged.publish(one);
    ///     let _ = staged.publish(other); // it was published or handed back
    /// }
    /// ```
    pub fn publish(self, mut fence: Fence<'_, '_>) -> Result<Ready, PublishError<Box<Staged<'r>>>> {
        let SnapshotBound { ref worktree, term, id, .. } = self.bound;
        if !self.is_begun_under(&fence) {
            let current = fence.token();
            let worktree = worktree.clone();
            let error = LeaseError::Fenced { worktree, token: term.token, current };
            return Err(PublishError::Fenced { staged: Box::new(self), error });
        }
        if let Err(error) = self.commit(&mut fence) {
            return Err(self.not_committed(error));
        }
        match show(self.at.seams, id) {
            Ok(()) => Ok(Ready::seen(self.descriptor, self.checksum)),
            Err(source) => Err(PublishError::NotYetVisible { id, source }),
        }
    }

    /// Is `fence` of the hold that it was begun under? Another one, be it of the same
    /// session, is not: a steal and a release may lie between the two.
    fn is_begun_under(&self, fence: &Fence<'_, '_>) -> bool {
        sabotage!(Rule::OneToken => *fence.worktree() == self.bound.worktree);
        *fence.worktree() == self.bound.worktree && fence.term() == self.bound.term
    }

    /// A snapshot is shown after this, never before.
    fn commit(&self, fence: &mut Fence<'_, '_>) -> Result<State, CommitError> {
        sabotage!(Rule::CommittedBeforeShown => {
            crate::sabotage::show_then_commit(&self.at, &self.bound, fence)
        });
        let catalog = self.at.catalog();
        fence.commit(self.bound.parent, self.id(), &|| catalog.is_shown(self.id()))
    }

    fn not_committed(self, error: CommitError) -> PublishError<Box<Staged<'r>>> {
        let (id, staged) = (self.id(), Box::new(self));
        let error = match error {
            CommitError::HeadMoved { current, .. } => {
                return PublishError::HeadMoved { staged, current };
            }
            CommitError::Lease(LeaseError::Register(error)) => error,
            CommitError::Lease(error) => return PublishError::Fenced { staged, error },
        };
        match error {
            RegisterError::Io { .. } | RegisterError::Read(_) => {
                PublishError::NotPublished { staged, error }
            }
            // A stale mount refused what the metadata engine may have done.
            RegisterError::StaleMount { .. }
            | RegisterError::OutcomeUnknown { .. }
            | RegisterError::NotDurable { .. }
            | RegisterError::Internal { .. } => PublishError::OutcomeUnknown { id, error },
        }
    }

    /// The id that it gets on top of another head: that of `bound`, which is new. A process that
    /// judged the old one to be garbage must not find the new one there.
    fn id_on_top(&self, bound: &SnapshotBound) -> SnapshotId {
        sabotage!(Rule::RebasedUnderANewId => self.id());
        bound.id
    }

    /// Puts the same files on top of the head of now.
    pub fn rebase(self, fence: &Fence<'_, '_>) -> Result<Staged<'r>, RebaseError<'r>> {
        let bound = match self.at.bind(fence) {
            Ok(bound) => bound,
            Err(error) => return Err(RebaseError { staged: Some(Box::new(self)), error }),
        };
        let id = self.id_on_top(&bound);
        let draft = Draft { at: self.at, bound: SnapshotBound { id, ..bound } };
        let from = layout::snapshot(self.id());
        if let Err(source) = move_dir(self.at.seams, &from, &draft.dir()) {
            let error = SnapshotError::Io { doing: "put the snapshot on top".into(), source };
            return Err(RebaseError { staged: Some(Box::new(self)), error });
        }
        let (about, content) = self.descriptor.into_about_and_content();
        let about = match self.at.line_again(&draft.bound, about) {
            Ok(about) => about,
            Err(error) => {
                let _ = draft.discard();
                return Err(RebaseError { staged: None, error });
            }
        };
        draft.seal(about, content).map_err(|SealError { draft, source }| {
            let _ = draft.discard();
            let error = SnapshotError::Io { doing: "put the snapshot on top".into(), source };
            RebaseError { staged: None, error }
        })
    }

    /// Gives it up. Only for one that certainly was not published.
    pub fn discard(self) -> io::Result<()> {
        delete_dir(&self.at, &layout::snapshot(self.id()))
    }
}

/// A snapshot that could not be put on top of another head.
#[derive(Debug)]
pub struct RebaseError<'r> {
    /// The snapshot as it was, if it still is.
    pub staged: Option<Box<Staged<'r>>>,
    /// What went wrong.
    pub error: SnapshotError,
}
