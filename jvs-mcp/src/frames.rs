//! Standard input and output as the protocol sees them: one JSON-RPC message a line.
//!
//! Whatever a client sends is answered or ignored as the protocol says, with bounded memory:
//! what is no JSON, no message, too long, or too much at once is an error to it.

use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

/// What this server is called.
pub(crate) const NAME: &str = "jvs-mcp";
/// Longest message that is read. The tools take names, notes and paths.
const FRAME_MAX: usize = 1024 * 1024;
/// How many requests may be unanswered at once.
const OPEN_MAX: usize = 64;
/// How many messages wait in each direction.
const WAITING_MAX: usize = 16;
/// How long the last messages may take to be written.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// What a line is.
pub(crate) enum Frame {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    Wrong { id: Option<RequestId>, error: ErrorData },
}

/// What there is to read next.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole,
    TooLong,
    End,
}

/// Standard input and output.
pub(crate) struct Stdio {
    incoming: mpsc::Receiver<Frame>,
    outgoing: mpsc::Sender<String>,
    /// An answer of this module that is not on its way yet: `receive` may be dropped at any
    /// time.
    pending: Option<String>,
    open: Arc<Mutex<HashSet<RequestId>>>,
    /// A request has come.
    begun: bool,
    /// Why nothing is served.
    refusal: Option<String>,
}

/// Tells when the client is gone, and when all that it was told has been written.
pub(crate) struct Ends {
    gone: Arc<Notify>,
    written: oneshot::Receiver<()>,
}

impl Ends {
    /// Waits until the client has closed its end, or does not read any more.
    pub(crate) async fn gone(&self) {
        self.gone.notified().await;
    }

    /// Waits until everything is written, or nobody reads it.
    pub(crate) async fn written(self) {
        let _ = tokio::time::timeout(WRITTEN_WITHIN, self.written).await;
    }
}

/// Opens the streams of this process. With a refusal, that is the answer to everything.
pub(crate) fn open(refusal: Option<String>) -> (Stdio, Ends) {
    let gone = Arc::new(Notify::new());
    let (into, incoming) = mpsc::channel(WAITING_MAX);
    let (outgoing, out_of) = mpsc::channel(WAITING_MAX);
    let (done, written) = oneshot::channel();
    let (read, write) = (gone.clone(), gone.clone());
    // Threads, because both calls wait in the kernel for as long as the client likes.
    std::thread::spawn(move || {
        read_all(&mut io::stdin().lock(), &into);
        read.notify_one();
    });
    std::thread::spawn(move || {
        if write_all(&mut io::stdout(), out_of).is_err() {
            write.notify_one();
        }
        let _ = done.send(());
    });
    let (pending, open, begun) = (None, Arc::default(), false);
    (Stdio { incoming, outgoing, pending, open, begun, refusal }, Ends { gone, written })
}

fn read_all(from: &mut impl BufRead, into: &mpsc::Sender<Frame>) {
    let mut line = Vec::new();
    loop {
        let frame = match next_line(from, &mut line) {
            Ok(Line::Whole) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Line::Whole) => parse(&line),
            Ok(Line::TooLong) => {
                wrong(ErrorCode::INVALID_REQUEST, "the message is longer than 1 MiB")
            }
            Ok(Line::End) | Err(_) => return,
        };
        if into.blocking_send(frame).is_err() {
            return;
        }
    }
}

fn write_all(to: &mut impl Write, mut from: mpsc::Receiver<String>) -> io::Result<()> {
    while let Some(mut line) = from.blocking_recv() {
        line.push('\n');
        to.write_all(line.as_bytes())?;
        to.flush()?;
    }
    Ok(())
}

/// Reads the next line, of which no more than allowed is ever in memory.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let mut too_long = false;
    loop {
        let there = match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            there => there?,
        };
        if there.is_empty() {
            // What is not ended by a newline is not a whole message.
            return Ok(Line::End);
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(there.len());
        too_long |= line.len() + taken > FRAME_MAX;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(&there[..taken]);
        }
        from.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

fn wrong(code: ErrorCode, message: &'static str) -> Frame {
    Frame::Wrong { id: None, error: ErrorData::new(code, message, None) }
}

/// What a line says. A request that cannot be understood is answered by its id, if it has one.
pub(crate) fn parse(line: &[u8]) -> Frame {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return wrong(ErrorCode::PARSE_ERROR, "the message is not JSON");
    };
    if value.is_array() {
        return wrong(ErrorCode::INVALID_REQUEST, "messages are sent one by one, not in a list");
    }
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let is_call = value.get("method").is_some_and(Value::is_string);
    match serde_json::from_value::<RxJsonRpcMessage<RoleServer>>(value) {
        Ok(message) if !is_misunderstood(&message) => Frame::Message(Box::new(message)),
        Ok(_) | Err(_) if is_call && id.is_some() => {
            let error =
                ErrorData::invalid_params("the parameters are not those of the method", None);
            Frame::Wrong { id, error }
        }
        Ok(_) | Err(_) => {
            let error = ErrorData::invalid_request("the message is not one of JSON-RPC 2.0", None);
            Frame::Wrong { id, error }
        }
    }
}

/// The methods that are served. With other parameters than theirs the SDK takes them for
/// methods that it does not know.
const METHODS: [&str; 10] = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
];

fn is_misunderstood(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    let ClientRequest::CustomRequest(custom) = &request.request else { return false };
    METHODS.contains(&custom.method.as_str())
}

impl Stdio {
    /// Is a message to be handled? If it is not, it may have been answered.
    fn admits(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        match message {
            JsonRpcMessage::Request(request) => {
                if let Some(error) = self.refuses(&request.id) {
                    self.answer(error, Some(request.id.clone()));
                    return false;
                }
                self.begun = true;
                true
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // A request that was cancelled is not answered.
                    unanswered(&self.open).remove(id);
                }
                // Before anything was asked there is nothing to tell.
                self.begun
            }
            _ => self.begun,
        }
    }

    fn refuses(&self, id: &RequestId) -> Option<ErrorData> {
        if let Some(refusal) = &self.refusal {
            return Some(ErrorData::internal_error(refusal.clone(), None));
        }
        let mut open = unanswered(&self.open);
        if open.len() >= OPEN_MAX {
            let message =
                format!("{OPEN_MAX} requests are not answered yet: wait for some of them");
            return Some(ErrorData::internal_error(message, None));
        }
        let is_new = open.insert(id.clone());
        let message = "a request with this id is not answered yet";
        (!is_new).then(|| ErrorData::invalid_request(message, None))
    }

    fn answer(&mut self, error: ErrorData, id: Option<RequestId>) {
        self.pending = serde_json::to_string(&ServerJsonRpcMessage::error(error, id)).ok();
    }
}

/// The requests that are not answered yet.
fn unanswered(open: &Mutex<HashSet<RequestId>>) -> MutexGuard<'_, HashSet<RequestId>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A result with the name of who gives it. Clients of earlier revisions know it already; their
/// results have no type.
fn signed(mut message: Value) -> Value {
    if message["result"]["resultType"].is_string() {
        let me = json!({ "name": NAME, "version": env!("CARGO_PKG_VERSION") });
        message["result"]["_meta"]["io.modelcontextprotocol/serverInfo"] = me;
    }
    message
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            unanswered(&self.open).remove(id);
        }
        let line = serde_json::to_value(&item).map(|message| signed(message).to_string());
        let outgoing = self.outgoing.clone();
        async move {
            let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
            outgoing.send(line?).await.map_err(gone)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(line) = &self.pending {
                self.outgoing.send(line.clone()).await.ok()?;
                self.pending = None;
            }
            match self.incoming.recv().await? {
                Frame::Message(message) if self.admits(&message) => return Some(*message),
                Frame::Message(_) => {}
                Frame::Wrong { id, error } => self.answer(error, id),
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.incoming.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> (i32, Option<RequestId>) {
        match parse(line.as_bytes()) {
            Frame::Wrong { id, error } => (error.code.0, id),
            Frame::Message(message) => panic!("understood: {message:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_an_error_with_its_id_if_it_has_one() {
        for (line, wanted) in [
            ("{", (-32700, None)),
            ("\u{0}", (-32700, None)),
            (&"[".repeat(100_000), (-32700, None)),
            ("[]", (-32600, None)),
            ("null", (-32600, None)),
            ("{}", (-32600, None)),
            (r#"{"jsonrpc":"1.0","id":7,"result":{}}"#, (-32600, Some(RequestId::Number(7)))),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, (-32600, None)),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":7}}"#,
                (-32602, Some(RequestId::Number(7))),
            ),
        ] {
            let start: String = line.chars().take(80).collect();
            assert_eq!(code(line), wanted, "{start}");
        }
    }

    #[test]
    fn a_result_of_the_present_revision_says_who_gives_it() {
        let name = |message: Value| {
            let meta = &signed(message)["result"]["_meta"];
            meta["io.modelcontextprotocol/serverInfo"]["name"].clone()
        };
        assert_eq!(name(json!({ "id": 1, "result": { "resultType": "complete" } })), NAME);
        let with_meta = json!({ "result": { "resultType": "complete", "_meta": { "a": 1 } } });
        assert_eq!(name(with_meta), NAME);
        for other in [json!({ "result": {} }), json!({ "error": {} }), json!({ "method": "m" })] {
            assert_eq!(signed(other.clone()), other);
        }
    }

    #[test]
    fn a_line_is_read_whole_or_passed_over_and_never_kept_if_it_is_too_long() {
        let long = vec![b'x'; FRAME_MAX + 1];
        let text = [b"one\n".as_slice(), &long, b"\ntwo\nrest"].concat();
        let mut from = io::BufReader::with_capacity(7, text.as_slice());
        let mut line = Vec::new();
        let mut next = || {
            let read = next_line(&mut from, &mut line).expect("read");
            (read, line.len(), line.capacity() <= 2 * FRAME_MAX)
        };
        assert_eq!(next(), (Line::Whole, 3, true));
        assert_eq!(next(), (Line::TooLong, 0, true));
        assert_eq!(next(), (Line::Whole, 3, true));
        assert_eq!(next().0, Line::End);
    }
}
