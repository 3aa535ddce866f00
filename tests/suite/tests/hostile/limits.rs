//! Surroundings in which little works: few files, processes, bytes; streams that are
//! closed or full; no `/proc`, no home, a sandbox that knows an older kernel. Each
//! command works, or says what it lacks; and when that is there again, so does all else.

use std::ffi::OsString;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::Outcome;

use crate::world::World;

/// What every repository is for.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["lock", "acquire", "--no-keeper"],
    &["snapshot", "more"],
    &["lock", "release"],
    &["run", "--", "true"],
    &["restore", "@", "--into", "y"],
    &["gc"],
    &["doctor"],
];

/// What may come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hope {
    /// It works, as if nothing were missing.
    Works,
    /// It works, or an error says what is missing.
    Told,
    /// As told, but nobody can hear it.
    Unheard,
}

use Hope::{Told, Unheard, Works};

/// Words before the command, and what may come of it.
struct Setting {
    name: String,
    wrapper: Vec<OsString>,
    hope: Hope,
}

fn setting(name: impl Into<String>, wrapper: &[&str], hope: Hope) -> Setting {
    Setting { name: name.into(), wrapper: wrapper.iter().map(OsString::from).collect(), hope }
}

/// A line of shell around the command.
fn shell(line: &str, hope: Hope) -> Setting {
    setting(line, &["sh", "-c", line, "sh"], hope)
}

/// Says nothing that no user understands, and not nothing at all.
#[track_caller]
fn is_told(said: &Outcome, of: &Setting) {
    let name = &of.name;
    assert_eq!(said.signal(), None, "{name}: {said}");
    let exit = said.code();
    assert!((0..=13).contains(&exit), "{name}: {said}");
    let words = String::from_utf8_lossy(&said.stderr);
    for never in ["E_INTERNAL", "panicked", "bug in jvs", "CORRUPT", "backup"] {
        assert!(!words.contains(never), "{name}: {never}: {said}");
    }
    match of.hope {
        Works => assert_eq!(exit, 0, "{name}: {said}"),
        Told => assert!(exit == 0 || words.contains("error[E_"), "{name}: {said}"),
        Unheard => {}
    }
}

/// Every command in every setting; after each setting everything works.
fn try_all(settings: &[Setting]) {
    let mut cases = 0;
    let world = World::new();
    fs_err::write(world.file("file"), "one").expect("written");
    world.jvs(&["snapshot", "zero"]).ok();
    for setting in settings {
        for words in COMMANDS {
            let said = world.command(words).under(&setting.wrapper).run();
            is_told(&said, setting);
            cases += 1;
        }
        // Nothing of it is left that would disturb anybody.
        let _ = world.jvs(&["lock", "release"]);
        let _ = world.jvs(&["worktree", "remove", "y", "--force"]);
        world.jvs(&["run", "--", "true"]).ok();
        let doctor = world.jvs(&["doctor", "--strict", "--repair"]).ok();
        assert!(doctor.stdout().contains("healthy"), "{}: {doctor}", setting.name);
    }
    println!("{cases} cases of {} settings", settings.len());
}

#[test]
fn few_open_files_are_enough_or_it_is_told() {
    let limit = |n: u32| {
        let hope = if n >= 32 { Works } else { Told };
        shell(&format!("ulimit -n {n}; exec \"$@\""), hope)
    };
    try_all(&[8, 10, 12, 16, 24, 32, 64].map(limit));
}

#[test]
fn little_memory_and_files_that_may_not_grow_are_told() {
    let memory = |mb: u32| shell(&format!("ulimit -v {}; exec \"$@\"", mb * 1024), Told);
    // The streams are files, too: what may not grow at all is not told in one.
    let file = |blocks: u32| {
        let hope = if blocks < 16 { Unheard } else { Told };
        shell(&format!("ulimit -f {blocks}; exec \"$@\""), hope)
    };
    let settings = [64, 96, 128].map(memory).into_iter().chain([0, 1, 16].map(file));
    try_all(&settings.collect::<Vec<_>>());
}

/// Root has no such limit, and so it is another user whose threads are counted.
#[test]
fn few_processes_are_enough_or_it_is_told() {
    if !granted(&[Capability::Root, Capability::Program("setpriv"), Capability::Program("prlimit")])
    {
        return;
    }
    let world = World::new();
    world.give_to(4719);
    let mut cases = 0;
    for most in [1, 2, 3, 5, 8, 16] {
        let limit = format!("--nproc={most}");
        let wrapper =
            ["prlimit", &limit, "setpriv", "--reuid", "4719", "--regid", "4719", "--clear-groups"];
        let setting = setting(limit.clone(), &wrapper, Told);
        for words in COMMANDS {
            is_told(&world.command(words).under(&setting.wrapper).run(), &setting);
            cases += 1;
        }
        let free = |words: &[&str]| world.command(words).under(&wrapper[2..]).run();
        let _ = free(&["lock", "release"]);
        let _ = free(&["worktree", "remove", "y", "--force"]);
        free(&["snapshot", "after"]).ok();
    }
    println!("{cases} cases");
}

#[test]
fn closed_and_full_streams_change_nothing_but_what_is_heard() {
    let mut settings = Vec::new();
    for closed in 1..8 {
        let names = ["<&-", ">&-", "2>&-"];
        let words = (0..3).filter(|bit| closed >> bit & 1 == 1).map(|bit| names[bit]);
        let line = format!("exec \"$@\" {}", words.collect::<Vec<_>>().join(" "));
        settings.push(shell(&line, Unheard));
    }
    settings.push(shell("exec \"$@\" >/dev/full", Told));
    settings.push(shell("exec \"$@\" 2>/dev/full", Unheard));
    settings.push(shell("exec \"$@\" >/dev/full 2>&1", Unheard));
    try_all(&settings);
}

#[test]
fn without_a_home_or_proc_it_works_or_says_so() {
    let mut settings = vec![
        setting("no HOME", &["env", "-u", "HOME"], Works),
        setting("no XDG_RUNTIME_DIR", &["env", "-u", "XDG_RUNTIME_DIR"], Works),
        setting("neither", &["env", "-u", "HOME", "-u", "XDG_RUNTIME_DIR"], Told),
        setting("not a home", &["env", "-u", "XDG_RUNTIME_DIR", "HOME=/proc/1/nowhere"], Told),
        setting("nothing at all", &["env", "-i", "JVS_SESSION_ID=s"], Told),
    ];
    if granted(&[Capability::Root, Capability::Program("unshare")]) {
        let covered = "mount -t tmpfs none /proc && exec \"$@\"";
        settings.push(setting("no /proc", &["unshare", "-m", "sh", "-c", covered, "sh"], Told));
    }
    try_all(&settings);
}

/// As a sandbox does that knows an older kernel's calls alone, or forbids one.
fn without_calls(calls: &[(&str, Hope)]) {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let settings = calls.iter().flat_map(|(calls, hope)| {
        ["ENOSYS", "EPERM"].map(|errno| {
            let (trace, inject) =
                (format!("trace={calls}"), format!("inject={calls}:error={errno}"));
            let wrapper =
                ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", &trace, "-e"];
            let wrapper: Vec<&str> = wrapper.into_iter().chain([inject.as_str()]).collect();
            setting(inject.clone(), &wrapper, *hope)
        })
    });
    try_all(&settings.collect::<Vec<_>>());
}

#[test]
fn without_newer_calls_on_files_it_works_or_says_so() {
    without_calls(&[("openat2", Works), ("statx", Told), ("renameat2", Told)]);
}

#[test]
fn without_newer_calls_on_processes_it_works_or_says_so() {
    without_calls(&[
        ("pidfd_open,pidfd_send_signal", Told),
        ("close_range", Works),
        ("copy_file_range", Works),
        ("getrandom", Works),
    ]);
}
