//! A line on a JuiceFS volume with Redis behind it: turns, and the commands that the
//! metadata engine was given for them.

use std::process::Command;
use std::time::{Duration, Instant};

use jvs_kit::live::juicefs::{Engine, Volume};

use crate::crowd::{exponent, measure, run};
use crate::local::{Arena, row};
use crate::say;

const CROWDS: [(usize, usize); 4] = [(4, 20), (8, 10), (32, 8), (100, 3)];
/// For how long a line is watched that does not move.
const STILL: Duration = Duration::from_secs(20);

/// The tables of a volume of one mount.
pub(crate) fn on() {
    let Some(volume) = Volume::mounted(Engine::Redis, 1) else { return };
    let arena = Arena::new(volume.host(0));
    let idle = commands_a_second(&volume, || std::thread::sleep(Duration::from_secs(5)));
    say(&format!("an idle mount: {idle:.0} commands a second, taken off below"));
    say("| waiters × turns | | turns/s | longest wait / mean | CPU ms a turn |");
    say("|---|---|---|---|---|");
    let before = commands(&volume);
    let alone = measure(1, 40, &|worker| arena.turn(worker));
    let alone_a_turn = (commands(&volume) - before - idle * alone.seconds()) / alone.turns() as f64;
    row("1 × 40", "jvs, nobody else", &alone);
    say(&format!("| | {alone_a_turn:.0} commands a turn | | | |"));
    let (mut costs, mut moving) = (Vec::new(), Vec::new());
    for (workers, turns) in CROWDS {
        let before = commands(&volume);
        let crowd = measure(workers, turns, &|worker| arena.turn(worker));
        let asked = commands(&volume) - before - idle * crowd.seconds();
        row(&format!("{workers} × {turns}"), "`jvs lock acquire --wait` + `release`", &crowd);
        let a_turn = asked / crowd.turns() as f64;
        let to_alone = crowd.per_second() / alone.per_second();
        say(&format!("| | {a_turn:.0} commands a turn; {to_alone:.2} of one alone | | | |"));
        costs.push((workers, a_turn));
        let a_second = |each: f64| each * crowd.per_second();
        moving.push(Moving { workers, all: a_second(a_turn), turns: a_second(alone_a_turn) });
    }
    let grows = exponent(costs[0], costs[costs.len() - 1]);
    say(&format!("commands a turn grow with the power {grows:.2} of the waiters, from 4 to 100"));
    let file = volume.host(0).join("flock");
    let flock = measure(32, 8, &|_| {
        let start = Instant::now();
        let mut command = Command::new("flock");
        command.arg(&file).arg("true");
        run(command);
        start.elapsed()
    });
    row("32 × 8", "`flock FILE true`", &flock);
    still(&volume, &arena, idle, &moving);
    arena.verify();
}

/// What a line costs that moves, in commands a second.
struct Moving {
    workers: usize,
    all: f64,
    /// What as many turns without a line would.
    turns: f64,
}

/// What lines cost that do not move, beside those of as many that do.
fn still(volume: &Volume, arena: &Arena, idle: f64, moving: &[Moving]) {
    for Moving { workers: waiters, all, turns } in moving {
        let waiters = *waiters;
        arena.hold();
        std::thread::scope(|scope| {
            let line: Vec<_> =
                (0..waiters).map(|worker| scope.spawn(move || arena.turn(worker))).collect();
            // Until all of them have joined.
            std::thread::sleep(Duration::from_secs(5));
            let still = commands_a_second(volume, || std::thread::sleep(STILL)) - idle;
            say(&format!("a line of {waiters} that does not move: {still:.0} commands a second"));
            let waiting = all - turns;
            say(&format!(
                "  that moves: {all:.0}, of them {waiting:.0} for waiting, {:.2} of a still one's",
                waiting / still
            ));
            arena.let_go();
            line.into_iter().for_each(|waiter| drop(waiter.join()));
        });
    }
}

fn commands_a_second(volume: &Volume, work: impl FnOnce()) -> f64 {
    let (before, began) = (commands(volume), Instant::now());
    work();
    (commands(volume) - before) / began.elapsed().as_secs_f64()
}

/// How many commands the metadata engine has been given so far.
fn commands(volume: &Volume) -> f64 {
    let socket = volume.redis().expect("it is on Redis").socket();
    let mut info = Command::new("redis-cli");
    let info = info.arg("-s").arg(socket).args(["info", "stats"]).output().expect("it answers");
    let text = String::from_utf8_lossy(&info.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a number of commands")
}
