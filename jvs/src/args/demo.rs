//! `jvs demo`.

/// Show in a few seconds what a lock that cannot lie does, in a directory of its own
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the repository it played in
    #[arg(long)]
    pub(crate) keep: bool,
}
