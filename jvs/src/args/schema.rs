//! `jvs schema`: what programs may rely on.

/// Print the JSON Schema of what a command answers with --json
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// The command, in one word or several [default: one schema for all of them]
    #[arg(value_name = "COMMAND", conflicts_with = "list")]
    pub(crate) words: Vec<String>,

    /// List the commands that have one
    #[arg(long)]
    pub(crate) list: bool,
}
