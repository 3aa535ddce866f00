//! What must hold whatever happens. About the register, about what holders
//! believe, and about what callers were told; never about how it is done.

use std::collections::BTreeMap;

use jvs_kit::sim::{ProcessView, Status, Value, View};
use jvs_lock::hold::HoldName;
use jvs_lock::{Hold, State};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::actor::HEIR;

/// The register of `main` as it is in this world.
pub fn register(view: &View<'_>) -> Result<State, String> {
    let entries = view.live().list(&layout::register(&WorktreeName::main()));
    let mut names = entries.iter().filter(|name| !name.starts_with('.'));
    match (names.next(), names.next()) {
        (Some(name), None) => name.parse().map_err(|_| format!("not a state: {name}")),
        (None, _) => Err("the register is empty".into()),
        (Some(a), Some(b)) => Err(format!("the register has two entries: {a} and {b}")),
    }
}

/// Tokens and seq only grow; one holder per token; the head moves only under the
/// token and the holder that it moved under before; the chain links each state
/// to the one before.
pub fn register_moves_by_the_rules(before: &View<'_>, after: &View<'_>) -> Result<(), String> {
    let (old, new) = (register(before)?, register(after)?);
    if old == new {
        return Ok(());
    }
    let wrong = |what: &str| Err(format!("{what}: {old} -> {new}"));
    if new.seq <= old.seq {
        return wrong("seq did not grow");
    }
    if new.token < old.token {
        return wrong("the token went back");
    }
    if !new.follows(&old) {
        return wrong("the chain does not link");
    }
    let same_holder = new.holder() == old.holder();
    if new.token == old.token && !same_holder && new.hold != Hold::Free {
        return wrong("two holders of one token");
    }
    if new.head != old.head && !(new.token == old.token && same_holder) {
        return wrong("the head moved with a change of holder");
    }
    Ok(())
}

fn believers<'v>(view: &View<'v>) -> impl Iterator<Item = (ProcessView<'v>, u64)> {
    view.processes().filter_map(|process| {
        let gone = matches!(process.status(), Status::Crashed | Status::Done);
        let until = process.number("believes_until")?;
        let token = process.number("believes_in")?;
        (!gone && process.boot_ms() < until).then_some((process, token))
    })
}

/// Whoever believes that it holds does hold, so no two sessions ever believe
/// at once. Clocks must be within the policy's skew.
pub fn belief_is_true(view: &View<'_>) -> Result<(), String> {
    belief_is_true_unless(view, |_| false)
}

/// The same where policy may overrule: belief ends only with the lock's next term, and
/// only if somebody took that by policy.
pub fn belief_is_true_unless_overruled(view: &View<'_>) -> Result<(), String> {
    let state = register(view)?;
    belief_is_true_unless(view, |token| overruled(view, &state, token))
}

fn belief_is_true_unless(view: &View<'_>, excused: impl Fn(u64) -> bool) -> Result<(), String> {
    let state = register(view)?;
    for (process, token) in believers(view) {
        if !is_held_by(&state, &process, token) && !excused(token) {
            return Err(format!(
                "{} believes in token {token}, but the register says {state}",
                process.name()
            ));
        }
    }
    Ok(())
}

fn is_held_by(state: &State, process: &ProcessView<'_>, token: u64) -> bool {
    let holder = state.holder().map(|holder| holder.to_string());
    state.token.0 == token && holder.is_some() && holder.as_deref() == process.text("nonce")
}

/// Was `token` taken from its holder by policy? Either whoever did was told so, or it has
/// the lock and is about to be.
fn overruled(view: &View<'_>, state: &State, token: u64) -> bool {
    view.processes().any(|process| {
        let told = process.get("overruled").map(Value::numbers).unwrap_or_default();
        let overrules = process.number("overrules").is_some();
        told.contains(&(token + 1)) || overrules && is_held_by(state, &process, token + 1)
    })
}

/// A freeze that somebody was told of stands until it is over by the clock of
/// whoever made it, or until an operator lifts it. Clocks must be within the policy's
/// skew: nobody renews a freeze, so it is judged by them alone.
pub fn freezes_stand(before: &View<'_>, after: &View<'_>) -> Result<(), String> {
    let (old, new) = (register(before)?, register(after)?);
    if !matches!(old.hold, Hold::Frozen(_)) || (old.token, old.hold) == (new.token, new.hold) {
        return Ok(());
    }
    let lifted = (new.token, new.hold) == (old.token, Hold::Free)
        && before.processes().any(|process| process.number("unfreezes").is_some());
    for process in before.processes().filter(|p| p.number("frozen") == Some(old.token.0)) {
        let over = process.number("frozen_until").is_none_or(|until| process.boot_ms() >= until);
        if !over && !lifted {
            return Err(format!("{} was told that it froze it: {new}", process.name()));
        }
    }
    Ok(())
}

/// Whoever was told that it handed the lock over finds it with the heir, until
/// somebody takes it from that; whoever was told that it did not, did not.
pub fn what_is_handed_over_arrives(view: &View<'_>) -> Result<(), String> {
    let state = register(view)?;
    let holder = state.holder().map(|holder| holder.to_string());
    let Some(heir) = view.processes().find(|p| p.text("session") == Some(HEIR)) else {
        return Ok(());
    };
    let arrived = holder.is_some() && holder.as_deref() == heir.text("nonce");
    let grants = heir.get("granted").map(Value::parts).unwrap_or_default();
    let found = |token: u64| grants.iter().any(|grant| grant.numbers() == [token, 1]);
    for process in view.processes() {
        let told = process.number("handed_over");
        if told.is_some_and(|token| state.token.0 < token || state.token.0 == token && !arrived) {
            return Err(format!("{} was told that it handed it over: {state}", process.name()));
        }
        if process.number("not_handed_over").is_some_and(found) {
            return Err(format!("{} was told that it handed nothing over", process.name()));
        }
    }
    Ok(())
}

/// Parents of all commits that were ever tried, and the tokens they were bound to.
fn tried_commits(view: &View<'_>) -> BTreeMap<u64, (u64, u64)> {
    let lists = view.processes().filter_map(|process| process.get("commits"));
    let commits = lists.flat_map(Value::parts).filter_map(|commit| match commit.numbers()[..] {
        [id, token, parent] => Some((id, (token, parent))),
        _ => None,
    });
    commits.collect()
}

fn lineage(view: &View<'_>, state: &State) -> Vec<u64> {
    let tried = tried_commits(view);
    let mut line = Vec::new();
    let mut next = state.head.map_or(0, |head| head.created_ms);
    while next != 0 && !line.contains(&next) {
        line.push(next);
        next = tried.get(&next).map_or(0, |(_, parent)| *parent);
    }
    line
}

/// A head that is new was committed under the token that its commit was bound to.
pub fn commits_are_fenced(before: &View<'_>, after: &View<'_>) -> Result<(), String> {
    let (old, new) = (register(before)?, register(after)?);
    let Some(head) = new.head.filter(|_| new.head != old.head) else { return Ok(()) };
    let tried = tried_commits(after);
    match tried.get(&head.created_ms) {
        Some((token, _)) if *token == new.token.0 => Ok(()),
        Some((token, _)) => {
            Err(format!("a commit bound to token {token} was applied under token {}", new.token))
        }
        None => Err(format!("nobody tried to commit {head}")),
    }
}

/// Whoever was told "done" was told the truth, and so was whoever was told
/// "failed": it did not happen and never will.
pub fn everybody_was_told_the_truth(view: &View<'_>) -> Result<(), String> {
    let state = register(view)?;
    let line = lineage(view, &state);
    let alone_in_session = |process: &ProcessView<'_>| {
        view.processes().filter(|p| p.text("session") == process.text("session")).count() == 1
    };
    for process in view.processes() {
        let told = |key: &str| process.get(key).map(Value::numbers).unwrap_or_default();
        let lie = |what: String| Err(format!("{} was told {what}: {state}", process.name()));
        if let Some(id) = told("not_committed").iter().find(|id| line.contains(id)) {
            return lie(format!("that {id} failed, but it was committed"));
        }
        if let Some(id) = told("committed").iter().find(|id| !line.contains(id)) {
            return lie(format!("that {id} was committed, but it is not in the lineage"));
        }
        let nonce = process.text("nonce");
        let holder = state.holder().map(|holder| holder.to_string());
        let holds = nonce.is_some() && holder.as_deref() == nonce;
        if process.text("refused").is_some() && holds && alone_in_session(&process) {
            return lie("that it could not acquire, but it holds the lock".into());
        }
        if let Some(token) = process.number("released")
            && holds
            && state.token.0 == token
        {
            return lie("that the lock was released, but it still holds it".into());
        }
        if let Some(token) = process.number("not_released")
            && state.hold == Hold::Free
            && state.token.0 == token
        {
            return lie("that the release failed, but it was applied".into());
        }
        if process.number("not_frozen").is_some()
            && let Hold::Frozen(claim) = state.hold
            && Some(claim.holder.to_string().as_str()) == nonce
        {
            return lie("that the freeze failed, but it was applied".into());
        }
    }
    Ok(())
}

/// Of all sessions that were ever told they hold a token, no two were told the
/// same one. Whoever died in a power cut may have passed its token on.
pub fn no_token_is_granted_twice(view: &View<'_>) -> Result<(), String> {
    let mut granted: BTreeMap<u64, &str> = BTreeMap::new();
    for process in view.processes() {
        let session = process.text("session").unwrap_or_default();
        for grant in process.get("granted").map(Value::parts).unwrap_or_default() {
            let [token, _] = grant.numbers()[..] else { continue };
            let before = granted.insert(token, session);
            if before.is_some_and(|before| before != session) {
                return Err(format!("token {token} was granted to two sessions"));
            }
        }
    }
    Ok(())
}

/// Whoever was told that it gave the lock back, or froze the worktree, did so for
/// good: no power cut takes it back. Only that freeze's own token may follow it.
pub fn what_was_told_survives(view: &View<'_>) -> Result<(), String> {
    let state = register(view)?;
    let holder = state.hold.claim().map(|claim| claim.holder.to_string());
    for process in view.processes() {
        let mine = holder.is_some() && process.text("nonce") == holder.as_deref();
        if process.number("released") == Some(state.token.0) && mine {
            return Err(format!("the power cut took a release back: {state}"));
        }
        if process.number("frozen").is_some_and(|token| state.token.0 < token) {
            return Err(format!("the power cut took a freeze back: {state}"));
        }
    }
    Ok(())
}

/// Whoever is told that its lock was taken over does not hold it any more.
pub fn nobody_is_fenced_by_its_own_session(view: &View<'_>) -> Result<(), String> {
    let state = register(view)?;
    let holder = state.holder().map(|holder| holder.to_string());
    for process in view.processes() {
        let holds = holder.is_some() && process.text("nonce") == holder.as_deref();
        if holds && process.number("fenced") == Some(state.token.0) {
            return Err(format!("{} was fenced by its own session: {state}", process.name()));
        }
    }
    Ok(())
}

/// The register of `worktree` is not there, or it has exactly one entry.
pub fn one_entry_or_none(view: &View<'_>, worktree: &WorktreeName) -> Result<(), String> {
    let place = layout::register(worktree);
    match view.live().exists(&place).then(|| view.live().list(&place).len()) {
        None | Some(1) => Ok(()),
        Some(entries) => Err(format!("the register has {entries} entries")),
    }
}

/// While a run that was not told to share runs, no other command of its session does.
pub fn a_run_has_its_hold_to_itself(view: &View<'_>) -> Result<(), String> {
    let runs: Vec<_> = view
        .processes()
        .filter(|process| !matches!(process.status(), Status::Crashed | Status::Done))
        .filter_map(|process| Some((process, process.get("runs")?.numbers())))
        .collect();
    let was_alone = |runs: &[u64]| runs.get(1) == Some(&1) && runs.get(2) == Some(&0);
    for (first, _) in runs.iter().filter(|(_, runs)| was_alone(runs)) {
        let unasked = runs.iter().filter(|(other, runs)| {
            other.text("session") == first.text("session") && runs.get(2) == Some(&0)
        });
        if unasked.count() > 1 {
            return Err(format!("two runs of session {} run at once", first.name()));
        }
    }
    Ok(())
}

/// Whoever gave a hold back gave back the one that it meant, when nobody died.
pub fn what_was_given_back_was_meant(view: &View<'_>) -> Result<(), String> {
    let by_others = |token: u64| {
        let gave = |process: ProcessView<'_>| process.get("gave_back").map(Value::numbers);
        view.processes().filter_map(gave).any(|gave| gave.contains(&token))
    };
    for process in view.processes() {
        let gave = process.get("released_when_told").map(Value::numbers).unwrap_or_default();
        if let [meant, gave] = gave[..]
            && meant != gave
            && !by_others(gave)
        {
            return Err(format!("{} meant token {meant} and gave back {gave}", process.name()));
        }
    }
    Ok(())
}

/// Nobody begins again for ever because of its own session.
pub fn nobody_is_sent_away_for_ever(view: &View<'_>) -> Result<(), String> {
    for process in view.processes() {
        if process.number("sent_away").is_some() {
            return Err(format!("{} is sent away by its own session for ever", process.name()));
        }
        if process.number("never").is_some() {
            return Err(format!("{} never gets the lock again", process.name()));
        }
    }
    Ok(())
}

/// A session that held and did not give it back itself does not publish on top of
/// what another published since, unless somebody said to know.
pub fn nothing_is_published_over_a_successor(view: &View<'_>) -> Result<(), String> {
    let all = |key: &'static str| {
        view.processes().flat_map(move |process| {
            let session = process.text("session").unwrap_or_default().to_owned();
            let numbers = process.get(key).map(Value::numbers).unwrap_or_default();
            numbers.into_iter().map(move |number| (session.clone(), number))
        })
    };
    let commits = tried_commits(view);
    let theirs = |session: &str, above: u64, below: u64| {
        all("committed").any(|(other, id)| {
            let token = commits.get(&id).map_or(0, |(token, _)| *token);
            other != session && above < token && token < below
        })
    };
    for (session, published) in all("published") {
        for (_, held) in all("told").filter(|(other, held)| *other == session && *held < published)
        {
            // Free when the next one came: then the session gave it back itself, unless
            // only a time was over.
            let timed = all("asked_for_a_time").any(|it| it == (session.clone(), held));
            let stolen = all("stolen").any(|(other, token)| other != session && token == held + 1);
            let ended = !stolen && !timed;
            let knows = all("knows")
                .any(|(other, token)| other == session && held < token && token <= published);
            if !ended && !knows && theirs(&session, held, published) {
                return Err(format!(
                    "{session} held token {held} and published under {published}, over what \
                     another had published since, without a word"
                ));
            }
        }
    }
    Ok(())
}

/// In a world that begins with a loss nobody of the session publishes before somebody
/// of it said to know.
pub fn nobody_publishes_before_somebody_knows(view: &View<'_>) -> Result<(), String> {
    let knows = view.processes().any(|process| process.get("knows").is_some());
    match view.processes().find(|process| process.get("published").is_some() && !knows) {
        Some(process) => Err(format!("{} published without a word", process.name())),
        None => Ok(()),
    }
}

/// Nobody needs it any more, and nobody died: it was given back.
pub fn the_lock_is_free(view: &View<'_>) -> Result<(), String> {
    let state = register(view)?;
    match state.hold {
        Hold::Free => Ok(()),
        _ => Err(format!("all have left, and nobody gave it back: {state}")),
    }
}

/// When everybody has ended and a keeper came by, nothing is held for nobody. A grant
/// that was never opened is known to nobody, and its lease ends by itself.
pub fn nothing_is_held_for_nobody(view: &View<'_>) -> Result<(), String> {
    if !view.processes().any(|process| process.number("came_by").is_some()) {
        return Ok(());
    }
    let state = register(view)?;
    let holder = state.holder().map(|holder| holder.to_string());
    let Some(process) = view.processes().find(|it| it.text("nonce") == holder.as_deref()) else {
        return Ok(());
    };
    let Some(holder) = state.holder().filter(|_| process.text("session") == Some("a")) else {
        return Ok(());
    };
    let place = layout::hold(holder, crate::holder::REPO, &WorktreeName::main());
    let names = view.live().list(&layout::hold_name(&place));
    let known = |name: &String| name.parse().is_ok_and(|it: HoldName| it.term == state.term());
    match names.iter().find(|name| known(name)) {
        Some(name) => Err(format!("held for nobody: {name}, {state}")),
        None => Ok(()),
    }
}

/// Whoever is told that it holds does so at that moment, for a lease that lasts.
pub fn told_is_true_when_it_is_told(before: &View<'_>, after: &View<'_>) -> Result<(), String> {
    told_is_true_unless(before, after, |_| false)
}

/// The same where policy may overrule between one's own CAS and the answer.
pub fn told_is_true_unless_overruled(before: &View<'_>, after: &View<'_>) -> Result<(), String> {
    let state = register(after)?;
    told_is_true_unless(before, after, |token| overruled(after, &state, token))
}

fn told_is_true_unless(
    before: &View<'_>,
    after: &View<'_>,
    excused: impl Fn(u64) -> bool,
) -> Result<(), String> {
    let state = register(after)?;
    let told = |process: &ProcessView<'_>| process.get("told").map(Value::numbers);
    for (old, new) in before.processes().zip(after.processes()) {
        let (old, new_told) = (told(&old).unwrap_or_default(), told(&new).unwrap_or_default());
        let Some(token) = new_told.get(old.len()) else { continue };
        if !is_held_by(&state, &new, *token) && !excused(*token) {
            return Err(format!("{} is told that it holds token {token}: {state}", new.name()));
        }
        if new.number("told_until").is_none_or(|until| until <= new.boot_ms()) {
            return Err(format!("{} is told of a lease that is over", new.name()));
        }
    }
    Ok(())
}
