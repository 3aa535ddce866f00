//! A restore has the same result however often it is done.

use serde_json::Value;

use crate::user::User;

fn twice(restore: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    user.write("a", "first");
    user.write("d/b", "first");
    let first = user.snapshot();
    user.write("a", "good");
    user.write("d/b", "good");
    let good = user.snapshot();

    let mut kept = Vec::new();
    for mistake in ["bad", "worse"] {
        user.write("a", mistake);
        user.remove("d/b");
        let data = user.data(restore);
        assert_eq!(data["snapshot_id"], *good);
        assert_eq!(data["kept_is_new"], true);
        let id = data["kept"].as_str().expect("kept").to_owned();
        assert_eq!(user.read_in(&id, "a"), mistake, "nothing is lost");
        kept.push(id);
        assert_eq!((user.read("a"), user.read("d/b")), ("good".into(), "good".into()));
        assert_eq!(user.history(), [good.clone(), first.clone()], "no step was taken");
        assert_eq!(user.data("status")["head"], *good);
        assert_eq!(user.data("status")["clean"], true);
    }
    let again = user.data(restore);
    assert_eq!(again["kept_is_new"], false, "there is nothing to keep");
    assert_eq!(user.data("info @-")["snapshot_id"], *first);
    user.write("a", "next");
    let next = user.snapshot();
    assert_eq!(user.history(), [next.clone(), good.clone(), first]);
    assert_eq!(user.data("show @")["changes"]["from"], *good);
    let all = user.data("history --all")["snapshots"].as_array().expect("a list").clone();
    let aside: Vec<&Value> = all.iter().filter(|one| one["line"]["aside"] == true).collect();
    assert_eq!(aside.len(), kept.len());
    assert!(aside.iter().all(|one| one["line"]["follows"] == *good), "{aside:?}");
    user.jvs("verify --all").ok();
    user.jvs("audit --verify").ok();
    user.jvs("doctor --strict").ok();
}

#[test]
fn a_restore_of_a_path_twice_gives_the_same() {
    twice("restore @ --in-place --reason test a d/b");
}

#[test]
fn a_restore_of_all_files_twice_gives_the_same() {
    twice("restore @ --in-place --reason test");
    twice("restore @ --in-place --atomic --reason test");
}

#[test]
fn a_worktree_whose_first_files_were_replaced_has_no_step_before_its_first_snapshot() {
    let dir = tempfile::tempdir().expect("a directory");
    let user = User::with_new_repository(&dir.path().join("r"));
    user.write("a", "one");
    let one = user.snapshot();
    user.data("worktree create side");
    fs_err::write(user.root.join("worktrees/side/a"), "unsaved").expect("written");
    let data = user.data(&format!("restore {one} -w side --in-place --reason test"));
    let kept = data["kept"].as_str().expect("kept").to_owned();
    assert_eq!(user.data("status -w side")["head"], Value::Null, "no step was taken");
    let first = user.data("snapshot -w side")["snapshot_id"].clone();
    let line = user.data("history -w side")["snapshots"].clone();
    assert_eq!(line.as_array().map(Vec::len), Some(1), "{line}");
    assert_eq!((&line[0]["snapshot_id"], &line[0]["parent"]), (&first, &Value::from(kept)));
    assert_eq!(line[0]["line"]["follows"], Value::Null);
}
