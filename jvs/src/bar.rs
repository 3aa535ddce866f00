//! How far long work is: one line on a terminal, with rate and time left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use jvs_repo::clock::Clock;
use jvs_snapshot::progress::{CapturePhase, Progress};

use crate::command::{counted, size};
use crate::context::Context;
use crate::{interrupt, render};

/// The line is written again after so many milliseconds.
const REFRESH_MS: u64 = 100;

/// A line that several threads move on.
pub(crate) struct Bar<'c> {
    clock: &'c dyn Clock,
    line: Mutex<Line>,
    files: AtomicU64,
    bytes: AtomicU64,
    shown_ms: AtomicU64,
}

struct Line {
    out: render::ProgressLine,
    what: &'static str,
    /// What one of what is counted is called.
    unit: &'static str,
    since_ms: u64,
    total_files: u64,
    total_bytes: u64,
}

impl<'c> Bar<'c> {
    /// A line that says `what` is being done until a phase says otherwise.
    pub(crate) fn new(context: &'c Context<'_>, what: &'static str) -> Self {
        Self::counting(context, what, "file")
    }

    /// As [`Bar::new`], for something else than files.
    pub(crate) fn counting(
        context: &'c Context<'_>,
        what: &'static str,
        unit: &'static str,
    ) -> Self {
        let clock = context.clock();
        let since_ms = clock.now().boot.0;
        let out = context.output().progress();
        Bar {
            clock,
            line: Mutex::new(Line { out, what, unit, since_ms, total_files: 0, total_bytes: 0 }),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            shown_ms: AtomicU64::new(since_ms),
        }
    }

    fn show(&self) {
        let now = self.clock.now().boot.0;
        let shown = self.shown_ms.load(Ordering::Relaxed);
        let due = now.saturating_sub(shown) >= REFRESH_MS;
        // Of several threads that find it due one writes.
        let swap = |to| {
            let order = Ordering::Relaxed;
            self.shown_ms.compare_exchange(shown, to, order, order).is_ok()
        };
        if due && swap(now) {
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            let done = (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
            let text = describe(&line, done, now);
            line.out.show(&text);
        }
    }
}

/// What matters most comes first: a narrow terminal cuts the end off.
fn describe(line: &Line, (files, bytes): (u64, u64), now: u64) -> String {
    let seconds = now.saturating_sub(line.since_ms).max(1) as f64 / 1000.0;
    let mut text = line.what.to_owned();
    let part = |done: u64, all: u64| (done as f64 / all as f64).min(1.0);
    // Many small files and a few large ones: neither number alone says how far
    // it is.
    let share = match (line.total_files, line.total_bytes) {
        (0, 0) => None,
        (all, 0) => Some(part(files, all)),
        (0, all) => Some(part(bytes, all)),
        (all, all_bytes) => Some((part(files, all) + part(bytes, all_bytes)) / 2.0),
    };
    if let Some(share) = share {
        text += &format!(" {:3.0} %", share * 100.0);
        if share > 0.0 && share < 1.0 {
            text += &format!("  {} left", rough(seconds * (1.0 - share) / share));
        }
    }
    if files > 0 {
        text += &format!("  {} ({:.0}/s)", counted(files, line.unit), files as f64 / seconds);
    }
    if bytes > 0 {
        text += &format!("  {} ({}/s)", size(bytes), size((bytes as f64 / seconds) as u64));
    }
    text
}

/// A time that is a guess, as people say it.
fn rough(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

impl Progress for Bar<'_> {
    fn phase(&self, phase: CapturePhase) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.what = match phase {
            CapturePhase::Walk => "looking",
            CapturePhase::Plan => "comparing",
            CapturePhase::Clone => "copying",
            CapturePhase::Hash => "reading",
            CapturePhase::Fidelity => "checking",
            CapturePhase::Prove => "looking again",
            CapturePhase::Manifest => "writing the manifest",
            CapturePhase::Sync => "waiting for the disk",
        };
        line.since_ms = self.clock.now().boot.0;
        (line.total_files, line.total_bytes) = (0, 0);
        self.files.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        drop(line);
        // A phase may be long and have nothing to count.
        self.show();
    }

    fn total(&self, files: u64, bytes: u64) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        (line.total_files, line.total_bytes) = (files, bytes);
    }

    fn advance(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.show();
    }

    fn keep_going(&self) -> bool {
        interrupt::came().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Env;
    use crate::render::Output;

    #[test]
    fn the_line_tells_share_rate_and_time_left() {
        let nothing = |_: &str| None;
        let out = Output::choose(true, true, Env::new(&nothing)).progress();
        let unit = "file";
        let line =
            Line { out, what: "copying", unit, since_ms: 0, total_files: 4, total_bytes: 4 << 20 };
        let text = describe(&line, (1, 1 << 20), 2_000);
        assert_eq!(text, "copying  25 %  6 s left  1 file (0/s)  1.0 MiB (512.0 KiB/s)");
        // One large file among many small ones.
        let mixed = Line { total_files: 1_000, total_bytes: 1 << 30, ..line };
        let text = describe(&mixed, (999, 999), 10_000);
        assert!(text.starts_with("copying  50 %  11 s left"), "{text}");
        let uncounted = Line { total_files: 0, total_bytes: 0, ..mixed };
        assert_eq!(describe(&uncounted, (0, 0), 1_000), "copying");
        let files = Line { total_files: 4, ..uncounted };
        assert_eq!(describe(&files, (4, 0), 1_000), "copying 100 %  4 files (4/s)");
    }

    #[test]
    fn a_guess_is_told_roughly() {
        let told = [0.2, 99.0, 100.0, 3_600.0, 7_200.0].map(rough);
        assert_eq!(told, ["1 s", "99 s", "2 min", "60 min", "2 h"]);
    }
}
