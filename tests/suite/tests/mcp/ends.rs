//! Ends of clients and of servers, of which no lock is left.

use std::process::{Command, Stdio};

use jvs_kit::live::process::eventually;
use rustix::process::Signal;
use serde_json::json;

use crate::client::{BOTH, Client, Revision};
use crate::{PATIENCE, World};

#[test]
fn the_end_of_a_connection_releases_what_is_held_and_ends_the_server() {
    for revision in BOTH {
        let world = World::new();
        let mut agent = world.agent(revision);
        agent.ok("hold", json!({}));
        agent.hang_up();
        assert_eq!(agent.ended(), Some(0), "{revision:?}");
        // Not by its keeper, later: it is free when the server is gone.
        assert_eq!(world.status()["state"], "free", "{revision:?}");
    }
}

#[test]
fn a_server_that_is_asked_to_end_releases_what_is_held() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let world = World::new();
        let mut agent = world.client();
        agent.ok("hold", json!({}));
        agent.signal(signal);
        assert_eq!(agent.ended(), Some(0), "{signal:?}");
        assert_eq!(world.status()["state"], "free", "{signal:?}");
    }
}

#[test]
fn a_server_that_is_killed_leaves_no_lock_and_nobody_in_line() {
    let world = World::new();
    let mut agent = world.client();
    agent.ok("hold", json!({}));
    let mut other = world.client();
    let wait = json!({ "name": "acquire", "arguments": { "wait": "10m" } });
    other.ask("tools/call", wait);
    eventually("it waits in line", PATIENCE, || world.tickets() == 1);
    other.signal(Signal::KILL);
    other.ended();
    world.eventually_nobody_waits();
    agent.signal(Signal::KILL);
    agent.ended();
    world.eventually_free();
}

#[test]
fn the_end_of_a_connection_ends_a_wait() {
    for revision in BOTH {
        let world = World::new();
        world.jvs("lock acquire").run().ok();
        let mut agent = world.agent(revision);
        let wait = json!({ "name": "acquire", "arguments": { "wait": "10m" } });
        agent.ask("tools/call", wait);
        eventually("it waits in line", PATIENCE, || world.tickets() == 1);
        agent.hang_up();
        assert_eq!(agent.ended(), Some(0), "{revision:?}");
        assert_eq!(world.tickets(), 0, "{revision:?}");
    }
}

/// The client is `cat`, which is between the test and the server and is killed.
#[test]
fn a_client_that_is_killed_leaves_no_lock() {
    let world = World::new();
    let mut agent = Client::start(&world.server(), Revision::Current, json!({}));
    // In one expression: what starts a program keeps the pipe that it was given.
    let input = Stdio::from(agent.take_input());
    let mut client =
        Command::new("cat").stdin(Stdio::piped()).stdout(input).spawn().expect("cat starts");
    agent.give_input(client.stdin.take().expect("a pipe"));
    agent.ok("hold", json!({}));
    assert_eq!(world.status()["state"], "held");
    client.kill().expect("it is there");
    client.wait().expect("it ends");
    assert_eq!(agent.ended(), Some(0));
    assert_eq!(world.status()["state"], "free");
}

#[test]
fn a_second_server_for_a_session_is_refused_until_the_first_has_ended() {
    for revision in BOTH {
        let world = World::new();
        let server = world.server().env("JVS_SESSION_ID", "agent-1");
        let mut first = Client::connect(&server, revision, json!({}));
        let handle = first.acquire();
        assert!(handle.as_str().is_some_and(|it| it.ends_with(":agent-1")), "{handle}");
        let mut second = Client::start(&server, revision, json!({}));
        let (method, params) = match revision {
            Revision::Current => ("tools/call", json!({ "name": "release" })),
            Revision::Previous => ("initialize", second.hello()),
        };
        let refused = second.request(method, params)["error"].clone();
        let message = refused["message"].as_str().expect("why");
        let first_one = format!("another jvs-mcp (process {})", first.pid().as_raw_nonzero());
        assert!(message.contains(&first_one) && message.contains("'agent-1'"), "{message}");
        second.hang_up();
        assert_eq!(second.ended(), Some(1));
        first.ok("snapshot", json!({ "handle": handle }));
        first.hang_up();
        // It need not have ended yet: a client that starts its server again is not refused.
        let mut again = Client::connect(&server, revision, json!({}));
        again.acquire();
        first.ended();
    }
}
