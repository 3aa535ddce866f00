//! What only a person decides.

use std::process::Command;

use jvs_kit::live::binary;
use jvs_kit::live::process::run;
use serde_json::{Value, json};

use crate::client::{BOTH, Client, Revision};
use crate::{PATIENCE, World};

/// An agent whose client can ask its person.
fn attended(world: &World, revision: Revision) -> Client {
    Client::connect(&world.server(), revision, json!({ "elicitation": { "form": {} } }))
}

/// Calls a tool, has the person give this answer, and answers the result.
#[track_caller]
fn asked(client: &mut Client, revision: Revision, call: &Value, person: &Value) -> Value {
    asked_while(client, revision, call, person, || {})
}

/// The same; `meanwhile` happens before the person answers.
#[track_caller]
fn asked_while(
    client: &mut Client,
    revision: Revision,
    call: &Value,
    person: &Value,
    meanwhile: impl FnOnce(),
) -> Value {
    let id = client.ask("tools/call", call.clone());
    if revision == Revision::Previous {
        let question = client.notice("elicitation/create");
        assert!(question["params"]["message"].is_string(), "{question}");
        meanwhile();
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": person }));
        return client.answer(id)["result"].clone();
    }
    let question = client.answer(id)["result"].clone();
    assert_eq!(question["resultType"], "input_required", "{question}");
    meanwhile();
    let again = with_answer(call, &question["requestState"], person);
    client.request("tools/call", again)["result"].clone()
}

fn with_answer(call: &Value, state: &Value, person: &Value) -> Value {
    let mut again = call.clone();
    again["inputResponses"] = json!({ "confirm": person });
    again["requestState"] = state.clone();
    again
}

fn yes() -> Value {
    json!({ "action": "accept", "content": { "confirm": true } })
}

#[test]
fn files_are_replaced_if_a_person_agrees_and_not_otherwise() {
    for revision in BOTH {
        let world = World::new();
        let file = world.main().join("a");
        let mut client = attended(&world, revision);
        let handle = client.acquire();
        fs_err::write(&file, "before").expect("written");
        client.ok("snapshot", json!({ "handle": handle, "tags": ["good"] }));
        fs_err::write(&file, "after").expect("written");
        let arguments = json!({ "handle": handle, "snapshot": "good", "reason": "it was better" });
        let call = json!({ "name": "restore", "arguments": arguments });
        for no in [
            json!({ "action": "decline" }),
            json!({ "action": "cancel" }),
            json!({ "action": "accept", "content": { "confirm": false } }),
        ] {
            let told = asked(&mut client, revision, &call, &no);
            assert_eq!(told["isError"], true, "{told}");
            assert!(
                told["content"][0]["text"].as_str().is_some_and(|it| it.contains("M_DECLINED"))
            );
            assert_eq!(fs_err::read_to_string(&file).expect("read"), "after");
        }
        let told = asked(&mut client, revision, &call, &yes());
        assert_eq!(told["isError"], false, "{told}");
        assert_eq!(fs_err::read_to_string(&file).expect("read"), "before");
    }
}

#[test]
fn an_agreement_is_to_what_was_asked_and_to_nothing_else() {
    let world = World::new();
    let mut client = attended(&world, Revision::Current);
    let handle = client.acquire();
    client.ok("snapshot", json!({ "handle": handle }));
    let call = |reason: &str| {
        let arguments = json!({ "handle": handle, "snapshot": "@", "reason": reason });
        json!({ "name": "restore", "arguments": arguments })
    };
    let mut is_asked = |call: Value| {
        let told = client.request("tools/call", call)["result"].clone();
        assert_eq!(told["resultType"], "input_required", "{told}");
        told["requestState"].clone()
    };
    // Nobody was asked.
    is_asked(with_answer(&call("a"), &json!("made up"), &yes()));
    let state = is_asked(call("a"));
    // Something else was asked.
    is_asked(with_answer(&call("b"), &state, &yes()));
    // The question was answered by then, even if it was not by that.
    is_asked(with_answer(&call("a"), &state, &yes()));
}

#[test]
fn a_lock_that_changed_hands_before_the_yes_is_not_taken() {
    for revision in BOTH {
        for then_free in [false, true] {
            let world = World::new();
            world.jvs("config set reclaim.same_user true").run().ok();
            world.jvs("lock acquire").run().ok();
            let mut client = attended(&world, revision);
            let call = json!({ "name": "reclaim", "arguments": { "reason": "urgent" } });
            let told = asked_while(&mut client, revision, &call, &yes(), || {
                match then_free {
                    true => world.jvs("lock release").run().ok(),
                    false => world.jvs("lock reclaim --reason mine").session("bob").run().ok(),
                };
            });
            let state = world.status();
            match revision {
                Revision::Previous => {
                    assert_eq!(told["isError"], true, "{told}");
                    let text = told["content"][0]["text"].as_str().expect("text");
                    assert!(text.contains("M_CHANGED"), "{text}");
                }
                Revision::Current => assert_eq!(told["resultType"], "input_required", "{told}"),
            }
            match then_free {
                true => assert_eq!(state["state"], "free"),
                false => assert_eq!(state["record"]["session_id"], "bob"),
            }
        }
    }
}

#[test]
fn where_nobody_can_be_asked_the_command_to_type_is_said_and_works() {
    for revision in BOTH {
        let world = World::new();
        world.jvs("config set reclaim.same_user true").run().ok();
        world.jvs("lock acquire").run().ok();
        let mut client = world.agent(revision);
        let refused = client.refused("reclaim", json!({ "reason": "it's urgent" }));
        assert_eq!(refused["code"], "M_NO_PERSON", "{refused}");
        assert_eq!(world.status()["record"]["session_id"], "rival");
        let typed = refused["hint"].as_str().expect("a command");
        let as_typed = world.home.jvs::<&str>([]).command();
        let mut shell = Command::new("sh");
        shell.env_clear().arg("-c").arg(typed);
        shell.envs(as_typed.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let bin = binary::jvs().parent().expect("a directory").display().to_string();
        shell.env("PATH", format!("{bin}:/usr/bin:/bin")).env_remove("JVS_KEEP_WHILE");
        run(shell, PATIENCE).ok();
        // It is the agent's, which has a handle as soon as it asks for one.
        let handle = client.acquire();
        client.ok("release", json!({ "handle": handle }));
    }
}

#[test]
fn a_lock_is_taken_from_a_holder_if_a_person_agrees() {
    for revision in BOTH {
        let world = World::new();
        world.jvs("config set reclaim.same_user true").run().ok();
        world.jvs("lock acquire").run().ok();
        let mut client = attended(&world, revision);
        let call = json!({ "name": "reclaim", "arguments": { "reason": "urgent" } });
        let told = asked(&mut client, revision, &call, &yes());
        let handle = told["structuredContent"]["handle"].clone();
        client.ok("snapshot", json!({ "handle": handle }));
        client.hang_up();
        client.ended();
        world.eventually_free();
    }
}

#[test]
fn an_operation_is_taken_back_if_a_person_agrees_and_done_again() {
    for revision in BOTH {
        let world = World::new();
        let file = world.main().join("a");
        let mut client = attended(&world, revision);
        let handle = client.acquire();
        let read = || fs_err::read_to_string(&file).expect("read");
        fs_err::write(&file, "before").expect("written");
        client.ok("snapshot", json!({ "handle": handle, "tags": ["good"] }));
        fs_err::write(&file, "after").expect("written");
        let restore = json!({ "handle": handle, "snapshot": "good", "reason": "it was better" });
        let call = json!({ "name": "restore", "arguments": restore });
        asked(&mut client, revision, &call, &yes());
        assert_eq!(read(), "before");
        let undo = |op: Option<&Value>| {
            let mut arguments = json!({ "handle": handle });
            if let Some(op) = op {
                arguments["op"] = op.clone();
            }
            json!({ "name": "undo", "arguments": arguments })
        };
        let told = asked(&mut client, revision, &undo(None), &json!({ "action": "decline" }));
        assert_eq!((&told["isError"], read()), (&json!(true), "before".to_owned()), "{told}");
        let told = asked(&mut client, revision, &undo(None), &yes());
        assert_eq!((&told["isError"], read()), (&json!(false), "after".to_owned()), "{told}");
        let by = &told["structuredContent"]["by"];
        assert!(by.is_string(), "{told}");
        let told = asked(&mut client, revision, &undo(Some(by)), &yes());
        assert_eq!((&told["isError"], read()), (&json!(false), "before".to_owned()), "{told}");
    }
}

#[test]
fn what_was_done_since_the_question_is_not_taken_back() {
    let world = World::new();
    let mut client = attended(&world, Revision::Current);
    let handle = client.acquire();
    client.ok("snapshot", json!({ "handle": handle, "note": "one" }));
    let call = json!({ "name": "undo", "arguments": { "handle": handle } });
    let question = client.request("tools/call", call.clone())["result"].clone();
    assert_eq!(question["resultType"], "input_required", "{question}");
    let asked = question["inputRequests"]["confirm"]["params"]["message"].as_str().unwrap_or("");
    assert!(asked.starts_with("Take this operation back: took snapshot "), "{question}");
    client.ok("snapshot", json!({ "handle": handle, "note": "two" }));
    let told = with_answer(&call, &question["requestState"], &yes());
    let told = client.request("tools/call", told)["result"].clone();
    assert_eq!(told["resultType"], "input_required", "another question: {told}");
    let history = client.ok("history", json!({}));
    assert_eq!(history["snapshots"].as_array().map(Vec::len), Some(2), "{history}");
}

#[test]
fn nobody_is_asked_to_take_back_what_cannot_be_or_by_whom_it_is_not_held() {
    let world = World::new();
    let mut client = attended(&world, Revision::Current);
    let handle = client.acquire();
    let refused = client.refused("undo", json!({ "handle": handle }));
    assert_eq!(refused["code"], "E_UNDO_REFUSED", "{refused}");
    client.ok("snapshot", json!({ "handle": handle }));
    let refused = client.refused("undo", json!({ "handle": handle, "op": "no such" }));
    assert_eq!(refused["code"], "E_UNDO_REFUSED", "{refused}");
    for op in ["", "--list", "-x"] {
        let refused = client.refused("undo", json!({ "handle": handle, "op": op }));
        assert_eq!(refused["code"], "M_ARGUMENTS", "{refused}");
    }
    world.take_away();
    let refused = client.refused("undo", json!({ "handle": handle }));
    assert_eq!(refused["code"], "E_FENCING_MISMATCH", "{refused}");
}
