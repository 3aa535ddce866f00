//! The promises, each tested by trying to catch the filesystem breaking it.

use std::io;
use std::sync::RwLock;

use super::{ProbeError, ProbeFinding, ProbeSeverity, Promise, Subject};
use crate::code::{Code, code_of_io};
use crate::store::{RepoPath, Store};

/// How many race for one file at once.
const CONTENDERS: usize = 4;
/// How often they race.
const ROUNDS: usize = 16;
/// Longest name of a register's entry.
const NAME_BYTES: usize = 200;

const ELSEWHERE: &str = "make the repository on another filesystem: ext4, xfs, btrfs, tmpfs, \
                         overlayfs and JuiceFS 1.4.2 are known to work";

/// What a test says: the promise held, or this is how it did not.
type Tested = Result<Vec<ProbeFinding>, ProbeError>;

/// Tests every promise in a directory of its own below `scratch`.
pub(super) fn test_all(store: &dyn Store, scratch: &RepoPath) -> Tested {
    type Test = fn(&dyn Store, &RepoPath) -> Tested;
    const TESTS: &[(&str, Test)] = &[
        ("rename", rename),
        ("race", rename_race),
        ("excl", exclusive_create),
        ("new", rename_new),
        ("dirs", directory_rename),
        ("sync", sync),
        ("names", long_names),
    ];
    let mut findings = Vec::new();
    for (name, test) in TESTS {
        let dir = scratch.plain_child(name);
        store.make_dir(&dir).map_err(ProbeError::while_doing("make a directory"))?;
        findings.extend(test(store, &dir)?);
    }
    Ok(findings)
}

fn broken(promise: Promise, message: impl Into<String>) -> ProbeFinding {
    ProbeFinding {
        severity: ProbeSeverity::Unsafe,
        subject: Subject::Promise(promise),
        message: message.into(),
        remedy: ELSEWHERE.to_owned(),
    }
}

fn lost_answer() -> ProbeFinding {
    ProbeFinding {
        severity: ProbeSeverity::Warning,
        subject: Subject::Promise(Promise::LostAnswer),
        message: "a rename was applied although the answer was an error; locks stay correct, but \
                  operations take longer"
            .to_owned(),
        remedy: "look for time-outs and retries in the log of the metadata engine".to_owned(),
    }
}

fn create(store: &dyn Store, path: &RepoPath) -> Result<(), ProbeError> {
    store.create_new(path).map(drop).map_err(ProbeError::while_doing("create a file"))
}

fn names(store: &dyn Store, dir: &RepoPath) -> Result<Vec<String>, ProbeError> {
    let batch = store.first_batch(dir).map_err(ProbeError::while_doing("list a directory"))?;
    Ok(batch.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Errors by which a filesystem says that it does not know such a call.
fn is_unsupported(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOTTY))
        || code_of_io(error) == Code::UnsafeFilesystem
}

/// One after the other: a source can be renamed once, and a listing shows the
/// new name and nothing else. This is the register's compare-and-swap.
fn rename(store: &dyn Store, dir: &RepoPath) -> Tested {
    let (a, b, c) = (dir.plain_child("a"), dir.plain_child("b"), dir.plain_child("c"));
    create(store, &a)?;
    // What a cache keeps now, it would show again below.
    names(store, dir)?;
    let mut findings = Vec::new();
    match store.rename(&a, &b) {
        Ok(()) => {}
        Err(error) => match names(store, dir)?.as_slice() {
            [name] if name == "b" => findings.push(lost_answer()),
            _ => return Err(ProbeError::while_doing("rename a file")(error)),
        },
    }
    match store.rename(&a, &c) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(ProbeError::while_doing("rename a file")(error)),
        Ok(()) => findings.push(broken(
            Promise::Rename,
            "a file could be renamed twice from the same name, so two sessions could both take \
             the lock",
        )),
    }
    if store.stat(&a).is_ok() {
        findings.push(broken(Promise::Rename, "a renamed file is still there under its old name"));
    }
    if findings.iter().any(|finding| finding.severity == ProbeSeverity::Unsafe) {
        return Ok(findings);
    }
    let shown = names(store, dir)?;
    if shown != ["b"] {
        findings.push(broken(
            Promise::Listing,
            format!(
                "after a rename the directory should show exactly one name and shows {shown:?}, \
                 so nobody could tell who holds the lock"
            ),
        ));
    }
    Ok(findings)
}

/// All at once: of several who rename the same source, exactly one succeeds.
fn rename_race(store: &dyn Store, dir: &RepoPath) -> Tested {
    let mut source = "start".to_owned();
    create(store, &dir.plain_child(&source))?;
    for round in 0..ROUNDS {
        let target = |contender: usize| format!("{round}-{contender}");
        let from = dir.plain_child(&source);
        let answers = race(|contender| store.rename(&from, &dir.plain_child(&target(contender))));
        let winners: Vec<_> = (0..CONTENDERS).filter(|n| answers[*n].is_ok()).collect();
        let shown = names(store, dir)?;
        match (winners.as_slice(), shown.as_slice()) {
            ([winner], [name]) if *name == target(*winner) => source = name.clone(),
            ([_, _, ..], _) => {
                return Ok(vec![broken(
                    Promise::RenameRace,
                    format!(
                        "{} of {CONTENDERS} who renamed the same file at once were told that they \
                         succeeded, so as many would hold one lock",
                        winners.len()
                    ),
                )]);
            }
            ([], [name]) if *name != source => return Ok(vec![lost_answer()]),
            ([], _) => {
                let refusal = answers.into_iter().find_map(|answer| {
                    answer.err().filter(|error| error.kind() != io::ErrorKind::NotFound)
                });
                return match refusal {
                    Some(error) => Err(ProbeError::while_doing("rename a file")(error)),
                    None => Ok(vec![broken(
                        Promise::RenameRace,
                        "an existing file cannot be renamed: it is reported as missing, so a \
                         lock could not be taken any more",
                    )]),
                };
            }
            ([_], _) => {
                return Ok(vec![broken(
                    Promise::Listing,
                    format!(
                        "after a rename that succeeded the directory shows {shown:?}, so the \
                         winner would not know that it holds the lock"
                    ),
                )]);
            }
        }
    }
    Ok(Vec::new())
}

/// Runs `attempt` in all contenders, as close to at once as threads can be. Where no
/// thread is left for one, it comes when it comes.
fn race(attempt: impl Fn(usize) -> io::Result<()> + Sync) -> Vec<io::Result<()>> {
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let closed = gate.write();
        let contenders: Vec<_> = (0..CONTENDERS)
            .map(|contender| {
                let (gate, attempt) = (&gate, &attempt);
                std::thread::Builder::new().spawn_scoped(scope, move || {
                    drop(gate.read());
                    attempt(contender)
                })
            })
            .collect();
        drop(closed);
        let died = || io::Error::other("a contender died");
        contenders
            .into_iter()
            .enumerate()
            .map(|(contender, started)| match started {
                Ok(started) => started.join().unwrap_or_else(|_| Err(died())),
                Err(_) => attempt(contender),
            })
            .collect()
    })
}

/// `O_EXCL`: of several who create one file, exactly one does.
fn exclusive_create(store: &dyn Store, dir: &RepoPath) -> Tested {
    for round in 0..ROUNDS {
        let path = dir.plain_child(&round.to_string());
        let answers = race(|_| store.create_new(&path).map(drop));
        let winners = answers.iter().filter(|answer| answer.is_ok()).count();
        if winners > 1 || store.create_new(&path).is_ok() {
            return Ok(vec![broken(
                Promise::ExclusiveCreate,
                "an existing file was created again (O_EXCL is not obeyed), so two could \
                 write what only one may",
            )]);
        }
        if winners == 0 && store.stat(&path).is_err() {
            let error = answers.into_iter().find_map(Result::err);
            let error = error.unwrap_or_else(|| io::ErrorKind::NotFound.into());
            return Err(ProbeError::while_doing("create a file")(error));
        }
    }
    Ok(Vec::new())
}

/// `RENAME_NOREPLACE`: how every complete-or-absent file comes into being.
fn rename_new(store: &dyn Store, dir: &RepoPath) -> Tested {
    let (a, b) = (dir.plain_child("a"), dir.plain_child("b"));
    create(store, &a)?;
    create(store, &b)?;
    match store.rename_new(&a, &b) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if is_unsupported(&error) => {
            return Ok(vec![broken(
                Promise::RenameNew,
                "it cannot rename without replacing (RENAME_NOREPLACE), so one session could \
                 overwrite what another has just made",
            )]);
        }
        Err(error) => {
            return Err(ProbeError::while_doing("rename without replacing")(error));
        }
        Ok(()) => {
            return Ok(vec![broken(
                Promise::RenameNew,
                "a rename that must not replace anything (RENAME_NOREPLACE) replaced a file",
            )]);
        }
    }
    let c = dir.plain_child("c");
    store.rename_new(&a, &c).map_err(ProbeError::while_doing("rename without replacing"))?;
    Ok(Vec::new())
}

/// A register is born by renaming a directory with its entry into place, which
/// must fail if one is there already.
fn directory_rename(store: &dyn Store, dir: &RepoPath) -> Tested {
    let (mine, theirs) = (dir.plain_child("mine"), dir.plain_child("theirs"));
    for each in [&mine, &theirs] {
        store.make_dir(each).map_err(ProbeError::while_doing("make a directory"))?;
        create(store, &each.plain_child("entry"))?;
    }
    match store.rename(&mine, &theirs) {
        Ok(()) => Ok(vec![broken(
            Promise::DirectoryRename,
            "a directory was renamed over one that is not empty, so a lock could be replaced by \
             a fresh one",
        )]),
        Err(_) => {
            let free = dir.plain_child("free");
            store.rename(&mine, &free).map_err(ProbeError::while_doing("rename a directory"))?;
            Ok(Vec::new())
        }
    }
}

/// What is committed must survive a power cut.
fn sync(store: &dyn Store, dir: &RepoPath) -> Tested {
    let path = dir.plain_child("file");
    let file = store.create_new(&path).map_err(ProbeError::while_doing("create a file"))?;
    file.write_at(0, b"probe").map_err(ProbeError::while_doing("write a file"))?;
    let mut findings = Vec::new();
    for (promise, what, answer) in [
        (Promise::FsyncFile, "a file", file.sync()),
        (Promise::FsyncDirectory, "a directory", store.sync_dir(dir)),
    ] {
        match answer {
            Ok(()) => {}
            Err(error) if is_unsupported(&error) => findings.push(broken(
                promise,
                format!(
                    "{what} cannot be flushed to disk (fsync: {error}), so a power cut could \
                     undo a commit that was reported"
                ),
            )),
            Err(error) => return Err(ProbeError::while_doing("flush to disk")(error)),
        }
    }
    Ok(findings)
}

/// The state of a lock is a name.
fn long_names(store: &dyn Store, dir: &RepoPath) -> Tested {
    let refused = |why: String| {
        Ok(vec![broken(
            Promise::LongNames,
            format!(
                "names of {NAME_BYTES} bytes, in which the state of a lock is kept, are not \
                 possible: {why}"
            ),
        )])
    };
    let long = "n".repeat(NAME_BYTES);
    match store.create_new(&dir.plain_child(&long)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename || is_unsupported(&error) => {
            return refused(error.to_string());
        }
        Err(error) => return Err(ProbeError::while_doing("create a file with a long name")(error)),
    }
    let shown = names(store, dir)?;
    if shown != [long] {
        let lengths: Vec<_> = shown.iter().map(String::len).collect();
        return refused(format!("the directory shows names of {lengths:?} bytes"));
    }
    Ok(Vec::new())
}
