//! Reports to the user that a lock is watched before it is taken, and for how long.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use jvs_lock::span::Span;
use jvs_lock::watching::{Patience, Watched};

use crate::fail::on_one_line;
use crate::render::{Output, ProgressLine};

/// Reports what one command watches.
pub(crate) struct WatchReporter {
    output: Output,
    told: Mutex<Progressed>,
}

#[derive(Default)]
struct Progressed {
    /// Made at the first word: most commands watch nothing.
    progress: Option<ProgressLine>,
    watched_ms: u64,
}

impl WatchReporter {
    pub(crate) fn new(output: Output) -> Self {
        WatchReporter { output, told: Mutex::default() }
    }

    /// The longest watch that was needed.
    pub(crate) fn watched_ms(&self) -> u64 {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // What is said next must not be written over.
        told.progress = None;
        told.watched_ms
    }
}

impl Patience for WatchReporter {
    fn tell(&self, Watched { view, watched_ms, needed_ms }: Watched<'_>) -> ControlFlow<()> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.watched_ms = told.watched_ms.max(needed_ms);
        let who = view.record().map_or("its holder".to_owned(), |_| view.holder().who());
        let (watched, needed) = (Span(watched_ms), Span(needed_ms));
        let text = format!(
            "watching worktree {} for {watched} of {needed}: is {who} still there?",
            view.worktree
        );
        let output = self.output;
        told.progress.get_or_insert_with(|| output.progress()).show(&on_one_line(&text));
        ControlFlow::Continue(())
    }
}
