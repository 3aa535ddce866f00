//! `torture ENGINE MINUTES [SEED]` and `torture locks ENGINE MINUTES [SEED]`: see the
//! README beside it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use jvs_torture::jepsen::{self, Tool};
use jvs_torture::torture::{self, Engine, Kind, beat, judge};

const USAGE: &str = "usage: torture ENGINE MINUTES [SEED]
       torture locks ENGINE MINUTES [SEED]
       torture check DIR
ENGINE: local, sqlite, redis, postgres, mariadb or etcd";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        ["beat", file, mark, note, ms] => {
            let ms = ms.parse().unwrap_or(0);
            told(beat(Path::new(file), Path::new(mark), note, ms).map(|()| Vec::new()))
        }
        ["batch", history, dir, numbers @ ..] => {
            let numbers: Vec<u64> = numbers.iter().filter_map(|word| word.parse().ok()).collect();
            let [process, first, count, pause] = numbers[..] else { return usage() };
            let (history, dir) = (Path::new(history), Path::new(dir));
            let done = jepsen::batch(history, dir, process, (first, count), pause);
            told(done.map(|()| Vec::new()))
        }
        ["check", dir] => told(judge(Path::new(dir))),
        ["locks", rest @ ..] => asked(rest).map_or_else(usage, locks),
        rest => asked(rest).map_or_else(usage, long),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(64)
}

/// Where, for how long, and with which seed.
type Asked = (Kind, Duration, u64);

fn asked(words: &[&str]) -> Option<Asked> {
    let (engine, minutes, seed) = match words {
        [engine, minutes] => (engine, minutes, &"1"),
        [engine, minutes, seed] => (engine, minutes, seed),
        _ => return None,
    };
    let kind = match *engine {
        "local" => Kind::Local,
        "sqlite" => Kind::Sqlite,
        "redis" => Kind::Served(Engine::Redis),
        "postgres" => Kind::Served(Engine::Postgres),
        "mariadb" => Kind::Served(Engine::MariaDb),
        "etcd" => Kind::Served(Engine::Etcd),
        _ => return None,
    };
    let minutes: f64 = minutes.parse().ok()?;
    let time = Duration::try_from_secs_f64(minutes * 60.0).ok()?;
    Some((kind, time, seed.parse().ok()?))
}

fn told(violations: std::io::Result<Vec<String>>) -> ExitCode {
    match violations {
        Ok(violations) if violations.is_empty() => ExitCode::SUCCESS,
        Ok(violations) => {
            violations.iter().for_each(|violation| println!("{violation}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::FAILURE
        }
    }
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("a program knows its file")
}

fn long((kind, time, seed): Asked) -> ExitCode {
    let keep = std::env::var_os("JVS_TORTURE_BOOK").map(PathBuf::from);
    let program = this_program();
    let wish = torture::Wish { kind, time, seed, hosts: 3, workers: 9, program, keep };
    let Some(verdict) = torture::torture(&wish) else {
        eprintln!("torture: this machine cannot; see above");
        return ExitCode::from(2);
    };
    println!("{}", verdict.report);
    ExitCode::from(u8::from(!verdict.violations.is_empty()))
}

/// Each tool after the other, and one line of a table for each.
fn locks((kind, time, seed): Asked) -> ExitCode {
    println!("{kind:?}, 3 hosts, 6 processes, {} s for each tool, seed {seed}", time.as_secs());
    println!("| tool | adds | lost | invented | unknown: there, gone | register | kills, stops |");
    println!("|---|---|---|---|---|---|---|");
    let mut is_bad = false;
    for tool in Tool::ALL {
        if let Some(why) = tool.is_missing() {
            println!("| {} | not run: {why} |", tool.name());
            continue;
        }
        let wish = jepsen::Wish { tool, kind, time, seed, hosts: 3, program: this_program() };
        let Some(verdict) = jepsen::work(&wish) else {
            eprintln!("torture: this machine cannot; see above");
            return ExitCode::from(2);
        };
        println!("{}", verdict.row(tool));
        is_bad |= tool.must_lose_nothing() && !verdict.is_good();
    }
    ExitCode::from(u8::from(is_bad))
}
