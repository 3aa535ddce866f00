//! What was done is taken back to the byte, or refused with the reason, and nothing is lost
//! by it, wherever it dies.

use jvs_kit::live::calls;
use jvs_repo::layout;
use serde_json::Value;

use crate::deaths::{fence, nothing_is_left};
use crate::strikes::{Extent, dead_at_each_call};
use crate::user::User;

fn new(dir: &tempfile::TempDir) -> User {
    User::with_new_repository(&dir.path().join("r"))
}

/// All that a tag's file says.
fn tag(user: &User, name: &str) -> Option<Vec<u8>> {
    let path = layout::tag(&name.parse().expect("a tag"));
    fs_err::read(user.root.join(path.as_str())).ok()
}

fn sound(user: &User) {
    user.jvs("verify --all").ok();
    user.jvs("audit --verify").ok();
    user.jvs("doctor --strict").ok();
    assert_eq!(user.names(&layout::staging()), [""; 0]);
}

#[test]
fn an_undone_snapshot_is_no_step_of_the_history_and_its_files_are_untouched() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "one");
    let one = user.snapshot();
    user.write("a", "two");
    let two = user.snapshot();
    user.write("a", "not saved yet");

    let would = user.data("undo --dry-run");
    assert_eq!(would["dry_run"], true);
    assert_eq!(user.history(), [two.clone(), one.clone()]);
    let undone = user.data("undo");
    assert_eq!(undone["result"]["head"], *one);
    assert_eq!(user.history(), std::slice::from_ref(&one));
    assert_eq!(user.read("a"), "not saved yet");
    assert_eq!(user.read_in(&two, "a"), "two", "it can still be named");
    user.data("undo");
    assert_eq!(user.history(), [""; 0], "as before the first");
    assert_eq!(user.data("status")["head"], Value::Null);
    user.data("redo");
    user.data("redo");
    assert_eq!(user.history(), [two.clone(), one.clone()]);
    user.data("undo");
    let three = user.snapshot();
    assert_eq!(user.history(), [three.clone(), one], "the line goes on from where it was");
    user.jvs("redo").exits(1);
    let op = user.data("undo --list")["operations"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["what"].as_str().is_some_and(|what| what.contains(&two)))
        .map(|one| one["op"].as_str().expect("an id").to_owned());
    let refused = user.jvs(&format!("undo --op {} --json", op.expect("listed"))).exits(1);
    assert_eq!(refused.json()["error"]["code"], "E_UNDO_REFUSED");
    assert_eq!(user.history()[0], three);
    sound(&user);
}

#[test]
fn an_undone_restore_leaves_the_files_as_they_were_and_keeps_what_was_written_since() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "old");
    user.write("d/gone", "old");
    let old = user.snapshot();
    user.write("a", "new");
    user.remove("d/gone");
    user.write("made", "new");
    let after = |user: &User| [user.find("a"), user.find("d/gone"), user.find("made")];
    let before = after(&user);
    let restored = [Some("old".to_owned()), Some("old".to_owned()), None];
    for words in ["--in-place", "--in-place --atomic"] {
        user.data(&format!("restore {old} {words} --reason test"));
        assert_eq!(after(&user), restored);
        user.write("since", "written after the restore");
        let undone = user.data("undo");
        assert_eq!(after(&user), before, "{words}");
        assert_eq!(user.find("since"), None);
        let kept = undone["result"]["kept"].as_str().expect("kept").to_owned();
        assert_eq!(user.read_in(&kept, "since"), "written after the restore");
        user.data("redo");
        assert_eq!((after(&user), user.find("since").is_some()), (restored.clone(), true));
        user.data("undo");
        assert_eq!(after(&user), before, "{words}");
    }
    assert_eq!(user.history(), [old], "no step was taken");
    sound(&user);
}

#[test]
fn undone_paths_come_back_or_go_and_others_stay() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "old");
    user.write("d/b", "old");
    let old = user.snapshot();
    user.write("a", "new");
    fs_err::remove_dir_all(user.main().join("d")).expect("removed");
    user.write("other", "before");
    user.data(&format!("restore {old} --in-place --reason test a d/b"));
    assert_eq!((user.read("a"), user.read("d/b")), ("old".into(), "old".into()));
    user.write("other", "after");
    user.data("undo");
    assert_eq!((user.read("a"), user.find("d/b")), ("new".into(), None));
    assert_eq!(user.read("other"), "after", "it was not restored, so it is not taken back");
    user.data("redo");
    assert_eq!((user.read("a"), user.read("d/b")), ("old".into(), "old".into()));
    // A restore of what was not there at all.
    user.remove("a");
    user.data(&format!("restore {old} --in-place --reason test a"));
    user.data("undo");
    assert_eq!((user.find("a"), user.read("other")), (None, "after".into()));
    user.data("redo");
    assert_eq!((user.read("a"), user.read("other")), ("old".into(), "after".into()));
    sound(&user);
}

#[test]
fn what_only_lies_aside_is_not_said_to_be_taken_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("x.log", "old");
    let old = user.snapshot();
    user.write(".jvsignore", "*.log\n");
    user.write("x.log", "mine");
    let restored = user.data("restore x.log");
    let left = restored["left"].as_str().expect("it was ignored").to_owned();
    for words in ["undo --json", "undo --dry-run --json"] {
        let refused = user.jvs(words).exits(1).json()["error"].clone();
        assert_eq!(refused["code"], "E_UNDO_REFUSED");
        assert!(refused["message"].as_str().expect("why").contains(&left), "{refused}");
        assert_eq!(user.read("x.log"), "old");
    }
    let kept = fs_err::read_to_string(std::path::Path::new(&left).join("x.log")).expect("there");
    assert_eq!(kept, "mine");
    assert_eq!(user.history(), [old]);
    sound(&user);
}

#[test]
fn a_letter_that_begins_an_id_restores_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "one");
    let id = user.snapshot();
    let random = id.split_once('-').expect("two parts").1.to_owned();
    for few in [&random[..1], &random[..3], &id[..2]] {
        let refused = user.jvs(&format!("restore {few} --json")).exits(64).json()["error"].clone();
        assert!(refused["hint"].as_str().expect("a hint").contains(&id), "{refused}");
    }
    user.data(&format!("restore {}", &random[..4]));
    user.data(&format!("restore {} --into named", &random[..1]));
}

#[test]
fn an_undone_tag_is_gone_and_an_undeleted_one_is_the_same_to_the_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "one");
    user.snapshot();
    user.jvs("tag @ v1").ok();
    let bytes = tag(&user, "v1");
    user.data("undo");
    assert_eq!(tag(&user, "v1"), None);
    user.data("redo");
    assert_eq!(tag(&user, "v1"), bytes);
    user.jvs("tag --delete v1").ok();
    user.data("undo");
    assert_eq!(tag(&user, "v1"), bytes);
    // Another one of the same name is not the one that was made.
    user.jvs("tag --delete v1").ok();
    user.jvs("tag @ v2").ok();
    let op = user.data("undo --list")["operations"][0]["op"].clone();
    user.jvs("tag --delete v2").ok();
    user.jvs("tag @ v2").ok();
    user.jvs(&format!("undo --op {}", op.as_str().expect("an id"))).exits(1);
    assert!(tag(&user, "v2").is_some());
    // Doctor misses what was made again, as it would any other.
    let path = layout::tag(&"v2".parse().expect("a tag"));
    fs_err::remove_file(user.root.join(path.as_str())).expect("lost");
    user.jvs("doctor --strict").exits(12);
    user.jvs("doctor --strict --repair").ok();
    sound(&user);
}

#[test]
fn an_undone_worktree_is_gone_if_it_is_as_it_was_made_and_else_it_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "one");
    user.snapshot();
    let names = |user: &User| {
        let list = user.data("worktree list")["worktrees"].as_array().expect("a list").clone();
        list.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    for made in ["worktree create side --shared", "restore @ --into side"] {
        user.jvs(made).ok();
        user.data("undo");
        assert_eq!(names(&user), ["main"], "{made}");
        user.data("redo");
        assert_eq!(names(&user), ["main", "side"], "{made}");
        let shared = user.data("status -w side")["isolation"] == "shared";
        assert_eq!(shared, made.contains("shared"));
        let file = user.root.join("worktrees/side/unsaved");
        fs_err::write(&file, "work").expect("written");
        let refused = user.jvs("undo --json").exits(1).json();
        assert_eq!(refused["error"]["code"], "E_UNDO_REFUSED", "{made}: {refused}");
        assert_eq!(fs_err::read_to_string(&file).expect("there"), "work");
        fs_err::remove_file(&file).expect("removed");
        user.jvs("worktree rename side other").ok();
        user.data("undo");
        assert_eq!(names(&user), ["main", "side"]);
        user.data("redo");
        user.jvs("worktree remove other --force").ok();
        // What is gone is said to be.
        let refused = user.jvs("undo --json").exits(1).json();
        assert_eq!(refused["error"]["code"], "E_UNDO_REFUSED", "{made}: {refused}");
    }
    sound(&user);
}

#[test]
fn what_another_session_did_last_is_named_and_taken_back_only_by_its_id() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "one");
    let one = user.snapshot();
    let user = user.session("other");
    let refused = user.jvs("undo").exits(1);
    assert!(refused.stderr().contains(&one), "{refused}");
    let stderr = refused.stderr();
    let hint = stderr.lines().find(|line| line.starts_with("hint")).expect("a hint");
    let op = hint.rsplit(' ').next().expect("an id");
    user.data(&format!("undo --op {op}"));
    assert_eq!(user.history(), [""; 0]);
    // Nobody collected what an operation needs, or it says so.
    user.jvs("gc --keep-last 1 --keep-within 0s").ok();
    user.jvs("redo").exits(3);
    assert_eq!(user.history(), [""; 0]);
    sound(&user);
}

#[test]
fn an_undo_of_a_restore_dead_at_any_call_leaves_all_old_or_all_new_files() {
    if !calls::can_be_aimed_at() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    let files = ["a", "d/b", "d/c"];
    files.iter().for_each(|file| user.write(file, "old"));
    let old = user.snapshot();
    user.data("tag @ old");
    let (mut done, mut not_done) = (0, 0);
    dead_at_each_call(
        &user,
        "undo",
        Extent::Spread,
        |n| {
            files.iter().for_each(|file| user.write(file, &format!("new {n}")));
            user.jvs("restore old --in-place --reason test").ok();
        },
        |n, what| {
            fence(&user);
            nothing_is_left(&user, n, what);
            let texts = files.map(|file| user.read(file));
            match texts.iter().all(|text| text == "old") {
                true => not_done += 1,
                false => {
                    assert_eq!(texts, [(); 3].map(|()| format!("new {n}")), "{what}: a mixture");
                    done += 1;
                }
            }
            assert_eq!(user.history(), std::slice::from_ref(&old), "{what}");
            user.jvs("gc --keep-last 2 --keep-within 0s").ok();
        },
    );
    assert!(done > 1 && not_done > 1, "deaths before and after: {done}, {not_done}");
    assert_eq!(user.data("audit --verify")["verified"], true);
}

#[test]
fn an_undo_of_a_snapshot_dead_at_any_call_leaves_it_the_head_or_not() {
    if !calls::can_be_aimed_at() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let user = new(&dir);
    user.write("a", "first");
    let first = user.snapshot();
    user.data("tag @ first");
    let (mut done, mut not_done) = (0, 0);
    let undone = std::cell::RefCell::new(String::new());
    dead_at_each_call(
        &user,
        "undo",
        Extent::Spread,
        |n| {
            user.write("a", &n.to_string());
            *undone.borrow_mut() = user.snapshot();
        },
        |n, what| {
            fence(&user);
            nothing_is_left(&user, n, what);
            let line = user.history();
            match line[0] == *undone.borrow() {
                true => not_done += 1,
                false => done += 1,
            }
            assert_eq!(line.last(), Some(&first), "{what}: {line:?}");
            assert_eq!(user.read("a"), n.to_string(), "{what}: no file is touched");
            user.jvs("gc --keep-last 3 --keep-within 0s").ok();
        },
    );
    assert!(done > 1 && not_done > 1, "deaths before and after: {done}, {not_done}");
    assert_eq!(user.data("audit --verify")["verified"], true);
}
