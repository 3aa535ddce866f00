//! What differs, path by path.

use std::os::unix::fs::PermissionsExt;

use jvs_snapshot::compare::{Aspect, Difference, Trust};
use jvs_snapshot::diff;
use jvs_snapshot::progress::Silent;
use jvs_world::live::World;

fn told(differences: &[Difference]) -> Vec<(String, Vec<Aspect>)> {
    differences
        .iter()
        .filter(|difference| difference.is_of_substance())
        .map(|difference| {
            let aspects = difference.aspects.iter().copied().filter(|a| *a != Aspect::Mtime);
            (difference.path.to_string(), aspects.collect())
        })
        .collect()
}

#[test]
fn changes_of_the_working_files_and_between_snapshots_are_the_same() {
    let world = World::new();
    for (path, text) in [("changed", "1"), ("gone", "2"), ("same", "3"), ("d/mode", "4")] {
        world.write(path, text);
    }
    let mut lease = world.lease();
    let before = world.snapshot(&mut lease);
    let since = || {
        diff::since(&world.store, &before, &world.file(""), Trust::Hints, &Silent)
            .expect("compared")
    };
    assert_eq!(told(&since()), []);

    world.write("changed", "one");
    world.write("new/file", "5");
    fs_err::remove_file(world.file("gone")).expect("removed");
    fs_err::set_permissions(world.file("d/mode"), PermissionsExt::from_mode(0o600)).expect("chmod");
    let expected = [
        ("changed", Aspect::Content),
        ("d/mode", Aspect::Mode),
        ("gone", Aspect::Removed),
        ("new", Aspect::Added),
        ("new/file", Aspect::Added),
    ]
    .map(|(path, aspect)| (path.to_owned(), vec![aspect]));
    assert_eq!(told(&since()), expected);

    let after = world.snapshot(&mut lease);
    let between = diff::between(&world.store, &before, &after).expect("compared");
    assert_eq!(told(&between), expected);
    let sizes: Vec<_> = between.iter().map(|d| (d.before, d.after)).collect();
    assert!(sizes.contains(&(Some(1), Some(3))) && sizes.contains(&(Some(1), None)), "{sizes:?}");
    let same = diff::between(&world.store, &after, &after).expect("compared");
    assert!(same.is_empty());
}

#[test]
fn a_file_that_was_rewritten_with_the_same_content_is_not_a_change_of_substance() {
    let world = World::new();
    world.write("a", "text");
    let before = world.snapshot(&mut world.lease());
    world.write("a", "text");
    let since = diff::since(&world.store, &before, &world.file(""), Trust::Hints, &Silent)
        .expect("compared");
    assert_eq!(told(&since), []);
}
