//! Room for the events that must be written before anything is done, kept for the day
//! on which the volume is full: a lock that cannot be taken, released or collected
//! under because of a line in a log would keep everybody from making room.
//!
//! One file for all writers. A process that finds the volume full empties it and writes its
//! event into what becomes free; it is filled again when there is room.

use std::io;

use crate::id::OpNonce;
use crate::layout;
use crate::mutation::Rule;
use crate::sabotage;
use crate::store::Store;

/// A few hundred events.
const BYTES: usize = 64 * 1024;

/// Does this answer mean that there is no room?
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Sees to it that there is room to give up.
pub fn keep(store: &dyn Store, op: OpNonce) -> io::Result<()> {
    let there = store.stat(&layout::room()).is_ok_and(|stat| stat.size >= BYTES as u64);
    if there {
        return Ok(());
    }
    // Of bytes that no filesystem stores as a hole, and none makes much smaller.
    let mut bytes = vec![0; BYTES];
    blake3::Hasher::new_derive_key("jvs room v1").finalize_xof().fill(&mut bytes);
    store.write_over(&layout::room_tmp(op), &layout::room(), &bytes)
}

/// Gives the room up. False if there is none.
pub(super) fn give_up(store: &dyn Store) -> bool {
    sabotage!(Rule::RoomIsKept => false);
    let Ok(room) = store.open_writable(&layout::room()) else { return false };
    if room.size().is_ok_and(|size| size == 0) {
        return false;
    }
    // Emptied, not only removed: what is removed may go to a volume's trash, where it
    // takes up as much.
    let emptied = room.truncate(0).and_then(|()| room.sync());
    drop(room);
    store.unlink(&layout::room()).is_ok() || emptied.is_ok()
}
