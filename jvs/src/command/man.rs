//! `jvs man [DIR]`: the manual, made from the same words that are parsed.

use std::io;
use std::path::Path;

use clap_mangen::Man;
use jvs_repo::store::{PosixStore, RepoPath, Store};
use serde_json::json;

use crate::args::{self, ManArgs};
use crate::fail::{Failure, Stuck};
use crate::render::{Done, shown, tell_path};

pub(crate) fn run(args: &ManArgs) -> Result<Done, Failure> {
    let mut tree = args::tree().disable_help_subcommand(true);
    tree.build();
    let Some(dir) = &args.dir else {
        let page = page(&Man::new(tree)).map_err(|error| Stuck::new("make the page", error))?;
        return Ok(Done::new(json!({ "page": page })).with_text(page));
    };
    let mut pages = Vec::new();
    into_dir(dir)
        .and_then(|store| write_pages(&store, tree, &mut pages))
        .map_err(|error| Stuck::new(format!("write manual pages to {}", shown(dir)), error))?;
    let text = format!("Wrote {} manual pages to {}\n", pages.len(), shown(dir));
    let mut data = json!({ "pages": pages });
    tell_path(&mut data, "dir", dir);
    Ok(Done::new(data).with_text(text))
}

fn into_dir(dir: &Path) -> io::Result<PosixStore> {
    match std::fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => PosixStore::open(dir),
    }
}

fn write_pages(
    store: &PosixStore,
    command: clap::Command,
    written: &mut Vec<String>,
) -> io::Result<()> {
    let below: Vec<_> = command.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    let man = Man::new(command);
    let name = man.get_filename();
    let at = |name: &str| RepoPath::root().child(name);
    let tmp = format!("{name}.tmp-{}", std::process::id());
    store.write_over(&at(&tmp)?, &at(&name)?, page(&man)?.as_bytes())?;
    written.push(name);
    below.into_iter().try_for_each(|command| write_pages(store, command, written))
}

fn page(man: &Man) -> io::Result<String> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    String::from_utf8(page).map_err(io::Error::other)
}
