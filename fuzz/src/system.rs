//! What the kernel and a JuiceFS mount say.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use jvs_repo::duration::Period;
use jvs_repo::probe::JuiceFsMount;
use jvs_repo::{fuzzing, proc};
use jvs_snapshot::fuzzing as snapshot;

/// The kernel's list of mounts: what is found is above the path, and is in the list.
pub(crate) fn mountinfo(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let path = Path::new("/srv/a b/main");
    if let Some((point, kind)) = fuzzing::mount_of(&text, path) {
        assert!(path.starts_with(&point) && text.contains(&kind));
    }
    jvs::fuzzing::cgroup_among(&text, "/a/b").inspect(|dir| {
        assert!(dir.as_os_str().len() <= text.len() + 4);
    });
    let plain = proc::mount_field(data);
    assert!(plain.as_os_str().len() <= data.len());
    let escaped: Vec<u8> =
        plain.as_os_str().as_bytes().iter().flat_map(|byte| escape(*byte)).collect();
    assert_eq!(proc::mount_field(&escaped), plain, "read as the kernel writes it");
    assert_eq!(OsStr::from_bytes(data) == plain.as_os_str(), plain.as_os_str().len() == data.len());
}

/// As the kernel writes a byte of a path.
fn escape(byte: u8) -> Vec<u8> {
    match byte {
        b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
        plain => vec![plain],
    }
}

/// A line of `/proc/<pid>/stat`: a name can say whatever it wants, and hides nothing.
pub(crate) fn proc_stat(data: &[u8]) {
    fuzzing::is_stat(data);
    let rest = b") S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n";
    let line = [b"1 (".as_slice(), data, rest].concat();
    assert!(fuzzing::is_stat(&line), "its name hides it");
}

/// What a JuiceFS mount says of itself.
pub(crate) fn juicefs_config(data: &[u8]) {
    if let Some(JuiceFsMount::Mounted { version, caches, .. }) = fuzzing::juicefs_config(data) {
        fuzzing::juicefs_version(&version);
        assert!(caches.iter().all(|(_, kept)| *kept <= Period::MAX));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        fuzzing::juicefs_version(text);
    }
}

/// What a JuiceFS mount counts.
pub(crate) fn juicefs_stats(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for counter in ["juicefs_staging_blocks", "juicefs_fuse_open_handlers"] {
        if snapshot::counter(&text, counter).is_some() {
            assert!(text.contains(counter));
            let nothing = format!("{counter}_more 1\n{text}");
            assert_eq!(snapshot::counter(&nothing, counter), snapshot::counter(&text, counter));
        }
    }
}

/// What a JuiceFS mount answers to a clone: the same in pieces, and nothing after its end.
pub(crate) fn juicefs_answer(data: &[u8]) {
    let (done, end) = snapshot::clone_answer(data);
    if end.is_some() {
        let more = [data, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"].concat();
        assert_eq!(snapshot::clone_answer(&more), (done, end));
    }
}
