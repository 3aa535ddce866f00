//! Another user of the same host: what they may not do is told as that, with whose
//! it is and what would let them in, and nothing is called damaged.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::Jvs;
use jvs_repo::layout;
use serde_json::Value;

use crate::world::World;

const STRANGER: &str = "4711";

/// A repository of root's with one snapshot, which everybody can reach and nobody
/// else may write.
fn world_of_root() -> Option<World> {
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return None;
    }
    let world = World::new();
    fs_err::write(world.root().join("main/file"), "one").expect("written");
    world.ok("ann", "snapshot one");
    let parent = world.outside("");
    fs_err::set_permissions(&parent, Permissions::from_mode(0o755)).expect("opened");
    let private = world.outside("stranger");
    fs_err::create_dir(&private).expect("made");
    fs_err::os::unix::fs::chown(&private, Some(4711), None).expect("given");
    Some(world)
}

/// `jvs` as another user, who is in root's group.
fn as_stranger(world: &World, words: &str) -> Jvs {
    let home = world.outside("stranger");
    world
        .jvs("stranger", words)
        .under(["setpriv", "--reuid", STRANGER, "--regid", "0", "--clear-groups"])
        .env("HOME", &home)
        .env("XDG_RUNTIME_DIR", &home)
        .env("XDG_STATE_HOME", &home)
}

#[track_caller]
fn is_denied(world: &World, words: &str) -> Value {
    let told = as_stranger(world, &format!("--json {words}")).run().exits(1).json();
    let error = &told["error"];
    assert_eq!(error["code"], "E_PERMISSION", "{words}: {told}");
    let permission = &error["details"]["permission"];
    assert_eq!((&permission["owner"], &permission["you"]), (&0.into(), &4711.into()), "{told}");
    let path = permission["path"].as_str().expect("a path");
    assert!(path.starts_with(world.root().to_str().expect("text")), "{words}: {path}");
    assert!(permission["mode"].is_u64(), "{words}: {told}");
    let message = error["message"].as_str().expect("text");
    for part in ["you, user 4711", "belongs to user 0", "mode 0"] {
        assert!(message.contains(part), "{words}: {message}");
    }
    error.clone()
}

#[test]
fn what_a_user_may_not_do_is_told_with_whose_it_is_and_what_helps() {
    let Some(world) = world_of_root() else { return };
    for command in [
        "lock acquire --no-keeper",
        "lock acquire --no-keeper --wait=1s",
        "lock steal --reason mine",
        "lock reclaim --reason mine",
        "lock freeze --for 1m --reason mine",
        "run -- true",
        "snapshot two",
        "worktree create feature",
        "restore @ --into feature",
    ] {
        is_denied(&world, command);
    }
    let hint = is_denied(&world, "lock acquire --no-keeper")["hint"].clone();
    let (who, command) = hint.as_str().expect("text").split_once(": ").expect("a command");
    assert_eq!(who, "have user 0 or root give your group access");
    let helped = Command::new("sh").args(["-c", command]).status().expect("typed");
    assert!(helped.success());
    as_stranger(&world, "lock acquire --no-keeper").run().ok();
}

/// Who is of another group is let in by one command, too: to what is there, and to what
/// others make there later.
#[test]
fn what_is_advised_to_let_somebody_in_by_a_list_lets_them_in() {
    let Some(world) = world_of_root() else { return };
    if !granted(&[Capability::Program("setfacl")]) {
        return;
    }
    let stranger = |words: &str| {
        let home = world.outside("stranger");
        let me = ["setpriv", "--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"];
        let jvs = world.jvs("stranger", words).under(me).env("HOME", &home);
        jvs.env("XDG_RUNTIME_DIR", &home).env("XDG_STATE_HOME", &home)
    };
    let told = stranger("--json lock acquire --no-keeper").run().exits(1).json();
    let hint = told["error"]["hint"].as_str().expect("text");
    let (who, command) = hint.split_once(": ").expect("a command");
    assert_eq!(who, "have user 0 or root give you access", "{told}");
    let helped = Command::new("sh").args(["-c", command]).status().expect("typed");
    assert!(helped.success(), "{command}");
    for _ in 0..2 {
        for words in ["lock acquire --no-keeper", "snapshot mine", "lock release", "gc", "doctor"] {
            stranger(words).run().ok();
        }
        world.ok("ann", "worktree create later");
        world.ok("ann", "snapshot hers");
        stranger("lock acquire --no-keeper -w later").run().ok();
        stranger("lock release -w later").run().ok();
        world.ok("ann", "worktree remove later");
    }
    world.ok("ann", "verify --all");
}

/// Whether there is a repository cannot be told from where nobody else may look.
#[test]
fn a_place_that_i_may_not_look_at_is_told_with_whose_it_is() {
    let Some(world) = world_of_root() else { return };
    fs_err::set_permissions(world.root(), Permissions::from_mode(0o700)).expect("closed");
    let named = format!("--repo {}/main status", world.root().display());
    for words in ["status", "lock acquire --no-keeper", &named] {
        let error = is_denied(&world, words);
        assert!(error["hint"].as_str().expect("text").contains("setfacl"), "{words}: {error}");
    }
}

#[test]
fn what_a_user_may_not_read_is_not_damaged() {
    let Some(world) = world_of_root() else { return };
    let id = world.json("ann", "history")["data"]["snapshots"][0]["snapshot_id"].clone();
    let dir = layout::snapshot(id.as_str().expect("text").parse().expect("an id"));
    let manifest = world.root().join(layout::manifest(&dir).as_str());
    fs_err::set_permissions(&manifest, Permissions::from_mode(0o600)).expect("closed");
    for command in ["status", "verify --all", "restore @ --into feature"] {
        is_denied(&world, command);
    }
    world.ok("ann", "snapshot whose-parent-is-closed");
    // A descriptor, too: the lineage of the next one cannot be followed beyond it; and a tag.
    world.ok("ann", "tag @ v1");
    let tag = layout::tag(&"v1".parse().expect("a name"));
    let paths = [layout::descriptor(&dir), tag].map(|path| world.root().join(path.as_str()));
    for closed in [manifest].into_iter().chain(paths) {
        fs_err::set_permissions(&closed, Permissions::from_mode(0o600)).expect("closed");
        let checked = as_stranger(&world, "doctor --strict").run();
        for word in ["CORRUPT", "TORN", "FORGED", "BROKEN", "backup"] {
            assert!(!checked.stdout().contains(word), "{word}: {checked}");
        }
        assert!(checked.stdout().contains("you, user 4711, may not read"), "{checked}");
    }
    world.ok("ann", "verify --all");
    world.ok("ann", "doctor --strict");
}

/// The stranger may do everything in the repository and may not read one file, or one
/// directory, of a snapshot, whose permissions nobody is to change.
#[test]
fn the_files_of_a_snapshot_that_a_user_may_not_read_are_told_with_whose_they_are() {
    let Some(world) = world_of_root() else { return };
    fs_err::create_dir(world.root().join("main/dir")).expect("made");
    fs_err::write(world.root().join("main/dir/inner"), "two").expect("written");
    let (file, dir) = (world.root().join("main/file"), world.root().join("main/dir"));
    let mode = |path: &Path, bits| {
        fs_err::set_permissions(path, Permissions::from_mode(bits)).expect("changed");
    };
    for (closed, of_file, of_dir) in [("file", 0o600, 0o755), ("dir", 0o644, 0o700)] {
        mode(&file, of_file);
        mode(&dir, of_dir);
        world.ok("ann", &format!("snapshot closed-{closed}"));
        let open = format!(
            "chmod g+rwX . worktrees; find {} -name payload -prune -o -exec chmod g+rwX {{}} +",
            layout::CONTROL_DIR
        );
        let opened = Command::new("sh").args(["-c", &open]).current_dir(world.root()).status();
        assert!(opened.expect("typed").success());
        for command in ["verify @", "restore @ --into feature"] {
            let error = is_denied(&world, command);
            let path = error["details"]["permission"]["path"].as_str().expect("a path");
            assert!(path.ends_with(&format!("payload/{closed}")), "{command}: {error}");
            let hint = error["hint"].as_str().expect("text");
            assert!(hint.starts_with("have root run it"), "{command}: {error}");
        }
    }
    world.ok("ann", "verify --all");
    world.ok("ann", "restore @ --into feature");
}

#[test]
fn a_configuration_that_cannot_be_read_is_not_invalid() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let config = layout::config();
    for calls in ["openat2", "pread64"] {
        let inject = format!("inject={calls}:error=EIO");
        let strace = ["strace", "-f", "-o", "/dev/null", "-P", config.as_str(), "-e", &inject];
        let looked = world.jvs("ann", "doctor").under(strace).cwd(world.root()).run().exits(12);
        let told = format!("error[D_UNREADABLE] {config}");
        assert!(looked.stdout().contains(&told), "{looked}");
        assert!(!looked.stdout().contains("D_CONFIG_INVALID"), "{looked}");
    }
    world.ok("ann", "doctor");
}

/// ntfs-3g, exfat-fuse and bindfs answer EINVAL to a rename that must not replace;
/// so does this kernel here, when it is told to.
#[test]
fn a_filesystem_without_the_renames_that_are_needed_is_unsafe_and_not_broken() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let world = World::new();
    let without = |words: &str| {
        world.jvs("ann", words).under([
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=renameat2",
            "-e",
            "inject=renameat2:error=EINVAL",
        ])
    };
    for command in ["--json init new", "--json worktree create feature"] {
        let dir = if command.contains("init") { world.outside("") } else { world.root() };
        let told = without(command).cwd(dir).run().exits(10).json();
        assert_eq!(told["error"]["code"], "E_UNSAFE_FILESYSTEM", "{command}: {told}");
    }
}
