//! Calls that are applied and denied.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use jvs_repo::store::StoredFile;

use super::*;

type Tale = (String, String);

/// What a process was told of its one call, and what is there in the end.
fn tales(
    call: impl Fn(&dyn Store) -> io::Result<()> + Send + Sync + 'static,
    world: impl for<'c> FnOnce(Explorer<'c>) -> Explorer<'c>,
) -> Vec<Tale> {
    let tales = Mutex::new(BTreeSet::new());
    let process = Process::new("A", move |p| {
        p.claim("told", call(p.store()).map_or_else(|e| e.kind().to_string(), |()| "ok".into()));
    });
    let explorer = Explorer::new()
        .setup(|solo| {
            create(solo.store(), "old", b"");
            solo.store().make_dir(&path("olds")).expect("new");
        })
        .process(process)
        .at_end(|view| {
            let told = view.process(0).text("told").unwrap_or("-").to_owned();
            let there = view.live().tree().join(" ");
            tales.lock().expect("unpoisoned").insert((told, there));
            Ok(())
        });
    world(explorer).run().holds();
    tales.into_inner().expect("unpoisoned").into_iter().collect()
}

fn told(answers: &[io::ErrorKind], there: &str) -> Vec<Tale> {
    let mut tales: Vec<Tale> =
        answers.iter().map(|kind| (kind.to_string(), there.to_owned())).collect();
    tales.push(("ok".to_owned(), there.to_owned()));
    tales.sort();
    tales
}

const MADE: [io::ErrorKind; 3] =
    [io::ErrorKind::AlreadyExists, io::ErrorKind::Other, io::ErrorKind::Interrupted];
const GONE: [io::ErrorKind; 3] =
    [io::ErrorKind::NotFound, io::ErrorKind::Other, io::ErrorKind::Interrupted];

/// `EIO` has no kind of its own: it prints as what the standard library makes of it.
fn kinds(of: &[io::ErrorKind]) -> Vec<io::ErrorKind> {
    let eio = io::Error::from(Errno::IO).kind();
    of.iter().map(|&kind| if kind == io::ErrorKind::Other { eio } else { kind }).collect()
}

#[test]
fn a_file_or_a_directory_is_made_and_denied() {
    let file = |store: &dyn Store| store.create_new(&path("new")).map(drop);
    let seen = tales(file, |w| w.ambiguous_makes(1));
    assert_eq!(seen, told(&kinds(&MADE), "new old olds/"));
    let dir = |store: &dyn Store| store.make_dir(&path("new"));
    let seen = tales(dir, |w| w.ambiguous_makes(1));
    assert_eq!(seen, told(&kinds(&MADE), "new/ old olds/"));
}

#[test]
fn a_file_or_a_directory_is_removed_and_denied() {
    let seen = tales(|store| store.unlink(&path("old")), |w| w.ambiguous_removals(1));
    assert_eq!(seen, told(&kinds(&GONE), "olds/"));
    let seen = tales(|store| store.remove_dir(&path("olds")), |w| w.ambiguous_removals(1));
    assert_eq!(seen, told(&kinds(&GONE), "old"));
}

#[test]
fn a_denial_has_its_own_budget() {
    let make = |store: &dyn Store| store.make_dir(&path("new"));
    let seen = tales(make, |w| w.ambiguous_renames(1).ambiguous_removals(1).ambiguous_syncs(1));
    assert_eq!(seen, told(&[], "new/ old olds/"));
}

#[test]
fn what_failed_by_itself_tells_the_truth_and_costs_nothing() {
    let twice = Process::new("A", |p| {
        let taken = p.store().make_dir(&path("old")).expect_err("it is there");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        p.claim("told", u64::from(p.store().make_dir(&path("new")).is_ok()));
    });
    let violation = Explorer::new()
        .setup(|solo| create(solo.store(), "old", b""))
        .process(twice)
        .ambiguous_makes(1)
        .at_end(|view| match view.process(0).number("told") {
            Some(0) => Err("the second was denied".to_owned()),
            _ => Ok(()),
        })
        .run()
        .violation();
    assert!(violation.to_string().contains("make_dir(new) = EEXIST (applied)"), "{violation}");
}

/// A file that is written, synced and renamed: told what of it went wrong.
fn writer() -> Process {
    Process::new("A", |p| {
        let file = p.store().create_new(&path("new")).expect("not there");
        file.write_at(0, b"1").expect("written");
        if file.sync().is_err() {
            p.claim("denied", 1);
            return;
        }
        if p.store().sync_dir(&RepoPath::root()).is_err() {
            p.claim("denied", 2);
        }
    })
}

#[test]
fn a_sync_is_done_and_denied_whether_or_not_power_may_go() {
    for cuts in [0, 1] {
        let seen = Mutex::new(BTreeSet::new());
        Explorer::new()
            .process(writer())
            .ambiguous_syncs(1)
            .power_cuts(cuts, PowerCuts::Extremes)
            .at_end(|view| {
                seen.lock().expect("unpoisoned").insert(view.process(0).number("denied"));
                Ok(())
            })
            .run()
            .holds();
        let seen = seen.into_inner().expect("unpoisoned");
        assert_eq!(seen, BTreeSet::from([None, Some(1), Some(2)]), "{cuts} power cuts");
    }
}

#[test]
fn what_was_synced_and_denied_survives() {
    let solo = Solo::new();
    let file = solo.store().create_new(&path("new")).expect("not there");
    file.write_at(0, b"1").expect("written");
    solo.inject(0, Way::AppliedBut(Errno::IO));
    assert!(StoredFile::sync(&*file).is_err());
    solo.inject(0, Way::AppliedBut(Errno::IO));
    assert!(solo.store().sync_dir(&RepoPath::root()).is_err());
    assert_eq!(solo.crash_images(), 1);
    assert_eq!(solo.crash_image(0).read(&path("new")), Some(&b"1"[..]));
}
