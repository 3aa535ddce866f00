//! `jvs lock watch`: how the lock stands, and again whenever that changes. On a terminal a
//! table of all locks that is kept up to date.

use super::{list, look, report, status};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{AnswerStream, Done, Screen, table};

/// Two looks a second: soon enough for people, little enough for the engine.
const LOOK_AGAIN_MS: u32 = 500;

/// How long a date with its `T` is, and the time of day behind it.
const DATE: usize = 11;
const TIME: usize = 8;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let stream = context.output().stream("lock watch");
    if let Some(screen) = context.output().screen() {
        return live(context, screen, stream);
    }
    let here = context.here()?;
    let mut last = None;
    loop {
        let view = look(context, &here)?;
        // A renewal is no news.
        let foreign = view.foreign.clone();
        let news = (view.word(), view.state.token, view.state.head, view.mine, foreign);
        if last.as_ref() != Some(&news) {
            last = Some(news);
            let at = view.at.wall.shown();
            let text = format!("{at} {}: {}\n", view.worktree, report::line(&view));
            let done = Done::new(&status::told(context, &here.repo, &view)).with_text(text);
            if !stream.item(&done)? {
                return Ok(Done::reader_gone());
            }
        }
        if !stream.wait(LOOK_AGAIN_MS) {
            return Ok(Done::reader_gone());
        }
    }
}

/// The table, drawn again and again, until interrupted.
fn live(context: &Context<'_>, mut screen: Screen, stream: AnswerStream) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let only = context.given_worktree()?;
    loop {
        let (rows, _) = list::all(context, &repo, only.as_ref())?;
        let text = table(context.paint(), list::HEAD, &rows);
        let at = context.clock().now().wall.shown().to_string();
        let at: String = at.chars().skip(DATE).take(TIME).collect();
        let clock = context.paint().dim(&format!("{at} (Ctrl-C ends it)"));
        screen.draw(&format!("{text}{clock}\n"))?;
        if !stream.wait(LOOK_AGAIN_MS) {
            return Ok(Done::reader_gone());
        }
    }
}
