//! How long a snapshot takes, the command from start to end, beside the floor and beside other tools, in one run.
//!
//! ```text
//! cargo run --release -p jvs-bench-capture -- [ext4|xfs|btrfs|juicefs|large|many|history|memory|before|before-juicefs]…
//! ```
//! Without a word: all of them. `before` compares with the build of the command that
//! `JVS_BENCH_BEFORE` names. Each figure is the median of several rounds that
//! take turns with what they are compared with, so that a busy machine disturbs
//! both alike.
#![expect(clippy::disallowed_methods, reason = "makes trees and times them")]
#![expect(clippy::print_stdout, reason = "prints its table")]

mod repository;
mod rival;
mod scenario;
mod table;

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    for (name, run) in scenario::ALL {
        if wanted(name) {
            run();
        }
    }
}
