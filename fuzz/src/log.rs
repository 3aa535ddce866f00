//! The audit log.

use jvs_repo::audit::{Flaw, LINE_MAX, WriterId};
use jvs_repo::fuzzing;
use jvs_repo::record::audit;

/// Lines of a log: an event is written as it is read, and a log whose sums are right has
/// no broken link, whatever its lines say.
pub(crate) fn audit_line(data: &[u8]) {
    let writer: WriterId = "0123456789abcdef01234567".parse().expect("a writer");
    let lines = fuzzing::audit_lines(&writer, data);
    for ((at, line), bytes) in lines.iter().enumerate().zip(data.split(|byte| *byte == b'\n')) {
        assert_eq!(line.number, at as u64 + 1);
        assert!(line.event.is_some() || line.flaw.is_some(), "an event, or why there is none");
        let Some(event) = &line.event else { continue };
        assert!(bytes.len() <= LINE_MAX);
        let Ok(written) = fuzzing::audit_line(&writer, event) else { continue };
        let bare = written.strip_suffix(b"\n").expect("a line ends");
        assert!(!bare.contains(&b'\n'), "one event, one line");
        assert_eq!(audit::parse(bare).as_ref(), Ok(event), "written and read again");
    }
    if lines.iter().any(|line| line.flaw == Some(Flaw::BrokenLink)) {
        let summed = fuzzing::summed_up(&writer, data);
        let whole = summed.strip_suffix(b"\n").unwrap_or(&summed);
        for line in fuzzing::audit_lines(&writer, whole) {
            assert_ne!(line.flaw, Some(Flaw::BrokenLink), "the sums are right");
        }
    }
}
