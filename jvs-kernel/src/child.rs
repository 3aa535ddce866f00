//! What a child does between fork and exec.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

const DIGITS: usize = 10;
/// Longer labels are cut off.
const LABEL: usize = 32;

/// Makes the child of `command` write `label`, a blank, its pid in ten digits and
/// the end of the line to `to` before it becomes the program: whoever reads knows
/// the child before it can do anything.
pub fn say_pid_before_exec(command: &mut Command, to: OwnedFd, label: &'static str) {
    // SAFETY: between fork and exec only what is safe in a signal handler may be
    // called. `say_pid` asks for its pid and writes from its stack; it allocates
    // nothing, takes no lock and cannot panic.
    unsafe {
        command.pre_exec(move || say_pid(&to, label));
    }
}

fn say_pid(to: &OwnedFd, label: &str) -> io::Result<()> {
    let mut line = [0; LABEL + DIGITS + 2];
    let mut pid = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (pid % 10) as u8;
        pid /= 10;
    }
    let parts = label.bytes().take(LABEL).chain([b' ']).chain(digits).chain([b'\n']);
    let mut length = 0;
    for (place, byte) in line.iter_mut().zip(parts) {
        *place = byte;
        length += 1;
    }
    rustix::io::write(to, line.get(..length).unwrap_or_default())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_child_says_who_it_is_before_it_says_anything_else() {
        let (read, write) = io::pipe().expect("a pipe");
        let mut command = Command::new("sh");
        command.args(["-c", "echo program"]).stdout(write.try_clone().expect("another"));
        say_pid_before_exec(&mut command, write.into(), "label");
        let mut child = command.spawn().expect("started");
        drop(command);
        child.wait().expect("ended");
        let mut said = String::new();
        { read }.read_to_string(&mut said).expect("read");
        assert_eq!(said, format!("label {:010}\nprogram\n", child.id()));
    }
}
