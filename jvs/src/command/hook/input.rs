//! The payload, which whoever started this process writes to its standard input: not
//! waited for longer than the answer may take, and bounded.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use jvs_repo::clock::BootMs;
use rustix::io::Errno;

use crate::alarm::Alarm;
use crate::context::Context;
use crate::harness::SIZE_MAX;

/// Is it a person who would have to type it?
pub(super) fn is_typed() -> bool {
    rustix::termios::isatty(rustix::stdio::stdin())
}

/// All of it; or why there is none.
pub(super) fn read(context: &Context<'_>, by: BootMs) -> Result<Vec<u8>, String> {
    let stuck = |error: std::io::Error| format!("the payload cannot be read: {error}");
    let stdin = rustix::stdio::stdin();
    let alarm = Alarm::new().map_err(stuck)?;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let [ready] = alarm.wait([Some(stdin.as_fd())], Some(by)).map_err(stuck)?;
        if !ready {
            if context.clock().now().boot < by {
                continue;
            }
            return Err("the payload did not end in time".to_owned());
        }
        match rustix::io::read(stdin, &mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(got) => bytes.extend_from_slice(&piece[..got]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(stuck(error.into())),
        }
        if bytes.len() > SIZE_MAX {
            return Err(format!("the payload is larger than {SIZE_MAX} bytes"));
        }
    }
}

/// A path of any bytes.
pub(super) fn as_path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}
