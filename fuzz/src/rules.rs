//! Files of rules: what is ignored.

use jvs_repo::record::ignore_rules::{bytes_of, check, directory_of, spelled};
use jvs_snapshot::fuzzing;
use jvs_snapshot::manifest::TreePath;

/// A path on the first line, and rules below it. Whatever they say, they end; a descriptor
/// has them in one spelling, and means the same by it.
pub(crate) fn ignore_rules(data: &[u8]) {
    let line = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (path, file) = (&data[..line], data.get(line + 1..).unwrap_or_default());
    assert_eq!(bytes_of(&spelled(data)).as_deref(), Some(data));
    if let Ok(text) = std::str::from_utf8(path)
        && let Some(bytes) = bytes_of(text)
    {
        assert_eq!(spelled(&bytes), text);
    }
    if let Ok(text) = std::str::from_utf8(path)
        && let Some(Some(directory)) = directory_of(text)
    {
        assert!(TreePath::new(directory).is_ok());
    }
    let Ok(path) = TreePath::new(path.to_vec()) else { return };
    for is_directory in [false, true] {
        let (record, ignored) = fuzzing::rules(file, &path, is_directory);
        if check(&record).is_ok() {
            assert_eq!(fuzzing::recorded_rules(&record, &path, is_directory), ignored);
        }
    }
}
