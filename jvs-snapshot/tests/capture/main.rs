//! Captures of real trees on real filesystems.

mod databases;
mod degraded;
mod filesystems;
mod ignoring;
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
