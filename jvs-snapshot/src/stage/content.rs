//! What a capture says of itself, as the descriptor has it.

use jvs_repo::config::Consistency;

use super::Capture;
use crate::descriptor::{Content, Loss, Quiescence};
use crate::engine::EngineName;
use crate::manifest::Summary;
use crate::quiesce::{self, Changes};
use crate::walk::Tree;
use crate::written_out::WriteDoubt;

/// What is known of those who may have written meanwhile.
pub(super) struct WriterEvidence<'p> {
    /// The first look.
    pub(super) before: &'p Tree,
    /// What the second one saw.
    pub(super) changes: Changes,
    /// Why something that was written before may not be in it.
    pub(super) doubt: Option<WriteDoubt>,
    /// Which attempt it is, counted from 1.
    pub(super) attempt: u32,
}

impl WriterEvidence<'_> {
    fn quiescence(&self) -> Quiescence {
        Quiescence {
            proven: self.changes.is_quiet() && self.doubt.is_none(),
            digest: quiesce::digest(self.before),
            compared: self.before.nodes as u64,
            attempts: self.attempt,
            changed: self.changes.named(),
        }
    }

    /// What to beware of.
    fn risk(&self, consistency: Consistency) -> Option<String> {
        let changed = match self.changes.count {
            0 => None,
            1 => Some("1 path changed while it was captured".to_owned()),
            many => Some(format!("{many} paths changed while they were captured")),
        };
        let doubt = self.doubt.as_ref();
        let doubt = doubt.map(|why| format!("the latest writes may be missing: {why}"));
        match (changed, doubt) {
            (Some(changed), Some(doubt)) => Some(format!("{changed}; {doubt}")),
            // Nothing was seen to change, but nobody was kept from it either.
            (None, None) if consistency == Consistency::BestEffort => {
                Some("best effort: writers were not kept out".to_owned())
            }
            (changed, doubt) => changed.or(doubt),
        }
    }
}

impl Capture<'_> {
    pub(super) fn content(
        &self,
        summary: &Summary,
        engine: EngineName,
        degraded: Vec<Loss>,
        proof: &WriterEvidence<'_>,
    ) -> Content {
        let consistency = self.options.consistency;
        Content {
            consistency,
            risk: proof.risk(consistency),
            quiescence: proof.quiescence(),
            boot_id: Some(self.boot_id.clone()),
            id_map: jvs_repo::proc::id_map(),
            ignore_rules: proof.before.ignored.rules.to_record(),
            engine: engine.as_str().to_owned(),
            degraded,
            files: summary.totals.files,
            bytes: summary.totals.bytes,
            payload_root_hash: summary.payload_root_hash,
            manifest_hash: summary.manifest_hash,
        }
    }
}
