//! Telling clients that what they have read has changed.
//!
//! The registers are looked at only while somebody wants to know, by one short command for
//! all worktrees together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ResourceListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerNotification,
};
use rmcp::service::{Peer, SubscriptionContext};
use serde_json::{Value, json};

use crate::call::{CommandAnswer, Jvs};
use crate::resource::What;

/// How often it is looked while somebody has subscribed to a resource.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often while somebody has only seen the list of them.
const LIST_EVERY: Duration = Duration::from_secs(5);

/// What there was at the last look: of each worktree its lock and its head.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    worktrees: BTreeMap<String, (Value, Value)>,
}

/// What a client may want to know.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// There are other resources than there were.
    List,
    /// One of them is not what it was.
    Changed(What),
}

impl Seen {
    /// By what `jvs lock list` answered. A renewal is no news.
    fn of(locks: &Value) -> Seen {
        let locks = locks["locks"].as_array().into_iter().flatten();
        let each = locks.filter_map(|lock| {
            let waiters = lock["waiters"].as_array().map_or(0, Vec::len);
            let (state, token) = (&lock["state"], &lock["fencing_token"]);
            let holder = (&lock["record"]["session_id"], &lock["freeze"]);
            let told = json!([state, token, holder, waiters]);
            Some((lock["worktree"].as_str()?.to_owned(), (told, lock["head"].clone())))
        });
        Seen { worktrees: each.collect() }
    }

    /// What is new since `before`.
    fn news_since(&self, before: &Seen) -> Vec<News> {
        let mut news = Vec::new();
        if !self.worktrees.keys().eq(before.worktrees.keys()) {
            news.push(News::List);
        }
        let (mut lock, mut snapshot) = (false, false);
        let names: BTreeSet<_> = self.worktrees.keys().chain(before.worktrees.keys()).collect();
        for name in names {
            let (now, then) = (self.worktrees.get(name), before.worktrees.get(name));
            if now.map(|it| &it.0) != then.map(|it| &it.0) {
                news.push(News::Changed(What::Lock(name.clone())));
                lock = true;
            }
            if now.map(|it| &it.1) != then.map(|it| &it.1) {
                news.push(News::Changed(What::History(name.clone())));
                snapshot = true;
            }
        }
        news.extend(lock.then_some(News::Changed(What::Locks)));
        news.extend(snapshot.then_some(News::Changed(What::Snapshots)));
        news
    }
}

/// Looks once. `None` if nothing can be seen now: that is no news.
async fn look(jvs: &Jvs, stop: impl Future<Output = ()>) -> Option<Seen> {
    let words = ["lock", "list"].map(str::to_owned);
    match jvs.run(&words, None, stop).await {
        Ok(CommandAnswer::Done { data, .. }) => Some(Seen::of(&data)),
        _ => None,
    }
}

/// Tells the one client of a connection of an earlier revision.
#[derive(Default)]
pub(crate) struct Notices {
    wanted: Mutex<Wanted>,
    /// Somebody looks. Locked during the first look: others wait for that, too.
    running: tokio::sync::Mutex<bool>,
}

#[derive(Default)]
struct Wanted {
    uris: BTreeSet<String>,
    /// The client has seen the list.
    list: bool,
}

impl Notices {
    /// The client is about to be given the list of resources.
    pub(crate) async fn lists(self: &Arc<Self>, jvs: &Jvs, peer: &Peer<RoleServer>) {
        self.wanted().list = true;
        self.begin(jvs, peer).await;
    }

    /// The client is about to be told that it will know of this one.
    pub(crate) async fn subscribe(self: &Arc<Self>, uri: &str, jvs: &Jvs, peer: &Peer<RoleServer>) {
        self.wanted().uris.insert(uri.to_owned());
        self.begin(jvs, peer).await;
    }

    /// No more.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.wanted().uris.remove(uri);
    }

    fn wanted(&self) -> std::sync::MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for the first time before the client is answered: whatever it reads then is not
    /// older, and a change of it is news.
    async fn begin(self: &Arc<Self>, jvs: &Jvs, peer: &Peer<RoleServer>) {
        let mut running = self.running.lock().await;
        if std::mem::replace(&mut *running, true) {
            return;
        }
        let (notices, jvs, peer) = (self.clone(), jvs.clone(), peer.clone());
        let mut seen = look(&jvs, std::future::pending()).await.unwrap_or_default();
        tokio::spawn(async move {
            while !peer.is_transport_closed() {
                let idle = notices.wanted().uris.is_empty();
                tokio::time::sleep(if idle { LIST_EVERY } else { LOOK_EVERY }).await;
                let Some(now) = look(&jvs, std::future::pending()).await else { continue };
                for news in now.news_since(&seen) {
                    let Some(notice) = notices.notice(&news) else { continue };
                    if peer.send_notification(notice).await.is_err() {
                        return;
                    }
                }
                seen = now;
            }
        });
    }

    /// What the client is told of it, if it wants to know.
    fn notice(&self, news: &News) -> Option<ServerNotification> {
        let wanted = self.wanted();
        match news {
            News::List => wanted.list.then(list_changed),
            News::Changed(what) => {
                let uri = what.uri();
                wanted.uris.contains(&uri).then(|| updated(uri))
            }
        }
    }
}

/// Tells a client of the present revision, until it does not want to know any more.
pub(crate) async fn listen(jvs: &Jvs, context: &SubscriptionContext) {
    // It has been told already that it will know: what it has read since then may be older than
    // the first look, so all of that is news.
    let mut seen = Seen::default();
    loop {
        if let Some(now) = look(jvs, context.cancelled()).await {
            for news in now.news_since(&seen) {
                let notice = match &news {
                    News::List => list_changed(),
                    News::Changed(what) => updated(what.uri()),
                };
                // What was not subscribed to is not sent.
                let _ = context.sink().send(notice).await;
            }
            seen = now;
        }
        tokio::select! {
            () = context.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

fn list_changed() -> ServerNotification {
    ServerNotification::ResourceListChangedNotification(ResourceListChangedNotification::default())
}

fn updated(uri: String) -> ServerNotification {
    let of = ResourceUpdatedNotificationParam::new(uri);
    ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(locks: Value) -> Seen {
        Seen::of(&json!({ "locks": locks }))
    }

    #[test]
    fn a_change_of_a_lock_a_head_and_the_worktrees_is_news_and_a_renewal_is_not() {
        let lock = |state: &str, head: &str, left: u64| json!([{ "worktree": "main", "state": state, "head": head, "remaining_ms": left }]);
        let before = seen(lock("free", "1", 0));
        assert_eq!(seen(lock("free", "1", 7)).news_since(&before), []);
        let lock_of_main = What::Lock("main".to_owned());
        assert_eq!(
            seen(lock("held", "1", 0)).news_since(&before),
            [News::Changed(lock_of_main.clone()), News::Changed(What::Locks)]
        );
        let history = What::History("main".to_owned());
        assert_eq!(
            seen(lock("free", "2", 0)).news_since(&before),
            [News::Changed(history.clone()), News::Changed(What::Snapshots)]
        );
        let all = [lock_of_main, history, What::Locks, What::Snapshots].map(News::Changed);
        let gone = seen(json!([])).news_since(&before);
        assert_eq!(gone[0], News::List);
        assert_eq!(gone[1..], all);
    }
}
