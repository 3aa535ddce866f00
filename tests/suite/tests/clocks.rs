//! Wall clocks that are set, that are wrong, and that are far in the future.
//!
//! `faketime` lies to one command about the wall clock; boot time stays true.
//! Another host on this machine is a command that sees another boot id.

use std::path::PathBuf;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::process::{DEADLINE, Outcome, eventually};
use serde_json::Value;
use tempfile::TempDir;

const HOUR_MS: u64 = 3_600_000;

/// A repository, and people at two hosts who work in it.
struct World {
    dir: TempDir,
    here: Home,
    there: Home,
}

impl World {
    /// `None` where the world cannot be played; that was said aloud.
    fn new() -> Option<Self> {
        let wanted = [
            Capability::Root,
            Capability::Program("faketime"),
            Capability::Program("unshare"),
            Capability::Program("mount"),
        ];
        if !granted(&wanted) {
            return None;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let world = World { dir, here: Home::new(), there: Home::new() };
        world.here.jvs(["init"]).arg(world.root()).run().ok();
        Some(world)
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    /// `jvs lock …` on this host, at a wall clock that is `clock` (as faketime
    /// has it) if that is said.
    fn here(&self, clock: Option<&str>, session: &str, args: &[&str]) -> Outcome {
        let jvs = self.here.jvs(["lock"]).session(session);
        self.run(at(jvs, clock), args)
    }

    /// The same on a host that has booted differently.
    fn there(&self, clock: Option<&str>, session: &str, args: &[&str]) -> Outcome {
        self.run(at(self.elsewhere("lock").session(session), clock), args)
    }

    /// `jvs` with any command on that host.
    fn elsewhere(&self, command: &str) -> Jvs {
        let boot_id = self.there.home_dir().join("boot_id");
        let text = "0b57ac1e-0000-4000-8000-000000000000\n";
        fs_err::write(&boot_id, text).expect("a boot id");
        const PLAY: &str = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
        let jvs = self.there.jvs([command]);
        jvs.under(["unshare", "--mount", "sh", "-c", PLAY]).under([boot_id])
    }

    fn run(&self, jvs: Jvs, args: &[&str]) -> Outcome {
        let jvs = args.iter().fold(jvs, |jvs, arg| jvs.arg(arg));
        jvs.arg("--json").cwd(self.root().join("main")).run()
    }

    /// The session `rival`, here, gets the lock at last; how.
    #[track_caller]
    fn gets_it_at_last(&self, clock: Option<&str>) -> Value {
        let mut got = Value::Null;
        eventually("the lock can be taken", DEADLINE, || {
            let outcome = self.here(clock, "rival", &ACQUIRE);
            got = outcome.json();
            outcome.code() == 0
        });
        got["data"].clone()
    }
}

fn at(jvs: Jvs, clock: Option<&str>) -> Jvs {
    match clock {
        Some(clock) => jvs.under(["faketime", "-f", clock]),
        None => jvs,
    }
}

const ACQUIRE: [&str; 4] = ["acquire", "--lease", "2s", "--no-keeper"];
const STEAL: [&str; 6] = ["steal", "--lease", "2s", "--no-keeper", "--reason", "gone"];
const OBSERVE: [&str; 7] =
    ["steal", "--lease", "2s", "--no-keeper", "--reason", "gone", "--observe"];

#[test]
fn on_one_host_a_wall_clock_that_is_set_takes_no_lock_and_keeps_none() {
    let Some(world) = World::new() else { return };
    for clock in ["+1h", "-1h", "+10y", "-10y"] {
        let held = world.here(None, "holder", &ACQUIRE);
        let held = held.ok().json()["data"]["fencing_token"].as_u64();
        // Set forwards, the lease looks long over; it is not.
        let refused = world.here(Some(clock), "rival", &ACQUIRE).exits(2).json();
        assert_eq!(refused["error"]["code"], "E_LOCK_CONFLICT", "{clock}: {refused}");
        let left = refused["error"]["details"]["remaining_ms"].as_u64().expect("told");
        // Two clocks that disagree: whichever says that it runs is believed.
        assert!(left <= 2_000 || clock.starts_with('-'), "{clock}: {refused}");
        // The holder's own clock is set: it still holds, for no longer than it said.
        let renewed = world.here(Some(clock), "holder", &ACQUIRE).ok().json();
        assert_eq!(renewed["data"]["how"], "refreshed", "{clock}: {renewed}");
        assert_eq!(renewed["data"]["record"]["lease_duration_ms"], 2_000, "{clock}: {renewed}");
        // Set back, the lease looks as if it never ended; it does.
        let got = world.gets_it_at_last(Some(clock));
        assert_eq!(got["how"], "stolen", "{clock}: {got}");
        assert_eq!(got["fencing_token"].as_u64(), held.map(|token| token + 1), "{clock}");
        world.here(None, "rival", &["release"]).ok();
    }
    let verified = world.here.jvs(["audit", "--verify"]).cwd(world.root().join("main"));
    verified.run().ok();
}

#[test]
fn a_holder_an_hour_ahead_is_called_a_clock_that_is_wrong_and_watching_needs_no_clock() {
    let Some(world) = World::new() else { return };
    world.there(Some("+1h"), "holder", &ACQUIRE).ok();
    // Nobody steals it by accident, and the doubt is told.
    let refused = world.here(None, "rival", &ACQUIRE).exits(2).json();
    assert_eq!(refused["error"]["code"], "E_LOCK_CONFLICT", "{refused}");
    let status = world.here(None, "rival", &["status"]).ok().json();
    let clock = &status["data"]["clock"];
    assert_eq!(clock["method"], "wall_clock", "{status}");
    let skew = clock["observed_skew_ms"].as_u64().expect("measured");
    assert!(skew > HOUR_MS / 2 && skew <= HOUR_MS, "{status}");
    // Whoever wants to steal is told which clocks, how far, and what to do.
    let doubt = world.here(None, "rival", &STEAL).exits(7).json();
    assert_eq!(doubt["error"]["code"], "E_CLOCK_SKEW_EXCEEDED", "{doubt}");
    let hint = doubt["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("--observe"), "{doubt}");
    let stolen = world.here(None, "rival", &OBSERVE).ok().json();
    assert_eq!(stolen["data"]["how"], "stolen", "{stolen}");
    assert_eq!(stolen["data"]["fencing_token"], 2, "{stolen}");
    // The holder is fenced, whatever its clock says.
    let renew = world.there(Some("+1h"), "holder", &["renew"]);
    assert!(matches!(renew.code(), 4 | 5), "{renew}");
}

#[test]
fn a_holder_whose_clock_was_set_right_is_not_stolen_from_by_wall_clock() {
    let Some(world) = World::new() else { return };
    world.there(Some("-1h"), "holder", &["acquire", "--lease", "10s", "--no-keeper"]).ok();
    world.there(None, "holder", &["acquire", "--lease", "2s", "--no-keeper"]).ok();
    // Only looked at: one who asks for it again and again would have watched it.
    eventually("the lease looks over", DEADLINE, || {
        world.here(None, "rival", &["status"]).ok().json()["data"]["state"] == "stealable"
    });
    let last = world.here(None, "rival", &ACQUIRE).exits(7).json();
    assert_eq!(last["error"]["code"], "E_CLOCK_SKEW_EXCEEDED", "{last}");
    let message = last["error"]["message"].as_str().expect("a message");
    assert!(message.contains("wall clock was set"), "{last}");
    let stolen = world.here(None, "rival", &OBSERVE).ok().json();
    assert_eq!(stolen["data"]["how"], "stolen", "{stolen}");
}

#[test]
fn a_rival_an_hour_ahead_may_be_wrong_about_the_lease_but_not_about_the_token() {
    let Some(world) = World::new() else { return };
    world.here(None, "holder", &["acquire", "--lease", "10m", "--no-keeper"]).ok();
    // Nothing contradicts a clock that is an hour ahead of a quiet holder's.
    let stolen = world.there(Some("+1h"), "rival", &ACQUIRE).ok().json();
    assert_eq!(stolen["data"]["how"], "stolen", "{stolen}");
    assert_eq!(stolen["data"]["fencing_token"], 2, "{stolen}");
    let handed_down = world
        .here
        .jvs(["lock", "renew", "--json"])
        .session("holder")
        .env("JVS_FENCING_TOKEN", "1")
        .env("JVS_WORKTREE", "main")
        .cwd(world.root().join("main"))
        .run()
        .exits(5)
        .json();
    assert_eq!(handed_down["error"]["code"], "E_FENCING_MISMATCH", "{handed_down}");
    world.here(None, "holder", &["renew"]).exits(4);
}

#[test]
fn the_year_2106_is_a_time_like_any_other() {
    let Some(world) = World::new() else { return };
    // Six seconds before 32 bits of seconds are used up.
    let clock = Some("@2106-02-07 06:28:10");
    let lease = ["acquire", "--lease", "10s", "--no-keeper"];
    let taken = world.here(clock, "holder", &lease).ok().json();
    let record = &taken["data"]["record"];
    let end = record["lease_expires_at"].as_str().expect("a time");
    assert!(end.starts_with("2106-02-07T06:28:2"), "{taken}");
    world.here(clock, "holder", &["renew"]).ok();
    let status = world.here(clock, "holder", &["status"]).ok().json();
    assert_eq!(status["data"]["state"], "held", "{status}");
    world.here(clock, "rival", &ACQUIRE).exits(2);
    // Another host of that time sees it the same way.
    world.there(clock, "rival", &ACQUIRE).exits(2);
    world.here(clock, "holder", &["release"]).ok();
    world.there(clock, "rival", &ACQUIRE).ok();
    // Back in the present it is over once it is over.
    world.there(None, "rival", &["release"]).ok();
    let taken = world.here(clock, "holder", &ACQUIRE).ok().json();
    assert_eq!(taken["data"]["how"], "acquired", "{taken}");
    let got = world.gets_it_at_last(None);
    assert_eq!(got["how"], "stolen", "{got}");
}

/// (the holder's clock, the thief's), further apart than any lease.
const APART: [(Option<&str>, Option<&str>); 8] = [
    (None, Some("+40s")),
    (None, Some("-40s")),
    (None, Some("+1h")),
    (None, Some("-1h")),
    (Some("+40s"), None),
    (Some("-40s"), None),
    (Some("+1h"), None),
    (Some("-1h"), None),
];

const WAIT: [&str; 5] = ["acquire", "--lease", "2s", "--no-keeper", "--wait=3s"];

/// A holder that lives and renews, and one thief of another host after the other.
fn nobody_takes_it(world: &World, holder: Option<&str>, thief: Option<&str>) {
    let run = world.here.jvs(["run", "--lease", "2s", "--", "sleep", "100"]).session("holder");
    let run = at(run, holder).cwd(world.root().join("main")).start();
    eventually("the holder has it", DEADLINE, || {
        world.here(None, "looker", &["status"]).ok().json()["data"]["state"] == "held"
    });
    for args in [&ACQUIRE[..], &WAIT, &STEAL] {
        let refused = world.there(thief, "thief", args);
        let told = refused.json();
        let case = format!("holder {holder:?}, thief {thief:?}, {args:?}: {told}");
        assert!(matches!(refused.code(), 2 | 7), "{case}");
        let skew = told["error"]["details"]["observed_skew_ms"].as_u64();
        assert!(skew.is_some_and(|ms| ms > 30_000), "how far: {case}");
        let message = told["error"]["message"].as_str().expect("a message");
        assert!(message.contains("this host"), "which clock: {case}");
    }
    let status = world.here(None, "looker", &["status"]).ok().json();
    assert_eq!(status["data"]["fencing_token"], 1, "nobody ever took it: {status}");
    run.signal(rustix::process::Signal::TERM);
    run.wait(DEADLINE);
}

#[test]
fn whatever_clocks_say_a_live_renewing_lock_is_not_taken_and_it_is_told_which_clock_and_how_far() {
    let worlds: Option<Vec<World>> = APART.iter().map(|_| World::new()).collect();
    let Some(worlds) = worlds else { return };
    std::thread::scope(|scope| {
        for (world, (holder, thief)) in worlds.iter().zip(APART) {
            scope.spawn(move || nobody_takes_it(world, holder, thief));
        }
    });
}

#[test]
fn a_doctor_whose_clock_is_ahead_does_not_say_that_a_lease_which_is_renewed_ended() {
    let Some(world) = World::new() else { return };
    world.here(None, "holder", &["acquire", "--lease", "2s", "--for", "1h"]).ok();
    let looked = |args| world.run(at(world.elsewhere("doctor").session("d"), Some("+1h")), args);
    let told = looked(&[]).json();
    let findings = told["data"]["findings"].as_array().expect("findings");
    let of_lock = findings.iter().find(|it| it["code"] == "D_LOCK_ABANDONED");
    let message =
        of_lock.unwrap_or_else(|| panic!("it looks so: {told}"))["message"].as_str().expect("text");
    assert!(message.contains("by this host's clock") && !message.contains("ended"), "{message}");
    drop(looked(&["--repair"]));
    let status = world.here(None, "holder", &["status"]).ok().json();
    assert_eq!(status["data"]["state"], "held", "{status}");
    assert_eq!(status["data"]["fencing_token"], 1, "{status}");
    world.here(None, "holder", &["release"]).ok();
}

#[test]
fn what_a_killed_keeper_held_is_watched_and_then_taken_from_another_host() {
    let Some(world) = World::new() else { return };
    let kept = world.here(None, "holder", &["acquire", "--lease", "2s", "--for", "1h"]).ok().json();
    let interval = kept["data"]["record"]["renew_interval_ms"].as_u64();
    assert_eq!(interval, Some(666), "the keeper's own: {kept}");
    let keeper = kept["data"]["keeper"]["pid"].as_i64().expect("a keeper");
    let keeper = i32::try_from(keeper).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(keeper.expect("a pid"), rustix::process::Signal::KILL)
        .expect("killed");
    eventually("the lease looks over", DEADLINE, || {
        world.there(None, "thief", &["status"]).ok().json()["data"]["state"] == "stealable"
    });
    let args = ["acquire", "--lease", "2s", "--no-keeper", "--no-watch"];
    let refused = world.there(None, "thief", &args).exits(2).json();
    let watch = refused["error"]["details"]["watch_ms"].as_u64().expect("told");
    assert!(watch > 0 && watch <= 1_666, "{refused}");
    let taken = world.there(None, "thief", &ACQUIRE).ok().json();
    assert_eq!(taken["data"]["how"], "stolen", "{taken}");
    assert_eq!(taken["data"]["watched_ms"], 1_666, "an interval and the grace: {taken}");
}

#[test]
fn another_time_namespace_of_this_host_is_another_host() {
    let Some(world) = World::new() else { return };
    world.here(None, "holder", &["acquire", "--lease", "30s", "--no-keeper"]).ok();
    let shifted = ["unshare", "--time", "--boottime", "100000", "--fork"];
    let rival = world.here.jvs(["lock", "status", "--json"]).session("rival").under(shifted);
    let status = rival.cwd(world.root().join("main")).run().ok().json();
    assert_eq!(status["data"]["state"], "held", "{status}");
    assert_eq!(status["data"]["clock"]["method"], "wall_clock", "{status}");
    let rival = world.here.jvs(["lock", "acquire", "--no-keeper", "--json"]).session("rival");
    rival.under(shifted).cwd(world.root().join("main")).run().exits(2);
}

#[test]
fn a_clock_in_1970_takes_nothing_and_is_told_so() {
    let Some(world) = World::new() else { return };
    world.here(None, "holder", &["acquire", "--lease", "10m", "--no-keeper"]).ok();
    let clock = Some("@1970-01-01 00:00:10");
    let refused = world.there(clock, "thief", &ACQUIRE).exits(2).json();
    let skew = refused["error"]["details"]["observed_skew_ms"].as_u64().expect("told");
    assert!(skew > 50 * 365 * 24 * HOUR_MS, "{refused}");
    world.here(None, "holder", &["release"]).ok();
    // What nobody renews is judged by the clocks alone: it was over in 1970.
    world.there(clock, "thief", &ACQUIRE).ok();
    let got = world.gets_it_at_last(None);
    assert_eq!(got["how"], "stolen", "{got}");
}

/// As on a host where somebody set the clock: the kernel says that nothing steers it.
fn with_a_clock_that_was_set(jvs: Jvs, clock: &str) -> Jvs {
    // TIME_ERROR, whatever the kernel of this machine would say.
    let kernel = ["strace", "-f", "-o", "/dev/null", "-e", "inject=adjtimex:retval=5"];
    at(jvs.under(kernel), Some(clock))
}

#[test]
fn a_clock_that_somebody_set_ends_no_freeze_of_another_host() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let Some(world) = World::new() else { return };
    for clock in ["+40s", "+1h"] {
        let freeze = ["freeze", "--for", "3s", "--reason", "maintenance"];
        world.there(None, "operator", &freeze).ok();
        let acquire = || {
            let jvs = world.here.jvs(["lock"]).session("rival");
            world.run(with_a_clock_that_was_set(jvs, clock), &ACQUIRE)
        };
        let refused = acquire().exits(2).json();
        assert_eq!(refused["error"]["code"], "E_LOCK_FROZEN", "{clock}: {refused}");
        let message = refused["error"]["message"].as_str().expect("a sentence");
        assert!(message.contains("nothing synchronises that clock"), "{clock}: {refused}");
        let hint = refused["error"]["hint"].as_str().expect("a hint");
        assert!(hint.contains("jvs lock unfreeze -w main --reason"), "{clock}: {refused}");
        // Once it was seen for as long as it lasts, no clock is asked.
        eventually("the freeze is over", DEADLINE, || acquire().code() == 0);
        world.here(None, "rival", &["release"]).ok();
    }
}
