//! The tools that a capture is compared with, and what all of them work on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, args: &[&str], dir: &Path) {
    let status = Command::new(program)
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(status.success(), "{program} {args:?}: {status}");
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

/// Makes `files` files of `size` bytes, a hundred a directory.
pub(crate) fn make_tree(root: &Path, files: usize, size: usize) {
    std::fs::create_dir(root).expect("the tree");
    let mut content = vec![0; size];
    for n in 0..files {
        let dir = root.join(format!("{:04}", n / 100));
        if n % 100 == 0 {
            std::fs::create_dir(&dir).expect("a directory");
        }
        fill(&mut content, n);
        std::fs::write(dir.join(format!("{:02}", n % 100)), &content).expect("a file");
    }
}

/// Rewrites every hundredth file with something new.
pub(crate) fn change_one_percent(root: &Path, files: usize, size: usize, round: usize) {
    let mut content = vec![0; size];
    for n in (round % 100..files).step_by(100) {
        fill(&mut content, n + files * (round + 1));
        let path = root.join(format!("{:04}", n / 100)).join(format!("{:02}", n % 100));
        std::fs::write(path, &content).expect("a file");
    }
}

/// Bytes that do not repeat and do not compress.
fn fill(content: &mut [u8], seed: usize) {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for byte in content {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
}

/// A git repository with everything in `root` committed.
pub(crate) fn git_init(root: &Path) {
    run("git", &["init", "-q"], root);
    git_commit(root);
}

pub(crate) fn git_commit(root: &Path) {
    run("git", &["add", "-A"], root);
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    let commit = ["commit", "-q", "--allow-empty", "-m", "round"];
    run("git", &[&who[..], &commit[..]].concat(), root);
}

/// The `juicefs` program that the kit found.
pub(crate) fn juicefs() -> PathBuf {
    jvs_kit::live::capability::juicefs_program()
}
