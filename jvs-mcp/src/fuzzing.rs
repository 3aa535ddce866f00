//! Doors to parsers that are private, for the fuzz targets alone: what they are given is
//! what a client sends. Built with the feature `fuzzing` only, which nothing that ships has.

use crate::frames::{self, Frame};
use crate::handle::Handle;
use crate::resource::What;

/// With which code of JSON-RPC a line is refused; `None` if it is a message.
pub fn refuses_frame(line: &[u8]) -> Option<i32> {
    match frames::parse(line) {
        Frame::Message(_) => None,
        Frame::Wrong { error, .. } => Some(error.code.0),
    }
}

/// A handle, as it is printed.
pub fn handle(text: &str) -> Option<String> {
    text.parse::<Handle>().ok().map(|handle| handle.to_string())
}

/// What a URI names, as it is spelled, and the words of the command that shows it.
pub fn resource(uri: &str) -> Option<(String, Vec<String>)> {
    What::parse(uri).map(|what| (what.uri(), what.words()))
}
