//! Doors to parsers that are private, for the fuzz targets alone: what they are given is
//! what others wrote into pipes, `/proc` and files of the user. Built with the feature
//! `fuzzing` only, which nothing that ships has.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use jvs_lock::judge::Watch;
use jvs_repo::clock::{BootClock, Reading};

use crate::harness::{self, Harness, HookVerdict, ShellUse};
use crate::{args, command, fail, keeper, session, tree, trust};

/// What a word is printed as, if it is one.
fn printed<T: std::str::FromStr + ToString>(line: &str) -> Option<String> {
    line.parse::<T>().ok().map(|word| word.to_string())
}

/// A line that a keeper says, as it would say it.
pub fn keeper_says(line: &str) -> Option<String> {
    printed::<keeper::KeeperMessage>(line)
}

/// A line that a keeper is told, as it would be told.
pub fn keeper_is_told(line: &str) -> Option<String> {
    printed::<keeper::StarterMessage>(line)
}

/// A line that a guardian says, as it would say it.
pub fn guardian_says(line: &str) -> Option<String> {
    printed::<command::run::guardian::GuardianMessage>(line)
}

/// A process that is followed, as it is printed.
pub fn follow(text: &str) -> Option<String> {
    printed::<args::Follow>(text)
}

/// The whole lines of what came through a pipe, in two pieces.
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines = keeper::wire::MessageLines::default();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    lines.take(first);
    let mut whole = lines.whole();
    lines.take(second);
    whole.extend(lines.whole());
    whole
}

/// The cgroup `own` among the kernel's mounts.
pub fn cgroup_among(mounts: &str, own: &str) -> Option<PathBuf> {
    tree::cgroup::dir_among(mounts, own)
}

/// Is the mark of a run in an environment?
pub fn mark_is_in(mark: &str, environment: &[u8]) -> Option<bool> {
    Some(mark.parse::<tree::mark::TreeMark>().ok()?.is_in(environment))
}

/// What was seen of a lock, as it was kept.
pub fn sighting(text: &str, clock: &BootClock, now: Reading) -> Option<Watch> {
    session::sightings::parse(text, clock, now)
}

/// The file in which that is kept.
pub fn kept_sighting(watch: &Watch, clock: &BootClock) -> String {
    session::sightings::print(watch, clock)
}

/// Does the user's own list name that repository?
pub fn trusts(text: &str, root: &Path) -> bool {
    trust::listed(text).is_some_and(|listed| listed.names(root))
}

/// A text from elsewhere, on one line.
pub fn on_one_line(text: &str) -> String {
    fail::on_one_line(text)
}

/// What is said of a payload to each harness, as it is printed.
pub fn hook_answers(bytes: &[u8]) -> Vec<String> {
    let mut said = Vec::new();
    for harness in Harness::value_variants().iter().copied() {
        let (event, why) = match harness::read(harness, None, bytes) {
            Ok(call) => (call.event.clone(), format!("{call:?}")),
            Err(misread) => (misread.event.unwrap_or_default(), misread.why),
        };
        for verdict in [HookVerdict::Pass, HookVerdict::Deny(why)] {
            let bytes = verdict.to_bytes();
            let verdict = HookVerdict::of_bytes(&bytes).expect("as it was said");
            if let harness::HookAnswer::Document(document) =
                harness::answer(harness, &event, verdict)
            {
                said.push(harness::line(&document));
            }
        }
    }
    said
}

/// How many words of a command may name files; the command is judged, too.
pub fn shell_words(command: &str) -> usize {
    let _ = ShellUse::of(command, "session");
    harness::words_of(command, harness::Known { home: "/h", dir: "/h/d" }).len()
}

/// JSON with a member more, and without it again; `None` if it is no object.
pub fn spliced(text: &str) -> Option<(String, String)> {
    use harness::splice::{append, measure, without};
    const NAME: &str = "jvs added";
    let root = measure(text).filter(|root| root.is_object() && root.member(NAME).is_none())?;
    let added = append(text, &root, Some(NAME), &serde_json::json!([{ "x": 1 }]));
    let again = measure(&added)?;
    let removed = without(&added, &again, again.position(NAME)?);
    Some((added, removed))
}
