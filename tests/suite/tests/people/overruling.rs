//! Who may overrule whom, where users are users: each with an id of its own, in a
//! repository that they share.

use std::path::{Path, PathBuf};

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::eventually;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use serde_json::Value;

use crate::sharing::{Member, TEAM, of_the_team, two_of_a_team};
use crate::world::{PATIENCE, World};

/// Root, with a home of its own.
struct Root {
    home: Home,
}

impl Root {
    fn new() -> Self {
        Root { home: Home::new() }
    }

    fn jvs(&self, dir: &Path, words: &str) -> Jvs {
        self.home.jvs(words.split(' ')).session("root").cwd(dir)
    }
}

/// The worktree of a repository that Ann has made and shares, in which she holds the lock.
fn held_by(ann: &Member, place: &Path) -> PathBuf {
    ann.ok(place, "init --shared r");
    let main = place.join("r/main");
    ann.ok(&main, "lock acquire --no-keeper --lease 1h");
    main
}

/// The events of a kind that say whom they overrule.
fn overrulings(who: &Member, main: &Path, kind: &str) -> Vec<Value> {
    let told = who.jvs(main, "--json audit").run().ok().json();
    let events = told["data"]["events"].as_array().expect("events").clone();
    let wanted =
        |event: &Value| event["kind"] == kind && event["details"]["old_holder"].is_string();
    events.into_iter().filter(wanted).collect()
}

/// Ann's lock is reclaimed by Ann under another name, and not by Bob under hers.
fn reclaimed_by_id(place: &Path, [ann, bob]: [Member; 2]) {
    let main = held_by(&ann, place);
    ann.ok(&main, "config set reclaim.same_user true");
    let reclaim = "--json lock reclaim --no-keeper --reason mine";
    let name = format!("uid-{}", ann.uid);
    let told = bob.jvs(&main, reclaim).env("JVS_USER", &name).run().exits(2).json();
    assert_eq!(told["error"]["details"]["reason"], "LOCK_HELD", "{told}");
    assert_eq!(told["error"]["details"]["same_user"], false, "{told}");
    assert_eq!(told["error"]["details"]["uid"], ann.uid, "{told}");
    let elsewhere = ann.jvs(&main, reclaim).session("elsewhere").env("JVS_USER", "zoe");
    let told = elsewhere.run().ok().json();
    assert_eq!(told["data"]["record"]["uid"], ann.uid, "{told}");
    let events = overrulings(&bob, &main, "reclaim");
    let last = events.last().expect("it is in the log");
    assert_eq!(last["uid"], ann.uid, "{last}");
    assert_eq!(last["details"]["reason"], "SAME_USER", "{last}");
    assert_eq!(last["details"]["old_uid"], ann.uid, "{last}");
    assert!(last["details"]["new_holder"].as_str().expect("text").contains(":zoe:"), "{last}");
}

#[test]
fn i_am_my_user_id_and_whoever_takes_my_name_is_not() {
    let Some((_dir, team, members)) = two_of_a_team() else { return };
    reclaimed_by_id(&team, members);
}

#[test]
fn i_am_my_user_id_on_juicefs_too() {
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return;
    }
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let team = volume.host(0).join("team");
    of_the_team(&team, 0o2775);
    reclaimed_by_id(&team, [0, 1].map(|n| Member::new(n, "022")));
}

#[test]
fn a_colleague_s_forced_freeze_needs_what_its_reclaim_needs() {
    let Some((_dir, team, [ann, bob])) = two_of_a_team() else { return };
    let main = held_by(&ann, &team);
    let freeze = "--json lock freeze --force --for 1h --reason audit";
    let told = bob.jvs(&main, freeze).run().exits(2).json();
    assert_eq!(told["error"]["code"], "E_LOCK_CONFLICT", "{told}");
    let hint = told["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("jvs config set KEY true"), "{hint}");
    ann.ok(&main, "lock renew");
    ann.ok(&main, "config set reclaim.emergency_override true");
    bob.ok(&main, freeze);
    ann.jvs(&main, "lock renew").run().exits(4);
    let events = overrulings(&ann, &main, "freeze");
    assert_eq!(events.last().expect("logged")["details"]["reason"], "EMERGENCY_OVERRIDE");
    assert_eq!(events.last().expect("logged")["details"]["old_uid"], ann.uid);
    ann.ok(&main, "lock unfreeze --reason enough");
    let lifted = overrulings(&ann, &main, "unfreeze");
    let last = lifted.last().expect("logged");
    assert_eq!(last["details"]["reason"], "ANY_OPERATOR", "{last}");
    assert_eq!([&last["details"]["old_uid"], &last["uid"]], [bob.uid, ann.uid], "{last}");
}

#[test]
fn once_my_repository_names_admins_nobody_else_forces() {
    let Some((_dir, team, [ann, bob])) = two_of_a_team() else { return };
    let main = held_by(&ann, &team);
    let freeze = "lock freeze --force --for 1h --reason audit";
    ann.ok(&main, "config set reclaim.emergency_override true");
    ann.ok(&main, &format!("config set policy.admins uid:{}", bob.uid));
    let stranger = ann.jvs(&main, &format!("--json {freeze}")).session("elsewhere");
    let told = stranger.run().exits(2).json();
    let why = told["error"]["details"]["why_not"].as_str().expect("why");
    assert!(why.contains("policy.admins names others than this user"), "{told}");
    let told = ann.jvs(&main, "--json lock release --force").run().exits(1).json();
    assert_eq!(told["error"]["code"], "E_PERMISSION", "{told}");
    assert!(told["error"]["hint"].as_str().is_some_and(|it| it.contains("policy.admins")));
    bob.ok(&main, freeze);
    let told = ann.jvs(&main, "--json lock unfreeze --reason mine").run().exits(1).json();
    assert_eq!(told["error"]["code"], "E_PERMISSION", "{told}");
    assert_eq!(told["error"]["details"]["uid"], ann.uid, "{told}");
    ann.jvs(&main, &format!("--json {freeze}")).run().exits(1);
    bob.ok(&main, "lock unfreeze --reason done");
    // Their group will do, and so does nobody.
    ann.ok(&main, "lock acquire --no-keeper --lease 1h");
    ann.ok(&main, &format!("config set policy.admins gid:{TEAM}"));
    bob.ok(&main, "lock reclaim --no-keeper --emergency --reason group");
    for (value, code) in [("none", 0), ("uid:0,gid:0", 0), ("ann", 1), ("uid:1,uid:1", 1)] {
        ann.jvs(&main, &format!("config set policy.admins {value}")).run().exits(code);
    }
    let told = ann.jvs(&main, "--json config set policy.admins ann").run().exits(1).json();
    assert_eq!(told["error"]["code"], "E_CONFIG_INVALID", "{told}");
    assert!(told["error"]["message"].as_str().expect("text").contains("uid:1000,gid:50"));
}

/// Whoever makes a user namespace is root in it, and nobody outside.
#[test]
fn who_is_root_only_in_its_own_namespace_is_not_root() {
    let Some((_dir, team, [ann, bob])) = two_of_a_team() else { return };
    if !granted(&[Capability::Program("unshare")]) {
        return;
    }
    ann.ok(&team, "init --shared r");
    let (main, root) = (team.join("r/main"), Root::new());
    ann.ok(&main, "config set reclaim.same_user true");
    root.jvs(&main, "lock acquire --no-keeper --lease 1h").run().ok();
    let reclaim = "--json lock reclaim --no-keeper --reason root";
    let within = bob.jvs(&main, reclaim).under(["unshare", "--user", "--map-root-user"]);
    let told = within.run().exits(2).json();
    assert_eq!(told["error"]["details"]["same_user"], Value::Null, "{told}");
    assert_eq!(told["error"]["details"]["uid"], 0, "{told}");
    root.jvs(&main, "lock release").run().ok();
    // What it takes itself is nobody's, and no damage: a loss of one rule.
    let acquire = "--json lock acquire --no-keeper --lease 1h";
    let within = bob.jvs(&main, acquire).under(["unshare", "--user", "--map-root-user"]);
    let told = within.run().ok().json();
    assert_eq!(told["data"]["record"]["uid"], Value::Null, "{told}");
    root.jvs(&main, reclaim).run().exits(2);
    ann.ok(&main, "doctor --strict");
}

/// A session's id is in the record for everybody to read, and a host's name is what its
/// namespace says.
#[test]
fn my_session_s_id_on_another_host_does_not_get_others_my_lock() {
    let Some((_dir, team, [ann, bob])) = two_of_a_team() else { return };
    if !granted(&[Capability::Program("unshare")]) {
        return;
    }
    let main = held_by(&ann, &team);
    let shown = ann.jvs(&main, "--json lock status").run().ok().json();
    let id = shown["data"]["record"]["session_id"].as_str().expect("a session").to_owned();
    let elsewhere = ["unshare", "--user", "--map-root-user", "--uts", "sh", "-c"];
    let elsewhere = elsewhere.into_iter().chain(["hostname elsewhere && exec \"$@\"", "sh"]);
    for verb in ["acquire", "steal --reason mine"] {
        let take = format!("--json lock {verb} --no-keeper");
        let told = bob.jvs(&main, &take).session(&id).under(elsewhere.clone()).run().exits(2);
        let told = told.json();
        assert_eq!(told["error"]["code"], "E_LOCK_CONFLICT", "{told}");
        assert_eq!(told["error"]["details"]["uid"], ann.uid, "{told}");
    }
    ann.ok(&main, "lock renew");
}

#[test]
fn root_is_warned_before_it_writes_what_i_could_not_change() {
    let Some((_dir, team, [ann, _])) = two_of_a_team() else { return };
    let root = Root::new();
    ann.ok(&team, "init r");
    let main = team.join("r/main");
    let mine = ann.jvs(&main, "--json snapshot one").run().ok().json();
    assert_eq!(mine["warnings"], Value::Null, "{mine}");
    let told = root.jvs(&main, "snapshot two").run().ok();
    let warning = format!("warning: this repository belongs to user {}", ann.uid);
    assert_eq!(told.stderr().matches(&warning).count(), 1, "{told}");
    assert_eq!(told.stderr().matches("warning:").count(), 1, "{told}");
    let told = root.jvs(&main, "--json worktree create w").run().ok().json();
    assert_eq!(told["warnings"].as_array().map(Vec::len), Some(1), "{told}");
    assert!(!root.jvs(&main, "status").run().ok().stderr().contains("warning"), "it only reads");
    // It is as it says, and what it advises helps.
    ann.jvs(&main, "worktree remove w --force").run().exits(1);
    let text = told["warnings"][0].as_str().expect("text");
    let (_, command) = text.split_once("afterwards: ").expect("a command");
    let given_back = std::process::Command::new("sh").args(["-c", command]).status();
    assert!(given_back.expect("run").success(), "{command}");
    ann.ok(&main, "verify --all");
    ann.ok(&main, "gc --keep-last 1 --keep-within 0s");
    ann.ok(&main, "doctor --strict");
    ann.ok(&main, "config set repo.shared group");
    let told = root.jvs(&main, "lock acquire --no-keeper --lease 1s").run().ok();
    assert!(!told.stderr().contains("warning"), "{told}");
}

#[test]
fn what_a_holder_says_of_itself_is_labelled_so() {
    let world = World::new();
    world.ok("ann", "lock acquire --no-keeper --lease 1h");
    let me = rustix::process::geteuid().as_raw();
    let why = world.ok("bob", "lock why");
    let user = why.stdout().lines().find(|line| line.trim_start().starts_with("user "));
    let user = user.expect("a line about the user");
    assert!(user.contains("(self-declared)") && user.contains(&format!("user id {me}")), "{user}");
    let told = world.json("bob", "lock why");
    let data = &told["data"];
    assert_eq!((&data["uid"], &data["same_user"]), (&me.into(), &true.into()), "{data}");
    let labelled = data["self_declared"].as_array().expect("a list");
    for field in ["user", "host", "agent", "environment"] {
        assert!(labelled.contains(&field.into()), "{field}: {labelled:?}");
    }
    let shown = world.json("bob", "session show");
    assert_eq!(shown["data"]["uid"], me, "{shown}");
    assert!(shown["data"]["self_declared"].is_array(), "{shown}");
}

#[test]
fn a_release_by_force_and_a_removal_with_files_say_so_in_the_log() {
    let world = World::new();
    let begun = world.outside("begun");
    let script = format!("touch {}; exec sleep 600", begun.display());
    let running = world.run("ann", "run", &script).start();
    eventually("the command runs", PATIENCE, || begun.exists());
    world.ok("ann", "lock release --force");
    drop(running.wait(PATIENCE));
    world.audit_holds();
    world.ok("ann", "worktree create w");
    fs_err::write(world.root().join("worktrees/w/file"), "text").expect("written");
    world.ok("ann", "worktree remove w --force");
    let told = world.json("ann", "audit");
    let events = told["data"]["events"].as_array().expect("events");
    for (kind, reason) in [("release", "by force"), ("retire", "removed with its files")] {
        let says = |event: &&Value| {
            event["kind"] == kind
                && event["uid"] == rustix::process::geteuid().as_raw()
                && event["reason"].as_str().is_some_and(|it| it.starts_with(reason))
        };
        assert!(events.iter().any(|event| says(&event)), "{kind}: {told}");
    }
}

/// A member of the group can put anything there; nobody is stopped by it, nothing is
/// written through it, and the holder goes on.
#[test]
fn what_a_colleague_puts_in_the_place_of_my_record_stops_nobody() {
    let Some((_dir, team, [ann, bob])) = two_of_a_team() else { return };
    let main = held_by(&ann, &team);
    let record = team.join("r").join(layout::lock_record(&WorktreeName::main()).as_str());
    let precious = team.join("precious");
    fs_err::write(&precious, "text").expect("written");
    for put in ["mkfifo", "ln", "mkdir", "ln -s", "ln -s /nowhere #"] {
        let source = if put.starts_with("ln") { precious.to_str().expect("text") } else { "" };
        let (put, source) = put.split_once(" #").map_or((put, source), |(put, _)| (put, ""));
        let script = format!("rm -rf '{0}'; {put} {source} '{0}'", record.display());
        let status = std::process::Command::new("sh").args(["-c", &script]).status();
        assert!(status.expect("run").success(), "{script}");
        bob.jvs(&main, "lock acquire --no-keeper").run().exits(2);
        bob.ok(&main, "lock status");
        ann.ok(&main, "lock renew");
        ann.ok(&main, "snapshot mine --json");
        bob.ok(&main, "lock why");
        bob.ok(&main, "lock list");
        assert_eq!(fs_err::read_to_string(&precious).expect("there"), "text", "{put}");
    }
    ann.ok(&main, "lock release");
    bob.ok(&main, "lock acquire --no-keeper --lease 1h");
}
