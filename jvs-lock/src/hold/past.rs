//! What the session knew before this boot. Holds are of one holder, which is another
//! one after a reboot; memory outlives it. So the first look of a new holder takes in
//! what the last one of the same session on the same machine left.

use std::io;

use jvs_repo::id::HolderNonce;
use jvs_repo::layout;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

use super::files::Holds;
use super::name::{HoldName, HoldState};
use super::rule::HoldRule;

/// What there is to remember when a hold is born.
pub(super) struct Past {
    /// The name it is born with.
    pub(super) name: HoldName,
    /// Holds that were taken, which nobody has said to know of.
    pub(super) lost: Vec<Term>,
}

impl Past {
    const NONE: Past = Past { name: HoldName::NEVER, lost: Vec::new() };
}

impl Holds<'_> {
    /// What the last holder before this one left. Of several the one whose name was
    /// moved most often is the last: each goes on counting where its forerunner was.
    pub(super) fn past(&self) -> io::Result<Past> {
        sabotage!(HoldRule::MemoryOutlivesTheBoot => Ok(Past::NONE));
        let mut past = Past::NONE;
        let Some(family) = &self.family else { return Ok(past) };
        for holder in self.holders(family)? {
            let place = layout::holds_of(holder).child(self.place.split().1)?;
            let before = self.at(place);
            let Ok(Some(name)) = before.peek() else { continue };
            if name.n >= past.name.n {
                let lost = before.scan().map(|scan| scan.lost).unwrap_or_default();
                past = Past { name, lost };
            }
        }
        if past.name != HoldName::NEVER {
            // Nobody can go on with it; whether it was taken the register tells.
            let state = match past.name.state {
                HoldState::Released => HoldState::Released,
                _ => HoldState::Lost,
            };
            past.name = past.name.then(state);
        }
        Ok(past)
    }

    /// Those who were this session on this machine; this one is from now on.
    fn holders(&self, family: &RepoPath) -> io::Result<Vec<HolderNonce>> {
        let store = self.seams.store;
        store.ensure_dir(&family.parent())?;
        store.ensure_dir(family)?;
        let entries = store.list(family)?;
        let names = entries.iter().filter_map(|entry| entry.name.to_str());
        let holders: Vec<HolderNonce> = names.filter_map(|name| name.parse().ok()).collect();
        if !holders.contains(&self.holder) {
            match store.create_new(&family.child(&self.holder.to_string())?) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => store.sync_dir(family)?,
            }
        }
        Ok(holders.into_iter().filter(|holder| *holder != self.holder).collect())
    }
}
