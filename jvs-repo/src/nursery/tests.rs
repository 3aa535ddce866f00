//! Births, refusals, and every way of being interrupted.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;
use crate::code::{Code, Coded};
use crate::next::Next;
use crate::store::DirEntryKind;

fn make_dirs(path: &Path) {
    std::fs::DirBuilder::new().recursive(true).create(path).expect("mkdir -p");
}

fn touch(path: &Path) {
    std::fs::OpenOptions::new().create_new(true).write(true).open(path).expect("create");
}

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().canonicalize().expect("canonical");
    (dir, path)
}

/// Everything below `dir`, by path, with what identifies it.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u64, u32, u64)> {
    fn visit(dir: &Path, top: &Path, into: &mut BTreeMap<PathBuf, (u64, u32, u64)>) {
        for entry in dir.read_dir().expect("readable") {
            let entry = entry.expect("readable");
            let path = entry.path();
            let stat = path.symlink_metadata().expect("lstat");
            let relative = path.strip_prefix(top).expect("below").to_owned();
            into.insert(relative, (stat.ino(), stat.mode(), stat.nlink()));
            if stat.is_dir() {
                visit(&path, top, into);
            }
        }
    }
    let mut all = BTreeMap::new();
    visit(dir, dir, &mut all);
    all
}

/// A directory that somebody has worked in, with everything that is awkward to
/// move.
fn worked_in(root: &Path) {
    make_dirs(&root.join("main/deep"));
    make_dirs(&root.join("worktrees/x"));
    make_dirs(&root.join("closed"));
    touch(&root.join("main/deep/file"));
    std::fs::hard_link(root.join("main/deep/file"), root.join("closed/same")).expect("link");
    touch(&root.join(std::ffi::OsStr::from_bytes(b"not utf-8 \xff\n")));
    symlink("nowhere", root.join("dangling")).expect("symlink");
    symlink("main", root.join("link")).expect("symlink");
    std::fs::set_permissions(root.join("closed"), std::fs::Permissions::from_mode(0o500))
        .expect("chmod");
}

/// The cheap part of preparing: the probe has tests of its own.
fn unprobed(root: &Path, adopt: Adopt) -> Result<Unborn, InitError> {
    let unborn = Unborn::begin(root, adopt)?;
    unborn.build()?;
    Ok(unborn)
}

/// Prepared without looking around first.
fn blind(root: &Path, adopt: Adopt, not_the_user_s: &'static [&'static str]) -> Unborn {
    let store = PosixStore::open(root).expect("open");
    let op = OpNonce::random(&SystemEntropy);
    let staging = PrivateStaging::make(store, op, not_the_user_s).expect("made");
    let unborn = Unborn {
        store: staging.open().expect("open"),
        staging,
        adopt,
        sharing: Sharing::Umask,
        root_was_made: false,
        filesystem: Filesystem::unknown(),
        report: None,
    };
    unborn.build().expect("built");
    unborn
}

fn refusal(root: &Path, adopt: Adopt) -> InitError {
    let error = unprobed(root, adopt).expect_err("refused");
    assert!(error.next().is_some(), "{error}");
    error
}

fn assert_whole(root: &Path) {
    let repo = Repo::open(root).expect("opens");
    for directory in layout::skeleton() {
        assert_eq!(repo.store().stat(&directory).expect("there").kind, DirEntryKind::Directory);
    }
    assert_eq!(repo.config().expect("valid"), Config::default());
    repo.payload(&WorktreeName::main()).expect("a directory");
    let names: Vec<_> =
        root.read_dir().expect("list").map(|e| e.expect("entry").file_name()).collect();
    assert_eq!(names.len(), 2, "the payload and the control directory only: {names:?}");
}

#[test]
fn a_repository_is_born_in_a_new_directory() {
    let (_dir, at) = temporary();
    let root = at.join("r");
    let unborn = Unborn::prepare(&root, Adopt::No).expect("prepared");
    assert_eq!(
        unborn.store().read(&layout::config(), 1000).expect("there"),
        crate::config::INITIAL.as_bytes()
    );
    unborn.report().expect("probed").verdict().expect("safe");
    assert!(!root.join(layout::CONTROL_DIR).exists(), "not before it is finished");
    let repo = unborn.finish().expect("born");
    assert_eq!(repo.root(), root);
    assert_whole(&root);
}

#[test]
fn an_empty_directory_will_do_and_the_way_to_it_may_be_a_symlink() {
    let (_dir, at) = temporary();
    make_dirs(&at.join("real"));
    symlink("real", at.join("alias")).expect("symlink");
    let repo = unprobed(&at.join("alias"), Adopt::No).expect("prepared").finish().expect("born");
    assert_eq!(repo.root(), at.join("real"));
    assert_whole(&at.join("real"));
}

#[test]
fn what_the_caller_builds_is_part_of_the_birth() {
    let (_dir, at) = temporary();
    let unborn = unprobed(&at, Adopt::No).expect("prepared");
    let register = layout::register(&WorktreeName::main());
    unborn.store().make_dir(&register).expect("mkdir");
    let repo = unborn.finish().expect("born");
    assert_eq!(repo.store().stat(&register).expect("there").kind, DirEntryKind::Directory);
}

#[test]
fn abandoning_or_dropping_leaves_no_trace() {
    let (_dir, at) = temporary();
    unprobed(&at.join("new"), Adopt::No).expect("prepared").abandon().expect("abandoned");
    assert!(!at.join("new").exists());
    drop(unprobed(&at.join("new"), Adopt::No).expect("prepared"));
    assert!(!at.join("new").exists());

    make_dirs(&at.join("old"));
    worked_in(&at.join("old"));
    let before = tree(&at);
    drop(unprobed(&at.join("old"), Adopt::Yes).expect("prepared"));
    assert_eq!(tree(&at), before);
}

#[test]
fn what_is_in_the_way_is_refused_and_not_touched() {
    let (_dir, at) = temporary();
    make_dirs(&at.join("full/x"));
    touch(&at.join("file"));
    symlink("nowhere", at.join("dangling")).expect("symlink");
    let before = tree(&at);
    assert!(matches!(refusal(&at.join("full"), Adopt::No), InitError::NotEmpty { .. }));
    for adopt in [Adopt::No, Adopt::Yes] {
        for (path, code) in [
            ("file", Code::Exists),
            ("dangling", Code::Exists),
            ("missing/r", Code::Io),
            ("file/r", Code::Io),
        ] {
            assert_eq!(refusal(&at.join(path), adopt).code(), code, "{path}");
        }
    }
    let full = at.join("full");
    assert_eq!(refusal(&full, Adopt::No).next(), Some(Next::Adopt(full)));
    assert_eq!(tree(&at), before);
}

#[test]
fn repositories_do_not_nest() {
    let (_dir, at) = temporary();
    let outer = at.join("outer");
    drop(unprobed(&outer, Adopt::No).expect("prepared").finish().expect("born"));
    let before = tree(&at);
    for adopt in [Adopt::No, Adopt::Yes] {
        assert!(matches!(refusal(&outer, adopt), InitError::AlreadyARepository { .. }));
        for below in ["inner", "main/inner", "main", "worktrees"] {
            let error = refusal(&outer.join(below), adopt);
            assert_eq!(error.code(), Code::Exists, "{below}: {error}");
        }
    }
    assert!(
        matches!(refusal(&at, Adopt::Yes), InitError::Contains { inner, .. } if inner == outer)
    );
    assert_eq!(tree(&at), before);
}

#[test]
fn a_symlinked_control_directory_is_refused() {
    let (_dir, at) = temporary();
    symlink("/", at.join(layout::CONTROL_DIR)).expect("symlink");
    for adopt in [Adopt::No, Adopt::Yes] {
        assert_eq!(refusal(&at, adopt).code(), Code::PathEscape);
    }
}

#[test]
fn the_root_of_the_system_is_not_adopted() {
    let error = refusal(Path::new("/"), Adopt::Yes);
    assert!(matches!(error, InitError::IsTheWholeSystem), "{error}");
}

#[test]
fn adoption_moves_everything_and_copies_nothing() {
    let (_dir, root) = temporary();
    worked_in(&root);
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o2770)).expect("chmod");
    let before = tree(&root);
    drop(unprobed(&root, Adopt::Yes).expect("prepared").finish().expect("born"));
    assert_whole(&root);
    assert_eq!(tree(&root.join(layout::MAIN_DIR)), before);
    let mode = root.join(layout::MAIN_DIR).metadata().expect("stat").mode();
    assert_eq!(mode & 0o7777, 0o2770, "whoever could work there still can");
}

#[test]
fn what_belongs_to_the_filesystem_is_neither_in_the_way_nor_adopted() {
    let (_dir, root) = temporary();
    for name in ["lost+found", "theirs"] {
        touch(&root.join(name));
    }
    let store = PosixStore::open(&root).expect("open");
    assert_eq!(staging::user_entries(&store, &["lost+found"]).expect("list"), ["theirs"]);
    look_around(&store, Adopt::No, &["lost+found", "theirs"]).expect("nothing of the user's");
    let unborn = blind(&root, Adopt::Yes, &["lost+found"]);
    drop(unborn.finish().expect("born"));
    assert!(root.join("lost+found").exists());
    assert!(root.join(layout::MAIN_DIR).join("theirs").exists());
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let (_dir, root) = temporary();
    let first = unprobed(&root, Adopt::No).expect("prepared");
    for adopt in [Adopt::No, Adopt::Yes] {
        assert!(matches!(refusal(&root, adopt), InitError::UnderWay { .. }));
    }
    drop(first.finish().expect("born"));
    assert_whole(&root);
}

#[test]
fn where_nobody_sees_the_other_s_claim_the_renames_decide() {
    let (_dir, root) = temporary();
    let (first, second) = (blind(&root, Adopt::No, &[]), blind(&root, Adopt::No, &[]));
    let id = first.finish().expect("born").id();
    assert_eq!(second.finish().expect_err("too late").code(), Code::Exists);
    assert_whole(&root);
    assert_eq!(Repo::open(&root).expect("opens").id(), id);
}

/// Hundreds of births and deaths want a disk that flushes quickly.
fn temporary_in_memory() -> (tempfile::TempDir, PathBuf) {
    match tempfile::tempdir_in("/dev/shm") {
        Ok(dir) => {
            let path = dir.path().to_owned();
            (dir, path)
        }
        Err(_) => temporary(),
    }
}

/// More steps than any way into place or back has.
const STEPS_MAX: usize = 100;

#[test]
fn a_step_that_fails_leaves_everything_as_it_was() {
    for adopt in [Adopt::No, Adopt::Yes] {
        let mut failures = 0;
        for step in 0..=STEPS_MAX {
            assert!(step < STEPS_MAX, "the way into place has an end");
            let (_dir, at) = temporary_in_memory();
            let root = at.join("r");
            if adopt == Adopt::Yes {
                make_dirs(&root);
                worked_in(&root);
            }
            let before = tree(&at);
            let unborn = unprobed(&root, adopt).expect("prepared");
            unborn.staging.fate.fail_in.set(Some(step));
            match unborn.finish() {
                Ok(_) => break,
                // Born, but the last flush failed: there is nothing to put back.
                Err(_) if root.join(layout::CONTROL_DIR).exists() => {}
                Err(error) => {
                    failures += 1;
                    assert!(error.to_string().contains("failed"), "{error}");
                    assert_eq!(tree(&at), before, "{adopt:?}, step {step}");
                }
            }
        }
        assert!(failures >= 2, "{adopt:?}: only {failures} steps failed");
    }
}

/// How an attempt ended that was to fail or to die.
#[derive(PartialEq)]
enum End {
    Born,
    PutBack,
    Died,
}

/// Lets a step fail or not, and the process die at a later one; then the next
/// attempt must find everything and complete it.
fn end_and_begin_again(adopt: Adopt, fail_in: Option<usize>, die_in: usize) -> End {
    let at = format!("{adopt:?}, failing at {fail_in:?}, dying at {die_in}");
    let (_dir, root) = temporary_in_memory();
    if adopt == Adopt::Yes {
        worked_in(&root);
    }
    let content = tree(&root);
    let unborn = unprobed(&root, adopt).expect("prepared");
    unborn.staging.fate.fail_in.set(fail_in);
    unborn.staging.fate.die_in.set(Some(die_in));
    let outcome = unborn.finish().map(drop);

    let born = root.join(layout::CONTROL_DIR).exists();
    if !born {
        if root.read_dir().expect("list").next().is_some() {
            assert_eq!(refusal(&root, Adopt::No).code(), Code::Exists, "{at}");
        }
        let next = unprobed(&root, Adopt::Yes).unwrap_or_else(|error| panic!("{at}: {error}"));
        drop(next.finish().unwrap_or_else(|error| panic!("{at}: {error}")));
        assert_whole(&root);
    }
    Repo::open(&root).expect(&at);
    assert_eq!(tree(&root.join(layout::MAIN_DIR)), content, "{at}");
    match outcome {
        Ok(()) => End::Born,
        Err(InitError::Stranded { .. }) => End::Died,
        // After the birth only the last flush can fail, or be died in.
        Err(_) if born && fail_in.is_some() => End::Born,
        Err(_) if born => End::Died,
        Err(_) => End::PutBack,
    }
}

#[test]
fn after_death_at_any_step_the_next_attempt_completes_it() {
    for adopt in [Adopt::No, Adopt::Yes] {
        let steps = (0..STEPS_MAX)
            .find(|step| end_and_begin_again(adopt, None, *step) == End::Born)
            .expect("the way into place has an end");
        assert!(steps >= 3, "{adopt:?}: died {steps} times");
    }
}

#[test]
fn after_death_on_the_way_back_the_next_attempt_completes_it() {
    for adopt in [Adopt::No, Adopt::Yes] {
        let mut deaths = 0;
        for fail_in in 0..STEPS_MAX {
            let mut ends = (fail_in + 1..STEPS_MAX)
                .map(|die_in| end_and_begin_again(adopt, Some(fail_in), die_in))
                .inspect(|end| deaths += usize::from(*end == End::Died));
            let put_back_or_born = ends.find(|end| *end != End::Died);
            if put_back_or_born.expect("the way back has an end") == End::Born {
                break;
            }
        }
        assert!(deaths >= 6, "{adopt:?}: died {deaths} times");
    }
}

#[test]
fn an_interrupted_attempt_is_named_with_the_way_on() {
    let (_dir, root) = temporary();
    worked_in(&root);
    let unborn = unprobed(&root, Adopt::Yes).expect("prepared");
    unborn.staging.fate.die_in.set(Some(2));
    unborn.finish().expect_err("died");
    let error = refusal(&root, Adopt::No);
    assert!(matches!(error, InitError::Unfinished { .. }), "{error}");
    assert_eq!(error.next(), Some(Next::FinishInit(root)));
}

#[test]
fn a_name_that_came_meanwhile_is_not_replaced() {
    let (_dir, root) = temporary();
    let unborn = unprobed(&root, Adopt::No).expect("prepared");
    make_dirs(&root.join(layout::MAIN_DIR).join("theirs"));
    let before = tree(&root.join(layout::MAIN_DIR));
    let error = unborn.finish().expect_err("in the way");
    assert_eq!(error.code(), Code::Exists, "{error}");
    assert_eq!(tree(&root.join(layout::MAIN_DIR)), before);
    assert_eq!(root.read_dir().expect("list").count(), 1, "nothing of ours is left");
}
