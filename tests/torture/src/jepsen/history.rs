//! What each process asked for, and what it knows of the outcome.

use std::path::Path;

/// An operation on the set or on the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// A number is added to the set.
    Add(u64),
    /// The register is written.
    Write(u64),
    /// The register is read, and this is what is there.
    Read(u64),
    /// The register is changed from the first to the second.
    Swap(u64, u64),
}

/// An operation with its times: nanoseconds of a clock that all processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Who asked.
    pub process: u64,
    /// What for.
    pub op: Op,
    /// When it began.
    pub invoked: u64,
    /// When it was known to be done; nothing if that was never known.
    pub done: Option<u64>,
}

/// One line of a history: time, process, kind, operation.
///
/// Kinds are Jepsen's: `invoke`; then `ok`, or `fail` for what certainly did not
/// happen. What has neither may have happened (`info`).
pub(super) fn line(time: u64, process: u64, kind: &str, op: Op) -> String {
    let op = match op {
        Op::Add(n) => format!("add {n}"),
        Op::Write(n) => format!("write {n}"),
        Op::Read(n) => format!("read {n}"),
        Op::Swap(from, to) => format!("swap {from} {to}"),
    };
    format!("{time} {process} {kind} {op}\n")
}

fn parsed(line: &str) -> Option<(u64, u64, &str, Op)> {
    let mut words = line.split(' ');
    let (time, process) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (kind, name) = (words.next()?, words.next()?);
    let mut number = || words.next()?.parse().ok();
    let op = match name {
        "add" => Op::Add(number()?),
        "write" => Op::Write(number()?),
        "read" => Op::Read(number()?),
        "swap" => Op::Swap(number()?, number()?),
        _ => return None,
    };
    Some((time, process, kind, op))
}

/// Calls of a history. A process has one call at a time; a line that was cut short by
/// the process's death is left out. A read is invoked without knowing what it will
/// find, so its operation is that of its end.
#[must_use]
pub fn calls(text: &str) -> Vec<Call> {
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut calls: Vec<Call> = Vec::new();
    for (time, process, kind, op) in whole.lines().filter_map(parsed) {
        match kind {
            "invoke" => calls.push(Call { process, op, invoked: time, done: None }),
            "ok" => {
                if let Some(call) = calls.iter_mut().rfind(|call| call.process == process) {
                    (call.op, call.done) = (op, Some(time));
                }
            }
            "fail" => {
                if let Some(at) = calls.iter().rposition(|call| call.process == process) {
                    calls.remove(at);
                }
            }
            _ => {}
        }
    }
    calls
}

/// All histories of a directory, each written by one process.
pub(super) fn read_all(dir: &Path) -> Vec<Call> {
    let Ok(files) = fs_err::read_dir(dir) else { return Vec::new() };
    let texts = files.filter_map(|file| fs_err::read_to_string(file.ok()?.path()).ok());
    texts.flat_map(|text| calls(&text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read_as_it_was_written() {
        let ops = [Op::Add(1), Op::Write(2), Op::Read(3), Op::Swap(4, 5)];
        for op in ops {
            let text = line(10, 7, "invoke", op) + &line(12, 7, "ok", op);
            let call = Call { process: 7, op, invoked: 10, done: Some(12) };
            assert_eq!(calls(&text), [call]);
        }
    }

    #[test]
    fn what_failed_is_left_out_and_what_died_is_open() {
        let text = line(1, 7, "invoke", Op::Add(1))
            + &line(2, 7, "fail", Op::Add(1))
            + &line(3, 7, "invoke", Op::Add(2))
            + "4 7 ok ad";
        let open = Call { process: 7, op: Op::Add(2), invoked: 3, done: None };
        assert_eq!(calls(&text), [open]);
    }
}
