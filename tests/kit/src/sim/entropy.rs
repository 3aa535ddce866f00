//! Randomness that is the same at every replay and different for every process.

use std::sync::atomic::{AtomicU64, Ordering};

use jvs_repo::entropy::Entropy;

/// A SplitMix64 stream.
#[derive(Debug)]
pub struct SimEntropy {
    state: AtomicU64,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SimEntropy {
    /// The stream that `seed` begins.
    pub fn new(seed: u64) -> Self {
        SimEntropy { state: AtomicU64::new(mix(seed.wrapping_add(1).wrapping_mul(STEP))) }
    }

    /// The next 64 bits.
    pub fn next(&self) -> u64 {
        mix(self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Entropy for SimEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}
