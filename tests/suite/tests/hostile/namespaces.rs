//! A rootless container spells the ids of users otherwise: what was taken inside is as
//! good outside, and the other way round.

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::Jvs;

use crate::world::World;

const USER: u32 = 4713;

/// `jvs` as an ordinary user, or as the root of a user namespace of that user.
fn as_user(world: &World, inside: bool, words: &[&str]) -> Jvs {
    let id = USER.to_string();
    let command = world.command(words);
    let command = command.under(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"]);
    if inside { command.under(["unshare", "--user", "--map-root-user"]) } else { command }
}

#[test]
fn owners_that_differ_only_by_a_uid_map_are_no_tampering() {
    if !granted(&[Capability::Root, Capability::Program("setpriv"), Capability::Program("unshare")])
    {
        return;
    }
    let world = World::new();
    fs_err::write(world.file("file"), "one").expect("written");
    world.give_to(USER);
    for (inside, name) in [(true, "a"), (false, "b")] {
        let changed = world.file("file");
        fs_err::write(&changed, name).expect("written");
        as_user(&world, inside, &["snapshot", name]).run().ok();
        for looks_inside in [inside, !inside] {
            let at = format!("{name}{}", u8::from(looks_inside));
            as_user(&world, looks_inside, &["verify"]).run().ok();
            as_user(&world, looks_inside, &["restore", "@", "--into", &at]).run().ok();
            let said = as_user(&world, looks_inside, &["verify", "--files", "--json"]).run().ok();
            assert_eq!(said.json()["data"]["clean"], true, "{said}");
        }
    }
    // Between the two only the content differs.
    let info = as_user(&world, false, &["info", "--json"]).run().ok().json();
    let parent = info["data"]["parent"].as_str().expect("a parent");
    let said = as_user(&world, false, &["diff", parent, "@", "--json"]).run().ok().json();
    let told = said["data"]["differences"].as_array().expect("a list");
    assert_eq!(told.len(), 1, "{said}");
    assert!(!told[0]["aspects"].to_string().contains("owner"), "{said}");
    // What was changed where ids are spelled alike is found as ever.
    let payload = info["data"]["path"].as_str().expect("a path");
    let kept = std::path::Path::new(payload).join("file");
    fs_err::os::unix::fs::chown(kept, Some(0), None).expect("taken");
    as_user(&world, false, &["verify"]).run().exits(11);
}
