//! `jvs session list`.

use jvs_lock::span::Span;
use jvs_repo::clock::WallMs;

use super::show::notes;
use super::survey::{Looking, SessionHold, SessionSurvey};
use crate::answer;
use crate::answer::session::{ListedSession, SessionList};
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::{Done, table};
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
            let ago = now.since(WallMs(it.changed_ms));
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
    let answer = || {
        let listed = |it| listed(it, me.as_deref());
        let place = files.as_ref().map(|files| files.place.as_path());
        let (private_dir, private_dir_bytes) = answer::path_if_any(place);
        let sessions = surveys.iter().map(listed).collect();
        SessionList { sessions, private_dir, private_dir_bytes }
    };
    Ok(context.done(answer).with_text(text))
}

fn listed(survey: &SessionSurvey, me: Option<&str>) -> ListedSession {
    ListedSession {
        session_id: survey.id.as_ref().map(|id| id.as_str().to_owned()),
        file: survey.file.clone(),
        mine: Some(survey.file.as_str()) == me,
        holder_nonce: survey.nonce,
        terminal_open: survey.id.as_ref().and_then(session::terminal_is_open),
        last_seen_at: WallMs(survey.changed_ms).into(),
        holds: survey.holds.iter().map(SessionHold::told).collect(),
        notes: notes(survey),
    }
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
