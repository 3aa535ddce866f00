//! Why a snapshot could not be read, named or built.

use std::io;

use jvs_lock::{LeaseError, RegisterError};
use jvs_repo::code::{Code, Layer, Layered, code_of_io};
use jvs_repo::id::SnapshotId;
use jvs_repo::json::RecordError;
use jvs_repo::name::TagName;
use jvs_repo::next::Next;
use jvs_repo::store::RepoPath;
use serde_json::json;

use crate::compare::CompareError;
use crate::gc::{ClockDoubt, Keep};

/// Why a snapshot could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Nothing goes by that name.
    #[error("there is no {wanted}")]
    NotFound {
        /// What was asked for.
        wanted: String,
    },
    /// The worktree has no snapshot yet.
    #[error("this worktree has no snapshot yet")]
    NoneYet,
    /// More than one snapshot goes by that name.
    #[error("'{wanted}' can mean more than one snapshot: {}", listed(candidates))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The first few of them.
        candidates: Vec<SnapshotId>,
    },
    /// It was never committed.
    #[error("snapshot {id} was never published")]
    Hidden {
        /// The snapshot's id.
        id: SnapshotId,
    },
    /// It was, and garbage collection removed it.
    #[error("snapshot {id} was removed by garbage collection")]
    Collected {
        /// The snapshot's id.
        id: SnapshotId,
    },
    /// Something else needs it.
    #[error("snapshot {id} is needed: {}", reasons(why))]
    Needed {
        /// The snapshot's id.
        id: SnapshotId,
        /// For what.
        why: Vec<Keep>,
    },
    /// What describes it is not what was written.
    #[error("{path} is not what was written: {reason}")]
    Corrupt {
        /// The file.
        path: RepoPath,
        /// What is wrong with it.
        reason: String,
    },
    /// Its ancestors do not add up.
    #[error("the lineage is broken{}: {problem}", below(*child))]
    Broken {
        /// Whose parent it is.
        child: Option<SnapshotId>,
        /// What is wrong.
        problem: String,
    },
    /// Its files are not those of its manifest.
    #[error("the files of snapshot {id} are not those of its manifest: {problem}")]
    Mismatch {
        /// The snapshot's id.
        id: SnapshotId,
        /// What differs.
        problem: String,
    },
    /// It has no such file.
    #[error("there is no '{path}' in snapshot {id}")]
    NoSuchPath {
        /// Which snapshot.
        id: SnapshotId,
        /// Which file.
        path: String,
    },
    /// Something in the worktree is in the way of a path.
    #[error("{path} {problem}")]
    InTheWay {
        /// The path concerned.
        path: String,
        /// What is wrong with it.
        problem: String,
        /// It would lead out of the worktree.
        leads_out: bool,
    },
    /// Something that is ignored would be replaced with the directory that it is in.
    #[error(
        "{path}{} would be replaced with the directory that holds it, and what is ignored is in \
         no snapshot",
        more_ignored(*count)
    )]
    IgnoredInside {
        /// The first of them.
        path: String,
        /// How many there are.
        count: usize,
    },
    /// What differs in paths that were named is more than a restore can write down before it
    /// begins, so that others could finish it.
    #[error(
        "too much differs in the paths to restore them as one: {paths} files and directories, more \
         than the {} MiB of a journal have room for",
        jvs_repo::record::patch::LIMITS.size >> 20
    )]
    TooMuchAtOnce {
        /// How many paths would be touched.
        paths: usize,
    },
    /// There is no tag of that name.
    #[error("there is no tag '{tag}'")]
    NoSuchTag {
        /// The tag.
        tag: TagName,
    },
    /// There is a tag of that name.
    #[error("tag '{tag}' already exists and points to {id}")]
    TagExists {
        /// The tag.
        tag: TagName,
        /// What it stands for.
        id: SnapshotId,
    },
    /// Files could not be read.
    #[error("{0}")]
    Unreadable(#[source] CompareError),
    /// A control file cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The lock stands in the way.
    #[error(transparent)]
    Lock(#[from] LeaseError),
    /// A value that cannot be used.
    #[error("{problem}")]
    Invalid {
        /// What is wrong with it.
        problem: String,
    },
    /// What would be removed because of its age, on a clock that is not believed.
    #[error(
        "nothing was removed: {count} snapshot{} would be old, but {doubt}",
        if *count == 1 { "" } else { "s" }
    )]
    ClockDoubted {
        /// Why not.
        doubt: ClockDoubt,
        /// How many snapshots are old on it.
        count: usize,
    },
    /// The mount keeps data that no other host can read yet.
    #[error("this JuiceFS mount {}", to_upload(*blocks, *certain))]
    Writeback {
        /// How many blocks, if it says.
        blocks: Option<u64>,
        /// Whether it is known that it acknowledges what it has not uploaded: its
        /// options can be hidden.
        certain: bool,
    },
    /// The filesystem failed or refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, as the beginning of a sentence.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl SnapshotError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| SnapshotError::Io { doing, source }
    }
}

fn listed(ids: &[SnapshotId]) -> String {
    ids.iter().map(SnapshotId::to_string).collect::<Vec<_>>().join(" ")
}

fn more_ignored(count: usize) -> String {
    match count {
        1 => " is ignored: it".to_owned(),
        many => format!(" and {} more are ignored: each", many - 1),
    }
}

fn reasons(why: &[Keep]) -> String {
    let each: Vec<String> = why.iter().map(Keep::to_string).collect();
    if each.is_empty() { "in use".to_owned() } else { each.join(", ") }
}

/// What would let it be forgotten: taking away the reason that holds it most.
fn once_unneeded(id: SnapshotId, why: &[Keep]) -> Next {
    if why.iter().any(|why| matches!(why, Keep::Head(_) | Keep::LastCommit(_))) {
        return Next::TakeNewerSnapshot;
    }
    match why.iter().all(|why| matches!(why, Keep::Tagged(_))) {
        true => Next::ForgetTagged(id),
        false => "once what uses it is over, run the same command again".into(),
    }
}

fn below(child: Option<SnapshotId>) -> String {
    child.map(|child| format!(" below {child}")).unwrap_or_default()
}

fn to_upload(blocks: Option<u64>, certain: bool) -> String {
    match (blocks, certain) {
        (Some(blocks), _) => format!("uses --writeback and still has {blocks} blocks to upload"),
        (None, true) => "uses --writeback and does not say what it has to upload".into(),
        (None, false) => {
            "says neither whether it uses --writeback nor what it has to upload".into()
        }
    }
}

impl From<RegisterError> for SnapshotError {
    fn from(error: RegisterError) -> Self {
        SnapshotError::Lock(error.into())
    }
}

impl Layered for SnapshotError {
    fn layer(&self) -> Layer<'_> {
        Layer::Own(match self {
            SnapshotError::Record(error) => return Layer::Below(error),
            SnapshotError::Lock(error) => return Layer::Below(error),
            SnapshotError::NotFound { .. }
            | SnapshotError::NoneYet
            | SnapshotError::Hidden { .. }
            | SnapshotError::Collected { .. }
            | SnapshotError::NoSuchTag { .. }
            | SnapshotError::NoSuchPath { .. } => Code::NotFound,
            SnapshotError::Ambiguous { .. }
            | SnapshotError::Invalid { .. }
            | SnapshotError::TooMuchAtOnce { .. } => Code::Usage,
            SnapshotError::InTheWay { leads_out: true, .. } => Code::PathEscape,
            SnapshotError::InTheWay { leads_out: false, .. }
            | SnapshotError::IgnoredInside { .. } => Code::Exists,
            SnapshotError::Corrupt { .. } => Code::DescriptorCorrupt,
            SnapshotError::Broken { .. } => Code::LineageBroken,
            SnapshotError::Mismatch { .. } => Code::PayloadHashMismatch,
            SnapshotError::TagExists { .. } => Code::Exists,
            SnapshotError::Unreadable(_) => Code::Io,
            SnapshotError::Needed { .. } => Code::SnapshotNeeded,
            SnapshotError::Writeback { .. } => Code::UnsafeFilesystem,
            SnapshotError::ClockDoubted { .. } => Code::ClockSkewExceeded,
            SnapshotError::Io { source, .. } => code_of_io(source),
        })
    }

    fn own_next(&self) -> Option<Next> {
        Some(match self {
            SnapshotError::NotFound { .. }
            | SnapshotError::Hidden { .. }
            | SnapshotError::Collected { .. } => Next::ListSnapshots,
            SnapshotError::NoSuchPath { id, .. } => Next::ListFilesOf(*id),
            SnapshotError::Needed { id, why } => once_unneeded(*id, why),
            SnapshotError::InTheWay { path, .. } => {
                format!("nothing was changed; move {path} away, or restore all of it").into()
            }
            SnapshotError::IgnoredInside { path, .. } => format!(
                "nothing was changed; without --atomic what is ignored stays where it is, or move \
                 {path} out of the worktree first"
            )
            .into(),
            SnapshotError::TooMuchAtOnce { .. } => {
                "nothing was changed; name what is in them, fewer paths at a time".into()
            }
            SnapshotError::NoneYet => Next::TakeFirstSnapshot,
            SnapshotError::Ambiguous { .. } => "give more of its id".into(),
            SnapshotError::Invalid { .. } => Next::ReadHelp,
            SnapshotError::ClockDoubted { .. } => Next::TrustClock,
            SnapshotError::Corrupt { .. } | SnapshotError::Mismatch { .. } => Next::VerifyAll,
            SnapshotError::Broken { .. } => Next::AskDoctor,
            SnapshotError::NoSuchTag { .. } => Next::ListTags,
            SnapshotError::TagExists { tag, .. } => Next::DeleteTag(tag.clone()),
            SnapshotError::Unreadable(CompareError::Walk(error)) => error.remedy().into(),
            SnapshotError::Unreadable(_) => {
                "make the files readable for this user, then run the same command again".into()
            }
            SnapshotError::Record(_) | SnapshotError::Lock(_) => return None,
            SnapshotError::Writeback { certain: true, .. }
            | SnapshotError::Writeback { blocks: Some(_), .. } => {
                "wait until they are uploaded, or mount without --writeback".into()
            }
            SnapshotError::Writeback { .. } => {
                "let this user read .stats at the root of the mount, or run the same command as \
                 root"
                    .into()
            }
            SnapshotError::Io { source, .. }
                if source.raw_os_error() == Some(rustix::io::Errno::NOSYS.raw_os_error()) =>
            {
                "this kernel or sandbox does not know a call that is needed; allow statx(2), \
                 openat2(2) and copy_file_range(2) in it"
                    .into()
            }
            SnapshotError::Io { source, .. } => Next::after_io(source),
        })
    }

    fn own_details(&self) -> Option<serde_json::Value> {
        match self {
            SnapshotError::Ambiguous { candidates, .. } => Some(json!({"candidates": candidates})),
            SnapshotError::Hidden { id } | SnapshotError::Collected { id } => {
                Some(json!({"snapshot_id": id}))
            }
            SnapshotError::Needed { id, why } => {
                Some(json!({"snapshot_id": id, "needed_for": why}))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::code::Coded;

    use super::*;
    use crate::manifest::TreePath;
    use crate::walk::WalkError;

    #[test]
    fn what_is_wrong_with_content_has_codes_of_its_own_and_a_next_command() {
        let id = SnapshotId { created_ms: 1, random: 1 };
        let problem = String::from("x");
        for (error, code) in [
            (SnapshotError::Mismatch { id, problem: problem.clone() }, Code::PayloadHashMismatch),
            (SnapshotError::Broken { child: Some(id), problem }, Code::LineageBroken),
            (SnapshotError::Writeback { blocks: Some(3), certain: true }, Code::UnsafeFilesystem),
            (SnapshotError::Needed { id, why: vec![Keep::InUse] }, Code::SnapshotNeeded),
        ] {
            assert_eq!(error.code(), code, "{error}");
            assert!(error.next().is_some(), "{error}");
        }
    }

    #[test]
    fn a_mount_point_in_the_path_of_a_comparison_is_not_called_unreadable() {
        let path = TreePath::new(b"d/m".to_vec()).expect("plain");
        let error = SnapshotError::Unreadable(CompareError::Walk(WalkError::MountPoint { path }));
        let next = Next::from("unmount d/m, or move it out of the worktree".to_owned());
        assert_eq!(error.next(), Some(next));
    }
}
