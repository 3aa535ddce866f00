//! What stands for logs that are dropped: a log of its own, written once and whole.

use std::io;

use super::{Event, LogName};
use crate::id::OpNonce;
use crate::layout;
use crate::record::audit::{Sum, body_of, put_together};
use crate::store::Store;

/// Writes the anchor `op`, durably: these lines, of which the first says how many they are.
pub fn write_anchor(store: &dyn Store, op: OpNonce, lines: &[Event]) -> io::Result<()> {
    let name = LogName::Anchor(op);
    let mut sum = Sum::start(name);
    let mut bytes = Vec::new();
    for line in lines {
        let body = body_of(line)?;
        sum = sum.then(&body);
        bytes.extend(put_together(sum, &body));
    }
    let (tmp, to) = (layout::anchor_tmp(op), layout::audit_log(name));
    store.write_new(&tmp, &to, &bytes)
}
