//! `jvs completions SHELL`: the script that teaches a shell our words.

use serde_json::json;

use crate::args::{self, CompletionsArgs};
use crate::fail::{Failure, Stuck};
use crate::render::Done;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Done, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::tree(), "jvs", &mut script);
    let script = String::from_utf8(script)
        .map_err(|error| Stuck::new("make a completion script", std::io::Error::other(error)))?;
    let shell = args.shell.to_string();
    Ok(Done::new(json!({ "shell": shell, "script": script })).with_text(script))
}
