//! What an interrupted takeover by the letter of v6.3 leaves: its new record under
//! one fixed name, `<worktree>.lock.tmp`, before it is renamed over the old one.
//!
//! Whether anybody can still need it is told by its content and never by its age.
//! Its writer takes the token of the record it has read and adds one, and registers
//! never go back, not even in another life. So a register that is above that token,
//! or at it and free, has moved on since: the takeover that the file belongs to can
//! no longer be the newest hold, and renamed now it could only put a stale record in
//! the place of a true one.

use jvs_lock::liveness::{Here, Liveness, keeper_liveness};
use jvs_lock::record::Keeper;
use jvs_repo::clock::BootId;
use jvs_repo::id::FencingToken;
use jvs_repo::layout;
use serde::Deserialize;

use crate::finding::{Check, Report};
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::{Survey, is_absent, is_symlink};

/// Largest file that is read.
const READ_MAX: usize = 64 * 1024;

/// What is understood of it; every field may be missing, as in a torn one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Leftover {
    fencing_token: Option<u64>,
    holder_id: Option<String>,
    session_id: Option<String>,
    boot_id: Option<String>,
    pid_namespace: Option<u64>,
    time_namespace: Option<u64>,
}

impl Leftover {
    /// The process that wrote it, if it says which and where.
    fn writer(&self) -> Option<Keeper> {
        let mut parts = self.holder_id.as_deref()?.rsplit(':');
        let start_time = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        let boot_id = BootId(self.boot_id.clone().filter(|id| !id.is_empty())?);
        let (pid_namespace, time_namespace) = (self.pid_namespace, self.time_namespace);
        Some(Keeper { pid, start_time, boot_id, pid_namespace, time_namespace })
    }

    /// Whose it may be, in words.
    fn whose(&self) -> String {
        let plain = |text: &String| {
            let safe = text.chars().map(|c| if c.is_control() { '_' } else { c });
            safe.take(80).collect::<String>()
        };
        match (&self.session_id, &self.holder_id, self.fencing_token) {
            (Some(session), Some(holder), Some(token)) => format!(
                "it may be session {} ({}), taking over under token {token}",
                plain(session),
                plain(holder)
            ),
            _ => "it is torn and does not say whose it is".to_owned(),
        }
    }
}

pub(super) fn run(survey: &Survey<'_, '_>, report: &mut Report) {
    let clock = survey.patient.seams.clock.boot_clock();
    let around = &survey.patient.surroundings;
    let here = Here { clock: &clock, pid_namespace: around.pid_namespace };
    for worktree in survey.locks.iter().filter_map(|file| layout::worktree_of_takeover(file)) {
        let path = layout::takeover(&worktree);
        let seen = match survey.store().read(&path, READ_MAX) {
            Ok(seen) => seen,
            Err(error) if is_absent(&error) || is_symlink(&error) => continue,
            Err(error) => {
                report.unreadable(&path, &error);
                continue;
            }
        };
        let leftover: Leftover = serde_json::from_slice(&seen).unwrap_or_default();
        // READ after the file: what the register was before proves nothing.
        let state = survey.read_again(&worktree).ok();
        let moved_on = leftover
            .fencing_token
            .zip(state.as_ref())
            .and_then(|(token, state)| Proof::released(state, FencingToken(token)));
        let ended = leftover
            .writer()
            .filter(|writer| keeper_liveness(writer, here, around.lookup) == Liveness::Dead);
        let proof = moved_on.or_else(|| ended.map(|writer| Proof::process_ended(writer.pid)));
        match proof {
            Some(proof) => {
                let message = format!("an interrupted takeover left it: {proof}");
                let remedy = Remedy::RemoveTakeover { worktree: worktree.clone(), seen, proof };
                report.add(Check::TmpDead, path, message).of(&worktree).remedy(remedy);
            }
            None => {
                let message = format!("a takeover is under way or left it: {}", leftover.whose());
                report
                    .add(Check::TmpUnproven, &path, message)
                    .of(&worktree)
                    .advice(format!("if nobody takes that lock over: rm {path}"));
            }
        }
    }
}
