//! A command of which one call goes wrong, alone: whoever is told that it failed
//! finds the world as it was, and whoever is told that it was done finds it done.

use jvs_kit::sim::{Solo, Way};
use jvs_lock::mutation::{self, Rule};
use jvs_lock::worktrees::{self, WorktreeError};
use jvs_lock::{Hold, Locks, State};
use jvs_protocol_tests::stage::repository;
use jvs_repo::code::{Code, Coded};
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::Store as _;
use jvs_world::sim::{seams_of, ward};
use rustix::io::Errno;

use crate::world::{kept, name, restore_tree, with_old};

fn locks_of<'s>(solo: &'s Solo) -> Locks<'s> {
    ward::locks_of(seams_of(solo), "me")
}

/// What people see: records, notes and files, and which registers live. What a
/// register counted, and the logs, go on.
fn world_of(solo: &Solo) -> Vec<String> {
    let mut seen: Vec<String> = solo
        .image()
        .tree()
        .into_iter()
        .filter(|path| !path.starts_with(layout::audit().as_str()))
        .filter(|path| !path.starts_with(layout::locks().as_str()))
        // What is to be restored stays where its maker put it.
        .filter(|path| !path.starts_with(layout::staged("copy-me").expect("plain").as_str()))
        // Made by whoever comes first, for everybody.
        .filter(|path| path.trim_end_matches('/') != "worktrees")
        .collect();
    for of in ["old", "new"] {
        let entries = solo.image().list(&layout::register(&name(of)));
        let live = entries
            .iter()
            .filter_map(|entry| entry.parse::<State>().ok())
            // A reservation that nobody confirmed keeps nobody from the name (W-12).
            .any(|state| state.hold != Hold::Retired && (of == "old" || !state.is_birth()));
        seen.push(format!("{of} lives: {live}"));
    }
    seen
}

type Act = fn(&Solo, &Locks<'_>) -> Result<(), WorktreeError>;

/// What is done, and to a worktree `old` with which files.
const ACTS: [(&str, Old, Act); 6] = [
    ("create", Old::Full, |_, locks| {
        worktrees::create(locks, &name("new"), Isolation::Exclusive).map(drop)
    }),
    ("restore", Old::Full, |solo, locks| restore_tree(solo.store(), locks, "new", "me")),
    ("rename", Old::Full, |_, locks| worktrees::rename(locks, &name("old"), &name("new"))),
    ("rename without files", Old::Gone, |_, locks| {
        worktrees::rename(locks, &name("old"), &name("new"))
    }),
    ("remove by force", Old::Full, |_, locks| {
        worktrees::remove(locks, &name("old"), true).map(drop)
    }),
    ("remove", Old::Empty, |_, locks| worktrees::remove(locks, &name("old"), false).map(drop)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Old {
    Full,
    Empty,
    Gone,
}

fn begin(old: Old) -> Solo {
    let solo = Solo::new();
    repository(&solo);
    with_old(&solo);
    if old != Old::Full {
        solo.store().unlink(&kept("old")).expect("removed");
    }
    if old == Old::Gone {
        solo.store().remove_dir(&layout::payload(&name("old"))).expect("removed");
    }
    solo
}

/// How calls go wrong from the `n`th on.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    Once(Way),
    FromThen(Errno),
}

/// What is wrong with the world after one that was told failed; `None` if it has not
/// so many calls.
fn case((what, old, act): (&str, Old, Act), n: usize, wrong: Wrong) -> Option<Option<String>> {
    const ALL: usize = 400;
    let solo = begin(old);
    let before = world_of(&solo);
    let calls = solo.call_count();
    match wrong {
        Wrong::Once(way) => solo.inject(n, way),
        Wrong::FromThen(errno) => (n..ALL).for_each(|n| solo.fail_call(n, errno)),
    }
    let told = act(&solo, &locks_of(&solo));
    if solo.call_count() - calls <= n {
        return None;
    }
    let now = world_of(&solo);
    let Err(error) = told else {
        let done = {
            let solo = begin(old);
            act(&solo, &locks_of(&solo)).expect("nothing fails");
            world_of(&solo)
        };
        // Notes are nobody's any more.
        let is_seen = |it: &&String| !it.contains(".tmp-");
        let same = now.iter().filter(is_seen).eq(done.iter().filter(is_seen));
        return Some((!same).then(|| {
            let call = &solo.calls()[calls + n];
            format!("{what}, call {n} ({call:?}) {wrong:?}: told done, and is not: {now:?}")
        }));
    };
    if error.code() == Code::OutcomeUnknown || now == before {
        return Some(None);
    }
    // A filesystem that is gone keeps a note of it: of an operation that ended, which
    // nobody goes on with.
    let is_note = |it: &str| matches!(wrong, Wrong::FromThen(_)) && it.contains(".tmp-");
    // A worktree that had lost its directory may as well have an empty one.
    let is_mended = |it: &str| old == Old::Gone && it == "worktrees/old/";
    let is_new = |it: &&String| !before.contains(it) && !is_note(it) && !is_mended(it);
    let call = &solo.calls()[calls + n];
    let new: Vec<_> = now.iter().filter(is_new).collect();
    let gone: Vec<_> = before.iter().filter(|it| !now.contains(it)).collect();
    if new.is_empty() && gone.is_empty() {
        return Some(None);
    }
    Some(Some(format!("{what}, {wrong:?}, {call}: {error}: +{new:?} -{gone:?}")))
}

fn all_cases() -> (usize, Vec<String>) {
    let (mut cases, mut found) = (0, Vec::new());
    for act in ACTS {
        for wrong in [
            Wrong::Once(Way::Fails(Errno::IO)),
            Wrong::Once(Way::AppliedBut(Errno::IO)),
            Wrong::Once(Way::Fails(Errno::ACCESS)),
            Wrong::FromThen(Errno::IO),
        ] {
            let results = (0..).map_while(|n| case(act, n, wrong));
            found.extend(results.inspect(|_| cases += 1).flatten());
        }
    }
    (cases, found)
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was tried is worth seeing")]
fn whatever_call_fails_whoever_is_told_so_finds_the_world_as_it_was() {
    let (cases, found) = all_cases();
    eprintln!("{cases} cases");
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(cases > 600, "{cases}");
}

#[test]
fn a_directory_whose_making_failed_is_not_left() {
    let (_, found) = mutation::without(Rule::FailedMakingLeavesNothing, all_cases);
    assert!(found.iter().any(|it| it.contains("sync_dir(worktrees)")), "{}", found.join("\n"));
}
