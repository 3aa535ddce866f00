//! The files that a patch of Codex names.

/// What stands before a file that a patch writes.
const HEADERS: [&str; 4] =
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The files that `patch` adds, changes, removes or moves something to.
pub(super) fn files(patch: &str) -> Vec<&str> {
    let header = |line| HEADERS.iter().find_map(|header| str::strip_prefix(line, *header));
    patch.lines().filter_map(|line| header(line.trim())).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_a_patch_are_found() {
        let patch = "*** Begin Patch\n*** Add File: a b\n+*** x\n  *** Update File: c\n\
                     *** Move to: d/e\n@@\n-x\n*** Delete File: /f\r\n*** End Patch\n";
        assert_eq!(files(patch), ["a b", "c", "d/e", "/f"]);
        assert_eq!(files("*** Begin Patch\n*** End Patch"), [""; 0]);
    }
}
