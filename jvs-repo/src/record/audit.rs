//! `audit/<log>.jsonl`: one event per line, each line chained to the one before it.
//!
//! Invariants: `{"sum":"…",` and the event's own JSON; the sum is over the rest of the
//! line and the sum before, so that no line can be changed, removed or put in between.

mod details;
mod event;

use std::fmt;
use std::io;
use std::str::FromStr;

pub use self::details::{
    Anchored, Collected, Continued, Details, HalfRestored, Migrated, OtherTool, Reclaimed,
    Repaired, Restored, SetAside, SettingAside, Transferred, Undoing,
};
pub use self::event::{Event, EventKind, EventPhase};
use crate::audit::{EventTooLong, LogName};
use crate::clock::WallMs;
use crate::id::{NotAnId, hex, strict_hex, text_serde};
use crate::json::{self, Limits};

/// Longest line that is written or believed.
pub const LINE_MAX: usize = 16 * 1024;

/// What a line may have at most: only the line bounds what people say in it.
const LIMITS: Limits = Limits { size: LINE_MAX, depth: 16, string: LINE_MAX };

/// The chain value of a line: commits to the line and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum([u8; 16]);

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for Sum {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        strict_hex(text).map(Sum).ok_or(NotAnId::expected("32 hexadecimal digits"))
    }
}
text_serde!(Sum);

impl Sum {
    pub(crate) fn start(log: LogName) -> Self {
        Sum::over(&[0; 16], log.root().as_bytes())
    }

    /// Its first half: enough to tell two logs of one writer apart.
    pub(crate) fn short(self) -> [u8; 8] {
        let mut short = [0; 8];
        short.copy_from_slice(&self.0[..8]);
        short
    }

    fn over(previous: &[u8; 16], body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jvs audit line v1");
        hasher.update(previous);
        hasher.update(body);
        let mut sum = [0; 16];
        sum.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Sum(sum)
    }

    pub(crate) fn then(self, body: &[u8]) -> Self {
        Sum::over(&self.0, body)
    }
}

const PREFIX: &[u8] = b"{\"sum\":\"";
const AFTER_SUM: &[u8] = b"\",";

/// Splits a line into its stated sum and the body the sum was taken over.
pub(crate) fn take_apart(line: &[u8]) -> Option<(Sum, &[u8])> {
    let rest = line.strip_prefix(PREFIX)?;
    let (sum, rest) = rest.split_at_checked(32)?;
    let body = rest.strip_prefix(AFTER_SUM)?;
    Some((Sum(strict_hex(std::str::from_utf8(sum).ok()?)?), body))
}

pub(crate) fn put_together(sum: Sum, body: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(body.len() + 48);
    line.extend_from_slice(PREFIX);
    line.extend_from_slice(hex(&sum.0).as_bytes());
    line.extend_from_slice(AFTER_SUM);
    line.extend_from_slice(body);
    line.push(b'\n');
    line
}

/// An event as the part of a line that its sum is taken over.
pub(crate) fn body_of(event: &Event) -> io::Result<Vec<u8>> {
    let mut body = serde_json::to_vec(event)?;
    body.remove(0); // the opening brace: the sum comes first
    let length = body.len() + 48;
    if length > LINE_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, EventTooLong { length }));
    }
    Ok(body)
}

/// The event in the body of a line. The error says what is wrong.
pub(crate) fn event_in(body: &[u8]) -> Result<Event, String> {
    json::parse_within(&[b"{", body].concat(), LIMITS)
}

/// When the event of a line happened, by the first of its fields alone: reading all of them
/// takes many times as long. `None` if they are not as they are written here, or if it has no
/// such time.
pub(crate) fn at_of(line: &[u8]) -> Option<WallMs> {
    let (_, body) = take_apart(line)?;
    let kind = body.strip_prefix(b"\"kind\":\"")?;
    let phase = after_string(kind)?.strip_prefix(b",\"phase\":\"")?;
    let at = after_string(phase)?.strip_prefix(b",\"at\":\"")?;
    let length = at.iter().position(|byte| *byte == b'"')?;
    WallMs::parse_rfc3339(std::str::from_utf8(&at[..length]).ok()?)
}

/// What comes after the end of a string of plain words.
fn after_string(text: &[u8]) -> Option<&[u8]> {
    let length = text.iter().position(|byte| *byte == b'"')?;
    Some(&text[length + 1..])
}

/// Reads one line without its end, whatever came before it. The error says what is wrong.
pub fn parse(line: &[u8]) -> Result<Event, String> {
    let (_, body) = take_apart(line).ok_or("it does not begin with its sum")?;
    event_in(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("golden/audit.jsonl");

    #[test]
    fn the_bytes_of_a_line_are_these() {
        for line in GOLDEN.lines() {
            let event = parse(line.as_bytes()).expect("an event");
            let (sum, _) = take_apart(line.as_bytes()).expect("a sum");
            assert_eq!(at_of(line.as_bytes()), event.at_ms());
            let bytes = put_together(sum, &body_of(&event).expect("fits"));
            assert_eq!(String::from_utf8_lossy(&bytes), format!("{line}\n"));
        }
    }

    #[test]
    fn torn_oversized_and_hostile_lines_are_refused() {
        let line = GOLDEN.lines().next().expect("a line");
        for length in 0..line.len() {
            assert!(parse(&line.as_bytes()[..length]).is_err(), "the first {length} bytes");
        }
        let deep = format!("\"details\":{}{},\"op\"", "[".repeat(17), "]".repeat(17));
        let long = format!("\"session_id\":\"{}\"", "x".repeat(LINE_MAX));
        for (from, to) in [
            ("\"op\"", "\"at\":\"\",\"op\""),
            ("\"op\"", deep.as_str()),
            ("\"session_id\":\"s\"", long.as_str()),
            ("\"kind\":\"acquire\"", "\"kind\":\"invent\""),
        ] {
            let text = line.replacen(from, to, 1);
            assert_ne!(text, line, "{from}");
            assert!(parse(text.as_bytes()).is_err(), "{to:.80}");
        }
    }
}
