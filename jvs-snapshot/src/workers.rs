//! One stack of work, several threads.
//!
//! Last in, first out: a tree is worked on depth first, so the number of open
//! directories stays near its depth and not near its width.

use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Shared<T> {
    stack: Vec<T>,
    /// Tasks on the stack or being worked on.
    unfinished: usize,
    panicked: bool,
}

struct Pool<T> {
    shared: Mutex<Shared<T>>,
    changed: Condvar,
}

impl<T> Pool<T> {
    fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<T> {
        let mut shared = self.lock();
        loop {
            if shared.unfinished == 0 || shared.panicked {
                return None;
            }
            if let Some(task) = shared.stack.pop() {
                return Some(task);
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One taken task. Counted as done also when it panics: the others must not wait
/// for it for ever.
struct Taken<'p, T> {
    pool: &'p Pool<T>,
    new: Vec<T>,
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        let mut shared = self.pool.lock();
        shared.unfinished = shared.unfinished + self.new.len() - 1;
        shared.stack.append(&mut self.new);
        shared.panicked |= std::thread::panicking();
        drop(shared);
        self.pool.changed.notify_all();
    }
}

/// As many threads as there are processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Does all tasks, those included that tasks add, with up to `threads` threads.
pub(crate) fn run<T: Send>(threads: usize, tasks: Vec<T>, work: impl Fn(T, &mut Vec<T>) + Sync) {
    let pool = Pool {
        shared: Mutex::new(Shared { unfinished: tasks.len(), stack: tasks, panicked: false }),
        changed: Condvar::new(),
    };
    let labour = || {
        while let Some(task) = pool.take() {
            let mut taken = Taken { pool: &pool, new: Vec::new() };
            work(task, &mut taken.new);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // No thread left: those there are do it all, this one at least.
            if std::thread::Builder::new().spawn_scoped(scope, labour).is_err() {
                break;
            }
        }
        labour();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn tasks_that_make_tasks_are_all_done() {
        for threads in [1, 2, 7] {
            let done = AtomicUsize::new(0);
            run(threads, vec![10_u32], |depth, new| {
                done.fetch_add(1, Ordering::Relaxed);
                if depth > 0 {
                    new.extend([depth - 1, depth - 1]);
                }
            });
            assert_eq!(done.into_inner(), (1 << 11) - 1);
        }
        run(3, Vec::<u32>::new(), |_, _| unreachable!("there is no task"));
    }

    #[test]
    fn a_task_that_panics_ends_the_work_and_does_not_hang_it() {
        let died = std::panic::catch_unwind(|| {
            run(3, (0..100).collect(), |n, _| assert_ne!(n, 50, "as a bug does"));
        });
        assert!(died.is_err());
    }
}
