//! Doctor in a loop beside sessions at work, on JuiceFS: nobody fails because of
//! it, and nothing live is removed.
//!
//! A minute; `JVS_BESIDE_SECONDS` makes it longer or shorter, and
//! `JVS_BESIDE_ENGINE=sqlite3` takes the other metadata engine.

#![allow(clippy::print_stderr, reason = "how much was done is worth seeing")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jvs_kit::live::home::Home;
use jvs_kit::live::juicefs::{Engine, Volume};

const SESSIONS: usize = 8;
const ROUNDS_MIN: usize = 2;
const THOUGHT: Duration = Duration::from_millis(700);

fn seconds() -> u64 {
    std::env::var("JVS_BESIDE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// Works until `deadline`; how many snapshots it took.
fn work(host: &Path, name: &str, deadline: Instant) -> usize {
    let home = Home::new();
    let payload = host.join("repository/worktrees").join(name);
    let mut taken = 0;
    while taken < ROUNDS_MIN || Instant::now() < deadline {
        fs_err::write(payload.join(format!("file-{taken}")), name).expect("a file");
        let jvs = |args: &[&str]| home.jvs(args).cwd(&payload).session(name).run();
        jvs(&["lock", "acquire", "--no-keeper", "--lease", "5m"]).ok();
        jvs(&["snapshot", "work"]).ok();
        jvs(&["lock", "release"]).ok();
        taken += 1;
        // They think in between, and so leave a minute of this to a busy machine.
        std::thread::sleep(THOUGHT);
    }
    taken
}

#[test]
fn doctor_in_a_loop_disturbs_no_session_and_removes_nothing_live() {
    let other = std::env::var("JVS_BESIDE_ENGINE").is_ok_and(|engine| engine == "sqlite3");
    let engine = if other { Engine::Sqlite } else { Engine::Redis };
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let root = |host: usize| -> PathBuf { volume.host(host).join("repository") };
    let admin = Home::new();
    admin.jvs(["init"]).arg(root(0)).run().ok();
    let names: Vec<String> = (0..SESSIONS).map(|n| format!("w{n}")).collect();
    for name in &names {
        admin.jvs(["worktree", "create", name]).cwd(root(0).join("main")).run().ok();
    }
    let deadline = Instant::now() + Duration::from_secs(seconds());
    let (taken, looks) = std::thread::scope(|scope| {
        let workers: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(n, name)| {
                let host = volume.host(n % 2).to_path_buf();
                scope.spawn(move || work(&host, name, deadline))
            })
            .collect();
        let mut looks = 0;
        while workers.iter().any(|worker| !worker.is_finished()) {
            let host = root(looks % 2).join("main");
            let repair = if looks % 3 == 2 { "--repair" } else { "--strict" };
            let seen = admin.jvs(["doctor", repair, "--json"]).cwd(&host).run();
            assert!([0, 12].contains(&seen.code()), "{seen}");
            looks += 1;
            std::thread::sleep(THOUGHT);
        }
        let taken: Vec<usize> =
            workers.into_iter().map(|w| w.join().expect("a session failed")).collect();
        (taken, looks)
    });
    assert!(looks > 1, "doctor looked {looks} times");
    eprintln!("{looks} looks beside {} snapshots", taken.iter().sum::<usize>());
    for (name, taken) in names.iter().zip(taken) {
        let listed = admin.jvs(["history", "-w", name, "--json"]).cwd(root(0).join("main")).run();
        let listed = listed.ok().json();
        let snapshots = listed["data"]["snapshots"].as_array().map(Vec::len);
        assert_eq!(snapshots, Some(taken), "{name}: {listed}");
    }
    admin.jvs(["verify", "--all"]).cwd(root(1).join("main")).run().ok();
    admin.jvs(["doctor", "--strict"]).cwd(root(1).join("main")).run().ok();
}
