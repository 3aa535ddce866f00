use std::collections::BTreeSet;
use std::sync::Mutex;

use jvs_repo::clock::Clock;

use super::*;

fn mover() -> Process {
    Process::new("A", |p| {
        let moved = p.store().rename(&path("a"), &path("b"));
        p.claim("told", moved.map_or_else(|e| e.to_string(), |()| "moved".to_owned()));
        let names = p.store().first_batch(&RepoPath::root()).expect("listed");
        p.claim("saw", format!("{names:?}"));
    })
}

/// What A was told, what it saw right after, what was there in the end.
fn tales(world: impl FnOnce(Explorer<'_>) -> Explorer<'_>) -> Vec<(String, String, String)> {
    let tales = Mutex::new(BTreeSet::new());
    let explorer = Explorer::new()
        .setup(|solo| create(solo.store(), "a", b""))
        .process(mover())
        .at_end(|view| {
            let said = |key| view.process(0).text(key).unwrap_or("-").to_owned();
            let there = view.live().tree().join(" ");
            tales.lock().expect("unpoisoned").insert((said("told"), said("saw"), there));
            Ok(())
        });
    world(explorer).run().holds();
    tales.into_inner().expect("unpoisoned").into_iter().collect()
}

fn errno(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

fn tale(told: impl Into<String>, saw: &str, there: &str) -> (String, String, String) {
    let saw = if saw == "-" { saw.to_owned() } else { format!("[{saw:?}]") };
    (told.into(), saw, there.to_owned())
}

fn sorted(mut tales: Vec<(String, String, String)>) -> Vec<(String, String, String)> {
    tales.sort();
    tales
}

#[test]
fn without_faults_there_is_one_tale() {
    assert_eq!(tales(|w| w), [tale("moved", "b", "b")]);
}

#[test]
fn an_ambiguous_rename_is_applied_and_denied() {
    let expected = vec![
        tale("moved", "b", "b"),
        tale(errno(Errno::IO), "b", "b"),
        tale(errno(Errno::NOENT), "b", "b"),
    ];
    assert_eq!(tales(|w| w.ambiguous_renames(1)), sorted(expected));
}

#[test]
fn a_late_rename_lands_at_once_later_or_never() {
    let expected = vec![
        tale("moved", "b", "b"),
        tale(errno(Errno::IO), "b", "b"),
        tale(errno(Errno::IO), "a", "a"),
        tale(errno(Errno::IO), "a", "b"),
    ];
    assert_eq!(tales(|w| w.late_renames(1)), sorted(expected));
}

#[test]
fn a_late_rename_needs_its_source() {
    let retry = Process::new("A", |p| {
        if p.store().rename(&path("a"), &path("b")).is_err() {
            // Succeeding now fences the first attempt for ever.
            p.store().rename(&path("a"), &path("c")).expect("only one is late");
            p.claim("is", "c");
        }
    });
    let violation = Explorer::new()
        .setup(|solo| create(solo.store(), "a", b""))
        .process(retry)
        .late_renames(1)
        .always(|view| match view.process(0).text("is") {
            Some(name) if !view.live().exists(&path(name)) => Err("moved away again".to_owned()),
            _ => Ok(()),
        })
        .run()
        .violation();
    // The only way to fail: the first attempt landed before the second.
    assert!(violation.message.contains("only one is late"), "{violation}");
    assert!(violation.trace.iter().any(|line| line == "late rename(a -> b) = ok"), "{violation}");
}

#[test]
fn a_process_dies_before_between_and_after_its_calls() {
    let expected = vec![tale("moved", "b", "b"), tale("-", "-", "a"), tale("moved", "-", "b")];
    assert_eq!(tales(|w| w.crashes(1)), sorted(expected));
}

#[test]
fn dying_after_the_last_call_is_dying_too() {
    let report = Explorer::new()
        .process(Process::new("A", |p| {
            p.store().make_dir(&path("d")).expect("new");
            p.claim("done", 1);
        }))
        .crashes(1)
        .run()
        .holds();
    assert_eq!(report.distinct_ends, 3, "not made, made and untold, done: {report}");
}

#[test]
fn a_failing_call_is_not_applied() {
    let failing = tales(|w| w.inject(0, 0, Way::Fails(Errno::NOSPC)));
    assert_eq!(failing, [tale(errno(Errno::NOSPC), "a", "a")], "the first call, in every run");
    let any_call_may_fail = Explorer::new()
        .setup(|solo| create(solo.store(), "a", b""))
        .process(mover())
        .errors(1, &[Errno::NOSPC, Errno::INTR])
        .run()
        .violation();
    assert!(any_call_may_fail.message.contains("listed"), "{any_call_may_fail}");
}

/// A file is replaced, `pause_ms` pass, then someone reads it by its path.
fn read_after_replacement(for_ms: u64, pause_ms: u64, mount: usize) -> Report {
    let writer = Process::new("writer", move |p| {
        p.store().write_over(&path("tmp"), &path("lock"), b"2").expect("replaced");
        p.clock().sleep_ms(pause_ms);
    });
    let reader = Process::new("reader", |p| {
        assert_eq!(p.store().list(&RepoPath::root()).expect("listed").len(), 1);
        assert!(p.store().rename(&path("tmp"), &path("x")).is_err(), "names are current");
        for _ in 0..3 {
            p.append("read", number_in(p.store(), "lock").expect("a number"));
        }
    });
    Explorer::new()
        .setup(|solo| create(solo.store(), "lock", b"1"))
        .process(writer)
        .process(reader.on_mount(mount).starts(Start::Last))
        .each_step(|_, after| {
            let read = after.process(1).get("read").map(Value::numbers).unwrap_or_default();
            assert!(read.is_sorted(), "who saw the new file stays with it: {read:?}");
            if read == [1, 1, 2] { Err("stale twice, then fresh".to_owned()) } else { Ok(()) }
        })
        .stale_reads_for_ms(for_ms)
        .run()
}

#[test]
fn a_replaced_file_is_read_stale_by_its_path_through_another_mount() {
    let violation = read_after_replacement(1000, 999, 1).violation();
    assert!(violation.to_string().contains("reader open(lock) = fd 1 (stale)"), "{violation}");
}

#[test]
fn nothing_is_stale_for_longer_than_caches_remember_or_through_the_same_mount() {
    for (pause_ms, mount) in [(1000, 1), (999, 0)] {
        let report = read_after_replacement(1000, pause_ms, mount).holds();
        assert_eq!(report.distinct_ends, 1, "{report}");
    }
}

#[test]
fn a_full_volume_has_room_for_names_and_for_what_was_freed() {
    let process = Process::new("A", |p| {
        let store = p.store();
        let file = store.create_new(&path("new")).expect("a name needs no room");
        let full = file.write_at(0, b"12").expect_err("there is no room");
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        store.link_new(&path("old"), &path("again")).expect("another name needs no room");
        let old = store.open(&path("old")).expect("there");
        assert_eq!(old.links().expect("counted"), 2);
        drop(old);
        store.unlink(&path("old")).expect("there");
        file.write_at(0, b"12").expect_err("it still has a name");
        store.unlink(&path("again")).expect("there");
        file.write_at(0, b"12").expect_err("a file that was refused goes on being refused");
        let other = store.create_new(&path("other")).expect("a name needs no room");
        other.write_at(0, b"12").expect("it was freed");
        assert_eq!(number_in(store, "other"), Some(12));
    });
    Explorer::new()
        .setup(|solo| create(solo.store(), "old", b"12"))
        .process(process)
        .full_volume()
        .run()
        .holds();
}
