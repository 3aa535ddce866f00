//! What a holder of the lock does: some operations on the set and the register, each
//! written down before it begins and when it is done.
//!
//! Each reads before it writes, as any program does that relies on a lock, and writes
//! where it has read. Of two who do so at once, one overwrites the other.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::{File, OpenOptions};

use super::history::{Op, line};
use crate::clock::boot_ns;
use crate::dice::Dice;

/// Files that the set is spread over.
const SHARDS: u64 = 16;
/// A number and a line end: a record that was cut short is seen to be.
const RECORD: usize = 16;

/// Does `count` operations as `process` in the files of `dir`, with numbers from `first`
/// on, and writes `history`. In one of fifty it pauses in the middle, for `pause_ms`.
///
/// # Errors
/// If a file cannot be used; what was begun is then unknown.
pub fn batch(
    history: &Path,
    dir: &Path,
    process: u64,
    (first, count): (u64, u64),
    pause_ms: u64,
) -> std::io::Result<()> {
    let mut history = OpenOptions::new().create(true).append(true).open(history)?;
    let mut dice = Dice::new(first, process);
    for number in first..first + count {
        let pause = if dice.hits(1, 50) { pause_ms } else { 0 };
        let planned = match dice.below(10) {
            0 => Op::Write(number),
            1 => Op::Read(0),
            2 => Op::Swap(0, number),
            _ => Op::Add(number),
        };
        history.write_all(line(boot_ns(), process, "invoke", planned).as_bytes())?;
        let done = match planned {
            Op::Add(number) => add(dir, number, pause).map(|()| planned)?,
            Op::Write(value) => write(dir, value, pause).map(|()| planned)?,
            Op::Read(_) => Op::Read(register(dir)?.1),
            Op::Swap(_, to) => {
                let from = register(dir)?.1;
                write(dir, to, pause)?;
                Op::Swap(from, to)
            }
        };
        history.write_all(line(boot_ns(), process, "ok", done).as_bytes())?;
    }
    Ok(())
}

fn open(path: PathBuf) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn record(number: u64) -> Vec<u8> {
    format!("{number:015}\n").into_bytes()
}

/// Adds a number where the set was seen to end.
fn add(dir: &Path, number: u64, pause_ms: u64) -> std::io::Result<()> {
    let file = open(dir.join(format!("set-{}", number % SHARDS)))?;
    let records = file.metadata()?.len() / RECORD as u64;
    std::thread::sleep(Duration::from_millis(pause_ms));
    file.file().write_all_at(&record(number), records * RECORD as u64)?;
    file.sync_all()
}

fn register(dir: &Path) -> std::io::Result<(File, u64)> {
    let file = open(dir.join("register"))?;
    let mut bytes = [b'0'; RECORD];
    if file.metadata()?.len() >= RECORD as u64 {
        file.file().read_exact_at(&mut bytes, 0)?;
    }
    let text = String::from_utf8_lossy(&bytes);
    let value = text.trim().parse().map_err(std::io::Error::other);
    Ok((file, if bytes == [b'0'; RECORD] { 0 } else { value? }))
}

fn write(dir: &Path, value: u64, pause_ms: u64) -> std::io::Result<()> {
    let (file, _) = register(dir)?;
    std::thread::sleep(Duration::from_millis(pause_ms));
    file.file().write_all_at(&record(value), 0)?;
    file.sync_all()
}

/// What is in the set.
pub(super) fn numbers(dir: &Path) -> BTreeSet<u64> {
    let texts = (0..SHARDS).filter_map(|at| fs_err::read(dir.join(format!("set-{at}"))).ok());
    let mut found = BTreeSet::new();
    for text in texts {
        let records = text.chunks_exact(RECORD).map(String::from_utf8_lossy);
        found.extend(records.filter_map(|record| record.trim().parse::<u64>().ok()));
    }
    found
}
