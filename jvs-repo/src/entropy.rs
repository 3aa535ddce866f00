//! Randomness as a seam: the simulator replays what it handed out.

use std::io;

/// A source of unpredictable bytes.
pub trait Entropy: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// `getrandom(2)`, or `/dev/urandom` where a sandbox forbids that call.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl SystemEntropy {
    /// Fills `bytes`, or says why there is no randomness to be had.
    pub fn try_fill(self, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty()) {
                Ok(filled) => bytes = &mut bytes[filled..],
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return from_device(bytes),
            }
        }
        Ok(())
    }
}

fn from_device(mut bytes: &mut [u8]) -> io::Result<()> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/urandom", flags, rustix::fs::Mode::empty())?;
    while !bytes.is_empty() {
        match rustix::io::read(&device, &mut *bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(filled) => bytes = &mut bytes[filled..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        // A process that starts asks once whether there is any.
        self.try_fill(bytes).expect("the kernel gave randomness before");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_gives_what_the_call_would() {
        let (mut one, mut other) = ([0; 32], [0; 32]);
        from_device(&mut one).expect("readable");
        from_device(&mut other).expect("readable");
        assert_ne!(one, other);
    }
}
