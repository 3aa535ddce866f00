//! What is ignored, as git would say; that it is in no snapshot, in nobody's way, and
//! survives.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jvs_repo::code::{Code, Coded};
use jvs_repo::layout;
use jvs_repo::record::ignore_rules::IgnoreSource;
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::compare::{ComparedFiles, Trust};
use jvs_snapshot::ignore::{self, IgnoreRules};
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::restore::{InPlace, RestorePlan, RestoreRequest};
use jvs_snapshot::{Ready, SnapshotError, diff, verify};
use jvs_world::live::{World, read};
use jvs_world::repository::main;

/// Trees that are compared with git.
const CASES: u64 = 400;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a [u8]]) -> &'a [u8] {
        of[self.below(of.len())]
    }

    /// Between `least` and `most` of them, one after the other.
    fn some(&mut self, of: &[&[u8]], least: usize, most: usize) -> Vec<u8> {
        let many = least + self.below(most - least + 1);
        (0..many).flat_map(|_| self.one(of)).copied().collect()
    }
}

const PARTS: &[&[u8]] = &[b"a", b"b", b".o", b"x", b"-", b" ", b"\xff", b"!", b"#", b"]", b"7"];
const PIECES: &[&[u8]] = &[
    b"a",
    b"b",
    b".o",
    b"x",
    b" ",
    b"\xff",
    b"*",
    b"*",
    b"**",
    b"**/",
    b"/**",
    b"/",
    b"/",
    b"?",
    b"[ab]",
    b"[!a]",
    b"[^b-x]",
    b"[]a]",
    b"[a-]",
    b"[[:alpha:]]",
    b"[[:nope:]]",
    b"[\\]x]",
    b"[a",
    b"\\*",
    b"\\a",
    b"\\!",
    b"\\#",
    b"\\ ",
    b"\\",
    b"#",
    b"!",
    b"-",
    b"7",
    b"{a,b}",
];
const BEGINNINGS: &[&[u8]] = &[b"", b"", b"", b"", b"!", b"!", b"/", b"!/", b"**/", b"#", b" "];
const ENDS: &[&[u8]] =
    &[b"\n", b"\n", b"\n", b"/\n", b"/\n", b"\r\n", b" \n", b"  \r\n", b"\\ \n", b"/**\n", b"/*\n"];

/// Makes a tree, with rules in some of its directories.
fn grow(dice: &mut Dice, at: &Path, depth: usize, all: &mut Vec<PathBuf>) {
    for _ in 0..2 + dice.below(4) {
        let name = dice.some(PARTS, 1, 2);
        let path = at.join(OsStr::from_bytes(&name));
        if all.contains(&path) {
            continue;
        }
        all.push(path.clone());
        match dice.below(5) {
            0 => fs_err::os::unix::fs::symlink("a", &path).expect("a symlink"),
            1 | 2 if depth < 2 => {
                fs_err::create_dir(&path).expect("a directory");
                grow(dice, &path, depth + 1, all);
            }
            _ => fs_err::write(&path, "x").expect("a file"),
        }
    }
    if depth == 0 || dice.below(3) == 0 {
        let mut rules = if dice.below(8) == 0 { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        for _ in 0..1 + dice.below(5) {
            rules.extend_from_slice(dice.one(BEGINNINGS));
            rules.extend_from_slice(&dice.some(PIECES, 1, 4));
            rules.extend_from_slice(dice.one(ENDS));
        }
        for name in [".jvsignore", ".gitignore"] {
            fs_err::write(at.join(name), &rules).expect("rules");
            all.push(at.join(name));
        }
    }
}

/// Those of `paths` that git ignores in `repo`.
fn by_git(repo: &Path, more: &[&str], paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut git = Command::new("git")
        .args(more)
        .args(["check-ignore", "--no-index", "--stdin", "-z"])
        .current_dir(repo)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git");
    let mut asked = git.stdin.take().expect("a pipe");
    let lines: Vec<u8> =
        paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    let writer = std::thread::spawn(move || asked.write_all(&lines));
    let answer = git.wait_with_output().expect("git");
    writer.join().expect("joined").expect("written");
    // 1 is that nothing is ignored.
    assert!(matches!(answer.status.code(), Some(0 | 1)), "{answer:?}");
    let ignored = answer.stdout.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    ignored.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

fn git_repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let made = Command::new("git").args(["init", "-q"]).current_dir(&dir).status();
    assert!(made.expect("git").success());
    dir
}

/// Those of `paths` that we ignore in `root`.
fn by_us(root: &Path, rules: &IgnoreRules, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    let ignored = ignore::list(&ComparedFiles::of(root, rules)).expect("listed");
    let is_ignored = |path: &&PathBuf| {
        let inside = path.strip_prefix(root).expect("inside");
        ignored.iter().any(|ignored| inside.starts_with(ignored.path.as_path()))
    };
    paths.iter().filter(is_ignored).cloned().collect()
}

#[test]
fn what_is_ignored_is_what_git_ignores() {
    let repo = git_repository();
    let mut trees = Vec::new();
    for case in 0..CASES {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (case + 1));
        let root = repo.path().join(format!("case-{case}"));
        fs_err::create_dir(&root).expect("a directory");
        let mut paths = Vec::new();
        grow(&mut dice, &root, 0, &mut paths);
        trees.push((root, paths));
    }
    let all: Vec<PathBuf> = trees.iter().flat_map(|(_, paths)| paths).cloned().collect();
    let expected = by_git(repo.path(), &[], &all);
    assert!(expected.len() > all.len() / 10, "{} of {}", expected.len(), all.len());
    for (root, paths) in &trees {
        let expected: BTreeSet<PathBuf> =
            paths.iter().filter(|path| expected.contains(*path)).cloned().collect();
        let found = by_us(root, &IgnoreRules::default(), paths);
        let rules = fs_err::read(root.join(".jvsignore")).expect("rules");
        assert_eq!(found, expected, "{}: {:?}", root.display(), OsStr::from_bytes(&rules));
    }
}

#[test]
fn rules_of_the_configuration_are_those_of_git_s_own() {
    let repo = git_repository();
    let patterns = ["*.o", "/top/", "!keep.o", "deep/**/x", "a\\,b"];
    let excludes = repo.path().join("excludes");
    fs_err::write(&excludes, patterns.join("\n")).expect("written");
    let mut paths = vec![excludes.clone()];
    for name in ["a.o", "keep.o", "top", "d/top", "deep/x", "deep/e/x", "a,b", "d/a.o", "d/b.o"] {
        let path = repo.path().join(name);
        fs_err::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        match name.ends_with("top") {
            true => fs_err::create_dir(&path).expect("a directory"),
            false => fs_err::write(&path, "x").expect("a file"),
        }
        paths.push(path);
    }
    for name in [".jvsignore", ".gitignore"] {
        fs_err::write(repo.path().join("d").join(name), "!a.o\n").expect("rules");
    }
    let given = format!("core.excludesFile={}", excludes.display());
    let patterns = patterns.join(",").parse().expect("patterns");
    let found = by_us(repo.path(), &IgnoreRules::of_config(&patterns), &paths);
    assert_eq!(found, by_git(repo.path(), &["-c", &given], &paths));
    assert_eq!(found.len(), 6, "{found:?}");
}

/// A worktree with rules, and with what they ignore.
fn world_with_rules() -> World {
    let world = World::new();
    world.write(".jvsignore", "*.o\ntarget/\n!keep.o\n");
    world.write("src/main.c", "int main");
    world.write("src/main.o", "object");
    world.write("src/keep.o", "kept");
    world.write("target/debug/out", "built");
    // Who looked into it would say so.
    fs_err::os::unix::fs::symlink("nowhere", world.file("target/.jvsignore")).expect("a symlink");
    world
}

fn changed_since(world: &World, before: &Ready) -> Vec<String> {
    let root = world.file("");
    let files = ComparedFiles::of(&root, &world.ignore);
    let found =
        diff::since(&world.store, before, files, Trust::Nothing, &Silent).expect("compared");
    let of_substance = found.into_iter().filter(|difference| difference.is_of_substance());
    of_substance.map(|difference| difference.path.to_string()).collect()
}

fn exists(world: &World, path: &str) -> bool {
    world.file(path).symlink_metadata().is_ok()
}

#[test]
fn what_is_ignored_is_not_in_the_snapshot_and_its_rules_are() {
    let mut world = world_with_rules();
    world.ignore = IgnoreRules::of_config(&"*.log".parse().expect("a pattern"));
    world.write("src/a.log", "x");
    let first = world.snapshot(&mut world.lease());
    for gone in ["target", "src/main.o", "src/a.log"] {
        assert!(!world.kept(&first, gone).exists(), "{gone}");
    }
    for kept in [".jvsignore", "src/main.c", "src/keep.o"] {
        assert!(world.kept(&first, kept).exists(), "{kept}");
    }
    let source = |from: &str, rules: &[&str]| IgnoreSource {
        from: from.to_owned(),
        rules: rules.iter().map(ToString::to_string).collect(),
    };
    let rules = [
        source("snapshot.ignore", &["*.log"]),
        source(".jvsignore", &["*.o", "target/", "!keep.o"]),
    ];
    assert_eq!(first.descriptor().content.ignore_rules, rules);
    assert_eq!(IgnoreRules::of_record(&rules).to_record(), rules);
    let verdict = verify::verify(&world.store, first.id(), &Silent).expect("verified");
    assert!(verdict.is_valid(), "{verdict:?}");
    assert_eq!(changed_since(&world, &first), [""; 0]);
    world.write("src/more.o", "x");
    world.write("target/debug/more", "x");
    assert_eq!(changed_since(&world, &first), [""; 0]);
}

#[test]
fn what_is_ignored_from_now_on_is_in_the_next_snapshot_no_more() {
    let world = world_with_rules();
    world.write("data", "old");
    let mut lease = world.lease();
    let first = world.snapshot(&mut lease);
    world.write(".jvsignore", "data\n");
    let root = world.file("");
    let files = ComparedFiles::of(&root, &world.ignore);
    // What is not ignored any more would be in it again.
    fs_err::remove_dir_all(world.file("target")).expect("removed");
    let found = diff::compared_with(&world.store, &first, files, Trust::Nothing, &Silent);
    let found = found.expect("compared");
    let hidden: Vec<String> = found
        .differences
        .iter()
        .filter(|difference| found.is_hidden(&difference.path))
        .map(|difference| difference.path.to_string())
        .collect();
    assert_eq!(hidden, ["data"]);
    assert!(changed_since(&world, &first).contains(&"src/main.o".to_owned()));
    let second = world.snapshot(&mut lease);
    assert!(!world.kept(&second, "data").exists());
    assert_eq!(changed_since(&world, &second), [""; 0]);
}

/// Plans and restores as `jvs restore --in-place` does. Answers also with the plan.
fn restore(
    world: &World,
    source: &Ready,
    kept: Option<&Ready>,
    chosen: Option<&ChosenPaths>,
) -> (InPlace, Option<RestorePlan>) {
    let (restore, mut lease) = (world.restore(), world.lease());
    let plan = match chosen {
        Some(chosen) => restore.plan_chosen(source, &main(), chosen, &Silent),
        None => restore
            .plan(source, &main(), &world.file(""), &Silent)
            .map(|planned| planned.map(|(plan, _)| plan)),
    };
    let plan = plan.expect("planned");
    let wish = RestoreRequest { source, kept, chosen, reason: Some("a test") };
    let locks = world.locks("s");
    let done = match &plan {
        Some(plan) => restore.in_parts(&locks, &mut lease, &wish, plan, &Silent),
        None => restore.in_place(&locks, &mut lease, &wish, &Silent),
    };
    let done = done.expect("restored");
    lease.release().expect("released");
    (done, plan)
}

fn snapshot(world: &World) -> Ready {
    let mut lease = world.lease();
    let ready = world.snapshot(&mut lease);
    lease.release().expect("released");
    ready
}

fn path(text: &str) -> TreePath {
    TreePath::new(text.as_bytes().to_vec()).expect("plain")
}

#[test]
fn what_is_ignored_survives_a_restore_also_in_a_directory_that_goes() {
    let world = world_with_rules();
    let first = snapshot(&world);
    world.write("src/main.c", "changed");
    world.write("new/file", "x");
    world.write("new/file.o", "x");
    world.write("new/target/x", "x");
    world.write("gone/file", "x");
    fs_err::hard_link(world.file("src/main.c"), world.file("src/linked.o")).expect("linked");
    let second = snapshot(&world);
    let (done, plan) = restore(&world, &first, Some(&second), None);
    assert!(done.left.is_none(), "{:?}", done.left);
    assert!(plan.expect("path by path").stays().is_empty());
    assert_eq!(read(&world.file("src/main.c")), "int main");
    assert_eq!(read(&world.file("src/linked.o")), "changed", "of its other name nothing is known");
    for there in ["src/main.o", "target/debug/out", "new/file.o", "new/target/x"] {
        assert!(exists(&world, there), "{there}");
    }
    for gone in ["new/file", "gone"] {
        assert!(!exists(&world, gone), "{gone}");
    }
    // Again, and back.
    let (_, plan) = restore(&world, &first, Some(&second), None);
    assert_eq!(plan.map(|plan| plan.paths()), Some(0));
    restore(&world, &second, Some(&first), None);
    assert_eq!(changed_since(&world, &second), [""; 0]);
    assert_eq!(read(&world.file("new/file")), "x");
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

#[test]
fn what_the_snapshot_had_and_is_ignored_now_stays_unless_nothing_is_there() {
    let world = World::new();
    for (name, text) in [
        ("build/same", "1"),
        ("build/changed", "1"),
        ("build/lost", "1"),
        ("late", "1"),
        ("a", "1"),
    ] {
        world.write(name, text);
    }
    let first = snapshot(&world);
    world.write(".jvsignore", "build/\nlate\n");
    world.write("build/changed", "2");
    world.write("build/new", "2");
    fs_err::remove_file(world.file("build/lost")).expect("removed");
    fs_err::remove_file(world.file("late")).expect("removed");
    world.write("late/file", "2");
    let second = snapshot(&world);
    let (done, plan) = restore(&world, &first, Some(&second), None);
    assert!(done.left.is_none() && done.unplaced.is_empty());
    assert_eq!(plan.expect("path by path").stays(), [path("build/changed"), path("late")]);
    for (name, text) in [
        ("build/same", "1"),
        ("build/changed", "2"),
        ("build/new", "2"),
        ("build/lost", "1"),
        ("late/file", "2"),
    ] {
        assert_eq!(read(&world.file(name)), text, "{name}");
    }
    assert!(!exists(&world, ".jvsignore"), "the snapshot has none");
}

#[test]
fn what_the_snapshot_was_taken_without_is_not_removed_by_it() {
    let world = world_with_rules();
    let first = snapshot(&world);
    fs_err::remove_file(world.file(".jvsignore")).expect("removed");
    fs_err::remove_dir_all(world.file("target")).expect("removed");
    let second = snapshot(&world);
    assert!(world.kept(&second, "src/main.o").exists());
    restore(&world, &first, Some(&second), None);
    assert_eq!(read(&world.file("src/main.o")), "object");
    assert_eq!(changed_since(&world, &first), [""; 0]);
}

#[test]
fn a_path_that_is_ignored_and_was_named_is_restored_and_nothing_is_lost() {
    let world = World::new();
    world.write("build/out", "1");
    world.write("src/a", "1");
    let first = snapshot(&world);
    world.write(".jvsignore", "build/\n*.o\n");
    world.write("build/out", "2");
    world.write("src/a", "2");
    world.write("src/a.o", "2");
    world.write("src/b", "2");
    let second = snapshot(&world);
    // Whatever is ignored in a directory that was named stays.
    let some = ChosenPaths::new([path("src")]).expect("some");
    let (done, _) = restore(&world, &first, Some(&second), Some(&some));
    assert!(done.left.is_none(), "{:?}", done.left);
    assert_eq!(
        (read(&world.file("src/a")), read(&world.file("src/a.o"))),
        ("1".into(), "2".into())
    );
    assert!(!exists(&world, "src/b"));
    let some = ChosenPaths::new([path("build/out")]).expect("some");
    let (done, _) = restore(&world, &first, Some(&second), Some(&some));
    assert_eq!(read(&world.file("build/out")), "1");
    let left = done.left.expect("no snapshot has what was there");
    let aside = world.store.absolute(&left.path).join("build/out");
    assert_eq!(read(&aside), "2");
}

#[test]
fn all_at_once_is_refused_where_something_is_ignored() {
    let world = world_with_rules();
    let first = snapshot(&world);
    let (locks, mut lease) = (world.locks("s"), world.lease());
    for chosen in [None, ChosenPaths::new([path("src")])] {
        let (source, chosen) = (&first, chosen.as_ref());
        let wish = RestoreRequest { source, kept: Some(source), chosen, reason: Some("a test") };
        let error = world.restore().in_place(&locks, &mut lease, &wish, &Silent);
        let error = error.map(drop).expect_err("refused");
        assert_eq!(error.code(), Code::Exists, "{error}");
        assert!(error.to_string().contains("src/main.o"), "{error}");
    }
    assert!(exists(&world, "target/debug/out"));
    assert_eq!(world.names(&layout::staging()), [""; 0]);
}

type Make = fn(&Path);

#[test]
fn rules_that_cannot_be_read_end_everything_with_their_path() {
    use fs_err::os::unix::fs::symlink;
    let make: [(&str, Make); 6] = [
        ("symlink", |at| symlink("/etc/passwd", at).expect("a symlink")),
        ("FIFO", |at| {
            assert!(Command::new("mkfifo").arg(at).status().expect("mkfifo").success());
        }),
        ("directory", |at| fs_err::create_dir(at).expect("a directory")),
        ("64 KiB", |at| fs_err::write(at, vec![b'#'; 70_000]).expect("a file")),
        ("1024 bytes", |at| fs_err::write(at, vec![b'a'; 2_000]).expect("a file")),
        ("16 KiB", |at| fs_err::write(at, "a-rather-long-name\n".repeat(1_000)).expect("a file")),
    ];
    for (why, make) in make {
        let world = World::new();
        world.write("d/file", "x");
        let first = snapshot(&world);
        make(&world.file("d/.jvsignore"));
        let mut lease = world.lease();
        let error = world.try_snapshot(&mut lease).map(drop).expect_err(why);
        assert!(error.to_string().contains("d/.jvsignore ("), "{error}");
        assert!(error.to_string().contains(why), "{why}: {error}");
        let root = world.file("");
        let files = ComparedFiles::of(&root, &world.ignore);
        let error = diff::since(&world.store, &first, files, Trust::Nothing, &Silent);
        let error: SnapshotError = error.map(drop).expect_err(why);
        assert!(
            error.next().is_some_and(|next| format!("{next:?}").contains("rules")),
            "{error:?}"
        );
        assert!(fs_err::remove_file(world.file("d/.jvsignore")).is_ok() || why == "directory");
    }
}

#[test]
fn bytes_that_are_no_text_are_rules_like_others() {
    let world = World::new();
    let name = OsStr::from_bytes(b"caf\xe9.o");
    fs_err::write(world.file("").join(name), "x").expect("written");
    fs_err::write(world.file(".jvsignore"), b"caf\xe9*\n").expect("rules");
    let first = snapshot(&world);
    assert!(!world.kept(&first, "").join(name).exists());
    assert_eq!(first.descriptor().content.ignore_rules[0].rules, ["caf%E9*"]);
    let again = IgnoreRules::of_record(&first.descriptor().content.ignore_rules);
    assert_eq!(again.to_record(), first.descriptor().content.ignore_rules);
}
