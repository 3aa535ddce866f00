//! As above, of what a capture may believe. The files are real ones here: no
//! simulated world has pages that are mapped, or two users.

/// A rule of capturing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptureRule {
    /// Set-user and set-group bits are kept only for the original's owner and group.
    SetIdForItsOwner,
    /// What was stored into mapped files is written out before it is copied.
    WrittenOutFirst,
    /// What a JuiceFS mount holds is handed in before it is cloned.
    HandedInFirst,
    /// What was stored into mapped files has arrived at the mount before that.
    ArrivedFirst,
    /// What was written during an attempt is handed in before the next one looks.
    HandedInBetween,
    /// It is not asked about each file only if nobody else has one open.
    NobodyElse,
    /// Change times on a disk are believed within the boot that recorded them.
    WithinTheBoot,
    /// Change times of files in memory are never believed.
    NeverInMemory,
    /// What decides about removing files reads them.
    RemovedByContent,
    /// A clone in a snapshot is believed only if it has the change time of its original.
    ClonesHaveTheirTimes,
    /// What is ignored stays where it is, whatever a restore in place removes.
    IgnoredStays,
}

impl CaptureRule {
    /// All rules.
    pub const ALL: [CaptureRule; 11] = [
        CaptureRule::SetIdForItsOwner,
        CaptureRule::WrittenOutFirst,
        CaptureRule::HandedInFirst,
        CaptureRule::ArrivedFirst,
        CaptureRule::HandedInBetween,
        CaptureRule::NobodyElse,
        CaptureRule::WithinTheBoot,
        CaptureRule::NeverInMemory,
        CaptureRule::RemovedByContent,
        CaptureRule::ClonesHaveTheirTimes,
        CaptureRule::IgnoredStays,
    ];
}

jvs_repo::switchable!(CaptureRule);
