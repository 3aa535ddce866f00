//! How a line is chained to the one before it.

use crate::id::{hex, strict_hex};

use super::WriterId;

/// Longest line that is written or believed.
pub const LINE_MAX: usize = 16 * 1024;

/// The chain value of a line: commits to the line and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum([u8; 16]);

impl Sum {
    pub(super) fn start(writer: &WriterId) -> Self {
        Sum::over(&[0; 16], writer.to_string().as_bytes())
    }

    fn over(previous: &[u8; 16], body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jvs audit line v1");
        hasher.update(previous);
        hasher.update(body);
        let mut sum = [0; 16];
        sum.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Sum(sum)
    }

    pub(super) fn then(self, body: &[u8]) -> Self {
        Sum::over(&self.0, body)
    }
}

const PREFIX: &[u8] = b"{\"sum\":\"";
const AFTER_SUM: &[u8] = b"\",";

/// Splits a line into its stated sum and the body the sum was taken over.
pub(super) fn take_apart(line: &[u8]) -> Option<(Sum, &[u8])> {
    let rest = line.strip_prefix(PREFIX)?;
    let (sum, rest) = rest.split_at_checked(32)?;
    let body = rest.strip_prefix(AFTER_SUM)?;
    Some((Sum(strict_hex(std::str::from_utf8(sum).ok()?)?), body))
}

pub(super) fn put_together(sum: Sum, body: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(body.len() + 48);
    line.extend_from_slice(PREFIX);
    line.extend_from_slice(hex(&sum.0).as_bytes());
    line.extend_from_slice(AFTER_SUM);
    line.extend_from_slice(body);
    line.push(b'\n');
    line
}
