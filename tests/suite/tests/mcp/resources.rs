//! What clients read, and what they are told when it changes.

use serde_json::{Value, json};

use crate::World;
use crate::client::{BOTH, Client, Revision};

#[track_caller]
fn read(client: &mut Client, uri: &str) -> Value {
    let told = client.request("resources/read", json!({ "uri": uri }));
    let contents = &told["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "application/json", "{uri}: {told}");
    serde_json::from_str(contents["text"].as_str().expect("text")).expect("JSON")
}

#[test]
fn locks_histories_and_snapshots_can_be_read() {
    for revision in BOTH {
        let world = World::new();
        let mut client = world.agent(revision);
        let handle = client.acquire();
        let taken = client.ok("snapshot", json!({ "handle": handle, "note": "one" }));
        let id = taken["snapshot_id"].as_str().expect("an id");
        let listed = client.request("resources/list", json!({}))["result"]["resources"].clone();
        let listed = listed.as_array().expect("a list");
        let uris: Vec<&str> = listed.iter().filter_map(|it| it["uri"].as_str()).collect();
        assert_eq!(
            uris,
            [
                "jvs://locks",
                "jvs://snapshots",
                "jvs://worktrees/main/lock",
                "jvs://worktrees/main/history"
            ]
        );
        assert_eq!(read(&mut client, "jvs://locks")["locks"][0]["mine"], true);
        assert_eq!(read(&mut client, "jvs://snapshots")["snapshots"][0]["snapshot_id"], id);
        assert_eq!(read(&mut client, "jvs://worktrees/main/lock")["state"], "held");
        let history = read(&mut client, "jvs://worktrees/main/history");
        assert_eq!(history["snapshots"][0]["note"], "one");
        assert_eq!(read(&mut client, &format!("jvs://snapshots/{id}"))["note"], "one");
        let templates = client.request("resources/templates/list", json!({}));
        assert_eq!(templates["result"]["resourceTemplates"].as_array().map(Vec::len), Some(3));
        for uri in ["jvs://worktrees/none/lock", "jvs://snapshots/--help", "file:///etc/passwd"] {
            let told = client.request("resources/read", json!({ "uri": uri }));
            assert!(told["error"]["message"].is_string(), "{uri}: {told}");
        }
    }
}

#[test]
fn who_has_subscribed_is_told_of_a_change_and_nobody_else_is() {
    for revision in BOTH {
        let world = World::new();
        let mut client = world.agent(revision);
        client.request("resources/list", json!({}));
        let (lock, list) = ("jvs://worktrees/main/lock", "notifications/resources/list_changed");
        match revision {
            Revision::Previous => {
                client.request("resources/subscribe", json!({ "uri": lock }));
            }
            Revision::Current => {
                let wanted =
                    json!({ "resourcesListChanged": true, "resourceSubscriptions": [lock] });
                client.ask("subscriptions/listen", json!({ "notifications": wanted }));
                client.notice("notifications/subscriptions/acknowledged");
            }
        }
        // Whatever was read before is not older than what changes are told of.
        assert_eq!(read(&mut client, lock)["state"], "free");
        world.jvs("lock acquire").run().ok();
        world.jvs("worktree create other").run().ok();
        loop {
            let told = client.notice("notifications/resources/updated");
            assert_eq!(told["params"]["uri"], lock, "{told}");
            if read(&mut client, lock)["state"] == "held" {
                break;
            }
        }
        client.notice(list);
        let others = client.others();
        let strange = others.iter().find(|it| {
            it["method"] != list
                && (it["method"] != "notifications/resources/updated"
                    || it["params"]["uri"] != lock)
        });
        assert_eq!(strange, None, "only what was asked for");
    }
}
