//! `jvs session forget [ID]`: removes the private files of a session of which nothing
//! is alive. What it remembers is not thrown away in silence: the word for a lock that
//! was taken is `lock acquire`.

use std::io;

use jvs_lock::session::SessionId;
use jvs_repo::code::{Code, Coded};
use jvs_repo::next::Next;
use serde_json::{Value, json};

use super::survey::{Looking, SessionHold, SessionSurvey};
use crate::answer::session::ForgottenSession;
use crate::context::Context;
use crate::fail::{Failure, Stuck, on_one_line};
use crate::hint::OwnNext;
use crate::render::Done;
use crate::session::{self, known};

pub(super) fn run(
    context: &Context<'_>,
    given: Option<&str>,
    force: bool,
) -> Result<Done, Failure> {
    let id: SessionId = match given {
        Some(id) => id.parse()?,
        None => context.session_id()?,
    };
    let file = session::file_of(&id);
    let nothing = || NotForgotten { id: id.clone(), why: Box::new(KeepReason::Nothing) };
    let Some(files) = session::files(context.env())? else {
        return Err(nothing().into());
    };
    let looking = Looking::new(context, &files)?;
    let survey = looking.at(&file, Some(id.clone()))?;
    if survey.nonce.is_none() {
        return Err(nothing().into());
    }
    check(&id, &survey, force)?;
    let stuck = |error| Stuck::new(format!("forget session {id}"), error);
    let aside = match known::set_aside(&files.own, &file, context.entropy()) {
        // Another command has forgotten it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(nothing().into()),
        aside => aside.map_err(stuck)?,
    };
    // A process that had read the secret before it was put aside may have come in since: it
    // shows a stake before it touches anything.
    if let Err(refused) = look_again(&looking, &survey, &id, force) {
        aside.put_back().map_err(stuck)?;
        return Err(refused);
    }
    let family = session::family(&id);
    aside.remove(files.holds.as_ref(), &family, survey.nonce).map_err(stuck)?;
    let taken = |hold: &&SessionHold| hold.taken().is_some();
    let forgotten: Vec<&SessionHold> = survey.holds.iter().filter(taken).collect();
    let answer = ForgottenSession {
        session_id: id.as_str().to_owned(),
        holds: survey.holds.len(),
        forgotten_losses: forgotten.iter().map(|hold| hold.told()).collect(),
        notes: super::show::notes(&survey),
    };
    let done = Done::new(&answer).with_text(format!("Forgot session {id}\n"));
    let done = forgotten.iter().fold(done, |done, hold| {
        let place = hold.place();
        done.with_warning(format!("forgot that {place} was taken over: look before you write"))
    });
    // What it was never told is told now, or nobody would be.
    let notes = survey.notes.iter().flat_map(|(_, text)| text.lines());
    Ok(notes.fold(done, |done, line| done.with_warning(on_one_line(line))))
}

/// The same questions, of the holds that were there.
fn look_again(
    looking: &Looking<'_>,
    survey: &SessionSurvey,
    id: &SessionId,
    force: bool,
) -> Result<(), Failure> {
    check(id, &looking.again(survey)?, force)?;
    Ok(())
}

/// Is there a reason not to?
fn check(id: &SessionId, survey: &SessionSurvey, force: bool) -> Result<(), NotForgotten> {
    let because = |why| Err(NotForgotten { id: id.clone(), why: Box::new(why) });
    for hold in &survey.holds {
        let over = matches!(hold.state(), "released" | "lost");
        let options = hold.options();
        if hold.is_alive() || hold.is_held() == Some(true) {
            let data = json!(hold.told());
            let commands = hold.commands().iter().map(|(_, it)| it.to_string()).collect();
            return because(KeepReason::Alive { place: hold.place(), options, commands, data });
        }
        if hold.is_held().is_none() && !over && !force {
            let why = hold.register.as_ref().err().cloned().unwrap_or_default();
            return because(KeepReason::Unseen { place: hold.place(), why });
        }
        if let Some(term) = hold.taken().filter(|_| !force) {
            let token = term.token.to_string();
            return because(KeepReason::Remembers { place: hold.place(), options, token });
        }
    }
    Ok(())
}

/// A session that is not forgotten.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
struct NotForgotten {
    id: SessionId,
    why: Box<KeepReason>,
}

#[derive(Debug)]
enum KeepReason {
    /// There is nothing of it.
    Nothing,
    /// It holds, or something of it runs.
    Alive { place: String, options: String, commands: Vec<String>, data: Value },
    /// Whether it holds cannot be known.
    Unseen { place: String, why: String },
    /// Something was taken from it, and nobody said to know.
    Remembers { place: String, options: String, token: String },
}

impl NotForgotten {
    fn sentence(&self) -> String {
        let id = &self.id;
        match &*self.why {
            KeepReason::Nothing => format!("session {id} has no files on this boot of this host"),
            KeepReason::Alive { place, commands, .. } if commands.is_empty() => {
                format!("session {id} holds {place}")
            }
            KeepReason::Alive { place, commands, .. } => {
                format!("session {id} needs {place}: {}", commands.join(", "))
            }
            KeepReason::Unseen { place, why } => {
                format!("it is not known whether session {id} holds {place}: {why}")
            }
            KeepReason::Remembers { place, token, .. } => {
                format!("session {id} held {place} (token {token}), and others have held it since")
            }
        }
    }
}

impl Coded for NotForgotten {
    fn code(&self) -> Code {
        match *self.why {
            KeepReason::Nothing => Code::NotFound,
            KeepReason::Alive { .. } | KeepReason::Unseen { .. } => Code::LockConflict,
            KeepReason::Remembers { .. } => Code::FencingMismatch,
        }
    }

    fn next(&self) -> Option<Next> {
        let id = || self.id.to_string();
        let own = match &*self.why {
            KeepReason::Nothing => OwnNext::ListSessions,
            KeepReason::Alive { options, commands, .. } => {
                OwnNext::ReleaseFirst(options.to_string(), id(), !commands.is_empty())
            }
            KeepReason::Unseen { .. } => OwnNext::MountOrForget(id()),
            KeepReason::Remembers { options, .. } => {
                OwnNext::AcknowledgeOrForget(options.to_string(), id())
            }
        };
        Some(own.into())
    }

    fn details(&self) -> Option<Value> {
        match &*self.why {
            KeepReason::Alive { data, .. } => Some(data.clone()),
            _ => None,
        }
    }
}
