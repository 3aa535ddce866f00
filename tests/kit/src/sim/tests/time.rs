use jvs_repo::clock::{Clock, Discipline};

use super::*;

#[test]
fn time_stands_still_unless_it_is_made_to_pass() {
    let twice = |p: &Ctx| {
        let before = p.clock().now();
        p.store().make_dir(&path("d")).expect("new");
        p.claim("passed", p.clock().now().boot.since(before.boot));
        p.claim("wall", p.clock().now().wall.since(before.wall));
    };
    let passed = |jumps: u32| {
        let passed = std::sync::Mutex::new(std::collections::BTreeSet::new());
        Explorer::new()
            .process(Process::new("A", twice))
            .time_jumps(jumps, [30_000, 7])
            .at_end(|view| {
                let process = view.process(0);
                assert_eq!(process.number("passed"), process.number("wall"));
                passed
                    .lock()
                    .expect("unpoisoned")
                    .insert(process.number("passed").expect("claimed"));
                Ok(())
            })
            .run()
            .holds();
        passed.into_inner().expect("unpoisoned").into_iter().collect::<Vec<_>>()
    };
    assert_eq!(passed(0), [0]);
    assert_eq!(passed(1), [0, 7, 30_000]);
    assert_eq!(passed(2), [0, 7, 14, 30_000, 30_007, 60_000]);
}

#[test]
fn a_look_at_the_clock_may_come_late() {
    let world = || {
        Explorer::new()
            .process(Process::new("A", |p| {
                p.store().make_dir(&path("d")).expect("new");
                p.claim("read", p.clock().now().boot.0);
                p.pause();
            }))
            .time_jumps(1, [500])
            .each_step(|before, after| {
                // Made at one time, read at a later one.
                let made = before.live().exists(&path("d"));
                let read = |v: &View<'_>| v.process(0).number("read");
                let late = made && read(before).is_none() && read(after).is_some();
                if late { Err("read in a later step".to_owned()) } else { Ok(()) }
            })
    };
    world().run().holds();
    assert!(world().clock_is_a_step().run().violation().message.contains("later step"));
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    let sleeper = |name: &str, ms: u64| {
        Process::new(name, move |p| {
            p.clock().sleep_ms(ms);
            p.store().make_dir(&path(p.name())).expect("new");
        })
    };
    let report = Explorer::new()
        .processes([sleeper("late", 200), sleeper("early", 100)])
        .always(|view| {
            let there = |name| view.live().exists(&path(name));
            if there("late") && view.now_ms() < 200 {
                Err("woke too soon".to_owned())
            } else {
                Ok(())
            }
        })
        .early_wakes(0)
        .each_step(|before, after| {
            let there =
                |name| after.live().exists(&path(name)) && !before.live().exists(&path(name));
            let early_runs = before.process(1).status() == Status::Running;
            if there("late") && early_runs { Err("overtaken".to_owned()) } else { Ok(()) }
        })
        .run()
        .holds();
    assert_eq!(report.distinct_ends, 1, "{report}");
}

#[test]
fn a_sleeper_may_wake_while_another_is_at_work() {
    let world = |wakes: Option<u32>| {
        let explorer = Explorer::new()
            .process(Process::new("sleeper", |p| {
                p.clock().sleep_ms(50);
                p.claim("saw", p.store().list(&RepoPath::root()).expect("listed").len() as u64);
            }))
            .process(Process::new("worker", |p| {
                for name in ["a", "b", "c"] {
                    p.store().make_dir(&path(name)).expect("new");
                }
            }));
        match wakes {
            Some(n) => explorer.early_wakes(n),
            None => explorer,
        }
        .run()
        .holds()
        .distinct_ends
    };
    assert_eq!(world(None), 4, "it sees 0 to 3 of them");
    assert_eq!(world(Some(0)), 1, "it sleeps until the worker is done");
}

#[test]
fn hosts_have_their_own_clocks() {
    let teller = |name: &str, host: usize| {
        Process::new(name, |p| {
            let now = p.clock().now();
            p.claim("wall", now.wall.0);
            p.claim("boot", now.boot.0);
            p.claim("id", p.clock().boot_id().0);
            p.claim("steered", format!("{:?}", p.clock().discipline()));
        })
        .on_host(host)
    };
    Explorer::new()
        .processes([teller("A", 0), teller("B", 1), teller("C", 1)])
        .wall_offset_ms(1, -3_600_000)
        .discipline(1, Discipline::Unsynchronised)
        .wall_jumps(1, [(0, 60_000)])
        .always(|view| {
            let [a, b, c] = [0, 1, 2].map(|n| view.process(n));
            let apart = a.number("wall").zip(b.number("wall")).map(|(a, b)| a - b);
            let expected = apart.is_none_or(|ms| ms == 3_600_000 || ms == 3_660_000);
            let same = b.get("boot") == c.get("boot") && b.get("id") == c.get("id");
            let one_is_missing = b.get("id").is_none() || c.get("id").is_none();
            let steered = b.text("steered").is_none_or(|s| s == "Unsynchronised");
            if expected
                && (same || one_is_missing)
                && a.get("id") != b.get("id").or(Some(&"".into()))
                && steered
            {
                Ok(())
            } else {
                Err("clocks are mixed up".to_owned())
            }
        })
        .run()
        .holds();
}
