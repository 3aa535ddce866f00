//! `jvs config get KEY`: the bare value, for scripts.

use jvs_repo::config;

use crate::answer::config::Setting;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, key: &str) -> Result<Done, Failure> {
    let value = config::get(&context.repo()?.config()?, key)?;
    let text = format!("{value}\n");
    Ok(Done::new(&Setting { key: key.to_owned(), value }).with_text(text))
}
