//! Where a session runs and as whom: told by the environment, or detected.

use std::path::Path;

use jvs_lock::session::{Environment, Purpose};

use super::Unusable;
use crate::context::Env;
use crate::fail::Failure;

/// Longest user name that a record may carry, in bytes.
const USER_MAX: usize = 256;

/// Set by the CI systems that do not set `CI`, and by those that do.
const CI: &[&str] = &[
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "CIRCLECI",
    "JENKINS_URL",
    "TEAMCITY_VERSION",
    "TF_BUILD",
];
/// Codespaces, Gitpod, Google Cloud Shell, AWS CloudShell and Lambda, Cloud Run.
const CLOUD: &[&str] =
    &["CODESPACES", "GITPOD_WORKSPACE_ID", "CLOUD_SHELL", "AWS_EXECUTION_ENV", "K_SERVICE"];
/// Kubernetes; podman and systemd-nspawn.
const CONTAINER: &[&str] = &["KUBERNETES_SERVICE_HOST", "container"];
/// Left in a container's root by docker and by podman.
const CONTAINER_FILES: &[&str] = &["/.dockerenv", "/run/.containerenv"];

/// `JVS_ENVIRONMENT`, else the most telling of what is there to see.
pub(super) fn environment(env: Env<'_>) -> Result<Environment, Failure> {
    environment_among(env, |path| Path::new(path).exists())
}

fn environment_among(
    env: Env<'_>,
    is_there: impl Fn(&str) -> bool,
) -> Result<Environment, Failure> {
    if let Some(word) = env.text("JVS_ENVIRONMENT")? {
        return word.parse().map_err(|error| {
            let message = format!("JVS_ENVIRONMENT is \"{word}\": {error}");
            Unusable::new(message, "unset JVS_ENVIRONMENT to have it detected").into()
        });
    }
    let any = |names: &[&str]| names.iter().any(|name| env.says_yes(name));
    Ok(if any(CI) {
        Environment::Ci
    } else if any(CLOUD) {
        Environment::Cloud
    } else if any(CONTAINER) || CONTAINER_FILES.iter().any(|path| is_there(path)) {
        Environment::Container
    } else {
        Environment::Local
    })
}

/// What a lock is for unless it is said: nobody sits in front of a CI job.
pub(super) fn usual_purpose(environment: Environment) -> Purpose {
    match environment {
        Environment::Ci => Purpose::Automated,
        Environment::Local | Environment::Cloud | Environment::Container => Purpose::Interactive,
    }
}

/// `JVS_USER`, else the name of the user this process runs as.
pub(super) fn user(env: Env<'_>) -> Result<String, Failure> {
    let Some(name) = env.text("JVS_USER")? else {
        let uid = rustix::process::geteuid().as_raw();
        let known = name_of(uid).or_else(|| env.text("LOGNAME").ok().flatten());
        return Ok(known.filter(|name| is_usable(name)).unwrap_or_else(|| format!("uid-{uid}")));
    };
    if is_usable(&name) {
        return Ok(name);
    }
    let message = "JVS_USER cannot be used as a user name";
    let hint = format!("set it to 1 to {USER_MAX} bytes without control characters, or unset it");
    Err(Unusable::new(message, hint).into())
}

fn is_usable(name: &str) -> bool {
    (1..=USER_MAX).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// Users that only a directory service knows are not found here.
#[expect(clippy::disallowed_methods, reason = "not the control plane: the host's own user list")]
fn name_of(uid: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    name_in(&users, uid)
}

fn name_in(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn detect(variables: &[(&str, &str)], file: Option<&str>) -> Result<Environment, Failure> {
        let get = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        environment_among(Env::new(&get), |path| Some(path) == file)
    }

    #[test]
    fn the_environment_is_the_most_telling_of_what_is_there_to_see() {
        for (variables, file, expected) in [
            (&[][..], None, Environment::Local),
            (&[("CI", "true"), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")], None, Environment::Ci),
            (&[("CI", "false")], None, Environment::Local),
            (&[("GITLAB_CI", "1")], None, Environment::Ci),
            (&[("CODESPACES", "true")], Some("/.dockerenv"), Environment::Cloud),
            (&[], Some("/.dockerenv"), Environment::Container),
            (&[], Some("/run/.containerenv"), Environment::Container),
            (&[("CI", "1"), ("JVS_ENVIRONMENT", "cloud")], None, Environment::Cloud),
        ] {
            assert_eq!(detect(variables, file).ok(), Some(expected), "{variables:?} {file:?}");
        }
    }

    #[test]
    fn an_environment_that_is_none_is_refused() {
        let failure = detect(&[("JVS_ENVIRONMENT", "moon")], None).expect_err("no such word");
        assert_eq!(failure.code().as_str(), "E_SESSION_INVALID");
        assert_eq!(
            failure.message(),
            "JVS_ENVIRONMENT is \"moon\": expected one of: local, ci, cloud, container"
        );
    }

    #[test]
    fn a_user_is_found_by_number_and_not_by_prefix() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbroken\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(users, 100), None);
    }
}
