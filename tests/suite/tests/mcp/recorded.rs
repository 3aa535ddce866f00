//! The conversation of docs/mcp.md, held again: what it shows is what is said.
//!
//! `JVS_BLESS=1` writes the page anew.

use std::path::Path;

use serde_json::{Value, json};

use crate::World;
use crate::client::{Client, Revision};

const HEAD: &str = "\
# Two agents over MCP, recorded

What two coding agents say to their servers, and what they are answered, on one worktree. Each
arrow is one message of revision 2026-07-28, with the fields that matter here; the names of
sessions and snapshots were shortened. A test holds this conversation again and compares.
";

/// Fields of answers that are shown, in this order.
const SHOWN: [&str; 17] = [
    "handle",
    "worktree",
    "state",
    "mine",
    "how",
    "snapshot_id",
    "note",
    "files",
    "code",
    "message",
    "next",
    "differences",
    "added",
    "removed",
    "changed",
    "path",
    "change",
];

/// What was said so far, and what long names are called in it.
struct Tape {
    text: String,
    names: Vec<(String, String)>,
}

impl Tape {
    /// Says what comes, and begins a block.
    fn tell(&mut self, text: &str) {
        self.text.push_str(&format!("\n{text}\n\n```text\n"));
    }

    fn end(&mut self) {
        self.text.push_str("```\n");
    }

    fn line(&mut self, who: &str, arrow: &str, message: &Value) {
        let mut line = message.to_string();
        for (long, short) in &self.names {
            line = line.replace(long, short);
        }
        self.text.push_str(&format!("{who} {arrow} {line}\n"));
    }

    fn name(&mut self, long: &Value, short: &str) {
        let long = long.as_str().expect("a name").to_owned();
        self.names.push((long, short.to_owned()));
    }

    fn asks(&mut self, who: &str, client: &mut Client, name: &str, arguments: &Value) -> u64 {
        let call = json!({ "name": name, "arguments": arguments });
        self.line(who, "→", &json!({ "method": "tools/call", "params": call }));
        let mut call = call;
        call["_meta"]["progressToken"] = who.into();
        client.ask("tools/call", call)
    }

    /// Shows what was answered.
    fn says(&mut self, who: &str, result: &Value) {
        let shown = match (&result["resultType"], &result["isError"]) {
            (kind, _) if kind == "input_required" => {
                let asked = &result["inputRequests"]["confirm"]["params"]["message"];
                json!({ "resultType": kind, "inputRequests": { "confirm": { "message": asked } } })
            }
            (_, Value::Bool(true)) => {
                let text = result["content"][0]["text"].as_str().expect("text");
                let document: Value = serde_json::from_str(text).expect("JSON");
                let error = &document["error"];
                json!({
                    "isError": true,
                    "error": { "code": error["code"], "next": error["next"] }
                })
            }
            _ => shown(&result["structuredContent"]),
        };
        self.line(who, "←", &shown);
    }

    fn call(&mut self, who: &str, client: &mut Client, name: &str, arguments: &Value) -> Value {
        let id = self.asks(who, client, name, arguments);
        let result = client.answer(id)["result"].clone();
        self.says(who, &result);
        result["structuredContent"].clone()
    }
}

/// The fields that matter.
fn shown(answer: &Value) -> Value {
    match answer {
        Value::Object(fields) => {
            let known = SHOWN.iter().filter_map(|name| Some((*name, fields.get(*name)?)));
            let known = known.filter(|(_, value)| !value.is_null());
            known.map(|(name, value)| (name.to_owned(), shown(value))).collect()
        }
        Value::Array(list) => list.iter().map(shown).collect(),
        plain => plain.clone(),
    }
}

fn session(handle: &Value) -> Value {
    let text = handle.as_str().expect("text");
    text.splitn(4, ':').nth(3).expect("a session").into()
}

#[test]
fn what_the_page_of_two_agents_shows_is_what_is_said() {
    let world = World::new();
    let file = world.main().join("parser.c");
    fs_err::write(&file, "one").expect("written");
    let able = json!({ "elicitation": { "form": {} } });
    let mut a = world.client();
    let mut b = Client::connect(&world.server(), Revision::Current, able);
    let mut tape = Tape { text: HEAD.to_owned(), names: Vec::new() };

    tape.tell("A takes the lock; B finds it taken, and waits in line.");
    let id = tape.asks("A", &mut a, "acquire", &json!({ "note": "the parser" }));
    let result = a.answer(id)["result"].clone();
    let granted = &result["structuredContent"];
    let handle = granted["handle"].clone();
    tape.name(&session(&handle), "mcp:A");
    tape.name(&granted["record"]["epoch"], "1-epoch");
    let [user, host] = ["user", "host"].map(|name| granted[name].as_str().expect("a name"));
    tape.names.push((format!("by {user} on {host} "), "by ann on vm ".to_owned()));
    tape.says("A", &result);
    tape.call("B", &mut b, "acquire", &json!({}));
    let waits = tape.asks("B", &mut b, "acquire", &json!({ "wait": "5m" }));
    let progress = b.notice("notifications/progress")["params"].clone();
    let message = json!({ "message": progress["message"], "total": progress["total"] });
    tape.line("B", "←", &json!({ "method": "notifications/progress", "params": message }));
    tape.end();

    tape.tell("A keeps what it did and releases the lock, and B has it.");
    let keep = json!({ "handle": handle, "note": "parser done" });
    let id = tape.asks("A", &mut a, "snapshot", &keep);
    let taken = a.answer(id)["result"].clone();
    let snapshot = taken["structuredContent"]["snapshot_id"].clone();
    tape.name(&snapshot, "SNAPSHOT-1");
    tape.says("A", &taken);
    tape.call("A", &mut a, "release", &json!({ "handle": handle }));
    let granted = b.answer(waits)["result"].clone();
    let handle = granted["structuredContent"]["handle"].clone();
    tape.name(&session(&handle), "mcp:B");
    tape.says("B", &granted);
    tape.end();

    tape.tell(
        "Somebody takes the lock away from B, which finds out with its next call. Nothing of what\n\
         it writes from then on is published.",
    );
    world.take_away();
    fs_err::write(&file, "too late").expect("written");
    tape.call("B", &mut b, "snapshot", &json!({ "handle": handle }));
    world.jvs("lock release").run().ok();
    tape.end();

    tape.tell(
        "It takes the lock again, looks at what is there, and wants the files back as A left\n\
         them. A person is asked, and agrees.",
    );
    let handle = tape.call("B", &mut b, "acquire", &json!({}))["handle"].clone();
    tape.call("B", &mut b, "diff", &json!({}));
    let reason = "written without the lock";
    let wish = json!({ "handle": handle, "snapshot": snapshot, "reason": reason });
    let id = tape.asks("B", &mut b, "restore", &wish);
    let asked = b.answer(id)["result"].clone();
    tape.says("B", &asked);
    let yes = json!({ "confirm": { "action": "accept", "content": { "confirm": true } } });
    let mut call = json!({ "name": "restore", "arguments": wish, "inputResponses": yes });
    tape.line("B", "→", &json!({ "method": "tools/call", "params": call }));
    call["requestState"] = asked["requestState"].clone();
    let restored = b.request("tools/call", call)["result"].clone();
    tape.says("B", &restored);
    tape.end();
    assert_eq!(fs_err::read_to_string(&file).expect("read"), "one");

    tape.text.push_str("\nThe client of B is closed. Its server releases the lock and ends.\n");
    b.hang_up();
    assert_eq!(b.ended(), Some(0));
    assert_eq!(world.status()["state"], "free");

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md");
    if std::env::var_os("JVS_BLESS").is_some() {
        fs_err::write(&page, &tape.text).expect("written");
    }
    let there = fs_err::read_to_string(&page).expect("the page");
    assert_eq!(there, tape.text, "JVS_BLESS=1 writes it anew");
}
