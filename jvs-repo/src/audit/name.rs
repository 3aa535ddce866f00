//! Which log a file among the audit logs is.

use std::fmt;
use std::str::FromStr;

use super::WriterId;
use crate::id::{NotAnId, OpNonce, hex, strict_hex, text_serde};

const ANCHOR: &str = "anchor-";

/// A log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogName {
    /// What stands for logs that were dropped.
    Anchor(OpNonce),
    /// One that its writer closed because it was full, or left because it does not show all
    /// that was written to it. The number, of its last line or of how far it was written, is
    /// there so that no two are called the same.
    Closed(WriterId, [u8; 8]),
    /// The one that its writer adds to.
    Open(WriterId),
}

impl LogName {
    /// Whose log it is; nobody's if it stands for others.
    pub fn writer(&self) -> Option<WriterId> {
        match self {
            LogName::Anchor(_) => None,
            LogName::Closed(writer, _) | LogName::Open(writer) => Some(*writer),
        }
    }

    /// Is nothing added to it any more?
    pub fn is_closed(&self) -> bool {
        matches!(self, LogName::Closed(..))
    }

    /// Does it stand for others, and which one of those is it?
    pub fn anchor(&self) -> Option<OpNonce> {
        match self {
            LogName::Anchor(op) => Some(*op),
            _ => None,
        }
    }

    /// What its first line is chained to.
    pub(crate) fn root(&self) -> String {
        self.writer().map_or_else(|| self.to_string(), |writer| writer.to_string())
    }
}

impl From<WriterId> for LogName {
    fn from(writer: WriterId) -> Self {
        LogName::Open(writer)
    }
}

impl From<&WriterId> for LogName {
    fn from(writer: &WriterId) -> Self {
        LogName::Open(*writer)
    }
}

impl From<&LogName> for LogName {
    fn from(name: &LogName) -> Self {
        *name
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogName::Anchor(op) => write!(f, "{ANCHOR}{op}"),
            LogName::Closed(writer, last) => write!(f, "{writer}-{}", hex(last)),
            LogName::Open(writer) => writer.fmt(f),
        }
    }
}

impl FromStr for LogName {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let wrong = || NotAnId::expected("the name of an audit log");
        if let Some(op) = text.strip_prefix(ANCHOR) {
            return op.parse().map(LogName::Anchor).map_err(|_| wrong());
        }
        match text.split_once('-') {
            Some((writer, last)) => {
                let last = strict_hex(last).ok_or_else(wrong)?;
                Ok(LogName::Closed(writer.parse().map_err(|_| wrong())?, last))
            }
            None => text.parse().map(LogName::Open),
        }
    }
}
text_serde!(LogName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_one_name_and_a_name_one_log() {
        let writer = WriterId([7; 12]);
        for (log, name) in [
            (LogName::Open(writer), "070707070707070707070707"),
            (LogName::Closed(writer, [1; 8]), "070707070707070707070707-0101010101010101"),
            (LogName::Anchor(OpNonce([2; 8])), "anchor-0202020202020202"),
        ] {
            assert_eq!(log.to_string(), name);
            assert_eq!(name.parse(), Ok(log));
        }
        for none in ["", "anchor-", "07", "070707070707070707070707-", "-0101010101010101"] {
            assert!(none.parse::<LogName>().is_err(), "{none:?}");
        }
    }
}
