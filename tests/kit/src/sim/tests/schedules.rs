use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;

fn at_most_one_winner(view: &View<'_>) -> Result<(), String> {
    let mut tokens: Vec<u64> = view.processes().filter_map(|p| p.number("token")).collect();
    tokens.sort_unstable();
    match tokens.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two hold token {}", pair[0])),
        None => Ok(()),
    }
}

/// Steal as v6.3 has it: read the record, write a new one under a tmp name,
/// rename it over the old one; "if rename succeeds, that stealer wins".
fn literal_steal(name: &str) -> Process {
    Process::new(name, |p| {
        let store = p.store();
        let seen = number_in(store, "lock").expect("an expired lock is there");
        let tmp = path(&format!("tmp-{}", p.index()));
        store.write_over(&tmp, &path("lock"), (seen + 1).to_string().as_bytes()).expect("renamed");
        p.claim("token", seen + 1);
    })
}

#[test]
fn the_literal_steal_has_two_winners() {
    let violation = Explorer::new()
        .setup(|solo| create(solo.store(), "lock", b"1"))
        .processes([literal_steal("A"), literal_steal("B")])
        .always(at_most_one_winner)
        .run()
        .violation();
    assert_eq!(violation.message, "two hold token 2");
    let text = violation.to_string();
    assert!(text.contains("A rename(tmp-0 -> lock) = ok"), "{text}");
    assert!(text.contains("B   token: 2"), "{text}");
}

#[test]
fn the_shortest_way_is_found_first_if_asked_for() {
    let world = || {
        Explorer::new()
            .setup(|solo| create(solo.store(), "lock", b"1"))
            .processes([literal_steal("A"), literal_steal("B")])
            .crashes(1)
            .time_jumps(1, [5])
            .always(at_most_one_winner)
    };
    let (long, short) = (world().run().violation(), world().shortest_first().run().violation());
    // Open, read, create, write, rename of each, and nothing else.
    assert_eq!(short.choices.len(), 10, "{short}");
    assert!(short.choices.len() <= long.choices.len(), "{long}");
    assert_eq!(world().shortest_first().replay(&short.choices).violation, Some(short.message));
    let all = |w: Explorer<'_>| {
        let report = w.run().holds();
        (report.states, report.steps, report.runs, report.distinct_ends)
    };
    let grid = || Explorer::new().processes([independent("a", 3), independent("b", 4)]).crashes(1);
    assert_eq!(all(grid()), all(grid().shortest_first()), "the order makes no difference");
}

#[test]
fn a_violation_is_found_again_by_its_choices() {
    let explorer = Explorer::new()
        .setup(|solo| create(solo.store(), "lock", b"1"))
        .processes([literal_steal("A"), literal_steal("B")])
        .always(at_most_one_winner);
    let violation = explorer.run().violation();
    let choices = parse_choices(&print_choices(&violation.choices)).expect("as printed");
    let replay = explorer.replay(&choices);
    assert_eq!(replay.violation.as_deref(), Some("two hold token 2"));
    assert_eq!(replay.trace, violation.trace);
    let before = explorer.replay(&choices[..choices.len() - 1]);
    assert_eq!(before.violation, None, "the last choice did it");
}

#[test]
fn exclusive_creation_has_one_winner() {
    let taker = |name: &str| {
        Process::new(name, |p| {
            for token in 1.. {
                if p.store().create_new(&path(&format!("token-{token}"))).is_ok() {
                    p.claim("token", token);
                    return;
                }
            }
        })
    };
    let report = Explorer::new()
        .processes([taker("A"), taker("B"), taker("C")])
        .crashes(2)
        .always(at_most_one_winner)
        .at_end(|view| {
            let holders = view.processes().filter(|p| p.number("token").is_some()).count();
            let crashed = view.processes().filter(ProcessView::crashed).count();
            if holders + crashed >= 3 { Ok(()) } else { Err("someone got nothing".to_owned()) }
        })
        .run()
        .holds();
    assert!(report.runs > 6, "{report}");
}

#[test]
fn a_lost_update_is_found() {
    let adder = |name: &str| {
        Process::new(name, |p| {
            let seen = number_in(p.store(), "count").expect("a number");
            let file = p.store().open_writable(&path("count")).expect("there");
            file.write_at(0, (seen + 1).to_string().as_bytes()).expect("written");
        })
    };
    let violation = Explorer::new()
        .setup(|solo| create(solo.store(), "count", b"0"))
        .processes([adder("A"), adder("B")])
        .at_end(|view| match view.live().read(&path("count")) {
            Some(b"2") => Ok(()),
            other => Err(format!("counted to {other:?}")),
        })
        .run()
        .violation();
    assert!(violation.message.contains("counted to"), "{violation}");
}

/// `steps` calls on a file of its own.
fn independent(name: &str, steps: usize) -> Process {
    Process::new(name, move |p| {
        for n in 0..steps {
            p.store().make_dir(&path(&format!("{}{n}", p.name()))).expect("new");
        }
    })
}

fn choose(n: u64, k: u64) -> u64 {
    (1..=k).fold(1, |product, i| product * (n - k + i) / i)
}

#[test]
fn without_pruning_every_interleaving_is_run_once() {
    for k in 1..=5 {
        let report = Explorer::new()
            .processes([independent("a", k), independent("b", k)])
            .without_pruning()
            .run()
            .holds();
        assert_eq!(report.runs, choose(2 * k as u64, k as u64), "{report}");
        assert_eq!(report.distinct_ends, 1, "{report}");
    }
}

#[test]
fn with_pruning_every_state_is_visited_once() {
    let (k, j) = (7, 4);
    let report =
        Explorer::new().processes([independent("a", k), independent("b", j)]).run().holds();
    assert_eq!(report.states, ((k + 1) * (j + 1)) as u64, "a grid: {report}");
    assert_eq!(report.runs, 1, "one end: {report}");
    assert_eq!(report.histories, (k + j + 4) as u64, "each history is run once: {report}");
}

#[test]
fn pruning_finds_the_same_ends() {
    let ends_of = |prune: bool| {
        let ends = Mutex::new(BTreeSet::new());
        let taker = |name: &str| {
            Process::new(name, |p| {
                let dir = path(&format!("d{}", p.pick(2)));
                let made = p.store().make_dir(&dir).is_ok();
                let moved = p.store().rename(&dir, &path("taken")).is_ok();
                p.claim("did", [u64::from(made), u64::from(moved)]);
            })
        };
        let world = Explorer::new()
            .processes([taker("A"), taker("B")])
            .crashes(1)
            .ambiguous_renames(1)
            .late_renames(1)
            .at_end(|view| {
                let did: Vec<_> = view.processes().map(|p| (p.status(), p.get("did"))).collect();
                ends.lock()
                    .expect("unpoisoned")
                    .insert(format!("{:?} {did:?}", view.live().tree()));
                Ok(())
            });
        let world = if prune { world } else { world.without_pruning() };
        let report = world.run().holds();
        drop(world);
        (report.distinct_ends, ends.into_inner().expect("unpoisoned"))
    };
    let (pruned, full) = (ends_of(true), ends_of(false));
    assert_eq!(pruned, full);
    assert!(pruned.1.len() > 20, "{}", pruned.1.len());
}

#[test]
fn no_preemption_leaves_the_orders_of_whole_processes() {
    let runs = |preemptions| {
        Explorer::new()
            .processes([independent("a", 3), independent("b", 3), independent("c", 3)])
            .preemptions(preemptions)
            .without_pruning()
            .run()
            .holds()
            .runs
    };
    assert_eq!(runs(0), 6);
    assert!(runs(1) > 6 && runs(1) < runs(2));
}

#[test]
fn private_paths_are_no_place_to_be_interrupted() {
    let world =
        || Explorer::new().processes([independent("a", 4), independent("b", 4)]).without_pruning();
    let private = world().private(|path| path.as_str().starts_with('a')).run().holds();
    assert_eq!(private.runs, 1, "only b takes steps: {private}");
    let dying = world().private(|_| true).crashes(1).crashes_in_private().run().holds();
    assert!(dying.distinct_ends > 4, "{dying}");
}

#[test]
fn what_is_private_can_be_left_out_of_account() {
    let chatty = |name: &str| {
        Process::new(name, |p| {
            let log = p.store().create_new(&path(&format!("log-{}", p.name()))).expect("new");
            let first = p.store().rename(&path("a"), &path("b")).is_ok();
            log.write_at(0, if first { b"first" } else { b"later" }).expect("written");
            let _ = p.store().stat(&path("b"));
        })
    };
    let world = || {
        Explorer::new()
            .setup(|solo| create(solo.store(), "a", b""))
            .processes([chatty("A"), chatty("B")])
            .private(|path| path.as_str().starts_with("log-"))
    };
    let (all, fewer) = (world().run().holds(), world().forget_private().run().holds());
    assert_eq!((all.distinct_ends, fewer.distinct_ends), (2, 1));
    assert!(fewer.states < all.states, "{fewer} {all}");
}

#[test]
fn a_panic_is_a_violation_with_its_message() {
    let violation = Explorer::new()
        .process(Process::new("A", |p| {
            p.store().make_dir(&path("d")).expect("new");
            let there = p.store().stat(&path("e")).is_ok();
            assert!(there, "e is not there");
        }))
        .run()
        .violation();
    assert_eq!(violation.message, "A panicked: e is not there");
    assert_eq!(violation.trace.len(), 3, "a start and two calls: {violation}");
}

#[test]
fn a_livelock_is_a_violation() {
    let violation = Explorer::new()
        .process(Process::new("A", |p| while p.store().stat(&path("never")).is_err() {}))
        .max_calls(50)
        .run()
        .violation();
    assert_eq!(violation.message, "A made 50 calls and goes on");
}

#[test]
fn too_much_is_said_to_be_too_much() {
    let report =
        Explorer::new().processes([independent("a", 9), independent("b", 9)]).max_states(50);
    assert!(matches!(report.run().verdict, Verdict::Incomplete(_)));
    let runs = Explorer::new()
        .processes([independent("a", 9), independent("b", 9)])
        .without_pruning()
        .max_runs(50);
    assert!(matches!(runs.run().verdict, Verdict::Incomplete(_)));
}

#[test]
fn a_process_that_is_no_function_of_its_answers_is_told_so() {
    let shared = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let report = Explorer::new()
        .process(Process::new("A", move |p| {
            let n = shared.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            p.pick(40);
            let _ = p.store().stat(&path(&format!("x{n}")));
            p.pick(2);
        }))
        .run();
    let violation = report.violation();
    assert!(violation.message.contains("not a function of its answers"), "{violation}");
}

#[test]
fn random_walks_find_what_is_easy_to_find() {
    let world = Explorer::new()
        .setup(|solo| create(solo.store(), "lock", b"1"))
        .processes([literal_steal("A"), literal_steal("B"), literal_steal("C")])
        .always(at_most_one_winner);
    let found = world.sample(7, 1000).violation();
    assert_eq!(world.sample(7, 1000).violation().choices, found.choices, "same seed, same walk");
    assert!(world.replay(&found.choices).violation.is_some());
}

#[test]
fn what_one_publishes_another_may_be_told() {
    let report = Explorer::new()
        .process(Process::new("parent", |p| {
            p.store().make_dir(&path("d")).expect("new");
            p.claim("stop", 1);
        }))
        .process(Process::new("child", |p| {
            p.pause();
            p.claim("told", p.look(0, "stop").map_or("nothing".to_owned(), |v| v.to_string()));
        }))
        .run()
        .holds();
    assert_eq!(report.distinct_ends, 2, "{report}");
}

#[test]
fn the_last_one_starts_when_all_others_are_gone() {
    Explorer::new()
        .processes([independent("a", 2), independent("b", 2)])
        .process(
            Process::new("survivor", |p| p.store().make_dir(&path("late")).expect("new"))
                .starts(Start::Last),
        )
        .crashes(2)
        .each_step(|before, after| {
            let others_run = before.processes().take(2).any(|p| p.status() == Status::Running);
            let came = !before.live().exists(&path("late")) && after.live().exists(&path("late"));
            if others_run && came { Err("it was not alone".to_owned()) } else { Ok(()) }
        })
        .at_end(|view| {
            let survived = view.live().exists(&path("late")) || view.process(2).crashed();
            if survived { Ok(()) } else { Err("nobody was left".to_owned()) }
        })
        .run()
        .holds();
}
