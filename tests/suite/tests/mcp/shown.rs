//! What clients are shown before they do anything.

use serde_json::json;

use crate::World;
use crate::client::{BOTH, Client, Revision};

#[test]
fn both_revisions_of_the_protocol_have_the_same_tools() {
    let world = World::new();
    let tools = BOTH.map(|revision| {
        let told = world.agent(revision).request("tools/list", json!({}));
        told["result"]["tools"].clone()
    });
    assert_eq!(tools[0], tools[1]);
    let names: Vec<_> = tools[0].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    for name in [
        "status", "why", "acquire", "hold", "release", "snapshot", "history", "diff", "restore",
        "undo", "steal", "reclaim",
    ] {
        assert!(names.contains(&&json!(name)), "{name}: {names:?}");
    }
}

#[test]
fn a_client_finds_out_what_the_server_can_do_before_anything_else() {
    let world = World::new();
    let mut client = Client::start(&world.server(), Revision::Current, json!({}));
    let told = client.request("server/discover", json!({}))["result"].clone();
    let versions = told["supportedVersions"].as_array().expect("a list");
    for version in ["2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{told}");
    }
    assert_eq!(told["capabilities"]["resources"]["subscribe"], true, "{told}");
    assert!(told["instructions"].as_str().is_some_and(|it| it.contains("acquire")), "{told}");
}

#[test]
fn every_answer_has_the_fields_that_its_schema_promises() {
    let world = World::new();
    fs_err::write(world.main().join("a"), "1").expect("written");
    let mut client = world.client();
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let handle = client.ok("hold", json!({ "note": "n" }))["handle"].clone();
    for (name, arguments) in [
        ("status", json!({})),
        ("acquire", json!({ "for": "1h" })),
        ("why", json!({ "worktree": "main" })),
        ("snapshot", json!({ "handle": handle, "note": "-x", "tags": ["one"] })),
        ("history", json!({ "limit": 1 })),
        ("diff", json!({ "from": "one" })),
        ("status", json!({})),
        ("release", json!({ "handle": handle })),
    ] {
        let answer = client.ok(name, arguments);
        let mut shown = tools.as_array().expect("a list").iter();
        let shown = shown.find(|tool| tool["name"] == name).expect("it is shown");
        let schema = &shown["outputSchema"];
        for field in schema["required"].as_array().expect("a list") {
            let field = field.as_str().expect("a name");
            let is = |kind: &str| match kind {
                "string" => answer[field].is_string(),
                "integer" => answer[field].is_u64(),
                "boolean" => answer[field].is_boolean(),
                "array" => answer[field].is_array(),
                _ => answer[field].is_object(),
            };
            let promised = &schema["properties"][field];
            let may_be_null = promised["anyOf"][1]["type"] == "null";
            let kind = promised["type"].as_str().or(promised["anyOf"][0]["type"].as_str());
            let is_so = is(kind.expect("a type")) || (may_be_null && answer[field].is_null());
            assert!(is_so, "{name}: {field} is no {promised}: {answer}");
        }
    }
}
