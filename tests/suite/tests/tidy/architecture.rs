//! Who may know what: the control directory's name, the filesystem, the clock,
//! the terminal, and which crate may use which.

use jvs_repo::layout::CONTROL_DIR;

use crate::source::{Source, files, root, sources};

/// The crates that ship, each knowing only those before it.
pub(crate) const CRATES: [&str; 7] =
    ["jvs-kernel", "jvs-repo", "jvs-lock", "jvs-snapshot", "jvs-doctor", "jvs", "jvs-mcp"];

/// Modules that touch the filesystem other than through the store, and why.
const TOUCH_THE_FILESYSTEM: &[(&str, &str)] = &[
    ("jvs/src/sleeper.rs", "asks the kernel to say when something changes"),
    ("jvs/src/sink.rs", "asks whether anybody is at standard output"),
    ("jvs/src/command/agent.rs", "asks whether the program in PATH is this one"),
    ("jvs/src/command/audit/tla.rs", "makes the directory for a trace"),
    ("jvs/src/command/demo.rs", "plays in a directory of its own"),
    ("jvs/src/command/events/watches.rs", "asks the kernel to say when something changes"),
    ("jvs/src/command/hook.rs", "asks where a path of an agent leads, and closes its streams"),
    ("jvs/src/command/init.rs", "asks whose home it is that would become a worktree"),
    ("jvs/src/command/man.rs", "makes the directory for manual pages"),
    ("jvs/src/command/restore.rs", "asks which directory of the worktree its user is in"),
    ("jvs/src/command/run.rs", "gives a guardian no streams, and a namespace its user"),
    ("jvs/src/keeper.rs", "leaves a note and its name outside any repository"),
    ("jvs/src/session/home.rs", "asks whose the directories of the environment are"),
    ("jvs/src/session/lasting.rs", "looks where a session can keep what outlives the boot"),
    ("jvs/src/session/life.rs", "touches a file outside any repository"),
    ("jvs/src/session/place.rs", "reads the host's list of users"),
    ("jvs/src/session/named.rs", "asks whether there is a terminal"),
    ("jvs/src/session/secret.rs", "keeps a secret outside any repository"),
    ("jvs/src/session/hints.rs", "keeps hints outside any repository"),
    ("jvs/src/tree.rs", "makes and removes cgroups"),
    ("jvs/src/trust.rs", "reads the user's own list, which is in no repository"),
    ("jvs/src/umask.rs", "names the modes of a umask"),
    ("jvs-kernel/src/fork.rs", "counts its threads in /proc"),
    ("jvs-mcp/src/lib.rs", "looks whether the command is beside it"),
    ("jvs-mcp/src/session.rs", "claims a session outside any repository"),
    ("jvs-repo/src/discover.rs", "looks for the root that the store will stand on"),
    ("jvs-repo/src/entropy.rs", "reads /dev/urandom where a sandbox forbids the call"),
    ("jvs-repo/src/nursery.rs", "finds the directory that the store will stand on"),
    ("jvs-repo/src/probe/mount.rs", "finds out which mount a path is on"),
    ("jvs-repo/src/proc.rs", "reads /proc"),
    ("jvs-repo/src/store/posix.rs", "is the store"),
    ("jvs-snapshot/src/tree.rs", "makes the calls on payload trees, whose names are any bytes"),
    ("jvs-repo/src/store/posix/tree.rs", "is the store, for trees of payload"),
];

/// The methods of a path that ask the filesystem about it.
const PATH_METHODS: [&str; 10] = [
    ".canonicalize()",
    ".exists()",
    ".is_dir()",
    ".is_file()",
    ".is_symlink()",
    ".metadata()",
    ".read_dir()",
    ".read_link()",
    ".symlink_metadata()",
    ".try_exists()",
];

/// Modules that read the environment of the process, besides the command.
const READ_THE_ENVIRONMENT: &[(&str, &str)] = &[
    ("jvs-mcp/src/lib.rs", "is the other program, which is told by whoever starts it, too"),
    ("jvs-repo/src/discover.rs", "begins where its user is, if nobody says where"),
];

/// Modules that decide, from plain values alone.
const DECIDE: [&str; 9] = [
    "jvs-lock/src/decide.rs",
    "jvs-lock/src/hold/admit.rs",
    "jvs-lock/src/hold/idle.rs",
    "jvs-lock/src/hold/memory.rs",
    "jvs-lock/src/judge.rs",
    "jvs-lock/src/policy.rs",
    "jvs-lock/src/state.rs",
    "jvs-snapshot/src/garbage.rs",
    "jvs-snapshot/src/gc/age.rs",
];

/// Modules that read a clock.
const READ_THE_CLOCK: &[(&str, &str)] = &[("jvs-repo/src/clock.rs", "is the clock")];

/// Modules that write to the standard streams.
const PRINT: &[(&str, &str)] = &[
    ("jvs-mcp/src/call.rs", "hears what the command says"),
    ("jvs-mcp/src/frames.rs", "speaks the protocol, which is JSON"),
    ("jvs-mcp/src/lib.rs", "says what it is, and why it cannot serve"),
    ("jvs-snapshot/src/engine/juicefs/program.rs", "hears what the program that it runs says"),
    ("jvs/src/answer/other.rs", "says what the commands of a demonstration have printed"),
    ("jvs/src/command/demo.rs", "shows what the commands it ran have printed"),
    ("jvs/src/command/events/exec.rs", "gives the program of its user no answer to speak into"),
    ("jvs/src/command/run.rs", "hands its streams to its child"),
    ("jvs/src/keeper.rs", "speaks to whoever started it"),
    ("jvs/src/render.rs", "asks how wide a terminal is, and whether its reader is gone"),
    ("jvs/src/sink.rs", "is the output"),
];

/// Who writes to one.
const WRITE_TO_A_STREAM: &[(&str, &str)] = &[
    ("jvs-mcp/src/frames.rs", "speaks the protocol, which is JSON"),
    ("jvs-mcp/src/lib.rs", "escapes what it says"),
    ("jvs/src/keeper/supervisor.rs", "speaks to whoever started it, through a pipe"),
    ("jvs/src/sink.rs", "lets nothing out that a terminal would act on"),
];

/// Who has clap colour its own help, which is not looked at again.
const COLOURED_ELSEWHERE: &[(&str, &str)] = &[
    ("jvs/src/args.rs", "has no words of others in it"),
    ("jvs/src/render.rs", "hands it to the sink"),
    ("jvs/src/sink.rs", "says it"),
];

/// Rename over whatever is there, above the crate that knows no register.
const RENAME: &[(&str, &str)] = &[
    ("jvs-lock/src/drive.rs", "is the one place that issues a CAS"),
    ("jvs-lock/src/queue/place.rs", "moves its own ticket"),
    ("jvs-lock/src/hold/files.rs", "names a session's own hold and stakes"),
    ("jvs-snapshot/src/shown.rs", "shows what was committed"),
    ("jvs-doctor/src/treat/hand.rs", "puts what is broken aside"),
    ("jvs/src/session/known.rs", "moves a secret, which is in no repository"),
];

/// Whether a file is the module in `module`, or a part of it.
fn is_or_below(file: &str, module: &str) -> bool {
    file == module || file.starts_with(&format!("{}/", module.trim_end_matches(".rs")))
}

/// Whether a file is of a crate that ships.
pub(crate) fn is_shipped(source: &Source) -> bool {
    CRATES.iter().any(|c| source.path.starts_with(&format!("{c}/src/")))
}

/// Fails for every use of `words` in shipped code outside the listed modules,
/// and for every listed module that uses none of them any more.
pub(crate) fn only_in(allowed: &[(&str, &str)], words: &[&str], rule: &str) {
    let uses = |source: &Source| words.iter().flat_map(|word| source.words(word)).collect();
    only_where(allowed, uses, rule);
}

/// As [`only_in`], for what `uses` finds in a file.
pub(crate) fn only_where(
    allowed: &[(&str, &str)],
    uses: impl Fn(&Source) -> Vec<usize>,
    rule: &str,
) {
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    for source in sources().iter().filter(|source| is_shipped(source)) {
        for at in uses(source) {
            if source.is_test(at) {
                continue;
            }
            let entries = allowed.iter().filter(|(path, _)| is_or_below(&source.path, path));
            let before = used.len();
            used.extend(entries.map(|(path, _)| *path));
            if used.len() == before {
                wrong.push(source.line(at));
            }
        }
    }
    for (path, reason) in allowed {
        if !used.contains(path) {
            wrong.push(format!("{path}: listed ({reason}) but does it no more"));
        }
    }
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

#[test]
fn only_the_store_and_listed_modules_touch_the_filesystem() {
    let uses = |source: &Source| -> Vec<usize> {
        let paths = ["std::fs", "std::os::unix::fs", "fs_err", "rustix::fs"];
        let named = paths.iter().flat_map(|path| source.words(path));
        let asked = PATH_METHODS.iter().flat_map(|method| source.code.match_indices(method));
        named.chain(asked.map(|(at, _)| at)).collect()
    };
    let rule = "control-plane calls go through jvs_repo::store::Store";
    only_where(TOUCH_THE_FILESYSTEM, uses, rule);
}

#[test]
fn only_the_command_reads_the_environment() {
    let uses = |source: &Source| -> Vec<usize> {
        let library = !source.path.starts_with("jvs/");
        source.words("std::env").filter(|_| library).collect()
    };
    only_where(READ_THE_ENVIRONMENT, uses, "a library is told what the environment says");
}

#[test]
fn what_decides_knows_no_file_and_no_clock() {
    let sources = sources();
    let mut wrong = Vec::new();
    for path in DECIDE {
        let source = sources.iter().find(|source| source.path == path).expect("a module");
        for seam in ["Store", "StoredFile", "Clock", "SystemClock", "Entropy", "Seams", "std::io"] {
            let named = source.words(seam).filter(|at| !source.is_test(*at));
            wrong.extend(named.map(|at| source.line(at)));
        }
    }
    assert!(wrong.is_empty(), "state and readings in, decision out:\n{}", wrong.join("\n"));
}

#[test]
fn tools_and_tests_name_the_file_that_they_could_not_use() {
    // What has no path, and what only describes a file.
    const PLAIN: [&str; 4] = ["::Permissions", "::Metadata", "::File>", "::File::from("];
    let mut wrong = Vec::new();
    for source in sources() {
        let top = ["tests/", "benches/"].iter().any(|dir| source.path.starts_with(dir));
        // The examples show what a user of the crates would write, and the tests beside
        // the code of a crate that ships need nothing that is not shipped.
        if !top && !CRATES.iter().any(|c| source.path.starts_with(&format!("{c}/tests/"))) {
            continue;
        }
        let plain = |at: &usize| PLAIN.iter().any(|word| source.code[at + 7..].starts_with(word));
        let calls = source.words("std::fs").filter(|at| !plain(at));
        let unix = source.words("std::os::unix::fs").filter(|&at| {
            let path = source.code[at..].split([';', '(']).next().unwrap_or_default();
            ["symlink", "chown", "lchown"].iter().any(|call| path.contains(call))
        });
        wrong.extend(calls.chain(unix).map(|at| source.line(at)));
    }
    assert!(wrong.is_empty(), "use fs_err, whose errors name the file:\n{}", wrong.join("\n"));
}

#[test]
fn only_the_driver_of_a_register_issues_its_cas() {
    let renames = |source: &Source| -> Vec<usize> {
        let below = ["jvs-kernel/", "jvs-repo/"].iter().any(|c| source.path.starts_with(c));
        let is_test = source.path.ends_with("/tests.rs");
        let found = source.code.match_indices(".rename(").map(|(at, _)| at);
        found.filter(|_| !below && !is_test).collect()
    };
    only_where(RENAME, renames, "a register's entry is renamed in jvs-lock/src/drive.rs");
    let known = [("jvs-lock/src/register.rs", "knows it"), ("jvs-lock/src/drive.rs", "renames it")];
    only_in(&known, &["entry_of"], "nobody else needs the path of a register's entry");
}

#[test]
fn only_the_clock_reads_the_time() {
    only_in(
        READ_THE_CLOCK,
        &[
            "SystemTime::now",
            "Instant::now",
            "OffsetDateTime::now_utc",
            "OffsetDateTime::now_local",
            "UtcDateTime::now",
            "clock_gettime",
            "elapsed",
        ],
        "every clock reading goes through jvs_repo::clock::Clock",
    );
}

#[test]
fn only_one_module_prints() {
    only_in(
        PRINT,
        &["print!", "println!", "eprint!", "eprintln!", "dbg!", "stdout", "stderr"],
        "libraries return, the command's output module prints",
    );
}

/// Whatever is shown to people goes through functions that escape what a terminal would
/// act on; nothing can go around them.
#[test]
fn only_the_sink_writes_to_a_standard_stream() {
    let uses = |source: &Source| {
        let streams =
            ["stdout()", "stderr()"].iter().flat_map(|word| source.code.match_indices(word));
        let asked = ["is_terminal", "tcgetwinsize", "as_fd", "let stdout = io::stdout();\n"];
        let told = streams.filter(|(at, _)| {
            let line = source.code[..*at].rfind('\n').map_or(0, |start| start + 1);
            let line = &source.code[line..(at + 40).min(source.code.len())];
            !asked.iter().any(|word| line.contains(word)) && !line.contains("rustix::stdio")
        });
        told.map(|(at, _)| at).collect()
    };
    only_where(WRITE_TO_A_STREAM, uses, "what is said goes through jvs/src/sink.rs");
    let words = ["with_help", "answer_with_help", "ansi"];
    only_in(COLOURED_ELSEWHERE, &words, "only clap's own help is said as it comes");
}

#[test]
fn only_the_layout_spells_the_control_directory_s_name() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.path != "jvs-repo/src/layout.rs") {
        for string in &source.strings {
            let inside = &source.text[string.clone()];
            let spelled = inside.match_indices(CONTROL_DIR).any(|(at, _)| {
                let after = inside[at + CONTROL_DIR.len()..].chars().next();
                !after.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_')
            });
            if spelled {
                wrong.push(source.line(string.start));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "build the path with jvs_repo::layout, or use layout::CONTROL_DIR:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_crate_says_what_it_is_for_what_it_must_not_know_and_what_it_cannot_do() {
    let mut wrong = Vec::new();
    for file in files(&["rs"]) {
        let root = file.path.ends_with("src/lib.rs");
        let only_documentation =
            file.text.lines().all(|line| line.is_empty() || line.starts_with("//"));
        // The packages that consist of `tests/` have an empty library.
        if !root || (only_documentation && file.path.starts_with("tests/")) {
            continue;
        }
        for part in ["**Responsibility.**", "**Must not know.**", "# Limitations"] {
            if !file.text.lines().any(|line| line.starts_with("//!") && line.contains(part)) {
                wrong.push(format!("{}: no `{part}`", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn dependencies_between_crates_run_one_way() {
    for (place, name) in CRATES.iter().enumerate() {
        for dependency in own_dependencies(name) {
            // The kit knows only the first two crates, so all after them may be tested
            // with it: no crate meets another build of itself. The worlds know them
            // all, and are only for tests in directories of their own.
            let tests = place > 1 && ["jvs-kit", "jvs-world"].contains(&dependency.as_str());
            assert!(
                tests || CRATES[..place].contains(&dependency.as_str()),
                "{name} must not depend on {dependency}: the order is {}",
                CRATES.join(" ← ")
            );
        }
    }
}

#[test]
fn the_mcp_server_knows_the_command_and_no_library_of_it() {
    assert_eq!(own_dependencies("jvs-mcp"), ["jvs-kernel"]);
}

#[test]
fn the_kit_knows_the_repository_and_nothing_above_it() {
    assert_eq!(own_dependencies("tests/kit"), ["jvs-repo"]);
}

#[test]
fn the_torture_judges_with_none_of_the_code_that_it_judges() {
    assert_eq!(own_dependencies("tests/torture"), ["jvs-kit", "jvs-repo"]);
}

#[test]
fn the_worlds_are_for_tests_in_directories_of_their_own() {
    let known = own_dependencies("tests/world");
    for source in sources() {
        let Some((package, inside)) = source.path.split_once('/') else { continue };
        let beside_the_code =
            known.iter().any(|name| name == package) && inside.starts_with("src/");
        let place = source.words("jvs_world").next().filter(|_| beside_the_code);
        assert!(
            place.is_none(),
            "its own types would be another crate's: {}",
            source.line(place.unwrap_or_default())
        );
    }
}

/// The project's own crates among a package's dependencies, those that only its
/// tests use included.
fn own_dependencies(package: &str) -> Vec<String> {
    let manifest = root().join(package).join("Cargo.toml");
    let text = fs_err::read_to_string(&manifest).expect("a package's manifest");
    let mut in_dependencies = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            in_dependencies = line.trim_matches(['[', ']']).ends_with("dependencies");
        } else if in_dependencies {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if name == "jvs" || name.starts_with("jvs-") {
                found.push(name.to_owned());
            }
        }
    }
    found
}
