//! Somebody writes during the capture: refused, or labelled, never unnoticed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::support::{World, zoo};
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::config::Consistency;
use jvs_snapshot::progress::{CapturePhase, Progress};
use jvs_snapshot::stage::CaptureError;

/// Does something each time a phase begins.
pub(crate) struct Meddler<F: Fn(u32) + Sync> {
    at: CapturePhase,
    times: u32,
    done: AtomicU32,
    meddle: F,
}

impl<F: Fn(u32) + Sync> Progress for Meddler<F> {
    fn phase(&self, phase: CapturePhase) {
        if phase == self.at && self.done.load(Ordering::Relaxed) < self.times {
            (self.meddle)(self.done.fetch_add(1, Ordering::Relaxed));
        }
    }
}

pub(crate) fn meddler<F: Fn(u32) + Sync>(at: CapturePhase, times: u32, meddle: F) -> Meddler<F> {
    Meddler { at, times, done: AtomicU32::new(0), meddle }
}

type Meddle = fn(PathBuf, u32);

/// What a writer may do, and a part of what must be said about it.
const MEDDLING: [(&str, &str, Meddle); 6] = [
    ("grow", "plain changed", |root, n| {
        fs_err::write(root.join("plain"), "longer".repeat(n as usize + 9)).expect("grown");
    }),
    ("shrink", "a/deep/file changed", |root, _| {
        fs_err::write(root.join("a/deep/file"), "short").expect("shrunk");
    }),
    ("same size", "a.txt changed", |root, n| {
        fs_err::write(root.join("a.txt"), format!("{n}")).expect("rewritten");
    }),
    ("vanish", "a-b/file vanished", |root, _| {
        let _ = fs_err::remove_file(root.join("a-b/file"));
    }),
    ("appear", "appeared", |root, n| {
        fs_err::write(root.join(format!("a/new-{n}")), "x").expect("made");
    }),
    ("become a fifo", "empty changed", |root, _| {
        let _ = fs_err::remove_file(root.join("empty"));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, root.join("empty"), fifo, mode, 0).expect("a fifo");
    }),
];

#[test]
fn a_writer_that_does_not_stop_is_named_and_nothing_is_left() {
    for phase in [CapturePhase::Clone, CapturePhase::Prove] {
        // What appears or vanishes once is seen by the second attempt as it is.
        for (what, said, meddle) in MEDDLING
            .iter()
            .filter(|(what, ..)| !["shrink", "vanish", "become a fifo"].contains(what))
        {
            let world = World::new();
            zoo(&world);
            let root = world.source.clone();
            let progress = meddler(phase, 9, |n| meddle(root.clone(), n));
            let error = world.try_capture("1", None, &progress).expect_err(what);
            assert_eq!(error.code(), Code::ConsistencyUnavailable, "{what}");
            assert!(error.to_string().contains(said), "{what}: {error}");
            assert_eq!(progress.done.load(Ordering::Relaxed), 2, "one retry");
        }
    }
}

#[test]
fn a_writer_that_stops_costs_one_retry() {
    for phase in [CapturePhase::Clone, CapturePhase::Prove] {
        for (what, _, meddle) in MEDDLING {
            let world = World::new();
            zoo(&world);
            let root = world.source.clone();
            let progress = meddler(phase, 1, |n| meddle(root.clone(), n));
            let captured = world.try_capture("1", None, &progress).expect(what);
            assert_eq!(captured.content.quiescence.attempts, 2, "{what}");
            world.check_manifest("1", &captured);
        }
    }
}

#[test]
fn best_effort_says_what_changed_and_its_manifest_fits_its_payload() {
    for phase in [CapturePhase::Plan, CapturePhase::Clone, CapturePhase::Prove] {
        for (what, said, meddle) in MEDDLING {
            let mut world = World::new();
            world.options.consistency = Consistency::BestEffort;
            zoo(&world);
            let first = world.capture("1", None);
            let root = world.source.clone();
            let progress = meddler(phase, 1, |n| meddle(root.clone(), n));
            let captured =
                world.try_capture("2", Some(("1", &first)), &progress).expect("best effort");
            assert!(captured.content.risk.is_some(), "{what}: a label");
            let changed = captured.content.quiescence.changed.join(", ");
            assert!(changed.contains(said), "{what}: {changed}");
            world.check_manifest("2", &captured);
        }
    }
}

#[test]
fn a_capture_stops_when_it_is_told_to() {
    struct Stop;
    impl Progress for Stop {
        fn keep_going(&self) -> bool {
            false
        }
    }
    let world = World::new();
    zoo(&world);
    let error = world.try_capture("1", None, &Stop).expect_err("stopped");
    assert!(matches!(error, CaptureError::Stopped));
}
