//! A repository with history, ways to break it, and what doctor says, without
//! what differs from run to run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jvs_kit::live::home::Home;
use jvs_kit::live::process::Outcome;
use jvs_lock::State;
use jvs_lock::queue::Waiter;
use jvs_repo::audit::{Alone, Event, EventKind, EventPhase, Log, WriterId};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{PosixStore, RepoPath, Store};

pub(crate) struct Clinic {
    pub(crate) home: Home,
    /// Gone when this is.
    pub(crate) _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// In memory where that can be: hundreds of repositories are made here, and no
/// power is cut.
pub(crate) fn directory() -> tempfile::TempDir {
    let named = |dir: Option<&str>| {
        let mut builder = tempfile::Builder::new();
        builder.prefix("jvs-doctor-");
        match dir {
            Some(dir) => builder.tempdir_in(dir),
            None => builder.tempdir(),
        }
    };
    named(Some("/dev/shm")).or_else(|_| named(None)).expect("a directory")
}

pub(crate) fn main() -> WorktreeName {
    WorktreeName::main()
}

pub(crate) fn side() -> WorktreeName {
    "side".parse().expect("a name")
}

pub(crate) const OP: OpNonce = OpNonce([7; 8]);

impl Clinic {
    /// `main` with two snapshots, the first tagged `v1`, and `side` without any.
    pub(crate) fn new() -> Self {
        let dir = directory();
        let root = dir.path().canonicalize().expect("it has a path").join("r");
        let clinic = Clinic { home: Home::new(), _dir: dir, root };
        clinic.home.jvs(["init"]).arg(&clinic.root).run().ok();
        for (note, tag) in [("one", Some("v1")), ("two", None)] {
            fs_err::write(clinic.root.join("main").join(note), note).expect("a file");
            let mut args = vec!["snapshot", note];
            args.extend(tag.iter().flat_map(|tag| ["--tag", tag]));
            clinic.jvs(&args).ok();
        }
        clinic.jvs(&["worktree", "create", "side"]).ok();
        clinic
    }

    pub(crate) fn jvs(&self, args: &[&str]) -> Outcome {
        self.home.jvs(args).cwd(self.root.join("main")).run()
    }

    pub(crate) fn store(&self) -> PosixStore {
        PosixStore::open(&self.root).expect("the root is there")
    }

    pub(crate) fn at(&self, path: &RepoPath) -> PathBuf {
        self.root.join(path.as_str())
    }

    pub(crate) fn below(&self, path: &RepoPath, name: &str) -> PathBuf {
        self.at(path).join(name)
    }

    pub(crate) fn write(&self, path: &RepoPath, text: impl AsRef<[u8]>) {
        fs_err::write(self.at(path), text).expect("written");
    }

    pub(crate) fn remove(&self, path: &RepoPath) {
        let at = self.at(path);
        let gone = if at.is_dir() { fs_err::remove_dir_all(at) } else { fs_err::remove_file(at) };
        gone.expect("removed");
    }

    pub(crate) fn make_dir(&self, path: &RepoPath) {
        fs_err::create_dir_all(self.at(path)).expect("made");
    }

    /// Copies a tree to a place that is not there yet.
    pub(crate) fn copy(&self, from: &RepoPath, to: &RepoPath) {
        let mut copy = std::process::Command::new("cp");
        copy.arg("-a").arg(self.at(from)).arg(self.at(to));
        assert!(copy.status().expect("cp runs").success());
    }

    pub(crate) fn symlink(&self, to: &Path, path: &RepoPath) {
        fs_err::os::unix::fs::symlink(to, self.at(path)).expect("linked");
    }

    /// The only entry of a register.
    pub(crate) fn state(&self, worktree: &WorktreeName) -> State {
        let names = self.store().list(&layout::register(worktree)).expect("listed");
        assert_eq!(names.len(), 1, "{names:?}");
        names[0].name.to_str().expect("text").parse().expect("a state")
    }

    /// Moves a register on, as if somebody had done so.
    pub(crate) fn set_state(&self, worktree: &WorktreeName, state: &State) {
        let dir = layout::register(worktree);
        let old = self.below(&dir, &self.state(worktree).to_string());
        self.log(worktree, state);
        fs_err::rename(old, self.below(&dir, &state.to_string())).expect("renamed");
    }

    /// Writes a transition down, if it is one.
    fn log(&self, worktree: &WorktreeName, to: &State) {
        let from = self.state(worktree);
        if !to.follows(&from) {
            return;
        }
        let store = self.store();
        let mut log = Log::new(&store, &Alone, WriterId::derive(b"vandal", 0));
        let event = |phase| Event {
            kind: EventKind::Acquire,
            phase,
            at: "2025-01-01T00:00:00.000Z".into(),
            op: to.op,
            worktree: Some(worktree.clone()),
            session_id: "agent".into(),
            holder_id: "host:ann:1:1".into(),
            uid: None,
            from: Some(from.to_string()),
            to: Some(to.to_string()),
            reason: None,
            details: None,
        };
        for phase in [EventPhase::Intent, EventPhase::Done] {
            log.append(&event(phase)).expect("appended");
        }
    }

    /// The first state of `main` after its first snapshot was taken.
    pub(crate) fn earlier(&self) -> State {
        let logs = jvs_lock::history::read_logs(&self.store()).expect("read");
        let states =
            logs.events.iter().filter_map(|l| l.event.to.as_deref()?.parse::<State>().ok());
        states
            .filter(|state| state.generation.0 == 1 && state.hold == jvs_lock::Hold::Free)
            .min_by_key(|state| state.seq)
            .expect("it was released after the first snapshot")
    }

    pub(crate) fn add_state(&self, worktree: &WorktreeName, state: &State) {
        let entry = self.below(&layout::register(worktree), &state.to_string());
        fs_err::write(entry, "").expect("written");
    }

    pub(crate) fn head(&self) -> SnapshotId {
        self.state(&main()).head.expect("main has snapshots")
    }

    /// The snapshots of `main`, oldest first.
    pub(crate) fn snapshots(&self) -> Vec<SnapshotId> {
        let entries = self.store().list(&layout::snapshots()).expect("listed");
        let mut ids: Vec<SnapshotId> =
            entries.iter().filter_map(|e| layout::id_of_snapshot(e.name.to_str()?)).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn first(&self) -> SnapshotId {
        self.snapshots()[0]
    }

    /// Every log, in the order of their names.
    pub(crate) fn logs(&self) -> Vec<RepoPath> {
        let (writers, _) = jvs_repo::audit::logs(&self.store()).expect("listed");
        writers.iter().map(layout::audit_log).collect()
    }

    /// What doctor says before, while and after it repairs.
    pub(crate) fn story(&self) -> String {
        let mut story = String::new();
        for args in [
            &["doctor"] as &[&str],
            &["doctor", "--repair", "--dry-run"],
            &["doctor", "--repair"],
            &["doctor", "--strict"],
        ] {
            let outcome = self.jvs(args);
            let _ = writeln!(story, "$ jvs {}", args.join(" "));
            story += &self.readable(outcome.stdout());
            let _ = writeln!(story, "= {}", outcome.code());
        }
        story
    }

    /// Repairs a copy of the repository after it was told what would be done.
    #[track_caller]
    pub(crate) fn assert_a_repair_does_what_its_dry_run_said(&self) {
        let copy = self.root.with_file_name("copy");
        let copied = std::process::Command::new("cp").arg("-a").args([&self.root, &copy]).status();
        assert!(copied.expect("cp runs").success());
        let doctor = |more: Option<&str>| {
            let args = ["doctor", "--repair", "--json"].into_iter().chain(more);
            self.home.jvs(args).cwd("/").arg("--repo").arg(&copy).run().json()
        };
        let steps = |of: serde_json::Value| readable(&format!("{of:#}"));
        let (dry, done) = (doctor(Some("--dry-run")), doctor(None));
        assert_eq!(steps(dry["data"]["planned"].clone()), steps(done["data"]["done"].clone()));
        let left = dry["data"]["would_remain"].as_array().map(Vec::len);
        assert_eq!(left == Some(0), done["data"]["healthy"], "{dry:#}\n{done:#}");
        fs_err::remove_dir_all(copy).expect("removed");
    }

    pub(crate) fn readable(&self, text: &str) -> String {
        let root = self.root.to_string_lossy();
        let run = self.home.runtime_dir();
        let text = without_machine(text).replace(&*root, "ROOT");
        readable(&text.replace(&*run.to_string_lossy(), "RUN"))
    }
}

/// Leaves out what this machine's clock and filesystem are like.
pub(crate) fn without_machine(text: &str) -> String {
    let mut out = String::new();
    let mut skip = false;
    for line in text.lines() {
        if skip {
            skip = false;
            continue;
        }
        if line.contains("[D_CLOCK_UNSYNCHRONISED]")
            || line.contains("[D_FS_") && !line.contains("[D_FS_PROMISE]")
        {
            skip = true;
            continue;
        }
        // Only said where nothing steers the clock.
        let line =
            line.replace("; according to the kernel, nothing synchronises this host's clock", "");
        let line = match line.split_once(" warnings, ").or(line.split_once(" warning, ")) {
            Some((before, after)) if line.contains("healthy: ") => {
                let rest = after.split_once(" notice").map_or("", |(_, rest)| rest);
                let word = if before.ends_with(" 1") { "warning" } else { "warnings" };
                format!("{before} {word}{}", rest.trim_start_matches('s'))
            }
            _ => line.clone(),
        };
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Replaces ids, times, processes and lengths of time.
pub(crate) fn readable(text: &str) -> String {
    let is_ticket = |word: &&str| word.parse::<Waiter>().is_ok();
    let tickets: Vec<&str> = text.split(['/', ' ', ':', '\n']).filter(is_ticket).collect();
    let text = &tickets.iter().fold(text.to_owned(), |text, name| text.replace(name, "<ticket>"));
    let mut ids: Vec<String> = Vec::new();
    let mut out = String::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let boundary = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let rest = &text[at..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let hex = rest.bytes().take_while(|b| b"0123456789abcdef".contains(b)).count();
        if boundary && digits == 13 && rest.len() >= 22 && rest[..22].parse::<SnapshotId>().is_ok()
        {
            let id = rest[..22].to_owned();
            let known = ids.iter().position(|seen| *seen == id).unwrap_or_else(|| {
                ids.push(id);
                ids.len() - 1
            });
            let _ = write!(out, "<snapshot {}>", known + 1);
            at += 22;
        } else if boundary && hex >= 16 {
            out += "<hex>";
            at += hex;
        } else if boundary
            && (1..4).contains(&digits)
            && rest[digits..].starts_with('-')
            && rest[digits + 1..].bytes().take_while(u8::is_ascii_hexdigit).count() == 4
        {
            let _ = write!(out, "{}-<salt>", &rest[..digits]);
            at += digits + 5;
        } else if boundary && digits == 13 {
            out += "<ms>";
            at += 13;
        } else {
            let c = rest.chars().next().expect("not at the end");
            out.push(c);
            at += c.len_utf8();
        }
    }
    [
        "ended ",
        "ends in ",
        "expired ",
        "expires in ",
        "expired ",
        "process ",
        ", for ",
        "differ by at least ",
        "renewed ",
        "written ",
    ]
    .iter()
    .fold(out, |text, mark| spans(&text, mark))
}

/// Hides the number after `mark`.
fn spans(text: &str, mark: &str) -> String {
    let mut out = String::new();
    for (n, piece) in text.split(mark).enumerate() {
        if n == 0 {
            out += piece;
            continue;
        }
        let is_span = |c: char| c.is_ascii_digit() || c == '.' || c == ' ' || "dhmins".contains(c);
        let starts = piece.starts_with(|c: char| c.is_ascii_digit());
        let end = piece.find(|c: char| !is_span(c)).unwrap_or(piece.len());
        out += mark;
        match starts {
            true if mark == "process " => {
                let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
                let _ = write!(out, "<pid>{}", &piece[digits..]);
            }
            true => {
                let gap = if piece[..end].ends_with(' ') { " " } else { "" };
                let _ = write!(out, "<span>{gap}{}", &piece[end..]);
            }
            false => out += piece,
        }
    }
    out
}

fn golden_file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor/golden");
    dir.join(format!("{name}.txt"))
}

/// What the test of that name expects doctor to say.
pub(crate) fn golden(name: &str) -> String {
    let file = golden_file(name);
    fs_err::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Compares with a golden file, or renews it if `JVS_BLESS` is set.
#[track_caller]
pub(crate) fn compare(name: &str, actual: &str) {
    let file = golden_file(name);
    if std::env::var_os("JVS_BLESS").is_some() {
        fs_err::write(&file, actual).expect("the golden can be written");
        return;
    }
    let expected = fs_err::read_to_string(&file).unwrap_or_default();
    assert_eq!(expected, actual, "{}: renew it with JVS_BLESS=1, then read it", file.display());
}

#[test]
fn only_what_differs_from_run_to_run_is_hidden() {
    let text = "1794889519131-807d75c3 of 1-58fa: 70d27386aa48514c ended 3 min 4 s ago, life 2\n";
    assert_eq!(readable(text), "<snapshot 1> of 1-<salt>: <hex> ended <span> ago, life 2\n");
}
