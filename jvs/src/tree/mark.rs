//! What everybody of a tree carries in its environment, for when the guardian was killed
//! and its orphans have another parent. A process that was given an environment without it
//! is not found by it.

use std::fmt;
use std::str::FromStr;

use jvs_repo::id::OpNonce;
use jvs_repo::proc::{self, Process};

use super::below;
use crate::context::Context;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeMark(String);

impl TreeMark {
    pub(crate) const VARIABLE: &str = "JVS_RUN_ID";

    pub(crate) fn new(context: &Context<'_>) -> Self {
        TreeMark(OpNonce::random(context.entropy()).to_string())
    }

    /// What the command is given: a run in a run is in both.
    pub(crate) fn beside_outer(&self, context: &Context<'_>) -> String {
        match context.variable(Self::VARIABLE).and_then(|outer| outer.into_string().ok()) {
            Some(outer) if !outer.is_empty() => format!("{outer}:{self}"),
            _ => self.to_string(),
        }
    }

    /// Those of `all` that carry it, and all below them.
    pub(crate) fn carried_by<'p>(&self, all: &'p [Process]) -> Vec<&'p Process> {
        let me = std::process::id();
        let carries = |process: &&Process| {
            process.pid != me && !process.zombie && self.is_in(&proc::environment(process.pid))
        };
        let marked: Vec<&Process> = all.iter().filter(carries).collect();
        let inside = marked.iter().flat_map(|process| below(all, process.pid));
        marked.iter().copied().chain(inside).collect()
    }

    /// Is it in an environment, as the kernel shows one?
    pub(crate) fn is_in(&self, environment: &[u8]) -> bool {
        let mut entries = environment.split(|byte| *byte == 0);
        entries.any(|entry| {
            let value = entry.strip_prefix(Self::VARIABLE.as_bytes());
            let marks = value.and_then(|value| value.strip_prefix(b"="));
            marks.is_some_and(|marks| {
                marks.split(|byte| *byte == b':').any(|mark| mark == self.0.as_bytes())
            })
        })
    }
}

impl fmt::Display for TreeMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TreeMark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse::<OpNonce>().map(|nonce| TreeMark(nonce.to_string())).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_a_run_carries_both_marks() {
        let mark: TreeMark = "00ff00ff00ff00ff".parse().expect("a mark");
        for (environment, carries) in [
            ("A=b\0JVS_RUN_ID=00ff00ff00ff00ff\0C=d\0", true),
            ("JVS_RUN_ID=1111111111111111:00ff00ff00ff00ff", true),
            ("JVS_RUN_ID=00ff00ff00ff00ff:1111111111111111", true),
            ("JVS_RUN_ID=1111111111111111", false),
            ("XJVS_RUN_ID=00ff00ff00ff00ff", false),
            ("A=JVS_RUN_ID=00ff00ff00ff00ff", false),
            ("", false),
        ] {
            assert_eq!(mark.is_in(environment.as_bytes()), carries, "{environment:?}");
        }
        assert_eq!("reap".parse::<TreeMark>(), Err(()));
    }
}
