//! The holder of a lock in words that people know: who, where, what for, since when,
//! and until when at the latest. One place makes them, and everybody who shows a lock
//! uses it. Nothing is decided by them.

use jvs_repo::clock::{BootId, WallMs};
use jvs_repo::name::ShownName;
use jvs_repo::next::Next;
use serde::Serialize;
use serde_json::{Value, json};

use crate::kept::{Kept, With};
use crate::policy;
use crate::record::{FoundRecord, Record, host_as_recorded, user_as_recorded};
use crate::session::{Place, Session, Sort};
use crate::span::Span;
use crate::view::{StatusWord, View};

/// Who looks at a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onlooker {
    /// The session's id.
    pub session: String,
    /// The user, as a record has it.
    pub user: String,
    /// The user to the kernel, if known.
    pub uid: Option<u32>,
    /// The host.
    pub host: String,
    /// Which boot of it.
    pub boot_id: BootId,
    /// Where the session is.
    pub place: Place,
}

impl Onlooker {
    /// The session itself.
    pub fn of(session: &Session) -> Self {
        let identity = session.identity();
        Onlooker {
            session: session.id().as_str().to_owned(),
            user: user_as_recorded(&identity.user),
            uid: identity.uid(),
            host: identity.host.clone(),
            boot_id: identity.boot_id.clone(),
            place: session.place().clone(),
        }
    }

    /// `None` if the id of either is not known.
    pub fn is_user_of(&self, record: &Record) -> Option<bool> {
        policy::is_user(record, self.uid, &self.user, &self.boot_id)
    }

    /// An account may be shared by people who say who they are.
    fn is_called_as(&self, record: &Record) -> bool {
        record.metadata.user_identity == self.user
    }

    fn is_on_host_of(&self, record: &Record) -> bool {
        self.boot_id == record.boot_id && host_as_recorded(&self.host) == record.metadata.hostname
    }
}

/// What a holder says of itself and nobody checks: it decides nothing but who ranks higher,
/// where a repository wants that.
pub const SELF_DECLARED: &[&str] =
    &["user", "host", "terminal", "agent", "note", "environment", "purpose"];

/// What programs are told of a holder; nothing of it decides anything.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderKnown {
    /// Its user, as it said.
    pub user: Option<String>,
    /// Its user to the kernel of its host, if known.
    pub uid: Option<u32>,
    /// Its host, as it said.
    pub host: Option<String>,
    /// Its terminal, such as `pts/3`.
    pub terminal: Option<String>,
    /// The agent or CI system that it runs under.
    pub agent: Option<String>,
    /// What it holds the lock for, in its own words.
    pub note: Option<String>,
    /// What it is kept with: it ends when that does.
    pub kept_with: Option<With>,
    /// It is released once its session has given no sign of life for this long.
    pub idle_release_ms: Option<u64>,
    /// Is its user the one who asks? `null` if that is not known.
    pub same_user: Option<bool>,
    /// Has it the id of the session that asks, and another secret?
    pub same_id_elsewhere: bool,
    /// Which fields a holder may claim what it likes in.
    pub self_declared: Option<&'static [&'static str]>,
}

/// What an onlooker is to the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinship {
    /// It is the holder.
    Oneself,
    /// The same id on the same host, with another secret: the holder's is kept in
    /// another private directory.
    OtherPrivateDir,
    /// The same user at another terminal of the same host.
    OtherTerminal,
    /// Nothing of that, as far as is known.
    None,
}

/// The holder of a lock as one look showed it.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'v> {
    view: &'v View,
    record: Option<&'v Record>,
}

impl View {
    /// Who holds it, or froze it.
    pub fn holder(&self) -> Holder<'_> {
        let nobody = matches!(self.word(), StatusWord::Free | StatusWord::Retired);
        Holder { view: self, record: self.record().filter(|_| !nobody) }
    }
}

impl<'v> Holder<'v> {
    /// What the observer is to it.
    pub fn kinship(&self) -> Kinship {
        if self.view.mine {
            return Kinship::Oneself;
        }
        let Some((record, me)) = self.record.zip(self.view.seen_by.as_deref()) else {
            return Kinship::None;
        };
        if !me.is_on_host_of(record) || record.frozen {
            return Kinship::None;
        }
        let at_terminal =
            |place: &Place| place.sort == Some(Sort::Terminal) && place.terminal.is_some();
        let terminals = at_terminal(&me.place) && at_terminal(&record.place);
        if record.session_id == me.session {
            Kinship::OtherPrivateDir
        } else if terminals && me.is_user_of(record) == Some(true) && me.is_called_as(record) {
            Kinship::OtherTerminal
        } else {
            Kinship::None
        }
    }

    /// Who it is: `ann on h1 (terminal pts/3)`.
    pub fn who(&self) -> String {
        let Some(record) = self.record.filter(|_| !self.view.mine) else {
            return self.unknown();
        };
        let terminal = record.place.terminal.as_deref();
        match self.kinship() {
            Kinship::OtherPrivateDir => match &record.place.private_dir {
                Some(_) if self.has_my_private_dir() => {
                    "the same session id, whose secret or memory is not here any more".to_owned()
                }
                Some(dir) => format!("the same session id with another private directory ({dir})"),
                None => "the same session id with another private directory".to_owned(),
            },
            Kinship::OtherTerminal => {
                format!("you, in another terminal ({})", terminal.unwrap_or_default())
            }
            Kinship::Oneself | Kinship::None => {
                let (user, host) = (&record.metadata.user_identity, &record.metadata.hostname);
                format!("{user} on {host} ({})", through(record))
            }
        }
    }

    /// Is its secret where the observer has its own? Then it is not that directory which
    /// tells them apart.
    fn has_my_private_dir(&self) -> bool {
        let mine = self.view.seen_by.as_deref().and_then(|me| me.place.private_dir.as_ref());
        mine.is_some() && self.record.and_then(|it| it.place.private_dir.as_ref()) == mine
    }

    fn unknown(&self) -> String {
        match &self.view.found {
            _ if self.view.mine => "this session".to_owned(),
            FoundRecord::Refused(why) | FoundRecord::Unreadable(why) => {
                format!("a session whose record cannot be read ({why})")
            }
            FoundRecord::Nothing | FoundRecord::Record(_) => {
                "a session that left no record".to_owned()
            }
        }
    }

    /// Since when it has it, on its own wall clock.
    pub fn since(&self) -> Option<WallMs> {
        self.record?.created()
    }

    /// For how long it has it.
    pub fn held_ms(&self) -> Option<u64> {
        Some(self.view.at.wall.since(self.since()?))
    }

    /// What for, in its own words.
    pub fn note(&self) -> Option<&'v str> {
        self.record.and_then(|record| record.note.as_deref())
    }

    /// Until when at the latest, on its own wall clock; `None` if no time bounds it, or
    /// nobody said.
    pub fn kept_until(&self) -> Option<String> {
        let record = self.record?;
        match (&record.kept, record.renews) {
            (Some(kept), _) => kept.until.clone(),
            (None, Some(false)) => record.expires().map(|expires| expires.rfc3339()),
            (None, _) => None,
        }
    }

    /// Until when it is kept, in few words: `at most 59 min 3 s more, until its terminal
    /// closes`.
    pub fn until(&self) -> String {
        self.until_with(|left, _| format!("at most {left} more"))
    }

    /// The same with the time, for where there is room.
    pub fn until_when(&self) -> String {
        self.until_with(with_the_time)
    }

    fn until_with(&self, at_most: impl Fn(Span, WallMs) -> String) -> String {
        let remaining = Span(self.view.remaining_ms());
        let Some(record) = self.record else { return format!("its lease ends in {remaining}") };
        let Some(kept) = &record.kept else {
            return match record.renews {
                Some(false) => {
                    let end = self.view.expires().unwrap_or(self.view.at.wall);
                    at_most(Span(end.since(self.view.at.wall)), end)
                }
                _ => format!("its lease ends in {remaining} unless it is renewed"),
            };
        };
        until_with(kept, self.view.at.wall, at_most)
    }

    /// All of it: `ann on h1 (terminal pts/3), for 40 s, at most 59 min more: "release 1.4"`.
    pub fn line(&self) -> String {
        let held = self.held_ms().map(|ms| format!(", for {}", Span(ms))).unwrap_or_default();
        let note = self.note().map(|note| format!(": \"{note}\"")).unwrap_or_default();
        format!("{}{held}, {}{note}", self.who(), self.until())
    }

    /// The first line of several: who, since when and what for.
    pub fn title(&self) -> String {
        let held = self.held_ms().map(|ms| format!(", for {}", Span(ms))).unwrap_or_default();
        let note = self.note().map(|note| format!(": \"{note}\"")).unwrap_or_default();
        format!("{}{held}{note}", self.who())
    }

    /// The same for where there is little room, and in the order in which it may be cut
    /// off: `ann on h1 (pts/3), at most 59 min: release 1.4`.
    pub fn brief(&self) -> String {
        let note = self.note().map(|note| format!(": {note}")).unwrap_or_default();
        let who = self.who().replace("(terminal ", "(").replace("(session ", "(");
        let kept = self.record.and_then(|record| record.kept.as_ref());
        let until = match kept.and_then(Kept::ends) {
            Some(end) => format!("at most {}", coarse(end.since(self.view.at.wall))),
            None => self.until(),
        };
        format!("{who}, {until}{note}")
    }

    /// What helps if the holder is oneself after all.
    pub fn advice(&self) -> Option<Next> {
        let record = self.record?;
        let (id, worktree) = (&record.session_id, &self.view.worktree);
        match self.kinship() {
            Kinship::OtherTerminal => Some(Next::ReleaseElsewhere(worktree.clone(), id.clone())),
            Kinship::OtherPrivateDir => {
                let dir = record.place.private_dir.as_deref()?;
                let base = dir.strip_suffix("/jvs")?;
                let me = self.view.seen_by.as_deref()?;
                let words = match me.is_user_of(record) == Some(true) {
                    _ if self.has_my_private_dir() => format!(
                        "see whether HOME and XDG_STATE_HOME are as they were, and whose these \
                         are: ls -ld {} ~/.local/state/jvs-holds",
                        ShownName::new(dir).typed()
                    ),
                    true => {
                        let base = ShownName::new(base).typed();
                        format!("use that directory: export XDG_RUNTIME_DIR={base}")
                    }
                    false => format!("run this as the user to whom {dir} belongs"),
                };
                Some(words.into())
            }
            Kinship::Oneself | Kinship::None => None,
        }
    }

    /// For programs: adds what is known of it to `data`, which is an object.
    pub fn add_to(&self, data: &mut Value) {
        if let (Some(data), Value::Object(known)) = (data.as_object_mut(), json!(self.known())) {
            data.extend(known);
            data.insert("kept_until".to_owned(), json!(self.kept_until()));
        }
    }

    /// For programs: what is known of it.
    pub fn known(&self) -> HolderKnown {
        let record = self.record;
        let metadata = record.map(|record| &record.metadata);
        let place = record.map(|record| &record.place);
        let kept = record.and_then(|record| record.kept.as_ref());
        let me = self.view.seen_by.as_deref();
        let same_user = record.zip(me).and_then(|(record, me)| me.is_user_of(record));
        HolderKnown {
            user: metadata.map(|it| it.user_identity.clone()),
            uid: record.and_then(|record| record.uid),
            host: metadata.map(|it| it.hostname.clone()),
            terminal: place.and_then(|place| place.terminal.clone()),
            agent: place.and_then(|place| place.agent.clone()),
            note: self.note().map(str::to_owned),
            kept_with: kept.and_then(|kept| kept.with),
            idle_release_ms: kept.and_then(|kept| kept.idle_ms),
            same_user: record.filter(|_| self.view.mine).map_or(same_user, |_| Some(true)),
            same_id_elsewhere: self.kinship() == Kinship::OtherPrivateDir,
            self_declared: record.map(|_| SELF_DECLARED),
        }
    }
}

/// A length of time in one unit.
fn coarse(ms: u64) -> String {
    let span = Span(ms).to_string();
    let words: Vec<&str> = span.split(' ').take(2).collect();
    words.join(" ")
}

/// Through what the holder works.
fn through(record: &Record) -> String {
    let Place { sort, terminal, agent, .. } = &record.place;
    let session = format!("session {}", record.session_id);
    match (sort, terminal, agent) {
        (Some(Sort::Terminal), Some(terminal), _) => format!("terminal {terminal}"),
        (Some(Sort::Named), _, Some(agent)) => format!("{agent}, {session}"),
        _ => session,
    }
}

/// Until when a lock is kept, as its own session says it of itself: `at most 59 min 3 s
/// more (until TIME), until its terminal closes`.
pub fn kept_until_when(kept: &Kept, now: WallMs) -> String {
    until_with(kept, now, with_the_time)
}

fn with_the_time(left: Span, end: WallMs) -> String {
    format!("at most {left} more (until {})", end.shown())
}

fn until_with(kept: &Kept, now: WallMs, at_most: impl Fn(Span, WallMs) -> String) -> String {
    let left_ms = kept.ends().map(|end| end.since(now));
    let bound = left_ms.zip(kept.ends()).map(|(ms, end)| at_most(Span(ms), end));
    let with = kept.with.map(|with| match with {
        With::Command => "until its command ends".to_owned(),
        With::Terminal => "until its terminal closes".to_owned(),
        With::Process { pid } => format!("until process {pid} ends"),
    });
    // A silence that would last longer than the lock ends nothing.
    let idle = kept.idle_ms.filter(|idle| left_ms.is_none_or(|left| *idle < left));
    let idle = idle.map(|ms| format!("less if idle for {}", Span(ms)));
    let parts: Vec<String> = [bound, with, idle].into_iter().flatten().collect();
    match parts.is_empty() {
        true => "until it is released".to_owned(),
        false => parts.join(", "),
    }
}

#[cfg(test)]
mod tests;
