//! The thread pool and the other state of a process. A forked child gets new state (`sync::PerProcess`).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::cache::Cache;
use crate::durable::Synced;
use crate::error::{Error, Result};
use crate::shared::Shared;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PerProcess, PoisonError, Threads, stay_awake, thread};

/// The cancellation check of the calling thread.
pub type Poll<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Work that several threads can do together.
pub trait Job: Send + Sync + 'static {
    fn control(&self) -> &Control;
    /// Work until no item is left to take; `poll` is called periodically, and its error ends the work.
    fn work(&self, poll: Poll) -> Result<()>;
    /// Wake the threads that wait inside `work`: the job was stopped.
    fn wake(&self) {}
}

/// Whether a job goes on, and the threads inside it.
#[derive(Default)]
pub struct Control {
    gate: Gate,
    stopped: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Control {
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Keep the first error, unless it only reports that another thread failed.
    fn stop(&self, error: Error) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut first = locked(&self.error);
        if first.as_ref().is_none_or(Error::is_cancelled) {
            *first = Some(error);
        }
    }
}

fn stop(job: &dyn Job, error: Error) {
    job.control().stop(error);
    job.wake();
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts the threads inside a job; a closed gate admits none.
#[derive(Default)]
struct Gate {
    state: Mutex<(usize, bool)>,
    left: Condvar,
}

impl Gate {
    fn enter(&self) -> bool {
        let mut state = locked(&self.state);
        if !state.1 {
            state.0 += 1;
        }
        !state.1
    }

    fn leave(&self) {
        locked(&self.state).0 -= 1;
        self.left.notify_all();
    }

    /// Admit no more threads, and wait until all have left.
    fn close(&self, mut poll: impl FnMut()) {
        let mut state = locked(&self.state);
        state.1 = true;
        if state.0 > 0 {
            drop(state);
            stay_awake(|| locked(&self.state).0 == 0);
            state = locked(&self.state);
        }
        while state.0 > 0 {
            state = self.left.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
            if state.0 > 0 {
                drop(state);
                poll();
                state = locked(&self.state);
            }
        }
    }
}

/// How often a waiting caller checks for signals.
pub const POLL: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<dyn Job>>,
    threads: usize,
    idle: usize,
    /// Idle threads that look for jobs without being woken.
    awake: usize,
}

/// The state of a process.
#[derive(Default)]
pub struct Process {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Whether the queue has jobs, for threads that are awake.
    queued: AtomicBool,
    /// Threads of the program that work on a request now.
    callers: AtomicUsize,
    pub cache: Cache,
    pub synced: Synced,
}

static THREADS: Threads = Threads::new(0);
static PROCESS: PerProcess<Process> = PerProcess::new();

/// The state of this process; created on first use, and again in a forked child.
pub fn process() -> &'static Process {
    PROCESS.get()
}

/// Call this in every forked child, before anything else.
pub fn after_fork() {
    PROCESS.after_fork();
}

/// Threads that work on one request, the caller included: the processors this process may use, unless set.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let n = std::thread::available_parallelism().map_or(1, usize::from);
            THREADS.store(n, Ordering::Relaxed);
            n
        }
        n => n,
    }
}

/// Set the number of threads; 0 means the processors this process may use.
pub fn set_threads(n: usize) {
    THREADS.store(n, Ordering::Relaxed);
}

/// Counts a thread of the program that works on a request.
struct Caller(&'static Process);

impl Caller {
    fn enter(process: &'static Process) -> Caller {
        process.callers.fetch_add(1, Ordering::Relaxed);
        Caller(process)
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Process {
    /// Run `job`, a request, on this thread, with up to `helpers` others, and return when all threads have left it.
    pub fn run<J: Job>(&'static self, job: Arc<J>, helpers: usize, poll: Poll) -> Result<()> {
        let _caller = Caller::enter(self);
        self.run_part(job, helpers, poll)
    }

    /// Run `job`, a part of the request that this thread works on, like `run`.
    fn run_part<J: Job>(&'static self, job: Arc<J>, helpers: usize, poll: Poll) -> Result<()> {
        let job: Arc<dyn Job> = job;
        if helpers > 0 {
            self.call(&job, helpers);
        }
        guarded(&*job, poll);
        if helpers > 0 {
            let mut queue = locked(&self.queue);
            queue.jobs.retain(|other| !Arc::ptr_eq(other, &job));
            self.queued.store(!queue.jobs.is_empty(), Ordering::Relaxed);
        }
        job.control().gate.close(|| {
            if let Err(error) = poll() {
                stop(&*job, error);
            }
        });
        let error = locked(&job.control().error).take();
        error.map_or(Ok(()), Err)
    }

    /// Count the threads that may work beside those that work now, those not yet started included.
    fn spare(&self) -> usize {
        let queue = locked(&self.queue);
        let working = self.callers.load(Ordering::Relaxed).max(1) + queue.threads - queue.idle;
        if queue.jobs.is_empty() { threads().saturating_sub(working) } else { 0 }
    }

    fn call(&'static self, job: &Arc<dyn Job>, helpers: usize) {
        let mut queue = locked(&self.queue);
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
        self.queued.store(true, Ordering::Relaxed);
        let wanted = helpers.min(queue.jobs.len().saturating_sub(queue.awake));
        drop(queue);
        for _ in 0..wanted {
            self.wake.notify_one();
        }
    }

    fn serve(&self) {
        let mut queue = locked(&self.queue);
        let mut slept = true;
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                self.queued.store(!queue.jobs.is_empty(), Ordering::Relaxed);
                queue.idle -= 1;
                drop(queue);
                if job.control().gate.enter() {
                    guarded(&*job, &mut || Ok(()));
                    job.control().gate.leave();
                }
                drop(job);
                queue = locked(&self.queue);
                queue.idle += 1;
                slept = false;
            } else if !slept {
                queue.awake += 1;
                drop(queue);
                stay_awake(|| self.queued.load(Ordering::Relaxed));
                queue = locked(&self.queue);
                queue.awake -= 1;
                slept = true;
            } else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// A value to be dropped by an idle thread, so that no caller waits for it.
struct Release<T> {
    what: Mutex<Option<T>>,
    control: Control,
}

impl<T: Send + 'static> Job for Release<T> {
    fn control(&self) -> &Control {
        &self.control
    }

    fn work(&self, _: Poll) -> Result<()> {
        let what = locked(&self.what).take();
        drop(what);
        Ok(())
    }
}

/// Drop `what` on an idle thread; here when there is none.
pub fn release<T: Send + 'static>(what: T) {
    let process = process();
    if process.spare() > 0 {
        let job: Arc<dyn Job> = Arc::new(Release { what: Mutex::new(Some(what)), control: Control::default() });
        process.call(&job, 1);
    }
}

/// Numbered items, each processed by the first idle thread.
struct Items {
    work: Shared,
    total: usize,
    next: AtomicUsize,
    control: Control,
}

impl Job for Items {
    fn control(&self) -> &Control {
        &self.control
    }

    fn work(&self, poll: Poll) -> Result<()> {
        while !self.control.is_stopped() {
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

/// Process items `0..total`, on this thread and up to `helpers` others; the first error ends the work.
pub fn each(total: usize, helpers: usize, poll: Poll, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    // Returns when all threads have left the job, so `work` outlives its last use.
    process().run(items(total, work), helpers, poll)
}

fn items(total: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Arc<Items> {
    Arc::new(Items { work: Shared::new(work), total, next: AtomicUsize::new(0), control: Control::default() })
}

/// Count the threads that may take items of a chunk that this thread works on.
pub fn spare_threads() -> usize {
    process().spare()
}

/// Process items `0..total` of a chunk, on this thread and up to `helpers` others.
pub fn share(total: usize, helpers: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    match helpers.min(total.saturating_sub(1)) {
        0 => (0..total).try_for_each(work),
        helpers => process().run_part(items(total, work), helpers, &mut || Ok(())),
    }
}

/// Work on `job`; an error or a panic ends only this job.
fn guarded(job: &dyn Job, poll: Poll) {
    match catch_unwind(AssertUnwindSafe(|| job.work(poll))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => stop(job, error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            stop(job, Error::new("internal", format!("the native engine failed: {text}")));
        }
    }
}
