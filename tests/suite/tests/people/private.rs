//! The private directory in which a session's processes agree: what is wrong with it is
//! told, changes nothing, and leaves no lock behind.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::mount::MountPoint;
use jvs_kit::live::process::{Outcome, eventually};
use rustix::process::Signal;

use crate::world::{PATIENCE, World, is_gone};

pub(crate) fn place(world: &World) -> PathBuf {
    world.home.home_dir().join(".local/state/jvs-holds")
}

/// The directory of the only hold of session `ann`.
pub(crate) fn hold(world: &World) -> PathBuf {
    let holds = place(world).join("holds");
    let only = |dir: PathBuf| {
        let mut entries = dir.read_dir().expect("listed").map(|entry| entry.expect("read").path());
        entries.next().expect("one")
    };
    only(only(holds))
}

#[track_caller]
fn is_refused_and_free(world: &World, refused: &Outcome, code: &str) {
    assert!(refused.stderr().contains(code), "{refused}");
    assert!(refused.stderr().contains("hint: "), "{refused}");
    assert_eq!(world.status()["state"], "free", "{refused}");
    assert_eq!(world.status()["fencing_token"], 0, "nothing was changed");
}

#[test]
fn a_private_directory_that_others_can_write_is_refused() {
    let world = World::new();
    for mode in [0o777, 0o750] {
        let open = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(place(&world), open).expect("opened");
        for words in ["lock acquire", "run -- true", "snapshot mine"] {
            let refused = world.jvs("bob", words).run().exits(1);
            is_refused_and_free(&world, &refused, "E_SESSION_INVALID");
        }
    }
}

#[test]
fn a_private_directory_that_is_a_file_is_refused() {
    let world = World::new();
    fs_err::remove_dir_all(place(&world)).expect("removed");
    fs_err::write(place(&world), "").expect("written");
    let refused = world.jvs("bob", "lock acquire").run().exits(1);
    is_refused_and_free(&world, &refused, "E_SESSION_INVALID");
}

/// It is not the secret that lies there.
#[test]
fn a_memory_that_cannot_be_used_is_told_as_that() {
    let world = World::new();
    fs_err::set_permissions(place(&world), std::fs::Permissions::from_mode(0o777)).expect("opened");
    let refused = world.jvs("bob", "lock acquire").run().exits(1);
    assert!(!refused.stderr().contains("secret"), "{refused}");
    let what = "the memory of this user's sessions cannot be trusted: ";
    assert!(refused.stderr().contains(what), "{refused}");
    assert!(refused.stderr().contains(place(&world).to_str().expect("text")), "{refused}");
}

/// Nothing is wrong with the log then, nor with the mount that it is on.
#[test]
fn a_turn_at_the_log_that_cannot_be_taken_is_told_as_the_session_s_own_file() {
    let world = World::new();
    let runtime = world.home.runtime_dir().join("jvs");
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "lock release");
    // One of a session and repository each; `init` had no session of its own.
    let entries = runtime.read_dir().expect("listed").map(|it| it.expect("listed").path());
    let mut turns: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().contains("/turn-")).collect();
    turns.sort_by_key(|turn| turn.metadata().and_then(|meta| meta.modified()).expect("there"));
    let turn = turns.pop().expect("ann has one");
    let put: [fn(&PathBuf); 2] = [
        |at| fs_err::create_dir(at).expect("made"),
        |at| fs_err::os::unix::fs::symlink("/etc/passwd", at).expect("made"),
    ];
    for put in put {
        fs_err::remove_file(&turn).expect("removed");
        put(&turn);
        for words in ["lock acquire --no-keeper", "worktree create x", "tag @ x", "gc"] {
            let refused = world.jvs("ann", words).run();
            if refused.code() == 0 {
                continue;
            }
            let said = refused.stderr();
            assert!(!said.contains("check the mount"), "{words}: {refused}");
            assert!(
                said.contains("E_SESSION_INVALID") || said.contains("E_NOT_FOUND"),
                "{refused}"
            );
        }
        let told = world.jvs("ann", "--json lock acquire --no-keeper").run().exits(1).json();
        assert_eq!(told["error"]["code"], "E_SESSION_INVALID", "{told}");
        let hint = told["error"]["hint"].as_str().expect("text");
        let remedy = hint.split('`').nth(1).expect("a command");
        assert!(remedy.ends_with(turn.to_str().expect("text")), "{hint}");
        let typed = std::process::Command::new("sh").args(["-c", remedy]).status();
        assert!(typed.expect("typed").success(), "{remedy}");
        world.ok("ann", "lock acquire --no-keeper");
        world.ok("ann", "lock release");
    }
}

#[test]
fn a_private_directory_on_a_filesystem_of_many_hosts_is_refused() {
    let Some(volume) = Volume::mounted(Engine::Sqlite, 1) else { return };
    let world = World::new();
    let there = |words: &str| {
        let jvs = world.jvs("bob", words).env("HOME", volume.host(0)).env_remove("XDG_STATE_HOME");
        jvs.env("XDG_RUNTIME_DIR", volume.host(0))
    };
    for words in ["lock acquire", "run -- true"] {
        let refused = there(words).run().exits(1);
        is_refused_and_free(&world, &refused, "E_SESSION_INVALID");
        assert!(refused.stderr().contains("fuse.juicefs"), "{refused}");
    }
    // With a place on this host for what must not be remembered it goes on.
    let run = world.home.runtime_dir();
    there("lock acquire --no-keeper").env("XDG_RUNTIME_DIR", run).run().ok();
}

#[test]
fn a_private_directory_that_is_full_is_told_of_and_nothing_is_locked() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let full = MountPoint::create(world.outside("full"));
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=64k,nr_inodes=4,mode=700", "tmpfs"]).arg(full.path());
    jvs_kit::live::process::run(mount, PATIENCE).ok();
    for words in ["lock acquire", "run -- true", "snapshot mine"] {
        let refused = world.jvs("bob", words).env("XDG_STATE_HOME", full.path()).run();
        assert_ne!(refused.code(), 0, "{refused}");
        is_refused_and_free(&world, &refused, "No space left on device");
    }
}

/// A private directory of little room, and how to fill it.
struct Small(MountPoint);

impl Small {
    fn new(world: &World) -> Self {
        let place = MountPoint::create(world.outside("small"));
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k,nr_inodes=64,mode=700", "tmpfs"]);
        mount.arg(place.path());
        jvs_kit::live::process::run(mount, PATIENCE).ok();
        Small(place)
    }

    fn fill(&self) {
        let full = |at: usize| fs_err::File::create(self.0.path().join(format!("x{at}"))).is_err();
        assert!((0..100).any(full), "it has an end");
    }

    fn empty(&self) {
        for at in 0..100 {
            let _ = fs_err::remove_file(self.0.path().join(format!("x{at}")));
        }
    }
}

#[test]
fn a_private_directory_that_fills_up_under_my_lock_keeps_nobody_from_giving_it_back() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let world = World::new();
    let small = Small::new(&world);
    let jvs = |words: &str| world.jvs("ann", words).env("XDG_STATE_HOME", small.0.path());
    jvs("lock acquire --lease 3s").run().ok();
    let (renewals, keeper) = (world.events("renew").len(), world.keeper());
    small.fill();
    eventually("renewed", PATIENCE, || world.events("renew").len() > renewals + 1);
    // Whoever comes now is told, and what is held stays held.
    for words in ["lock renew", "run -- true", "snapshot mine", "lock acquire"] {
        let refused = jvs(words).run();
        assert_ne!(refused.code(), 0, "{refused}");
        assert!(refused.stderr().contains("No space left on device"), "{refused}");
        assert_eq!(world.status()["record"]["session_id"], "ann", "{refused}");
        assert!(!is_gone(keeper), "{refused}");
    }
    jvs("lock release").run().ok();
    assert_eq!(world.status()["state"], "free");
    eventually("its keeper is gone", PATIENCE, || is_gone(keeper));
    small.empty();
    jvs("run -- true").run().ok();
    world.eventually_free();
    world.audit_holds();
}

#[test]
fn a_private_directory_that_fills_up_under_my_build_keeps_nobody_from_ending_it() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let world = World::new();
    let small = Small::new(&world);
    let go = world.outside("go");
    let begun = world.outside("begun");
    let script =
        format!("touch {}; until [ -e {} ]; do sleep 0.02; done", begun.display(), go.display());
    let build = world.run("ann", "run --lease 3s", &script);
    let build = build.env("XDG_STATE_HOME", small.0.path()).start();
    // Not just its keeper: a run that finds no room before it has begun may be refused.
    eventually("it runs", PATIENCE, || begun.exists());
    small.fill();
    let renewals = world.events("renew").len();
    eventually("renewed", PATIENCE, || world.events("renew").len() > renewals + 1);
    fs_err::write(&go, "").expect("told to go on");
    build.wait(PATIENCE).ok();
    assert_eq!(world.status()["state"], "free");
    world.audit_holds();
}

/// A name that is no stake says nothing; one of a process that is gone, or whose pid is
/// another's by now, keeps nothing; one of a process that cannot be seen keeps the lock.
#[test]
fn stakes_that_somebody_made_up_keep_nothing_unless_they_might_be_true() {
    let world = World::new();
    world.ok("ann", "lock acquire --lease 2s");
    let stakes = hold(&world).join("stakes");
    let real = stakes.read_dir().expect("listed").flatten().map(|it| it.file_name());
    let real = real.map(|name| name.to_string_lossy().into_owned());
    let real = real.filter(|name| name.contains(".acquire.")).collect::<Vec<_>>();
    let parts: Vec<&str> = real[0].split('.').collect();
    let forged = |maker: &str, namespace: &str| {
        let (epoch, token, time) = (parts[1], parts[2], parts[8]);
        format!("00000000000000ff.{epoch}.{token}.run.exclusive.{maker}.{namespace}.{time}.-.-.-")
    };
    let me = std::process::id();
    let torn = ["", "x", "lost", "lost.", "lost.1-a3f0", "00.answered", ".answered", "~"];
    let made_up = torn.into_iter().filter(|name| !name.is_empty()).map(str::to_owned);
    let made_up =
        made_up.chain([forged(&format!("{me}.1"), parts[7]), forged("4194303.7", parts[7])]);
    for name in made_up {
        fs_err::write(stakes.join(name), "").expect("forged");
    }
    world.ok("ann", "snapshot mine");
    world.run("ann", "run", "true").run().ok();
    world.ok("ann", "lock release");
    assert_eq!(world.status()["state"], "free");

    world.ok("ann", "lock acquire --lease 2s");
    let unseen = forged("1.1", "1").replace(&format!(".{}.run", parts[2]), ".2.run");
    let claim = fs_err::File::create(stakes.join(&unseen)).expect("forged");
    claim.lock().expect("claimed, as by a process that lives");
    let refused = world.jvs("ann", "lock release").run().exits(2);
    assert!(refused.stderr().contains("process 1 "), "{refused}");
    assert_eq!(world.status()["state"], "held");
    drop(claim);
    world.ok("ann", "lock release");
    world.eventually_free();
}

/// Without a name of the hold nobody guesses; what has no such name is nobody's hold.
#[test]
fn a_hold_whose_name_is_torn_is_told_of() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "lock release");
    let token = world.status()["fencing_token"].clone();
    let name = hold(&world).join("name");
    fs_err::write(name.join("foreign"), "").expect("put there");
    world.ok("ann", "lock status");
    let entry = fs_err::read_dir(&name).expect("listed").map(|entry| entry.expect("one").path());
    let own = entry.filter(|path| !path.ends_with("foreign")).collect::<Vec<_>>();
    fs_err::rename(&own[0], name.join("torn")).expect("torn");
    let refused = world.jvs("ann", "lock acquire").run().exits(1);
    assert!(refused.stderr().contains("private directory"), "{refused}");
    assert_eq!(world.status()["fencing_token"], token, "nothing was changed");
    fs_err::rename(name.join("torn"), &own[0]).expect("back");
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "lock release");
}

#[test]
fn a_session_with_a_name_of_300_bytes_is_refused() {
    let world = World::new();
    let refused = world.jvs(&"s".repeat(300), "lock acquire").run().exits(1);
    is_refused_and_free(&world, &refused, "E_SESSION_INVALID");
}

#[test]
fn to_join_where_there_is_nothing_to_join_is_to_take_it() {
    let world = World::new();
    world.run("ann", "run --join", "true").run().ok();
    assert_eq!(world.status()["state"], "free");
    assert_eq!(world.status()["fencing_token"], 1);
}

#[test]
fn a_private_directory_of_somebody_else_is_not_used() {
    let world = World::new();
    fs_err::remove_dir_all(place(&world)).expect("removed");
    fs_err::create_dir(place(&world)).expect("made");
    fs_err::os::unix::fs::chown(place(&world), Some(1234), None).expect("given away");
    world.ok("ann", "lock acquire");
    assert_eq!(place(&world).read_dir().expect("listed").count(), 0, "nothing was put there");
    world.ok("ann", "lock release");
    assert_eq!(world.status()["state"], "free");
}

/// Another home is another private directory, in which nobody sees the build.
#[test]
fn from_another_home_i_cannot_release_the_lock_under_my_own_build() {
    let world = World::new();
    let begun = world.outside("begun");
    let script = format!("touch {}; exec sleep 60", begun.display());
    let running = world.run("ann", "run", &script).start();
    eventually("it runs", PATIENCE, || begun.exists());
    let elsewhere = world.outside("elsewhere");
    fs_err::create_dir(&elsewhere).expect("a home");
    let there = |words: &str| {
        let jvs = world.jvs("ann", words).env("HOME", &elsewhere);
        jvs.env_remove("XDG_STATE_HOME").run()
    };
    there("lock release").exits(4);
    there("lock release --force").exits(4);
    let refused = there("run -- true").exits(2);
    assert!(refused.stderr().contains("E_LOCK_CONFLICT"), "{refused}");
    assert_eq!(world.status()["state"], "held");
    world.signal(running.pid(), Signal::TERM);
    running.wait(PATIENCE).exits(143);
    world.eventually_free();
}

#[test]
fn a_hold_whose_name_is_gone_counts_as_taken_until_i_say_that_i_know() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "lock release");
    let name = hold(&world).join("name");
    for entry in name.read_dir().expect("listed").flatten() {
        fs_err::remove_file(entry.path()).expect("removed");
    }
    for words in ["run -- true", "snapshot mine"] {
        let refused = world.jvs("ann", words).run().exits(5);
        assert!(refused.stderr().contains("E_FENCING_MISMATCH"), "{refused}");
        assert!(refused.stderr().contains("is no longer known"), "{refused}");
        assert_eq!(world.status()["fencing_token"], 1, "nothing was changed");
    }
    world.ok("ann", "lock acquire --no-keeper");
    world.ok("ann", "lock release");
    world.run("ann", "run", "true").run().ok();
    world.eventually_free();
}
