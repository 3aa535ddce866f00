//! A process that dies at any of its calls leaves the old history or the old and
//! exactly its own snapshot, all old files or all new ones, and nothing that is
//! kept is lost; whatever else is left is known to be garbage, by `gc` and by
//! `doctor`, and goes.

use jvs_kit::live::calls;
use jvs_kit::live::juicefs::Engine;
use jvs_kit::live::loopfs::Kind;
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::term::Term;
use jvs_snapshot::staging_name::{SnapshotBound, StagingName};

use crate::places::Place;
use crate::strikes::{Extent, dead_at_each_call};
use crate::user::User;

/// Keeps few, so that a long sweep stays quick.
const GC: &str = "gc --keep-last 2 --keep-within 0s";

/// An operator need not wait for the dead one's lease to expire, and fences
/// whatever it had begun. The session goes on once it has said that it knows.
pub(crate) fn fence(user: &User) {
    user.jvs("lock freeze --for 1m --force --reason test").ok();
    user.jvs("lock unfreeze --reason test").ok();
    user.says_it_knows();
}

/// Whatever the dead one left is told from work by either of the two who may
/// remove it; what is visible stays.
pub(crate) fn nothing_is_left(user: &User, n: usize, what: &str) {
    let visible = user.committed();
    let head = user.state().head.map(|head| head.to_string());
    // Committed, but not shown yet: nobody's garbage, and anybody may show it.
    let hidden: Vec<String> = head.into_iter().filter(|head| !visible.contains(head)).collect();
    if n.is_multiple_of(2) {
        user.jvs("gc --keep-last 1000").ok();
    } else {
        user.jvs("doctor --strict --repair").ok();
    }
    // Snapshots have all that a restore replaced, so nothing is set aside.
    let quarantine = user.root.join(layout::quarantine().as_str());
    let aside = fs_err::read_dir(quarantine).map_or(0, Iterator::count);
    assert_eq!(aside, 0, "{what}");
    assert_eq!(user.names(&layout::staging()), [""; 0], "{what}");
    assert_eq!(user.snapshot_dirs().len(), visible.len() + hidden.len(), "{what}");
    let with_head = [&hidden[..], &visible[..]].concat();
    let now = user.committed();
    assert!(now == visible || now == with_head, "{what}: {visible:?} became {now:?}");
    assert_eq!(user.data("verify --all")["tamper_detected"], false, "{what}");
}

fn snapshots(place: Option<Place>, extent: Extent) {
    let Some(place) = place.filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    for n in 0..6 {
        user.write(&format!("same/{n}"), "unchanged");
    }
    let mut known: Vec<String> = Vec::new();
    dead_at_each_call(
        &user,
        "snapshot",
        extent,
        |n| {
            for file in 0..6 {
                user.write(&format!("changing/{file}"), &n.to_string());
            }
            user.note("changing/0", &n.to_string());
        },
        |n, what| {
            fence(&user);
            nothing_is_left(&user, n, what);
            let seen = user.history();
            // A committed snapshot that nobody had shown is shown by the next.
            let after = user.snapshot();
            let now = user.history();
            let added = now.len() - known.len();
            assert_eq!(now[0], after, "{what}");
            assert!(
                (1..=2).contains(&added) && now[added..] == known,
                "{what}: {known:?}, {now:?}"
            );
            assert!(now[1..].ends_with(&seen), "{what}: {seen:?} were visible");
            let files = (now.iter().take(added)).map(|id| user.read_in(id, "changing/5"));
            assert!(files.into_iter().all(|text| text == n.to_string()), "{what}");
            user.jvs(GC).ok();
            known = now[..2.min(now.len())].to_vec();
        },
    );
    assert_eq!(user.data("verify --all")["tamper_detected"], false);
    assert_eq!(user.data("audit --verify")["verified"], true);
}

/// The files that a restore replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    /// In no snapshot: one is taken first, by a thread of its own.
    Unsaved,
    /// In the head: the restore is all that there is to aim at.
    Saved,
}

const PATH_BY_PATH: &str = "restore old --in-place --reason test";
const ATOMIC: &str = "restore old --in-place --reason test --atomic";
/// Whatever else there is, what differs is one of them.
const OF_PATHS: &str = "restore old --in-place --reason test d0 d1/f1 d1/f3 d1/f5 d1/f7 same";

fn restores(place: Option<Place>, extent: Extent, replaced: Files) {
    restores_by(PATH_BY_PATH, place, extent, replaced);
}

fn restores_by(words: &str, place: Option<Place>, extent: Extent, replaced: Files) {
    let Some(place) = place.filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    // Many more than what they replace, so that most calls can be aimed at.
    let files: Vec<String> = (0..9).map(|n| format!("d{}/f{n}", n % 2)).collect();
    let few = &files[..3];
    files.iter().for_each(|file| user.write(file, "old"));
    user.write("same", "in both");
    let old = user.snapshot();
    user.data("tag @ old");
    let (mut seen_old, mut seen_new) = (0, 0);
    dead_at_each_call(
        &user,
        words,
        extent,
        |n| {
            files.iter().for_each(|file| user.remove(file));
            few.iter().for_each(|file| user.write(file, &format!("new {n}")));
            if replaced == Files::Saved {
                user.snapshot();
            }
        },
        |n, what| {
            fence(&user);
            nothing_is_left(&user, n, what);
            let visible = user.committed();
            assert!(visible.contains(&old), "{what}: {visible:?}");
            let texts: Vec<String> = files.iter().filter_map(|file| user.find(file)).collect();
            let new = format!("new {n}");
            if texts == ["old"; 9] {
                // What was replaced is a snapshot, and stays one.
                let kept = few.iter().map(|file| user.read_in(&visible[0], file));
                assert!(kept.into_iter().all(|text| text == new), "{what}: lost");
                seen_old += 1;
            } else {
                assert_eq!(texts, vec![new; few.len()], "{what}: a mixture");
                seen_new += 1;
            }
            if n.is_multiple_of(8) {
                user.jvs(GC).ok();
            }
        },
    );
    assert!(seen_old > 1 && seen_new > 1, "deaths before and after the exchange");
    assert_eq!(user.data("audit --verify")["verified"], true);
}

fn collections(place: Option<Place>, extent: Extent) {
    let Some(place) = place.filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    user.write("dir/a", "tagged");
    let tagged = user.snapshot();
    user.data("tag @ kept");
    let mut kept = Vec::new();
    let expected = std::cell::RefCell::new(Vec::new());
    dead_at_each_call(
        &user,
        GC,
        extent,
        |n| {
            for more in ["one", "two"] {
                user.write("dir/a", &format!("{n} {more}"));
                user.snapshot();
            }
            let mut newest = user.history();
            newest.truncate(2);
            newest.push(tagged.clone());
            *expected.borrow_mut() = newest;
            leave_a_dead_draft(&user);
        },
        |n, what| {
            kept.clone_from(&expected.borrow());
            let seen = user.history();
            assert!(kept.iter().all(|id| seen.contains(id)), "{what}: {kept:?}, {seen:?}");
            assert_eq!(user.data("verify --all")["tamper_detected"], false, "{what}");
            if n.is_multiple_of(2) {
                // Doctor ends what was begun, and collects nothing itself.
                user.jvs("doctor --strict --repair").ok();
                assert_eq!(user.names(&layout::staging()), [""; 0], "{what}");
                assert_eq!(user.history(), seen, "{what}");
            }
            user.jvs(GC).ok();
            assert_eq!(user.history(), kept, "{what}");
            assert_eq!(user.names(&layout::staging()), [""; 0], "{what}");
            assert_eq!(user.snapshot_dirs().len(), kept.len(), "{what}");
        },
    );
    assert_eq!(user.data("audit --verify")["verified"], true);
}

/// A snapshot that was begun under a token that is over.
fn leave_a_dead_draft(user: &User) {
    let state = user.state();
    let bound = SnapshotBound {
        worktree: WorktreeName::main(),
        term: Term { token: FencingToken(state.token.0 - 1), ..state.term() },
        parent: state.head,
        generation: state.generation,
        id: SnapshotId { created_ms: 1_700_000_000_000, random: 7 },
    };
    let dir = user.root.join(StagingName::Snapshot(bound).path().as_str());
    fs_err::create_dir_all(dir.join("payload")).expect("made");
    fs_err::write(dir.join("payload/a"), "never finished").expect("written");
}

#[test]
fn a_snapshot_dead_at_any_call_on_ext4_is_visible_and_whole_or_garbage() {
    snapshots(Place::on(Kind::Ext4), Extent::All);
}

#[test]
fn a_snapshot_dead_at_any_call_on_xfs_is_visible_and_whole_or_garbage() {
    snapshots(Place::on(Kind::Xfs), Extent::Spread);
}

#[test]
fn a_snapshot_dead_at_any_call_on_btrfs_is_visible_and_whole_or_garbage() {
    snapshots(Place::on(Kind::Btrfs), Extent::Spread);
}

#[test]
fn a_snapshot_dead_at_any_call_on_juicefs_with_sqlite_is_visible_and_whole_or_garbage() {
    snapshots(Place::on_juicefs(Engine::Sqlite), Extent::Spread);
}

#[test]
fn a_snapshot_dead_at_any_call_on_juicefs_with_redis_is_visible_and_whole_or_garbage() {
    snapshots(Place::on_juicefs(Engine::Redis), Extent::Spread);
}

#[test]
fn a_restore_in_place_dead_at_any_call_on_ext4_leaves_all_old_or_all_new_files() {
    restores(Place::on(Kind::Ext4), Extent::All, Files::Unsaved);
}

#[test]
fn a_restore_in_place_dead_at_any_call_on_xfs_leaves_all_old_or_all_new_files() {
    restores(Place::on(Kind::Xfs), Extent::Spread, Files::Unsaved);
}

#[test]
fn a_restore_in_place_dead_at_any_call_on_btrfs_leaves_all_old_or_all_new_files() {
    restores(Place::on(Kind::Btrfs), Extent::Spread, Files::Unsaved);
}

#[test]
fn a_restore_in_place_dead_at_any_call_on_juicefs_with_sqlite_leaves_all_old_or_all_new_files() {
    restores(Place::on_juicefs(Engine::Sqlite), Extent::Spread, Files::Unsaved);
}

#[test]
fn a_restore_in_place_dead_at_any_call_on_juicefs_with_redis_leaves_all_old_or_all_new_files() {
    restores(Place::on_juicefs(Engine::Redis), Extent::Spread, Files::Unsaved);
}

#[test]
fn a_restore_over_saved_files_dead_at_any_call_leaves_all_old_or_all_new_files() {
    restores(Place::on(Kind::Ext4), Extent::Spread, Files::Saved);
}

#[test]
fn an_atomic_restore_dead_at_any_call_leaves_all_old_or_all_new_files() {
    restores_by(ATOMIC, Place::on(Kind::Ext4), Extent::Spread, Files::Saved);
}

#[test]
fn a_restore_of_several_paths_dead_at_any_call_leaves_all_old_or_all_new_files() {
    restores_by(OF_PATHS, Place::on(Kind::Ext4), Extent::Spread, Files::Saved);
}

#[test]
fn an_interrupted_restore_is_told_by_status_and_finished_by_the_next_command() {
    let Some(place) = Place::on(Kind::Ext4).filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    let files = ["a", "b", "c"];
    files.iter().for_each(|file| user.write(file, "old"));
    user.snapshot();
    user.data("tag @ old");
    let change = |text: &str| {
        files.iter().for_each(|file| user.write(file, text));
        user.snapshot();
    };
    let command = user.command(PATH_BY_PATH);
    // The first run of a home makes what later ones find.
    for text in ["first", "recorded"] {
        change(text);
        calls::record(&command).outcome.ok();
    }
    change("third");
    let recorded = calls::record(&command);
    recorded.outcome.ok();
    let exchanges = recorded.calls.iter().filter(|call| call.arguments.contains("EXCHANGE"));
    let exchanges: Vec<_> = exchanges.collect();
    assert_eq!(exchanges.len(), 3, "one for each path");
    change("new");
    let struck = calls::strike(&command, exchanges[1], calls::Blow::ThenDies);
    assert!(struck.signal().is_some(), "{struck}");
    let texts = || files.map(|file| user.read(file));
    assert_eq!(texts(), ["old", "old", "new"], "some old and some new");

    let status = user.jvs("status --json").ok().json();
    assert_eq!(status["data"]["restoring"], true, "{status}");
    assert!(status["warnings"][0].as_str().is_some_and(|it| it.contains("finishes")), "{status}");
    user.jvs("gc --keep-last 1 --keep-within 0s").ok();
    assert_eq!(texts(), ["old", "old", "new"], "a collection leaves it alone");

    let told = user.jvs("snapshot --json").ok().json();
    let warned = told["warnings"].to_string();
    assert!(warned.contains("was interrupted, and is finished now"), "{told}");
    assert_eq!(texts(), ["old"; 3]);
    let taken = told["data"]["snapshot_id"].as_str().expect("an id").to_owned();
    assert_eq!(files.map(|file| user.read_in(&taken, file)), ["old"; 3]);
    assert_eq!(user.data("status")["restoring"], false);
    assert_eq!(user.names(&layout::staging()), [""; 0]);
    assert_eq!(user.data("audit --verify")["verified"], true);
}

#[test]
fn a_collection_dead_at_any_call_on_ext4_loses_nothing_that_is_kept() {
    collections(Place::on(Kind::Ext4), Extent::All);
}

#[test]
fn a_collection_dead_at_any_call_on_xfs_loses_nothing_that_is_kept() {
    collections(Place::on(Kind::Xfs), Extent::Spread);
}

#[test]
fn a_collection_dead_at_any_call_on_btrfs_loses_nothing_that_is_kept() {
    collections(Place::on(Kind::Btrfs), Extent::Spread);
}

#[test]
fn a_collection_dead_at_any_call_on_juicefs_with_sqlite_loses_nothing_that_is_kept() {
    collections(Place::on_juicefs(Engine::Sqlite), Extent::Spread);
}

#[test]
fn a_collection_dead_at_any_call_on_juicefs_with_redis_loses_nothing_that_is_kept() {
    collections(Place::on_juicefs(Engine::Redis), Extent::Spread);
}
