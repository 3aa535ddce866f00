//! Who is asking: the session's id, its secret, and a process that speaks
//! for it.
//!
//! **Must not know.** What a session may do; that is the lock's business.

mod hints;
mod home;
pub(crate) mod known;
mod lasting;
pub(crate) mod life;
mod named;
mod place;
pub(crate) mod remembered;
mod secret;
pub(crate) mod sightings;
mod terminal;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use jvs_lock::holder::Onlooker;
use jvs_lock::session::{Identity, Place, Purpose, Secret, Session, SessionId, Sort};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::entropy::Entropy;
use jvs_repo::id::{HolderNonce, hex};
use jvs_repo::next::Next;
use jvs_repo::proc;
use jvs_repo::store::PosixStore;

pub(crate) use named::{
    NamedSession, Whence, has_terminal, id_of_run, require_lasting, variables_of,
};
pub(crate) use secret::{Turns, leftovers, notes_dir};

use crate::context::Env;
use crate::fail::Failure;

/// A session that can act, and the way in which its processes take turns.
pub(crate) struct Acting {
    pub(crate) session: Session,
    pub(crate) turns: Turns,
    /// The private directory.
    pub(crate) private: PosixStore,
    /// The name there of all who were this session on this machine.
    pub(crate) family: String,
}

/// The session's id: given, from the environment, or this terminal's.
pub(crate) fn id(given: Option<&str>, env: Env<'_>) -> Result<SessionId, Failure> {
    named::find(given, env).map(|named| named.id)
}

/// The session's id, and how it was found.
pub(crate) fn named(given: Option<&str>, env: Env<'_>) -> Result<NamedSession, Failure> {
    named::find(given, env)
}

/// The same, if somebody says who it is: the environment, without a look at any terminal.
pub(crate) fn said(env: Env<'_>) -> Option<SessionId> {
    named::said(None, env).ok().flatten().map(|named| named.id)
}

/// The session with its secret, made on first use.
pub(crate) fn act(
    id: SessionId,
    purpose: Option<Purpose>,
    env: Env<'_>,
    entropy: &dyn Entropy,
) -> Result<Acting, Failure> {
    let (secret, turns) = secret::of(&id, env, entropy)?;
    let identity = identity(purpose, env)?;
    let (private, holds) = lasting::store(env)?;
    let secret = of_this_host(&secret, &holds);
    let (family, place) = (family(&id), place_of(&id, env));
    let session = Session::new(id, &secret, identity).found_at(place);
    Ok(Acting { session, turns, private, family })
}

/// The private directory of holds, if there is one. Makes nothing.
pub(crate) fn private_store(env: Env<'_>) -> Option<PosixStore> {
    lasting::peek(env)
}

/// The session as it would act, with a made-up secret if it has none. Makes
/// nothing.
pub(crate) fn imagine(id: SessionId, env: Env<'_>) -> Result<Session, Failure> {
    let secret = secret::peek(&id, env)?.unwrap_or(Secret([0; 32]));
    let holds = lasting::identity(env).unwrap_or_default();
    Ok(Session::new(id, &of_this_host(&secret, &holds), identity(None, env)?))
}

/// The session's public nonce, if it has a secret here. Makes nothing.
pub(crate) fn own_nonce(given: Option<&str>, env: Env<'_>) -> Result<Option<HolderNonce>, Failure> {
    let id = match id(given, env) {
        Ok(id) => id,
        // Who cannot be told apart from others cannot have taken anything.
        Err(_) if given.is_none() && env.get("JVS_SESSION_ID").is_none() => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let own = secret::peek(&id, env)?.zip(lasting::identity(env));
    Ok(own.map(|(secret, holds)| id.nonce(&of_this_host(&secret, &holds))))
}

/// Where people find session `id`, as seen by a process of it.
fn place_of(id: &SessionId, env: Env<'_>) -> Place {
    let agent = named::agent(env);
    let of_agent = agent.is_some_and(|agent| named::is_called_by(id, agent));
    let leader = terminal::leader_in(id.as_str());
    let sort = match leader {
        Some(_) => Sort::Terminal,
        None if of_agent => Sort::Agent,
        None => Sort::Named,
    };
    let terminal = proc::terminal_of(std::process::id());
    // A keeper has none itself.
    let terminal = terminal.or_else(|| terminal::of(id.as_str()));
    let dir = secret::place(env).ok().map(|dir| dir.display().to_string());
    Place { sort: Some(sort), terminal, agent: agent.map(str::to_owned), private_dir: dir }
}

/// This process as one who looks at the locks of others; `None` if it cannot be told
/// who it is. Makes nothing.
pub(crate) fn onlooker(given: Option<&str>, env: Env<'_>) -> Option<Onlooker> {
    let id = id(given, env).ok()?;
    let place = place_of(&id, env);
    // Nobody's secret: it is not asked for who it is, only shown what there is.
    let session = Session::new(id, &Secret([0; 32]), identity(None, env).ok()?);
    Some(Onlooker::of(&session.found_at(place)))
}

/// The same for all boots of this machine, and another one on every other machine.
pub(crate) fn family(id: &SessionId) -> String {
    let text = format!("{}/{}", proc::machine_id(), id.as_str());
    hex(&blake3::derive_key("jvs holders v1", text.as_bytes())[..16])
}

/// The secret on this host, with the directory `holds`: in another one nobody sees what
/// the others of the session rely on, so a process that looks there is another holder.
fn of_this_host(secret: &Secret, holds: &str) -> Secret {
    secret.on_host(&format!("{} {holds}", proc::machine_id()), &SystemClock.boot_id())
}

/// The private directory and the session's name in it, if there is one yet.
pub(crate) fn private_dir(
    given: Option<&str>,
    env: Env<'_>,
) -> Result<Option<(OwnedFd, String)>, Failure> {
    secret::private_dir(&id(given, env)?, env)
}

/// Where the keepers of all of this user's sessions are named, whoever asks.
pub(crate) fn keepers_dir(env: Env<'_>) -> Result<Option<OwnedFd>, Failure> {
    secret::shared_private_dir(env)
}

/// What there is of this user's sessions; `None` if there is nothing yet. Makes nothing.
pub(crate) fn files(env: Env<'_>) -> Result<Option<known::Files>, Failure> {
    let Some((own, place)) = secret::peek_store(env)? else { return Ok(None) };
    Ok(Some(known::Files { own, place, holds: lasting::peek(env) }))
}

/// What the names of the private files of session `id` begin with.
pub(crate) fn file_of(id: &SessionId) -> String {
    secret::file_name(id)
}

/// The process that asks, as others of its user are seen from.
pub(crate) fn asker(env: Env<'_>) -> Result<Identity, Failure> {
    identity(None, env)
}

/// Is the terminal that session `id` is named after still there? `None` if it is not
/// named after one.
pub(crate) fn terminal_is_open(id: &SessionId) -> Option<bool> {
    terminal::leader_in(id.as_str()).map(|_| terminal::is_open(id.as_str()))
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
        account: proc::account(),
        pid,
        start_time: proc::process_stat(pid).map_or(0, |stat| stat.start_ticks),
        pid_namespace: proc::pid_namespace(),
        boot_id: SystemClock.boot_id(),
        environment,
        purpose: purpose.unwrap_or_else(|| place::usual_purpose(environment)),
    })
}

/// The session, its secret or what is said about it cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Unusable {
    message: String,
    next: Next,
}

impl Unusable {
    pub(crate) fn new(message: impl Into<String>, next: impl Into<Next>) -> Self {
        Unusable { message: message.into(), next: next.into() }
    }
}

impl Coded for Unusable {
    fn code(&self) -> Code {
        Code::SessionInvalid
    }

    fn next(&self) -> Option<Next> {
        Some(self.next.clone())
    }
}
