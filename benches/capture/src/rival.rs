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

/// Makes `files` files of `size` bytes, a hundred a directory, in a directory that
/// may be there.
pub(crate) fn make_tree(root: &Path, files: usize, size: usize) {
    fs_err::create_dir_all(root).expect("the tree");
    let mut content = vec![0; size];
    for n in 0..files {
        let dir = root.join(format!("{:04}", n / 100));
        if n % 100 == 0 {
            fs_err::create_dir(&dir).expect("a directory");
        }
        fill(&mut content, n);
        fs_err::write(dir.join(format!("{:02}", n % 100)), &content).expect("a file");
    }
}

/// Rewrites every hundredth file with something new.
pub(crate) fn change_one_percent(root: &Path, files: usize, size: usize, round: usize) {
    let mut content = vec![0; size];
    for n in (round % 100..files).step_by(100) {
        fill(&mut content, n + files * (round + 1));
        let path = root.join(format!("{:04}", n / 100)).join(format!("{:02}", n % 100));
        fs_err::write(path, &content).expect("a file");
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
    // No housekeeping in the background while something else is timed.
    run("git", &["config", "gc.auto", "0"], root);
    git_commit(root);
}

pub(crate) fn git_commit(root: &Path) {
    run("git", &["add", "-A"], root);
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    let commit = ["commit", "-q", "--allow-empty", "-m", "round"];
    run("git", &[&who[..], &commit[..]].concat(), root);
}

/// A restic repository beside `root` with everything in `root` backed up.
pub(crate) struct Restic {
    store: PathBuf,
    password: PathBuf,
}

impl Restic {
    /// `None` if there is no restic.
    pub(crate) fn of(place: &Path, root: &Path) -> Option<Self> {
        find("restic")?;
        let restic =
            Restic { store: place.join("restic"), password: place.join("restic-password") };
        fs_err::write(&restic.password, "bench").expect("a file");
        restic.run(&["init"], root);
        restic.backup(root);
        Some(restic)
    }

    pub(crate) fn backup(&self, root: &Path) {
        self.run(&["backup", "."], root);
    }

    fn run(&self, words: &[&str], root: &Path) {
        let place = ["-r", text(&self.store), "--password-file", text(&self.password)];
        run("restic", &[words, &place].concat(), root);
    }
}

/// A clone by the mount's control file: the bare system calls, no program.
pub(crate) fn bare_clone(mount: &Path, source: &Path, parent: &Path, name: &str) {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::MetadataExt as _;
    let inode = |path: &Path| fs_err::symlink_metadata(path).expect("a directory").ino();
    let mut body = Vec::new();
    for inode in [inode(source), inode(source.parent().expect("below the mount")), inode(parent)] {
        body.extend_from_slice(&inode.to_be_bytes());
    }
    body.push(u8::try_from(name.len()).expect("a short name"));
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(&[0, 0o22, 2, 4]);
    let mut message = 1006_u32.to_be_bytes().to_vec();
    message.extend_from_slice(&u32::try_from(body.len()).expect("short").to_be_bytes());
    message.extend_from_slice(&body);
    let mut control = fs_err::OpenOptions::new();
    let control = control.read(true).write(true).open(mount.join(".control"));
    let mut control = control.expect("the control file");
    control.write_all(&message).expect("asked");
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = control.read(&mut buffer).expect("an answer");
        answer.extend_from_slice(&buffer[..read]);
        // Frames of progress have 17 bytes; what is not one is the verdict.
        let frames = answer.chunks(17).take_while(|frame| frame[0] == 0xfe).count();
        if let Some(verdict) = answer.get(frames * 17) {
            return assert_eq!(*verdict, 0, "the clone failed");
        }
        if read == 0 {
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
    }
}

/// A program on the search path.
pub(crate) fn find(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
        .map(|path| text(&path).to_owned())
}

/// The `juicefs` program that the kit found.
pub(crate) fn juicefs() -> PathBuf {
    jvs_kit::live::capability::juicefs_program()
}
