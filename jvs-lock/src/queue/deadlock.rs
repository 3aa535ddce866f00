//! Who waits for whom, and who must give up. Pure: tickets and registers as they
//! were read in, answer out.
//!
//! A wait goes to the session that holds the worktree, and from there to everything
//! that this session waits for. Places in line do not matter: a process that stands ahead
//! is kept waiting by the same holder, and when it gets the lock it is the holder.
//!
//! **Exactly one gives up.** Every cycle has one newest wait, by `Waiter::age`,
//! which is in the tickets' names, never changes and ties nobody. A waiter follows
//! only waits that are older than its own, so it finds a cycle only if it is the
//! newest of it: all who look, at whatever moment, name the same one. Of two cycles
//! that share a wait both newest may give up, where one might have been enough; each
//! did stand in a cycle.

use std::collections::{BTreeMap, HashSet, VecDeque};

use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::name::WorktreeName;
use jvs_repo::term::Term;

use super::Waiter;

/// Somebody waits for a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The worktree.
    pub worktree: WorktreeName,
    /// The session that waits.
    pub waiter: Waiter,
}

/// Who holds a worktree, and since which grant. Two equal ones, read one after the
/// other, were one hold all the time in between: a token is never granted twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// Public nonce of the session.
    pub holder: HolderNonce,
    /// The grant.
    pub term: Term,
}

/// Who waits, and who holds what is waited for.
#[derive(Debug, Clone, Default)]
pub struct Waits {
    /// Those who wait, as far as they give signs of life.
    pub waits: Vec<Wait>,
    /// Those who hold.
    pub held: BTreeMap<WorktreeName, Holding>,
}

/// One wait of a cycle: `waiter` waits for `worktree`, which `held` has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Names the wait.
    pub op: OpNonce,
    /// The session that waits.
    pub waiter: HolderNonce,
    /// For what.
    pub worktree: WorktreeName,
    /// Who has it.
    pub held: Holding,
}

impl Waits {
    /// The cycle that `own` stands in and is the newest wait of: from its own wait to
    /// one for a worktree of `tied`, which are those that its session does not give
    /// back before this wait is over. A shortest one, if there are several.
    pub fn closed_by(&self, own: &Wait, tied: &[WorktreeName]) -> Option<Vec<Link>> {
        let me = own.waiter.holder;
        let mut met: HashSet<OpNonce> = HashSet::from([own.waiter.op]);
        let mut ways: VecDeque<Vec<Link>> =
            self.link(own).map(|link| vec![link]).into_iter().collect();
        while let Some(way) = ways.pop_front() {
            let last = way.last()?;
            if last.held.holder == me {
                if tied.contains(&last.worktree) {
                    return Some(way);
                }
                continue;
            }
            for wait in &self.waits {
                let next = wait.waiter.holder == last.held.holder
                    && wait.waiter.came_before(&own.waiter)
                    && !met.contains(&wait.waiter.op);
                if let Some(link) = next.then(|| self.link(wait)).flatten() {
                    met.insert(link.op);
                    ways.push_back(way.iter().cloned().chain([link]).collect());
                }
            }
        }
        None
    }

    /// Whom a wait is for. Nobody, if nobody holds it, or if the waiter has just got it
    /// and its ticket is still there.
    fn link(&self, wait: &Wait) -> Option<Link> {
        let held = *self.held.get(&wait.worktree)?;
        let Waiter { op, holder, .. } = wait.waiter;
        let link = Link { op, waiter: holder, worktree: wait.worktree.clone(), held };
        (held.holder != holder).then_some(link)
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::{SystemClock, WallMs};
    use jvs_repo::id::FencingToken;

    use super::*;
    use crate::session::tests::session;

    fn name(name: &str) -> WorktreeName {
        name.parse().expect("a name")
    }

    fn nonce(who: u8) -> HolderNonce {
        waiter(who, 0).holder
    }

    /// A waiter of the session `who` that came at `since`.
    fn waiter(who: u8, since: u64) -> Waiter {
        let op = OpNonce([u8::try_from(since).expect("small"); 8]);
        let session = session(&format!("s{who}"), who);
        let waiter = Waiter::of(&session, &SystemClock, 1, op, 30_000);
        Waiter { since: Some(WallMs(since)), ..waiter }
    }

    fn wait(who: u8, since: u64, worktree: &str) -> Wait {
        Wait { worktree: name(worktree), waiter: waiter(who, since) }
    }

    fn world(waits: &[Wait], held: &[(&str, u8)]) -> Waits {
        let term = |token| Term { epoch: "1-a3f0".parse().expect("an epoch"), token };
        let held = held.iter().map(|(worktree, who)| {
            (name(worktree), Holding { holder: nonce(*who), term: term(FencingToken(7)) })
        });
        Waits { waits: waits.to_vec(), held: held.collect() }
    }

    /// Which worktrees each of `waits` finds that it must give up for.
    fn given_up(waits: &[Wait], held: &[(&str, u8)]) -> Vec<Option<Vec<String>>> {
        let world = world(waits, held);
        let of = |own: &Wait| {
            let tied: Vec<WorktreeName> = held
                .iter()
                .filter(|(_, who)| nonce(*who) == own.waiter.holder)
                .map(|(worktree, _)| name(worktree))
                .collect();
            let cycle = world.closed_by(own, &tied)?;
            Some(cycle.iter().map(|link| link.worktree.to_string()).collect())
        };
        waits.iter().map(of).collect()
    }

    fn who(found: &[Option<Vec<String>>]) -> Vec<bool> {
        found.iter().map(Option::is_some).collect()
    }

    #[test]
    fn the_newer_of_two_who_wait_for_each_other_gives_up_and_only_it() {
        let held = [("a", 1), ("b", 2)];
        let found = given_up(&[wait(1, 10, "b"), wait(2, 20, "a")], &held);
        assert_eq!(found, [None, Some(vec!["a".to_owned(), "b".to_owned()])]);
        let found = given_up(&[wait(1, 30, "b"), wait(2, 20, "a")], &held);
        assert_eq!(found, [Some(vec!["b".to_owned(), "a".to_owned()]), None]);
    }

    #[test]
    fn of_two_who_came_at_the_same_moment_exactly_one_gives_up() {
        let mut second = wait(2, 20, "a");
        second.waiter.since = Some(WallMs(10));
        let found = given_up(&[wait(1, 10, "b"), second], &[("a", 1), ("b", 2)]);
        assert_eq!(found.iter().flatten().count(), 1, "{found:?}");
    }

    #[test]
    fn longer_cycles_have_one_who_gives_up_too() {
        let held = [("a", 1), ("b", 2), ("c", 3), ("d", 4)];
        let waits = [wait(1, 10, "b"), wait(2, 40, "c"), wait(3, 20, "d"), wait(4, 30, "a")];
        let found = given_up(&waits, &held);
        let whole = ["c", "d", "a", "b"].map(str::to_owned).to_vec();
        assert_eq!(found, [None, Some(whole), None, None]);
        // Without one of them it is a chain.
        for gone in 0..4 {
            let mut fewer = waits.to_vec();
            fewer.remove(gone);
            assert!(given_up(&fewer, &held).iter().all(Option::is_none), "without {gone}");
        }
    }

    #[test]
    fn whoever_holds_nothing_and_whoever_waits_for_one_who_does_not_wait_goes_on() {
        let found = given_up(&[wait(1, 10, "b"), wait(3, 30, "b")], &[("a", 1), ("b", 2)]);
        assert_eq!(found, [None, None]);
    }

    #[test]
    fn one_who_waits_for_a_cycle_is_in_none() {
        let waits = [wait(1, 10, "b"), wait(2, 20, "a"), wait(3, 30, "a")];
        let found = given_up(&waits, &[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(who(&found), [false, true, false]);
    }

    #[test]
    fn a_ticket_of_one_who_has_just_got_it_is_no_wait() {
        // 2 has just got a, and its ticket is still there.
        let found = given_up(&[wait(1, 30, "a"), wait(2, 20, "a")], &[("a", 2), ("b", 1)]);
        assert_eq!(found, [None, None]);
    }

    #[test]
    fn a_free_or_unknown_worktree_ends_every_chain() {
        let found = given_up(&[wait(1, 10, "b"), wait(2, 20, "a")], &[("a", 1)]);
        assert_eq!(found, [None, None]);
    }

    #[test]
    fn any_of_several_waits_of_a_session_can_close_a_cycle() {
        // Session 2 waits for c, which nobody keeps from it for ever, and for a.
        let waits = [wait(2, 10, "c"), wait(2, 20, "a"), wait(1, 30, "b")];
        let found = given_up(&waits, &[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(who(&found), [false, false, true]);
    }

    #[test]
    fn a_hold_that_ends_by_itself_closes_no_cycle() {
        let world = world(&[wait(2, 20, "a")], &[("a", 1), ("b", 2)]);
        let own = wait(1, 30, "b");
        assert!(world.closed_by(&own, &[name("a")]).is_some());
        assert_eq!(world.closed_by(&own, &[]), None);
    }

    #[test]
    fn one_whose_ticket_does_not_say_since_when_is_never_the_newest() {
        let mut old = wait(2, 20, "a");
        old.waiter.since = None;
        let found = given_up(&[wait(1, 10, "b"), old], &[("a", 1), ("b", 2)]);
        assert_eq!(who(&found), [true, false]);
    }
}
