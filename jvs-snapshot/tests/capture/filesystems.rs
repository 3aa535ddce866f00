//! The same on the filesystems that people have.

use super::support::{World, attributes, names_of_any_bytes, zoo};
use jvs_kit::live::juicefs::{Engine as Metadata, Volume};
use jvs_kit::live::loopfs::{Kind, SmallFs};
use jvs_repo::config::Engine;

/// Everything once, then again unchanged, then with changes.
fn three_captures(world: &World, engine: &str) {
    zoo(world);
    let first = world.capture("1", None);
    assert_eq!(first.content.engine, engine);
    let second = world.capture("2", Some(("1", &first)));
    assert_eq!(
        (second.reused, second.content.payload_root_hash),
        (second.content.files, first.content.payload_root_hash)
    );
    world.write("a/deep/file", "changed");
    world.make_dir("a/deep/new");
    fs_err::remove_file(world.path("a-b/plain-too")).expect("one name less");
    let third = world.capture("3", Some(("2", &second)));
    assert!(third.reused > 0 && third.reused < third.content.files);
    assert_ne!(third.content.payload_root_hash, second.content.payload_root_hash);
}

fn on_loop(kind: Kind, engine: &str) {
    let Some(small) = SmallFs::on_loop(kind) else { return };
    let world = World::at(small.path(), small.path());
    names_of_any_bytes(&world);
    world.write("plain", "");
    world.make_dir("a");
    attributes(&world);
    fs_err::remove_dir(world.path("a")).expect("removed");
    three_captures(&world, engine);
}

#[test]
fn ext4_copies() {
    on_loop(Kind::Ext4, "copy");
}

#[test]
fn xfs_shares_content() {
    on_loop(Kind::Xfs, "reflink");
}

#[test]
fn btrfs_shares_content() {
    on_loop(Kind::Btrfs, "reflink");
}

fn on_juicefs(metadata: Metadata, options: &[&str]) {
    let Some(mut volume) = Volume::format(metadata) else { return };
    let mount = volume.mount(options);
    let world = World::at(&mount, &mount);
    if !options.is_empty() {
        world.write("plain", "");
        world.make_dir("a");
        assert!(attributes(&world), "asked for");
        fs_err::remove_dir(world.path("a")).expect("removed");
    }
    three_captures(&world, "juicefs");
}

#[test]
fn juicefs_on_sqlite_clones_through_its_control_file() {
    on_juicefs(Metadata::Sqlite, &[]);
}

#[test]
fn juicefs_on_redis_keeps_what_the_clone_drops_and_its_attributes() {
    on_juicefs(Metadata::Redis, &["--enable-xattr"]);
}

#[test]
fn the_copy_engine_works_on_juicefs_too() {
    let Some(volume) = Volume::mounted(Metadata::Redis, 1) else { return };
    let mut world = World::at(volume.host(0), volume.host(0));
    world.options.engine = Engine::Copy;
    three_captures(&world, "copy");
}
