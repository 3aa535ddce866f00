//! A JuiceFS mount that does not show this user its options may be one that
//! acknowledges what it has not uploaded.

use std::path::Path;

use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::mount::Covered;
use jvs_repo::layout;

use crate::user::User;

/// Something of no use in place of a file that a mount has at its root.
fn hide(mount: &Path, name: &str, nothing: &tempfile::NamedTempFile) -> Covered {
    Covered::with(&mount.join(name), nothing.path())
}

fn nothing() -> tempfile::NamedTempFile {
    tempfile::NamedTempFile::new().expect("an empty file")
}

/// What the mount counts as not uploaded.
fn not_uploaded(mount: &Path) -> u64 {
    let stats = fs_err::read_to_string(mount.join(".stats")).expect("statistics");
    let count = stats.lines().find_map(|line| line.strip_prefix("juicefs_staging_blocks "));
    count.and_then(|count| count.parse().ok()).expect("a number")
}

/// What is in the object store, where another host would read it.
fn objects(dir: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(dir).expect("the objects") {
        let path = entry.expect("an object").path();
        if path.is_dir() {
            found.extend(objects(&path));
        } else {
            found.push(fs_err::read(path).expect("an object"));
        }
    }
    found
}

#[test]
fn a_mount_that_hides_its_options_is_waited_for_as_if_it_uploaded_later() {
    let Some(mut volume) = Volume::format(Engine::Sqlite) else { return };
    let mount = volume.mount(&["--writeback", "--upload-delay", "3s"]);
    let nothing = nothing();
    let _hidden = hide(&mount, ".config", &nothing);
    let user = User::with_new_repository(&mount.join("r"));
    user.write("a", &"x".repeat(200_000));
    assert!(not_uploaded(&mount) > 0, "or there would be nothing to wait for");
    let id = user.snapshot();
    let uploaded = objects(&volume.objects());
    let snapshot = user.root.join(layout::snapshots().as_str()).join(id);
    let payload = fs_err::read(snapshot.join("payload/a")).expect("the payload");
    assert!(uploaded.contains(&payload));
    // What describes it is needed elsewhere as much as what it describes.
    for entry in fs_err::read_dir(&snapshot).expect("the snapshot") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let bytes = fs_err::read(&path).expect("a file");
            assert!(bytes.is_empty() || uploaded.contains(&bytes), "{}", path.display());
        }
    }
}

#[test]
fn a_mount_that_hides_its_options_and_its_counters_takes_no_snapshot() {
    let Some(volume) = Volume::mounted(Engine::Sqlite, 1) else { return };
    let mount = volume.host(0);
    let nothing = nothing();
    let user = User::with_new_repository(&mount.join("r"));
    user.write("a", "text");
    let options = hide(mount, ".config", &nothing);
    user.snapshot();
    let counters = hide(mount, ".stats", &nothing);
    user.write("a", "text, and more");
    let outcome = user.jvs("snapshot --json");
    let error = &outcome.json()["error"];
    assert_eq!(error["code"], "E_UNSAFE_FILESYSTEM", "{outcome}");
    let message = error["message"].as_str().expect("a sentence");
    assert!(message.contains("neither whether it uses --writeback"), "{outcome}");
    let hint = error["hint"].as_str().expect("what to do");
    assert!(hint.contains(".stats"), "{outcome}");
    assert_eq!(user.history().len(), 1, "nothing is published");
    assert_eq!(user.names(&layout::staging()), [""; 0], "nothing is left");
    drop(options);
    user.snapshot();
    drop(counters);
}
