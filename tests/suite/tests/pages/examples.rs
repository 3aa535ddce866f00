//! Every example of every page of help, and every command in a topic, does what it says.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use jvs_kit::live::process::Outcome;

use crate::stage::Stage;

/// What has to be so before each example of a page.
fn before(page: &str) -> &'static str {
    match page {
        "init" => "mkdir -p src",
        "lock release" | "lock renew" => "jvs lock acquire --no-keeper",
        "lock unfreeze" => "jvs lock freeze --for 1h --reason x",
        "lock steal" => {
            "jvs config set lock.max_clock_skew_ms 50; jvs config set lock.steal_grace_ms 50
            jvs lock release || true
            JVS_SESSION_ID=gone jvs lock acquire --no-keeper --lease 1s
            until jvs lock status --json | grep -q '\"state\":\"stealable\"'; do sleep 0.05; done"
        }
        "lock reclaim" => {
            "jvs config set reclaim.same_user true
            JVS_SESSION_ID=laptop jvs lock acquire --no-keeper"
        }
        "lock transfer" => {
            "jvs lock acquire --no-keeper
            JVS_SESSION_ID=bob jvs lock acquire --no-keeper --wait=50s > /dev/null 2>&1 < /dev/null &
            until jvs lock status --json | grep -q '\"place\":1'; do sleep 0.05; done"
        }
        "redo" => "jvs undo",
        "session forget" => {
            "JVS_SESSION_ID=old jvs lock acquire --no-keeper; JVS_SESSION_ID=old jvs lock release"
        }
        _ => ":",
    }
}

/// Those of a page of help, as they are shown.
fn examples(page: &str) -> Vec<String> {
    let help = Stage::empty().types(&format!("jvs {page} --help")).ok();
    let shown = help.stdout().split_once("\nExamples:\n").map(|(_, shown)| shown.to_owned());
    let shown = shown.unwrap_or_else(|| panic!("`jvs {page} --help` has no example"));
    let lines = shown.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// The commands that there are: a page of the manual each.
fn pages() -> VecDeque<String> {
    let stage = Stage::empty();
    let made = stage.types("jvs man man1 > made; cd man1; ls *.1").ok();
    let pages = made.stdout().lines().map(|file| {
        let name = file.strip_suffix(".1").expect("a page of commands");
        name.strip_prefix("jvs").expect("ours").replace('-', " ").trim().to_owned()
    });
    pages.collect()
}

fn does(page: &str, line: &str, outcome: &Outcome) -> Result<(), String> {
    match outcome.status.success() {
        true => Ok(()),
        false => Err(format!("`jvs {page} --help` says: {line}\n{outcome}")),
    }
}

fn try_page(page: &str) -> Result<(), String> {
    let stage = match page {
        "" | "init" | "demo" => Stage::empty(),
        _ => Stage::furnished(),
    };
    let mut lines = examples(page);
    if page.is_empty() {
        // One after the other, from a directory that the first one makes.
        lines = vec![lines.join("\n")];
    }
    for line in lines {
        stage.types(before(page)).ok();
        let typed = match page {
            // It watches until nobody reads any more.
            "lock watch" => format!("{{ {line} || [ $? = 141 ]; }} | head -n 1 | grep main"),
            _ => line.clone(),
        };
        does(page, &line, &stage.types(&typed))?;
    }
    Ok(())
}

#[test]
fn every_example_in_the_help_works_as_it_is_typed() {
    let pages = Mutex::new(pages());
    assert!(pages.lock().is_ok_and(|pages| pages.len() > 40));
    let wrong = Mutex::new(Vec::new());
    let next = || pages.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(page) = next() {
                    let tried = try_page(&page).err();
                    wrong.lock().unwrap_or_else(PoisonError::into_inner).extend(tried);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_in_a_topic_works_as_it_is_typed() {
    let help = Stage::empty().types("jvs --help").ok();
    let topics = help.stdout().lines().filter_map(|line| line.strip_prefix("  jvs help "));
    let topics: Vec<&str> = topics.filter_map(|line| line.split(' ').next()).collect();
    assert!(topics.len() >= 6, "{topics:?}");
    for topic in topics {
        let stage = Stage::furnished();
        let text = stage.types(&format!("jvs help {topic}")).ok();
        let lines = text.stdout().lines().filter_map(|line| line.strip_prefix("    $ "));
        let lines: Vec<&str> = lines.collect();
        assert!(!lines.is_empty(), "{topic} has nothing to try");
        for line in lines {
            does(&format!("help {topic}"), line, &stage.types(line))
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// Five pages and the topic for agents are read at once by a program that pays for
/// each word.
#[test]
fn what_an_agent_has_to_read_is_short() {
    let stage = Stage::empty();
    let pages = ["lock acquire", "lock release", "run", "snapshot", "restore"];
    let length = |page: &str| stage.types(&format!("jvs {page} --help")).ok().stdout.len();
    let all: usize = pages.into_iter().map(length).sum();
    assert!(all <= 6_000, "{all} bytes: about {} tokens", all / 4);
}
