//! Who may take over a lock whose lease is live. Fencing makes any of these
//! safe for what is published; none of them is kind to anyone who was at work, so
//! only the one that hurts nobody is on by default.

use super::Admins;

/// Which reasons are good enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReclaimRules {
    /// The same user, in another session.
    pub same_user: bool,
    /// A user with more privilege than the holder.
    pub higher_privilege: bool,
    /// Anyone who declares an emergency.
    pub emergency_override: bool,
    /// The holder's process is gone: same host, same boot.
    pub holder_dead: bool,
    /// Who may force, if anybody is named: they and nobody else.
    pub admins: Admins,
}

impl Default for ReclaimRules {
    fn default() -> Self {
        ReclaimRules {
            same_user: false,
            higher_privilege: false,
            emergency_override: false,
            holder_dead: true,
            admins: Admins::NOBODY,
        }
    }
}
