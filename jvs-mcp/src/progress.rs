//! Telling a client that waits for a lock who is in front of it.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::call::{CommandAnswer, Jvs};

/// How often.
const EVERY: Duration = Duration::from_secs(2);

/// Does `work`, and tells the client about the lock of `worktree` until that is done, if it
/// wants to be told.
pub(crate) async fn during<T>(
    work: impl Future<Output = T>,
    jvs: &Jvs,
    context: &RequestContext<RoleServer>,
    worktree: Option<String>,
    wait: &str,
) -> T {
    let tell = async {
        let Some(token) = context.meta.get_progress_token() else {
            return std::future::pending().await;
        };
        let words: Vec<String> = ["lock", "status"].map(str::to_owned).into();
        let worktree = worktree.map(|name| format!("--worktree={name}"));
        let words: Vec<String> = words.into_iter().chain(worktree).collect();
        let mut waited = Duration::ZERO;
        loop {
            tokio::time::sleep(EVERY).await;
            waited += EVERY;
            let told = jvs.run(&words, None, std::future::pending()).await;
            let message = match &told {
                Ok(CommandAnswer::Done { data, .. }) => in_front(data),
                _ => "waiting in line".to_owned(),
            };
            let progress = ProgressNotificationParam::new(token.clone(), waited.as_secs_f64())
                .with_message(message);
            let progress = match seconds(wait) {
                Some(total) => progress.with_total(total),
                None => progress,
            };
            // A client that is gone has its call ended by that.
            let _ = context.peer.notify_progress(progress).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = tell => unreachable!("it tells for ever"),
    }
}

/// Who has the lock that is waited for, in one sentence.
fn in_front(lock: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let worktree = text(&lock["worktree"]);
    let waiters = lock["waiters"].as_array().map_or(0, Vec::len);
    let others = match waiters {
        0 | 1 => String::new(),
        more => format!(", {more} sessions wait for it"),
    };
    if lock["state"] == "held" {
        let (user, host) = (text(&lock["user"]), text(&lock["host"]));
        let session = text(&lock["record"]["session_id"]);
        return format!("{worktree} is locked by {user} on {host} (session {session}){others}");
    }
    format!("{worktree} is {}{others}", text(&lock["state"]))
}

/// How long a duration is that was checked before.
fn seconds(duration: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] =
        [("ms", 0.001), ("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];
    let (mut rest, mut total) = (duration, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let (unit, length) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        total += number.parse::<f64>().ok()? * length;
        rest = &after[unit.len()..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_have_a_length() {
        for (text, length) in [("5m", 300.0), ("1h30m", 5400.0), ("500ms", 0.5), ("2d", 172_800.0)]
        {
            assert_eq!(seconds(text), Some(length), "{text}");
        }
        assert_eq!((seconds("m"), seconds("5"), seconds("5x")), (None, None, None));
    }

    #[test]
    fn it_is_told_who_is_in_front() {
        let lock = json!({
            "worktree": "main", "state": "held", "user": "ann", "host": "vm",
            "record": { "session_id": "a" }, "waiters": [1, 2]
        });
        let told = "main is locked by ann on vm (session a), 2 sessions wait for it";
        assert_eq!(in_front(&lock), told);
        assert_eq!(in_front(&json!({ "worktree": "main", "state": "free" })), "main is free");
    }
}
