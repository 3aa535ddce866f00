//! The skeleton: format, configuration, directories.

use jvs_repo::code::Coded;
use jvs_repo::config::ConfigError;
use jvs_repo::json::{Limits, RecordError, UnusableReason};
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::record::format::{FormatError, FormatRecord};
use jvs_repo::store::DirEntryKind;

use crate::check::Check;
use crate::check::seal;
use crate::finding::FindingCollector;
use crate::remedy::Remedy;
use crate::survey::{Survey, is_absent, is_symlink};

pub(crate) fn format(
    read: &Result<Option<FormatRecord>, FormatError>,
    survey: Option<&Survey<'_, '_>>,
    report: &mut FindingCollector,
) {
    let path = layout::format();
    // Registers of today's shape prove which format it was.
    let known = survey.is_some_and(|survey| survey.registers.values().any(Result::is_ok));
    let rewrite = |replace| known.then_some(Remedy::RewriteFormat { replace });
    let advice = "restore it from a backup";
    match read {
        Ok(Some(_)) => {}
        Ok(None) => {
            report
                .add(Check::FormatMissing, &path, "the format file is missing")
                .advice(advice)
                .maybe(rewrite(false));
        }
        Err(error @ FormatError::Unsupported { .. }) => {
            report
                .add(Check::FormatUnsupported, &path, error.to_string())
                .advice(error.next().unwrap_or(Next::AskDoctor));
        }
        Err(FormatError::Record(RecordError { reason: UnusableReason::Io(error), .. })) => {
            if is_symlink(error) {
                report
                    .add(Check::Symlink, &path, "the format file is a symlink")
                    .remedy(Remedy::Quarantine { path: path.clone() });
            } else {
                report.unreadable(&path, error);
            }
        }
        Err(error) => {
            // The first file of all that are searched.
            let unflipped = survey.and_then(|survey| {
                let seen = survey.store().read(&path, Limits::RECORD.size).ok()?;
                match seal::flip(survey, &path, &seen) {
                    seal::Flip::Found(remedy) => Some(*remedy),
                    seal::Flip::None | seal::Flip::NotTried => None,
                }
            });
            report
                .add(Check::FormatInvalid, &path, error.to_string())
                .advice(advice)
                .maybe(unflipped.or_else(|| rewrite(true)));
        }
    }
}

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    config(survey, report);
    for dir in layout::skeleton() {
        match survey.store().stat(&dir) {
            Ok(stat) if stat.kind == DirEntryKind::Directory => {}
            Ok(stat) if stat.kind == DirEntryKind::Symlink => {
                report
                    .add(Check::Symlink, &dir, "a symlink is in the place of a control directory")
                    .remedy(Remedy::Quarantine { path: dir });
            }
            Ok(_) => {
                report
                    .add(Check::NotADirectory, &dir, "it is not a directory")
                    .remedy(Remedy::Quarantine { path: dir });
            }
            Err(error) if is_absent(&error) => {
                report
                    .add(Check::DirectoryMissing, &dir, "the control directory is missing")
                    .remedy(Remedy::MakeDirectory(dir));
            }
            Err(error) => report.unreadable(&dir, &error),
        }
    }
}

fn config(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let Err(error) = &survey.config else { return };
    let path = layout::config();
    match survey.store().stat(&path) {
        Ok(stat) if stat.kind == DirEntryKind::Symlink => {
            report
                .add(Check::Symlink, &path, "the configuration is a symlink")
                .remedy(Remedy::Quarantine { path });
        }
        // What could not be read may be as good as it ever was.
        _ if let ConfigError::Io(error) = error => report.unreadable(&path, error),
        _ => {
            report
                .add(Check::ConfigInvalid, &path, error.to_string())
                .advice(error.next().unwrap_or_else(|| format!("edit {path}").into()));
        }
    }
}
