//! Whatever is changed in a snapshot is found and named.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::symlink;
use jvs_repo::layout;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::verify::{Verification, verify, verify_tags};
use jvs_snapshot::{Ready, tags};
use jvs_world::live::World;
use rustix::fs::XattrFlags;

fn one_of_everything(world: &World) -> Ready {
    world.write("a.txt", "content");
    world.write("dir/b.txt", "two");
    symlink("a.txt", world.file("link")).expect("a symlink");
    fs_err::hard_link(world.file("dir/b.txt"), world.file("dir/c.txt")).expect("a link");
    world.snapshot(&mut world.lease())
}

fn verdict(world: &World, ready: &Ready) -> Verification {
    verify(&world.store, ready.id(), &Silent).expect("readable")
}

/// Changes something, sees that it is found at `path` with `word`, and undoes it.
fn found(world: &World, ready: &Ready, path: &str, word: &str) {
    let verdict = verdict(world, ready);
    assert!(!verdict.is_valid(), "{path} {word}");
    let named = |m: &&jvs_snapshot::verify::Mismatch| m.path.ends_with(path);
    let mismatch = verdict.mismatches.iter().find(named);
    let mismatch = mismatch.unwrap_or_else(|| panic!("{path}: {:?}", verdict.mismatches));
    assert!(mismatch.what.contains(word), "{path} {word}: {mismatch}");
}

fn bytes(path: &Path) -> Vec<u8> {
    fs_err::read(path).expect("a file")
}

#[test]
fn an_untouched_snapshot_is_valid() {
    let world = World::new();
    let ready = one_of_everything(&world);
    let verdict = verdict(&world, &ready);
    assert!(verdict.is_valid() && verdict.mismatches.is_empty(), "{verdict:?}");
    assert_eq!(verify_tags(&world.store).expect("read"), []);
}

#[test]
fn a_change_of_any_byte_of_descriptor_manifest_or_ready_is_found_and_named() {
    let world = World::new();
    let ready = one_of_everything(&world);
    for (file, name) in [
        (layout::descriptor(&ready.dir()), "descriptor.json"),
        (layout::manifest(&ready.dir()), "manifest"),
        (layout::ready(&ready.dir()), "READY"),
    ] {
        let path = world.store.absolute(&file);
        let good = bytes(&path);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x04;
            fs_err::write(&path, &bad).expect("written");
            let verdict = verdict(&world, &ready);
            assert!(!verdict.is_valid(), "{name} byte {at}");
            assert!(verdict.mismatches[0].path.ends_with(name), "{name}: {verdict:?}");
        }
        fs_err::write(&path, &good[..good.len() - 1]).expect("written");
        found(&world, &ready, name, "");
        fs_err::write(&path, &good).expect("written");
    }
    assert!(verdict(&world, &ready).is_valid(), "as it was");
}

#[test]
fn a_change_of_anything_in_the_payload_is_found_and_named() {
    let world = World::new();
    let ready = one_of_everything(&world);
    let at = |path: &str| -> PathBuf { world.kept(&ready, path) };
    let mtime = |path: &Path| {
        let meta = fs_err::metadata(path).expect("stat");
        meta.modified().expect("a time")
    };
    let set_mtime = |path: &Path, time| {
        let file = fs_err::File::options().write(true).open(path).expect("opened");
        file.set_modified(time).expect("set");
    };

    // Content, with size and time as they were.
    let (file, before) = (at("a.txt"), mtime(&at("a.txt")));
    fs_err::write(&file, "c0ntent").expect("written");
    set_mtime(&file, before);
    found(&world, &ready, "payload/a.txt", "content");
    fs_err::write(&file, "content").expect("written");
    found(&world, &ready, "payload/a.txt", "mtime");
    set_mtime(&file, before);
    assert!(verdict(&world, &ready).is_valid());

    let mode = fs_err::metadata(&file).expect("stat").mode();
    fs_err::set_permissions(&file, PermissionsExt::from_mode(0o4755)).expect("chmod");
    found(&world, &ready, "payload/a.txt", "mode");
    fs_err::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("chmod");

    if fs_err::os::unix::fs::chown(&file, Some(12_345), None).is_ok() {
        found(&world, &ready, "payload/a.txt", "owner");
        let uid = fs_err::metadata(at("dir/b.txt")).expect("stat").uid();
        fs_err::os::unix::fs::chown(&file, Some(uid), None).expect("chown");
        fs_err::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("chmod");
    }

    let root = at("");
    let before = mtime(&root);
    let reset = || {
        let dir = fs_err::File::open(&root).expect("opened");
        dir.set_modified(before).expect("set");
    };
    fs_err::write(at("extra"), "").expect("written");
    found(&world, &ready, "payload/extra", "added");
    fs_err::remove_file(at("extra")).expect("removed");
    fs_err::rename(at("a.txt"), world.dir.path().join("away")).expect("moved");
    found(&world, &ready, "payload/a.txt", "removed");
    fs_err::rename(world.dir.path().join("away"), at("a.txt")).expect("moved");
    let link = fs_err::symlink_metadata(at("link")).expect("stat").mtime();
    fs_err::remove_file(at("link")).expect("removed");
    symlink("b.txt", at("link")).expect("a symlink");
    found(&world, &ready, "payload/link", "content");
    fs_err::remove_file(at("link")).expect("removed");
    fs_err::write(at("link"), "").expect("written");
    found(&world, &ready, "payload/link", "type");
    assert!(link > 0);
    reset();

    // Two names of one file become two files.
    let (c, before) = (at("dir/c.txt"), mtime(&at("dir/c.txt")));
    fs_err::remove_file(&c).expect("removed");
    fs_err::write(&c, "two").expect("written");
    set_mtime(&c, before);
    found(&world, &ready, "payload/dir/c.txt", "links");
}

#[test]
fn a_change_of_any_byte_of_a_file_in_the_payload_is_found_and_named() {
    let world = World::new();
    let good: Vec<u8> = (0..=255).collect();
    fs_err::write(world.file("bytes"), &good).expect("written");
    let ready = one_of_everything(&world);
    let path = world.kept(&ready, "bytes");
    let meta = fs_err::metadata(&path).expect("stat");
    let put = |bytes: &[u8]| {
        // In place, and with the time it had: only the content tells.
        let file = fs_err::File::options().write(true).open(&path).expect("opened");
        std::os::unix::fs::FileExt::write_all_at(file.file(), bytes, 0).expect("written");
        file.set_modified(meta.modified().expect("a time")).expect("set");
    };
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        put(&bad);
        let verdict = verdict(&world, &ready);
        let [mismatch] = &verdict.mismatches[..] else { panic!("byte {at}: {verdict:?}") };
        assert!(mismatch.path.ends_with("payload/bytes"), "{mismatch}");
        assert_eq!(mismatch.what, "differs: content");
    }
    put(&good);
    assert!(verdict(&world, &ready).is_valid(), "as it was");
}

#[test]
fn an_extended_attribute_that_was_changed_added_or_removed_is_found_and_named() {
    let world = World::new();
    world.write("with", "attributes");
    world.write("without", "attributes");
    fs_err::create_dir(world.file("dir")).expect("made");
    let set = |path: &Path, value: &str| {
        rustix::fs::setxattr(path, "user.note", value.as_bytes(), XattrFlags::empty())
    };
    if set(&world.file("with"), "one").is_err() {
        return; // No filesystem that has them.
    }
    set(&world.file("dir"), "one").expect("set");
    set(&world.file(""), "one").expect("set");
    let ready = world.snapshot(&mut world.lease());
    let only = |path: &str| {
        let verdict = verdict(&world, &ready);
        let [mismatch] = &verdict.mismatches[..] else { panic!("{path}: {verdict:?}") };
        assert!(mismatch.path.ends_with(path), "{mismatch}");
        assert_eq!(mismatch.what, "differs: xattrs");
    };
    for (name, shown) in [("with", "payload/with"), ("dir", "payload/dir"), ("", "payload")] {
        let path = world.kept(&ready, name);
        set(&path, "two").expect("changed");
        only(shown);
        rustix::fs::removexattr(&path, "user.note").expect("removed");
        only(shown);
        set(&path, "one").expect("as it was");
        assert!(verdict(&world, &ready).is_valid());
    }
    let path = world.kept(&ready, "without");
    set(&path, "").expect("added");
    only("payload/without");
    rustix::fs::removexattr(&path, "user.note").expect("removed");
    assert!(verdict(&world, &ready).is_valid());
}

#[test]
fn what_was_added_beside_the_payload_is_found_too() {
    let world = World::new();
    let ready = one_of_everything(&world);
    let beside = world.store.absolute(&ready.dir()).join("notes");
    fs_err::write(&beside, "x").expect("written");
    found(&world, &ready, "notes", "added");
}

#[test]
fn a_change_of_any_byte_of_a_tag_is_found_and_named() {
    let world = World::new();
    let ready = one_of_everything(&world);
    let name = "v1".parse().expect("valid");
    tags::create(world.seams(), &name, &ready, "s").expect("tagged");
    let path = world.store.absolute(&layout::tag(&name));
    let good = bytes(&path);
    for at in 0..good.len() {
        for bit in [0x01, 0x04, 0x20] {
            let mut bad = good.clone();
            bad[at] ^= bit;
            fs_err::write(&path, &bad).expect("written");
            let found = verify_tags(&world.store).expect("read");
            let [mismatch] = &found[..] else { panic!("byte {at}, bit {bit}: {found:?}") };
            assert!(mismatch.path.ends_with("v1.json"), "{mismatch}");
        }
    }
    fs_err::write(&path, &good).expect("written");
    assert_eq!(verify_tags(&world.store).expect("read"), []);
}

#[test]
fn tags_that_were_changed_or_stand_for_nothing_are_named() {
    let world = World::new();
    let ready = one_of_everything(&world);
    let name = "v1".parse().expect("valid");
    tags::create(world.seams(), &name, &ready, "s").expect("tagged");
    assert_eq!(verify_tags(&world.store).expect("read"), []);
    let path = world.store.absolute(&layout::tag(&name));
    let good = bytes(&path);
    let text = String::from_utf8(good.clone()).expect("text");
    fs_err::write(&path, text.replace("\"s\"", "\"t\"")).expect("written");
    let found = verify_tags(&world.store).expect("read");
    assert!(found[0].path.ends_with("v1.json") && found[0].what.contains("checksum"), "{found:?}");
    fs_err::write(&path, good).expect("written");
    fs_err::rename(world.store.absolute(&ready.dir()), world.dir.path().join("away"))
        .expect("moved");
    let found = verify_tags(&world.store).expect("read");
    assert!(found[0].what.contains("does not exist"), "{found:?}");
}
