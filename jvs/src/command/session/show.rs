//! `jvs session show`.

use std::fmt::Write as _;
use std::path::Path;

use jvs_lock::span::Span;

use super::survey::{Looking, SessionHold, SessionSurvey};
use crate::answer::path_if_any;
use crate::answer::session as answer;
use crate::context::Context;
use crate::fail::{Failure, on_one_line};
use crate::render::{Done, fact, shown};
use crate::session::{self, NamedSession, Whence};

pub(super) fn run(context: &Context<'_>) -> Result<Done, Failure> {
    let named = session::named(context.given_session(), context.env())?;
    let file = session::file_of(&named.id);
    let files = session::files(context.env())?;
    let survey = match &files {
        Some(files) => Some(Looking::new(context, files)?.at(&file, Some(named.id.clone()))?),
        None => None,
    };
    let dir = files.as_ref().map(|files| files.place.as_path());
    let me = context.onlooker();
    let mut text = format!("session {}\n", context.paint().bold(named.id.as_str()));
    let mut say = |label: &str, what: &str| {
        text += &fact(None, &format!("  {label:10}"), what);
    };
    say("known by", &known_by(&named));
    if let Some(me) = &me {
        let id = me.uid.map_or("not known".to_owned(), |uid| uid.to_string());
        say("user", &format!("{} (self-declared) on {}, user id {id}", me.user, me.host));
        let place = [me.place.terminal.as_ref(), me.place.agent.as_ref()];
        let place: Vec<&str> = place.into_iter().flatten().map(String::as_str).collect();
        if !place.is_empty() {
            say("at", &place.join(", "));
        }
    }
    let nonce = survey.as_ref().and_then(|survey| survey.nonce);
    match nonce {
        Some(nonce) => say("nonce", &format!("{}, on this boot", &nonce.to_string()[..16])),
        None => say("nonce", "none yet: it has never locked anything here"),
    }
    if let Some(dir) = &dir {
        say("files", &shown(dir));
    }
    text += &survey.as_ref().map(details).unwrap_or_default();
    let answer = || told(&named, me.as_ref(), survey.as_ref(), dir);
    Ok(context.done(answer).with_text(text))
}

/// Which rule chose the id.
fn known_by(named: &NamedSession) -> String {
    match named.whence {
        Whence::Option => "--session".to_owned(),
        Whence::Variable => "JVS_SESSION_ID".to_owned(),
        Whence::Harness(system) => {
            format!("{system}, which sets {}", session::variables_of(system).join(", "))
        }
        Whence::Terminal => "this terminal; JVS_SESSION_ID would name another".to_owned(),
        Whence::Leader => {
            "nothing that lasts: it ends with this command; export JVS_SESSION_ID=NAME".to_owned()
        }
    }
}

fn told(
    named: &NamedSession,
    me: Option<&jvs_lock::holder::Onlooker>,
    survey: Option<&SessionSurvey>,
    dir: Option<&Path>,
) -> answer::SessionTold {
    let (rule, variables): (&str, Vec<&str>) = match named.whence {
        Whence::Option => ("option", Vec::new()),
        Whence::Variable => ("variable", vec!["JVS_SESSION_ID"]),
        Whence::Harness(system) => ("agent", session::variables_of(system).to_vec()),
        Whence::Terminal => ("terminal", Vec::new()),
        Whence::Leader => ("leader", Vec::new()),
    };
    let (private_dir, private_dir_bytes) = path_if_any(dir);
    let holds = survey.iter().flat_map(|survey| &survey.holds);
    answer::SessionTold {
        session_id: named.id.as_str().to_owned(),
        known_by: rule,
        variables,
        lasts: named.whence.lasts(),
        holder_nonce: survey.and_then(|survey| survey.nonce),
        user: me.map(|me| me.user.clone()),
        uid: me.and_then(|me| me.uid),
        host: me.map(|me| me.host.clone()),
        boot_id: me.map(|me| me.boot_id.to_string()),
        terminal: me.and_then(|me| me.place.terminal.clone()),
        agent: me.and_then(|me| me.place.agent.clone()),
        private_dir,
        self_declared: me.map(|_| ["user", "host", "terminal", "agent"]),
        holds: holds.map(SessionHold::told).collect(),
        notes: survey.map_or(Vec::new(), notes),
        private_dir_bytes,
    }
}

/// What was not told yet, for programs.
pub(super) fn notes(survey: &SessionSurvey) -> Vec<answer::NoteTold> {
    let note = |(repo, text): &(String, String)| answer::NoteTold {
        repository_id: repo.clone(),
        text: text.clone(),
    };
    survey.notes.iter().map(note).collect()
}

/// Its holds and what it was not told yet, for people.
fn details(survey: &SessionSurvey) -> String {
    let mut text = String::new();
    for hold in &survey.holds {
        let _ = writeln!(text, "{}", on_one_line(&title(hold)));
        if let Some(view) = hold.register.as_ref().ok().filter(|view| view.mine) {
            let _ = writeln!(
                text,
                "  {}",
                on_one_line(&view.holder().until_when()).replace(", ", "\n  ")
            );
        }
        for (stake, reliance) in hold.commands() {
            let alone = if stake.exclusive { ", alone" } else { "" };
            let since = hold.since_ms(stake).map(|ms| format!(", for {}", Span(ms)));
            let since = since.unwrap_or_default();
            let _ =
                writeln!(text, "  needed by {}{alone}{since}", on_one_line(&reliance.to_string()));
        }
        if let Some((pid, alive)) = hold.keeper {
            let alive = match alive {
                Some(true) => "runs",
                Some(false) => "has ended",
                None => "cannot be seen from here",
            };
            let _ = writeln!(text, "  kept by process {pid}, which {alive}");
        }
        if hold.taken().is_some() {
            let _ = writeln!(text, "  others have held it since; acknowledge this with:");
            let _ = writeln!(text, "    jvs lock acquire {}", on_one_line(&hold.options()));
        }
        if let Err(why) = &hold.register {
            let _ = writeln!(text, "  its register cannot be read: {}", on_one_line(why));
        }
    }
    if survey.holds.is_empty() {
        text += "holds nothing, and has lost nothing\n";
    }
    for (repo, note) in &survey.notes {
        let root = survey.holds.iter().find(|hold| hold.repository_id == *repo);
        let root = root.and_then(|hold| hold.root.as_deref()).unwrap_or(repo);
        for line in note.lines() {
            let _ =
                writeln!(text, "not told yet, in {}:\n  {}", on_one_line(root), on_one_line(line));
        }
    }
    text
}

/// Which hold it is, and how it stands.
fn title(hold: &SessionHold) -> String {
    let (place, token) = (hold.place(), hold.name.term.token);
    match hold.state() {
        "open" => format!("holds {place} (token {token})"),
        "ending" => format!("is releasing {place} (token {token})"),
        "released" => format!("released {place} (token {token})"),
        "lost" => format!("lost {place} (token {token})"),
        _ => format!("had {place} (token {token}), which the register no longer shows"),
    }
}
