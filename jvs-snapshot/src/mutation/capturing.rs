//! As above, of what a capture may believe. The files are real ones here: no
//! simulated world has pages that are mapped, or two users.

/// A rule of capturing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Set-user and set-group bits are kept only for the original's owner and group.
    SetIdForItsOwner,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 1] = [Rule::SetIdForItsOwner];
}

jvs_repo::switchable!(Rule);
