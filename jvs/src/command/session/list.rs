//! `jvs session list`.

use jvs_lock::span::Span;
use serde_json::json;

use super::show::notes;
use super::survey::{Looking, SessionHold, SessionSurvey};
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{Done, table, tell_path};
use crate::session::{self, known};

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let mut surveys = Vec::new();
    let files = session::files(context.env())?;
    if let Some(files) = &files {
        let looking = Looking::new(context, files)?;
        let all = known::all(&files.own);
        let all = all.map_err(|error| Stuck::new("look into the private directory", error))?;
        for known in all {
            surveys.push(looking.at(&known.file, known.id)?);
        }
    }
    // Those that do something first, then the last seen.
    surveys.sort_by_key(|it| (!is_busy(it), std::cmp::Reverse(it.changed_ms)));
    let me = context.session_id().ok().map(|id| session::file_of(&id));
    let now = context.clock().now().wall;
    let rows: Vec<[String; 4]> = surveys
        .iter()
        .map(|it| {
            let mine = if Some(&it.file) == me.as_ref() { " (this one)" } else { "" };
            let commands: usize = it.holds.iter().map(|hold| hold.commands().len()).sum();
            let ago = now.since(jvs_repo::clock::WallMs(it.changed_ms));
            [
                format!("{}{mine}", called(it)),
                holds(it),
                commands.to_string(),
                format!("{} ago", Span(ago)),
            ]
        })
        .collect();
    let text = match rows.is_empty() {
        true => "no session has locked anything here yet\n".to_owned(),
        false => table(context.paint(), ["SESSION", "HOLDS", "COMMANDS", "SEEN"], &rows),
    };
    let data = || {
        let sessions: Vec<_> = surveys
            .iter()
            .map(|it| {
                json!({
                    "session_id": it.id.as_ref().map(|id| id.as_str()),
                    "file": it.file,
                    "mine": Some(&it.file) == me.as_ref(),
                    "holder_nonce": it.nonce,
                    "terminal_open": it.id.as_ref().and_then(session::terminal_is_open),
                    "last_seen_at": jvs_repo::clock::WallMs(it.changed_ms).rfc3339(),
                    "holds": it.holds.iter().map(SessionHold::data).collect::<Vec<_>>(),
                    "notes": notes(it),
                })
            })
            .collect();
        let mut data = json!({ "sessions": sessions, "private_dir": null });
        if let Some(files) = &files {
            tell_path(&mut data, "private_dir", &files.place);
        }
        data
    };
    Ok(context.done(data).with_text(text))
}

fn is_busy(survey: &SessionSurvey) -> bool {
    survey.holds.iter().any(|hold| hold.is_alive() || hold.is_held() == Some(true))
}

fn called(survey: &SessionSurvey) -> String {
    match &survey.id {
        Some(id) => id.as_str().to_owned(),
        None => format!("unknown ({}…)", &survey.file[..8]),
    }
}

/// What it holds, in few words.
fn holds(survey: &SessionSurvey) -> String {
    let held: Vec<&SessionHold> =
        survey.holds.iter().filter(|hold| hold.is_held() == Some(true)).collect();
    let lost = survey.holds.iter().filter(|hold| hold.taken().is_some()).count();
    let mut words: Vec<String> = match held[..] {
        [] => Vec::new(),
        [only] => vec![only.place()],
        [first, ..] => vec![format!("{} and {} more", first.place(), held.len() - 1)],
    };
    if lost > 0 {
        words.push(format!("{lost} taken over"));
    }
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join("; "),
    }
}
