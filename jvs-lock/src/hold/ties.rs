//! What a session does not give back before one of its waits is over.

use std::io;

use jvs_repo::clock::BootMs;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use super::files::Holds;
use super::stake::{Stake, StakeKind, Viewpoint, Who};

/// Tells which worktrees the session of one who waits does not give back before.
pub trait Ties {
    /// Those worktrees. What cannot be read is asked for again later.
    fn now(&self) -> io::Result<Vec<WorktreeName>>;

    /// Is that held for a command that the one who waits was started by? Then it cannot
    /// be released from here.
    fn is_within(&self, _worktree: &WorktreeName) -> bool {
        false
    }
}

/// Of one whose session keeps nothing, or of whom it is not known.
pub struct NoTies;

impl Ties for NoTies {
    fn now(&self) -> io::Result<Vec<WorktreeName>> {
        Ok(Vec::new())
    }
}

/// The ties of one process, told by what the holds of its session rest on.
pub struct OwnTies<'r> {
    holds: Holds<'r>,
    above: Vec<Who>,
    until: BootMs,
}

impl<'r> OwnTies<'r> {
    /// The ties of a process whose parent, its parent and so on are `above`, itself
    /// included, and which waits until then at most. `holds` is any hold of its session
    /// in the repository.
    pub fn new(holds: &Holds<'r>, above: Vec<Who>, until: BootMs) -> Self {
        OwnTies { holds: holds.clone(), above, until }
    }

    /// Was this process started by a run that has the hold to itself? Then that does not
    /// end before this process does.
    pub fn is_below_who_has_it(&self) -> bool {
        let Ok(scan) = self.holds.scan() else { return false };
        let sees = |stake: &Stake| {
            stake.pid_namespace.is_some() && stake.pid_namespace == self.holds.me.pid_namespace
        };
        let alive = self.holds.alive(&scan).into_iter();
        alive.filter(|stake| stake.kind.is_run() && stake.exclusive).any(|stake| {
            // Itself comes and goes as it asks.
            let mine = self.above.first() == Some(&stake.maker);
            sees(stake) && !mine && self.above.contains(&stake.maker)
        })
    }

    /// Does a hold with this stake last until the wait of this process is over?
    ///
    /// A lock that somebody asked for is released by the process that asked, and that is
    /// waiting; unless it is over by its time before. A command that runs releases it when
    /// it has ended: it waits for this process only if it has started it. What cannot be
    /// seen may have.
    fn is_tied(&self, stake: &Stake) -> bool {
        match stake.kind {
            StakeKind::Acquire => {
                !stake.has_run_out(Viewpoint { now: self.until, ..self.holds.here() })
            }
            StakeKind::Guard => false,
            StakeKind::Shell | StakeKind::Run | StakeKind::Work => {
                stake.pid_namespace.is_none()
                    || stake.pid_namespace != self.holds.me.pid_namespace
                    || self.above.contains(&stake.maker)
            }
        }
    }
}

impl Ties for OwnTies<'_> {
    fn now(&self) -> io::Result<Vec<WorktreeName>> {
        let mut tied = Vec::new();
        for worktree in self.holds.siblings()? {
            let of = self.holds.of(&worktree);
            let Ok(Some(hold)) = of.peek() else { continue };
            let Ok(scan) = of.scan() else { continue };
            let rests = |stake: &&Stake| stake.term == Some(hold.term) && self.is_tied(stake);
            if hold.is_open() && of.alive(&scan).into_iter().any(|stake| rests(&stake)) {
                tied.push(worktree);
            }
        }
        Ok(tied)
    }

    fn is_within(&self, worktree: &WorktreeName) -> bool {
        let of = self.holds.of(worktree);
        let Ok(scan) = of.scan() else { return false };
        let sees = |stake: &Stake| stake.pid_namespace == of.me.pid_namespace;
        let started_this = |stake: &&Stake| sees(stake) && self.above.contains(&stake.maker);
        of.alive(&scan).into_iter().any(|stake| stake.kind.is_run() && started_this(&stake))
    }
}

impl Holds<'_> {
    /// The worktrees of the same repository that the session has files of a hold for.
    fn siblings(&self) -> io::Result<Vec<WorktreeName>> {
        let entries = match self.seams.store.list(&layout::holds_of(self.holder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let of = |name: &str| layout::worktree_of_hold(name, &self.repo);
        let mut found: Vec<WorktreeName> =
            entries.iter().filter_map(|entry| of(entry.name.to_str()?)).collect();
        found.sort();
        Ok(found)
    }
}
