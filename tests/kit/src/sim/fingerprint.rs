//! 128 bits that stand for a value.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Two differently begun SipHashes: at ten million states the chance that any
/// two share all 128 bits is below 10⁻²⁴.
pub(crate) fn fingerprint(value: &impl Hash) -> u128 {
    let lane = |begin: u64| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(begin);
        value.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    lane(0x9e37_79b9_7f4a_7c15) << 64 | lane(0xbf58_476d_1ce4_e5b9)
}
