//! What this user read of small files on filesystems where that takes requests over a network.
//! One file each, its name a hash of all that tells it from others.

use jvs_repo::id::hex;
use jvs_repo::store::FileMemory;

use super::hints::HintFiles;
use crate::context::Env;

const DIR: &str = "remembered";
/// Longer than any that is remembered, and its sum.
const READ_MAX: usize = 256 * 1024;
const SUM: usize = 32;

/// What this user remembers, on this host.
#[derive(Debug)]
struct RememberedFiles(HintFiles);

/// The memory of this user.
pub(crate) fn of(env: Env<'_>) -> Box<dyn FileMemory> {
    Box::new(RememberedFiles(HintFiles::of(DIR, env)))
}

fn name_of(key: &str) -> String {
    hex(&blake3::derive_key("jvs remembered file v1", key.as_bytes())[..16])
}

/// What is kept under `key`: a power cut may leave a file that is not whole.
fn sum_of(key: &str, bytes: &[u8]) -> [u8; SUM] {
    let mut hasher = blake3::Hasher::new_derive_key("jvs remembered content v1");
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key.as_bytes());
    hasher.update(bytes);
    hasher.finalize().into()
}

impl FileMemory for RememberedFiles {
    fn recall(&self, key: &str) -> Option<Vec<u8>> {
        let kept = self.0.read(&name_of(key), READ_MAX)?;
        let (sum, bytes) = kept.split_at_checked(SUM)?;
        (*sum == sum_of(key, bytes)).then(|| bytes.to_vec())
    }

    fn keep(&self, key: &str, bytes: &[u8]) {
        let kept = [&sum_of(key, bytes), bytes].concat();
        self.0.write(&name_of(key), &kept);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests play the vandal")]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_recalled_whole_or_not_at_all() {
        let dir = tempfile::tempdir().expect("tempdir");
        let runtime = dir.path().as_os_str().to_owned();
        let get = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone());
        let memory = || of(Env::new(&get));
        memory().keep("key", b"bytes");
        assert_eq!(memory().recall("key"), None, "no private directory is made for it");
        let private = dir.path().join("jvs");
        rustix::fs::mkdir(&private, rustix::fs::Mode::RWXU).expect("mkdir");
        memory().keep("key", b"bytes");
        memory().keep("empty", b"");
        assert_eq!(memory().recall("key").as_deref(), Some(&b"bytes"[..]));
        assert_eq!(memory().recall("empty").as_deref(), Some(&b""[..]));
        assert_eq!(memory().recall("other"), None);

        let at = |key| private.join(DIR).join(name_of(key));
        std::fs::copy(at("empty"), at("other")).expect("copied");
        assert_eq!(memory().recall("other"), None, "kept under another key");
        let whole = std::fs::read(at("key")).expect("read");
        for length in 0..whole.len() {
            std::fs::write(at("key"), &whole[..length]).expect("torn");
            assert_eq!(memory().recall("key"), None, "{length}");
        }
    }
}
