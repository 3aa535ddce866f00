//! A process that is killed at any moment leaves the old history or the old and
//! exactly its own snapshot; whatever is left is cleaned up by the next `gc`.

use std::time::Duration;

use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::DEADLINE;
use jvs_repo::layout;
use rustix::process::Signal;

use crate::user::User;

/// Kills `words` after more and more time, until it ends by itself. Each time
/// `change` is made before, and `check` holds after.
fn killed_ever_later(
    user: &User,
    words: &str,
    step: Duration,
    most: u32,
    mut change: impl FnMut(u32),
    mut check: impl FnMut(u32),
) {
    for n in 0..most {
        change(n);
        let mut running = user.home.jvs(words.split(' ')).cwd(user.main()).start();
        let ended = running.ends_within(step * n);
        if !ended {
            running.signal(Signal::KILL);
            assert!(running.ends_within(DEADLINE), "a killed process ends");
        }
        // An operator need not wait for the dead one's lease to expire, and
        // fences whatever it had begun.
        user.jvs("lock freeze --for 1m --force --reason test").ok();
        user.jvs("lock unfreeze --reason test").ok();
        check(n);
        if ended {
            return;
        }
    }
}

fn snapshots_killed_at_any_moment(user: &User, step: Duration, most: u32) {
    for n in 0..60 {
        user.write(&format!("d{}/f{n}", n % 7), &format!("text {n}"));
    }
    let mut known = vec![user.snapshot()];
    killed_ever_later(
        user,
        "snapshot",
        step,
        most,
        |n| user.write("changing", &n.to_string()),
        |n| {
            // A committed snapshot that nobody had shown is shown by the next.
            let seen = user.history();
            let after = user.snapshot();
            let now = user.history();
            assert_eq!(now[0], after, "kill {n}");
            let added = now.len() - known.len();
            assert!((1..=2).contains(&added) && now[added..] == known, "{known:?} -> {now:?}");
            assert!(now[1..].ends_with(&seen[seen.len().saturating_sub(known.len())..]));
            known = now;
        },
    );
    assert_eq!(user.data("verify --all")["tamper_detected"], false, "READY means verifiable");
    user.data("gc");
    assert_eq!(user.names(&layout::staging()), [""; 0], "garbage was told from work");
    assert_eq!(user.names(&layout::snapshots()).len(), known.len());
    assert_eq!(user.history(), known, "and nothing visible was lost");
    assert!(user.data("audit --verify")["verified"] == true);
}

#[test]
fn a_snapshot_killed_at_any_moment_is_visible_and_whole_or_garbage() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    snapshots_killed_at_any_moment(&user, Duration::from_micros(1_500), 30);
}

#[test]
fn a_snapshot_killed_at_any_moment_on_juicefs_is_visible_and_whole_or_garbage() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let user = User::with_new_repository(&volume.host(0).join("r"));
    snapshots_killed_at_any_moment(&user, Duration::from_millis(6), 12);
}

#[test]
fn a_restore_in_place_killed_at_any_moment_leaves_all_old_or_all_new_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    let fill = |text: &str| {
        for n in 0..40 {
            user.write(&format!("f{n}"), text);
        }
    };
    fill("old");
    let old = user.snapshot();
    killed_ever_later(
        &user,
        &format!("restore {old} --in-place --reason test"),
        Duration::from_millis(2),
        25,
        |n| fill(&format!("new {n}")),
        |n| {
            let first = user.read("f0");
            assert!(first == "old" || first == format!("new {n}"), "{first}");
            for file in 1..40 {
                assert_eq!(user.read(&format!("f{file}")), first, "kill {n}: a mixture");
            }
        },
    );
    assert_eq!(user.data("verify --all")["tamper_detected"], false);
    user.data("gc");
    assert_eq!(user.names(&layout::staging()), [""; 0]);
}

#[test]
fn a_collection_killed_at_any_moment_loses_nothing_that_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    for n in 0..30 {
        user.write("a", &n.to_string());
        user.snapshot();
    }
    user.data("tag @------- kept");
    let words = "gc --keep-last 3 --keep-within 0s";
    let plan = user.data(&format!("{words} --dry-run"));
    let kept = plan["keep"].as_array().expect("a list").clone();
    assert_eq!(kept.len(), 4, "{plan}");
    killed_ever_later(
        &user,
        words,
        Duration::from_millis(3),
        20,
        |_| {},
        |n| {
            let seen = user.history();
            for snapshot in &kept {
                let id = snapshot["snapshot_id"].as_str().expect("an id");
                assert!(seen.iter().any(|seen| seen == id), "kill {n}: {id} is gone");
            }
        },
    );
    user.data(words);
    assert_eq!(user.history().len(), kept.len());
    assert_eq!(user.data("verify --all")["tamper_detected"], false);
    assert_eq!(user.names(&layout::staging()), [""; 0]);
}
