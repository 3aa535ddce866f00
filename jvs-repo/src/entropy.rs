//! Randomness as a seam: the simulator replays what it handed out.

/// A source of unpredictable bytes.
pub trait Entropy: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// `getrandom(2)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            match rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty()) {
                Ok(filled) => bytes = &mut bytes[filled..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("the kernel has no randomness to give: {error}"),
            }
        }
    }
}
