//! `jvs doctor`.

use std::path::PathBuf;

use clap::ValueEnum;

/// How to say what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Human,
    /// The same as --json
    Json,
    /// For the textfile collector of the Prometheus node exporter
    Prometheus,
}

/// Find what is wrong with the repository, and mend it
///
/// Without options: a quick look that changes nothing. Exits with 12 if anything is left wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Check everything, and remove what is provably dead
    #[arg(long)]
    pub(crate) strict: bool,

    /// Apply the remedies; implies --strict
    #[arg(long)]
    pub(crate) repair: bool,

    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Test the filesystem itself, and keep the verdict
    #[arg(long)]
    pub(crate) probe: bool,

    /// The same repository on a second mount of the volume, to measure how stale that is
    #[arg(long, value_name = "PATH", requires = "probe", value_parser = super::utf8_path)]
    pub(crate) second_mount: Option<PathBuf>,

    /// The head of a register to rebuild where the evidence does not decide, or `none`
    #[arg(long, value_name = "SNAPSHOT", requires = "repair")]
    pub(crate) head: Option<String>,

    /// How to say it
    #[arg(long, value_name = "FORMAT", default_value = "human", hide_possible_values = false)]
    pub(crate) format: Format,
}
