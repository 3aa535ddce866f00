//! Rounds, medians and ratios.

use std::time::{Duration, Instant};

/// One thing that is timed, and how long it took each time.
struct Row<'r> {
    name: String,
    work: Box<dyn FnMut(usize) + 'r>,
    took: Vec<Duration>,
}

/// Things that are timed in turns and compared with the first of them.
pub(crate) struct Table<'r> {
    title: String,
    rows: Vec<Row<'r>>,
}

impl<'r> Table<'r> {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Table { title: title.into(), rows: Vec::new() }
    }

    /// Adds something to time; it gets the number of the round.
    pub(crate) fn row(&mut self, name: impl Into<String>, work: impl FnMut(usize) + 'r) {
        self.rows.push(Row { name: name.into(), work: Box::new(work), took: Vec::new() });
    }

    /// Runs all rows in turns and prints. Untimed are `each_round` ahead of a
    /// round, with its number from 1, and `each_row` ahead of a row.
    pub(crate) fn run(
        mut self,
        rounds: usize,
        mut each_round: impl FnMut(usize),
        mut each_row: impl FnMut(),
    ) {
        for round in 0..rounds {
            each_round(round + 1);
            for row in &mut self.rows {
                each_row();
                let begin = Instant::now();
                (row.work)(round);
                row.took.push(begin.elapsed());
            }
        }
        println!("\n{} (median of {rounds})", self.title);
        let first = self.rows.first_mut().map_or(Duration::ZERO, median);
        for row in &mut self.rows {
            let took = median(row);
            println!(
                "  {:<44} {:>9.1} ms  {:>5.2}x",
                row.name,
                took.as_secs_f64() * 1000.0,
                took.as_secs_f64() / first.as_secs_f64()
            );
        }
    }
}

fn median(row: &mut Row<'_>) -> Duration {
    row.took.sort();
    row.took.get(row.took.len() / 2).copied().unwrap_or_default()
}
