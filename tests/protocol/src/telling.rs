//! A process that tells what it believes, before each of its calls.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::sync::Mutex;

use jvs_kit::sim::{Ctx, SimStore};
use jvs_lock::{Belief, Lease};
use jvs_repo::store::{DirEntry, EntryStat, RepoPath, Store, StoredFile};

/// Publishes what the process believes, before each of its calls: that is how
/// a belief that outlives its lock comes to light.
pub(crate) struct Told<'c> {
    ctx: &'c Ctx,
    belief: Mutex<RefCell<(Option<Belief>, Option<u64>)>>,
}

impl<'c> Told<'c> {
    pub(crate) fn new(ctx: &'c Ctx) -> Self {
        Told { ctx, belief: Mutex::new(RefCell::new((None, None))) }
    }

    pub(crate) fn believe(&self, lease: &Lease<'_>) {
        self.belief.lock().expect("one thread").borrow_mut().0 = Some(lease.belief());
        self.ctx.claim("believes_in", lease.token().0);
        self.tell_belief();
    }

    pub(crate) fn tell_belief(&self) {
        let guard = self.belief.lock().expect("one thread");
        let (belief, last) = &mut *guard.borrow_mut();
        let until = belief.as_ref().and_then(Belief::until).map(|until| until.0);
        if until != *last {
            *last = until;
            match until {
                Some(until) => self.ctx.claim("believes_until", until),
                None => self.ctx.retract("believes_until"),
            }
        }
    }
}

/// The filesystem of a process that tells what it believes.
pub(crate) struct TellingStore<'c> {
    inner: &'c SimStore,
    pub(crate) told: Told<'c>,
    old_listing: Mutex<OldListing>,
}

/// A cache that answers with what it saw first, so many times.
struct OldListing {
    first: Option<Vec<OsString>>,
    left: u32,
}

impl<'c> TellingStore<'c> {
    /// Showing an old listing at most so many times.
    pub(crate) fn new(ctx: &'c Ctx, old_listings: u32) -> Self {
        TellingStore {
            inner: ctx.store(),
            told: Told::new(ctx),
            old_listing: Mutex::new(OldListing { first: None, left: old_listings }),
        }
    }

    fn old_listing(&self) -> Option<Vec<OsString>> {
        let mut old = self.old_listing.lock().expect("one thread");
        let shown = old.left > 0 && old.first.is_some() && self.told.ctx.pick(2) == 1;
        if !shown {
            return None;
        }
        old.left -= 1;
        self.told.ctx.say("an old listing is shown");
        old.first.clone()
    }
}

macro_rules! telling {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $out:ty;)*) => {
        impl Store for TellingStore<'_> {
            fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
                self.told.tell_belief();
                if let Some(old) = self.old_listing() {
                    return Ok(old);
                }
                let names = self.inner.first_batch(dir)?;
                let mut old = self.old_listing.lock().expect("one thread");
                old.first.get_or_insert_with(|| names.clone());
                Ok(names)
            }

            $(fn $name(&self, $($arg: $kind),*) -> $out {
                self.told.tell_belief();
                self.inner.$name($($arg),*)
            })*
        }
    };
}

telling! {
    list(dir: &RepoPath) -> io::Result<Vec<DirEntry>>;
    stat(path: &RepoPath) -> io::Result<EntryStat>;
    open(path: &RepoPath) -> io::Result<Box<dyn StoredFile>>;
    open_writable(path: &RepoPath) -> io::Result<Box<dyn StoredFile>>;
    create_new(path: &RepoPath) -> io::Result<Box<dyn StoredFile>>;
    rename(from: &RepoPath, to: &RepoPath) -> io::Result<()>;
    rename_new(from: &RepoPath, to: &RepoPath) -> io::Result<()>;
    exchange(a: &RepoPath, b: &RepoPath) -> io::Result<()>;
    unlink(path: &RepoPath) -> io::Result<()>;
    make_dir(path: &RepoPath) -> io::Result<()>;
    remove_dir(path: &RepoPath) -> io::Result<()>;
    sync_dir(dir: &RepoPath) -> io::Result<()>;
}
