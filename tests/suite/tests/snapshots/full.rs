//! A volume without a free block can be locked, unlocked and collected.

use std::io::Write as _;
use std::path::Path;

use fs_err::File;
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_repo::layout;

use crate::user::User;

/// Writes until nothing more can be written.
fn fill_with_bytes(path: &Path) {
    let mut file = File::options().create(true).append(true).open(path).expect("a file");
    for size in [1 << 20, 1 << 16, 1 << 12, 1 << 10, 1] {
        let piece = vec![7; size];
        while file.write_all(&piece).and_then(|()| file.sync_data()).is_ok() {}
    }
}

/// The same where length is what counts.
fn fill_with_length(path: &Path) {
    let file = File::options().create(true).append(true).open(path).expect("a file");
    let mut length = file.metadata().expect("looked").len();
    for step in [1 << 28, 1 << 24, 1 << 20, 1 << 16, 1 << 12] {
        while file.set_len(length + step).and_then(|()| file.sync_all()).is_ok() {
            length += step;
        }
    }
}

fn full(dir: &Path, fill: impl Fn(&Path)) {
    let user = User::with_new_repository(&dir.join("r"));
    for n in 0..6 {
        user.write("file", &n.to_string().repeat(100_000));
        user.snapshot();
    }
    let history = user.history();
    let ballast = dir.join("ballast");

    fill(&ballast);
    for _ in 0..3 {
        user.jvs("lock acquire --no-keeper --lease 60s").ok();
        user.jvs("lock renew").ok();
        user.jvs("lock release").ok();
    }
    fill(&ballast);
    let removed = user.data("gc --keep-last 4 --keep-within 0s");
    assert_eq!(removed["removed"].as_array().map(Vec::len), Some(2), "{removed}");
    assert_eq!(user.history(), history[..4]);

    // Not even the room that is kept for that day.
    user.jvs("lock acquire --no-keeper --lease 60s").ok();
    let _ = fs_err::remove_file(user.root.join(layout::room().as_str()));
    fill(&ballast);
    // Until there is no place for a line in what the log has already.
    for _ in 0..12 {
        user.jvs("lock renew").ok();
    }
    let released = user.jvs("lock release --json").ok();
    let untold = released.json()["warnings"].to_string().contains("the volume is full");
    eprintln!("the release was {}", if untold { "untold" } else { "told" });
    assert_eq!(user.data("lock status")["state"], "free");
    let removed = user.jvs("gc --keep-last 1 --keep-within 0s --json").ok();
    let late = removed.json()["warnings"].to_string().contains("only afterwards");
    assert_eq!(removed.json()["data"]["removed"].as_array().map(Vec::len), Some(3), "{removed}");
    eprintln!("the audit log was told {}", if late { "afterwards" } else { "before" });
    assert_eq!(user.history(), history[..1]);

    fs_err::remove_file(&ballast).expect("removed");
    user.jvs("snapshot").ok();
    assert_eq!(user.history()[1..], history[..1]);
    user.jvs("audit --verify").ok();
    user.jvs("doctor --strict").ok();
    let room = user.root.join(layout::room().as_str());
    user.jvs("gc").ok();
    assert!(fs_err::metadata(room).is_ok_and(|room| room.len() > 0), "room is kept again");
}

#[test]
fn an_ext4_without_a_free_block_is_locked_unlocked_and_collected() {
    let Some(fs) = SmallFs::on_loop_of(Kind::Ext4, 24 << 20) else { return };
    full(fs.path(), fill_with_bytes);
}

#[test]
fn a_full_juicefs_volume_is_locked_unlocked_and_collected() {
    let Some(mut volume) = Volume::format(Engine::Sqlite) else { return };
    volume.limit_room(1);
    full(&volume.mount(&[]), fill_with_length);
}
