//! Taking, waiting for, using, losing and releasing a lock.

use jvs_kit::live::process::eventually;
use serde_json::json;

use crate::client::BOTH;
use crate::{PATIENCE, World};

#[test]
fn an_agent_takes_a_lock_works_under_it_and_releases_it() {
    for revision in BOTH {
        let world = World::new();
        let mut agent = world.agent(revision);
        let handle = agent.acquire();
        assert_eq!(world.status()["state"], "held", "{revision:?}");
        fs_err::write(world.main().join("a"), "1").expect("written");
        let taken = agent.ok("snapshot", json!({ "handle": handle, "note": "one" }));
        assert_eq!(taken["files"], 1, "{taken}");
        let released = agent.ok("release", json!({ "handle": handle }));
        assert_eq!(released["state"], "free", "{released}");
        assert_eq!(world.status()["state"], "free", "{revision:?}");
        let history = agent.ok("history", json!({}));
        assert_eq!(history["snapshots"][0]["note"], "one", "{history}");
    }
}

#[test]
fn two_agents_are_two_sessions_and_one_waits_for_the_other() {
    for revision in BOTH {
        let world = World::new();
        let (mut first, mut second) = (world.agent(revision), world.agent(revision));
        let handle = first.acquire();
        let refused = second.refused("acquire", json!({}));
        assert_eq!(refused["code"], "E_LOCK_CONFLICT", "{refused}");
        assert!(refused["next"].as_str().is_some_and(|it| it.contains("acquire with wait")));
        let wait = json!({
            "name": "acquire",
            "arguments": { "wait": "10m" },
            "_meta": { "progressToken": "mine" },
        });
        let waits = second.ask("tools/call", wait);
        let told = second.notice("notifications/progress")["params"].clone();
        assert_eq!((&told["progressToken"], &told["total"]), (&json!("mine"), &json!(600.0)));
        let message = told["message"].as_str().expect("who is in front");
        assert!(message.contains("main is locked by") && message.contains("mcp:"), "{message}");
        first.ok("release", json!({ "handle": handle }));
        let granted = second.answer(waits)["result"]["structuredContent"].clone();
        assert_eq!((&granted["state"], &granted["mine"]), (&json!("held"), &json!(true)));
    }
}

#[test]
fn a_wait_that_is_cancelled_ends_and_leaves_nothing() {
    for revision in BOTH {
        let world = World::new();
        world.jvs("lock acquire").run().ok();
        let mut agent = world.agent(revision);
        let wait = json!({ "name": "acquire", "arguments": { "wait": "10m" } });
        let waits = agent.ask("tools/call", wait);
        eventually("it waits in line", PATIENCE, || world.tickets() == 1);
        let cancel = json!({ "requestId": waits, "reason": "no more" });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel });
        agent.send(&cancel);
        world.eventually_nobody_waits();
        world.jvs("lock release").run().ok();
        // It has its answer after everything that was to be done about the wait.
        let status = agent.ok("status", json!({}));
        assert_eq!(status["lock"]["state"], "free", "{status}");
        let others = agent.others();
        assert!(others.iter().all(|it| it["id"] != waits), "it is not answered: {others:?}");
    }
}

#[test]
fn a_stale_handle_never_acts() {
    for revision in BOTH {
        let world = World::new();
        let mut agent = world.agent(revision);
        let stale = agent.acquire();
        world.take_away();
        fs_err::write(world.main().join("a"), "too late").expect("written");
        for (name, arguments) in [
            ("snapshot", json!({ "handle": stale })),
            ("release", json!({ "handle": stale })),
            ("restore", json!({ "handle": stale, "snapshot": "@", "reason": "r" })),
        ] {
            let refused = agent.refused(name, arguments);
            assert_eq!(refused["code"], "E_FENCING_MISMATCH", "{name}: {refused}");
        }
        world.jvs("lock release").run().ok();
        // Nor when the same session has the lock again, under another term.
        let present = agent.acquire();
        assert_ne!(stale, present);
        for name in ["snapshot", "release"] {
            let refused = agent.refused(name, json!({ "handle": stale }));
            assert_eq!(refused["code"], "E_FENCING_MISMATCH", "{name}: {refused}");
        }
        assert_eq!(agent.ok("history", json!({}))["snapshots"], json!([]));
        agent.ok("snapshot", json!({ "handle": present }));
        agent.ok("release", json!({ "handle": present }));
    }
}

#[test]
fn a_handle_is_of_one_epoch_and_of_one_session() {
    let world = World::new();
    let mut agent = world.client();
    let handle = agent.acquire();
    let handle = handle.as_str().expect("text");
    let parts: Vec<&str> = handle.splitn(4, ':').collect();
    let [worktree, token, epoch, session] = parts[..] else { panic!("four parts: {handle}") };
    let other_epoch = format!("{worktree}:{token}:1-0000:{session}");
    for name in ["snapshot", "release"] {
        let refused = agent.refused(name, json!({ "handle": other_epoch }));
        assert_eq!(refused["code"], "E_FENCING_MISMATCH", "{name}: {refused}");
    }
    let other_session = format!("{worktree}:{token}:{epoch}:somebody");
    let refused = agent.refused("release", json!({ "handle": other_session }));
    assert_eq!(refused["code"], "M_HANDLE", "{refused}");
    agent.ok("snapshot", json!({ "handle": handle }));
}

#[test]
fn what_is_wrong_with_the_arguments_is_said_and_nothing_is_done() {
    let world = World::new();
    let mut agent = world.client();
    for (name, arguments, part) in [
        ("acquire", json!({ "wroktree": "main" }), "takes no argument"),
        ("acquire", json!({ "worktree": "--force" }), "has to be a name"),
        ("snapshot", json!({}), "needs the argument handle"),
        ("release", json!({ "handle": "main" }), "is no handle"),
        ("acquire", json!({ "wait": true }), "has to be a duration"),
    ] {
        let refused = agent.refused(name, arguments);
        assert_eq!(refused["code"], "M_ARGUMENTS", "{refused}");
        assert!(refused["message"].as_str().is_some_and(|it| it.contains(part)), "{refused}");
        assert!(refused["next"].is_string(), "{refused}");
    }
    for (arguments, code) in [
        (json!({ "worktree": "nowhere" }), "E_NOT_FOUND"),
        (json!({ "wait": "99999d" }), "E_USAGE"),
        (json!({ "note": "n".repeat(20_000) }), "E_USAGE"),
    ] {
        let refused = agent.refused("acquire", arguments);
        assert_eq!(refused["code"], code, "{refused}");
        assert!(refused["next"].is_string(), "{refused}");
        assert!(refused.to_string().len() < 5_000, "{refused}");
    }
    let unknown = agent.request("tools/call", json!({ "name": "rm", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn a_hold_outlasts_the_time_that_the_policy_gives_to_locks() {
    let world = World::new();
    for key in ["local", "ci", "container", "cloud"] {
        for purpose in ["interactive", "automated"] {
            world.jvs(&format!("config set ttl.{key}.{purpose} 1s")).run().ok();
        }
    }
    let mut agent = world.client();
    agent.acquire();
    world.eventually_free();
    let held = agent.ok("hold", json!({}));
    assert_eq!(held["mine"], true);
    let kept = world.status();
    let until = kept["kept_until"].as_str().expect("until when");
    let until = jvs_repo::clock::WallMs::parse_rfc3339(until).expect("a time");
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_millis();
    assert!(u128::from(until.0) > now + 86_400_000, "{kept}");
}
