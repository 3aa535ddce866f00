//! On a JuiceFS volume: what an acquire and a release cost, and every operation
//! that they ask of the metadata engine's client.

use crate::race::say;
use jvs_kit::live::home::Home;
use jvs_kit::live::juicefs::{Engine, Volume};

use crate::accesslog::operations;
use crate::processes;

/// Mounts a volume once and measures there.
pub(crate) fn on(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 1) else { return };
    let mount = volume.host(0);
    processes::on(mount, &format!("JuiceFS on {engine:?}"), 100, None);

    let home = Home::new();
    let root = mount.join("listed");
    home.jvs(["init"]).arg(&root).run().ok();
    let jvs = |words: &str| home.jvs(words.split(' ')).cwd(root.join("main"));
    // The first pair makes the session's log; the second is like all others.
    jvs("lock acquire --no-keeper").run().ok();
    jvs("lock release").run().ok();
    for words in ["lock status", "lock acquire --no-keeper", "lock release"] {
        let asked = operations(mount, || drop(jvs(words).run().ok()));
        say(&format!("\njvs {words}, JuiceFS on {engine:?}: {} operations", asked.len()));
        asked.iter().for_each(|operation| say(&format!("  {operation}")));
    }
}
