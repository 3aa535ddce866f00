//! The files that were made, and commands to look at them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jvs_kit::live::capability::packages;
use jvs_kit::live::process::{Outcome, run};

/// Packing and unpacking, on a machine that has other things to do.
const DEADLINE: Duration = Duration::from_secs(240);

/// The project's root.
pub(crate) fn root() -> PathBuf {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"));
    suite.ancestors().nth(2).expect("the suite is two levels below the root").to_owned()
}

/// The names of everything that was made, sorted.
pub(crate) fn names() -> Vec<String> {
    let dir = fs_err::read_dir(packages()).expect("what was made");
    let mut names: Vec<String> = dir
        .map(|file| file.expect("listed").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    names
}

/// The one file that was made whose name ends so.
pub(crate) fn the(ending: &str) -> PathBuf {
    let names = names();
    let found: Vec<_> = names.iter().filter(|name| name.ends_with(ending)).collect();
    assert_eq!(found.len(), 1, "one {ending} among {names:?}");
    packages().canonicalize().expect("it is there").join(found[0])
}

/// What a shell makes of a script with these words as `$1`, `$2` and so on. Nothing of this
/// process's environment is in it. It leads a session of its own: the leader of this one may be
/// in a PID namespace that cannot be seen from here.
pub(crate) fn shell(script: &str, words: &[&Path]) -> Outcome {
    let mut shell = Command::new("setsid");
    shell
        .args(["--wait", "bash", "-euo", "pipefail", "-c", script, "bash"])
        .args(words)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .env("TMPDIR", std::env::temp_dir())
        .current_dir(root());
    run(shell, DEADLINE)
}
