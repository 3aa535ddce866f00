//! What a snapshot believes of files, through the command: stores that leave no trace,
//! filesystems that cannot be synced, and no thread to spare.

use std::path::Path;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::SmallFs;
use jvs_kit::live::writer::{Way, Writer};

use super::user::User;

/// On tmpfs nothing but its content tells that a mapped file was stored into.
#[test]
fn what_was_stored_without_a_trace_is_seen_and_survives_a_restore() {
    let Some(small) = SmallFs::tmpfs(64 << 20) else { return };
    let user = User::with_new_repository(&small.path().join("r"));
    user.write("array", "0000");
    user.write("other", "keep");
    let old = user.snapshot();
    let path = user.main().join("array");
    let Some(mut writer) = Writer::open(&path, Way::Mapped) else { return };
    writer.overwrite(b'A');
    let saved = user.snapshot();
    writer.overwrite(b'B');
    assert_eq!(user.data("status")["clean"], false);
    assert_eq!(user.data("status --full")["full"], true);
    let read = user.data("verify --files");
    assert_eq!((&read["clean"], &read["changed"]), (&false.into(), &1.into()));
    let restored = user.data(&format!("restore {old} --in-place --reason test"));
    let kept = restored["kept"].as_str().expect("what was there").to_owned();
    assert_ne!(kept, saved);
    assert_eq!((user.read("array"), user.read_in(&kept, "array")), ("0000".into(), "BBBB".into()));
    let same = user.data(&format!("verify --files {old}"));
    assert_eq!((&same["clean"], &same["unnoticed"]), (&true.into(), &serde_json::json!([])));
}

/// What was written a moment ago, and is in no metadata yet.
#[test]
fn what_a_mount_has_not_handed_in_is_seen_by_whoever_asks() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let user = User::with_new_repository(&volume.host(0).join("r"));
    user.write("data", "OOOO");
    user.snapshot();
    for (way, byte) in [(Way::Written, b'N'), (Way::Mapped, b'M')] {
        let Some(mut writer) = Writer::open(&user.main().join("data"), way) else { return };
        writer.overwrite(byte);
        assert_eq!(user.data("status")["clean"], false, "{way:?}");
        let id = user.snapshot();
        assert_eq!(user.read_in(&id, "data").as_bytes(), [byte; 4], "{way:?}");
        assert_eq!(user.data("status")["clean"], true, "{way:?}");
    }
}

#[test]
fn verifying_files_says_what_it_read_and_takes_one_snapshot() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    user.write("a", "one");
    let id = user.snapshot();
    let said = user.jvs("verify --files").ok();
    assert_eq!(said.stdout(), format!("Read all files of main: every byte is as in {id}\n"));
    user.write("a", "two");
    user.write("b", "new");
    let said = user.jvs("verify --files").ok();
    let last = said.stdout().lines().last().expect("a line").to_owned();
    let expected = "2 paths: 1 added, 0 removed, 1 changed";
    assert_eq!(last, format!("Read all files of main: {expected} since {id}"));
    user.jvs("verify --files @ @").exits(64);
    user.jvs("verify --files --all").exits(64);
}

/// A mount that cannot be synced: nobody knows what is waiting to be written.
#[test]
fn where_nothing_can_be_synced_quiesced_is_refused_and_best_effort_says_so() {
    if !granted(&[Capability::Program("strace")]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    user.write("a", "one");
    let trace = dir.path().join("trace");
    for errno in ["ENOSYS", "EIO"] {
        let unsynced = |words: &str| {
            let inject = format!("inject=syncfs:error={errno}:when=1");
            let trace = trace.to_str().expect("a plain path");
            let strace = ["strace", "-f", "-qq", "-o", trace, "-e", "trace=syncfs", "-e", &inject];
            user.command(words).under(strace).run()
        };
        let refused = unsynced("snapshot --json").exits(8);
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "E_CONSISTENCY_UNAVAILABLE", "{refused}");
        assert!(error["hint"].as_str().expect("a hint").contains("best_effort"), "{refused}");
        assert_eq!(user.snapshot_dirs().len(), usize::from(errno == "EIO"), "{refused}");
        let taken = unsynced("snapshot --consistency best_effort --json");
        let taken = taken.ok().json();
        let risk = taken["data"]["risk"].as_str().expect("a label").to_owned();
        assert!(risk.contains("syncfs failed"), "{risk}");
    }
}

/// Somebody who may have one process, which may have no second thread.
#[test]
fn without_a_thread_to_spare_everything_is_done_by_the_one_there_is() {
    const SOMEBODY: u32 = 23_456;
    let wanted = [Capability::Root, Capability::Program("setpriv"), Capability::Program("prlimit")];
    if !granted(&wanted) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("r");
    let user = User::of(&root);
    give_away(dir.path(), SOMEBODY);
    give_away(user.home.home_dir().parent().expect("a directory"), SOMEBODY);
    let alone = |words: &str| {
        let (uid, gid) = (format!("--reuid={SOMEBODY}"), format!("--regid={SOMEBODY}"));
        let under = ["setpriv", &uid, &gid, "--clear-groups", "prlimit", "--nproc=1"];
        let mut command = user.home.jvs(words.split(' ')).under(under);
        if root.join("main").exists() {
            command = command.cwd(root.join("main"));
        }
        command.run().ok()
    };
    alone(&format!("init {}", root.display()));
    fs_err::write(root.join("main/a"), "one").expect("a file");
    fs_err::write(root.join("main/b"), vec![7; 3 << 20]).expect("a file");
    give_away(&root.join("main"), SOMEBODY);
    let first = alone("snapshot --json").json();
    let first = first["data"]["snapshot_id"].as_str().expect("an id").to_owned();
    fs_err::write(root.join("main/a"), "two").expect("a file");
    let status = alone("status --json").json();
    assert_eq!(status["data"]["changed"], 1, "{status}");
    alone("snapshot");
    alone("verify --all");
    alone(&format!("restore {first} --in-place --reason test"));
    assert_eq!(fs_err::read_to_string(root.join("main/a")).expect("a file"), "one");
    alone("doctor --strict");
}

fn give_away(path: &Path, to: u32) {
    fs_err::os::unix::fs::chown(path, Some(to), Some(to)).expect("given away");
    if path.is_dir() {
        for entry in fs_err::read_dir(path).expect("a directory") {
            give_away(&entry.expect("listed").path(), to);
        }
    }
}
