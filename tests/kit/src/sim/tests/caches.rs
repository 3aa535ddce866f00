//! Names that a mount looked up and did not find, and others made since.

use jvs_repo::clock::Clock;

use super::*;

/// Looks twice for `what`; between the two the name may be made.
fn looker(mount: usize, what: &'static str) -> Process {
    Process::new("looker", move |p| {
        for _ in 0..2 {
            p.append("found", u64::from(p.store().stat(&path(what)).is_ok()));
            p.clock().sleep_ms(10);
        }
        let listed = p.store().list(&RepoPath::root()).expect("listed");
        p.append("found", u64::from(!listed.is_empty()));
    })
    .on_mount(mount)
}

fn maker(how: fn(&dyn Store)) -> Process {
    Process::new("maker", move |p| {
        p.clock().sleep_ms(5);
        how(p.store());
    })
}

fn world(mount: usize, what: &'static str, how: fn(&dyn Store)) -> Explorer<'static> {
    Explorer::new()
        .setup(|solo| create(solo.store(), "tmp", b""))
        .processes([maker(how), looker(mount, what)])
        .always(|view| {
            let found = view.process(1).get("found").map(Value::numbers).unwrap_or_default();
            match found[..] {
                [_, 0, 1] if view.now_ms() == 20 => Err("denied, then listed".to_owned()),
                _ => Ok(()),
            }
        })
}

fn make_file(store: &dyn Store) {
    drop(store.create_new(&path("new")).expect("not there"));
}

fn move_there(store: &dyn Store) {
    store.rename_new(&path("tmp"), &path("new")).expect("not there");
}

fn make_dirs(store: &dyn Store) {
    store.make_dir(&path("dir")).expect("not there");
    drop(store.create_new(&path("dir/new")).expect("not there"));
}

/// A name that another mount made is denied by its path and shown by a listing.
fn is_denied(world: Explorer<'_>) {
    let violation = world.stale_absences_for_ms(1000).early_wakes(0).run().violation();
    assert!(violation.to_string().contains("= ENOENT (stale)"), "{violation}");
}

#[test]
fn an_absence_is_remembered_through_another_mount_however_the_name_is_made() {
    is_denied(world(1, "new", make_file));
    is_denied(world(1, "new", move_there));
}

#[test]
fn an_absent_directory_hides_what_is_in_it() {
    is_denied(world(1, "dir/new", make_dirs));
}

#[test]
fn an_absence_is_not_remembered_for_longer_nor_through_the_mount_that_ended_it() {
    let whole = |w: Explorer<'_>, ms| {
        let found = w
            .stale_absences_for_ms(ms)
            .early_wakes(0)
            .at_end(|view| {
                let found = view.process(1).get("found").map(Value::numbers).unwrap_or_default();
                if found == [0, 1, 1] { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .run()
            .holds();
        assert_eq!(found.distinct_ends, 1, "{found}");
    };
    whole(world(1, "new", make_file), 10);
    whole(world(0, "new", make_file), 1000);
}

#[test]
fn who_never_looked_is_not_denied() {
    let late = Process::new("late", |p| {
        p.store().stat(&path("new")).expect("made before anybody looked");
    });
    Explorer::new()
        .process(Process::new("maker", |p| make_file(p.store())))
        .process(late.starts(Start::Last))
        .stale_absences_for_ms(1000)
        .run()
        .holds();
}

/// Linux asks the server again for exclusive creates and for targets of renames.
#[test]
fn a_remembered_absence_lets_nobody_make_a_name_twice() {
    let second = Process::new("second", |p| {
        assert!(p.store().stat(&path("new")).is_err());
        p.clock().sleep_ms(10);
        assert!(p.store().create_new(&path("new")).is_err(), "made twice");
        assert!(p.store().rename_new(&path("tmp"), &path("new")).is_err(), "moved over");
    });
    Explorer::new()
        .setup(|solo| create(solo.store(), "tmp", b""))
        .processes([maker(make_file), second])
        .stale_absences_for_ms(1000)
        .early_wakes(0)
        .run()
        .holds();
}
