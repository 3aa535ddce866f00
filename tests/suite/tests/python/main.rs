//! The Python package, on every Python that is here: its own tests, its types, and the
//! wheel in a place that has nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jvs_kit::live::binary;
use jvs_kit::live::capability::{Capability, granted, mypy_program, skip};
use jvs_kit::live::process::{Outcome, run};
use tempfile::TempDir;

/// The oldest that the package promises to run on.
const OLDEST: (u32, u32) = (3, 9);

/// All tests of one Python, on a machine that has other things to do.
const DEADLINE: Duration = Duration::from_secs(240);

fn package() -> PathBuf {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"));
    suite.ancestors().nth(2).expect("the suite is two levels below the root").join("python")
}

/// A command of a Python that sees nothing of this process's environment. It leads a session
/// of its own: the leader of this one may be in a PID namespace that cannot be seen from here.
fn python(program: &Path, home: &Path) -> Command {
    let mut command = Command::new("setsid");
    command
        .arg("--wait")
        .arg(program)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .env("PIP_NO_INDEX", "1")
        .env("TMPDIR", std::env::temp_dir())
        .current_dir(home);
    command
}

fn says(program: &Path, script: &str) -> Option<String> {
    let home = std::env::temp_dir();
    let said = python(program, &home).args(["-c", script]).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// Every Python that is new enough, once each, by its version.
fn pythons() -> BTreeMap<(u32, u32), PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let versions = home.join(".pyenv/versions").read_dir().into_iter().flatten().flatten();
    places.extend(versions.map(|version| version.path().join("bin")));
    let version = "import sys; print(sys.version_info[0], sys.version_info[1])";
    let mut found = BTreeMap::new();
    for program in places.into_iter().rev().map(|place| place.join("python3")) {
        // A shim of a version manager is none of its own.
        let Some(said) = says(&program, version) else { continue };
        let Some((major, minor)) = said.split_once(' ') else { continue };
        let (Ok(major), Ok(minor)) = (major.parse(), minor.parse()) else { continue };
        if (major, minor) >= OLDEST {
            found.insert((major, minor), program);
        }
    }
    found
}

/// How many tests ran, by what `unittest` says last.
fn counted(outcome: &Outcome) -> u32 {
    let line = outcome.stderr().lines().find_map(|line| line.strip_prefix("Ran "));
    let number = line.and_then(|rest| rest.split(' ').next()).and_then(|it| it.parse().ok());
    number.unwrap_or_else(|| panic!("unittest says how many it ran: {outcome}"))
}

/// The package's own tests, if this Python is here. A test for each of them, because each
/// takes its time.
fn works_on(version: (u32, u32)) {
    let Some(program) = pythons().remove(&version) else { return };
    let home = TempDir::new().expect("a home");
    let mut tests = python(&program, home.path());
    tests
        .args(["-W", "error", "-m", "unittest", "discover", "--start-directory"])
        .arg(package().join("tests"))
        .env("JVS_PROGRAM", binary::jvs());
    let outcome = run(tests, DEADLINE).ok();
    assert!(counted(&outcome) >= 36, "{outcome}");
}

#[test]
fn the_package_works_on_python_3_9() {
    works_on((3, 9));
}

#[test]
fn the_package_works_on_python_3_10() {
    works_on((3, 10));
}

#[test]
fn the_package_works_on_python_3_11() {
    works_on((3, 11));
}

#[test]
fn the_package_works_on_python_3_12() {
    works_on((3, 12));
}

#[test]
fn the_package_works_on_python_3_13() {
    works_on((3, 13));
}

#[test]
fn the_package_works_on_the_newest_python_that_is_here() {
    let Some(newest) = newest() else { return };
    let version = pythons().into_iter().find(|(_, program)| *program == newest);
    let (version, _) = version.expect("it was found");
    // The others have tests of their own.
    if version > (3, 13) {
        works_on(version);
    }
}

#[test]
fn the_package_s_types_are_right() {
    if !granted(&[Capability::Mypy]) {
        return;
    }
    let home = TempDir::new().expect("a home");
    let check = |files: &[PathBuf], path: &[&str]| {
        let path: Vec<String> =
            path.iter().map(|it| package().join(it).display().to_string()).collect();
        let mut mypy = python(&mypy_program(), home.path());
        mypy.arg("--strict")
            .arg("--cache-dir")
            .arg(home.path().join("cache"))
            .args(files)
            .env("MYPYPATH", path.join(":"));
        run(mypy, DEADLINE).ok();
    };
    check(&[package().join("src/jvs")], &[]);
    let tests = package().join("tests").read_dir().expect("the tests");
    let tests = tests.map(|file| file.expect("listed").path());
    let tests: Vec<PathBuf> = tests.filter(|it| it.extension() == Some("py".as_ref())).collect();
    check(&tests, &["src", "tests"]);
}

/// A wheel of this program, in this directory; or why there is none.
fn wheel(python3: &Path, jvs: &Path, dir: &Path) -> Outcome {
    let mut build = python(python3, dir);
    build.arg(package().join("backend/jvs_build.py")).arg(dir).env("JVS_BINARY", jvs);
    run(build, DEADLINE)
}

/// What pip makes of these words.
fn pip(python3: &Path, home: &Path, words: &[&str]) -> Outcome {
    let mut pip = python(python3, home);
    pip.args(["-m", "pip"]).args(words);
    run(pip, DEADLINE)
}

/// The newest Python that is here; a test without one is skipped.
fn newest() -> Option<PathBuf> {
    let there = granted(&[Capability::Program("python3")]).then(pythons);
    let newest = there?.into_values().next_back();
    if newest.is_none() {
        skip("no Python that is new enough");
    }
    newest
}

#[test]
fn the_wheel_brings_the_program_and_the_package_to_a_place_that_has_neither() {
    let Some(python3) = newest() else { return };
    let home = TempDir::new().expect("a home");
    let built = wheel(&python3, &binary::jvs(), home.path()).ok();
    let (venv, wheel) = (home.path().join("venv"), built.stdout().trim());
    let mut make = python(&python3, home.path());
    make.args(["-m", "venv"]).arg(&venv);
    run(make, DEADLINE).ok();
    pip(&venv.join("bin/python"), home.path(), &["install", "--quiet", wheel]).ok();

    let jvs = venv.join("bin/jvs");
    let mut demo = python(&jvs, home.path());
    demo.arg("demo");
    let shown = run(demo, DEADLINE).ok();
    assert!(shown.stdout().contains("E_FENCING_MISMATCH"), "{shown}");
    let script = "import jvs; print(jvs.program()); jvs.call('init', 'repo')
with jvs.hold('main', repo='repo') as hold: print(hold.fencing_token)";
    let mut works = python(&venv.join("bin/python"), home.path());
    works.args(["-c", script]).env("XDG_RUNTIME_DIR", home.path());
    let outcome = run(works, DEADLINE).ok();
    assert_eq!(outcome.stdout(), format!("{}\n1\n", jvs.display()));
}

#[test]
fn a_wheel_is_for_the_machine_that_its_program_is_for() {
    let Some(python3) = newest() else { return };
    let home = TempDir::new().expect("a home");
    // The head of the same program, said to be one for another processor.
    let mut elf = fs_err::read(binary::jvs()).expect("the program");
    elf.truncate(4096);
    let (machine, other): (u16, &str) =
        if elf[18] == 62 { (183, "aarch64") } else { (62, "x86_64") };
    elf[18..20].copy_from_slice(&machine.to_le_bytes());
    let foreign = home.path().join("foreign");
    fs_err::write(&foreign, &elf).expect("written");
    let built = wheel(&python3, &foreign, home.path()).ok();
    let wheel_of_other = built.stdout().trim();
    assert!(wheel_of_other.ends_with(&format!("_{other}.whl")), "{built}");
    let refused =
        pip(&python3, home.path(), &["install", "--target", "there", wheel_of_other]).exits(1);
    assert!(refused.stderr().contains("not a supported wheel on this platform"), "{refused}");
    // And what is no program at all makes no wheel.
    fs_err::write(&foreign, "#!/bin/sh\n").expect("written");
    let refused = wheel(&python3, &foreign, home.path()).exits(1);
    assert!(refused.stderr().contains("is not one for Linux"), "{refused}");
}
