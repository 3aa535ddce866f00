//! What is ignored does not get into a copy, however the copy is made, and what happens to
//! it meanwhile is nobody's business.

use std::collections::BTreeMap;

use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::config::Engine;
use jvs_snapshot::ignore::IgnoreRules;
use jvs_snapshot::progress::{CapturePhase, Silent};
use jvs_snapshot::stage::Captured;

use super::quiet::meddler;
use super::support::{Seen, World, look, zoo};

const RULES: &str = "*.tmp\n/modules/\ncache/\n";
const PHASES: [CapturePhase; 4] =
    [CapturePhase::Plan, CapturePhase::Clone, CapturePhase::Fidelity, CapturePhase::Prove];

/// Everything below the source but what the rules ignore.
fn kept(world: &World) -> BTreeMap<Vec<u8>, Seen> {
    let mut all = look(&world.source);
    let ignored = |path: &[u8]| {
        let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
        parts[0] == b"modules"
            || parts.iter().any(|part| part.ends_with(b".tmp") || *part == b"cache")
    };
    all.retain(|path, _| !ignored(path));
    // A name outside of what is captured is no name of a link.
    let mut groups: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for group in all.values().filter_map(|seen| seen.group.clone()) {
        *groups.entry(group).or_default() += 1;
    }
    for seen in all.values_mut() {
        seen.group = seen.group.take().filter(|group| groups[group] > 1);
    }
    all
}

#[track_caller]
fn capture(world: &World, name: &str, parent: Option<(&str, &Captured)>) -> Captured {
    let captured = world.try_capture(name, parent, &Silent).expect("captured");
    assert!(captured.content.quiescence.proven, "{:?}", captured.content);
    world.check_manifest(name, &captured);
    let (expected, copy) = (kept(world), look(&world.payload(name)));
    assert_eq!(expected.keys().collect::<Vec<_>>(), copy.keys().collect::<Vec<_>>(), "{name}");
    for (path, original) in &expected {
        assert_eq!(original, &copy[path], "{name}: {path:?}");
    }
    captured
}

/// Files that are ignored beside files that are not, a directory that is, and one below.
fn fill(world: &mut World) {
    world.options.ignore = Some(IgnoreRules::default());
    zoo(world);
    world.write(".jvsignore", RULES);
    world.write("a/one.tmp", "x");
    fs_err::hard_link(world.path("a.txt"), world.path("a/linked.tmp")).expect("linked");
}

fn add_directories(world: &World) {
    for dir in ["modules", "modules/left-pad", "a/cache", "a/deep/cache"] {
        world.make_dir(dir);
        world.write(format!("{dir}/index.js"), "left");
    }
}

/// Files only at first: a clone is cleaned of them. Then directories: they are not cloned.
fn what_is_ignored_is_in_no_copy(world: &mut World) {
    fill(world);
    let first = capture(world, "files", None);
    world.write("a/two.tmp", "x");
    world.write("a/deep/file", "changed");
    let second = capture(world, "more-files", Some(("files", &first)));
    add_directories(world);
    let third = capture(world, "directories", Some(("more-files", &second)));
    let again = capture(world, "again", Some(("directories", &third)));
    let content = &again.content;
    assert_eq!(content.payload_root_hash, third.content.payload_root_hash);
    assert_eq!(content.ignore_rules[0].rules, ["*.tmp", "/modules/", "cache/"]);
}

/// In every phase something ignored comes, is written to, and goes: the first attempt
/// succeeds, and is not disturbed by it.
fn what_is_ignored_may_change_at_any_time(world: &mut World) {
    fill(world);
    for round in 0..2 {
        for phase in PHASES {
            let name = format!("{round}-{phase:?}");
            let root = world.source.clone();
            let writes = meddler(phase, 9, |_| {
                fs_err::write(root.join("new.tmp"), phase.as_str()).expect("written");
                fs_err::write(root.join("a/one.tmp"), phase.as_str()).expect("written");
                let cache = root.join("a/deep/cache");
                if !cache.exists() {
                    fs_err::create_dir(&cache).expect("made");
                    fs_err::write(cache.join("file"), "x").expect("written");
                } else if round == 0 {
                    fs_err::remove_dir_all(&cache).expect("removed");
                }
            });
            let captured = world.try_capture(&name, None, &writes).expect("captured");
            assert!(captured.content.quiescence.proven, "{:?}", captured.content);
            assert_eq!(captured.content.quiescence.attempts, 1, "{name}");
            world.check_manifest(&name, &captured);
            let copy = look(&world.payload(&name));
            assert_eq!(
                kept(world).keys().collect::<Vec<_>>(),
                copy.keys().collect::<Vec<_>>(),
                "{name}"
            );
        }
        fs_err::remove_file(world.path("new.tmp")).expect("removed");
    }
}

/// Rules that change while they are followed, also where nobody looks at the file.
fn rules_that_change_are_a_change(world: &mut World) {
    fill(world);
    for ignores_itself in [false, true] {
        let rules = if ignores_itself { ".jvsignore\n*.tmp\n" } else { "*.tmp\n" };
        world.write(".jvsignore", rules);
        for phase in [CapturePhase::Plan, CapturePhase::Clone] {
            let name = format!("{ignores_itself}-{phase:?}");
            let root = world.source.clone();
            let rewrites = meddler(phase, 9, |n| {
                let more = format!("{rules}never-{n}\n");
                fs_err::write(root.join(".jvsignore"), more).expect("written");
            });
            let error = world.try_capture(&name, None, &rewrites).expect_err("not quiet");
            assert_eq!(error.code(), Code::ConsistencyUnavailable, "{error}");
            assert!(error.to_string().contains(".jvsignore changed"), "{error}");
        }
    }
}

/// What else may happen to a directory changes its times, too.
fn attributes_of_a_directory_still_count(world: &mut World) {
    fill(world);
    let root = world.source.clone();
    let changes = meddler(CapturePhase::Clone, 9, |n| {
        let _ = fs_err::write(root.join("a/new.tmp"), "x");
        let value = format!("{n}");
        rustix::fs::setxattr(
            root.join("a"),
            "user.test",
            value.as_bytes(),
            rustix::fs::XattrFlags::empty(),
        )
        .expect("an attribute");
    });
    // What was set while the directory was copied is what the copy has, or a change.
    let captured = world.try_capture("xattrs", None, &changes);
    match captured {
        Ok(captured) => {
            world.check_manifest("xattrs", &captured);
            let (source, copy) = (look(&world.source), look(&world.payload("xattrs")));
            assert_eq!(source[&b"a"[..]].xattrs, copy[&b"a"[..]].xattrs);
        }
        Err(error) => assert_eq!(error.code(), Code::ConsistencyUnavailable, "{error}"),
    }
}

const CASES: [fn(&mut World); 4] = [
    what_is_ignored_is_in_no_copy,
    what_is_ignored_may_change_at_any_time,
    rules_that_change_are_a_change,
    attributes_of_a_directory_still_count,
];

#[test]
fn what_is_ignored_is_left_out_of_copies() {
    for case in CASES {
        let mut world = World::new();
        world.options.engine = Engine::Copy;
        case(&mut world);
    }
}

#[test]
fn what_is_ignored_is_left_out_of_cloned_files() {
    let Some(disk) = SmallFs::on_loop(Kind::Xfs) else { return };
    for (number, case) in CASES.into_iter().enumerate() {
        let root = disk.path().join(format!("case-{number}"));
        fs_err::create_dir(&root).expect("a directory");
        let mut world = World::at(&root, &root);
        world.options.engine = Engine::Reflink;
        case(&mut world);
    }
}

fn on_juicefs(metadata: Metadata) {
    let Some(volume) = Volume::mounted(metadata, 1) else { return };
    // Extended attributes are off on a mount unless it is told otherwise.
    for (number, case) in CASES.into_iter().take(3).enumerate() {
        let root = volume.host(0).join(format!("case-{number}"));
        fs_err::create_dir(&root).expect("a directory");
        let mut world = World::at(&root, &root);
        world.options.engine = Engine::Juicefs;
        case(&mut world);
    }
}

#[test]
fn what_is_ignored_is_left_out_of_clones_on_sqlite() {
    on_juicefs(Metadata::Sqlite);
}

#[test]
fn what_is_ignored_is_left_out_of_clones_on_redis() {
    on_juicefs(Metadata::Redis);
}
