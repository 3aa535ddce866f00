//! Single paths come back on every filesystem, whatever their names are, through
//! whichever engine works there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::Engine;
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_repo::layout;

use crate::places::Place;
use crate::user::User;

/// Names that no text has, that break a line, that are as long as they can be, and
/// that the repository itself uses.
fn odd_names() -> Vec<Vec<u8>> {
    let own = layout::control_dir().as_str().as_bytes().to_vec();
    vec![b"\xff\xfe".to_vec(), b"two\nlines\\".to_vec(), vec![b'x'; 255], own, b"-n".to_vec()]
}

fn single_paths(place: Option<Place>) {
    let Some(place) = place else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    for n in 0..40 {
        user.write(&format!("others/{n}"), "of no interest");
    }
    let main = user.main();
    let odd: Vec<PathBuf> =
        odd_names().iter().map(|name| main.join("odd").join(OsStr::from_bytes(name))).collect();
    for dir in &odd {
        fs_err::create_dir_all(dir).expect("a directory");
        fs_err::write(dir.join("file"), "old").expect("a file");
    }
    user.write("dir/one", "linked");
    fs_err::hard_link(main.join("dir/one"), main.join("dir/two")).expect("a link");
    fs_err::os::unix::fs::symlink("one", main.join("dir/symlink")).expect("a symlink");
    let fifo = std::process::Command::new("mkfifo").arg(main.join("dir/fifo")).status();
    assert!(fifo.expect("mkfifo runs").success());
    user.write("file", "old");
    let old = user.snapshot();

    for dir in &odd {
        fs_err::write(dir.join("file"), "new").expect("a file");
    }
    fs_err::remove_dir_all(main.join("dir")).expect("removed");
    user.write("dir", "a file");
    user.write("file", "new");
    user.write("others/1", "newer");
    let restore = user.command(&format!("restore {old} --in-place --reason test --json -- dir"));
    let restore = odd.iter().fold(restore.arg("file"), |restore, path| restore.arg(path));
    let data = restore.run().ok().json()["data"].clone();
    assert_eq!(data["left"], serde_json::Value::Null);
    assert_eq!(data["paths"].as_array().expect("a list").len(), odd.len() + 2);
    for dir in &odd {
        let text = fs_err::read_to_string(dir.join("file")).expect("there");
        assert_eq!(text, "old", "{}", dir.display());
    }
    assert_eq!((user.read("file"), user.read("others/1")), ("old".into(), "newer".into()));
    let stat = |name: &str| fs_err::symlink_metadata(main.join(name)).expect("there");
    assert_eq!(stat("dir/one").ino(), stat("dir/two").ino(), "one file with two names");
    assert!(stat("dir/symlink").is_symlink());
    assert_eq!(stat("dir/fifo").mode() & 0o170_000, 0o010_000);
    assert_eq!(user.names(&layout::staging()), [""; 0]);
    assert_eq!(user.data("verify --all")["tamper_detected"], false);
    // What was replaced is a snapshot: all of it, and all that was not replaced.
    assert_eq!(user.read_in(data["kept"].as_str().expect("kept"), "file"), "new");
}

#[test]
fn single_paths_of_any_name_come_back_on_ext4() {
    single_paths(Place::on(Kind::Ext4));
}

#[test]
fn single_paths_of_any_name_come_back_on_xfs() {
    single_paths(Place::on(Kind::Xfs));
}

#[test]
fn single_paths_of_any_name_come_back_on_btrfs() {
    single_paths(Place::on(Kind::Btrfs));
}

#[test]
fn single_paths_of_any_name_come_back_on_juicefs_with_sqlite() {
    single_paths(Place::on_juicefs(Engine::Sqlite));
}

#[test]
fn single_paths_of_any_name_come_back_on_juicefs_with_redis() {
    single_paths(Place::on_juicefs(Engine::Redis));
}

#[test]
fn a_mount_point_in_the_worktree_is_not_swapped_away() {
    let Some(small) = SmallFs::tmpfs(1 << 20) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    user.write("point/file", "old");
    let old = user.snapshot();
    let point = user.main().join("point");
    fs_err::write(small.path().join("file"), "mounted").expect("a file");
    let mounted = Bound::over(small.path(), point);
    for path in ["point", "point/file"] {
        let refused = user.jvs(&format!("restore {old} --in-place --reason test {path}"));
        let told = refused.exits(13).stderr().to_owned();
        let wanted = "error[E_PATH_ESCAPE]: point is a mount point: unmount it first";
        assert!(told.contains(wanted), "{told}");
    }
    assert_eq!(user.read("point/file"), "mounted");
    drop(mounted);
    assert_eq!(user.read("point/file"), "old");
    assert_eq!(user.names(&layout::staging()), [""; 0]);
}

/// One directory mounted over another, for as long as this lives.
struct Bound(PathBuf);

impl Bound {
    fn over(from: &std::path::Path, to: PathBuf) -> Self {
        rustix::mount::mount_bind(from, &to).expect("mounted");
        Bound(to)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let detach = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(&self.0, detach);
    }
}

/// What is known of a snapshot is read as often as it is asked for, and not twice.
#[test]
fn a_restore_in_place_reads_each_manifest_once_for_each_comparison() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    user.write("a", "one");
    user.write("b", "same");
    let old = user.snapshot();
    user.write("a", "two");
    let new = user.snapshot();
    let log = dir.path().join("calls");
    let log = log.to_str().expect("plain");
    let under = ["strace", "-f", "-o", log, "-e", "trace=openat2"];
    let restore = format!("restore {old} --in-place --reason test");
    user.command(&restore).under(under).run().ok();
    assert_eq!(user.read("a"), "one");
    let text = fs_err::read_to_string(log).expect("a record");
    let reads = |id: &str| text.matches(&format!("snapshots/{id}/manifest\"")).count();
    // What differs; the copy beside it, by names and by links. Whether the files have been
    // captured, before they are replaced and again before they are removed; and of the head,
    // whether it has what is there now, or that is kept beside the line.
    assert_eq!((reads(&old), reads(&new)), (3, 3));
}
