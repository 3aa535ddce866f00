//! From a directory to one far below it, in as few calls as the length of a path that
//! the kernel takes allows, and through no symlink.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::open_directory;

/// Less than `PATH_MAX`, by more than a name.
const PIECE: usize = 3800;

/// Opens the directory at the end of `components` below `root`.
pub fn open_below<'c>(
    root: impl AsFd,
    components: impl Iterator<Item = &'c [u8]>,
) -> io::Result<OwnedFd> {
    let pieces = pieces(components);
    let Some((last, way)) = pieces.split_last() else { return open_directory(root, b".") };
    let mut at: Option<OwnedFd> = None;
    for piece in way {
        at = Some(step(at.as_ref().map_or(root.as_fd(), AsFd::as_fd), piece, OFlags::PATH)?);
    }
    step(at.as_ref().map_or(root.as_fd(), AsFd::as_fd), last, OFlags::RDONLY)
}

/// Finds the directory at the end of `components` below `root`, only to name what is in
/// it: neither read nor written, so that no server is asked to open anything.
pub fn find_below<'c>(
    root: &Path,
    components: impl Iterator<Item = &'c [u8]>,
) -> io::Result<OwnedFd> {
    // The path up to the root is its user's own word; nothing below it is.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    reach_below(&fs::open(root, flags, Mode::empty())?, components)
}

/// As [`find_below`], from a root that is open.
pub fn reach_below<'c>(
    root: &OwnedFd,
    components: impl Iterator<Item = &'c [u8]>,
) -> io::Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    for piece in pieces(components) {
        at = Some(step(at.as_ref().unwrap_or(root), &piece, OFlags::PATH)?);
    }
    at.map_or_else(|| root.try_clone(), Ok)
}

fn pieces<'c>(components: impl Iterator<Item = &'c [u8]>) -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for component in components {
        match pieces.last_mut() {
            Some(piece) if piece.len() + 1 + component.len() <= PIECE => {
                piece.push(b'/');
                piece.extend_from_slice(component);
            }
            _ => pieces.push(component.to_vec()),
        }
    }
    pieces
}

fn step(at: impl AsFd, piece: &[u8], how: OFlags) -> io::Result<OwnedFd> {
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match fs::openat2(&at, piece, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6 and some sandboxes have no `openat2`.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => one_by_one(at, piece, flags),
        // What `openat` says of a symlink where a directory is asked for.
        Err(Errno::LOOP) => Err(Errno::NOTDIR.into()),
        answer => Ok(answer?),
    }
}

fn one_by_one(at: impl AsFd, piece: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut names = piece.split(|&byte| byte == b'/').peekable();
    let mut current: Option<OwnedFd> = None;
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { way } else { flags };
        let at = current.as_ref().map_or(at.as_fd(), AsFd::as_fd);
        current = Some(fs::openat(at, name, flags, Mode::empty())?);
    }
    current.ok_or_else(|| Errno::INVAL.into())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the trees that are gone through")]
mod tests {
    use super::*;
    use crate::tree::{make_directory, open_root, remove, stat_open};

    #[test]
    fn the_end_of_a_path_of_any_length_is_found_with_and_without_openat2() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = open_root(dir.path()).expect("opened");
        let names: Vec<Vec<u8>> = (0..100).map(|n| vec![b'a' + n % 26; 200]).collect();
        let mut at = open_directory(&root, b".").expect("opened");
        for name in &names {
            make_directory(&at, name).expect("made");
            at = open_directory(&at, name).expect("opened");
        }
        let end = stat_open(&at).expect("seen").identity();
        let all = || names.iter().map(Vec::as_slice);
        let found = open_below(&root, all()).expect("found");
        assert_eq!(stat_open(&found).expect("seen").identity(), end);
        let found = find_below(dir.path(), all()).expect("found");
        assert_eq!(stat_open(&found).expect("seen").identity(), end);
        let mut at = open_directory(&root, b".").expect("opened");
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for piece in pieces(all()) {
            at = one_by_one(at, &piece, flags).expect("found");
        }
        assert_eq!(stat_open(&at).expect("seen").identity(), end);
        remove(&root, &names[0]).expect("removed");
        assert_eq!(dir.path().read_dir().expect("read").count(), 0);
    }

    #[test]
    fn a_symlink_on_the_way_is_no_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(dir.path().join("a/b/c")).expect("made");
        std::os::unix::fs::symlink("b", dir.path().join("a/link")).expect("made");
        let root = open_root(dir.path()).expect("opened");
        for way in [&[&b"a"[..], b"link", b"c"][..], &[b"a", b"link"]] {
            let told = open_below(&root, way.iter().copied()).expect_err("refused");
            assert_eq!(told.kind(), io::ErrorKind::NotADirectory);
            let told = find_below(dir.path(), way.iter().copied()).expect_err("refused");
            assert_eq!(told.kind(), io::ErrorKind::NotADirectory);
        }
    }
}
