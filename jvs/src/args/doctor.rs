//! `jvs doctor`.

use std::path::PathBuf;

use clap::ValueEnum;

/// The format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    #[default]
    Human,
    /// The same as --json
    Json,
    /// For the textfile collector of the Prometheus node exporter
    Prometheus,
}

/// Find and repair problems in the repository
///
/// Without options: a quick check that changes nothing. Exits with 12 if problems remain.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Check everything, and remove leftovers that are proven dead
    #[arg(long)]
    pub(crate) strict: bool,

    /// Apply the remedies; implies --strict
    #[arg(long)]
    pub(crate) repair: bool,

    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Test the filesystem itself, and record the result
    #[arg(long)]
    pub(crate) probe: bool,

    /// The same repository on a second mount of the volume, to measure how stale that mount is
    #[arg(long, value_name = "PATH", requires = "probe", value_parser = super::utf8_path)]
    pub(crate) second_mount: Option<PathBuf>,

    /// The head of a register to rebuild where the evidence does not decide, or `none`
    #[arg(long, value_name = "SNAPSHOT", requires = "repair")]
    pub(crate) head: Option<String>,

    /// The format of the report
    #[arg(long, value_name = "FORMAT", default_value = "human", hide_possible_values = false)]
    pub(crate) format: ReportFormat,
}
