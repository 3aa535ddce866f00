//! `jvs completions SHELL`: the script that teaches a shell our words.
//!
//! Those for bash, zsh and fish ask this very program what may come next. For other shells
//! there are only the words that are always the same.

use clap::Command;
use clap_complete::Shell;

use crate::answer::other::Completions;
use crate::args::{self, CompletionsArgs};
use crate::fail::{Failure, Stuck};
use crate::render::Done;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Done, Failure> {
    let script = match args.shell {
        Shell::Bash => include_str!("completions/jvs.bash").to_owned(),
        Shell::Zsh => include_str!("completions/jvs.zsh").to_owned(),
        Shell::Fish => include_str!("completions/jvs.fish").to_owned(),
        other => words(other)?,
    };
    let shell = args.shell.to_string();
    Ok(Done::new(&Completions { shell, script: script.clone() }).with_text(script))
}

/// All words, without those that nobody types.
fn words(shell: Shell) -> Result<String, Failure> {
    let tree = args::tree();
    let shown = tree.get_subcommands().filter(|it| !it.is_hide_set()).cloned();
    let mut shown = Command::new("jvs").args(tree.get_arguments().cloned()).subcommands(shown);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown, "jvs", &mut script);
    String::from_utf8(script).map_err(|error| {
        Stuck::new("make a completion script", std::io::Error::other(error)).into()
    })
}
