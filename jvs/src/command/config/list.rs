//! `jvs config list`.

use jvs_repo::config;

use crate::answer::config::{Described, Settings};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, table};

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let config = context.repo()?.config()?;
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for (key, value) in config::list(&config) {
        values.push(Described {
            key: key.name,
            value: value.clone(),
            default: key.default.to_string(),
            allowed: key.allowed.to_string(),
            doc: key.doc,
        });
        let value = if value == key.default { value } else { format!("{value} *") };
        rows.push([key.name.to_owned(), value, key.doc.to_owned()]);
    }
    let mut text = table(context.paint(), ["KEY", "VALUE", "MEANING"], &rows);
    if rows.iter().any(|[_, value, _]| value.ends_with('*')) {
        text += "* not the default\n";
    }
    Ok(Done::new(&Settings { values }).with_text(text))
}
