//! Which part of a tree is meant: all of it, or some paths, without what is ignored.

use std::io;
use std::os::fd::AsFd;

use crate::chosen::{ChosenPaths, Lies};
use crate::ignore::Ignoring;
use crate::manifest::TreePath;
use crate::tree::{self, Names};

/// What a walk is about.
#[derive(Debug, Default)]
pub(crate) struct Scope<'s> {
    /// Only those paths, and the directories above them.
    pub(crate) chosen: Option<&'s ChosenPaths>,
    /// Not what these rules ignore.
    pub(crate) ignoring: Option<Ignoring>,
}

impl Scope<'_> {
    /// Is more of the directory `path` meant than names that are known?
    pub(crate) fn lists(&self, path: &TreePath) -> bool {
        self.chosen.is_none_or(|chosen| chosen.lies(path) == Lies::Inside)
    }

    /// The names in the open directory `path` that are meant.
    pub(crate) fn names(&self, path: &TreePath, dir: impl AsFd) -> io::Result<Names> {
        let names = match self.chosen {
            Some(chosen) => chosen.names(path, &dir)?,
            None => tree::list(&dir)?,
        };
        match &self.ignoring {
            Some(ignoring) => ignoring.keep(path, dir, names, self.lists(path)),
            None => Ok(names),
        }
    }
}
