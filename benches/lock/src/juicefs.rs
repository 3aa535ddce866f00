//! On a JuiceFS volume: what an acquire and a release cost, and every request that the
//! commands make of its client.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use crate::race::say;
use jvs_kit::live::accesslog::{Request, all_is_forgotten, requests};
use jvs_kit::live::home::Home;
use jvs_kit::live::juicefs::{Engine, Volume};

use crate::processes;

/// Mounts a volume once and measures there.
pub(crate) fn on(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 1) else { return };
    processes::on(volume.host(0), &format!("JuiceFS on {engine:?}"), 100, None);
}

/// Every request of the commands that are run most: with names that the kernel has
/// forgotten, and again at once.
pub(crate) fn requests_on(engine: Engine) {
    let Some(volume) = Volume::mounted(engine, 1) else { return };
    let mount = volume.host(0);
    let home = Home::new();
    let root = mount.join("listed");
    home.jvs(["init"]).arg(&root).run().ok();
    // Open: whoever starts a program there looks up no names.
    let main = fs_err::File::open(root.join("main")).expect("a worktree");
    let place = format!("/proc/{}/fd/{}", std::process::id(), main.as_raw_fd());
    let jvs = |words: &str| drop(home.jvs(words.split(' ')).cwd(&place).run().ok());
    // The first pair makes the session's log; the second is like all others.
    jvs("lock acquire --no-keeper");
    jvs("lock release");
    let each = [
        "lock status",
        "lock acquire --no-keeper",
        "lock status",
        "lock renew",
        "lock release",
        "run -- true",
    ];
    for forgotten in [true, false] {
        for words in each {
            if forgotten {
                all_is_forgotten(mount);
            }
            list(mount, engine, words, forgotten, || jvs(words));
        }
    }
}

fn list(mount: &Path, engine: Engine, words: &str, forgotten: bool, work: impl FnOnce()) {
    let asked = requests(mount, work);
    let waited_for = asked.iter().filter(|request| request.is_waited_for()).count();
    let names = if forgotten { "names forgotten" } else { "names known" };
    say(&format!(
        "\njvs {words}, JuiceFS on {engine:?}, {names}: {waited_for} requests, and {} that nobody \
         waits for",
        asked.len() - waited_for
    ));
    say(&format!("  {}", counted(&asked)));
    if forgotten {
        asked.iter().for_each(|request| say(&format!("    {}", request.line)));
    }
}

/// How often each was asked for.
fn counted(asked: &[Request]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for request in asked {
        *counts.entry(&request.name).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    counts.join(", ")
}
