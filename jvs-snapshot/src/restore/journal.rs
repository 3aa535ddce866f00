//! What a restore in place does, as a process that has to finish it reads it.

use std::io;

use jvs_repo::id::hex;
use jvs_repo::layout;
use jvs_repo::record::patch::{self, PatchStep};
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};

use crate::chosen::ChosenPaths;
use crate::error::SnapshotError;
use crate::manifest::TreePath;
use crate::mutation::Rule;

/// One path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalStep {
    pub(super) path: TreePath,
    /// Which file is to be there; none if nothing is.
    pub(super) inode: Option<u64>,
    /// Was something there when this was planned?
    pub(super) replaces: bool,
}

/// All of them, and the directories that are given attributes afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreJournal {
    pub(super) steps: Vec<JournalStep>,
    pub(super) directories: Vec<TreePath>,
}

impl RestoreJournal {
    /// Writes it to `dir`, on disk when this returns.
    pub(super) fn write(&self, store: &dyn Store, dir: &RepoPath) -> Result<(), SnapshotError> {
        let (path, bytes) = (layout::journal(dir), self.to_bytes());
        let written = match bytes.len() > patch::LIMITS.size {
            // Nobody could finish what it says.
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => write_down(store, &path, &bytes),
        };
        written.map_err(SnapshotError::io(format!("write {path}")))
    }

    /// Its bytes on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        let steps = self.steps.iter().map(|step| PatchStep {
            path: hex(step.path.as_bytes()),
            inode: step.inode,
            replaces: step.replaces,
        });
        let directories = self.directories.iter().map(|path| hex(path.as_bytes()));
        patch::Patch::new(steps.collect(), directories.collect()).to_bytes()
    }

    /// Reads it.
    pub(crate) fn read(store: &dyn Store, dir: &RepoPath) -> Result<Self, SnapshotError> {
        let path = layout::journal(dir);
        let bytes = match store.read(&path, patch::LIMITS.size) {
            Ok(bytes) => bytes,
            // It is no file of acceptable size, which nobody wrote who restores.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(SnapshotError::Corrupt { path, reason: error.to_string() });
            }
            Err(error) => return Err(SnapshotError::io(format!("read {path}"))(error)),
        };
        Self::parse(&bytes).map_err(|reason| SnapshotError::Corrupt { path, reason })
    }

    /// What to do about the one in `dir` if nobody can finish what it says.
    pub fn advice_if_unusable(store: &dyn Store, dir: &RepoPath) -> Option<String> {
        match Self::read(store, dir) {
            Err(SnapshotError::Corrupt { .. }) => Some(Self::advice(dir)),
            _ => None,
        }
    }

    pub(super) fn advice(dir: &RepoPath) -> String {
        let aside = layout::quarantine();
        format!(
            "what it was to do is not known: compare the files with a snapshot, then move it away, \
             in the repository's root: mkdir -p {aside} && mv {dir} {aside}"
        )
    }

    /// What the bytes of one say. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let patch::Patch { steps, directories, .. } = patch::Patch::parse(bytes)?;
        let step = |step: PatchStep| {
            let PatchStep { path, inode, replaces } = step;
            match path_of(&path)? {
                path if path.is_root() => Err("the worktree itself is no step".to_owned()),
                path => Ok(JournalStep { path, inode, replaces }),
            }
        };
        let steps = steps.into_iter().map(step).collect::<Result<_, String>>()?;
        let directories = directories.into_iter().map(|text| path_of(&text));
        Ok(RestoreJournal { steps, directories: directories.collect::<Result<_, _>>()? })
    }

    /// The paths that are touched.
    pub(crate) fn chosen(&self) -> Option<ChosenPaths> {
        ChosenPaths::new(self.steps.iter().map(|step| step.path.clone()))
    }
}

fn write_down(store: &dyn Store, path: &RepoPath, bytes: &[u8]) -> io::Result<()> {
    sabotage!(Rule::JournalIsDurable => store.create_own(path)?.write_at(0, bytes));
    store.write_tmp(path, bytes)?;
    store.sync_dir(&path.parent())
}

fn path_of(text: &str) -> Result<TreePath, String> {
    let digits = text.as_bytes();
    let digit =
        |at: usize| (digits[at] as char).to_digit(16).filter(|_| !digits[at].is_ascii_uppercase());
    let byte = |at: usize| Some((digit(at)? * 16 + digit(at + 1)?) as u8);
    let bytes: Option<Vec<u8>> = if digits.len().is_multiple_of(2) {
        (0..digits.len()).step_by(2).map(byte).collect()
    } else {
        None
    };
    let bytes = bytes.ok_or_else(|| "a path is not in hexadecimal".to_owned())?;
    TreePath::new(bytes).map_err(|error| format!("a path: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_can_be_journalled_and_nothing_else_is_one() {
        for bytes in [&b""[..], b"a", b"a/\xff\n/b"] {
            let path = TreePath::new(bytes.to_vec()).expect("a path");
            assert_eq!(path_of(&hex(bytes)), Ok(path));
        }
        // A half byte, no digit, a capital, what leads out of the worktree.
        for text in ["6", "6g", "6A", &hex(b"../a"), &hex(b"/a"), &hex(b"a//b"), "+6"] {
            assert!(path_of(text).is_err(), "{text}");
        }
    }
}
