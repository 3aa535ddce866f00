//! Parsers that the fuzz targets call and nobody else may. Built for them alone.

use std::path::{Path, PathBuf};

use crate::audit::WriterId;
use crate::audit::read::Checker;
use crate::config::{Config, ConfigError};
use crate::probe::JuiceFsMount;
use crate::record::audit::{Event, body_of, put_together, take_apart};
use crate::record::format::{FormatError, FormatRecord};

pub use crate::audit::Line;

/// A configuration, without the short way for files that only have comments.
pub fn config_in_full(text: &str) -> Result<Config, ConfigError> {
    crate::config::document::parse(text)
}

/// The repository's format.
pub fn format(bytes: &[u8]) -> Result<FormatRecord, FormatError> {
    FormatRecord::parse(bytes)
}

/// The mount that `path` is on.
pub fn mount_of(mountinfo: &str, path: &Path) -> Option<(PathBuf, String)> {
    crate::probe::mount::mount_of(mountinfo, path)
}

/// What a JuiceFS mount says of itself.
pub fn juicefs_config(bytes: &[u8]) -> Option<JuiceFsMount> {
    JuiceFsMount::parse(bytes)
}

/// A version of JuiceFS.
pub fn juicefs_version(text: &str) -> Option<[u64; 3]> {
    crate::probe::mount::version_of(text)
}

/// The lines of a log.
pub fn audit_lines(writer: &WriterId, log: &[u8]) -> Vec<Line> {
    let mut check = Checker::of(writer.into());
    log.split(|byte| *byte == b'\n').map(|line| check.line(line)).collect()
}

/// The first line of a log, with its end.
pub fn audit_line(writer: &WriterId, event: &Event) -> std::io::Result<Vec<u8>> {
    let body = body_of(event)?;
    Ok(put_together(crate::record::audit::Sum::start(writer.into()).then(&body), &body))
}

/// The same lines as `log` has, each with the sum that it should have.
pub fn summed_up(writer: &WriterId, log: &[u8]) -> Vec<u8> {
    let mut sum = crate::record::audit::Sum::start(writer.into());
    let mut fixed = Vec::new();
    for line in log.split(|byte| *byte == b'\n') {
        let Some((_, body)) = take_apart(line) else { continue };
        sum = sum.then(body);
        fixed.extend(put_together(sum, body));
    }
    fixed
}

/// A line of `/proc/<pid>/stat`, if it is one.
pub fn is_stat(bytes: &[u8]) -> bool {
    crate::proc::stat_in(bytes).is_some()
}
