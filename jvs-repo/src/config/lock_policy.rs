//! The numbers that every decision about a lease rests on, and how much is kept of what was
//! decided.

/// How long leases last, how often they are renewed, how far clocks may be
/// apart, how much longer a rival waits, and how much of it all is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockPolicy {
    /// Length of a kept lease.
    pub lease_duration_ms: u64,
    /// Time between two renewals of a kept lease.
    pub renew_interval_ms: u64,
    /// Largest believable difference between the wall clocks of any two hosts.
    pub max_clock_skew_ms: u64,
    /// What a rival waits on top, once a lease is over.
    pub steal_grace_ms: u64,
    /// For how long a session without a terminal may run no command before what it was
    /// promised by default is let go; 0 if never.
    pub idle_release_ms: u64,
    /// How much the closed audit logs may take up.
    pub audit_keep_kib: u64,
}

impl Default for LockPolicy {
    fn default() -> Self {
        LockPolicy {
            lease_duration_ms: 30_000,
            renew_interval_ms: 10_000,
            max_clock_skew_ms: 2_000,
            steal_grace_ms: 1_000,
            idle_release_ms: 1_800_000,
            audit_keep_kib: 512,
        }
    }
}
