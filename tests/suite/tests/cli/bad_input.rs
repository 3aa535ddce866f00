//! Whatever is typed and whatever somebody put on the disk: a clear error, the
//! right exit code, and *nothing changed*.
//!
//! A name with a NUL in it cannot be tested from here: the kernel ends an
//! argument at the first one. `jvs_repo::name` refuses it where it can occur.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::symlink;
use jvs_kit::live::home::Home;
use jvs_kit::live::loopfs::SmallFs;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

/// Everything below a directory: type and mode, and content or target.
#[derive(Debug, PartialEq, Eq)]
struct Picture(BTreeMap<PathBuf, (u32, Vec<u8>)>);

impl Picture {
    #[track_caller]
    fn of(root: &Path) -> Self {
        let mut seen = BTreeMap::new();
        let mut todo = vec![root.to_owned()];
        while let Some(path) = todo.pop() {
            let meta = path.symlink_metadata().expect("it was just listed");
            let content = if meta.is_symlink() {
                path.read_link().expect("a symlink").into_os_string().into_encoded_bytes()
            } else if meta.is_dir() {
                todo.extend(path.read_dir().expect("listed").map(|e| e.expect("entry").path()));
                Vec::new()
            } else {
                fs_err::read(&path).expect("readable")
            };
            seen.insert(path, (meta.mode(), content));
        }
        Picture(seen)
    }
}

/// A repository with the worktrees `main` and `x`, and a user.
struct World {
    home: Home,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = World::empty();
        world.home.jvs(["init"]).arg(world.root()).run().ok();
        world.home.jvs(["worktree", "create", "x"]).cwd(world.root()).run().ok();
        world
    }

    fn empty() -> Self {
        World { home: Home::new(), dir: tempfile::tempdir().expect("a directory") }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("r")
    }

    fn at(&self, path: &jvs_repo::store::RepoPath) -> PathBuf {
        self.root().join(path.as_str())
    }

    /// Moves something out of the repository and leaves a symlink to it.
    fn replace_by_symlink(&self, path: &Path) {
        let outside = self.dir.path().join("outside");
        fs_err::rename(path, &outside).expect("moved");
        symlink(&outside, path).expect("symlink");
    }

    /// Runs a command in the repository, in both forms.
    #[track_caller]
    fn refuses(&self, args: &[&str], code: &str, exit: i32) {
        refused_in(&self.home, self.dir.path(), &self.root(), args, code, exit);
    }
}

/// The command fails with this code in both forms and changes nothing below `watched`.
#[track_caller]
fn refused_in(home: &Home, watched: &Path, cwd: &Path, args: &[&str], code: &str, exit: i32) {
    // The session's secret is made by the first command that acts; not here.
    let before = Picture::of(watched);
    let human = home.jvs(args).cwd(cwd).run().exits(exit);
    assert_eq!(human.stdout(), "", "an error is no answer: {human}");
    assert!(human.stderr().starts_with(&format!("error[{code}]: ")), "{human}");
    assert!(human.stderr().contains("\nhint: "), "no hint: {human}");
    assert_eq!(human.stderr().lines().count(), 2, "{human}");
    let json = home.jvs(args).arg("--json").cwd(cwd).run().exits(exit);
    let document = json.json();
    assert_eq!(document["ok"], false, "{json}");
    assert_eq!(document["error"]["code"], code, "{json}");
    assert_eq!(json.stderr(), "", "{json}");
    assert!(Picture::of(watched) == before, "`jvs {args:?}` changed something");
}

#[test]
fn a_repository_is_not_made_where_something_is() {
    let world = World::new();
    let (root, dir) = (world.root(), world.dir.path());
    fs_err::write(dir.join("file"), "x").expect("a file");
    fs_err::create_dir(dir.join("full")).expect("a directory");
    fs_err::write(dir.join("full/file"), "x").expect("a file");
    symlink("nowhere", dir.join("dangling")).expect("symlink");
    for path in ["r", "r/main", "r/main/new", "r/new", "file", "full", "dangling"] {
        let path = dir.join(path);
        let path = path.to_str().expect("text");
        refused_in(&world.home, dir, dir, &["init", path], "E_EXISTS", 1);
    }
    let nowhere = root.join("../no/such");
    refused_in(&world.home, dir, dir, &["init", nowhere.to_str().expect("text")], "E_IO", 1);
    // Adopting would put one repository inside another.
    let whole = dir.to_str().expect("text");
    refused_in(&world.home, dir, dir, &["init", whole, "--adopt"], "E_EXISTS", 1);
}

#[test]
fn names_that_are_no_names_are_refused_wherever_one_is_taken() {
    let world = World::new();
    let long = "x".repeat(300);
    for (name, code) in [
        ("a/b", "E_PATH_ESCAPE"),
        ("..", "E_PATH_ESCAPE"),
        (".", "E_PATH_ESCAPE"),
        ("/etc", "E_PATH_ESCAPE"),
        ("", "E_NAME_INVALID"),
        ("e\u{301}", "E_NAME_INVALID"),
        ("\u{e9}", "E_NAME_INVALID"),
        ("a\tb", "E_NAME_INVALID"),
        ("a\u{1b}[2J", "E_NAME_INVALID"),
        (&long, "E_NAME_INVALID"),
    ] {
        for args in [
            &["worktree", "create", name][..],
            &["worktree", "path", name],
            &["worktree", "rename", "x", name],
            &["worktree", "rename", name, "y"],
            &["worktree", "remove", name, "--force"],
            &["lock", "acquire", "-w", name],
            &["lock", "status", "-w", name],
        ] {
            world.refuses(args, code, 13);
        }
    }
}

#[test]
fn a_symlinked_control_directory_is_not_followed() {
    let world = World::new();
    world.replace_by_symlink(&world.root().join(layout::CONTROL_DIR));
    for args in [
        &["worktree", "list"][..],
        &["worktree", "create", "y"],
        &["config", "set", "lock.steal_grace_ms", "5"],
        &["lock", "acquire", "-w", "x"],
        &["audit"],
        &["init", "."],
    ] {
        world.refuses(args, "E_PATH_ESCAPE", 13);
    }
}

#[test]
fn symlinks_in_the_control_directory_are_not_followed() {
    for (path, commands) in [
        (
            layout::locks(),
            &[
                &["lock", "acquire", "-w", "x"][..],
                &["lock", "status", "-w", "x"],
                &["worktree", "create", "y"],
                &["worktree", "rename", "x", "y"],
                &["worktree", "remove", "x"],
            ][..],
        ),
        (
            layout::worktree_records(),
            &[&["worktree", "list"], &["worktree", "path", "x"], &["worktree", "create", "y"]],
        ),
        (layout::audit(), &[&["audit"], &["lock", "acquire", "-w", "x"]]),
        (layout::config(), &[&["config", "list"], &["lock", "status", "-w", "x"]]),
        (layout::format(), &[&["worktree", "list"]]),
    ] {
        let world = World::new();
        world.replace_by_symlink(&world.at(&path));
        for args in commands {
            world.refuses(args, "E_PATH_ESCAPE", 13);
        }
    }
}

#[test]
fn a_symlinked_worktree_is_not_followed() {
    let world = World::new();
    let x: WorktreeName = "x".parse().expect("a name");
    world.replace_by_symlink(&world.at(&layout::payload(&x)));
    for args in [&["worktree", "path", "x"][..], &["worktree", "remove", "x", "--force"]] {
        world.refuses(args, "E_PATH_ESCAPE", 13);
    }

    let world = World::new();
    world.replace_by_symlink(&world.root().join(layout::WORKTREES_DIR));
    for args in [
        &["worktree", "path", "x"][..],
        &["worktree", "create", "y"],
        &["worktree", "rename", "x", "y"],
        &["worktree", "remove", "x", "--force"],
    ] {
        world.refuses(args, "E_PATH_ESCAPE", 13);
    }
}

#[test]
fn a_read_only_directory_is_told_and_left_alone() {
    let world = World::new();
    let Some(view) = SmallFs::read_only_view(world.dir.path()) else { return };
    let root = view.path().join("r");
    let new = view.path().join("new");
    let new = new.to_str().expect("text");
    for args in [
        &["init", new][..],
        &["worktree", "create", "y"],
        &["worktree", "rename", "x", "y"],
        &["worktree", "remove", "x"],
        &["config", "set", "lock.steal_grace_ms", "5"],
        &["lock", "acquire", "-w", "x"],
    ] {
        refused_in(&world.home, world.dir.path(), &root, args, "E_IO", 1);
    }
    // Looking needs no writing.
    for args in [&["worktree", "list"][..], &["lock", "status"], &["lock", "why"], &["audit"]] {
        world.home.jvs(args).cwd(&root).run().ok();
    }
}

#[test]
fn a_full_disk_is_told_and_left_as_it_was() {
    let home = Home::new();
    let Some(small) = SmallFs::tmpfs(1 << 20) else { return };
    let dir = small.path();
    let root = dir.join("r");
    home.jvs(["init"]).arg(&root).run().ok();
    home.jvs(["worktree", "create", "x"]).cwd(&root).run().ok();
    // Until not even a byte more fits.
    let mut piece = 1 << 20;
    let mut hog = fs_err::File::create(dir.join("hog")).expect("a file");
    while piece > 0 {
        if std::io::Write::write_all(&mut hog, &vec![1; piece]).is_err() {
            piece /= 2;
        }
    }
    let new = dir.join("new");
    let init = ["init", new.to_str().expect("text")];
    refused_in(&home, dir, &root, &init, "E_IO", 1);
    refused_in(&home, dir, &root, &["config", "set", "lock.steal_grace_ms", "5"], "E_IO", 1);
    refused_in(&home, dir, &root, &["worktree", "create", "y"], "E_IO", 1);
    // Give some room, and the same command works.
    drop(hog);
    fs_err::remove_file(dir.join("hog")).expect("removed");
    home.jvs(["worktree", "create", "y"]).cwd(&root).run().ok();
    home.jvs(["audit", "--verify"]).cwd(&root).run().ok();
}

#[test]
fn a_repository_of_another_version_is_left_to_it() {
    let world = World::new();
    for format in
        [r#"{"format":2,"repo_id":"what it means then"}"#, r#"{"format":18446744073709551615}"#]
    {
        fs_err::write(world.at(&layout::format()), format).expect("written");
        for args in [
            &["worktree", "list"][..],
            &["worktree", "create", "y"],
            &["lock", "acquire", "-w", "x"],
            &["config", "list"],
            &["audit"],
        ] {
            world.refuses(args, "E_FORMAT_UNSUPPORTED", 10);
        }
    }
}

/// Bytes that are no record of any kind.
fn hostile_json(valid: &str) -> Vec<(&'static str, Vec<u8>)> {
    let without_brace = &valid.trim_end()[..valid.trim_end().len() - 1];
    let twice = format!("{},{}", without_brace, &valid.trim_start()[1..]);
    vec![
        ("empty", Vec::new()),
        ("torn", valid.as_bytes()[..valid.len() / 2].to_vec()),
        ("deep nesting", "[".repeat(100_000).into_bytes()),
        (
            "deep nesting inside",
            format!("{without_brace},\"x\":{}", "[".repeat(60_000)).into_bytes(),
        ),
        ("10 MB", format!("{}{valid}", " ".repeat(10 << 20)).into_bytes()),
        ("a list", b"[]".to_vec()),
        ("a number", b"1".to_vec()),
        (
            "wrong types",
            b"{\"format\":\"1\",\"version\":[],\"repo_id\":7,\"isolation\":{},\"created_at\":0}"
                .to_vec(),
        ),
        ("negative", b"{\"format\":-1,\"version\":-1}".to_vec()),
        ("duplicate keys", twice.into_bytes()),
        ("trailing rubbish", format!("{valid}x").into_bytes()),
        ("not UTF-8", b"{\"\xff\":1}".to_vec()),
        ("NULs", vec![0; 300]),
    ]
}

#[test]
fn a_torn_or_hostile_format_file_is_refused_by_every_command() {
    let world = World::new();
    let file = world.at(&layout::format());
    let valid = fs_err::read_to_string(&file).expect("the format");
    for (what, bytes) in hostile_json(&valid) {
        fs_err::write(&file, bytes).expect(what);
        world.refuses(&["worktree", "list"], "E_RECORD_INVALID", 1);
        world.refuses(&["worktree", "create", "y"], "E_RECORD_INVALID", 1);
        world.refuses(&["lock", "acquire", "-w", "x"], "E_RECORD_INVALID", 1);
    }
}

#[test]
fn a_torn_or_hostile_worktree_record_is_refused_and_hides_no_other() {
    let world = World::new();
    let x: WorktreeName = "x".parse().expect("a name");
    let file = world.at(&layout::worktree_record(&x));
    let valid = fs_err::read_to_string(&file).expect("the record");
    for (what, bytes) in hostile_json(&valid) {
        fs_err::write(&file, bytes).expect(what);
        for args in [
            &["worktree", "path", "x"][..],
            &["worktree", "create", "x"],
            &["worktree", "rename", "x", "y"],
            &["worktree", "remove", "x"],
            &["lock", "acquire", "-w", "x"],
        ] {
            world.refuses(args, "E_RECORD_INVALID", 1);
        }
        let listed = world.home.jvs(["worktree", "list", "--json"]).cwd(world.root()).run().ok();
        let worktrees = &listed.json()["data"]["worktrees"];
        assert_eq!(worktrees[0]["state"], "free", "{what}: {listed}");
        assert_eq!(worktrees[1]["error"]["code"], "E_RECORD_INVALID", "{what}: {listed}");
    }
}

#[test]
fn a_torn_or_hostile_lock_record_decides_nothing() {
    let world = World::new();
    let main = WorktreeName::main();
    let file = world.at(&layout::lock_record(&main));
    world.home.jvs(["lock", "acquire"]).cwd(world.root()).run().ok();
    let valid = fs_err::read_to_string(&file).expect("the record");
    for (what, bytes) in hostile_json(&valid) {
        fs_err::write(&file, bytes).expect(what);
        world.home.jvs(["lock", "acquire"]).session("rival").cwd(world.root()).run().exits(2);
        world.home.jvs(["lock", "status"]).session("rival").cwd(world.root()).run().ok();
        world.home.jvs(["lock", "why"]).session("rival").cwd(world.root()).run().ok();
        // The holder goes on, and mends it.
        world.home.jvs(["lock", "renew"]).cwd(world.root()).run().ok();
        let status = world.home.jvs(["lock", "status", "--json"]).cwd(world.root()).run().ok();
        assert_eq!(status.json()["data"]["record"]["fencing_token"], 1, "{what}: {status}");
    }
}

#[test]
fn a_register_that_is_not_one_entry_stops_everybody() {
    let world = World::new();
    let x: WorktreeName = "x".parse().expect("a name");
    let register = world.at(&layout::register(&x));
    let rubbish = register.join("1.1-0000.1.1.held.nonsense");
    fs_err::write(&rubbish, "").expect("planted");
    for args in [&["lock", "acquire", "-w", "x"][..], &["lock", "status", "-w", "x"]] {
        world.refuses(args, "E_FENCE_CORRUPT", 10);
    }
    fs_err::remove_file(&rubbish).expect("removed");
    let entry = register.read_dir().expect("listed").next().expect("one").expect("entry").path();
    fs_err::remove_file(entry).expect("lost");
    for args in [&["lock", "acquire", "-w", "x"][..], &["lock", "status", "-w", "x"]] {
        world.refuses(args, "E_FENCE_CORRUPT", 10);
    }
}

#[test]
fn a_hostile_configuration_names_its_line() {
    let world = World::new();
    let file = world.at(&layout::config());
    for text in [
        "[lock]\nlease_duration_ms = \"soon\"\n".to_owned(),
        "[lock]\nlease_duration_ms = 1\n".to_owned(),
        "[lock]\nlease_duration_ms = 30000\nlease_duration_ms = 30000\n".to_owned(),
        "[lcok]\n".to_owned(),
        format!("x = {}", "[".repeat(50_000)),
        "\u{0}".repeat(100),
        "#".repeat(100_000),
    ] {
        fs_err::write(&file, &text).expect("written");
        for args in [
            &["config", "list"][..],
            &["config", "set", "lock.steal_grace_ms", "5"],
            &["lock", "acquire", "-w", "x"],
        ] {
            world.refuses(args, "E_CONFIG_INVALID", 1);
        }
    }
}

#[test]
fn a_session_whose_secret_others_could_know_does_not_act() {
    let world = World::new();
    let place = world.home.runtime_dir().join("jvs");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(&place, open).expect("chmod");
    for args in
        [&["lock", "acquire", "-w", "x"][..], &["worktree", "create", "y"], &["init", "new"]]
    {
        world.refuses(args, "E_SESSION_INVALID", 1);
    }
}

#[test]
fn a_directory_that_is_gone_is_told_with_the_way_back() {
    let world = World::new();
    let script = "mkdir here && cd here && rmdir ../here && exec \"$0\" lock status";
    let jvs = world.home.jvs([""; 0]).command().get_program().to_owned();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", script]).arg(jvs).current_dir(world.home.home_dir());
    let outcome = jvs_kit::live::process::run(shell, jvs_kit::live::process::DEADLINE).exits(3);
    assert!(outcome.stderr().contains("E_NOT_A_REPOSITORY"), "{outcome}");
    assert!(outcome.stderr().contains("cd \"$PWD\""), "{outcome}");
}
