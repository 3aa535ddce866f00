//! The simulated filesystem against the real one, call by call.

use std::io;

use jvs_repo::store::{PosixStore, StoredFile};

use super::*;

const NAMES: [&str; 8] = ["a", "b", "c", "a", "b", "a/b", "b/a", "a/b/c"];

/// What a call came to, without what may differ (inodes, the order of names).
fn outcome<T>(result: io::Result<T>, show: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => show(value),
        Err(error) => error.raw_os_error().map_or_else(
            || format!("{:?}", error.kind()),
            |raw| crate::sim::call::errno_name(Errno::from_raw_os_error(raw)),
        ),
    }
}

fn names(names: impl IntoIterator<Item = std::ffi::OsString>) -> String {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort();
    format!("{names:?}")
}

struct Side<'s> {
    store: &'s dyn Store,
    files: Vec<Box<dyn StoredFile>>,
}

impl Side<'_> {
    fn opened(&mut self, result: io::Result<Box<dyn StoredFile>>) -> String {
        outcome(result, |file| {
            self.files.push(file);
            "opened".to_owned()
        })
    }

    fn act(&mut self, kind: u64, a: &RepoPath, b: &RepoPath, n: u64) -> (String, String) {
        let done = |()| "done".to_owned();
        let store = self.store;
        let file = |side: &Self| (n as usize).checked_rem(side.files.len());
        let (call, result) = match kind {
            0 => ("first_batch", outcome(store.first_batch(a), names)),
            1 => ("list", outcome(store.list(a), |l| names(l.into_iter().map(|e| e.name)))),
            2 => ("stat", outcome(store.stat(a), |s| format!("{:?}", s.kind))),
            3 => ("open", self.opened(store.open(a))),
            4 => ("open_writable", self.opened(store.open_writable(a))),
            5 | 6 => ("create_new", self.opened(store.create_new(a))),
            7 | 8 => ("rename", outcome(store.rename(a, b), done)),
            9 => ("rename_new", outcome(store.rename_new(a, b), done)),
            10 => ("exchange", outcome(store.exchange(a, b), done)),
            11 => ("unlink", outcome(store.unlink(a), done)),
            12 | 13 => ("make_dir", outcome(store.make_dir(a), done)),
            14 => ("remove_dir", outcome(store.remove_dir(a), done)),
            15 => ("sync_dir", outcome(store.sync_dir(a), done)),
            16 => match file(self) {
                None => ("no file", String::new()),
                Some(f) => {
                    let content = n.to_string();
                    ("write_at", outcome(self.files[f].write_at(n % 5, content.as_bytes()), done))
                }
            },
            17 => match file(self) {
                None => ("no file", String::new()),
                Some(f) => {
                    let read = self.files[f].read_range(n % 3, 4);
                    ("read", outcome(read, |bytes| format!("{bytes:?}")))
                }
            },
            18 => match file(self) {
                None => ("no file", String::new()),
                Some(f) => ("size", outcome(self.files[f].size(), |n| n.to_string())),
            },
            19 => match file(self) {
                None => ("no file", String::new()),
                Some(f) => ("links", outcome(self.files[f].links(), |n| n.to_string())),
            },
            _ => match file(self) {
                None => ("no file", String::new()),
                Some(f) => ("sync", outcome(self.files[f].sync(), done)),
            },
        };
        (format!("{call}({a}, {b})"), result)
    }
}

#[test]
fn the_simulated_filesystem_answers_as_the_real_one() {
    let mut failures = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let random = SimEntropy::new(seed);
        let directory = tempfile::tempdir().expect("a directory");
        let posix = PosixStore::open(directory.path()).expect("opened");
        let solo = Solo::new();
        let mut real = Side { store: &posix, files: Vec::new() };
        let mut simulated = Side { store: solo.store(), files: Vec::new() };
        for step in 0..120 {
            let below = |n: u64| random.next() % n;
            let kind = below(21);
            let [a, b] = [0, 1].map(|_| path(NAMES[below(NAMES.len() as u64) as usize]));
            let n = below(1000);
            let expected = real.act(kind, &a, &b, n);
            let got = simulated.act(kind, &a, &b, n);
            assert_eq!(got, expected, "seed {seed}, step {step}: {:#?}", solo.calls());
            if expected.1.starts_with('E') {
                failures.insert(format!(
                    "{} {}",
                    expected.0.split('(').next().unwrap_or(""),
                    expected.1
                ));
            }
        }
    }
    assert!(failures.len() > 25, "the walk must meet most ways to fail: {failures:?}");
}
