//! How threads of the pool, of a chunk job and of the cache wait for each other. `rust/schedules` runs these modules with
//! another module in place of this one, which decides about the order of all threads.

use std::sync::OnceLock;
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub use std::thread;
use std::time::{Duration, Instant};

use atomic::{AtomicUsize, Ordering};

/// A number that no thread waits for.
pub type Threads = AtomicUsize;

/// How long an idle thread stays awake after a job, and a caller while others finish: to wake a sleeping one takes up to
/// 80 µs, as long as it takes to decode half a chunk.
const AWAKE: Duration = Duration::from_micros(200);

/// Wait, awake, until `done` or for `AWAKE`; other processes may have the processor meanwhile.
pub fn stay_awake(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() && began.elapsed() < AWAKE {
        for _ in 0..64 {
            std::hint::spin_loop();
        }
        thread::yield_now();
    }
}

/// The state of a process. A forked child gets new state: the parent's threads do not exist there, and locks that they held
/// are never released.
pub struct PerProcess<T> {
    /// One slot per generation of forks: a child uses the next one, without a lock that its parent could have held.
    generations: [OnceLock<T>; 256],
    generation: AtomicUsize,
}

impl<T: Default> PerProcess<T> {
    pub const fn new() -> PerProcess<T> {
        PerProcess { generations: [const { OnceLock::new() }; 256], generation: AtomicUsize::new(0) }
    }

    pub fn get(&self) -> &T {
        self.generations[self.generation.load(Ordering::Acquire)].get_or_init(T::default)
    }

    pub fn after_fork(&self) {
        let last = self.generations.len() - 1;
        let _ = self.generation.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| Some((n + 1).min(last)));
    }
}
