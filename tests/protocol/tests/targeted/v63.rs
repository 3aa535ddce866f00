//! The lock as v6.3 has it, to the letter and no more: what its flaws are shown
//! on, so that a regression test says what it is about.

use std::io;

use jvs_repo::clock::Clock;
use jvs_repo::layout;
use jvs_repo::store::{RepoPath, Store};

use crate::world::{LEASE_MS, STEALABLE_MS, main};

/// What `<worktree>.lock` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) token: u64,
    pub(crate) nonce: String,
    pub(crate) expires: u64,
}

impl Record {
    fn to_bytes(&self) -> Vec<u8> {
        // Fixed width, so that one record written over another leaves no rest.
        format!("{:>8} {:>8} {:>16}", self.token, self.nonce, self.expires).into_bytes()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut words = text.split_whitespace();
        let (token, nonce, expires) = (words.next()?, words.next()?, words.next()?);
        let nonce = nonce.to_owned();
        Some(Record { token: token.parse().ok()?, nonce, expires: expires.parse().ok()? })
    }
}

/// Why the lock was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its lease is not over for long enough.
    Live,
    /// Nobody can say whether its lease is over.
    Unreadable,
    /// It is not the caller's.
    NotMine,
    /// The filesystem said no.
    Failed,
}

impl From<io::Error> for Refused {
    fn from(_: io::Error) -> Self {
        Refused::Failed
    }
}

/// One process of v6.3.
pub(crate) struct V63<'s> {
    store: &'s dyn Store,
    clock: &'s dyn Clock,
    me: &'s str,
    fixed_tmp: bool,
    empty_is_stealable: bool,
}

pub(crate) fn lock() -> RepoPath {
    layout::lock_record(&main())
}

pub(crate) fn ready() -> RepoPath {
    layout::ready(&layout::snapshots())
}

impl<'s> V63<'s> {
    pub(crate) fn new(store: &'s dyn Store, clock: &'s dyn Clock, me: &'s str) -> Self {
        V63 { store, clock, me, fixed_tmp: false, empty_is_stealable: false }
    }

    /// Every process uses the same name for its tmp file, as the text has it.
    pub(crate) fn with_fixed_tmp(self) -> Self {
        V63 { fixed_tmp: true, ..self }
    }

    /// A remedy for torn locks that was proposed: an empty one may be stolen.
    pub(crate) fn stealing_empty_locks(self) -> Self {
        V63 { empty_is_stealable: true, ..self }
    }

    pub(crate) fn read(&self) -> Option<Record> {
        Record::parse(&self.store.read(&lock(), 4096).ok()?)
    }

    fn record(&self, token: u64) -> Record {
        let expires = self.clock.now().wall.0 + LEASE_MS;
        Record { token, nonce: self.me.to_owned(), expires }
    }

    /// `O_CREAT|O_EXCL`, then write; if it is there, steal.
    pub(crate) fn acquire(&self) -> Result<u64, Refused> {
        match self.store.create_new(&lock()) {
            Ok(file) => {
                file.write_at(0, &self.record(1).to_bytes())?;
                Ok(1)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.steal(),
            Err(error) => Err(error.into()),
        }
    }

    /// "If rename() succeeds, that stealer wins."
    fn steal(&self) -> Result<u64, Refused> {
        let token = match self.read() {
            Some(seen) if self.clock.now().wall.0 < seen.expires - LEASE_MS + STEALABLE_MS => {
                return Err(Refused::Live);
            }
            Some(seen) => seen.token + 1,
            None if self.empty_is_stealable => 1,
            None => return Err(Refused::Unreadable),
        };
        self.put(token)?;
        Ok(token)
    }

    /// Checks the nonce, then renames a fresh record over.
    pub(crate) fn renew(&self) -> Result<(), Refused> {
        let seen = self.read().filter(|seen| seen.nonce == self.me).ok_or(Refused::NotMine)?;
        self.put(seen.token)
    }

    /// Checks the nonce, then unlinks.
    pub(crate) fn release(&self) -> Result<(), Refused> {
        self.read().filter(|seen| seen.nonce == self.me).ok_or(Refused::NotMine)?;
        Ok(self.store.unlink(&lock())?)
    }

    /// Is the token the one in the record?
    pub(crate) fn validates(&self, token: u64) -> bool {
        self.read().is_some_and(|seen| seen.token == token)
    }

    /// Checks the token, then makes the snapshot visible.
    pub(crate) fn publish(&self, token: u64) -> Result<(), Refused> {
        if !self.validates(token) {
            return Err(Refused::NotMine);
        }
        self.store.create_new(&ready())?;
        Ok(())
    }

    fn put(&self, token: u64) -> Result<(), Refused> {
        let mark = if self.fixed_tmp { "v63" } else { self.me };
        let tmp = layout::lock_tmp(&main(), mark);
        let file = match self.store.open_writable(&tmp) {
            Ok(file) => file,
            Err(_) => self.store.create_new(&tmp)?,
        };
        file.write_at(0, &self.record(token).to_bytes())?;
        Ok(self.store.rename(&tmp, &lock())?)
    }
}
