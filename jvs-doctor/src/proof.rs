//! Why something is dead. A proof can only be made here, from what was READ or
//! seen, and never from age.
//!
//! A proof does not grow old: tokens and epochs only rise, an entry that was
//! overtaken stays so, a process that ended does not come back. So what was
//! proven when it was looked at may be acted on later.

use std::fmt;

use jvs_lock::State;
use jvs_repo::id::{Epoch, FencingToken, OpNonce};
use jvs_repo::store::RepoPath;
use jvs_snapshot::garbage::{self, Candidate, Verdict, Why};

use crate::mutation::Rule;

/// The reason for which nobody can still need something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof(String);

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Proof {
    /// Written under a token that the register has left behind.
    pub fn fenced(read: &State, epoch: Epoch, token: FencingToken) -> Option<Proof> {
        garbage::is_dead(read, epoch, token).then(|| {
            Proof(format!(
                "token {token} of life {epoch} is over: the register is at {} of {}",
                read.token, read.epoch
            ))
        })
    }

    /// A snapshot that can never be committed. `read` was READ before the
    /// snapshot was seen.
    pub fn garbage(read: &State, candidate: &Candidate) -> Option<Proof> {
        match garbage::removable(read, candidate) {
            Verdict::Garbage(Why::Fenced) => Some(Proof(format!(
                "it was begun under token {} of life {}, and the register is at {} of {}",
                candidate.token, candidate.epoch, read.token, read.epoch
            ))),
            Verdict::Garbage(Why::HeadMoved) => Some(Proof(
                "the head has moved on from the snapshot that it was taken on top of".to_owned(),
            )),
            Verdict::Work if !Rule::ProvenDead.holds() => Some(Proof("nobody looked".to_owned())),
            Verdict::Work | Verdict::Committed => None,
        }
    }

    /// It can only ever be renamed to a name that is taken, which fails.
    pub(crate) fn taken(name: &RepoPath) -> Proof {
        Proof(format!("it could only become {name}, which is there"))
    }

    /// A register's private directory of birth, while the register has another.
    pub(crate) fn born(read: &State) -> Proof {
        Proof(format!("the register was born by another operation ({})", read.op))
    }

    /// Files that the operation which removed their worktree put aside.
    pub(crate) fn removed(read: &State, epoch: Epoch, op: OpNonce) -> Option<Proof> {
        garbage::is_removed(read, epoch, op)
            .then(|| Proof("its worktree was removed by force, and is no more".to_owned()))
    }

    /// The process that made it has ended.
    pub(crate) fn process_ended(pid: u32) -> Proof {
        Proof(format!("process {pid}, which made it, has ended on this host"))
    }

    /// Its name means nothing to anybody but its maker, who does not need it.
    pub(crate) fn harmless() -> Proof {
        Proof("it is an empty file under a name that no reader counts".to_owned())
    }

    /// A record of a hold that is over.
    pub(crate) fn released(read: &State, token: FencingToken) -> Option<Proof> {
        let over = read.hold.claim().is_none() && read.token >= token || read.token > token;
        over.then(|| Proof(format!("the hold under token {token} is over")))
    }
}
