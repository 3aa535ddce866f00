//! Defects that were once shown with the real command, tried again by the scripts that
//! showed them. Those that take long, or need more, run with `scripts/repro`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use jvs_kit::live::binary::jvs;
use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::process::run;

#[test]
fn what_was_once_shown_is_not_there_any_more() {
    if !granted(&[Capability::Root, Capability::Program("python3")]) {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/repro");
    let mut command = Command::new(script);
    command
        .args(["mapped-afterwards", "mapped-on-tmpfs", "descriptors", "nameless", "other_user"])
        .env("JVS", jvs());
    let outcome = run(command, Duration::from_secs(120)).ok();
    let text = outcome.stdout();
    assert!(text.contains("5 found nothing, 0 found something, 0 skipped"), "{text}");
}
