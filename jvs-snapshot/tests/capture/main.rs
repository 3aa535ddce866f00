//! Captures of real trees on real filesystems.
#![expect(clippy::disallowed_methods, reason = "makes and breaks the trees that are captured")]

mod databases;
mod degraded;
mod filesystems;
mod incremental;
mod juicefs;
mod payload;
mod program;
mod quiet;
mod refusals;
mod remembered;
mod set_id;
mod support;
mod writers;
