//! Who holds: a session, and the process that speaks for it.
//!
//! Must not know where the secret is kept or how the session id was found: the
//! command does that.

use std::fmt;
use std::str::FromStr;

use jvs_repo::account::Account;
use jvs_repo::clock::{BootId, Clock};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::HolderNonce;
pub use jvs_repo::metadata::{Environment, Purpose};
use jvs_repo::next::Next;
use jvs_repo::record::keeper::Keeper;
pub use jvs_repo::record::lock::{Place, Sort};
use jvs_repo::sabotage;

use crate::mutation::Rule;

/// Longest session id, in bytes.
pub const SESSION_ID_MAX: usize = 128;

/// A session id: printable ASCII without spaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The public nonce of this session, if `secret` is its secret.
    pub fn nonce(&self, secret: &Secret) -> HolderNonce {
        let mut hasher = blake3::Hasher::new_derive_key("jvs holder nonce v1");
        hasher.update(&secret.0);
        hasher.update(self.0.as_bytes());
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        HolderNonce(nonce)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that cannot be a session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" cannot be a session id", beginning(.0))]
pub struct BadSessionId(String);

fn beginning(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

impl Coded for BadSessionId {
    fn code(&self) -> Code {
        Code::SessionInvalid
    }

    fn next(&self) -> Option<Next> {
        Some(
            format!(
                "use 1 to {SESSION_ID_MAX} printable ASCII characters without spaces, for example \
                 JVS_SESSION_ID=agent-1"
            )
            .into(),
        )
    }
}

impl FromStr for SessionId {
    type Err = BadSessionId;

    fn from_str(text: &str) -> Result<Self, BadSessionId> {
        let fits = (1..=SESSION_ID_MAX).contains(&text.len());
        if fits && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(SessionId(text.to_owned()))
        } else {
            Err(BadSessionId(text.to_owned()))
        }
    }
}

/// What only the session knows. Its public nonce is derived from it, so reading
/// a record never lets anyone renew or release.
#[derive(Clone)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// The secret as it is on one boot of one host: a home directory that two
    /// hosts share must not make one holder of two. Everything derived from it
    /// (nonce, name of the audit log) is then of that host and boot, too.
    #[must_use]
    pub fn on_host(&self, machine_id: &str, boot_id: &BootId) -> Secret {
        sabotage!(Rule::SecretIsOfHost => self.clone());
        let mut hasher = blake3::Hasher::new_derive_key("jvs session secret of a host v1");
        hasher.update(&self.0);
        // Lengths first, so that no two pairs make the same bytes.
        for part in [machine_id, &boot_id.0] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Secret(*hasher.finalize().as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The process that speaks for a session, and where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Host name.
    pub host: String,
    /// User name, as it was told.
    pub user: String,
    /// As whom it runs; `None` if that is not known.
    pub account: Option<Account>,
    /// Process id.
    pub pid: u32,
    /// When the process started, in clock ticks after boot.
    pub start_time: u64,
    /// The PID namespace that `pid` belongs to, if known.
    pub pid_namespace: Option<u64>,
    /// Which boot of the host.
    pub boot_id: BootId,
    /// Where it runs.
    pub environment: Environment,
    /// What for.
    pub purpose: Purpose,
}

impl Identity {
    /// The user to the kernel, if known.
    pub fn uid(&self) -> Option<u32> {
        self.account.as_ref().map(|account| account.uid)
    }
}

/// A session as the lock sees it.
#[derive(Debug, Clone)]
pub struct Session {
    id: SessionId,
    nonce: HolderNonce,
    identity: Identity,
    place: Place,
}

impl Session {
    /// The session `id` with its secret, spoken for by `identity`.
    pub fn new(id: SessionId, secret: &Secret, identity: Identity) -> Self {
        Session { nonce: id.nonce(secret), id, identity, place: Place::default() }
    }

    /// The same, to be found at `place`.
    #[must_use]
    pub fn found_at(self, place: Place) -> Self {
        Session { place, ..self }
    }

    /// Where people find it.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its public nonce.
    pub fn nonce(&self) -> HolderNonce {
        self.nonce
    }

    /// The process that speaks for it.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The process that speaks for it, as one that keeps a lock renewed, on `clock`.
    pub fn keeper(&self, clock: &dyn Clock) -> Keeper {
        Keeper {
            pid: self.identity.pid,
            start_time: self.identity.start_time,
            boot_id: self.identity.boot_id.clone(),
            pid_namespace: self.identity.pid_namespace,
            time_namespace: clock.time_namespace(),
        }
    }

    /// The holder id, `host:user:pid:start_time`.
    pub fn holder_id(&self) -> String {
        let Identity { host, user, pid, start_time, .. } = &self.identity;
        // Colons separate the four parts, so none may be inside one of them.
        let clean = |text: &str| -> String {
            text.chars()
                .map(|c| if c.is_ascii_graphic() && c != ':' { c } else { '_' })
                .take(64)
                .collect()
        };
        format!("{}:{}:{pid}:{start_time}", clean(host), clean(user))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn session(id: &str, secret: u8) -> Session {
        let identity = Identity {
            host: "host-a".into(),
            user: "ann".into(),
            account: Some(Account { uid: 1000, gids: vec![1000] }),
            pid: 100,
            start_time: 5,
            pid_namespace: Some(1),
            boot_id: BootId("boot-a".into()),
            environment: Environment::Local,
            purpose: Purpose::Interactive,
        };
        Session::new(id.parse().expect("valid"), &Secret([secret; 32]), identity)
    }

    #[test]
    fn the_public_nonce_needs_both_secret_and_id() {
        let nonce = session("s", 1).nonce();
        assert_eq!(nonce, session("s", 1).nonce());
        assert_ne!(nonce, session("s", 2).nonce());
        assert_ne!(nonce, session("t", 1).nonce());
    }

    #[test]
    fn one_home_on_two_hosts_is_two_holders() {
        let (id, secret): (SessionId, _) = ("s".parse().expect("valid"), Secret([1; 32]));
        let boot = |id: &str| BootId(id.to_owned());
        let nonce = |machine: &str, on: &str| id.nonce(&secret.on_host(machine, &boot(on)));
        assert_eq!(nonce("m", "a"), nonce("m", "a"));
        let others = [nonce("m", "b"), nonce("n", "a"), nonce("", "ma"), nonce("ma", "")];
        assert!(!others.contains(&nonce("m", "a")), "a later boot, another machine, neither known");
        assert_ne!(nonce("", "ma"), nonce("ma", ""));
    }

    #[test]
    fn a_holder_id_always_has_four_parts() {
        let mut odd = session("s", 1);
        odd.identity.host = "we:ird host\n".into();
        assert_eq!(odd.holder_id().split(':').count(), 4, "{}", odd.holder_id());
    }

    #[test]
    fn bad_session_ids_are_refused() {
        let long = "x".repeat(SESSION_ID_MAX + 1);
        for id in ["", " ", "a b", "a\n", "\u{e9}", long.as_str()] {
            let error = id.parse::<SessionId>().expect_err(id);
            assert_eq!(error.code(), Code::SessionInvalid);
        }
    }
}
