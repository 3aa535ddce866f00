//! Numbers of any size in as few bytes as they need, with one spelling each.

/// No `u64` takes more bytes than this.
pub const MAX_BYTES: usize = 10;

/// Appends `value`, seven bits a byte, lowest first.
pub fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Folds the sign into the lowest bit, so that small negative numbers stay small.
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
pub const fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Takes the bytes of one number until it is complete.
#[derive(Default)]
pub struct Decoder {
    value: u64,
    bytes: usize,
}

/// More than 64 bits, or a longer spelling than necessary.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

impl Decoder {
    /// The number, once `byte` was its last.
    pub fn take(&mut self, byte: u8) -> Result<Option<u64>, Malformed> {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * self.bytes;
        if self.bytes == MAX_BYTES || (self.bytes == MAX_BYTES - 1 && bits > 1) {
            return Err(Malformed);
        }
        self.value |= bits << shift;
        self.bytes += 1;
        if byte & 0x80 != 0 {
            return Ok(None);
        }
        if byte == 0 && self.bytes > 1 {
            return Err(Malformed);
        }
        Ok(Some(self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Result<Option<u64>, Malformed> {
        let mut decoder = Decoder::default();
        for byte in bytes {
            if let Some(value) = decoder.take(*byte)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    #[test]
    fn every_number_comes_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            push(&mut bytes, value);
            assert_eq!(decode(&bytes), Ok(Some(value)), "{value}");
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value, "{value}");
        }
    }

    #[test]
    fn a_longer_spelling_or_a_larger_number_is_refused() {
        assert_eq!(decode(&[0x80, 0x00]), Err(Malformed), "zero in two bytes");
        assert_eq!(decode(&[0xff; 10]), Err(Malformed), "more than 64 bits");
        assert_eq!(decode(&[0xff; 11]), Err(Malformed), "no end");
        assert_eq!(decode(&[0x80]), Ok(None), "cut off");
    }
}
