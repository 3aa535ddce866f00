//! Two hosts, one JuiceFS volume: what one does, the other sees at once.
#![allow(clippy::print_stderr, reason = "how soon somebody is told is worth seeing")]

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jvs_kit::live::accesslog::{Request, all_is_forgotten, requests, without_forgotten};
use jvs_kit::live::home::Home;
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::{DEADLINE, eventually};
use jvs_repo::clock::{Clock as _, SystemClock};
use jvs_repo::layout;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use rustix::process::Signal;
use serde_json::Value;

/// The names of the worktrees, as `jvs worktree list` gives them.
#[track_caller]
fn worktrees(host: &Home, repository: &Path) -> Vec<String> {
    let listed = host.jvs(["worktree", "list", "--json"]).cwd(repository.join("main")).run().ok();
    let document = listed.json();
    assert_eq!(document["ok"], Value::Bool(true), "{listed}");
    let worktrees = document["data"]["worktrees"].as_array().expect("a list of worktrees");
    let name = |worktree: &Value| worktree["name"].as_str().expect("a worktree's name").to_owned();
    worktrees.iter().map(name).collect()
}

fn what_one_host_makes_the_other_sees(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let (here, there) = (Home::new(), Home::new());
    let on = |host: usize| -> PathBuf { volume.host(host).join("repository") };

    here.jvs(["init", "--json"]).arg(on(0)).run().ok();
    assert_eq!(worktrees(&there, &on(1)), ["main"], "the other host sees the new repository");

    here.jvs(["worktree", "create", "next"]).cwd(on(0).join("main")).run().ok();
    assert_eq!(worktrees(&there, &on(1)), ["main", "next"], "and the new worktree");
    let path = there.jvs(["worktree", "path", "next"]).cwd(on(1).join("main")).run().ok();
    assert_eq!(Path::new(path.stdout().trim_end()), on(1).join("worktrees/next"));

    there.jvs(["worktree", "create", "next"]).cwd(on(1).join("main")).run().exits(1);
    there.jvs(["worktree", "create", "back"]).cwd(on(1).join("main")).run().ok();
    assert_eq!(worktrees(&here, &on(0)), ["back", "main", "next"], "and the other way round");
}

/// Read at once through a second mount, where a file's content would still be
/// the cached one.
fn a_lock_taken_on_one_host_is_held_on_the_other(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let (here, there) = (Home::new(), Home::new());
    let main = |host: usize| -> PathBuf { volume.host(host).join("repository/main") };
    let acquire = |home: &Home, host: usize, session: &str| {
        home.jvs(["lock", "acquire", "--no-keeper", "--lease", "10m", "--json"])
            .cwd(main(host))
            .session(session)
            .run()
    };
    here.jvs(["init"]).arg(volume.host(0).join("repository")).run().ok();

    acquire(&here, 0, "here").ok();
    let refused = acquire(&there, 1, "there").exits(2).json();
    assert_eq!(refused["error"]["code"], "E_LOCK_CONFLICT");
    assert_eq!(refused["error"]["details"]["session_id"], "here");

    here.jvs(["lock", "release"]).cwd(main(0)).session("here").run().ok();
    let granted = acquire(&there, 1, "there").ok().json();
    assert_eq!(granted["data"]["record"]["fencing_token"], 2, "a release keeps the token");
    let refused = acquire(&here, 0, "here").exits(2).json();
    assert_eq!(refused["error"]["details"]["session_id"], "there");
}

/// The holder's host acknowledged its record and never uploaded it: its name is
/// there and its content never will be. Everybody else goes on without it.
fn a_lock_whose_record_was_never_uploaded_is_seen_and_taken(engine: Engine) {
    let Some(mut volume) = Volume::format(engine) else { return };
    let there = volume.mount(&[]);
    let here = volume.mount(&["--writeback", "--upload-delay", "1h"]);
    let (dead, rival) = (Home::new(), Home::new());
    dead.jvs(["init"]).arg(there.join("repository")).run().ok();
    let taken = dead
        .jvs(["lock", "acquire", "--no-keeper", "--lease", "2s"])
        .cwd(here.join("repository/main"))
        .session("dead")
        .run()
        .ok();
    assert!(taken.stderr().contains("--writeback"), "who locks there is warned: {taken}");
    volume.signal_host(1, Signal::KILL);

    let jvs = |words: &str| {
        let deadline = Duration::from_secs(60);
        rival
            .jvs(words.split(' '))
            .cwd(there.join("repository/main"))
            .session("rival")
            .deadline(deadline)
            .run()
    };
    let status = jvs("lock status --json").ok().json();
    assert!(status["data"]["record"].is_null(), "nobody can read it: {status}");
    assert_eq!(status["data"]["fencing_token"], 1, "the register tells: {status}");
    jvs("lock why").ok();
    let taken = jvs("lock steal --observe --no-keeper --lease 1m --reason gone --json").ok().json();
    assert_eq!(taken["data"]["fencing_token"], 2, "{taken}");
    let status = jvs("lock status --json").ok().json();
    assert_eq!(status["data"]["record"]["session_id"], "rival", "and its record is anew: {status}");
}

/// By every command that takes a lock which outlasts it, or runs another program under one.
#[test]
fn whoever_takes_a_lock_on_a_mount_that_uploads_later_is_warned() {
    let Some(mut volume) = Volume::format(Engine::Sqlite) else { return };
    let mount = volume.mount(&["--writeback"]);
    let home = Home::new();
    home.jvs(["init"]).arg(mount.join("repository")).run().ok();
    let main = mount.join("repository/main");
    let jvs = |words: &[&str]| home.jvs(words).cwd(&main).env("SHELL", "/bin/true").run().ok();
    for words in [
        &["lock", "acquire", "--no-keeper"][..],
        &["lock", "steal", "--no-keeper", "--reason", "x"],
        &["lock", "reclaim", "--no-keeper", "--reason", "x"],
        &["run", "true"],
        &["shell"],
        &["lock", "release"],
        &["lock", "freeze", "--for", "1m", "--reason", "x"],
        &["lock", "unfreeze"],
    ] {
        let takes = !["release", "unfreeze"].contains(words.get(1).unwrap_or(&""));
        let told = jvs(words);
        assert_eq!(told.stderr().matches("--writeback").count(), usize::from(takes), "{told}");
    }
    let begun = jvs(&["run", "sh", "-c", "echo begun >&2"]);
    let place = |words: &str| begun.stderr().find(words).expect("it is said");
    assert!(place("--writeback") < place("begun"), "in time: {begun}");
    let answer = jvs(&["run", "--json", "true"]).json();
    assert!(answer["warnings"].to_string().contains("--writeback"), "{answer}");
}

/// The line is one line, whichever mount its waiters stand on.
fn waiters_of_two_hosts_stand_in_one_line(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let (here, there) = (Home::new(), Home::new());
    let main = |host: usize| -> PathBuf { volume.host(host).join("repository/main") };
    here.jvs(["init"]).arg(volume.host(0).join("repository")).run().ok();
    let hold = ["lock", "acquire", "--no-keeper", "--lease", "10m"];
    here.jvs(hold).cwd(main(0)).session("holder").run().ok();

    let waiting = |home: &Home, host: usize, session: &str, place: usize| {
        let jvs = home.jvs(hold).arg("--wait=50s").cwd(main(host)).session(session);
        let running = jvs.start();
        eventually("it stands in line", DEADLINE, || {
            let status = here.jvs(["lock", "status", "--json"]).cwd(main(0)).run().ok().json();
            status["data"]["waiters"].as_array().is_some_and(|line| line.len() == place)
        });
        running
    };
    let first = waiting(&there, 1, "first", 1);
    let second = waiting(&here, 0, "second", 2);
    let release = |home: &Home, host: usize, session: &str| {
        home.jvs(["lock", "release"]).cwd(main(host)).session(session).run().ok();
    };
    release(&here, 0, "holder");
    first.wait(DEADLINE).ok();
    release(&there, 1, "first");
    second.wait(DEADLINE).ok();
    let status = there.jvs(["lock", "status", "--json"]).cwd(main(1)).run().ok().json();
    assert_eq!(status["data"]["fencing_token"], 3);
    assert_eq!(status["data"]["waiters"], Value::Array(Vec::new()));
}

/// Each host has a worktree and waits for the other's.
fn two_hosts_that_wait_for_each_other_are_told(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let (here, there) = (Home::new(), Home::new());
    let main = |host: usize| -> PathBuf { volume.host(host).join("repository/main") };
    here.jvs(["init"]).arg(volume.host(0).join("repository")).run().ok();
    let jvs = |home: &Home, host: usize, session: &str, words: &str| {
        home.jvs(words.split(' ')).cwd(main(host)).session(session)
    };
    for worktree in ["a", "b"] {
        jvs(&here, 0, "here", &format!("worktree create {worktree}")).run().ok();
    }
    jvs(&here, 0, "here", "lock acquire -w a").run().ok();
    jvs(&there, 1, "there", "lock acquire -w b").run().ok();
    let older = jvs(&here, 0, "here", "lock acquire -w b --wait=50s --json").start();
    eventually("it stands in line", DEADLINE, || {
        let status = jvs(&there, 1, "there", "lock status -w b --json").run().ok().json();
        status["data"]["waiters"].as_array().is_some_and(|line| line.len() == 1)
    });
    let mut newest = jvs(&there, 1, "there", "lock acquire -w a --wait=50s --json").start();
    let line = layout::queue(&"a".parse().expect("a name"));
    let line = volume.host(0).join("repository").join(line.as_str());
    let stands = || line.read_dir().is_ok_and(|mut tickets| tickets.next().is_some());
    eventually("the other stands in line", DEADLINE, || stands() || newest.ended());
    let began = SystemClock.now().boot;
    let told = newest.wait(DEADLINE).exits(2).json();
    let ms = SystemClock.now().boot.since(began);
    eprintln!("{engine:?}: told of a deadlock {ms} ms after the second wait began");
    assert_eq!(told["error"]["code"], "E_DEADLOCK", "{told}");
    assert_eq!(told["error"]["details"]["cycle"][0]["held_by"], "here", "{told}");
    jvs(&there, 1, "there", "lock release -w b").run().ok();
    assert_eq!(older.wait(DEADLINE).ok().json()["data"]["worktree"], "b");
}

#[test]
fn two_hosts_that_wait_for_each_other_are_told_on_sqlite() {
    two_hosts_that_wait_for_each_other_are_told(Engine::Sqlite);
}

#[test]
fn two_hosts_that_wait_for_each_other_are_told_on_redis() {
    two_hosts_that_wait_for_each_other_are_told(Engine::Redis);
}

#[test]
fn waiters_of_two_hosts_stand_in_one_line_on_sqlite() {
    waiters_of_two_hosts_stand_in_one_line(Engine::Sqlite);
}

#[test]
fn waiters_of_two_hosts_stand_in_one_line_on_redis() {
    waiters_of_two_hosts_stand_in_one_line(Engine::Redis);
}

#[test]
fn what_one_host_makes_the_other_sees_on_sqlite() {
    what_one_host_makes_the_other_sees(Engine::Sqlite);
}

#[test]
fn what_one_host_makes_the_other_sees_on_redis() {
    what_one_host_makes_the_other_sees(Engine::Redis);
}

#[test]
fn a_lock_taken_on_one_host_is_held_on_the_other_on_sqlite() {
    a_lock_taken_on_one_host_is_held_on_the_other(Engine::Sqlite);
}

#[test]
fn a_lock_taken_on_one_host_is_held_on_the_other_on_redis() {
    a_lock_taken_on_one_host_is_held_on_the_other(Engine::Redis);
}

/// How a register looks to those who move it through two mounts at once: each
/// look at the first batch of a fresh descriptor shows one name, and of two who
/// move it from the same name one succeeds. All of the lock stands on this.
fn a_register_moved_from_two_hosts_always_shows_one_name(engine: Engine) {
    const MOVES: u64 = 1500;
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let dir = RepoPath::root().child("register").expect("a plain name");
    let name = |moved: u64, by: usize| {
        let filling = "f".repeat(140);
        dir.child(&format!("{moved}.{by}.{filling}")).expect("a plain name")
    };
    let store = |host: usize| PosixStore::open(volume.host(host)).expect("a mount");
    store(0).make_dir(&dir).expect("a directory");
    store(0).create_new(&name(0, 0)).expect("the one entry");

    let move_it = |host: usize| {
        let store = store(host);
        let mut won = 0;
        for _ in 0..100 * MOVES {
            let seen = store.first_batch(&dir).expect("a look");
            assert_eq!(seen.len(), 1, "host {host} sees {seen:?}");
            let seen = seen[0].to_str().expect("text");
            let moved: u64 = seen.split('.').next().and_then(|n| n.parse().ok()).expect("a number");
            if moved >= MOVES {
                return won;
            }
            let from = dir.child(seen).expect("a plain name");
            match store.rename(&from, &name(moved + 1, host)) {
                Ok(()) => won += 1,
                Err(lost) => assert_eq!(lost.kind(), std::io::ErrorKind::NotFound, "{lost}"),
            }
        }
        panic!("host {host} sees a name that is not there to be moved");
    };
    let won: Vec<u64> = std::thread::scope(|scope| {
        let both = [0, 1].map(|host| scope.spawn(move || move_it(host)));
        both.map(|host| host.join().expect("a host that saw what it should")).to_vec()
    });
    assert_eq!(won.iter().sum::<u64>(), MOVES, "each move was won once: {won:?}");
    assert!(won.iter().all(|won| *won > 0), "both hosts took part: {won:?}");
}

#[test]
fn a_register_moved_from_two_hosts_always_shows_one_name_on_sqlite() {
    a_register_moved_from_two_hosts_always_shows_one_name(Engine::Sqlite);
}

#[test]
fn a_register_moved_from_two_hosts_always_shows_one_name_on_redis() {
    a_register_moved_from_two_hosts_always_shows_one_name(Engine::Redis);
}

#[test]
fn a_lock_whose_record_was_never_uploaded_is_seen_and_taken_on_redis() {
    a_lock_whose_record_was_never_uploaded_is_seen_and_taken(Engine::Redis);
}

/// A repository on a mount, and a session that asks the client for as little as it can.
struct Asking<'v> {
    mount: &'v Path,
    home: Home,
    /// The worktree, open: whoever starts a program there looks up no names.
    main: OwnedFd,
}

impl<'v> Asking<'v> {
    fn in_a_repository_on(mount: &'v Path) -> Self {
        let (home, root) = (Home::new(), mount.join("repository"));
        home.jvs(["init"]).arg(&root).run().ok();
        let main = fs_err::File::open(root.join("main")).expect("a worktree").into();
        let asking = Asking { mount, home, main };
        // The first pair makes the session's log; later ones are all alike.
        asking.jvs("lock acquire --no-keeper");
        asking.jvs("lock release");
        asking
    }

    fn jvs(&self, words: &str) {
        let main = format!("/proc/{}/fd/{}", std::process::id(), self.main.as_raw_fd());
        self.home.jvs(words.split(' ')).cwd(main).run().ok();
    }

    /// At most that many are waited for by a command that the kernel can tell no name. What
    /// a busy machine adds beyond what can be seen from the requests has a few tries.
    #[track_caller]
    fn asks_for_at_most(&self, most: usize, words: &str, undo: Option<&str>) {
        const TRIES: usize = 5;
        let mut fewest: Option<Vec<Request>> = None;
        for _ in 0..TRIES {
            all_is_forgotten(self.mount);
            let mut asked = without_forgotten(requests(self.mount, || self.jvs(words)));
            asked.retain(Request::is_waited_for);
            if fewest.as_ref().is_none_or(|fewest| asked.len() < fewest.len()) {
                fewest = Some(asked);
            }
            if fewest.as_ref().is_some_and(|fewest| fewest.len() <= most) {
                undo.into_iter().for_each(|words| self.jvs(words));
                return;
            }
            undo.into_iter().for_each(|words| self.jvs(words));
        }
        let fewest = fewest.unwrap_or_default();
        let lines: Vec<&str> = fewest.iter().map(|request| request.line.as_str()).collect();
        panic!("jvs {words}: {}, not {most}:\n{}", lines.len(), lines.join("\n"));
    }
}

#[test]
fn a_lock_asks_juicefs_for_no_more_than_is_said() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let asking = Asking::in_a_repository_on(volume.host(0));
    asking.asks_for_at_most(12, "lock status", None);
    asking.asks_for_at_most(28, "lock acquire --no-keeper", Some("lock release"));
    asking.jvs("lock acquire --no-keeper");
    asking.asks_for_at_most(16, "lock status", None);
    asking.asks_for_at_most(27, "lock renew", None);
    asking.asks_for_at_most(30, "lock release", Some("lock acquire --no-keeper"));
}

#[test]
fn a_run_asks_juicefs_for_no_more_than_is_said() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let asking = Asking::in_a_repository_on(volume.host(0));
    asking.asks_for_at_most(59, "run -- true", None);
}

/// What a host remembers of the policy is not believed once another has changed that: in place
/// and to the same length, too.
#[test]
fn a_policy_that_another_host_changed_is_noticed_at_once() {
    const SETTLED: Duration = Duration::from_secs(3);
    let Some(volume) = Volume::mounted(Engine::Redis, 2) else { return };
    let (home, here, there) = (Home::new(), volume.host(0), volume.host(1).join("repository"));
    home.jvs(["init"]).arg(here.join("repository")).run().ok();
    let main = here.join("repository/main");
    let taken = || home.jvs(["run", "--", "true"]).cwd(&main).run();
    let (right, wrong) = ("[lock]\nsteal_grace_ms = 1000\n", "[lock]\nsteal_grace_ms = 100x\n");
    let file = there.join(layout::config().as_str());
    for round in 0..2 {
        fs_err::write(&file, right).expect("written there");
        // Until it is old enough to be remembered, and then from memory.
        std::thread::sleep(SETTLED);
        taken().ok();
        let asked = requests(here, || drop(taken().ok()));
        let small = [layout::config(), layout::format()].map(|path| {
            let path = here.join("repository").join(path.as_str());
            format!("open ({},", rustix::fs::stat(&path).expect("it is there").st_ino)
        });
        let opened = |request: &Request| small.iter().any(|it| request.line.starts_with(it));
        assert!(!asked.iter().any(opened), "what is remembered is not opened: {asked:#?}");
        match round {
            0 => {
                use std::os::unix::fs::FileExt as _;
                let open = fs_err::OpenOptions::new().write(true).open(&file).expect("opened");
                open.file().write_all_at(wrong.as_bytes(), 0).expect("written in place");
            }
            _ => {
                fs_err::write(there.join("new"), wrong).expect("written");
                fs_err::rename(there.join("new"), &file).expect("replaced");
            }
        }
        let refused = taken().exits(1);
        assert!(refused.stderr().contains("E_CONFIG_INVALID"), "{refused}");
    }
}
