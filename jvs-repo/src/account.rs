//! Who a process is to the kernel, as opposed to who it says that it is.
//!
//! A user id is a number that means something only to whoever gave it out. In a user
//! namespace it may be a number that its maker chose: whoever makes one is root there. So
//! an account is known only where ids are mapped to themselves, all of them. A namespace
//! below another can map no more than that one does, so there they are the host's own.

use crate::mutation::Rule;
use crate::sabotage;

/// The user and the groups that a process runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Effective user id: what it makes belongs to that user.
    pub uid: u32,
    /// Effective group id and further groups.
    pub gids: Vec<u32>,
}

/// Does `/proc/self/uid_map` or `gid_map` say that every id is the host's?
pub fn are_the_hosts_own(map: &str) -> bool {
    sabotage!(Rule::MappedIdsAreNobodys => true);
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_a_namespace_maps_is_nobody_s() {
        assert!(are_the_hosts_own("         0          0 4294967295\n"));
        for map in [
            "",
            "0 1000 1",
            "0 0 1",
            "1000 1000 1",
            "0 100000 65536",
            "0 0 4294967294",
            "0 0 65536\n65536 65536 4294901759",
        ] {
            assert!(!are_the_hosts_own(map), "{map:?}");
        }
    }
}
