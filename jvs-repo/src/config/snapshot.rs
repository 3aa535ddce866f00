//! How snapshots are captured unless the command says otherwise.

use crate::metadata::words;

words! {
    /// What copies a payload.
    Engine { Auto "auto" Juicefs "juicefs" Reflink "reflink" Copy "copy" }
}
words! {
    /// What a snapshot promises about files that change while it is taken.
    Consistency { Quiesced "quiesced" BestEffort "best_effort" }
}

/// Defaults of `jvs snapshot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// `auto` takes the fastest that the filesystem offers.
    pub engine: Engine,
    /// The promise.
    pub consistency: Consistency,
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        SnapshotPolicy { engine: Engine::Auto, consistency: Consistency::Quiesced }
    }
}
