//! `jvs config get KEY`: the bare value, for scripts.

use jvs_repo::config;
use serde_json::json;

use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, key: &str) -> Result<Done, Failure> {
    let value = config::get(&context.repo()?.config()?, key)?;
    Ok(Done::new(json!({ "key": key, "value": value })).with_text(format!("{value}\n")))
}
