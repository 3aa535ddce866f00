//! `jvs config set KEY VALUE`.

use jvs_repo::config;

use crate::answer::config::Set;
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, key: &str, value: &str) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let before = config::get(&repo.config()?, key)?;
    let config = repo.set_config(key, value, context.entropy())?;
    let value = config::get(&config, key)?;
    if key == "repo.shared" {
        config.repo.shared.apply(repo.store()).map_err(|error| {
            Stuck::new("open all of the repository to those it is shared with", error)
        })?;
    }
    let text = format!("{key} = {value} (was {before})\n");
    Ok(Done::new(&Set { key: key.to_owned(), value, previous: before }).with_text(text))
}
