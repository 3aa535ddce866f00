//! How a waiter sleeps: the end of the process ahead and changes made on this host wake it
//! at once (a descriptor of the process, inotify), Ctrl-C ends the wait, and everything
//! else is noticed by looking again.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use jvs_kernel::signals::Signals;
use jvs_lock::queue::{Sleeper, Waiting, WatchBegun, Woken};
use jvs_lock::span::Span;
use jvs_lock::view::{StatusWord, View};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::store::{PosixStore, RepoPath};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::alarm::Alarm;
use crate::fail::{Failure, Stuck, on_one_line};
use crate::render::ProgressLine;
use crate::session::life::SignsOfLife;

/// The signals that end a wait.
pub(crate) const ENDING: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// Sleeps for one wait, woken by what it watches.
pub(crate) struct WatchingSleeper<'w> {
    store: &'w PosixStore,
    signals: &'w Signals,
    alarm: Alarm,
    /// Made when something is to be watched. None if the kernel has no watches left: then
    /// only looking again helps.
    watches: Option<OwnedFd>,
    /// The process whose end wakes: a killed one removes no ticket.
    followed: Option<(u32, OwnedFd)>,
    progress: ProgressLine,
    name: String,
    stopped_by: Option<Signal>,
    last: (usize, u64),
    life: Option<SignsOfLife>,
}

impl<'w> WatchingSleeper<'w> {
    pub(crate) fn new(
        store: &'w PosixStore,
        signals: &'w Signals,
        progress: ProgressLine,
        name: String,
    ) -> Result<Self, Failure> {
        let alarm = Alarm::new().map_err(|error| Stuck::new("set a timer", error))?;
        Ok(WatchingSleeper {
            store,
            signals,
            alarm,
            watches: None,
            followed: None,
            progress,
            name,
            stopped_by: None,
            last: (0, 0),
            life: None,
        })
    }

    /// The same, giving signs of life of its session while it waits.
    pub(crate) fn alive(self, life: SignsOfLife) -> Self {
        WatchingSleeper { life: Some(life), ..self }
    }

    /// The signal that ended the wait, if one did.
    pub(crate) fn stopped_by(&self) -> Option<Signal> {
        self.stopped_by
    }

    /// How many were ahead and how long the wait had lasted, when last told.
    pub(crate) fn last(&self) -> (usize, u64) {
        self.last
    }

    /// Reads the pending events. Were there any?
    fn take_events(&mut self) -> bool {
        let Some(watches) = &self.watches else { return false };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(watches, &mut buffer);
        let mut any = false;
        while reader.next().is_ok() {
            any = true;
        }
        any
    }
}

impl Sleeper for WatchingSleeper<'_> {
    fn watch(&mut self, what: &RepoPath) -> WatchBegun {
        if self.watches.is_none() {
            self.watches = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        }
        let Some(watches) = &self.watches else { return WatchBegun::Impossible };
        // A register changes by a rename in its directory; a ticket goes.
        let changes = WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF | WatchFlags::ATTRIB;
        let flags = changes | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(watches, self.store.absolute(what), flags) {
            Ok(_) => WatchBegun::Yes,
            Err(Errno::NOENT) => WatchBegun::NotThere,
            Err(_) => WatchBegun::Impossible,
        }
    }

    fn follow(&mut self, pid: u32) -> WatchBegun {
        if self.followed.as_ref().is_some_and(|(followed, _)| *followed == pid) {
            return WatchBegun::Yes;
        }
        self.followed = None;
        let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return WatchBegun::Impossible;
        };
        match pidfd_open(process, PidfdFlags::empty()) {
            Ok(opened) => {
                self.followed = Some((pid, opened));
                WatchBegun::Yes
            }
            Err(Errno::SRCH) => WatchBegun::NotThere,
            Err(_) => WatchBegun::Impossible,
        }
    }

    fn sleep(&mut self, ms: u64) -> Woken {
        let until = SystemClock.now().boot.plus(ms);
        let watches = self.watches.as_ref().map(AsFd::as_fd);
        let followed = self.followed.as_ref().map(|(_, process)| process.as_fd());
        let woke = self.alarm.wait([Some(self.signals.fd()), watches, followed], Some(until));
        let [_, _, ended] = woke.as_ref().copied().unwrap_or_default();
        if ended {
            // It would wake again and again: once is enough.
            self.followed = None;
        }
        let changed = self.take_events() || ended;
        while let Some(signal) = self.signals.next() {
            if ENDING.contains(&signal) {
                self.stopped_by = Some(signal);
                return Woken::Stop;
            }
        }
        if woke.is_err() {
            // No way to wait for several things at once: wait for the time.
            SystemClock.sleep_ms(ms);
        }
        if changed { Woken::Change } else { Woken::Time }
    }

    fn tell(&mut self, waiting: &Waiting) {
        self.last = (waiting.ahead, waiting.waited_ms);
        self.life.iter().for_each(SignsOfLife::sign);
        let name = &self.name;
        let waited = Span(waiting.waited_ms);
        let (line, place) = match waiting.ahead {
            0 => ("next in line".to_owned(), "next".to_owned()),
            ahead => {
                let place = format!("{} of {}", ahead + 1, waiting.waiting);
                (format!("place {place} in line"), place)
            }
        };
        // Seen a while ago, perhaps; the time left is counted from now.
        let view = waiting.view.clone().map(|view| View { at: SystemClock.now(), ..view });
        let whose = view.as_ref().map(holder);
        let long = whose.as_ref().map(|(long, _)| format!("; {long}")).unwrap_or_default();
        let short = whose.map(|(_, short)| format!(": {short}")).unwrap_or_default();
        let texts = [
            format!("waiting {waited} for worktree {name}: {line}{long}"),
            format!("waiting {waited} for {name} ({place}){short}"),
        ];
        self.progress.show_wait(&texts, waiting.waited_ms);
    }
}

/// The lock's status, at length and in few words.
fn holder(view: &View) -> (String, String) {
    let alike = |text: String| (text.clone(), text);
    match view.word() {
        StatusWord::Held if view.held_by_other_tool().is_some() => alike(other_tool(view)),
        StatusWord::Free => alike("free".to_owned()),
        StatusWord::Frozen => alike(format!("frozen for {} more", Span(view.remaining_ms()))),
        StatusWord::Expired | StatusWord::Stealable => {
            alike("its holder's lease is over".to_owned())
        }
        StatusWord::Held | StatusWord::Retired => {
            let holder = view.holder();
            (on_one_line(&format!("held by {}", holder.line())), on_one_line(&holder.brief()))
        }
    }
}

/// Who holds it through another tool, and until when, in few words.
fn other_tool(view: &View) -> String {
    let Some(foreign) = view.held_by_other_tool() else { return String::new() };
    let ends = match foreign.ends {
        Some(_) => format!("ends in {}", Span(view.remaining_ms())),
        None => "never ends".to_owned(),
    };
    on_one_line(&format!("held by {} through another tool, {ends}", foreign.owner))
}
