//! What is said through a JuiceFS mount's control file to clone a directory, or to
//! remove one.
//!
//! Requests, big-endian. To clone: u32 1006, u32 length of the rest, u64 source inode,
//! u64 its parent's inode, u64 the target's parent's inode, u8 length of the target's
//! name, the name, u16 umask, u8 mode (2: keep owner, mode and times), u8 threads.
//! To remove: u32 1002, u32 length of the rest, u64 inode of the directory that it is in,
//! u8 length of its name, the name, u8 flags (0: to the trash, if there is one), u8
//! threads.
//! Answer: any number of frames of 17 bytes (0xFE, u64 done, u64 total), then one
//! byte, the error number. An empty read means *not yet*. Closing the file cancels
//! what was asked for.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;

use crate::progress::Progress;

const CLONE: u32 = 1006;
const REMOVE: u32 = 1002;
const KEEP_ATTRIBUTES: u8 = 2;
const FRAME: u8 = 0xfe;
const FRAME_BYTES: usize = 17;

/// How long to wait between two looks for an answer, and how long without any
/// progress at all before the mount is given up.
const PAUSE: Duration = Duration::from_micros(300);
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) struct Clone<'n> {
    pub(super) source: u64,
    pub(super) source_parent: u64,
    pub(super) target_parent: u64,
    pub(super) name: &'n [u8],
    pub(super) threads: u8,
}

/// What can be asked for.
pub(super) trait ControlRequest {
    /// As the mount reads it.
    fn bytes(&self) -> Vec<u8>;
}

fn message(number: u32, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32;
    [&number.to_be_bytes(), &length.to_be_bytes(), body].concat()
}

/// A name and everything below it, none of it through a symlink.
pub(super) struct RemoveRequest<'n> {
    pub(super) parent: u64,
    pub(super) name: &'n [u8],
    pub(super) threads: u8,
}

impl ControlRequest for RemoveRequest<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut body = self.parent.to_be_bytes().to_vec();
        body.push(self.name.len() as u8);
        body.extend_from_slice(self.name);
        body.extend_from_slice(&[0, self.threads]);
        message(REMOVE, &body)
    }
}

impl ControlRequest for Clone<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for inode in [self.source, self.source_parent, self.target_parent] {
            body.extend_from_slice(&inode.to_be_bytes());
        }
        body.push(self.name.len() as u8);
        body.extend_from_slice(self.name);
        body.extend_from_slice(&0_u16.to_be_bytes());
        body.extend_from_slice(&[KEEP_ATTRIBUTES, self.threads]);
        message(CLONE, &body)
    }
}

/// Why it was not done.
#[derive(Debug)]
pub(super) enum ControlRefusal {
    /// The server does not understand: another way may work.
    NotSpoken(String),
    /// It tried and failed.
    Failed(Errno),
    /// Progress asked to stop.
    Stopped,
}

/// Asks and waits until it is done. The caller closes the file.
pub(super) fn ask(
    file: impl AsFd,
    request: &impl ControlRequest,
    progress: &dyn Progress,
) -> Result<(), ControlRefusal> {
    let not_spoken = |error: Errno| ControlRefusal::NotSpoken(error.to_string());
    let bytes = request.bytes();
    let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, &bytes));
    if written.map_err(not_spoken)? != bytes.len() {
        return Err(ControlRefusal::NotSpoken("the request was cut short".to_owned()));
    }
    let mut answer = Reply::default();
    let mut idle = Duration::ZERO;
    let mut buffer = [0; 4096];
    while idle < PATIENCE {
        let got = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut buffer[..]))
            .map_err(not_spoken)?;
        for byte in &buffer[..got] {
            match answer.take(*byte) {
                Some(ControlMessage::Progress { fresh }) => progress.advance(fresh, 0),
                Some(ControlMessage::End(0)) => return Ok(()),
                Some(ControlMessage::End(errno)) => return Err(told(errno)),
                None => {}
            }
        }
        if !progress.keep_going() {
            return Err(ControlRefusal::Stopped);
        }
        if got == 0 {
            std::thread::sleep(PAUSE);
            idle += PAUSE;
        } else {
            idle = Duration::ZERO;
        }
    }
    Err(ControlRefusal::Failed(Errno::TIMEDOUT))
}

/// A version that does not know the message says so with one of these.
fn told(errno: u8) -> ControlRefusal {
    match Errno::from_raw_os_error(i32::from(errno)) {
        errno @ (Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            ControlRefusal::NotSpoken(errno.to_string())
        }
        errno => ControlRefusal::Failed(errno),
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ControlMessage {
    /// So many files more.
    Progress {
        fresh: u64,
    },
    End(u8),
}

/// An answer in pieces of any size.
#[derive(Default)]
pub(crate) struct Reply {
    frame: Vec<u8>,
    done: u64,
}

impl Reply {
    pub(crate) fn take(&mut self, byte: u8) -> Option<ControlMessage> {
        if self.frame.is_empty() && byte != FRAME {
            return Some(ControlMessage::End(byte));
        }
        self.frame.push(byte);
        if self.frame.len() < FRAME_BYTES {
            return None;
        }
        let done = self.frame[1..9].iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        self.frame.clear();
        let fresh = done.saturating_sub(self.done);
        self.done = self.done.max(done);
        Some(ControlMessage::Progress { fresh })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_as_the_mount_reads_it() {
        let request = Clone {
            source: 2,
            source_parent: 1,
            target_parent: 0x0102,
            name: b"payload",
            threads: 4,
        };
        let mut expected = vec![0, 0, 3, 238, 0, 0, 0, 36];
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 2]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2]);
        expected.extend_from_slice(b"\x07payload\x00\x00\x02\x04");
        assert_eq!(request.bytes(), expected);
    }

    #[test]
    fn so_is_the_request_to_remove() {
        let request = RemoveRequest { parent: 0x0102, name: b"doomed", threads: 50 };
        let mut expected = vec![0, 0, 3, 234, 0, 0, 0, 17];
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2]);
        expected.extend_from_slice(b"\x06doomed\x00\x32");
        assert_eq!(request.bytes(), expected);
    }

    #[test]
    fn frames_are_progress_and_a_single_byte_is_the_end() {
        let mut answer = Reply::default();
        let mut heard = Vec::new();
        let frame = |done: u8| [&[FRAME][..], &[0; 7], &[done], &[0; 7], &[9]].concat();
        for byte in [frame(3), frame(0xfe), vec![28]].concat() {
            heard.extend(answer.take(byte));
        }
        let progress = |fresh| ControlMessage::Progress { fresh };
        assert_eq!(heard, [progress(3), progress(0xfe - 3), ControlMessage::End(28)]);
    }

    #[test]
    fn a_mount_that_does_not_know_the_message_is_told_from_one_that_failed() {
        assert!(matches!(told(22), ControlRefusal::NotSpoken(_)));
        assert!(matches!(told(28), ControlRefusal::Failed(Errno::NOSPC)));
    }
}
