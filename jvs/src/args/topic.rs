//! `jvs help TOPIC`: what no single command explains.

use std::ffi::OsString;

/// A page about an idea.
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    /// What it is about, in a few words.
    pub(crate) about: &'static str,
    pub(crate) text: &'static str,
}

/// The page that is in the file of its name.
macro_rules! topic {
    ($name:literal: $about:literal) => {
        Topic { name: $name, about: $about, text: include_str!(concat!("topic/", $name, ".txt")) }
    };
}

/// All of them, in the order in which a reader meets them.
pub(crate) const TOPICS: &[Topic] = &[
    topic!("sessions": "who you are to the lock"),
    topic!("locks": "who may write, until when, and what then"),
    topic!("snapshots": "what is kept, what it is called, how it comes back"),
    topic!("ignore": "what is not kept, and what a restore leaves alone"),
    topic!("clocks": "which clock is believed, and how far"),
    topic!("juicefs": "mounts, several hosts, and what to look out for"),
    topic!("agents": "all that a program needs, on one page"),
];

/// The topic that `jvs help …` asks for. Words are those of a whole command line.
pub(super) fn asked(words: &[OsString]) -> Option<&'static Topic> {
    let mut plain = words.iter().skip(1).filter(|word| *word != "--json");
    let (help, topic, rest) = (plain.next()?, plain.next()?, plain.next());
    let found = TOPICS.iter().find(|it| *topic == *it.name);
    found.filter(|_| help == "help" && rest.is_none())
}

/// Their names and what they are about, for `jvs --help`.
pub(super) fn list() -> String {
    let lines = TOPICS.iter().map(|it| format!("  jvs help {:<10} {}", it.name, it.about));
    format!("Topics:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::words_of;
    use super::*;

    #[test]
    fn topics_fit_a_terminal_and_an_agent_reads_forty_lines() {
        for topic in TOPICS {
            for line in topic.text.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", topic.name);
            }
            assert!(topic.text.ends_with('\n') && !topic.text.ends_with("\n\n"));
        }
        let agents = TOPICS.iter().find(|it| it.name == "agents").expect("a topic");
        assert!(agents.text.lines().count() <= 40, "{}", agents.text.lines().count());
    }

    #[test]
    fn no_topic_is_called_like_a_command() {
        let tree = super::super::Args::command();
        for topic in TOPICS {
            assert!(tree.find_subcommand(topic.name).is_none(), "{}", topic.name);
        }
    }

    #[test]
    fn a_topic_is_asked_for_with_two_words() {
        for line in ["jvs help locks", "jvs --json help locks", "jvs help locks --json"] {
            assert_eq!(asked(&words_of(line)).map(|it| it.name), Some("locks"), "{line}");
        }
        for line in ["jvs help", "jvs help lock", "jvs locks", "jvs help locks extra"] {
            assert!(asked(&words_of(line)).is_none(), "{line}");
        }
    }
}
