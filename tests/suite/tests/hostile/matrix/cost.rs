//! What cases cost: processor time, which a busy machine does not change by much, and
//! time on the clock, which shows those that wait.

use std::fmt;
use std::time::Duration;

use jvs_repo::clock::{Clock as _, SystemClock};

/// How many are remembered.
const FEW: usize = 5;

/// Clock ticks in a second, on every Linux that there is.
const TICKS: u64 = 100;

/// The cases that cost the most.
#[derive(Default)]
pub(super) struct Dearest {
    of_the_processor: Vec<(Duration, String)>,
    on_the_clock: Vec<(Duration, String)>,
}

impl Dearest {
    /// Does what starts programs and waits for their ends, and remembers what they cost.
    pub(super) fn measured<T>(&mut self, case: &str, what: impl FnOnce() -> T) -> T {
        let (before, begun) = (time_of_children(), SystemClock.now().boot);
        let done = what();
        let took = Duration::from_millis(SystemClock.now().boot.since(begun));
        remember(&mut self.on_the_clock, took, case);
        remember(&mut self.of_the_processor, time_of_children() - before, case);
        done
    }
}

fn remember(dearest: &mut Vec<(Duration, String)>, cost: Duration, case: &str) {
    dearest.push((cost, case.to_owned()));
    dearest.sort_by(|one, other| other.cmp(one));
    dearest.truncate(FEW);
}

impl fmt::Display for Dearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, dearest) in
            [("of the processor", &self.of_the_processor), ("on the clock", &self.on_the_clock)]
        {
            for (cost, case) in dearest {
                writeln!(f, "{:.2} s {what}: {case}", cost.as_secs_f64())?;
            }
        }
        Ok(())
    }
}

/// What the ended children of this process cost, for the system and themselves.
fn time_of_children() -> Duration {
    let stat = fs_err::read_to_string("/proc/self/stat").expect("read");
    // The name, which may be any text, is in parentheses.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let times = fields.split_ascii_whitespace().skip(13).take(2);
    let ticks: u64 = times.map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
