//! Waiting a little longer each time.

/// 1, 2, 4 … 64 ms: long enough for caches and engines to catch up, short
/// enough that nobody notices. All waits of one READ add up to about 60 ms.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: u64,
}

impl Backoff {
    const LONGEST_MS: u64 = 64;

    pub(crate) const fn new() -> Self {
        Backoff { next: 1 }
    }

    pub(crate) fn next_ms(&mut self) -> u64 {
        let now = self.next;
        self.next = (now * 2).min(Self::LONGEST_MS);
        now
    }
}
