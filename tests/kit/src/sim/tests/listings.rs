//! Listings that are not what was there at any one moment.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;

/// Everything that one listing showed while `a` was renamed to `b`, beside `c`.
fn shown(torn: u32) -> BTreeSet<String> {
    let shown = Mutex::new(BTreeSet::new());
    let mover = Process::new("mover", |p| {
        p.store().rename(&path("a"), &path("b")).expect("there");
    });
    let lister = Process::new("lister", |p| {
        let names = p.store().list(&RepoPath::root()).expect("listed");
        let names: Vec<_> = names.iter().map(|entry| entry.name.to_string_lossy()).collect();
        p.claim("names", names.join(" "));
    });
    Explorer::new()
        .setup(|solo| {
            create(solo.store(), "a", b"");
            create(solo.store(), "c", b"");
        })
        .processes([mover, lister])
        .torn_listings(torn)
        .at_end(|view| {
            let names = view.process(1).text("names").expect("it ended").to_owned();
            shown.lock().expect("unpoisoned").insert(names);
            Ok(())
        })
        .run()
        .holds();
    shown.into_inner().expect("unpoisoned")
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn a_listing_is_whole_unless_the_scenario_says_otherwise() {
    assert_eq!(shown(0), set(["a c", "b c"]));
}

#[test]
fn a_torn_listing_misses_a_renamed_file_or_shows_it_twice_and_never_misses_the_rest() {
    assert_eq!(shown(1), set(["a c", "b c", "c", "a b c"]));
}

#[test]
fn a_directory_that_is_removed_between_two_batches_is_gone() {
    let remover = Process::new("remover", |p| {
        p.store().unlink(&path("d/f")).expect("there");
        p.store().remove_dir(&path("d")).expect("empty");
    });
    let lister = Process::new("lister", |p| {
        if let Err(e) = p.store().list(&path("d")) {
            assert_eq!(e.kind(), std::io::ErrorKind::NotFound);
        }
    });
    Explorer::new()
        .setup(|solo| {
            solo.store().make_dir(&path("d")).expect("new");
            create(solo.store(), "d/f", b"");
        })
        .processes([remover, lister])
        .torn_listings(1)
        .run()
        .holds();
}

#[test]
fn a_first_batch_is_never_torn() {
    let lister = Process::new("lister", |p| {
        assert_eq!(p.store().first_batch(&RepoPath::root()).expect("listed").len(), 1);
    });
    let mover = Process::new("mover", |p| {
        p.store().rename(&path("a"), &path("b")).expect("there");
    });
    Explorer::new()
        .setup(|solo| create(solo.store(), "a", b""))
        .processes([mover, lister])
        .torn_listings(1)
        .run()
        .holds();
}
