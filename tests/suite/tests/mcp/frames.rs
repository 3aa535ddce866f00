//! What is not what the protocol says.

use jvs_kit::live::process::eventually;
use serde_json::{Value, json};

use crate::client::{BOTH, Client, Revision};
use crate::{PATIENCE, World};

#[test]
fn what_is_no_message_is_an_error_and_the_server_goes_on() {
    for revision in BOTH {
        let world = World::new();
        let mut client = world.agent(revision);
        let handle = client.acquire();
        let deep = "[".repeat(10_000);
        for (bytes, code) in [
            (b"{".as_slice(), -32700),
            (b"\xff\xfe\x00", -32700),
            (deep.as_bytes(), -32700),
            (b"[]", -32600),
            (b"{\"jsonrpc\":\"2.0\"}", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        ] {
            client.send_bytes(bytes);
            let told = client.message("an error", |it| it["error"].is_object());
            assert_eq!(told["error"]["code"], code, "{told}");
            assert!(told["id"].is_null(), "{told}");
        }
        for params in [json!(7), json!({ "name": 7 }), json!({})] {
            let wrong =
                json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": params });
            client.send(&wrong);
            let told = client.message("an error", |it| it["id"] == "x");
            assert_eq!(told["error"]["code"], -32602, "{params}: {told}");
        }
        let told = client.request("no/such/method", json!({}));
        assert_eq!(told["error"]["code"], -32601, "{told}");
        assert!(told["error"]["message"].as_str().is_some_and(|it| it.contains("no/such/method")));
        let told = client.request(&"x".repeat(100_000), json!({}));
        assert_eq!(told["error"]["code"], -32601);
        assert!(
            told.to_string().len() < 5_000,
            "it is repeated in {} bytes",
            told.to_string().len()
        );
        // A notification is never answered.
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/no/such" }));
        client.ok("release", json!({ "handle": handle }));
        assert_eq!(world.status()["state"], "free");
        assert_eq!(client.others(), [] as [Value; 0]);
    }
}

#[test]
fn a_huge_message_is_refused_and_takes_no_memory() {
    let world = World::new();
    let mut client = world.client();
    client.ok("status", json!({}));
    let before = peak_kb(&client);
    let some = vec![b'x'; 1 << 20];
    for _ in 0..63 {
        client.send_part(&some);
    }
    client.send_bytes(&some);
    let told = client.message("an error", |it| it["error"].is_object());
    assert_eq!(told["error"]["code"], -32600, "{told}");
    assert!(told["error"]["message"].as_str().is_some_and(|it| it.contains("1 MiB")), "{told}");
    client.ok("status", json!({}));
    let grown = peak_kb(&client) - before;
    assert!(grown < 16 * 1024, "{grown} KiB more than before");
}

/// The most memory that the server has ever had.
fn peak_kb(client: &Client) -> u64 {
    let status = format!("/proc/{}/status", client.pid().as_raw_nonzero());
    let status = fs_err::read_to_string(status).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("told");
    line.split_whitespace().next().and_then(|kb| kb.parse().ok()).expect("a number")
}

#[test]
fn what_comes_before_the_first_request_is_passed_over() {
    for revision in BOTH {
        let world = World::new();
        let mut client = Client::start(&world.server(), revision, json!({}));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client.send(&json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
        client.send_bytes(b"");
        client.send_bytes(b"  \r");
        if revision == Revision::Previous {
            let told = client.request("initialize", client.hello());
            assert_eq!(told["result"]["protocolVersion"], "2025-11-25", "{told}");
        }
        client.ok("status", json!({}));
    }
}

#[test]
fn more_requests_than_are_answered_at_once_are_refused() {
    let world = World::new();
    world.jvs("lock acquire").run().ok();
    let mut client = world.client();
    let wait = json!({ "name": "acquire", "arguments": { "wait": "10m" } });
    let first = client.ask("tools/call", wait.clone());
    eventually("it waits in line", PATIENCE, || world.tickets() == 1);
    // The same id once more.
    client.send(&json!({ "jsonrpc": "2.0", "id": first, "method": "tools/list" }));
    let told = client.answer(first);
    assert_eq!(told["error"]["code"], -32600, "{told}");
    for _ in 0..63 {
        client.ask("tools/call", wait.clone());
    }
    let told = client.request("tools/call", wait);
    let message = told["error"]["message"].as_str().expect("why");
    assert!(message.contains("64 requests"), "{message}");
    client.hang_up();
    assert_eq!(client.ended(), Some(0));
    assert_eq!(world.tickets(), 0);
    assert_eq!(world.status()["record"]["session_id"], "rival");
}
