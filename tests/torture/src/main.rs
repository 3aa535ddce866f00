//! `torture ENGINE MINUTES [SEED]`: see the README beside it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use jvs_kit::live::juicefs::Engine;
use jvs_torture::torture::{Kind, Wish, beat, judge, torture};

const USAGE: &str = "usage: torture local|redis|sqlite MINUTES [SEED] | torture check DIR";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        ["beat", file, mark, note, ms] => {
            let ms = ms.parse().unwrap_or(0);
            told(beat(Path::new(file), Path::new(mark), note, ms).map(|()| Vec::new()))
        }
        ["check", dir] => told(judge(Path::new(dir))),
        [engine, minutes] => long(engine, minutes, "1"),
        [engine, minutes, seed] => long(engine, minutes, seed),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(64)
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

fn long(engine: &str, minutes: &str, seed: &str) -> ExitCode {
    let kind = match engine {
        "local" => Kind::Local,
        "redis" => Kind::JuiceFs(Engine::Redis),
        "sqlite" => Kind::JuiceFs(Engine::Sqlite),
        _ => return usage(),
    };
    let (Ok(minutes), Ok(seed)) = (minutes.parse::<f64>(), seed.parse()) else { return usage() };
    let keep = std::env::var_os("JVS_TORTURE_BOOK").map(PathBuf::from);
    let wish = Wish {
        kind,
        time: Duration::from_secs_f64(minutes * 60.0),
        seed,
        hosts: 3,
        workers: 9,
        program: std::env::current_exe().expect("a program knows its file"),
        keep,
    };
    let Some(verdict) = torture(&wish) else {
        eprintln!("torture: this machine cannot; see above");
        return ExitCode::from(2);
    };
    println!("{}", verdict.report);
    ExitCode::from(u8::from(!verdict.violations.is_empty()))
}
