//! Who is asking: the session's id, its secret, and the process that speaks
//! for it.
//!
//! **Must not know.** What a session may do; that is the lock's business.

mod named;
mod place;
mod secret;
pub(crate) mod sightings;
mod terminal;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use jvs_lock::session::{Identity, Purpose, Secret, Session, SessionId};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::entropy::Entropy;
use jvs_repo::id::HolderNonce;
use jvs_repo::proc;

pub(crate) use named::{Named, Whence, has_terminal, require_lasting};
pub(crate) use secret::{Turns, leftovers, notes_dir};

use crate::context::Env;
use crate::fail::Failure;

/// A session that can act, and the way in which its processes take turns.
pub(crate) struct Acting {
    pub(crate) session: Session,
    pub(crate) turns: Turns,
}

/// The session's id: given, from the environment, or this terminal's.
pub(crate) fn id(given: Option<&str>, env: Env<'_>) -> Result<SessionId, Failure> {
    named::find(given, env).map(|named| named.id)
}

/// The session's id, and how it was found.
pub(crate) fn named(given: Option<&str>, env: Env<'_>) -> Result<Named, Failure> {
    named::find(given, env)
}

/// The session with its secret, made on first use.
pub(crate) fn act(
    id: SessionId,
    purpose: Option<Purpose>,
    env: Env<'_>,
    entropy: &dyn Entropy,
) -> Result<Acting, Failure> {
    let (secret, turns) = secret::of(&id, env, entropy)?;
    let secret = of_this_host(&secret);
    let identity = identity(purpose, env)?;
    Ok(Acting { session: Session::new(id, &secret, identity), turns })
}

/// The session as it would act, with a made-up secret if it has none. Makes
/// nothing.
pub(crate) fn imagine(id: SessionId, env: Env<'_>) -> Result<Session, Failure> {
    let secret = secret::peek(&id, env)?.unwrap_or(Secret([0; 32]));
    Ok(Session::new(id, &of_this_host(&secret), identity(None, env)?))
}

/// The session's public nonce, if it has a secret here. Makes nothing.
pub(crate) fn own_nonce(given: Option<&str>, env: Env<'_>) -> Result<Option<HolderNonce>, Failure> {
    let id = match id(given, env) {
        Ok(id) => id,
        // Who cannot be told apart from others cannot have taken anything.
        Err(_) if given.is_none() && env.get("JVS_SESSION_ID").is_none() => return Ok(None),
        Err(failure) => return Err(failure),
    };
    Ok(secret::peek(&id, env)?.map(|secret| id.nonce(&of_this_host(&secret))))
}

fn of_this_host(secret: &Secret) -> Secret {
    secret.on_host(&proc::machine_id(), &SystemClock.boot_id())
}

/// The private directory and the session's name in it, if there is one yet.
pub(crate) fn private_dir(
    given: Option<&str>,
    env: Env<'_>,
) -> Result<Option<(OwnedFd, String)>, Failure> {
    secret::private_dir(&id(given, env)?, env)
}

/// Where a word to the session's next command in the repository `repo` lies.
pub(crate) fn note_path(given: Option<&str>, env: Env<'_>, repo: &str) -> Result<PathBuf, Failure> {
    secret::note_path(&id(given, env)?, env, repo)
}

fn identity(purpose: Option<Purpose>, env: Env<'_>) -> Result<Identity, Failure> {
    let pid = std::process::id();
    let environment = place::environment(env)?;
    Ok(Identity {
        host: proc::hostname(),
        user: place::user(env)?,
        pid,
        start_time: proc::process_stat(pid).map_or(0, |stat| stat.start_ticks),
        pid_namespace: proc::pid_namespace(),
        boot_id: SystemClock.boot_id(),
        environment,
        purpose: purpose.unwrap_or_else(|| place::usual_purpose(environment)),
    })
}

/// The session, its secret or what is said about it cannot be used.
#[derive(Debug)]
pub(crate) struct Unusable {
    message: String,
    hint: String,
}

impl Unusable {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Unusable { message: message.into(), hint: hint.into() }
    }
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Unusable {}

impl Coded for Unusable {
    fn code(&self) -> Code {
        Code::SessionInvalid
    }

    fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }
}
