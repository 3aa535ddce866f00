//! A rehearsal answers as the filesystem would, and leaves it as it was.

use jvs_repo::store::{PosixStore, StoredFile};

use super::*;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % below
    }

    /// One of a few names, at most three deep.
    fn path(&mut self) -> RepoPath {
        let mut path = RepoPath::root();
        for _ in 0..=self.roll(3) {
            path = path.child(["a", "b", "c"][self.roll(3)]).expect("plain");
        }
        path
    }
}

fn furnished() -> (tempfile::TempDir, PosixStore) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = PosixStore::open(dir.path()).expect("opened");
    for name in ["a", "a/b", "b"] {
        store.make_dir(&path(name)).expect("made");
    }
    for name in ["a/c", "a/b/a", "c"] {
        store.write_tmp(&path(name), name.as_bytes()).expect("written");
    }
    (dir, store)
}

fn path(text: &str) -> RepoPath {
    text.split('/').fold(RepoPath::root(), |path, name| path.child(name).expect("plain"))
}

/// Every path with what it is and says.
fn tree(store: &dyn Store) -> Vec<String> {
    let mut seen = Vec::new();
    let mut pending = vec![RepoPath::root()];
    while let Some(dir) = pending.pop() {
        for entry in store.list(&dir).expect("listed") {
            let path = dir.child(entry.name.to_str().expect("text")).expect("plain");
            let stat = store.stat(&path).expect("there");
            let bytes = match stat.kind {
                DirEntryKind::Directory => Vec::new(),
                _ => store.read(&path, 1000).expect("read"),
            };
            seen.push(format!("{path} {:?} {:o} {bytes:?}", stat.kind, stat.mode));
            if stat.kind == DirEntryKind::Directory {
                pending.push(path);
            }
        }
    }
    seen.sort();
    seen
}

/// Does one thing; what came of it.
fn act<S: Payloads + Store>(dice: &mut Dice, on: &S) -> String {
    let (what, at, other) = (dice.roll(10), dice.path(), dice.path());
    let write = |file: Box<dyn StoredFile>, offset| {
        file.write_at(offset, at.as_str().as_bytes())?;
        Ok(format!("{} {:?}", file.size()?, file.read_range(1, 3)?))
    };
    let nothing = |answer: io::Result<()>| answer.map(|()| String::new());
    let answer: io::Result<String> = match what {
        0 => on.create_new(&at).and_then(|file| write(file, 0)),
        1 => on.open_writable(&at).and_then(|file| write(file, 2)),
        2 => nothing(on.rename(&at, &other)),
        3 => nothing(on.rename_new(&at, &other)),
        4 => nothing(on.exchange(&at, &other)),
        5 => nothing(on.unlink(&at)),
        6 => nothing(on.make_dir(&at)),
        7 => nothing(on.remove_dir(&at)),
        8 => nothing(on.set_mode(&at, 0o700)),
        _ => on.find_directory(&at, "c").map(|found| format!("{}", found.is_some())),
    };
    match answer {
        Ok(said) => format!("{what} {at} {other}: {said}"),
        // Which of several reasons the kernel names first is its own business.
        Err(_) if is_inside(&at, &other) || is_inside(&other, &at) => "refused".to_owned(),
        Err(error) => format!("{what} {at} {other}: {:?}", error.kind()),
    }
}

#[test]
fn a_rehearsal_answers_as_the_filesystem_would_and_leaves_it_as_it_was() {
    for seed in 1..60 {
        let (_kept, real) = furnished();
        let (_twin, twin) = furnished();
        let before = tree(&real);
        let rehearsal = Rehearsal::new(&real, &real);
        let (mut here, mut there) = (Dice(seed * 7919), Dice(seed * 7919));
        for step in 0..60 {
            let (rehearsed, done) = (act(&mut here, &rehearsal), act(&mut there, &twin));
            assert_eq!(rehearsed, done, "seed {seed}, step {step}");
            assert_eq!(tree(&rehearsal), tree(&twin), "seed {seed}, step {step}: {done}");
        }
        assert_eq!(tree(&real), before, "seed {seed}");
    }
}

#[test]
fn a_file_that_was_replaced_in_a_rehearsal_has_no_name_any_more() {
    let (_kept, real) = furnished();
    let rehearsal = Rehearsal::new(&real, &real);
    let mine = rehearsal.open_writable(&path("c")).expect("there");
    assert_eq!(mine.inode().expect("told"), real.stat(&path("c")).expect("there").inode);
    rehearsal.write_over(&path("tmp"), &path("c"), b"theirs").expect("written");
    assert_eq!(mine.links().expect("told"), 0);
    assert_eq!(mine.read_up_to(10).expect("read"), b"c");
}
