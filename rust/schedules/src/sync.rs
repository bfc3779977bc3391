//! In place of `rust/src/sync.rs`: Shuttle's threads, locks and conditions.

use std::cell::Cell;
use std::time::Duration;

pub use shuttle::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic};

/// A number that no thread waits for, and that outlives a schedule.
pub type Threads = std::sync::atomic::AtomicUsize;

pub mod thread {
    pub use shuttle::thread::spawn;

    /// Threads that end with the schedule, as those of the pool end with the process.
    pub struct Builder;

    impl Builder {
        pub fn new() -> Builder {
            Builder
        }

        pub fn name(self, _: String) -> Builder {
            self
        }

        pub fn spawn(self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
            drop(shuttle::future::spawn(async move { work() }));
            Ok(())
        }
    }
}

thread_local! {
    static TIMES_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Whether waiting for some time may end without a notification, in this schedule; else all of them must come.
pub fn set_times_out(times_out: bool) {
    TIMES_OUT.set(times_out);
}

#[derive(Default)]
pub struct Condvar(shuttle::sync::Condvar);

type Waited<'a, T> = Answer<MutexGuard<'a, T>>;
type Answer<G> = Result<G, PoisonError<G>>;

impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> Waited<'a, T> {
        self.0.wait(guard)
    }

    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        pause: Duration,
    ) -> Answer<(MutexGuard<'a, T>, ())> {
        if TIMES_OUT.get() && shuttle::rand::Rng::gen_bool(&mut shuttle::rand::thread_rng(), 0.5) {
            shuttle::thread::yield_now();
            return Ok((guard, ()));
        }
        let _ = pause;
        self.0.wait(guard).map(|guard| (guard, ())).map_err(|error| PoisonError::new((error.into_inner(), ())))
    }
}

/// Two looks at `done`, between which others may go on.
pub fn stay_awake(mut done: impl FnMut() -> bool) {
    for _ in 0..2 {
        if done() {
            return;
        }
        shuttle::thread::yield_now();
    }
}

/// The state of a process, which is a schedule here.
pub struct PerProcess<T: 'static>(std::sync::Mutex<Option<&'static T>>);

impl<T: Default + 'static> PerProcess<T> {
    pub const fn new() -> PerProcess<T> {
        PerProcess(std::sync::Mutex::new(None))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Option<&'static T>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn get(&self) -> &'static T {
        self.state().expect("`after_fork` begins every schedule")
    }

    /// Begin with new state. That of the schedule before stays in memory, for threads that Shuttle has not ended yet.
    pub fn after_fork(&self) {
        *self.state() = Some(Box::leak(Box::default()));
    }
}
