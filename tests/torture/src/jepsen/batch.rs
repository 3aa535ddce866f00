//! What a holder of the lock does: operations on the set and the register, each
//! written down before it begins and when it is done.
//!
//! Each reads before it writes, as any program does that relies on a lock, and writes
//! where it has read. Of two who do so at once, one overwrites the other. Additions are
//! handed in to the filesystem by the group, and acknowledged after that.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::{File, OpenOptions};

use super::history::{Op, line};
use crate::clock::{boot_ms, boot_ns};
use crate::dice::Dice;

/// Files that the set is spread over.
const SHARDS: u64 = 16;
/// A number and a line end: a record that was cut short is seen to be.
const RECORD: usize = 16;

/// How many additions are handed in together.
const GROUP: u64 = 100;
/// How long a hold lasts if nobody pauses: well within a lease of which nobody makes more.
const WORK_MS: u64 = 700;

/// Does operations as `process` in the files of `dir`, with at most `count` numbers from
/// `first` on, and writes `history`. In one group of eight it pauses in the middle of an
/// addition, and after one of eight in the middle of a write, for `pause_ms`.
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
    let begun = boot_ms();
    let mut number = first;
    while number + GROUP < first + count && boot_ms() - begun < WORK_MS {
        let numbers = number..number + GROUP;
        let paused = dice.hits(1, 8).then(|| dice.between(number, number + GROUP - 1));
        add(
            &mut history,
            dir,
            numbers,
            |number| {
                if paused == Some(number) { pause_ms } else { 0 }
            },
        )?;
        number += GROUP + 1;
        let pause = if dice.hits(1, 8) { pause_ms } else { 0 };
        let planned = match dice.below(3) {
            0 => Op::Write(number - 1),
            1 => Op::Read(0),
            _ => Op::Swap(0, number - 1),
        };
        history.write_all(line(boot_ns(), process, "invoke", planned).as_bytes())?;
        let done = match planned {
            Op::Read(_) | Op::Add(_) => Op::Read(register(dir)?.1),
            Op::Write(value) => write(dir, value, pause).map(|_| planned)?,
            Op::Swap(_, to) => Op::Swap(write(dir, to, pause)?, to),
        };
        history.write_all(line(boot_ns(), process, "ok", done).as_bytes())?;
    }
    Ok(())
}

pub(super) fn open(path: PathBuf) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn record(number: u64) -> Vec<u8> {
    format!("{number:015}\n").into_bytes()
}

/// Adds numbers, each where the set was seen to end just then. Each is a process of its own in
/// the history: all of them are acknowledged at once.
fn add(
    history: &mut File,
    dir: &Path,
    numbers: std::ops::Range<u64>,
    pause_ms: impl Fn(u64) -> u64,
) -> std::io::Result<()> {
    let lines = |kind: &str| -> String {
        numbers.clone().map(|number| line(boot_ns(), number, kind, Op::Add(number))).collect()
    };
    let file = open(dir.join(format!("set-{}", numbers.start / GROUP % SHARDS)))?;
    history.write_all(lines("invoke").as_bytes())?;
    add_to(&file, numbers.clone(), pause_ms)?;
    history.write_all(lines("ok").as_bytes())
}

/// Adds numbers to a file of the set, and hands them in.
pub(super) fn add_to(
    file: &File,
    numbers: impl IntoIterator<Item = u64>,
    pause_ms: impl Fn(u64) -> u64,
) -> std::io::Result<()> {
    for number in numbers {
        let records = file.metadata()?.len() / RECORD as u64;
        std::thread::sleep(Duration::from_millis(pause_ms(number)));
        file.file().write_all_at(&record(number), records * RECORD as u64)?;
    }
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

/// Writes the register, and answers what was there.
fn write(dir: &Path, value: u64, pause_ms: u64) -> std::io::Result<u64> {
    let (file, before) = register(dir)?;
    std::thread::sleep(Duration::from_millis(pause_ms));
    file.file().write_all_at(&record(value), 0)?;
    file.sync_all()?;
    Ok(before)
}

/// What is in the set.
pub(super) fn numbers(dir: &Path) -> BTreeSet<u64> {
    let texts = (0..SHARDS).filter_map(|at| fs_err::read(dir.join(format!("set-{at}"))).ok());
    texts.flat_map(|text| numbers_in(&text)).collect()
}

/// What a file of the set has.
pub(super) fn numbers_in(text: &[u8]) -> BTreeSet<u64> {
    let records = text.chunks_exact(RECORD).map(String::from_utf8_lossy);
    records.filter_map(|record| record.trim().parse::<u64>().ok()).collect()
}
