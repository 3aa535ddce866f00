//! Worktrees that real processes make, rename and restore into at once, and commands
//! that die at any of their calls: every "made" is whole, and nothing is lost.

use jvs_kit::live::calls;
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::loopfs::Kind;
use jvs_lock::{Hold, State};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::places::Place;
use crate::strikes::{Extent, dead_at_each_call, long};
use crate::user::User;

/// How often two race for a name, in each of three ways.
fn rounds() -> usize {
    if long() { 1_000 } else { 4 }
}

/// Record, files and a live register.
#[track_caller]
fn whole(user: &User, name: &str) -> State {
    let worktree: WorktreeName = name.parse().expect("a name");
    let record = user.root.join(layout::worktree_record(&worktree).as_str());
    assert!(record.is_file(), "{name} has no record");
    let payload = user.root.join(layout::payload(&worktree).as_str());
    assert!(payload.is_dir(), "{name} has no files");
    let entries = user.names(&layout::register(&worktree));
    assert_eq!(entries.len(), 1, "{name}: {entries:?}");
    let state: State = entries[0].parse().expect("a state");
    assert_ne!(state.hold, Hold::Retired, "{name}");
    state
}

/// Runs both at once; which of them was told that it succeeded.
fn at_once(a: (&User, &str), b: (&User, &str)) -> [bool; 2] {
    let run = |(user, words): (&User, &str)| {
        let outcome = user.jvs(words);
        assert!(outcome.signal().is_none(), "{words}: {}", outcome.stderr());
        outcome.code() == 0
    };
    std::thread::scope(|scope| {
        let a = scope.spawn(move || run(a));
        let b = run(b);
        [a.join().expect("no panic"), b]
    })
}

fn races(a: &User, b: &User) {
    a.write("file", "text");
    let snapshot = a.snapshot();
    let mut told = [0, 0, 0];
    for n in 0..rounds() {
        let create = format!("worktree create c{n}");
        let made = at_once((a, &create), (b, &create));
        assert_eq!(made.iter().filter(|made| **made).count(), 1, "create {n}: {made:?}");
        whole(a, &format!("c{n}"));
        told[0] += 1;

        a.jvs(&format!("worktree create o{n}")).ok();
        let old = a.root.join(format!("worktrees/o{n}/kept"));
        fs_err::write(&old, "precious").expect("written");
        let rename = format!("worktree rename o{n} x{n}");
        let [renamed, made] = at_once((a, &rename), (b, &format!("worktree create x{n}")));
        assert!(!(renamed && made), "{n}: two were told that they have x{n}");
        if renamed || made {
            whole(a, &format!("x{n}"));
            told[1] += 1;
        }
        let home = if renamed { format!("x{n}") } else { format!("o{n}") };
        whole(a, &home);
        let kept = a.root.join(format!("worktrees/{home}/kept"));
        assert_eq!(fs_err::read_to_string(kept).expect("not lost"), "precious", "{n}");

        let restore = format!("restore {snapshot} --into f{n}");
        let restored = at_once((a, &restore), (b, &restore));
        let count = restored.iter().filter(|told| **told).count();
        assert!(count <= 1, "restore {n}: {restored:?}");
        if count == 1 {
            let head = whole(a, &format!("f{n}")).head.map(|head| head.to_string());
            assert_eq!(head.as_deref(), Some(snapshot.as_str()), "{n}");
            let file = a.root.join(format!("worktrees/f{n}/file"));
            assert_eq!(fs_err::read_to_string(file).expect("there"), "text", "{n}");
            told[2] += 1;
        }
        // Few at a time, so that a thousand rounds stay quick.
        for name in ["c", "o", "x", "f"] {
            let _ = a.jvs(&format!("worktree remove {name}{n} --force"));
        }
    }
    eprintln!(
        "made {}, renamed or made {}, restored {} in {} rounds",
        told[0],
        told[1],
        told[2],
        rounds()
    );
    assert_eq!(a.data("doctor --strict")["healthy"], true);
    assert_eq!(a.data("audit --verify")["verified"], true);
    assert_eq!(a.history(), [snapshot]);
}

#[test]
fn every_made_of_racing_processes_is_whole() {
    let Some(place) = Place::on(Kind::Ext4) else { return };
    let a = User::with_new_repository(&place.dir.join("r"));
    let b = User::of(&place.dir.join("r")).session("other");
    races(&a, &b);
}

#[test]
fn every_made_of_processes_racing_on_two_mounts_is_whole() {
    let Some(volume) = Volume::mounted(Engine::Sqlite, 2) else { return };
    let a = User::with_new_repository(&volume.host(0).join("r"));
    let b = User::of(&volume.host(1).join("r")).session("other");
    races(&a, &b);
}

/// Into the name of a worktree that was removed an older snapshot is restored than that
/// had published last.
#[test]
fn a_name_that_is_used_again_costs_no_snapshot() {
    let Some(place) = Place::on(Kind::Ext4) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    user.jvs("worktree create w").ok();
    let taken = ["one", "two"].map(|text| {
        fs_err::write(user.root.join("worktrees/w/file"), text).expect("written");
        user.jvs(&format!("snapshot {text} -w w")).ok();
        user.jvs(&format!("tag @ {text} -w w")).ok();
        user.data(&format!("info {text}"))["snapshot_id"].clone()
    });
    user.jvs("worktree remove w --force").ok();
    user.jvs("restore one --into w").ok();
    assert_eq!(user.data("doctor --strict")["healthy"], true);
    user.jvs("doctor --repair").ok();
    for (name, id) in ["one", "two"].into_iter().zip(&taken) {
        assert_eq!(user.data(&format!("info {name}"))["snapshot_id"], *id);
        user.jvs(&format!("verify {name}")).ok();
    }
}

/// Whoever died before it wrote a word into its note left an empty file, of which nobody
/// can tell whose it is. It is told of, stops nobody, and is proven dead once somebody
/// has taken the name.
fn empty_notes_go_with_the_name(user: &User, what: &str) {
    let mut names = user.names(&layout::worktree_records());
    names.retain(|name| !name.ends_with(".json"));
    if names.is_empty() {
        return;
    }
    for name in &names {
        let path = user.root.join(layout::worktree_records().as_str()).join(name);
        assert_eq!(fs_err::read(path).expect("there"), b"", "{what}: {name}");
    }
    let told = user.jvs("doctor --strict");
    assert!(told.stdout().contains("D_TMP_UNPROVEN"), "{what}: {told}");
    user.jvs("worktree create new").ok();
    user.jvs("doctor --strict --repair").ok();
    user.jvs("worktree remove new --force").ok();
}

/// Whatever is left, doctor brings the worktree `old` back, or it is `new` by now,
/// with its file.
fn is_brought_back(user: &User, what: &str) {
    user.jvs("doctor --strict --repair").ok();
    let file = |name: &str| user.root.join("worktrees").join(name).join("kept");
    let home = ["old", "new"].into_iter().find(|name| file(name).exists());
    let home = home.unwrap_or_else(|| panic!("{what}: the file is lost"));
    whole(user, home);
    assert_eq!(user.names(&layout::staging()), [""; 0], "{what}");
    for name in ["old", "new"] {
        let _ = user.jvs(&format!("worktree remove {name} --force"));
    }
    empty_notes_go_with_the_name(user, what);
    assert_eq!(user.names(&layout::worktree_records()), ["main.json"], "{what}");
}

fn dies(words: &str) {
    let Some(place) = Place::on(Kind::Ext4).filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    dead_at_each_call(
        &user,
        words,
        Extent::Spread,
        |_| {
            user.jvs("worktree create old").ok();
            fs_err::write(user.root.join("worktrees/old/kept"), "text").expect("written");
        },
        |_, what| is_brought_back(&user, what),
    );
    assert_eq!(user.data("audit --verify")["verified"], true);
}

#[test]
fn a_worktree_command_dead_at_any_call_is_brought_back() {
    dies("worktree create new");
    dies("worktree rename old new");
}

#[test]
fn a_restore_into_a_new_worktree_dead_at_any_call_leaves_nothing() {
    let Some(place) = Place::on(Kind::Ext4).filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    for n in 0..8 {
        user.write(&format!("file{n}"), "text");
    }
    user.data("snapshot one --tag one");
    dead_at_each_call(
        &user,
        "restore one --into new",
        Extent::Spread,
        |_| {},
        |_, what| {
            user.jvs("doctor --strict --repair").ok();
            if user.names(&layout::worktree_records()).contains(&"new.json".to_owned()) {
                whole(&user, "new");
                let file = user.root.join("worktrees/new/file7");
                assert_eq!(fs_err::read_to_string(file).expect("restored"), "text", "{what}");
                user.jvs("worktree remove new --force").ok();
                // It was made: what is left of the copy is dead with the next token.
                user.jvs("doctor --strict").ok();
            }
            empty_notes_go_with_the_name(&user, what);
            assert_eq!(user.names(&layout::staging()), [""; 0], "{what}");
            // The name can be had, and its head keeps nothing from being collected.
            user.jvs("restore one --into new").ok();
            user.jvs("worktree remove new --force").ok();
        },
    );
    assert_eq!(user.data("audit --verify")["verified"], true);
}

/// The removal was asked for: what is left is all of it, or nothing.
#[test]
fn a_removal_dead_at_any_call_is_taken_back_or_ended() {
    let Some(place) = Place::on(Kind::Ext4).filter(|_| calls::can_be_aimed_at()) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    dead_at_each_call(
        &user,
        "worktree remove old --force",
        Extent::Spread,
        |_| {
            user.jvs("worktree create old").ok();
            fs_err::write(user.root.join("worktrees/old/kept"), "text").expect("written");
        },
        |_, what| {
            user.jvs("doctor --strict --repair").ok();
            assert_eq!(user.names(&layout::staging()), [""; 0], "{what}");
            if user.names(&layout::worktree_records()).len() > 1 {
                whole(&user, "old");
                let kept = user.root.join("worktrees/old/kept");
                assert_eq!(fs_err::read_to_string(kept).expect("not lost"), "text", "{what}");
                user.jvs("worktree remove old --force").ok();
            }
        },
    );
}
