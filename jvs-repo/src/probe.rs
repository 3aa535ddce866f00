//! Does this filesystem keep the promises that locking rests on? Asked by doing
//! it, in a scratch directory that is removed again, and by looking at how the
//! filesystem is mounted.
//!
//! A probe can show that a promise is broken, never that it is always kept: a
//! mount that passes alone may still be stale against another one, so options
//! that are known to make it so are findings too.

pub(crate) mod mount;
mod promise;
mod second;
mod subject;

use std::io;

pub use mount::{Filesystem, JuiceFsMount, uploads_later};
pub use second::{Staleness, staleness};
pub use subject::{Promise, Setup, Subject};

use crate::code::{Code, Coded, code_of_io};
use crate::entropy::Entropy;
use crate::id::OpNonce;
use crate::layout;
use crate::next::Next;
use crate::store::{RepoPath, Store, remove_tree};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeSeverity {
    /// Worth knowing; nothing is lost.
    Warning,
    /// Locks here could lie. No repository is made on it.
    Unsafe,
}

impl ProbeSeverity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ProbeSeverity::Warning => "warning",
            ProbeSeverity::Unsafe => "unsafe",
        }
    }
}

/// One thing that the probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeFinding {
    /// How much it matters.
    pub severity: ProbeSeverity,
    /// Which promise or option.
    pub subject: Subject,
    /// What was seen and why it matters.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// All that a probe found.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// What kind of filesystem it is.
    pub filesystem: Filesystem,
    /// What is wrong or worth knowing, worst first.
    pub findings: Vec<ProbeFinding>,
}

impl ProbeReport {
    /// May a repository live here?
    pub fn verdict(&self) -> Result<(), UnsafeFilesystem> {
        let findings: Vec<_> =
            self.findings.iter().filter(|f| f.severity == ProbeSeverity::Unsafe).cloned().collect();
        if findings.is_empty() {
            return Ok(());
        }
        Err(UnsafeFilesystem { filesystem: Box::new(self.filesystem.clone()), findings })
    }

    /// The findings that do not forbid a repository.
    pub fn warnings(&self) -> impl Iterator<Item = &ProbeFinding> {
        self.findings.iter().filter(|f| f.severity == ProbeSeverity::Warning)
    }
}

/// Tests the filesystem that `dir` is on, in a scratch directory inside it.
/// `filesystem` is what [`Filesystem::at`] told of it.
pub fn probe(
    store: &dyn Store,
    dir: &RepoPath,
    filesystem: Filesystem,
    entropy: &dyn Entropy,
) -> Result<ProbeReport, ProbeError> {
    let scratch = Scratch::make(store, dir, entropy)?;
    let mut findings = promise::test_all(store, &scratch.path)?;
    scratch.remove()?;
    findings.extend(filesystem.findings());
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(ProbeReport { filesystem, findings })
}

/// A directory of our own, gone when this is.
struct Scratch<'s> {
    store: &'s dyn Store,
    path: RepoPath,
}

impl<'s> Scratch<'s> {
    fn make(
        store: &'s dyn Store,
        dir: &RepoPath,
        entropy: &dyn Entropy,
    ) -> Result<Self, ProbeError> {
        let path = layout::probe_scratch(dir, OpNonce::random(entropy));
        store.make_dir(&path).map_err(ProbeError::while_doing("make a scratch directory"))?;
        Ok(Scratch { store, path })
    }

    fn remove(self) -> Result<(), ProbeError> {
        let removed = remove_tree(self.store, &self.path);
        std::mem::forget(self);
        removed.map_err(ProbeError::while_doing("remove the scratch directory"))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // Only when a test failed on the way: that is the error to report.
        let _ = remove_tree(self.store, &self.path);
    }
}

/// The probe could not be carried out, so nothing is known.
#[derive(Debug, thiserror::Error)]
#[error("the filesystem could not be tested: cannot {doing}: {source}")]
pub struct ProbeError {
    doing: &'static str,
    source: io::Error,
}

impl ProbeError {
    pub(crate) fn while_doing(doing: &'static str) -> impl FnOnce(io::Error) -> ProbeError {
        move |source| ProbeError { doing, source }
    }

    /// What the operating system answered.
    pub fn io(&self) -> &io::Error {
        &self.source
    }
}

impl Coded for ProbeError {
    fn code(&self) -> Code {
        code_of_io(&self.source)
    }

    fn next(&self) -> Option<Next> {
        Some(
            match self.source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "choose a directory that you may write to; `findmnt -T PATH` shows how it is \
                     mounted"
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    return Some(Next::FreeSpace(Some("PATH".into())));
                }
                _ => "try again; `dmesg` may say what is wrong with the filesystem",
            }
            .into(),
        )
    }
}

/// A filesystem that breaks a promise.
#[derive(Debug, Clone, thiserror::Error)]
#[error("a lock on this filesystem ({}) could lie: {}", filesystem.kind, messages(findings))]
pub struct UnsafeFilesystem {
    /// What kind it is.
    pub filesystem: Box<Filesystem>,
    /// Which promises; at least one.
    pub findings: Vec<ProbeFinding>,
}

fn messages(findings: &[ProbeFinding]) -> String {
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    messages.join("; ")
}

impl Coded for UnsafeFilesystem {
    fn code(&self) -> Code {
        Code::UnsafeFilesystem
    }

    fn next(&self) -> Option<Next> {
        self.findings.first().map(|finding| finding.remedy.clone().into())
    }

    fn details(&self) -> Option<serde_json::Value> {
        let findings: Vec<_> = self
            .findings
            .iter()
            .map(|f| {
                serde_json::json!({
                    "subject": f.subject, "message": f.message, "remedy": f.remedy,
                })
            })
            .collect();
        Some(serde_json::json!({
            "filesystem": self.filesystem.kind,
            "mount_point": self.filesystem.mount_point,
            "findings": findings,
        }))
    }
}

#[cfg(test)]
mod liar;

#[cfg(test)]
mod tests {
    use super::liar::{Liar, Lie};
    use super::*;
    use crate::entropy::SystemEntropy;
    use crate::store::PosixStore;

    fn probed(lie: Lie) -> (ProbeReport, Vec<crate::store::DirEntry>) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = Liar::new(PosixStore::open(dir.path()).expect("open"), lie);
        let report =
            probe(&store, &RepoPath::root(), Filesystem::unknown(), &SystemEntropy).expect("ran");
        (report, store.list(&RepoPath::root()).expect("list"))
    }

    #[test]
    fn an_honest_filesystem_passes_and_nothing_is_left_on_it() {
        let (report, left) = probed(Lie::None);
        report.verdict().expect("safe");
        assert_eq!(left, []);
    }

    #[test]
    fn every_lie_is_found_out_and_nothing_is_left_behind() {
        for (lie, subject) in [
            (Lie::RenameOfNothingSucceeds, Promise::Rename),
            (Lie::RenameLeavesTheSource, Promise::Rename),
            (Lie::RenameIsNotApplied, Promise::Rename),
            (Lie::TwoRenamesOfOneSourceWin, Promise::RenameRace),
            (Lie::CreateNewOpensWhatIsThere, Promise::ExclusiveCreate),
            (Lie::RenameNewReplaces, Promise::RenameNew),
            (Lie::RenameNewIsUnsupported, Promise::RenameNew),
            (Lie::DirectoryReplacesFullDirectory, Promise::DirectoryRename),
            (Lie::FileSyncIsUnsupported, Promise::FsyncFile),
            (Lie::DirSyncIsUnsupported, Promise::FsyncDirectory),
            (Lie::NamesAreShort, Promise::LongNames),
            (Lie::NamesAreCut, Promise::LongNames),
            (Lie::ListingIsStale, Promise::Listing),
            (Lie::ListingShowsTwo, Promise::Listing),
        ] {
            let (report, left) = probed(lie);
            let error = report.verdict().expect_err("unsafe");
            assert_eq!(error.code(), Code::UnsafeFilesystem);
            let subjects: Vec<_> = error.findings.iter().map(|f| f.subject).collect();
            assert!(subjects.contains(&Subject::Promise(subject)), "{lie:?}: {subjects:?}");
            assert_eq!(error.next(), Some(Next::from(error.findings[0].remedy.clone())));
            assert!(left.is_empty(), "{lie:?} leaves {left:?}");
        }
    }

    #[test]
    fn an_answer_that_was_lost_is_not_taken_for_a_broken_promise() {
        // Metadata engines answer ENOENT for a rename that was applied.
        let (report, _) = probed(Lie::AppliedRenameSaysNotFound);
        report.verdict().expect("the register knows how to resolve this");
        assert!(
            report.warnings().any(|f| f.subject == Subject::Promise(Promise::LostAnswer)),
            "{:?}",
            report.findings
        );
    }

    #[test]
    fn a_filesystem_that_cannot_be_written_is_an_error_not_a_verdict() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = Liar::new(PosixStore::open(dir.path()).expect("open"), Lie::ReadOnly);
        let error = probe(&store, &RepoPath::root(), Filesystem::unknown(), &SystemEntropy)
            .expect_err("nothing is known");
        assert_eq!(error.code(), Code::Io);
        assert!(matches!(error.next(), Some(Next::Words(words)) if words.contains("findmnt")));
    }
}
