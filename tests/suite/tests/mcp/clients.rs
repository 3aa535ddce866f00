//! Clients that others have written: those of the TypeScript and the Python SDK, and the
//! Inspector's command line. `scripts/setup` puts them, and the Node.js that they need, into
//! `target/mcp`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jvs_kit::live::binary;
use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::{Outcome, Running, run};
use serde_json::{Value, json};

use crate::World;

/// How long a conversation may take.
const TALK: Duration = Duration::from_secs(240);
const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

fn installed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp").join(name)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/clients").join(name)
}

/// A program of others, with nothing of the environment but what a user of the world has.
fn program(world: &World, path: &Path) -> Command {
    let as_user = world.server().command();
    let mut command = Command::new(path);
    command.env_clear().current_dir(world.main());
    command.envs(as_user.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.env("MCP_CLIENTS", installed(""));
    command
}

/// Two agents talk in a world of their own; nothing is locked when they have finished.
fn talk(world: &World, mut command: Command, revision: &str) {
    world.jvs("config set reclaim.same_user true").run().ok();
    command.arg(revision).arg(binary::jvs_mcp()).arg(binary::jvs());
    let told = run(command, TALK).ok();
    assert!(told.stdout().ends_with("finished\n"), "{revision}: {told}");
    assert_eq!(world.status()["state"], "free", "{revision}: {told}");
}

#[test]
fn agents_work_wait_lose_and_are_refused_through_the_typescript_client() {
    if !granted(&[Capability::McpClients]) {
        return;
    }
    for revision in REVISIONS {
        let world = World::new();
        let mut node = program(&world, &installed("node"));
        node.arg(script("talk.mjs"));
        talk(&world, node, revision);
    }
}

#[test]
fn agents_work_wait_lose_and_are_refused_through_the_python_client() {
    if !granted(&[Capability::McpClients]) {
        return;
    }
    for revision in REVISIONS {
        let world = World::new();
        let mut python = program(&world, &installed("venv/bin/python"));
        python.arg(script("talk.py"));
        talk(&world, python, revision);
    }
}

/// One request of the Inspector, which starts a server for it.
fn inspector(world: &World, era: &str, words: &[&str]) -> Command {
    let mut node = program(world, &installed("node"));
    node.arg(installed(
        "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
    ));
    node.args(["--cli", "--quiet", "--format", "json", "--protocol-era", era]).args(words);
    node.arg(binary::jvs_mcp()).args(["-e", "JVS_SESSION_ID=inspector"]);
    let home = world.home.home_dir();
    node.arg("-e").arg(format!("HOME={}", home.display()));
    node
}

fn tool(world: &World, era: &str, name: &str, arguments: &Value) -> Command {
    let arguments = arguments.to_string();
    let words = ["--method", "tools/call", "--tool-name", name, "--tool-args-json", &arguments];
    inspector(world, era, &words)
}

/// What the tool answered: the document in its text.
fn answer(told: &Outcome) -> Value {
    let result: Value = serde_json::from_str(told.stdout()).expect("the Inspector prints JSON");
    let text = result["result"]["content"][0]["text"].as_str().expect("text");
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn agents_wait_lose_and_are_refused_through_the_inspector() {
    if !granted(&[Capability::McpClients]) {
        return;
    }
    for era in ["modern", "legacy"] {
        let world = World::new();
        let list = inspector(&world, era, &["--method", "tools/list", "--strict"]);
        let listed = run(list, TALK).ok();
        assert!(listed.stderr().is_empty(), "a schema that some client does not take: {listed}");
        world.jvs("lock acquire").run().ok();
        let refused = run(tool(&world, era, "acquire", &json!({})), TALK);
        assert_eq!(answer(&refused)["error"]["code"], "E_LOCK_CONFLICT", "{refused}");
        let waits = Running::start(tool(&world, era, "acquire", &json!({ "wait": "3m" })));
        jvs_kit::live::process::eventually("it waits in line", TALK, || world.tickets() == 1);
        world.jvs("lock release").run().ok();
        let granted = answer(&waits.wait(TALK).ok());
        let handle = &granted["handle"];
        // Its server has ended with the call, and has released the lock.
        assert_eq!(world.status()["state"], "free", "{granted}");
        let lost = run(tool(&world, era, "snapshot", &json!({ "handle": handle })), TALK);
        assert_eq!(answer(&lost)["error"]["code"], "E_FENCING_MISMATCH", "{lost}");
        let uri = ["--method", "resources/read", "--uri", "jvs://worktrees/main/lock"];
        let read = run(inspector(&world, era, &uri), TALK).ok();
        assert!(read.stdout().contains("jvs://worktrees/main/lock"), "{read}");
    }
}
