//! Set-user and set-group bits are kept for whom they were meant, and for nobody
//! else: of a neighbour's program nobody makes one that acts as themselves.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::chown;
use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_repo::config::Engine;
use jvs_snapshot::fidelity::LossKind;
use jvs_snapshot::progress::Silent;

use super::support::{SOMEBODY, World, as_somebody, is_root};

/// Who wrote the programs.
const NEIGHBOUR: u32 = 12_346;

/// A directory of somebody's with programs of a neighbour's: set-user, set-group,
/// both, with two names, and a set-group directory.
fn prepare(place: &Path) {
    let given = place.join("given");
    fs_err::create_dir_all(given.join("dir")).expect("directories");
    let set = |name: &str, uid: u32, gid: u32, mode: u32| {
        chown(given.join(name), Some(uid), Some(gid)).expect("given away");
        let mode = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(given.join(name), mode).expect("a mode");
    };
    for (name, uid, gid, mode) in [
        ("both", NEIGHBOUR, NEIGHBOUR, 0o6755),
        ("user", NEIGHBOUR, NEIGHBOUR, 0o4755),
        ("group", NEIGHBOUR, NEIGHBOUR, 0o2755),
        ("my-group", NEIGHBOUR, SOMEBODY, 0o6755),
        ("as-me", SOMEBODY, NEIGHBOUR, 0o6755),
        ("mine", SOMEBODY, SOMEBODY, 0o6755),
        ("plain", NEIGHBOUR, NEIGHBOUR, 0o755),
    ] {
        fs_err::write(given.join(name), name).expect("a file");
        set(name, uid, gid, mode);
    }
    fs_err::hard_link(given.join("both"), given.join("dir/both-too")).expect("a link");
    set("dir", NEIGHBOUR, NEIGHBOUR, 0o2777);
    set("", SOMEBODY, SOMEBODY, 0o777);
}

/// What is captured, and what is made of a capture again, as a restore does.
fn nothing_acts_as_its_copier(place: &Path, engine: Engine) {
    let mut world = World::at(place, place);
    world.source = place.join("given");
    world.options.engine = engine;
    world.options.full = true;
    for name in ["1", "2"] {
        let captured = world.try_capture(name, None, &Silent).expect("captured");
        world.check_manifest(name, &captured);
        let mut changed = BTreeSet::new();
        for path in
            ["", "both", "user", "group", "my-group", "as-me", "mine", "dir", "dir/both-too"]
        {
            let (there, here) = (world.source.join(path), world.payload(name).join(path));
            let (original, copy) =
                (there.metadata().expect("an original"), here.metadata().expect("a copy"));
            let same = (original.uid(), original.gid()) == (copy.uid(), copy.gid());
            assert!(same || copy.mode() & 0o6000 == 0, "{path}: {:o}", copy.mode());
            assert_eq!(original.mode() & 0o1777, copy.mode() & 0o1777, "{path}");
            if same {
                assert_eq!(original.mode(), copy.mode(), "{path}");
            } else if original.mode() & 0o6000 != 0 {
                changed.insert(path.to_owned());
            }
        }
        let modes =
            captured.content.degraded.iter().filter(|loss| loss.what == LossKind::Mode.as_str());
        let mut named: BTreeSet<String> = modes.flat_map(|loss| loss.examples.clone()).collect();
        // Of a file with two names the first is named.
        if named.contains("both") {
            named.insert("dir/both-too".to_owned());
        }
        assert_eq!(named, changed, "{:?}", captured.content.degraded);
        // From now on of the copy, as a restore has it.
        world.source = world.payload("1");
    }
}

fn on_loop(kind: Kind) -> Option<(SmallFs, PathBuf)> {
    let small = SmallFs::on_loop(kind)?;
    let path = small.path().to_owned();
    Some((small, path))
}

#[test]
fn a_copy_of_a_neighbour_s_set_user_program_is_none_on_ext4() {
    let test = "set_id::a_copy_of_a_neighbour_s_set_user_program_is_none_on_ext4";
    as_somebody(
        test,
        || on_loop(Kind::Ext4),
        prepare,
        |place| {
            nothing_acts_as_its_copier(place, Engine::Copy);
        },
    );
}

#[test]
fn a_copy_of_a_neighbour_s_set_user_program_is_none_on_xfs() {
    let test = "set_id::a_copy_of_a_neighbour_s_set_user_program_is_none_on_xfs";
    as_somebody(
        test,
        || on_loop(Kind::Xfs),
        prepare,
        |place| {
            nothing_acts_as_its_copier(place, Engine::Reflink);
        },
    );
}

#[test]
fn a_copy_of_a_neighbour_s_set_user_program_is_none_on_juicefs() {
    let test = "set_id::a_copy_of_a_neighbour_s_set_user_program_is_none_on_juicefs";
    let volume = || {
        let volume = Volume::mounted(Metadata::Sqlite, 1)?;
        let place = volume.host(0).join("place");
        fs_err::create_dir(&place).expect("a directory");
        Some((volume, place))
    };
    as_somebody(test, volume, prepare, |place| {
        for engine in [Engine::Juicefs, Engine::Copy] {
            let at = place.join(engine.as_str());
            fs_err::create_dir(&at).expect("a directory");
            fs_err::rename(place.join("given"), at.join("given")).expect("moved along");
            nothing_acts_as_its_copier(&at, engine);
            fs_err::rename(at.join("given"), place.join("given")).expect("moved back");
        }
    });
}

/// Who may give files away keeps everything.
#[test]
fn root_keeps_set_user_programs_of_others() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    prepare(dir.path());
    for engine in [Engine::Copy, Engine::Auto] {
        let at = dir.path().join(engine.as_str());
        fs_err::create_dir(&at).expect("a directory");
        let mut world = World::at(&at, &at);
        world.source = dir.path().join("given");
        world.options.engine = engine;
        world.capture("1", None);
    }
}
