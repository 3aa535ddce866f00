//! A simulated process: a closure that runs library code.

use std::sync::Arc;

use super::board::Value;
use super::call::Effect;
use super::clock::SimClock;
use super::entropy::SimEntropy;
use super::line::{FIRST_TIME_NAMESPACE, Line};
use super::store::SimStore;

/// When a process comes to life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Start {
    /// With the world.
    AtOnce,
    /// When every process before it, in the order they were given, has ended
    /// or died: the lone survivor.
    Last,
    /// When the power came back.
    AfterPowerCut,
}

pub(crate) type Body = Arc<dyn Fn(&Ctx) + Send + Sync>;

/// A process to be simulated.
#[derive(Clone)]
pub struct Process {
    pub(crate) name: String,
    pub(crate) host: Option<usize>,
    pub(crate) mount: Option<usize>,
    pub(crate) start: Start,
    pub(crate) time_namespace: TimeNamespace,
    pub(crate) body: Body,
}

/// A time namespace of a host: its boot-time clock is set off from the kernel's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeNamespace {
    pub(crate) id: u64,
    pub(crate) boot_offset_ms: u64,
}

impl TimeNamespace {
    const FIRST: TimeNamespace = TimeNamespace { id: FIRST_TIME_NAMESPACE, boot_offset_ms: 0 };
}

impl Process {
    /// A process that does `body`.
    ///
    /// `body` must be a function of what it is answered: no clock, no random
    /// numbers and no memory shared with others but through its [`Ctx`], for it
    /// is run again and again, and its runs are remembered. A panic in it is
    /// a violation, so it may assert.
    pub fn new(name: &str, body: impl Fn(&Ctx) + Send + Sync + 'static) -> Self {
        let body = Arc::new(body);
        let time_namespace = TimeNamespace::FIRST;
        let start = Start::AtOnce;
        Process { name: name.to_owned(), host: None, mount: None, start, time_namespace, body }
    }

    /// On which host, and on that host's mount. Without this every process has
    /// a host and a mount of its own.
    #[must_use]
    pub fn on_host(mut self, host: usize) -> Self {
        self.host = Some(host);
        self
    }

    /// Through which mount, if it is not the host's own.
    #[must_use]
    pub fn on_mount(mut self, mount: usize) -> Self {
        self.mount = Some(mount);
        self
    }

    /// In time namespace `id` of its host, whose boot-time clock is so far ahead of
    /// the host's own. Without this every process is in the host's first one.
    #[must_use]
    pub fn in_time_namespace(mut self, id: u64, boot_offset_ms: u64) -> Self {
        self.time_namespace = TimeNamespace { id, boot_offset_ms };
        self
    }

    /// When it comes to life.
    #[must_use]
    pub fn starts(mut self, start: Start) -> Self {
        self.start = start;
        self
    }
}

/// The key under which every process that has not ended is on its board.
pub(crate) const RUNNING: &str = "is running";

/// What a simulated process has: the three seams, and a board for its claims.
pub struct Ctx {
    index: usize,
    name: String,
    store: SimStore,
    clock: SimClock,
    entropy: SimEntropy,
    line: Arc<dyn Line>,
}

impl Ctx {
    pub(crate) fn new(index: usize, name: &str, line: Arc<dyn Line>) -> Self {
        Ctx {
            index,
            name: name.to_owned(),
            store: SimStore::new(line.clone()),
            clock: SimClock::new(line.clone()),
            entropy: SimEntropy::new(index as u64),
            line,
        }
    }

    /// Its number, from 0 in the order in which processes were given.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The filesystem.
    pub fn store(&self) -> &SimStore {
        &self.store
    }

    /// The clocks.
    pub fn clock(&self) -> &SimClock {
        &self.clock
    }

    /// The randomness.
    pub fn entropy(&self) -> &SimEntropy {
        &self.entropy
    }

    /// Publishes a fact, in place of what was published under this key.
    pub fn claim(&self, key: &'static str, value: impl Into<Value>) {
        self.line.effect(Effect::Claim(key, value.into()));
    }

    /// Publishes one more fact of a list.
    pub fn append(&self, key: &'static str, value: impl Into<Value>) {
        self.line.effect(Effect::Append(key, value.into()));
    }

    /// Takes a fact back.
    pub fn retract(&self, key: &'static str) {
        self.line.effect(Effect::Retract(key));
    }

    /// A line for the trace, and nothing else.
    pub fn say(&self, text: impl Into<String>) {
        self.line.effect(Effect::Say(text.into()));
    }

    /// What another process has published: how a scenario passes a message
    /// that in reality goes by a socket or a parent's memory.
    pub fn look(&self, process: usize, key: &'static str) -> Option<Value> {
        self.line.look(process, key)
    }

    /// Is another process there? What a look into `/proc` tells.
    pub fn is_running(&self, process: usize) -> bool {
        self.line.look(process, RUNNING).is_some()
    }

    /// A number below `below`; all of them are tried.
    pub fn pick(&self, below: usize) -> usize {
        self.line.pick(below)
    }

    /// Lets others go first: a step that does nothing.
    pub fn pause(&self) {
        self.line.pause();
    }
}
