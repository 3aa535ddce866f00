//! A JuiceFS mount whose control file does not listen: the `juicefs` program is
//! asked, can be stopped, and what it says is told.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use jvs_kit::live::capability::juicefs_program;
use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::mount::Covered;
use jvs_kit::live::process::{DEADLINE, eventually};
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::next::Next;
use jvs_snapshot::progress::{CapturePhase, Progress, Silent};
use jvs_snapshot::stage::CaptureError;

use super::support::{World, look, zoo};

/// A mount whose control file cannot be opened for writing, as seen by this test.
struct Deaf {
    world: World,
    control: PathBuf,
    _covered: Covered,
    place: tempfile::TempDir,
    volume: Volume,
}

impl Deaf {
    fn new(metadata: Metadata) -> Option<Self> {
        let volume = Volume::mounted(metadata, 1)?;
        let place = tempfile::tempdir().expect("a directory");
        let plain = place.path().join("plain");
        fs_err::write(&plain, "").expect("a file");
        let control = volume.host(0).join(".control");
        let covered = Covered::read_only(&control, &plain);
        let world = World::at(volume.host(0), volume.host(0));
        Some(Deaf { world, control, _covered: covered, place, volume })
    }

    /// Uses this script as the program. It is called with `clone --preserve FROM TO`.
    fn program(&mut self, script: &str) {
        let path = self.place.path().join("juicefs");
        fs_err::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(&path, mode).expect("a mode");
        self.world.options.juicefs_program = Some(path);
    }
}

#[test]
fn the_program_clones_where_the_control_file_does_not_listen() {
    for metadata in Metadata::ALL {
        let Some(mut deaf) = Deaf::new(metadata) else { return };
        // The program needs the control file as well: it gets to see it.
        deaf.program(&format!(
            "exec unshare -m sh -c 'umount \"$0\" && exec \"{}\" \"$@\"' '{}' \"$@\"",
            juicefs_program().canonicalize().expect("the program").display(),
            deaf.control.display(),
        ));
        zoo(&deaf.world);
        let captured = deaf.world.capture("1", None);
        assert_eq!(captured.content.engine, "juicefs");
        assert!(deaf.volume.host(0).exists());
    }
}

/// Another program that keeps no change times: its copy proves nothing, so the
/// original is looked at again.
#[test]
fn a_clone_without_change_times_is_no_second_look() {
    let Some(mut deaf) = Deaf::new(Metadata::Sqlite) else { return };
    deaf.program("exec cp -a --no-preserve=links \"$3\" \"$4\"");
    zoo(&deaf.world);
    let captured = deaf.world.try_capture("1", None, &Silent).expect("captured");
    assert!(captured.phases.iter().any(|(phase, _)| *phase == CapturePhase::Prove));
    assert_eq!(look(&deaf.world.source), look(&deaf.world.payload("1")));
    deaf.world.check_manifest("1", &captured);
}

#[test]
fn a_program_that_is_missing_is_named_with_what_to_do() {
    let Some(mut deaf) = Deaf::new(Metadata::Sqlite) else { return };
    deaf.world.write("file", "x");
    deaf.world.options.juicefs_program = Some("/nowhere/juicefs".into());
    let error = deaf.world.try_capture("1", None, &Silent).expect_err("nobody clones");
    assert_eq!(error.code(), Code::PartialSnapshot);
    let said = error.to_string();
    assert!(said.contains("there is no /nowhere/juicefs"), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    assert_eq!(error.next(), Some(Next::InstallClonerOrCopy));
}

#[test]
fn a_program_that_fails_is_quoted_and_not_at_length() {
    let Some(mut deaf) = Deaf::new(Metadata::Sqlite) else { return };
    deaf.world.write("file", "x");
    deaf.program("yes noise | head -c 3000000 >&2; echo the reason >&2; exit 3");
    let error = deaf.world.try_capture("1", None, &Silent).expect_err("it fails");
    let said = error.to_string();
    assert!(said.contains("exit status: 3: ") && said.contains("the reason"), "{said}");
    assert!(said.len() < 2000, "{} bytes", said.len());
}

/// Goes on until the program has told who it is.
struct UntilItRuns(PathBuf);

impl Progress for UntilItRuns {
    fn keep_going(&self) -> bool {
        !fs_err::read_to_string(&self.0).is_ok_and(|pids| pids.ends_with('\n'))
    }
}

fn runs(pid: &str) -> bool {
    let status = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !matches!(status.rsplit(") ").next().and_then(|rest| rest.chars().next()), None | Some('Z'))
}

#[test]
fn a_program_that_hangs_is_ended_with_all_that_it_started() {
    let Some(mut deaf) = Deaf::new(Metadata::Sqlite) else { return };
    deaf.world.write("file", "x");
    let pids = deaf.place.path().join("pids");
    deaf.program(&format!(
        "mkdir \"$4\"; touch \"$4/half\"; sleep 600 & echo $$ $! > '{}'; wait",
        pids.display()
    ));
    let error = deaf.world.try_capture("1", None, &UntilItRuns(pids.clone())).expect_err("told");
    assert!(matches!(error, CaptureError::Stopped), "{error}");
    let pids = fs_err::read_to_string(pids).expect("it ran");
    for pid in pids.split_whitespace() {
        eventually("it is gone", DEADLINE, || !runs(pid));
    }
}
