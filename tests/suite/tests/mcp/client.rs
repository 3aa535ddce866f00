//! A client that speaks JSON-RPC itself, line by line: what it sends may be wrong.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use jvs_kit::live::home::Jvs;
use jvs_kit::live::process::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::PATIENCE;

/// The revision of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    /// Without sessions: each request says all that there is to know.
    Current,
    /// With a handshake.
    Previous,
}

pub(crate) const BOTH: [Revision; 2] = [Revision::Current, Revision::Previous];

pub(crate) struct Client {
    pub(crate) server: Child,
    input: Option<ChildStdin>,
    output: fs_err::File,
    /// What was read and is not a whole line yet.
    rest: Vec<u8>,
    /// Messages that nobody has asked for yet.
    came: Vec<Value>,
    revision: Revision,
    able: Value,
    last_id: u64,
    _dir: tempfile::TempDir,
}

impl Client {
    /// Starts a server and opens a connection. `able` is what this client can do.
    #[track_caller]
    pub(crate) fn connect(server: &Jvs, revision: Revision, able: Value) -> Client {
        let mut client = Client::start(server, revision, able);
        client.shake_hands();
        client
    }

    /// Starts a server and says nothing.
    #[track_caller]
    pub(crate) fn start(server: &Jvs, revision: Revision, able: Value) -> Client {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("said");
        let mut command = server.command();
        let said = fs_err::File::create(&path).expect("a file");
        command.stdin(Stdio::piped()).stdout(said.into_file());
        let log = fs_err::File::create(dir.path().join("log")).expect("a file");
        command.stderr(log.into_file());
        let mut server = command.spawn().expect("the server starts");
        let input = server.stdin.take();
        let output = fs_err::File::open(path).expect("its output");
        let (rest, came, last_id) = (Vec::new(), Vec::new(), 0);
        Client { server, input, output, rest, came, revision, able, last_id, _dir: dir }
    }

    #[track_caller]
    fn shake_hands(&mut self) {
        if self.revision == Revision::Previous {
            let told = self.request("initialize", self.hello());
            assert_eq!(told["result"]["protocolVersion"], "2025-11-25", "{told}");
            self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
    }

    pub(crate) fn hello(&self) -> Value {
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.able,
            "clientInfo": { "name": "test", "version": "1" },
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.server)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the server is there");
    }

    /// Sends these bytes.
    #[track_caller]
    pub(crate) fn send_part(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the connection is open");
        input.write_all(bytes).expect("the server reads");
    }

    /// Sends these bytes and the end of a line.
    #[track_caller]
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.send_part(bytes);
        self.send_part(b"\n");
    }

    #[track_caller]
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    /// Sends a request and answers its id.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.revision == Revision::Current {
            let meta = params["_meta"].take();
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": self.able,
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
            for (key, value) in meta.as_object().into_iter().flatten() {
                params["_meta"][key] = value.clone();
            }
        }
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request);
        id
    }

    /// The first message that is like this, now or later.
    #[track_caller]
    pub(crate) fn message(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        eventually(what, PATIENCE, || {
            self.read();
            found = self.came.iter().position(&is);
            found.is_some()
        });
        self.came.remove(found.expect("a place"))
    }

    /// Everything that came and that nobody has asked for.
    pub(crate) fn others(&mut self) -> Vec<Value> {
        self.read();
        std::mem::take(&mut self.came)
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.message(&format!("an answer to {id}"), |it| it["id"] == id && it["method"].is_null())
    }

    #[track_caller]
    pub(crate) fn notice(&mut self, method: &str) -> Value {
        self.message(method, |it| it["method"] == method)
    }

    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool and answers its result.
    #[track_caller]
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let told = self.request("tools/call", json!({ "name": name, "arguments": arguments }));
        told["result"].clone()
    }

    /// The same, which succeeds: what it answers.
    #[track_caller]
    pub(crate) fn ok(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], false, "{name}: {result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        let structured = &result["structuredContent"];
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), *structured, "{name}");
        structured.clone()
    }

    /// The same, which is refused: why.
    #[track_caller]
    pub(crate) fn refused(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], true, "{name}: {result}");
        assert!(result["structuredContent"].is_null(), "{name}: {result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        serde_json::from_str::<Value>(text).expect("JSON")["error"].clone()
    }

    /// Takes the lock of `main` and answers the handle.
    #[track_caller]
    pub(crate) fn acquire(&mut self) -> Value {
        self.ok("acquire", json!({}))["handle"].clone()
    }

    /// The way to the server, for somebody in between.
    pub(crate) fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("the connection is open")
    }

    /// Another way to it.
    pub(crate) fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    /// Closes the connection.
    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits until the server has ended, and answers its exit status.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the server has ended", PATIENCE, || {
            status = self.server.try_wait().expect("a child can be asked about");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    fn read(&mut self) {
        let at = self.output.stream_position().expect("a place in the output");
        let mut new = Vec::new();
        self.output.seek(SeekFrom::Start(at)).expect("the same place");
        self.output.read_to_end(&mut new).expect("read");
        self.rest.extend(new);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.came.push(serde_json::from_slice(&line).expect("each line is one message"));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
