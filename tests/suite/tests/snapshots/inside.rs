//! What is told of the past is what happened, and is read from where it is written down.

use std::collections::{BTreeMap, BTreeSet};

use jvs_repo::layout;
use serde_json::Value;

use crate::user::User;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const NAMES: [&str; 5] = ["a", "d/b", "d/c", "d/e/f", "dd"];

/// A repository whose files are written, closed, touched and removed by chance.
fn with_a_past(dir: &std::path::Path, seed: u64) -> (User, Vec<String>) {
    let user = User::with_new_repository(&dir.join("r"));
    let mut dice = Dice(seed);
    let ids = (0..12).map(|n| {
        for name in NAMES {
            match dice.roll(6) {
                0 => user.write(name, &n.to_string()),
                1 => user.remove(name),
                2 if user.find(name).is_some() => {
                    let mode = std::os::unix::fs::PermissionsExt::from_mode(if dice.roll(2) == 0 {
                        0o600
                    } else {
                        0o644
                    });
                    fs_err::set_permissions(user.main().join(name), mode).expect("closed");
                }
                // As it was, but for its time.
                3 => user.find(name).iter().for_each(|text| user.write(name, text)),
                _ => {}
            }
        }
        user.snapshot()
    });
    let ids = ids.collect();
    (user, ids)
}

fn ids(data: &Value) -> Vec<String> {
    let list = data["snapshots"].as_array().expect("a list").iter();
    list.map(|one| one["snapshot_id"].as_str().expect("an id").to_owned()).collect()
}

fn paths(differences: &Value) -> BTreeMap<String, String> {
    let list = differences["differences"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    list.map(|one| (text(&one["path"]), text(&one["change"]))).collect()
}

/// What a comparison of each two neighbours tells, told at once, though no file of any
/// snapshot is there to be read.
#[test]
fn the_history_of_a_path_is_read_from_manifests_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let (user, all) = with_a_past(dir.path(), 0x9e37_79b9);
    let mut changed: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    let first = paths(&user.data(&format!("show {}", all[0]))["changes"]);
    let below = |path: &str, name: &str| path == name || path.starts_with(&format!("{name}/"));
    let names = || NAMES.into_iter().chain(["d", "d/e"]);
    for name in names().filter(|name| first.keys().any(|path| below(path, name))) {
        changed.entry(name).or_default().insert(&all[0]);
    }
    for pair in all.windows(2) {
        let found = paths(&user.data(&format!("diff {} {}", pair[0], pair[1])));
        for name in names().filter(|name| found.keys().any(|path| below(path, name))) {
            changed.entry(name).or_default().insert(&pair[1]);
        }
    }
    for id in &all {
        let payload = layout::snapshot_payload(&layout::snapshot(id.parse().expect("an id")));
        let payload = user.root.join(payload.as_str());
        fs_err::rename(&payload, dir.path().join(id)).expect("moved away");
    }
    let mut some = 0;
    for name in names() {
        let Some(changed) = changed.get(name) else {
            user.jvs(&format!("history {name}")).exits(3);
            continue;
        };
        let told = user.data(&format!("history {name}"));
        let mut expected: Vec<String> = changed.iter().map(|id| (*id).clone()).collect();
        expected.reverse();
        assert_eq!(ids(&told), expected, "{name}: {told:#}");
        let newest = user.data(&format!("history {name} -n 1"));
        assert_eq!(ids(&newest), expected[..1], "{name}");
        some += expected.len();
    }
    assert!(some > 20, "{changed:?}");
}

#[test]
fn the_changes_of_all_snapshots_make_the_last_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let (user, all) = with_a_past(dir.path(), 0x1234_5678);
    let mut there = BTreeSet::new();
    for id in &all {
        let told = user.data(&format!("show {id}"));
        assert_eq!(told["snapshot_id"], **id);
        assert_eq!(told["changes"]["from"], told["parent"]);
        for (path, change) in paths(&told["changes"]) {
            let right = match change.as_str() {
                "added" => there.insert(path.clone()),
                "removed" => there.remove(&path),
                _ => there.contains(&path),
            };
            assert!(right, "{path} {change} in {id}: {there:?}");
        }
    }
    let last = user.data("ls --recursive");
    let last = last["entries"].as_array().expect("a list").iter();
    let last: BTreeSet<String> =
        last.map(|entry| entry["path"].as_str().expect("text").to_owned()).collect();
    assert_eq!(there, last);
    // Of what was made of something that is gone nobody knows what it changed.
    user.jvs(&format!("forget {}", all[3])).ok();
    assert_eq!(user.data(&format!("show {}", all[4]))["changes"], Value::Null);
}
