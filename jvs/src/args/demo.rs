//! `jvs demo`.

/// Demonstrate the lock in a temporary repository, in a few seconds
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the temporary repository
    #[arg(long)]
    pub(crate) keep: bool,
}
