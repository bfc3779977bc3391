//! The threads that help, and the state that a process has once. A forked child gets new ones: the parent's threads do not
//! exist there and its locks may be held for ever.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::cache::Cache;
use crate::durable::Synced;
use crate::error::{Error, Result};
use crate::region::Shared;

/// Work that several threads can do together.
pub trait Job: Send + Sync + 'static {
    fn gate(&self) -> &Gate;
    /// Works until nothing is left to take; `poll` is called now and then and ends the work with its error.
    fn work(&self, poll: &mut dyn FnMut() -> Result<()>);
    /// Makes every thread leave soon.
    fn stop(&self, error: Error);
}

/// Counts the threads inside a job, and closes behind the last.
#[derive(Default)]
pub struct Gate {
    state: Mutex<(usize, bool)>,
    left: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, (usize, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> bool {
        let mut state = self.lock();
        if !state.1 {
            state.0 += 1;
        }
        !state.1
    }

    fn leave(&self) {
        self.lock().0 -= 1;
        self.left.notify_all();
    }

    /// Lets nobody in any more and waits until everybody is out.
    fn close(&self, mut poll: impl FnMut()) {
        let mut state = self.lock();
        state.1 = true;
        while state.0 > 0 {
            state = self.left.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
            if state.0 > 0 {
                drop(state);
                poll();
                state = self.lock();
            }
        }
    }
}

/// How often a waiting caller looks for signals.
pub const POLL: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<dyn Job>>,
    threads: usize,
    idle: usize,
}

/// What a process has once.
#[derive(Default)]
pub struct Process {
    queue: Mutex<Queue>,
    wake: Condvar,
    pub cache: Cache,
    pub synced: Synced,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// One slot per generation of forks: a child steps to the next one, without any lock that its parent could have held.
static GENERATIONS: [OnceLock<Process>; 256] = [const { OnceLock::new() }; 256];
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// This process's state; made on first use, and anew in a forked child.
pub fn process() -> &'static Process {
    GENERATIONS[GENERATION.load(Ordering::Acquire)].get_or_init(Process::default)
}

/// To be called in every forked child, before anything else.
pub fn after_fork() {
    let last = GENERATIONS.len() - 1;
    let _ = GENERATION.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| Some((n + 1).min(last)));
}

/// How many threads work on one request, the caller included: the processors this process may use, unless set.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let n = thread::available_parallelism().map_or(1, usize::from);
            THREADS.store(n, Ordering::Relaxed);
            n
        }
        n => n,
    }
}

/// Sets the number of threads; 0 means the processors this process may use.
pub fn set_threads(n: usize) {
    THREADS.store(n, Ordering::Relaxed);
}

impl Process {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `job` on this thread, with up to `helpers` others, and returns when no thread is in it any more.
    pub fn run(&'static self, job: Arc<dyn Job>, helpers: usize, poll: &mut dyn FnMut() -> Result<()>) {
        if helpers > 0 {
            self.call(&job, helpers);
        }
        guarded(&*job, poll);
        if helpers > 0 {
            self.lock().jobs.retain(|other| !Arc::ptr_eq(other, &job));
        }
        job.gate().close(|| {
            if let Err(error) = poll() {
                job.stop(error);
            }
        });
    }

    /// Threads that have nothing to do, those not yet started included.
    fn spare(&self) -> usize {
        let queue = self.lock();
        let most = threads().saturating_sub(1);
        if queue.jobs.is_empty() { most.min(queue.idle + most.saturating_sub(queue.threads)) } else { 0 }
    }

    fn call(&'static self, job: &Arc<dyn Job>, helpers: usize) {
        let mut queue = self.lock();
        for _ in 0..helpers {
            queue.jobs.push_back(job.clone());
        }
        let limit = threads().saturating_sub(1).max(helpers);
        while queue.threads < limit && queue.idle < queue.jobs.len() {
            let started = thread::Builder::new().name("tessarr".into()).spawn(move || self.serve());
            if started.is_err() {
                break; // the caller does the work alone
            }
            queue.threads += 1;
            queue.idle += 1;
        }
        drop(queue);
        for _ in 0..helpers {
            self.wake.notify_one();
        }
    }

    fn serve(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                queue.idle -= 1;
                drop(queue);
                if job.gate().enter() {
                    guarded(&*job, &mut || Ok(()));
                    job.gate().leave();
                }
                drop(job);
                queue = self.lock();
                queue.idle += 1;
            } else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Something to be dropped by a thread that nobody waits for.
struct Release<T> {
    what: Mutex<Option<T>>,
    gate: Gate,
}

impl<T: Send + 'static> Job for Release<T> {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn work(&self, _: &mut dyn FnMut() -> Result<()>) {
        let what = self.what.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(what);
    }

    fn stop(&self, _: Error) {}
}

/// Drops `what` on an idle thread; here when there is none.
pub fn release<T: Send + 'static>(what: T) {
    let process = process();
    if process.spare() > 0 {
        let job: Arc<dyn Job> = Arc::new(Release { what: Mutex::new(Some(what)), gate: Gate::default() });
        process.call(&job, 1);
    }
}

/// The items of one piece of work, each done by whoever has time; the first error ends it.
struct Items {
    work: Shared,
    total: usize,
    next: AtomicUsize,
    stopped: AtomicBool,
    error: Mutex<Option<Error>>,
    gate: Gate,
}

impl Items {
    fn steps(&self, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        while !self.stopped.load(Ordering::Relaxed) {
            let item = self.next.fetch_add(1, Ordering::Relaxed);
            if item >= self.total {
                break;
            }
            self.work.run(item)?;
            poll()?;
        }
        Ok(())
    }
}

impl Job for Items {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn work(&self, poll: &mut dyn FnMut() -> Result<()>) {
        if let Err(error) = self.steps(poll) {
            self.stop(error);
        }
    }

    fn stop(&self, error: Error) {
        self.stopped.store(true, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Does items `0..total`, on this thread and up to `helpers` others.
pub fn each(
    total: usize,
    helpers: usize,
    poll: &mut dyn FnMut() -> Result<()>,
    work: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    let job = Arc::new(Items {
        work: Shared::new(work),
        total,
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
        error: Mutex::new(None),
        gate: Gate::default(),
    });
    // Returns when no thread is in the job any more, so `work` outlives its last use.
    process().run(job.clone(), helpers, poll);
    let error = job.error.lock().unwrap_or_else(PoisonError::into_inner).take();
    error.map_or(Ok(()), Err)
}

/// Does the pieces `0..total` of one item, on this thread and on those that have nothing else to do at the moment.
pub fn share(total: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    match if total < 2 { 0 } else { process().spare().min(total - 1) } {
        0 => (0..total).try_for_each(work),
        helpers => each(total, helpers, &mut || Ok(()), work),
    }
}

/// A panic is an error of this request and nothing more.
fn guarded(job: &dyn Job, poll: &mut dyn FnMut() -> Result<()>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| job.work(poll)));
    if let Err(panic) = outcome {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        job.stop(Error::new("internal", format!("the native engine failed: {text}")));
    }
}
