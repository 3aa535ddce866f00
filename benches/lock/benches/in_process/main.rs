//! In one process: the library against the bare system calls that it cannot
//! avoid.
//!
//! `cargo bench -p jvs-bench-lock` measures and compares with the run before;
//! under `cargo test` every routine runs once. The figures and what they mean are
//! in `README.md`.

mod bare;
mod session;

use std::io::{self, Write};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use jvs_lock::{Lease, Locks, Want};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;

use crate::bare::{ACQUIRE, Bare, RELEASE, RENEWAL};
use crate::session::{LEASE_MS, locks, log_size, skeleton};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    acquire_and_release(&mut criterion);
    renewal(&mut criterion);
    criterion.final_summary();
}

fn acquired<'r>(locks: &Locks<'r>) -> Lease<'r> {
    locks.acquire(&WorktreeName::main(), Want::lease(LEASE_MS)).expect("a free lock")
}

fn acquire_and_release(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, bare_store) =
        (skeleton(&dir.path().join("ours")), skeleton(&dir.path().join("bare")));
    let ours = locks(&store);
    drop(locks(&bare_store));
    let before = log_size(&store);
    let lease = acquired(&ours);
    let record = store.stat(&layout::lock_record(&WorktreeName::main())).expect("a record").size;
    lease.release().expect("released");
    let line = (log_size(&store) - before) / 4;
    let mut bare = Bare::new(&bare_store, size(line), size(record));

    list("acquire", ACQUIRE);
    list("release", RELEASE);
    let mut group = group(criterion, "acquire + release", Duration::from_secs(5));
    group.bench_function("bare system calls", |bencher| {
        bencher.iter(|| {
            bare.acquire();
            bare.release();
        });
    });
    group.bench_function("jvs-lock", |bencher| {
        bencher.iter(|| acquired(&ours).release().expect("released"));
    });
}

fn renewal(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let [store, bare_store, least_store] =
        ["ours", "bare", "least"].map(|name| skeleton(&dir.path().join(name)));
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
    // Each renewal leaves a line in the log: a second is some ten megabytes.
    let mut group = group(criterion, "renewal", Duration::from_secs(1));
    group.bench_function("bare system calls", |bencher| bencher.iter(|| bare.renew()));
    group.bench_function("one rename, one pwrite", |bencher| {
        bencher.iter(|| least.rename_and_write(&register));
    });
    group.bench_function("jvs-lock", |bencher| {
        bencher.iter(|| lease.renew().expect("renewed"));
    });
}

fn group<'c>(
    criterion: &'c mut Criterion,
    name: &str,
    measured: Duration,
) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.measurement_time(measured).warm_up_time(Duration::from_millis(500));
    group
}

/// On standard error: what lists the benches reads standard output.
fn list(what: &str, calls: &[(&str, &str)]) {
    let fsyncs = calls.iter().filter(|(call, _)| call.starts_with("fsync")).count();
    let mut text =
        format!("{what} cannot avoid {} system calls, {fsyncs} of them fsync:\n", calls.len());
    for (call, why) in calls {
        text += &format!("  {call:18} {why}\n");
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a small file")
}
