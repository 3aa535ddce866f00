//! Where the repository of a hold is, for people: a process that lists what a session holds
//! knows only its id and an inode.

use jvs_repo::layout;

use super::files::Holds;

/// Longest path of a repository that is written down.
const ROOT_MAX: usize = 4096;

impl Holds<'_> {
    /// Where the repository was when that was last written down.
    pub fn repository(&self) -> Option<String> {
        let path = layout::hold_repository(&self.place);
        let bytes = self.seams.store.read(&path, ROOT_MAX).ok()?;
        String::from_utf8(bytes).ok().filter(|root| !root.is_empty())
    }

    /// Writes down where the repository is, if that is news. Best effort: it is for
    /// people, and a process that reads it looks whether it is so.
    pub fn tell_repository(&self) {
        let Some(root) = self.root.as_ref().filter(|root| self.repository().as_ref() != Some(root))
        else {
            return;
        };
        let path = layout::hold_repository(&self.place);
        let _ = self.seams.store.unlink(&path);
        if let Ok(file) = self.seams.store.create_new(&path) {
            let _ = file.write_at(0, root.as_bytes());
        }
    }
}
