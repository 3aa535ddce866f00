//! A program that keeps a file open and overwrites it in place when it is told to,
//! in one of the ways in which programs do.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::capability::{Capability, granted};
use super::process::{Running, eventually};

const DEADLINE: Duration = Duration::from_secs(30);

/// Obeys files in a directory: the n-th says which byte, and is answered by one
/// more.
const PROGRAM: &str = r"
import mmap, os, sys, time
way, path, control = sys.argv[1:]
fd = os.open(path, os.O_RDWR)
size = os.fstat(fd).st_size
view = mmap.mmap(fd, size) if way.startswith('mapped') else None
open(control + '/ready', 'w').close()
n = 0
while True:
    try:
        byte = open(f'{control}/{n}', 'rb').read()
    except FileNotFoundError:
        time.sleep(0.002)
        continue
    if view:
        start = size - 4096 if way == 'mapped-end' else 0
        view[start:size] = byte * (size - start)
    else:
        os.pwrite(fd, byte * size, 0)
    if way == 'synced':
        os.fdatasync(fd)
    open(f'{control}/{n}.done', 'w').close()
    n += 1
";

/// How a file is overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By stores into a shared mapping.
    Mapped,
    /// As before, but only the last page of it.
    MappedEnd,
    /// By `write`, and nothing after it.
    Written,
    /// By `write` and `fdatasync`, as databases do.
    Synced,
}

/// The program, running. Dropped, it is killed.
#[derive(Debug)]
pub struct Writer {
    process: Running,
    control: TempDir,
    told: u32,
}

impl Writer {
    /// Opens the file at `path`, or skips the test.
    #[track_caller]
    pub fn open(path: &Path, way: Way) -> Option<Self> {
        if !granted(&[Capability::Program("python3")]) {
            return None;
        }
        let control = tempfile::tempdir().expect("a directory");
        let way = match way {
            Way::Mapped => "mapped",
            Way::MappedEnd => "mapped-end",
            Way::Written => "written",
            Way::Synced => "synced",
        };
        let mut command = Command::new("python3");
        command.args(["-c", PROGRAM, way]).arg(path).arg(control.path());
        let mut writer = Writer { process: Running::start(command), control, told: 0 };
        writer.wait_for("ready");
        Some(writer)
    }

    /// Overwrites the file, or its end, with `byte`, and goes on keeping it open.
    #[track_caller]
    pub fn overwrite(&mut self, byte: u8) {
        let (new, name) = (self.control.path().join("new"), self.told.to_string());
        fs_err::write(&new, [byte]).expect("a word to the writer");
        fs_err::rename(&new, self.control.path().join(&name)).expect("a word to the writer");
        self.told += 1;
        self.wait_for(&format!("{name}.done"));
    }

    #[track_caller]
    fn wait_for(&mut self, name: &str) {
        let path = self.control.path().join(name);
        eventually("the writer answers", DEADLINE, || {
            assert!(!self.process.ended(), "the writer ended: {}", self.process.said());
            path.exists()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_overwritten_in_every_way() {
        for way in [Way::Mapped, Way::Written, Way::Synced] {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("file");
            fs_err::write(&path, "12345").expect("a file");
            let Some(mut writer) = Writer::open(&path, way) else { return };
            for byte in [b'a', b'b'] {
                writer.overwrite(byte);
                assert_eq!(fs_err::read(&path).expect("the file"), [byte; 5], "{way:?}");
            }
        }
    }
}
