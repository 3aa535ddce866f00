//! One stack of work, several threads.
//!
//! Last in, first out: a tree is worked on depth first, so the number of open
//! directories stays near its depth and not near its width.

use std::num::NonZero;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::tree;

struct Shared<T, E> {
    stack: Vec<T>,
    /// Tasks on the stack or being worked on.
    unfinished: usize,
    panicked: bool,
    failure: Option<E>,
}

struct Pool<T, E> {
    shared: Mutex<Shared<T, E>>,
    changed: Condvar,
}

impl<T, E> Pool<T, E> {
    fn lock(&self) -> MutexGuard<'_, Shared<T, E>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<T> {
        let mut shared = self.lock();
        loop {
            if shared.unfinished == 0 || shared.panicked || shared.failure.is_some() {
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
struct Taken<'p, T, E> {
    pool: &'p Pool<T, E>,
    new: Vec<T>,
    failure: Option<E>,
}

impl<T, E> Drop for Taken<'_, T, E> {
    fn drop(&mut self) {
        let mut shared = self.pool.lock();
        shared.unfinished = shared.unfinished + self.new.len() - 1;
        shared.stack.append(&mut self.new);
        shared.panicked |= std::thread::panicking();
        shared.failure = shared.failure.take().or(self.failure.take());
        drop(shared);
        self.pool.changed.notify_all();
    }
}

/// As many threads as there are processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Threads where each call is a round trip to a server.
const REMOTE_THREADS: usize = 16;

/// As many as the files of this directory keep busy.
pub(crate) fn for_files_on(dir: impl AsFd) -> usize {
    processors().max(if tree::is_remote(dir) { REMOTE_THREADS } else { 1 })
}

/// `length` things in parts of at most `most`, one per task: a large directory keeps
/// all threads busy.
pub(crate) fn parts(length: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(most).map(move |start| start..length.min(start + most))
}

/// Does all tasks, including those that tasks add, with up to `threads` threads. After
/// the first failure no further task is begun, and that failure is returned.
pub(crate) fn try_each<T: Send, E: Send>(
    threads: usize,
    tasks: Vec<T>,
    work: impl Fn(T, &mut Vec<T>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (unfinished, stack) = (tasks.len(), tasks);
    let shared = Shared { stack, unfinished, panicked: false, failure: None };
    let pool = Pool { shared: Mutex::new(shared), changed: Condvar::new() };
    let labour = || {
        while let Some(task) = pool.take() {
            let mut taken = Taken { pool: &pool, new: Vec::new(), failure: None };
            taken.failure = work(task, &mut taken.new).err();
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
    pool.lock().failure.take().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn tasks_that_make_tasks_are_all_done() {
        for threads in [1, 2, 7] {
            let done = AtomicUsize::new(0);
            let all = try_each(threads, vec![10_u32], |depth, new| {
                done.fetch_add(1, Ordering::Relaxed);
                if depth > 0 {
                    new.extend([depth - 1, depth - 1]);
                }
                Ok::<_, Infallible>(())
            });
            assert_eq!(all, Ok(()));
            assert_eq!(done.into_inner(), (1 << 11) - 1);
        }
        let none: Result<(), Infallible> =
            try_each(3, Vec::<u32>::new(), |_, _| unreachable!("there is no task"));
        assert_eq!(none, Ok(()));
    }

    #[test]
    fn the_first_failure_is_returned_and_no_task_is_begun_after_it() {
        let begun = AtomicUsize::new(0);
        let failed = try_each(1, (0..100).collect(), |n, new| {
            begun.fetch_add(1, Ordering::Relaxed);
            new.push(1000 + n);
            if n == 1099 { Err("as a full disk does") } else { Ok(()) }
        });
        // The last task came first, and what it added right after it.
        assert_eq!((failed, begun.into_inner()), (Err("as a full disk does"), 2));
        let failed = try_each(3, (0..100).collect(), |n: u32, _| Err(n));
        assert!(failed.is_err(), "one of several that fail at once");
    }

    #[test]
    fn parts_cover_everything_once() {
        assert_eq!(parts(5, 2).collect::<Vec<_>>(), [0..2, 2..4, 4..5]);
        assert_eq!(parts(4, 2).collect::<Vec<_>>(), [0..2, 2..4]);
        assert_eq!(parts(0, 2).count(), 0);
    }

    #[test]
    fn a_task_that_panics_ends_the_work_and_does_not_hang_it() {
        let died = std::panic::catch_unwind(|| {
            try_each(3, (0..100).collect(), |n, _| {
                assert_ne!(n, 50, "as a bug does");
                Ok::<_, Infallible>(())
            })
        });
        assert!(died.is_err());
    }
}
