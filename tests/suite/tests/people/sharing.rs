//! Several users of one group work in one repository, whatever their umask, and nobody
//! works by accident in one that a stranger put above them.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::chown;
use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::{Home, Jvs};
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::Outcome;
use jvs_lock::State;
use jvs_repo::id::{FencingToken, OpNonce};
use jvs_repo::layout;
use jvs_repo::layout::staging::StagingName;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

pub(crate) const TEAM: u32 = 4700;
const UMASKS: [&str; 3] = ["022", "002", "077"];

/// A user of the team.
pub(crate) struct Member {
    pub(crate) uid: u32,
    umask: &'static str,
    pub(crate) home: Home,
}

impl Member {
    pub(crate) fn new(number: u32, umask: &'static str) -> Self {
        let (uid, home) = (4710 + number, Home::new());
        let top = home.home_dir().parent().expect("a home lies somewhere").to_owned();
        let mut chown = std::process::Command::new("chown");
        chown.arg("-R").arg(format!("{uid}:{uid}")).arg(top);
        assert!(chown.status().expect("run").success());
        Member { uid, umask, home }
    }

    pub(crate) fn jvs(&self, dir: &Path, words: &str) -> Jvs {
        let uid = self.uid.to_string();
        let (team, umask) = (TEAM.to_string(), format!("umask {}; exec \"$@\"", self.umask));
        let user = ["setpriv", "--reuid", &uid, "--regid", &uid, "--groups", &team];
        let shell = ["sh", "-c", &umask, "sh"];
        let session = format!("u{uid}");
        self.home
            .jvs(words.split(' '))
            .session(&session)
            .under(user.into_iter().chain(shell))
            .cwd(dir)
    }

    #[track_caller]
    pub(crate) fn ok(&self, dir: &Path, words: &str) -> Outcome {
        self.jvs(dir, words).run().ok()
    }

    #[track_caller]
    pub(crate) fn writes(&self, path: &Path, text: &str) {
        fs_err::write(path, text).expect("written");
        chown(path, Some(self.uid), Some(TEAM)).expect("given");
        let mode = 0o666 & !u32::from_str_radix(self.umask, 8).expect("a umask");
        fs_err::set_permissions(path, Permissions::from_mode(mode | 0o040)).expect("opened");
    }
}

/// A directory of the team's, with or without the bit that hands its group on.
pub(crate) fn of_the_team(dir: &Path, mode: u32) {
    fs_err::create_dir(dir).expect("made");
    chown(dir, None, Some(TEAM)).expect("given");
    fs_err::set_permissions(dir, Permissions::from_mode(mode)).expect("opened");
}

/// A directory of the team's on this disk, and two of its members.
pub(crate) fn two_of_a_team() -> Option<(tempfile::TempDir, PathBuf, [Member; 2])> {
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return None;
    }
    let dir = tempfile::Builder::new().prefix("jvs-team-").tempdir().expect("a directory");
    fs_err::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("opened");
    let team = dir.path().join("team");
    of_the_team(&team, 0o2775);
    Some((dir, team, [0, 1].map(|n| Member::new(n, UMASKS[0]))))
}

/// What of the control plane the group cannot use. The files of snapshots are their
/// takers'.
fn closed(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = path.symlink_metadata().expect("there");
        let wanted = if meta.is_dir() { 0o2070 } else { 0o060 };
        if meta.mode() & wanted != wanted || meta.gid() != TEAM {
            found.push(path.clone());
        }
        let is_payload = path.file_name().is_some_and(|name| name == "payload");
        if meta.is_dir() && !is_payload {
            pending.extend(
                path.read_dir().expect("listed").map(|entry| entry.expect("an entry").path()),
            );
        }
    }
    found
}

/// Each of three members does everything that there is to do, after the others.
fn everybody_does_everything(place: &Path, members: &[Member; 3]) {
    let root = place.join("r");
    let main = root.join("main");
    members[0].ok(place, "init --shared r");
    chown(&main, None, Some(TEAM)).expect("given");
    members[0].ok(&root, "config set lock.max_clock_skew_ms 50");
    members[1].ok(&root, "config set lock.steal_grace_ms 50");
    for (n, me) in members.iter().enumerate() {
        let other = &members[(n + 1) % 3];
        me.writes(&main.join(format!("file{n}")), "text");
        me.ok(&main, "lock acquire");
        other.jvs(&main, "lock acquire --no-keeper").run().exits(2);
        me.ok(&main, "snapshot mine");
        me.ok(&main, "lock release");
        other.ok(&main, "lock acquire --wait --no-keeper --lease 300ms");
        me.ok(&main, "lock acquire --wait=20s");
        me.ok(&main, "lock release");
        let umask = me.ok(&main, "run -- sh -c umask");
        assert_eq!(umask.stdout().trim(), format!("0{}", me.umask), "the command's own");
        me.ok(&main, &format!("worktree create w{n}"));
        other.ok(&main, &format!("worktree rename w{n} x{n}"));
        me.ok(&main, &format!("restore @ --into y{n}"));
        other.ok(&main, &format!("tag @ t{n}"));
        for name in ["x", "y"] {
            me.ok(&main, &format!("worktree remove {name}{n} --force"));
        }
        me.ok(&main, "verify --all");
        me.ok(&main, "audit --verify");
        assert_eq!(closed(&root.join(layout::control_dir().as_str())), Vec::<PathBuf>::new());
    }
    members[2].ok(&main, "restore @- --in-place --reason earlier");
    members[1].ok(&main, "gc --keep-last 1 --keep-within 0s");
    for me in members {
        me.ok(&main, "doctor --strict");
        me.ok(&main, "status");
    }
}

#[test]
fn my_team_shares_a_repository_whatever_its_umask() {
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return;
    }
    for mode in [0o2775, 0o2770] {
        let dir = tempfile::Builder::new().prefix("jvs-team-").tempdir().expect("a directory");
        fs_err::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("opened");
        let team = dir.path().join("team");
        of_the_team(&team, mode);
        let members = [0, 1, 2].map(|n| Member::new(n, UMASKS[n as usize]));
        everybody_does_everything(&team, &members);
    }
}

#[test]
fn my_team_shares_a_repository_on_juicefs() {
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return;
    }
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let team = volume.host(0).join("team");
    of_the_team(&team, 0o2775);
    let members = [0, 1, 2].map(|n| Member::new(n, UMASKS[n as usize]));
    everybody_does_everything(&team, &members);
}

/// Without `--shared` the umask decides, and a directory that the owner opens later
/// stays open.
#[test]
fn my_repository_is_as_open_as_its_control_directory() {
    let Some((_dir, team, [ann, bob])) = two_of_a_team() else { return };
    ann.ok(&team, "init r");
    let main = team.join("r/main");
    bob.jvs(&main, "lock acquire --no-keeper").run().exits(1);
    ann.ok(&main, "config set repo.shared group");
    bob.ok(&main, "lock acquire --no-keeper --lease 5s");
    bob.ok(&main, "lock release");
    assert_eq!(closed(&team.join("r").join(layout::control_dir().as_str())), Vec::<PathBuf>::new());
    // Only the owner can open what is hers.
    let format = team.join("r").join(layout::format().as_str());
    fs_err::set_permissions(format, Permissions::from_mode(0o644)).expect("closed");
    let told = bob.jvs(&main, "--json config set repo.shared all").run().exits(1).json();
    assert_eq!(told["error"]["code"], "E_PERMISSION", "{told}");
}

/// Files of a snapshot belong to whoever took it, and so do closed directories.
#[test]
fn what_another_user_owns_is_left_to_them_and_told() {
    let Some((_dir, team, [ann, bob])) = two_of_a_team() else { return };
    ann.ok(&team, "init --shared r");
    let main = team.join("r/main");
    let closed = main.join("closed");
    fs_err::create_dir(&closed).expect("made");
    chown(&closed, Some(ann.uid), Some(TEAM)).expect("given");
    ann.writes(&closed.join("file"), "text");
    ann.ok(&main, "snapshot one");
    ann.writes(&main.join("more"), "text");
    ann.ok(&main, "snapshot two");
    let collected = bob.jvs(&main, "--json gc --keep-last 1 --keep-within 0s").run().ok().json();
    let data = &collected["data"];
    assert_eq!(data["removed"].as_array().map(Vec::len), Some(1), "{data}");
    let why = data["left"][0]["why"].as_str().expect("told");
    assert!(why.contains(&format!("belongs to user {}", ann.uid)), "{why}");
    bob.ok(&main, "history");
    bob.ok(&main, "verify --all");
    let freed = ann.jvs(&main, "--json gc --keep-last 1 --keep-within 0s").run().ok().json();
    assert_eq!(freed["data"]["leftovers_removed"], 1, "{freed}");
    ann.ok(&main, "doctor --strict");
}

/// What somebody else, or a mount, keeps in its place stops nothing else.
#[test]
fn one_that_may_not_be_moved_keeps_no_other_from_being_collected() {
    let Some((_dir, team, [ann, _])) = two_of_a_team() else { return };
    ann.ok(&team, "init r");
    let main = team.join("r/main");
    let mut ids = Vec::new();
    for text in ["one", "two", "three", "four"] {
        ann.writes(&main.join("file"), text);
        let taken = ann.ok(&main, "snapshot --json").json();
        ids.push(taken["data"]["snapshot_id"].as_str().expect("an id").to_owned());
    }
    let at = |path: &RepoPath| team.join("r").join(path.as_str());
    let source = ids[0].parse().expect("an id");
    let dir = layout::snapshot(source);
    chown(at(&dir), Some(0), Some(0)).expect("taken");
    // What a restore left is of no use to anybody, and is not ann's either.
    let mut names = at(&layout::register(&WorktreeName::main())).read_dir().expect("listed");
    let state = names.next().expect("a state").expect("listed").file_name();
    let state: State = state.to_str().expect("text").parse().expect("a state");
    let term = Term { token: FencingToken(1), ..state.term() };
    let (worktree, op) = (WorktreeName::main(), OpNonce([7; 8]));
    let left = StagingName::Swap { worktree, term, source, kept: None, op }.path();
    fs_err::create_dir_all(at(&layout::snapshot_payload(&left)).join("full")).expect("made");
    for round in 0..2 {
        let said = ann.jvs(&main, "--json gc --keep-last 1 --keep-within 0s").run().ok().json();
        let data = &said["data"];
        let removed = data["removed"].as_array().map(Vec::len);
        assert_eq!(removed, Some(if round == 0 { 2 } else { 0 }), "{data}");
        assert_eq!(data["left"].as_array().map(Vec::len), Some(2), "{data}");
        for (one, path) in [&left, &dir].into_iter().enumerate() {
            let told = &data["left"][one];
            assert_eq!(told["path"], path.to_string(), "{data}");
            let why = told["why"].as_str().expect("text");
            assert!(why.contains(path.as_str()) && why.contains("belongs to user 0"), "{why}");
        }
        assert_eq!(at(&layout::quarantine()).read_dir().expect("listed").count(), 0);
        ann.ok(&main, "verify --all");
    }
    fs_err::remove_dir_all(at(&left)).expect("removed");
    ann.ok(&main, "doctor --strict");
    chown(team.join("r").join(dir.as_str()), Some(ann.uid), None).expect("given");
    let said = ann.jvs(&main, "--json gc --keep-last 1 --keep-within 0s").run().ok().json();
    assert_eq!(said["data"]["removed"].as_array().map(Vec::len), Some(1), "{said}");
}

/// A list of a directory says who may use what is made in it, and no umask does.
fn lists_alone_let_in(place: &Path) {
    let [ann, bob] = [0, 1].map(|n| Member::new(n, "077"));
    let (uids, room) = ([ann.uid, bob.uid], place.join("room"));
    fs_err::create_dir(&room).expect("made");
    fs_err::set_permissions(&room, Permissions::from_mode(0o700)).expect("closed");
    for uid in uids {
        for list in [&["-m"][..], &["-d", "-m"]] {
            let mut setfacl = std::process::Command::new("setfacl");
            setfacl.args(list).arg(format!("u:{uid}:rwX")).arg(&room);
            jvs_kit::live::process::run(setfacl, std::time::Duration::from_secs(60)).ok();
        }
    }
    ann.ok(&room, "init r");
    let main = room.join("r/main");
    for (n, (me, other)) in [(&ann, &bob), (&bob, &ann)].into_iter().enumerate() {
        let file = main.join(format!("file{n}"));
        me.ok(&main, &format!("run -- cp /etc/hostname {}", file.display()));
        // One that was made elsewhere, and has no list; nor have its copies.
        let elsewhere = place.join("elsewhere");
        me.writes(&elsewhere, "text");
        fs_err::set_permissions(&elsewhere, Permissions::from_mode(0o644)).expect("opened");
        fs_err::rename(elsewhere, main.join(format!("moved{n}"))).expect("moved");
        me.ok(&main, "lock acquire --lease 1h --no-keeper");
        other.jvs(&main, "lock acquire --no-keeper").run().exits(2);
        me.ok(&main, "snapshot mine");
        me.ok(&main, "lock release");
        other.ok(&main, "run -- sh -c echo>>file");
        other.ok(&main, "snapshot other's");
        me.ok(&main, &format!("worktree create w{n}"));
        other.ok(&main, &format!("worktree rename w{n} x{n}"));
        other.ok(&main, &format!("tag @ t{n}"));
        me.ok(&main, &format!("worktree remove x{n} --force"));
        me.ok(&main, "verify --all");
        me.ok(&main, "audit --verify");
        other.ok(&main, "gc --keep-last 1 --keep-within 0s");
        me.ok(&main, "doctor --strict");
    }
    let stranger = Member::new(2, "022");
    stranger.jvs(place, &format!("--repo {} status", room.join("r").display())).run().exits(1);
}

#[test]
fn default_access_lists_decide_who_may_use_what_is_made_on_ext4() {
    if !granted(&[Capability::Root, Capability::Program("setpriv"), Capability::Program("setfacl")])
    {
        return;
    }
    let dir = tempfile::Builder::new().prefix("jvs-lists-").tempdir().expect("a directory");
    let image = dir.path().join("image");
    let disk = jvs_kit::live::mount::MountPoint::create(dir.path().join("disk"));
    let script = format!(
        "truncate -s 128M '{0}' && mkfs.ext4 -q '{0}' && mount -o loop,acl '{0}' '{1}'",
        image.display(),
        disk.path().display()
    );
    if !granted(&[Capability::Loop, Capability::Program("mkfs.ext4")]) {
        return;
    }
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]);
    jvs_kit::live::process::run(shell, std::time::Duration::from_secs(60)).ok();
    for open in [dir.path(), disk.path()] {
        fs_err::set_permissions(open, Permissions::from_mode(0o755)).expect("opened");
    }
    lists_alone_let_in(disk.path());
}

#[test]
fn default_access_lists_decide_who_may_use_what_is_made_on_juicefs() {
    if !granted(&[Capability::Root, Capability::Program("setpriv"), Capability::Program("setfacl")])
    {
        return;
    }
    let Some(mut volume) = Volume::format(Engine::Redis) else { return };
    volume.allow_lists();
    let place = volume.mount(&[]);
    lists_alone_let_in(&place);
}

#[test]
fn a_repository_that_a_stranger_put_above_me_is_not_used_unless_i_name_it() {
    if !granted(&[Capability::Root, Capability::Program("setpriv")]) {
        return;
    }
    let dir = tempfile::Builder::new().prefix("jvs-team-").tempdir().expect("a directory");
    let place = dir.path();
    fs_err::set_permissions(place, Permissions::from_mode(0o1777)).expect("opened");
    let [stranger, me, _] = [0, 1, 2].map(|n| Member::new(n, UMASKS[1]));
    stranger.ok(place, "init planted");
    for name in [layout::CONTROL_DIR, layout::MAIN_DIR] {
        fs_err::rename(place.join("planted").join(name), place.join(name)).expect("planted");
    }
    let work = place.join("work");
    fs_err::create_dir(&work).expect("made");
    chown(&work, Some(me.uid), None).expect("given");
    for words in ["status", "lock acquire --no-keeper", "snapshot mine", "doctor"] {
        let told = me.jvs(&work, &format!("--json {words}")).run().exits(1).json();
        assert_eq!(told["error"]["code"], "E_PERMISSION", "{words}: {told}");
        let message = told["error"]["message"].as_str().expect("text");
        assert!(message.contains(place.to_str().expect("text")), "{words}: {message}");
    }
    stranger.ok(&work, "status");
    let named = format!("--repo {} status", place.display());
    me.ok(&work, &named);
    let list = me.home.home_dir().join(".config/jvs/config.toml");
    fs_err::create_dir_all(list.parent().expect("a directory")).expect("made");
    let text = format!("[safe]\nrepository = [\"{}\"]\n", place.display());
    fs_err::write(&list, text).expect("written");
    chown(&list, Some(me.uid), None).expect("given");
    me.ok(&work, "status");
    // A list that somebody else wrote, or may write, or that is none, says nothing, and
    // that is told.
    let is_refused = |because: &str| {
        let told = me.jvs(&work, "--json status").run().exits(1).json();
        let message = told["error"]["message"].as_str().expect("text");
        assert!(message.contains(because), "{because}: {message}");
    };
    chown(&list, Some(stranger.uid), None).expect("given");
    is_refused("it belongs to another user");
    chown(&list, Some(me.uid), None).expect("given");
    for mode in [0o664, 0o646] {
        fs_err::set_permissions(&list, Permissions::from_mode(mode)).expect("opened");
        is_refused("others may write it");
    }
    fs_err::set_permissions(&list, Permissions::from_mode(0o644)).expect("closed");
    me.ok(&work, "status");
    fs_err::write(&list, "[safe]\nrepository = \"/\"\n").expect("written");
    is_refused("a list of paths");
    // Whoever's home it is may have put anything there.
    fs_err::remove_file(&list).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&list).status();
    assert!(made.expect("mkfifo runs").success());
    is_refused("it is not a regular file");
}

#[test]
fn as_root_with_somebody_s_home_i_make_nothing_there() {
    if !granted(&[Capability::Root]) {
        return;
    }
    let world = crate::world::World::new();
    let (somebody, mine) = (Member::new(0, UMASKS[0]), Home::new());
    let home = somebody.home.home_dir();
    let before = home.read_dir().expect("listed").count();
    let told = mine
        .jvs(["--json", "lock", "acquire", "--no-keeper"])
        .session("ann")
        .cwd(world.root().join("main"))
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("XDG_STATE_HOME")
        .env("HOME", &home)
        .run()
        .exits(1)
        .json();
    assert_eq!(told["error"]["code"], "E_SESSION_INVALID", "{told}");
    assert_eq!(home.read_dir().expect("listed").count(), before);
}

#[test]
fn what_i_may_not_move_by_itself_does_not_leave_my_restore_half_done() {
    let Some((_dir, team, [me, other])) = two_of_a_team() else { return };
    other.ok(&team, "init --shared r");
    let main = team.join("r/main");
    chown(&main, None, Some(TEAM)).expect("given");
    fs_err::set_permissions(&main, Permissions::from_mode(0o2775)).expect("opened");
    // Everybody may write there, and nobody may move the files of others.
    of_the_team(&main.join("sticky"), 0o3775);
    chown(main.join("sticky"), Some(other.uid), None).expect("given");
    let files = ["a", "sticky/b", "z"].map(|name| main.join(name));
    for text in ["old", "new"] {
        files.iter().for_each(|file| other.writes(file, text));
        other.ok(&main, "snapshot");
        other.ok(&main, &format!("tag {text}"));
    }
    let texts = || files.each_ref().map(|file| fs_err::read_to_string(file).expect("read"));

    let some = me.jvs(&main, "restore old --in-place --reason test a sticky/b z").run().exits(1);
    assert!(some.stderr().contains("in the place of sticky/b"), "{some}");
    assert_eq!(texts(), ["new"; 3], "{some}");
    let all = me.jvs(&main, "restore old --in-place --reason test --json").run().ok().json();
    assert!(all["warnings"].to_string().contains("all files are replaced in one step"), "{all}");
    assert_eq!(texts(), ["old"; 3]);
    for member in [&me, &other] {
        member.ok(&main, "run -- true");
    }
}
