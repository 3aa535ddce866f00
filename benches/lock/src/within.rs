//! In one process: the library against the bare system calls.

use std::path::Path;

use crate::race::{Lane, race, say};
use jvs_lock::{Lease, Locks, Want};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;

use crate::bare::{ACQUIRE, Bare, RELEASE, RENEWAL};
use crate::session::{LEASE_MS, locks, log_size, skeleton};

fn acquired<'r>(locks: &Locks<'r>) -> Lease<'r> {
    locks.acquire(&WorktreeName::main(), Want::lease(LEASE_MS)).expect("a free lock")
}

pub(crate) fn acquire_and_release(dir: &Path) {
    let (store, bare_store) = (skeleton(&dir.join("ours")), skeleton(&dir.join("bare")));
    let ours = locks(&store);
    drop(locks(&bare_store));
    let before = log_size(&store);
    let lease = acquired(&ours);
    let record = store.stat(&layout::lock_record(&WorktreeName::main())).expect("a record").size;
    lease.release().expect("released");
    let line = (log_size(&store) - before) / 4;
    let mut bare = Bare::new(&bare_store, size(line), size(record));

    say(&format!("\nan event is {line} bytes, a record {record} bytes"));
    list("acquire", ACQUIRE);
    list("release", RELEASE);
    race(
        "acquire + release in one process",
        1000,
        vec![
            Lane::new("bare system calls", || {
                bare.acquire();
                bare.release();
            }),
            Lane::new("jvs-lock", || acquired(&ours).release().expect("released")).at_most(1.5),
        ],
    );
}

pub(crate) fn renewal(dir: &Path) {
    let (store, bare_store) = (skeleton(&dir.join("ours-r")), skeleton(&dir.join("bare-r")));
    let least_store = skeleton(&dir.join("least-r"));
    let ours = locks(&store);
    drop((locks(&bare_store), locks(&least_store)));
    let mut lease = acquired(&ours);
    let record = store.stat(&layout::lock_record(&WorktreeName::main())).expect("a record").size;
    let before = log_size(&store);
    lease.renew().expect("renewed");
    let line = log_size(&store) - before;
    let mut bare = Bare::new(&bare_store, size(line), size(record));
    let mut least = Bare::new(&least_store, size(line), size(record));
    bare.acquire();
    least.acquire();
    let register = least.open_register();

    list("renewal", RENEWAL);
    race(
        "renewal in one process",
        4000,
        vec![
            Lane::new("bare system calls", || bare.renew()),
            Lane::new("one rename, one pwrite", || least.rename_and_write(&register)),
            Lane::new("jvs-lock", || lease.renew().expect("renewed")),
        ],
    );
}

fn list(what: &str, calls: &[(&str, &str)]) {
    let fsyncs = calls.iter().filter(|(call, _)| call.starts_with("fsync")).count();
    say(&format!("{what} cannot avoid {} system calls, {fsyncs} of them fsync:", calls.len()));
    for (call, why) in calls {
        say(&format!("  {call:18} {why}"));
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a small file")
}
