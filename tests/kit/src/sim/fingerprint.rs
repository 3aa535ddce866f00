//! 128 bits that stand for a value.

use std::hash::{Hash, Hasher};

/// The fingerprint of `value`. Nobody attacks it and at ten million states the
/// chance that any two share all 128 bits is below 10⁻²⁴; so it is fast
/// before all: states are fingerprinted more often than anything else happens.
pub(crate) fn fingerprint(value: &impl Hash) -> u128 {
    let mut lanes = Lanes(0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9);
    value.hash(&mut lanes);
    // Once more, so that the last word written spreads over all bits.
    lanes.write_u64(0x94d0_49bb_1331_11eb);
    u128::from(lanes.0) << 64 | u128::from(lanes.1)
}

/// Two lanes, each of which multiplies every word in and folds the product.
struct Lanes(u64, u64);

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Lanes {
    fn write_u64(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, 0xa076_1d64_78bd_642f).wrapping_add(0x8ebc_6af0_9c88_c6e3);
        self.1 = fold(self.1 ^ word.rotate_left(32), 0xe703_7ed1_a0b4_28db)
            .wrapping_add(0x5899_65cc_7537_4cc3);
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // With the length, so that what follows cannot be taken for a part of it.
        self.write_u64(u64::from_le_bytes(last));
        self.write_u64(bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u128(&mut self, n: u128) {
        self.write_u64(n as u64);
        self.write_u64((n >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn close_values_have_distant_fingerprints() {
        let mut seen = HashSet::new();
        let mut halves = (HashSet::new(), HashSet::new());
        for n in 0..100_000_u64 {
            let mark = fingerprint(&n);
            assert!(seen.insert(mark));
            assert!(halves.0.insert(mark as u64) && halves.1.insert((mark >> 64) as u64));
        }
        for length in 0..2000 {
            assert!(seen.insert(fingerprint(&vec![0_u8; length])), "zeroes of any number differ");
            assert!(seen.insert(fingerprint(&"x".repeat(length))));
        }
        let differ = (fingerprint(&1_u64) ^ fingerprint(&2_u64)).count_ones();
        assert!((32..=96).contains(&differ), "{differ} bits");
    }

    #[test]
    fn parts_cannot_be_pushed_around() {
        assert_ne!(fingerprint(&("ab", "c")), fingerprint(&("a", "bc")));
        assert_ne!(fingerprint(&(1_u64, 2_u64)), fingerprint(&(2_u64, 1_u64)));
        assert_ne!(fingerprint(&[vec![1], vec![]]), fingerprint(&[vec![], vec![1]]));
    }
}
