//! Where the build put the command under test.

use std::path::{Path, PathBuf};

/// The built `jvs`, beside the running test executable.
///
/// Cargo does not build another package's binary for a test, so a missing one
/// is a loud failure that says how to build it.
pub fn jvs() -> PathBuf {
    built("jvs")
}

/// The built `jvs-mcp`, beside the running test executable.
pub fn jvs_mcp() -> PathBuf {
    built("jvs-mcp")
}

fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test knows its executable");
    let found = profile_dir(&test).join(name);
    assert!(
        found.is_file(),
        "{} is missing: run `cargo build --workspace` before the tests",
        found.display()
    );
    found
}

/// `target/<profile>` of an executable in it, in its `deps` or in its `examples`.
fn profile_dir(executable: &Path) -> &Path {
    let dir = executable.parent().expect("an executable lies in a directory");
    match dir.file_name().and_then(|name| name.to_str()) {
        Some("deps" | "examples") => dir.parent().expect("deps lies in the profile directory"),
        _ => dir,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_directory_is_found_from_a_test_and_from_a_binary() {
        for executable in ["/t/debug/deps/cli-0f", "/t/debug/examples/e", "/t/debug/jvs"] {
            assert_eq!(profile_dir(Path::new(executable)), Path::new("/t/debug"), "{executable}");
        }
    }
}
