//! A simulated world that one test has to itself: no scheduler, every call at
//! once, and the test decides which call goes wrong.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jvs_repo::clock::{BootId, BootMs, Discipline, Reading, WallMs};
use rustix::io::Errno;

use super::board::Value;
use super::cache::Caching;
use super::call::{Answer, Call, Effect};
use super::choice::Way;
use super::clock::SimClock;
use super::entropy::SimEntropy;
use super::fault::carry_out;
use super::image::Image;
use super::kernel::{Caller, Kernel};
use super::line::{FIRST_TIME_NAMESPACE, Line, boot_id};
use super::store::SimStore;
use super::world::{UP_AT_START_MS, WALL_AT_START_MS};

const CALLER_LANE: usize = 0;

/// Store, clock and entropy of a world without a scheduler.
pub struct Solo {
    world: Arc<SoloWorld>,
    store: SimStore,
    clock: SimClock,
    entropy: SimEntropy,
}

impl Default for Solo {
    fn default() -> Self {
        Solo::new()
    }
}

impl Solo {
    /// An empty filesystem.
    pub fn new() -> Self {
        Solo::on(Image::empty(true))
    }

    /// A filesystem that begins as `image`, all of it durable.
    pub fn on(mut image: Image) -> Self {
        image.track(true);
        // Another one on each image, or what is set up in two goes would draw the same
        // numbers twice; and no process of an explored world has such a number.
        let entropy = SimEntropy::new(1 << 63 | image.digest());
        let world = Arc::new(SoloWorld {
            inner: Mutex::new(Inner {
                kernel: Kernel::new(image, Caching::default()),
                calls: Vec::new(),
                injected: Vec::new(),
                late: Vec::new(),
                up_ms: UP_AT_START_MS,
                wall_ms: WALL_AT_START_MS,
                boots: 1,
                discipline: Discipline::Synchronised { max_error_ms: 1 },
                dead: false,
            }),
        });
        Solo {
            store: SimStore::new(world.clone()),
            clock: SimClock::new(world.clone()),
            entropy,
            world,
        }
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

    /// The calls made so far, with their answers.
    pub fn calls(&self) -> Vec<String> {
        self.world.lock().calls.iter().map(|(call, answer)| format!("{call} = {answer}")).collect()
    }

    /// How many calls were made so far.
    pub fn call_count(&self) -> usize {
        self.world.lock().calls.len()
    }

    /// How many calls of that name (`rename`, `sync`, `first_batch`, ...) were made.
    pub fn count(&self, name: &str) -> usize {
        self.world.lock().calls.iter().filter(|(call, _)| call.name() == name).count()
    }

    /// Starts counting anew.
    pub fn forget_calls(&self) {
        self.world.lock().calls.clear();
    }

    /// Lets the `n`th call from now (0 is the next) go that way.
    pub fn inject(&self, n: usize, way: Way) {
        let mut inner = self.world.lock();
        let n = inner.calls.len() + n;
        inner.injected.push((n, way));
    }

    /// Lets the `n`th call from now fail with `errno`, not applied.
    pub fn fail_call(&self, n: usize, errno: Errno) {
        self.inject(n, Way::Fails(errno));
    }

    /// Drops what was injected and did not happen.
    pub fn clear_injected(&self) {
        self.world.lock().injected.clear();
    }

    /// Applies the renames that were answered with EIO by [`Way::Late`] and
    /// whose source is there. How many were.
    pub fn land_late_renames(&self) -> usize {
        let mut inner = self.world.lock();
        let caller = inner.caller();
        let mut landed = 0;
        for call in std::mem::take(&mut inner.late) {
            match inner.kernel.perform(caller, &call, false) {
                Answer::Failed(_) => {}
                _ => landed += 1,
            }
        }
        landed
    }

    /// Runs `process`; `None` if it died of an injected [`Way::DiesFirst`] or
    /// [`Way::ThenDies`]. Its descriptors are closed then.
    pub fn run<T>(&self, process: impl FnOnce() -> T) -> Option<T> {
        let ended = catch_unwind(AssertUnwindSafe(process));
        let mut inner = self.world.lock();
        inner.dead = false;
        match ended {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Died>() => {
                inner.kernel.close_all(CALLER_LANE);
                None
            }
            Err(payload) => {
                drop(inner);
                resume_unwind(payload)
            }
        }
    }

    /// The filesystem as it is seen now.
    pub fn image(&self) -> Image {
        self.world.lock().kernel.image.clone()
    }

    /// How many different images a power cut now could leave.
    pub fn crash_images(&self) -> usize {
        self.world.lock().kernel.image.power_cut_outcomes()
    }

    /// What a power cut now leaves: 0 is only what was synced, the last of
    /// [`Solo::crash_images`] is everything.
    pub fn crash_image(&self, n: usize) -> Image {
        self.world.lock().kernel.image.after_power_cut(n)
    }

    /// The power goes; image `n` is left, and the host boots again.
    pub fn power_cut(&self, n: usize) {
        let mut inner = self.world.lock();
        inner.kernel.power_cut(n);
        inner.late.clear();
        inner.boots += 1;
        inner.up_ms = 10_000;
    }

    /// Time passes.
    pub fn pass_ms(&self, ms: u64) {
        self.world.sleep_ms(ms);
    }

    /// Somebody sets the wall clock.
    pub fn move_wall_ms(&self, by: i64) {
        let mut inner = self.world.lock();
        inner.wall_ms = inner.wall_ms.saturating_add_signed(by);
    }

    /// What the kernel says of its clock from now on.
    pub fn set_discipline(&self, discipline: Discipline) {
        self.world.lock().discipline = discipline;
    }
}

struct SoloWorld {
    inner: Mutex<Inner>,
}

struct Inner {
    kernel: Kernel,
    calls: Vec<(Call, Answer)>,
    injected: Vec<(usize, Way)>,
    late: Vec<Call>,
    up_ms: u64,
    wall_ms: u64,
    boots: u32,
    discipline: Discipline,
    dead: bool,
}

impl Inner {
    fn caller(&self) -> Caller {
        Caller { lane: CALLER_LANE, mount: 0, now_ms: self.up_ms, forgotten: false }
    }
}

/// Unwinds a process that was made to die.
struct Died;

impl SoloWorld {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line for SoloWorld {
    fn call(&self, call: Call) -> Answer {
        let mut inner = self.lock();
        if inner.dead {
            // A destructor of the dead process.
            return Answer::Failed(Errno::IO.into());
        }
        let n = inner.calls.len();
        let found = inner.injected.iter().position(|(at, _)| *at == n);
        let way = found.map_or(Way::Plain, |at| inner.injected.remove(at).1);
        let caller = inner.caller();
        let outcome = carry_out(&mut inner.kernel, caller, &call, way);
        inner.calls.push((call.clone(), outcome.answer.clone()));
        if outcome.late {
            inner.late.push(call);
        }
        if outcome.died {
            inner.dead = true;
            drop(inner);
            resume_unwind(Box::new(Died));
        }
        outcome.answer
    }

    fn now(&self) -> Reading {
        let inner = self.lock();
        Reading { wall: WallMs(inner.wall_ms), boot: BootMs(inner.up_ms) }
    }

    fn sleep_ms(&self, ms: u64) {
        let mut inner = self.lock();
        inner.up_ms += ms;
        inner.wall_ms += ms;
    }

    fn boot_id(&self) -> BootId {
        boot_id(0, self.lock().boots)
    }

    fn time_namespace(&self) -> u64 {
        FIRST_TIME_NAMESPACE
    }

    fn discipline(&self) -> Discipline {
        self.lock().discipline
    }

    fn pick(&self, _below: usize) -> usize {
        0
    }

    fn look(&self, _process: usize, _key: &'static str) -> Option<Value> {
        None
    }

    fn pause(&self) {}

    fn effect(&self, effect: Effect) {
        if let Effect::Close(fd) = effect {
            self.lock().kernel.close(CALLER_LANE, fd);
        }
    }
}
