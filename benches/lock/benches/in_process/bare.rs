//! The system calls that the protocol cannot avoid, and nothing else: no state
//! is parsed, no event composed, nothing decided.
//!
//! Kept open for ever: the directory of locks and the session's own audit log.
//! The register is opened for every READ, because only a fresh descriptor shows
//! what the metadata engine says at that moment; its CAS and its fsync go
//! through that same descriptor.

use std::os::fd::OwnedFd;

use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::PosixStore;
use rustix::fs::{self, AtFlags, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::pwrite;

use crate::session::entry;

/// System calls of an acquire and why each must be.
pub(crate) const ACQUIRE: &[(&str, &str)] = &[
    ("openat2 register", "READ: a fresh descriptor"),
    ("getdents64", "READ: the state is a name"),
    ("pwrite log", "the event, before the CAS"),
    ("fsync log", "no transition without its event, also after a power cut"),
    ("renameat", "the CAS"),
    ("pwrite log", "the outcome"),
    ("openat2 record", "O_CREAT|O_EXCL: nobody else's record is overwritten"),
    ("pwrite record", "the record"),
    ("fsync record", "complete or absent, also after a power cut"),
    ("fsync locks", "the record's name"),
    ("fsync register", "no token is granted twice, also after a power cut"),
    ("close register", "descriptors are not collected"),
];

/// System calls of a release and why each must be.
pub(crate) const RELEASE: &[(&str, &str)] = &[
    ("openat2 register", "READ: a fresh descriptor"),
    ("getdents64", "READ: the state is a name"),
    ("pwrite log", "the event, before the CAS"),
    ("fsync log", "no transition without its event, also after a power cut"),
    ("renameat", "the CAS"),
    ("close register", "descriptors are not collected"),
    ("pwrite log", "the outcome"),
    ("newfstatat record", "is the name still that of my own file?"),
    ("unlinkat record", "a free lock has no record"),
    ("close record", "descriptors are not collected"),
];

/// System calls of a renewal: the issue counts the rename and the record's
/// write; a READ goes before every CAS, and the event is written after it.
pub(crate) const RENEWAL: &[(&str, &str)] = &[
    ("openat2 register", "READ: a fresh descriptor"),
    ("getdents64", "READ: the state is a name"),
    ("renameat", "the CAS"),
    ("close register", "descriptors are not collected"),
    ("fstat record", "does my own file still have a name?"),
    ("pwrite record", "the record, in place"),
    ("pwrite log", "the event"),
];

/// A register, a record and a log of the same sizes as the real ones.
pub(crate) struct Bare {
    locks: OwnedFd,
    register: String,
    record_name: String,
    log: OwnedFd,
    log_end: u64,
    line: Vec<u8>,
    record: Vec<u8>,
    name: String,
    count: u64,
    held: Option<OwnedFd>,
}

impl Bare {
    /// Goes on from a real register in `store`, with lines and records as long
    /// as the real ones.
    pub(crate) fn new(store: &PosixStore, line: usize, record: usize) -> Self {
        let main = WorktreeName::main();
        let register = layout::register(&main);
        let open = |path: &str, flags, mode| {
            fs::open(store.root_path().join(path), flags | OFlags::CLOEXEC, mode).expect("opened")
        };
        let dir = OFlags::DIRECTORY | OFlags::RDONLY;
        let new = OFlags::CREATE | OFlags::RDWR;
        let name = entry(store, &register);
        Bare {
            locks: open(layout::locks().as_str(), dir, Mode::empty()),
            register: register.split().1.to_owned(),
            record_name: layout::lock_record(&main).split().1.to_owned(),
            log: open(&format!("{}/bare", layout::audit()), new, Mode::RUSR | Mode::WUSR),
            log_end: 0,
            line: vec![b'x'; line],
            record: vec![b' '; record],
            name,
            count: 0,
            held: None,
        }
    }

    pub(crate) fn acquire(&mut self) {
        let register = self.read();
        self.append();
        fs::fsync(&self.log).expect("fsync");
        self.swap(&register);
        self.append();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = self.open(&self.record_name, flags, Mode::RUSR | Mode::WUSR);
        pwrite(&file, &self.record, 0).expect("pwrite");
        fs::fsync(&file).expect("fsync");
        fs::fsync(&self.locks).expect("fsync");
        fs::fsync(&register).expect("fsync");
        self.held = Some(file);
    }

    pub(crate) fn release(&mut self) {
        let register = self.read();
        self.append();
        fs::fsync(&self.log).expect("fsync");
        self.swap(&register);
        drop(register);
        self.append();
        let record = self.record_name.as_str();
        fs::statat(&self.locks, record, AtFlags::SYMLINK_NOFOLLOW).expect("stat");
        fs::unlinkat(&self.locks, record, AtFlags::empty()).expect("unlink");
        self.held = None;
    }

    /// One rename and one write in place: what the issue asks of a renewal.
    pub(crate) fn rename_and_write(&mut self, register: &OwnedFd) {
        self.swap(register);
        let held = self.held.as_ref().expect("acquired");
        pwrite(held, &self.record, 0).expect("pwrite");
    }

    pub(crate) fn renew(&mut self) {
        let register = self.read();
        self.swap(&register);
        drop(register);
        let held = self.held.as_ref().expect("acquired");
        fs::fstat(held).expect("fstat");
        pwrite(held, &self.record, 0).expect("pwrite");
        self.append();
    }

    /// The register's directory, fresh.
    pub(crate) fn open_register(&self) -> OwnedFd {
        self.open(&self.register, OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
    }

    fn open(&self, name: &str, flags: OFlags, mode: Mode) -> OwnedFd {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        fs::openat2(&self.locks, name, flags, mode, beneath).expect("openat2")
    }

    fn read(&self) -> OwnedFd {
        let register = self.open_register();
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut batch = RawDir::new(&register, &mut buffer);
        batch.next().expect("an entry").expect("getdents64");
        register
    }

    fn append(&mut self) {
        pwrite(&self.log, &self.line, self.log_end).expect("pwrite");
        self.log_end += self.line.len() as u64;
    }

    fn swap(&mut self, register: &OwnedFd) {
        // As long as the old name and never the same again.
        self.count += 1;
        let count = format!("{:016x}", self.count);
        let next = format!("{}{count}", &self.name[..self.name.len() - count.len()]);
        fs::renameat(register, &self.name, register, &next).expect("renameat");
        self.name = next;
    }
}
