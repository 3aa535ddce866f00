//! Trees that are deeper than a process may have files open, and than any path that can
//! be given to the kernel.

use std::path::Path;

use jvs_kit::live::loopfs::Kind;
use jvs_snapshot::tree;

use crate::places::Place;
use crate::user::User;

const LEVELS: usize = 1000;

/// A file and two directories at each level: something is left to do in each of them
/// while what is below the other is worked on.
fn deep(below: &Path) {
    let mut at = tree::open_root(below).expect("opened");
    for level in 0..LEVELS {
        let file = tree::create_file(&at, b"file").expect("made");
        tree::write_at(&file, format!("{level}").as_bytes(), 0).expect("written");
        for name in [&b"first-of-two"[..], b"second"] {
            tree::make_directory(&at, name).expect("made");
        }
        at = tree::open_directory(&at, b"first-of-two").expect("opened");
    }
}

#[test]
fn a_tree_of_any_depth_is_captured_compared_restored_and_collected_with_few_files_open() {
    let Some(place) = Place::on(Kind::Ext4) else { return };
    let user = User::with_new_repository(&place.dir.join("r"));
    deep(&user.root.join("main"));
    let few = ["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"];
    let jvs = |words: &str| user.command(words).under(few).run().ok();
    jvs("snapshot one");
    let changed = user.root.join("main/first-of-two/first-of-two/file");
    fs_err::write(&changed, "changed").expect("written");
    assert!(jvs("status").stdout().contains("first-of-two/first-of-two/file"));
    jvs("snapshot two");
    jvs("verify --all");
    jvs("restore @- --in-place --reason test");
    assert_eq!(fs_err::read_to_string(&changed).expect("read"), "2");
    assert_eq!(user.data("diff @-")["differences"].as_array().map(Vec::len), Some(0));
    jvs("restore @ --in-place --atomic --reason test");
    assert_eq!(fs_err::read_to_string(&changed).expect("read"), "changed");
    jvs("worktree create other --from @");
    jvs("gc --keep-last 1 --keep-within 0s");
    jvs("worktree remove other --force");
    assert_eq!(user.data("doctor --strict")["healthy"], true);
}
