//! Names in any bytes: a program is told those bytes.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::Jvs;
use jvs_repo::layout;
use serde_json::Value;

use crate::world::World;

const ODD: &[u8] = b"a\nb\xff\xe2\x80\xae\\";

fn decoded(text: &Value) -> PathBuf {
    let text = text.as_str().expect("base64");
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other} in {text}"),
    };
    let mut bytes = Vec::new();
    let (mut bits, mut have) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | u32::from(digit(byte));
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push((bits >> have) as u8);
        }
    }
    OsString::from_vec(bytes).into()
}

/// Every field `NAME_bytes` in a document, with the text that is beside it.
fn told(value: &Value, found: &mut Vec<(String, Value, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(field) =
                    name.strip_suffix("_bytes").filter(|it| fields.contains_key(*it))
                {
                    found.push((field.to_owned(), fields[field].clone(), value.clone()));
                }
                told(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| told(item, found)),
        _ => {}
    }
}

fn all(value: &Value) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    told(value, &mut found);
    found
}

/// One world in which the root, files, entries of the control plane and losses have
/// names that are not UTF-8.
fn world() -> World {
    let world = World::named(OsStr::from_bytes(b"r\xfe"));
    fs_err::write(world.file(OsStr::from_bytes(ODD)), "x").expect("written");
    fs_err::write(world.file("plain"), "x").expect("written");
    world
}

#[test]
fn differences_are_told_with_the_bytes_of_their_paths() {
    let world = world();
    world.jvs(&["snapshot", "one"]).ok();
    fs_err::write(world.file(OsStr::from_bytes(ODD)), "changed").expect("written");
    fs_err::write(world.file("plain"), "changed").expect("written");
    for words in [&["status"][..], &["diff"], &["verify", "--files"]] {
        let said = world.command(words).arg("--json").run().ok().json();
        let told = said["data"]["differences"].as_array().expect("a list").clone();
        assert_eq!(told.len(), 2, "{words:?}: {said}");
        assert_eq!(decoded(&told[0]["path_bytes"]).as_os_str().as_bytes(), ODD, "{said}");
        assert_eq!(told[0]["path"], "a\\nb\\xff\\u{202e}\\\\");
        assert_eq!(told[1]["path"], "plain");
        assert!(told[1].get("path_bytes").is_none(), "what is plain needs no second spelling");
    }
}

#[test]
fn where_a_repository_is_is_told_with_its_bytes() {
    let world = world();
    let id = world.jvs(&["snapshot", "one", "--json"]).ok().json()["data"]["snapshot_id"].clone();
    let id = id.as_str().expect("an id");
    let cases: &[&[&str]] = &[
        &["status"],
        &["info"],
        &["worktree", "list"],
        &["worktree", "path", "main"],
        &["worktree", "create", "w"],
        &["worktree", "rename", "w", "x"],
        &["restore", id, "--into", "y"],
        &["doctor"],
    ];
    for words in cases {
        let said = world.command(words).arg("--json").run().ok().json();
        let found = all(&said["data"]);
        let paths = found.iter().filter(|(name, ..)| ["path", "root"].contains(&name.as_str()));
        let paths: Vec<PathBuf> = paths.map(|(_, _, bytes)| decoded(bytes)).collect();
        let expected = usize::from(words != &["doctor"]);
        assert!(paths.len() >= expected, "{words:?}: {said}");
        for path in paths {
            assert!(path.starts_with(world.root()) && path.exists(), "{words:?}: {path:?}: {said}");
        }
    }
    // A script that asks where to go is told where.
    let path = world.jvs(&["worktree", "path", "main"]).ok().stdout;
    let path = OsString::from_vec(path.strip_suffix(b"\n").expect("a line").to_vec());
    assert_eq!(PathBuf::from(path), world.root().join("main"));
    let above = world.root().parent().expect("a directory");
    let made = world.home.jvs(["init", "--json", "q"]).cwd(above).run().ok().json();
    assert_eq!(decoded(&made["data"]["root_bytes"]), above.join("q"));
    assert_eq!(decoded(&made["data"]["path_bytes"]), above.join("q/main"));
}

#[test]
fn what_is_damaged_or_strange_is_told_with_its_bytes() {
    let world = world();
    let id = world.jvs(&["snapshot", "one", "--json"]).ok().json()["data"]["snapshot_id"].clone();
    let id = id.as_str().expect("an id").parse().expect("an id");
    for dir in layout::skeleton() {
        fs_err::write(world.at(&dir).join(OsStr::from_bytes(ODD)), "").expect("written");
    }
    let doctor = world.jvs(&["doctor", "--strict", "--json"]).json();
    let found = all(&doctor["data"]["findings"]);
    for dir in layout::skeleton() {
        let path = world.at(&dir).join(OsStr::from_bytes(ODD));
        let is_told = found.iter().any(|(_, _, bytes)| world.root().join(decoded(bytes)) == path);
        assert!(is_told, "{dir}: {doctor}");
    }
    let payload = world.at(&layout::snapshot_payload(&layout::snapshot(id)));
    let kept = payload.join(OsStr::from_bytes(ODD));
    fs_err::remove_file(&kept).expect("removed");
    let verify = world.jvs(&["verify", "--json"]).exits(11).json();
    let found = all(&verify["error"]["details"]);
    assert!(
        found.iter().any(|(_, _, bytes)| world.root().join(decoded(bytes)) == kept),
        "{verify}"
    );
}

const STRANGER: u32 = 4711;

/// `jvs` as another user, who may do everything that the repository's modes say.
fn as_stranger(world: &World, private: &Path, words: &[&str]) -> Jvs {
    let id = STRANGER.to_string();
    world
        .command(words)
        .under(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
        .env("HOME", private)
        .env("XDG_RUNTIME_DIR", private)
}

/// A world that others can reach, and the stranger's own directory.
fn world_of_two() -> Option<(World, tempfile::TempDir)> {
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return None;
    }
    let world = world();
    fs_err::set_permissions(world.outside(""), Permissions::from_mode(0o755)).expect("opened");
    let private = tempfile::tempdir().expect("a directory");
    fs_err::os::unix::fs::chown(private.path(), Some(STRANGER), None).expect("given");
    Some((world, private))
}

/// What a snapshot could not keep is named in its bytes, too.
#[test]
fn the_examples_of_what_was_lost_are_told_with_their_bytes() {
    let Some((world, private)) = world_of_two() else { return };
    world.jvs(&["config", "set", "repo.shared", "all"]).ok();
    let mut chown = std::process::Command::new("chown");
    chown.arg("-R").arg(STRANGER.to_string()).arg(world.root());
    jvs_kit::live::process::run(chown, Duration::from_secs(60)).ok();
    let odd = world.file(OsStr::from_bytes(ODD));
    fs_err::os::unix::fs::chown(odd, Some(0), None).expect("taken");
    let said = as_stranger(&world, private.path(), &["snapshot", "one", "--json"]).run().ok();
    let said = said.json();
    let found = all(&said["data"]["degraded"]);
    let (_, texts, bytes) = found.first().unwrap_or_else(|| panic!("{said}"));
    assert_eq!(texts[0], "a\\nb\\xff\\u{202e}\\\\");
    assert_eq!(decoded(&bytes[0]).as_os_str().as_bytes(), ODD);
}

/// The error of somebody who may not get in is told, also if its path is no text.
#[test]
fn a_refusal_is_told_with_the_bytes_of_its_path() {
    let Some((world, private)) = world_of_two() else { return };
    let command = as_stranger(&world, private.path(), &["lock", "acquire", "--json"]);
    let said = command.run().exits(1).json();
    assert_eq!(said["error"]["code"], "E_PERMISSION", "{said}");
    let path = decoded(&said["error"]["details"]["permission"]["path_bytes"]);
    assert!(path.starts_with(world.root()), "{said}");
}
