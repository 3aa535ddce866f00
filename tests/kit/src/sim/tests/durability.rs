use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;

/// Every tree (with content) that a power cut can leave of `write`.
fn left_by(write: impl Fn(&dyn Store) + Send + Sync + 'static) -> BTreeSet<String> {
    let left = Mutex::new(BTreeSet::new());
    Explorer::new()
        .process(Process::new("A", move |p| {
            write(p.store());
            p.claim("success", 1);
        }))
        .power_cuts(1, PowerCuts::EveryPrefix)
        .at_end(|view| {
            if view.late_renames() == 0 && view.process(0).number("success").is_some() {
                let show = |p: &String| {
                    let bytes = view.live().read(&path(p.trim_end_matches('/')));
                    format!("{p}={}", String::from_utf8_lossy(bytes.unwrap_or(b"dir")))
                };
                let tree: Vec<String> = view.live().tree().iter().map(show).collect();
                left.lock().expect("unpoisoned").insert(tree.join(" "));
            }
            Ok(())
        })
        .run()
        .holds();
    left.into_inner().expect("unpoisoned")
}

fn set(trees: &[&str]) -> BTreeSet<String> {
    trees.iter().map(|&t| t.to_owned()).collect()
}

#[test]
fn what_is_synced_is_there_after_a_power_cut() {
    let left = left_by(|store| {
        store.write_new(&path("tmp"), &path("f"), b"x").expect("written");
    });
    assert_eq!(left, set(&["f=x"]));
}

#[test]
fn what_is_not_synced_may_be_there_or_not() {
    let left = left_by(|store| create(store, "f", b"x"));
    assert_eq!(left, set(&["", "f=", "f=x"]));
}

#[test]
fn a_synced_file_without_its_directory_may_have_no_name() {
    let left = left_by(|store| drop(store.write_tmp(&path("f"), b"x").expect("written")));
    assert_eq!(left, set(&["", "f=x"]));
}

#[test]
fn a_synced_name_without_its_content_is_torn() {
    let left = left_by(|store| {
        create(store, "f", b"x");
        store.sync_dir(&RepoPath::root()).expect("synced");
    });
    assert_eq!(left, set(&["f=", "f=x"]));
}

#[test]
fn names_come_back_in_the_order_in_which_they_changed() {
    let left = left_by(|store| {
        store.make_dir(&path("a")).expect("new");
        store.make_dir(&path("b")).expect("new");
        store.rename(&path("a"), &path("c")).expect("moved");
    });
    assert_eq!(left, set(&["", "a/=dir", "a/=dir b/=dir", "b/=dir c/=dir"]));
}

#[test]
fn directories_lose_their_changes_independently() {
    let left = left_by(|store| {
        for dir in ["a", "b"] {
            store.make_dir(&path(dir)).expect("new");
        }
        store.sync_dir(&RepoPath::root()).expect("synced");
        store.make_dir(&path("a/x")).expect("new");
        store.make_dir(&path("b/y")).expect("new");
        store.sync_dir(&path("b")).expect("synced");
    });
    assert_eq!(left, set(&["a/=dir b/=dir b/y/=dir", "a/=dir a/x/=dir b/=dir b/y/=dir"]));
}

#[test]
fn no_power_cut_halves_a_rename_between_directories() {
    let left = left_by(|store| {
        for dir in ["a", "b", "a/x"] {
            store.make_dir(&path(dir)).expect("new");
        }
        for dir in ["", "a", "b"] {
            let dir = if dir.is_empty() { RepoPath::root() } else { path(dir) };
            store.sync_dir(&dir).expect("synced");
        }
        store.make_dir(&path("a/new")).expect("new");
        store.rename(&path("a/new"), &path("b/new")).expect("moved");
        store.sync_dir(&path("b")).expect("synced");
        store.rename(&path("a/x"), &path("b/x")).expect("moved");
    });
    let before = "a/=dir a/x/=dir b/=dir b/new/=dir";
    assert_eq!(left, set(&[before, "a/=dir b/=dir b/new/=dir b/x/=dir"]));
}

#[test]
fn a_synced_directory_that_nothing_names_is_lost() {
    let left = left_by(|store| {
        store.make_dir(&path("d")).expect("new");
        store.write_new(&path("d/tmp"), &path("d/f"), b"x").expect("written");
    });
    assert_eq!(left, set(&["", "d/=dir d/f=x"]));
}

#[test]
fn the_extremes_are_nothing_and_everything() {
    let left = Mutex::new(BTreeSet::new());
    Explorer::new()
        .process(Process::new("A", |p| {
            for name in ["a", "b", "c"] {
                p.store().make_dir(&path(name)).expect("new");
            }
        }))
        .power_cuts(1, PowerCuts::Extremes)
        .at_end(|view| {
            if view.process(0).status() == Status::Done {
                left.lock().expect("unpoisoned").insert(view.live().tree().join(" "));
            }
            Ok(())
        })
        .run()
        .holds();
    assert_eq!(left.into_inner().expect("unpoisoned"), set(&["", "a/ b/ c/"]));
}

#[test]
fn after_a_power_cut_others_start_on_another_boot() {
    let boots = Mutex::new(BTreeSet::new());
    Explorer::new()
        .process(Process::new("A", |p| {
            create(p.store(), "f", b"x");
            p.store().sync_dir(&RepoPath::root()).expect("synced");
        }))
        .process(
            Process::new("B", |p| {
                use jvs_repo::clock::Clock;
                p.claim("boot", p.clock().boot_id().0);
                p.claim("up", p.clock().now().boot.0);
                let _ = p.store().unlink(&path("f"));
            })
            .on_host(0)
            .starts(Start::AfterPowerCut),
        )
        .power_cuts(1, PowerCuts::EveryPrefix)
        .at_end(|view| {
            let b = view.process(1);
            let seen =
                (view.process(0).status(), b.text("boot").map(str::to_owned), b.number("up"));
            boots.lock().expect("unpoisoned").insert(format!("{seen:?}"));
            Ok(())
        })
        .run()
        .holds();
    let id = "00000000-0000-4000-8000-000000000002";
    let expected = [
        "(Done, None, None)".to_owned(),
        format!("(Crashed, Some({id:?}), Some(10000))"),
        format!("(Done, Some({id:?}), Some(10000))"),
    ];
    assert_eq!(boots.into_inner().expect("unpoisoned"), expected.into_iter().collect());
}
