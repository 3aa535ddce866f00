//! Who has the lock, in words that people know.

use jvs_kit::live::process::{Running, eventually};
use jvs_kit::live::terminal::CTRL_C;
use serde_json::Value;

use crate::terminal::shell;
use crate::world::{PATIENCE, World};

fn host() -> String {
    jvs_repo::proc::hostname()
}

fn details(world: &World, session: &str, words: &str) -> Value {
    world.jvs(session, words).arg("--json").run().exits(2).json()["error"]["details"].clone()
}

#[test]
fn i_see_who_has_the_lock_where_what_for_and_until_when() {
    let world = World::new();
    let ann = world.jvs("ann", "lock acquire --for 1h --json").arg("--note").arg("release 1.4");
    let kept_until = ann.env("JVS_USER", "ua").run().ok().json()["data"]["kept_until"].clone();
    let who = format!("ua on {} (session ann)", host());
    for words in ["lock acquire", "snapshot", "lock steal --reason x", "lock reclaim --reason x"] {
        let refused = world.jvs("bob", words).env("JVS_USER", "ub").run().exits(2);
        let told = refused.stderr();
        for part in [who.as_str(), "\"release 1.4\"", "at most 59 min "] {
            assert!(told.contains(part), "{words}: {part:?} is missing: {told}");
        }
    }
    for words in ["lock status", "lock why", "status"] {
        let shown = world.ok("bob", words).stdout().to_owned();
        for part in [who.as_str(), "release 1.4", "at most 59 min "] {
            assert!(shown.contains(part), "{words}: {part:?} is missing: {shown}");
        }
    }
    let listed = world.ok("bob", "lock list").stdout().to_owned();
    assert!(listed.contains("(ann), at most 59 min: release 1.4"), "{listed}");
    let seen = world.status();
    let status = world.json("bob", "status")["data"]["lock"].clone();
    for data in [details(&world, "bob", "lock acquire"), seen, status] {
        assert_eq!(data["kept_until"], kept_until, "{data}");
        assert_eq!((&data["user"], &data["host"]), (&"ua".into(), &host().into()));
        assert_eq!(data["note"], "release 1.4");
        assert_eq!(data["same_user"], true, "one account, whatever its users call themselves");
    }
}

#[test]
fn a_lock_under_a_build_lasts_until_its_command_ends() {
    let world = World::new();
    let build = world.run("ann", "run", "sleep 1000").start();
    eventually("it runs", PATIENCE, || world.status()["keeper"]["alive"] == true);
    let refused = world.jvs("bob", "lock acquire").run().exits(2);
    assert!(refused.stderr().contains("until its command ends"), "{refused}");
    let told = details(&world, "bob", "lock acquire");
    assert_eq!((&told["kept_with"], &told["kept_until"]), (&"command".into(), &Value::Null));
    drop(build);
}

#[test]
fn a_lock_that_is_kept_for_a_process_says_for_which() {
    let world = World::new();
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("1000");
    let followed = Running::start(sleep);
    let pid = followed.pid().as_raw_nonzero();
    world.ok("ann", &format!("lock acquire --while {pid}"));
    let told = details(&world, "bob", "lock acquire");
    assert_eq!(told["kept_with"]["process"]["pid"], i64::from(pid.get()), "{told}");
    let refused = world.jvs("bob", "lock acquire").run().exits(2);
    assert!(refused.stderr().contains(&format!("until process {pid} ends")), "{refused}");
}

#[test]
fn an_agent_s_lock_says_which_agent_it_is() {
    let world = World::new();
    let agent = world.jvs("x", "lock acquire").env_remove("JVS_SESSION_ID");
    agent.env("CODEX_THREAD_ID", "0199-ab").run().ok();
    let seen = world.status();
    assert_eq!((&seen["agent"], &seen["terminal"]), (&"codex".into(), &Value::Null), "{seen}");
    let shown = world.ok("bob", "lock status");
    assert!(shown.stdout().contains("(session codex:0199-ab)"), "{shown}");
}

#[test]
fn my_second_terminal_is_told_that_it_is_me_and_what_to_do() {
    let world = World::new();
    let (mut first, mut second) = (shell(&world, None), shell(&world, None));
    first.types("jvs lock acquire\n");
    first.sees("or until this terminal closes", PATIENCE);
    first.sees("ready> ", PATIENCE);
    second.types("jvs lock acquire\n");
    second.sees("is locked by you, in another terminal (pts/", PATIENCE);
    second.sees("until its terminal closes", PATIENCE);
    second.sees("release it there, or from here: jvs lock release", PATIENCE);
    second.sees("ready> ", PATIENCE);
    let told = world.status();
    assert_eq!(told["kept_with"], "terminal", "{told}");
    assert!(told["terminal"].as_str().is_some_and(|name| name.starts_with("pts/")), "{told}");
    // It works as it is said.
    let id = told["record"]["session_id"].as_str().expect("an id").to_owned();
    second.types(&format!("jvs lock release -w main --session {id}\n"));
    second.sees("Released worktree main", PATIENCE);
    second.types(&format!("export JVS_SESSION_ID={id}; jvs lock acquire; jvs snapshot mine\n"));
    second.sees("Snapshot ", PATIENCE);
    first.types("jvs lock renew\n");
    first.sees("Renewed the lock", PATIENCE);
    first.types("jvs lock release\n");
    first.sees("Released worktree main", PATIENCE);
}

#[test]
fn somebody_else_s_terminal_is_not_told_that_it_is_me() {
    let world = World::new();
    let mut mine = shell(&world, None);
    mine.types("JVS_USER=ua jvs lock acquire; jvs lock status\n");
    mine.sees("held by this session", PATIENCE);
    let mut theirs = shell(&world, None);
    theirs.types("JVS_USER=ub jvs lock acquire\n");
    theirs.sees(&format!("is locked by ua on {} (terminal pts/", host()), PATIENCE);
    theirs.sees("wait in line for it", PATIENCE);
}

#[test]
fn a_waiter_at_80_columns_sees_who_until_when_and_what_for() {
    let world = World::new();
    let ann = world.jvs("ann", "lock acquire --for 1h --note release-1.4").env("JVS_USER", "ua");
    ann.run().ok();
    let mut terminal = shell(&world, Some("bob"));
    terminal.types("stty cols 80; jvs lock acquire --wait\n");
    let host = host();
    terminal.sees(&format!("for main (next): ua on {host} (ann), at most 59 min: "), PATIENCE);
    terminal.types(CTRL_C);
    terminal.sees("ready> ", PATIENCE);
    // Each line is written over the one before, which one that is broken could not be.
    let screen = terminal.screen();
    let lines = screen.split(['\r', '\n']).filter_map(|line| line.strip_prefix("\u{1b}[K"));
    let drawn: Vec<&str> = lines.filter(|line| line.contains("for main (next): ")).collect();
    assert!(!drawn.is_empty(), "{screen:?}");
    for line in drawn {
        assert!(line.chars().count() < 80, "{line:?} does not fit");
    }
}

#[test]
fn my_cron_job_is_told_that_it_looks_in_another_private_directory() {
    let world = World::new();
    world.ok("zz", "lock acquire");
    let cron = |words: &str| world.jvs("zz", words).env_remove("XDG_RUNTIME_DIR");
    let run = world.home.runtime_dir();
    let dir = run.join("jvs").display().to_string();
    for words in ["lock acquire", "lock status"] {
        let outcome = cron(words).run();
        let told = format!("{}{}", outcome.stdout(), outcome.stderr());
        let which = format!("the same session id with another private directory ({dir})");
        assert!(told.contains(&which), "{words}: {told}");
    }
    let refused = cron("lock release --json").run().exits(4).json();
    assert_eq!(refused["error"]["details"]["same_id_elsewhere"], true, "{refused}");
    let hint = refused["error"]["hint"].as_str().expect("a hint").to_owned();
    assert_eq!(hint, format!("use that directory: export XDG_RUNTIME_DIR={}", run.display()));
    // It works as it is said.
    cron("lock release").env("XDG_RUNTIME_DIR", run).run().ok();
}

/// A record as it was written before these words were there.
#[test]
fn a_record_that_does_not_say_until_when_is_shown_all_the_same() {
    let world = World::new();
    world.ok("ann", "lock acquire");
    let mut record = world.record();
    for field in ["place", "kept"] {
        record.as_object_mut().expect("an object").remove(field).expect("it is there");
    }
    fs_err::write(world.record_path(), record.to_string()).expect("written");
    let refused = world.jvs("bob", "lock acquire").run().exits(2);
    assert!(refused.stderr().contains("(session ann)"), "{refused}");
    assert!(refused.stderr().contains("its lease ends in"), "{refused}");
}

#[test]
fn a_time_is_told_in_my_time_zone_and_what_only_looks_like_one_as_it_is() {
    const LOOKS: &str = "2025-11-16T09:00:00.000Z";
    let world = World::new();
    let root = world.root().with_file_name(LOOKS);
    world.home.jvs(["init"]).arg(&root).run().ok();
    let jvs = |session, words: &str| {
        let jvs = world.home.jvs(words.split(' ')).session(session).cwd(root.join("main"));
        jvs.env("TZ", "IST-5:30")
    };
    let path = jvs("ann", "worktree path main").run().ok();
    assert_eq!(path.stdout().trim_end(), root.join("main").to_str().expect("text"));
    jvs("ann", &format!("lock acquire --for 1h --note {LOOKS}")).run().ok();
    jvs("ann", &format!("snapshot {LOOKS}")).run().ok();

    let refused = jvs("bob", "lock acquire").run().exits(2);
    let (why, info) = (jvs("bob", "lock why").run().ok(), jvs("bob", "info @").run().ok());
    for told in [refused.stderr(), why.stdout(), info.stdout()] {
        assert!(told.contains(LOOKS) && told.contains("+05:30"), "{told}");
    }
    let history = jvs("bob", "history").run().ok();
    assert!(history.stdout().contains(LOOKS), "what only looks like a time: {history}");
    let audit = jvs("bob", "audit --all").run().ok();
    assert!(audit.stdout().contains("+05:30"), "{}", audit.stdout());
    let told = jvs("bob", "lock acquire --json").run().exits(2).json()["error"].clone();
    let message = told["message"].as_str().expect("text");
    let since = told["details"]["since"].as_str().expect("a time");
    assert!(message.contains(since) && since.ends_with('Z'), "programs read UTC: {told}");
}

/// What is said is typed elsewhere, in no session.
#[test]
fn a_hint_works_when_it_is_typed_as_it_is() {
    let world = World::new();
    world.ok("bob", "lock acquire");
    let (root, elsewhere) = (world.root(), world.outside(""));
    let typed = |words: &str| world.jvs("nobody", words).cwd(&elsewhere);
    let asked = format!("lock acquire --repo {} --session ann --json", root.display());
    let told = typed(&asked).run().exits(2).json();
    let hint = told["error"]["hint"].as_str().expect("a hint");
    let commands: Vec<&str> = hint.split(": jvs ").skip(1).collect();
    assert!(!commands.is_empty(), "{hint}");
    for command in &commands {
        let command = command.split(", or ").next().expect("a command");
        assert!(command.contains("--session ann"), "{hint}");
        let ran = typed(&command.replace("--wait", "--wait=1s")).run();
        assert!(!ran.stderr().contains("E_NOT_A_REPOSITORY"), "{command}: {ran}");
    }
    world.ok("bob", "lock release");
}

#[test]
fn a_lock_that_ends_with_the_run_around_it_is_told_so() {
    let world = World::new();
    world.ok("ann", "worktree create other");
    let ran = world.run("ann", "run", "jvs lock acquire -w other --for 1h").run().ok();
    assert!(ran.stderr().contains("this lock is released then"), "{ran}");
    let after = world.json("onlooker", "lock status -w other");
    assert_eq!(after["data"]["state"], "free", "{after}");
    let outside = world.ok("ann", "lock acquire -w other --for 1m");
    assert!(!outside.stderr().contains("released then"), "{outside}");
    world.ok("ann", "lock release -w other");
}

#[test]
fn a_home_that_is_not_there_is_not_made() {
    let world = World::new();
    let gone = world.outside("no-home");
    let homeless = |words: &str| {
        let jvs = world.jvs("ann", words).env("HOME", &gone);
        jvs.env("XDG_STATE_HOME", "").env("XDG_RUNTIME_DIR", "")
    };
    let told = homeless("lock acquire --no-keeper --json").run().exits(1).json();
    assert_eq!(told["error"]["code"], "E_SESSION_INVALID", "{told}");
    assert!(!gone.exists(), "{told}");
    fs_err::create_dir(&gone).expect("made");
    homeless("lock acquire --no-keeper").run().ok();
}

/// A process that may have no more open files than it has.
#[test]
fn a_limit_on_open_files_is_told_as_that() {
    let world = World::new();
    let tight = ["sh", "-c", "ulimit -n 4; exec \"$@\"", "sh"];
    let told = world.jvs("ann", "run -- true").under(tight).run();
    assert!(told.stderr().contains("ulimit -n"), "{told}");
    assert!(!told.stderr().contains("check the"), "{told}");
}
