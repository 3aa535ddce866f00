//! Many processes, one lock: is the line fair, and what does it cost?
//!
//! Workers take the lock with `jvs lock acquire --wait` and give it back, every command a
//! process of its own; in the same run the same crowd does the same with `flock(1)`, which
//! promises no order and dies with its host, and with etcd, if that is installed. Printed:
//! the tables of the README. Nothing is asserted.
//!
//! `scripts/bench contention [local | juicefs]`.
//!
//! # Limitations
//! One host. What a second mount adds is the time until it looks again, which is
//! a setting (half a second for the first in line) and no measurement.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures real processes by the wall and prints what it found"
)]

mod crowd;
mod durable;
mod etcd;
mod juicefs;
mod local;

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if let [role, file] = &parts[..]
        && role == durable::ROLE
    {
        return durable::write(file.as_ref());
    }
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    if wanted("local") {
        let dir = tempfile::tempdir().expect("a directory");
        local::on(dir.path());
    }
    if wanted("juicefs") {
        juicefs::on();
    }
}

fn say(line: &str) {
    println!("{line}");
}
