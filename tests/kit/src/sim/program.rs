//! A process as a function from answers to requests, computed by running it
//! and remembered.
//!
//! Real code on a real thread decides what is asked next; the tree below keeps
//! every request that some sequence of answers led to. So each distinct
//! history is run once, however many global states it is part of, and going
//! back in time costs nothing.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jvs_repo::clock::{BootId, BootMs, Discipline, Reading, WallMs};
use jvs_repo::store::RepoPath;
use rustix::io::Errno;

use super::board::Value;
use super::call::{Answer, Call, Effect, Request};
use super::line::{Line, boot_id};
use super::process::{Body, Ctx};

/// How long, in real time, a process may take from an answer to its next request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Threads of one process that are kept where they stopped.
const KEPT: usize = 8;

/// Does this path concern one process only?
pub(crate) type IsPrivate = Arc<dyn Fn(&RepoPath) -> bool + Send + Sync>;

/// A history of a process: its place in the tree.
pub(crate) type History = u32;

struct Node {
    parent: History,
    /// What was answered to the parent's request.
    answer: Answer,
    /// What it did before its request.
    effects: Vec<Effect>,
    request: Request,
    /// It is a call on paths that concern this process only.
    private: bool,
    after: HashMap<Answer, History>,
}

/// Everything that one process was ever seen to do.
pub(crate) struct Program {
    index: usize,
    name: String,
    clocks: Clocks,
    body: Body,
    nodes: Vec<Node>,
    is_private: Option<IsPrivate>,
    stopped_at: VecDeque<(History, Thread)>,
    pool: Pool,
}

impl Program {
    pub(crate) const START: History = 0;

    pub(crate) fn new(
        index: usize,
        name: &str,
        clocks: Clocks,
        body: Body,
        is_private: Option<IsPrivate>,
        pool: Pool,
    ) -> Self {
        let start = Node {
            parent: 0,
            answer: Answer::Done,
            effects: Vec::new(),
            request: Request::Start,
            private: false,
            after: HashMap::new(),
        };
        Program {
            index,
            name: name.to_owned(),
            clocks,
            body,
            nodes: vec![start],
            is_private,
            stopped_at: VecDeque::new(),
            pool,
        }
    }

    /// What the process asks after this history.
    pub(crate) fn request(&self, at: History) -> &Request {
        &self.nodes[at as usize].request
    }

    /// Is that a call on paths that concern this process only?
    pub(crate) fn is_private(&self, at: History) -> bool {
        self.nodes[at as usize].private
    }

    /// What it did since the answer before.
    pub(crate) fn effects(&self, at: History) -> &[Effect] {
        &self.nodes[at as usize].effects
    }

    /// How many different histories it was seen to have.
    pub(crate) fn histories(&self) -> usize {
        self.nodes.len()
    }

    /// The history that `answer` to its request leads to.
    pub(crate) fn answered(&mut self, at: History, answer: &Answer) -> History {
        if let Some(&known) = self.nodes[at as usize].after.get(answer) {
            return known;
        }
        let thread = match self.stopped_at.iter().position(|(history, _)| *history == at) {
            Some(n) => {
                let (_, thread) = self.stopped_at.remove(n).expect("it was just found");
                thread.port.answer(answer.clone());
                thread
            }
            None => self.run_up_to(at, answer),
        };
        let (request, effects) = thread.port.next_request();
        let history = History::try_from(self.nodes.len()).expect("fewer than 2^32 histories");
        if !matches!(request, Request::End | Request::Panicked(_) | Request::Stuck) {
            self.stopped_at.push_back((history, thread));
            if self.stopped_at.len() > KEPT {
                self.stopped_at.pop_front();
            }
        }
        let private = match (&request, &self.is_private) {
            (Request::Call(call), Some(is_private)) => {
                let (a, b) = call.paths();
                is_private(a) && b.is_none_or(|b| is_private(b))
            }
            _ => false,
        };
        self.nodes.push(Node {
            parent: at,
            answer: answer.clone(),
            effects,
            request,
            private,
            after: HashMap::new(),
        });
        self.nodes[at as usize].after.insert(answer.clone(), history);
        history
    }

    /// Runs the process afresh, giving it the answers of `at` and then `answer`.
    fn run_up_to(&self, at: History, answer: &Answer) -> Thread {
        // In reverse, so that the next one is popped.
        let mut script = vec![(self.request(at).clone(), answer.clone())];
        let mut here = at;
        while here != Program::START {
            let node = &self.nodes[here as usize];
            script.push((self.request(node.parent).clone(), node.answer.clone()));
            here = node.parent;
        }
        let port = Arc::new(Port::new(self.clocks, script));
        let (body, index, name) = (self.body.clone(), self.index, self.name.clone());
        let line = port.clone();
        self.pool.run(Box::new(move || run_process(&line, index, &name, &body)));
        Thread { port }
    }
}

/// The whole life of a process's thread.
fn run_process(port: &Arc<Port>, index: usize, name: &str, body: &Body) {
    let ended = catch_unwind(AssertUnwindSafe(|| {
        if let Answer::Started { boots } = port.ask(Request::Start) {
            port.boots.store(boots, Ordering::Relaxed);
        }
        body(&Ctx::new(index, name, port.clone()));
    }));
    match ended {
        Ok(()) => port.submit(Request::End),
        Err(payload) if payload.is::<Abandoned>() => {}
        Err(payload) => port.submit(Request::Panicked(panic_message(&*payload))),
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

/// Unwinds a thread that nobody needs any more.
struct Abandoned;

/// A process's thread, waiting for an answer. Dropped, it is unwound.
struct Thread {
    port: Arc<Port>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        lock(&self.port.slot).abandoned = true;
        self.port.changed.notify_all();
    }
}

/// What of a process's clocks never changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) host: usize,
    pub(crate) discipline: Discipline,
    pub(crate) time_namespace: u64,
    /// Is each of the two clocks read by a step of its own?
    pub(crate) apart: bool,
}

/// Where a process's thread and the explorer meet.
struct Port {
    clocks: Clocks,
    boots: AtomicU32,
    own: Mutex<Own>,
    slot: Mutex<Slot>,
    changed: Condvar,
}

/// What only the process's thread touches.
struct Own {
    script: Vec<(Request, Answer)>,
    effects: Vec<Effect>,
}

#[derive(Default)]
struct Slot {
    request: Option<(Request, Vec<Effect>)>,
    answer: Option<Answer>,
    abandoned: bool,
}

/// A thread that panics holds no lock of ours, but another may have been told so.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port {
    fn new(clocks: Clocks, script: Vec<(Request, Answer)>) -> Self {
        Port {
            clocks,
            boots: AtomicU32::new(0),
            own: Mutex::new(Own { script, effects: Vec::new() }),
            slot: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The process's side: asks, and waits for the answer.
    fn ask(&self, request: Request) -> Answer {
        {
            let mut own = lock(&self.own);
            if let Some((expected, answer)) = own.script.pop() {
                own.effects.clear();
                drop(own);
                assert!(
                    expected == request,
                    "not a function of its answers: asked {request} where it had asked {expected}"
                );
                return answer;
            }
        }
        let stand_in = answer_to_the_dead(&request);
        self.submit(request);
        let mut slot = lock(&self.slot);
        loop {
            if slot.abandoned {
                drop(slot);
                // A destructor that goes on asking while its thread is unwound
                // must not panic a second time.
                if std::thread::panicking() {
                    return stand_in;
                }
                resume_unwind(Box::new(Abandoned));
            }
            if let Some(answer) = slot.answer.take() {
                return answer;
            }
            slot = self.changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn submit(&self, request: Request) {
        let effects = std::mem::take(&mut lock(&self.own).effects);
        lock(&self.slot).request = Some((request, effects));
        self.changed.notify_all();
    }

    /// The explorer's side.
    fn answer(&self, answer: Answer) {
        lock(&self.slot).answer = Some(answer);
        self.changed.notify_all();
    }

    fn next_request(&self) -> (Request, Vec<Effect>) {
        let slot = lock(&self.slot);
        let waited = self.changed.wait_timeout_while(slot, PATIENCE, |slot| slot.request.is_none());
        let (mut slot, _) = waited.unwrap_or_else(PoisonError::into_inner);
        slot.request.take().unwrap_or((Request::Stuck, Vec::new()))
    }
}

fn answer_to_the_dead(request: &Request) -> Answer {
    match request {
        Request::Call(_) => Answer::Failed(Errno::IO.into()),
        Request::Now => Answer::Time { wall_ms: 0, boot_ms: 0 },
        Request::Boot | Request::Wall => Answer::Number(0),
        Request::Pick(_) => Answer::Picked(0),
        Request::Look { .. } => Answer::Seen(None),
        _ => Answer::Done,
    }
}

impl Line for Port {
    fn call(&self, call: Call) -> Answer {
        self.ask(Request::Call(call))
    }

    fn now(&self) -> Reading {
        if self.clocks.apart {
            let read = |clock| match self.ask(clock) {
                Answer::Number(ms) => ms,
                other => unreachable!("a clock was read, not {other}"),
            };
            return Reading::taken(|| BootMs(read(Request::Boot)), || WallMs(read(Request::Wall)));
        }
        match self.ask(Request::Now) {
            Answer::Time { wall_ms, boot_ms } => {
                Reading { wall: WallMs(wall_ms), boot: BootMs(boot_ms) }
            }
            other => unreachable!("the time was asked for, not {other}"),
        }
    }

    fn sleep_ms(&self, ms: u64) {
        self.ask(Request::Sleep { ms });
    }

    fn boot_id(&self) -> BootId {
        boot_id(self.clocks.host, self.boots.load(Ordering::Relaxed))
    }

    fn time_namespace(&self) -> u64 {
        self.clocks.time_namespace
    }

    fn discipline(&self) -> Discipline {
        self.clocks.discipline
    }

    fn pick(&self, below: usize) -> usize {
        match self.ask(Request::Pick(below)) {
            Answer::Picked(n) => n,
            other => unreachable!("a number was to be picked, not {other}"),
        }
    }

    fn look(&self, process: usize, key: &'static str) -> Option<Value> {
        match self.ask(Request::Look { process, key }) {
            Answer::Seen(value) => value,
            other => unreachable!("a board was looked at, not {other}"),
        }
    }

    fn pause(&self) {
        self.ask(Request::Pause);
    }

    fn effect(&self, effect: Effect) {
        lock(&self.own).effects.push(effect);
    }
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

/// Threads that run one process after the other, as many as are needed.
#[derive(Clone)]
pub(crate) struct Pool {
    shared: Arc<PoolOwner>,
}

/// Closes the pool when the last program is gone.
struct PoolOwner(Arc<PoolShared>);

#[derive(Default)]
struct PoolShared {
    queue: Mutex<Queue>,
    work: Condvar,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Pool { shared: Arc::new(PoolOwner(Arc::default())) }
    }

    fn run(&self, job: Job) {
        let shared = &self.shared.0;
        let mut queue = lock(&shared.queue);
        queue.jobs.push_back(job);
        if queue.idle < queue.jobs.len() {
            let shared = shared.clone();
            std::thread::spawn(move || work(&shared));
        }
        drop(queue);
        shared.work.notify_one();
    }
}

impl Drop for PoolOwner {
    fn drop(&mut self) {
        lock(&self.0.queue).closed = true;
        self.0.work.notify_all();
    }
}

fn work(shared: &PoolShared) {
    let mut queue = lock(&shared.queue);
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            drop(queue);
            job();
            queue = lock(&shared.queue);
        } else if queue.closed {
            return;
        } else {
            queue.idle += 1;
            queue = shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}
