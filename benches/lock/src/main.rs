//! What the command costs: against the start of a program that does nothing,
//! against what one would use instead, and on JuiceFS, operation by operation.
//! What the library costs within one process is in `benches/in_process`.
//!
//! `scripts/bench lock [processes|hooks|runs|juicefs|requests]…` builds everything and runs this in a
//! namespace of its own, without a word all of it; the figures and what they mean are in
//! `README.md`.

mod hooks;
mod juicefs;
mod processes;
mod race;
mod runs;

use crate::race::say;
use jvs_kit::live::juicefs::Engine;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let dir = tempfile::tempdir().expect("a directory");
    let filesystem = filesystem(dir.path());
    say(&format!("filesystem: {filesystem}"));
    if wanted("processes") {
        processes::on(dir.path(), &filesystem, 400, Some(processes::LOCAL));
    }
    if wanted("hooks") {
        hooks::on(dir.path(), &filesystem, 400);
        hooks::on_juicefs(Engine::Redis);
    }
    if wanted("runs") {
        runs::on(dir.path(), &filesystem, 400);
    }
    for engine in Engine::ALL.into_iter().filter(|_| wanted("juicefs")) {
        juicefs::on(engine);
    }
    if wanted("requests") {
        // They are the same whatever keeps the metadata.
        juicefs::requests_on(Engine::Redis);
    }
}

fn filesystem(dir: &std::path::Path) -> String {
    match rustix::fs::statfs(dir).expect("a directory has a filesystem").f_type {
        0xEF53 => "ext4".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683E => "btrfs".to_owned(),
        other => format!("filesystem {other:#x}"),
    }
}
