//! The simulator tried on toys whose behaviour is known.

mod caches;
mod denials;
mod durability;
mod faults;
mod fidelity;
mod listings;
mod schedules;
mod solo;
mod time;

use jvs_repo::store::{RepoPath, Store};

use super::*;

fn path(text: &str) -> RepoPath {
    text.split('/').fold(RepoPath::root(), |p, c| p.child(c).expect("plain"))
}

fn create(store: &dyn Store, name: &str, content: &[u8]) {
    let file = store.create_new(&path(name)).expect("not there yet");
    file.write_at(0, content).expect("written");
}

/// A number in a file; `None` if the file is not there.
fn number_in(store: &dyn Store, name: &str) -> Option<u64> {
    let bytes = store.read(&path(name), 100).ok()?;
    String::from_utf8(bytes).ok()?.parse().ok()
}
