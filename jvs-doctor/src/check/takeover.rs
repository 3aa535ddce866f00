//! What an interrupted takeover by the letter of v6.3 leaves: its new record under
//! one fixed name, `<worktree>.lock.tmp`, before it is renamed over the old one.
//!
//! Whether anybody can still need it follows from its content, never from its age.
//! Its writer takes the token of the record it has read and adds one, and registers
//! never go back, not even in another epoch. So a register that is above that token,
//! or at it and free, has moved on since: the takeover that the file belongs to can
//! no longer be the newest hold, and renamed now it could only put a stale record in
//! the place of a true one.

use std::io;

use jvs_lock::record::Keeper;
use jvs_repo::id::FencingToken;
use jvs_repo::json::Limits;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::takeover::TakeoverRecord;

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::{Survey, is_absent, is_symlink};

/// The file as it was read.
#[derive(Debug)]
pub(crate) struct Leftover {
    worktree: WorktreeName,
    seen: Vec<u8>,
    content: TakeoverRecord,
}

impl Leftover {
    fn read(survey: &Survey<'_, '_>, worktree: WorktreeName) -> io::Result<Self> {
        let seen = survey.store().read(&layout::takeover(&worktree), Limits::RECORD.size)?;
        // A torn one says nothing.
        let content = TakeoverRecord::parse(&seen).unwrap_or_default();
        Ok(Leftover { worktree, seen, content })
    }

    pub(crate) fn worktree(&self) -> &WorktreeName {
        &self.worktree
    }

    pub(crate) fn seen(&self) -> &[u8] {
        &self.seen
    }

    pub(crate) fn token(&self) -> Option<FencingToken> {
        self.content.fencing_token
    }

    /// The process that wrote it, if it says which and where.
    pub(crate) fn writer(&self) -> Option<Keeper> {
        self.content.writer()
    }

    /// Whose it may be, in words.
    fn whose(&self) -> String {
        let plain = |text: &String| {
            let safe = text.chars().map(|c| if c.is_control() { '_' } else { c });
            safe.take(80).collect::<String>()
        };
        match (&self.content.session_id, &self.content.holder_id, self.content.fencing_token) {
            (Some(session), Some(holder), Some(token)) => format!(
                "it may be session {} ({}), taking over under token {token}",
                plain(session),
                plain(holder)
            ),
            _ => "it is torn and does not say whose it is".to_owned(),
        }
    }
}

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for worktree in survey.locks.iter().filter_map(|file| layout::worktree_of_takeover(file)) {
        let path = layout::takeover(&worktree);
        let leftover = match Leftover::read(survey, worktree.clone()) {
            Ok(leftover) => leftover,
            Err(error) if is_absent(&error) || is_symlink(&error) => continue,
            Err(error) => {
                report.unreadable(&path, &error);
                continue;
            }
        };
        match Proof::of_takeover(survey, &leftover) {
            Some(proof) => {
                let message = format!("an interrupted takeover left it: {proof}");
                let remedy = Remedy::RemoveTakeover(proof);
                report.add(Check::TmpDead, path, message).of(&worktree).remedy(remedy);
            }
            None => {
                let message = format!(
                    "left by a takeover that is under way or was interrupted: {}",
                    leftover.whose()
                );
                report
                    .add(Check::TmpUnproven, &path, message)
                    .of(&worktree)
                    .advice(format!("if nobody is taking that lock over: rm {path}"));
            }
        }
    }
}
