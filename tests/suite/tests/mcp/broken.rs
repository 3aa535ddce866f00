//! A command that is not there, hangs, or says what nobody understands: a stand-in for it
//! is beside a copy of the server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use jvs_kit::live::binary;
use jvs_kit::live::process::eventually;
use serde_json::{Value, json};

use crate::client::{BOTH, Client, Revision};
use crate::{PATIENCE, World};

/// A server with this script beside it instead of the command.
fn beside(world: &World, revision: Revision, script: Option<&str>) -> Client {
    let dir = world.dir.path().join("bin");
    fs_err::create_dir_all(&dir).expect("a directory");
    let server = dir.join("jvs-mcp");
    fs_err::copy(binary::jvs_mcp(), &server).expect("a copy");
    if let Some(script) = script {
        let path = dir.join("jvs");
        fs_err::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(&path, mode).expect("a program");
    }
    let server = world.server().program(&server).env("PATH", "/usr/bin:/bin");
    Client::connect(&server, revision, json!({}))
}

#[test]
fn a_command_that_is_not_there_or_says_nothing_is_told() {
    for (script, part) in [
        (None, "No such file"),
        (Some("echo it is on fire >&2; exit 1"), "it is on fire"),
        (Some("echo '{\"ok\":true}{'"), "did not answer"),
        (Some("kill -SEGV $$"), "did not answer"),
    ] {
        let world = World::new();
        let mut client = beside(&world, Revision::Current, script);
        for (name, arguments) in [("status", json!({})), ("acquire", json!({}))] {
            let refused = client.refused(name, arguments);
            assert_eq!(refused["code"], "M_COMMAND", "{name}: {refused}");
            let message = refused["message"].as_str().expect("why");
            assert!(message.contains(part), "{name}: {message}");
        }
        let uri = json!({ "uri": "jvs://locks" });
        let told = client.request("resources/read", uri);
        assert!(told["error"]["message"].is_string(), "{told}");
        client.hang_up();
        assert_eq!(client.ended(), Some(0));
    }
}

#[test]
fn an_answer_that_is_too_long_is_refused() {
    let world = World::new();
    let mut client = beside(&world, Revision::Current, Some("yes '{\"ok\":'"));
    let refused = client.refused("history", json!({}));
    assert_eq!(refused["code"], "M_TOO_LONG", "{refused}");
}

#[test]
fn a_command_that_hangs_is_ended_with_its_call() {
    for revision in BOTH {
        let world = World::new();
        let pid = world.dir.path().join("pid");
        // It does not end when it is asked to.
        let script =
            format!("trap '' TERM; echo $$ > '{}'; while :; do sleep 0.05; done", pid.display());
        let mut client = beside(&world, revision, Some(&script));
        let call = json!({ "name": "status", "arguments": {} });
        let hangs = client.ask("tools/call", call);
        let process = || -> Option<PathBuf> {
            let pid = fs_err::read_to_string(&pid).ok()?;
            Some(PathBuf::from(format!("/proc/{}", pid.trim()))).filter(|it| it.is_dir())
        };
        eventually("it runs", PATIENCE, || process().is_some());
        let cancel = json!({ "requestId": hangs });
        client.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }),
        );
        eventually("it has ended", PATIENCE, || process().is_none());
        let others = client.others();
        let answered = |it: &Value| it["id"] == hangs;
        assert!(!others.iter().any(answered), "{others:?}");
        client.hang_up();
        assert_eq!(client.ended(), Some(0));
    }
}
