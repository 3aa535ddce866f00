//! `jvs lock watch`: how the lock stands, and again whenever that changes.

use super::{look, report, status};
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

/// Two looks a second: soon enough for people, little enough for the engine.
const LOOK_AGAIN_MS: u32 = 500;

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let here = context.here()?;
    let stream = context.output().stream("lock watch");
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
            let done = Done::new(status::data(context, &here.repo, &view)).with_text(text);
            if !stream.item(&done)? {
                return Ok(Done::reader_gone());
            }
        }
        if !stream.wait(LOOK_AGAIN_MS) {
            return Ok(Done::reader_gone());
        }
    }
}
