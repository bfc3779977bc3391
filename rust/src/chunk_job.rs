//! One request over many chunks: threads take chunks, and inner chunks of a shard that one of them opened, in turn.
//!
//! Reading and writing differ in what they do with a chunk (`ChunkWork`), not in how threads share the work.

use std::ops::{Deref, Range};

use crate::error::{Error, Result};
use crate::pool::{Control, Job, POLL, Poll, locked, process};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, PoisonError};

/// The calling thread does less work than this alone: waking another thread costs more.
pub const SMALL_WORK: usize = 64 << 10;

/// What a request does with its chunks.
pub trait ChunkWork: Send + Sync + Sized + 'static {
    /// The state of an open shard.
    type Shard: Send + Sync;

    /// Read or write chunk `number` of the plan; the inner chunks of a shard through `ChunkJob::share`.
    fn chunk(&self, job: &ChunkJob<Self>, number: usize, poll: Poll) -> Result<()>;

    /// Read or write some inner chunks of an open shard.
    fn batch(&self, shard: &Self::Shard, range: Range<usize>) -> Result<()>;
}

/// The chunks `0..total` of one request.
pub struct ChunkJob<W: ChunkWork> {
    work: W,
    total: usize,
    next: AtomicUsize,
    shards: Mutex<OpenShards<W::Shard>>,
    opened: Condvar,
    /// No other thread takes part.
    alone: bool,
    control: Control,
}

struct OpenShards<S> {
    /// Shards that may have inner chunks left to take.
    open: Vec<Arc<OpenShard<S>>>,
    /// Threads that work on a chunk, and so may open another shard.
    opening: usize,
}

/// A shard that a thread has opened, and the progress of its inner chunks.
pub struct OpenShard<S> {
    shard: S,
    total: usize,
    batch: usize,
    next: AtomicUsize,
    progress: Mutex<Progress>,
    left: Condvar,
}

#[derive(Default)]
struct Progress {
    /// Threads at work on inner chunks.
    working: usize,
    failed: bool,
}

impl<W: ChunkWork> ChunkJob<W> {
    /// Run `work` on chunks `0..total`, on this thread and up to `helpers` others.
    pub fn run(work: W, total: usize, helpers: usize, poll: Poll) -> Result<()> {
        let job = Arc::new(ChunkJob {
            work,
            total,
            next: AtomicUsize::new(0),
            shards: Mutex::new(OpenShards { open: Vec::new(), opening: 0 }),
            opened: Condvar::new(),
            alone: helpers == 0,
            control: Control::default(),
        });
        process().run(job, helpers, poll)
    }

    /// Whether other threads may take inner chunks of a shard with `total` of them.
    pub fn is_shared(&self, total: usize) -> bool {
        !self.alone && total > 1
    }

    /// Return an error when the request was cancelled or another thread failed.
    pub fn check(&self) -> Result<()> {
        if self.control.is_stopped() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Work on `total` inner chunks of `shard`, `batch` at a time, until none is left to take.
    ///
    /// Other threads may still work on those that they took: see `OpenShard::wait`.
    pub fn share(&self, shard: W::Shard, total: usize, batch: usize, poll: Poll) -> Result<Arc<OpenShard<W::Shard>>> {
        let (next, progress) = (AtomicUsize::new(0), Mutex::default());
        let open = Arc::new(OpenShard { shard, total, batch, next, progress, left: Condvar::new() });
        if self.is_shared(total) {
            locked(&self.shards).open.push(open.clone());
            self.opened.notify_all();
        }
        self.inner_chunks(&open, poll)?;
        Ok(open)
    }

    fn inner_chunks(&self, open: &OpenShard<W::Shard>, poll: Poll) -> Result<()> {
        let mut working = Working::begin(open);
        loop {
            let from = open.next.fetch_add(open.batch, Ordering::Relaxed);
            if from >= open.total {
                working.failed = false;
                return Ok(());
            }
            self.check()?;
            self.work.batch(&open.shard, from..(from + open.batch).min(open.total))?;
            poll()?;
        }
    }

    /// An open shard with inner chunks left to take; waits while another thread may open one.
    fn open_shard(&self, poll: Poll) -> Result<Option<Arc<OpenShard<W::Shard>>>> {
        loop {
            let mut shards = locked(&self.shards);
            shards.open.retain(|open| open.next.load(Ordering::Relaxed) < open.total);
            if let Some(open) = shards.open.first() {
                return Ok(Some(open.clone()));
            }
            if shards.opening == 0 || self.control.is_stopped() {
                return Ok(None);
            }
            // The other thread may wait long for the lock of a file.
            drop(self.opened.wait_timeout(shards, POLL).unwrap_or_else(PoisonError::into_inner));
            poll()?;
        }
    }
}

impl<W: ChunkWork> Job for ChunkJob<W> {
    fn control(&self) -> &Control {
        &self.control
    }

    fn work(&self, poll: Poll) -> Result<()> {
        while !self.control.is_stopped() {
            // Begin before taking a number, so that no other thread leaves while a shard may still be opened.
            let opening = (!self.alone).then(|| Opening::begin(self));
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.total {
                break;
            }
            self.work.chunk(self, number, &mut *poll)?;
            drop(opening);
            if number + 1 < self.total {
                poll()?;
            }
        }
        if !self.alone {
            while let Some(open) = self.open_shard(&mut *poll)? {
                self.inner_chunks(&open, &mut *poll)?;
            }
        }
        Ok(())
    }

    fn wake(&self) {
        // Under the lock, so that no thread is between checking and waiting.
        let _shards = locked(&self.shards);
        self.opened.notify_all();
    }
}

impl<S> OpenShard<S> {
    /// Wait until no thread works on the shard any more.
    pub fn wait(&self) -> Result<()> {
        let mut progress = locked(&self.progress);
        while progress.working > 0 {
            progress = self.left.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        if progress.failed { Err(Error::cancelled()) } else { Ok(()) }
    }
}

impl<S> Deref for OpenShard<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.shard
    }
}

/// Counts a thread that works on inner chunks; its drop, after a panic too, notifies the others.
struct Working<'a, S> {
    open: &'a OpenShard<S>,
    failed: bool,
}

impl<'a, S> Working<'a, S> {
    fn begin(open: &'a OpenShard<S>) -> Working<'a, S> {
        locked(&open.progress).working += 1;
        Working { open, failed: true }
    }
}

impl<S> Drop for Working<'_, S> {
    fn drop(&mut self) {
        let mut progress = locked(&self.open.progress);
        progress.working -= 1;
        progress.failed |= self.failed;
        self.open.left.notify_all();
    }
}

/// Counts a thread that works on a chunk.
struct Opening<'a, W: ChunkWork>(&'a ChunkJob<W>);

impl<'a, W: ChunkWork> Opening<'a, W> {
    fn begin(job: &'a ChunkJob<W>) -> Opening<'a, W> {
        locked(&job.shards).opening += 1;
        Opening(job)
    }
}

impl<W: ChunkWork> Drop for Opening<'_, W> {
    fn drop(&mut self) {
        locked(&self.0.shards).opening -= 1;
        self.0.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// One shard with two inner chunks, each read by another thread; the second one panics.
    struct Panics(Barrier);

    impl ChunkWork for Panics {
        type Shard = ();

        fn chunk(&self, job: &ChunkJob<Self>, _: usize, poll: Poll) -> Result<()> {
            job.share((), 2, 1, poll)?.wait()
        }

        fn batch(&self, (): &(), range: Range<usize>) -> Result<()> {
            self.0.wait();
            assert!(range.start == 0, "the second inner chunk");
            Ok(())
        }
    }

    #[test]
    fn a_panic_of_one_thread_is_the_error_of_the_request_and_leaves_no_thread_waiting() {
        for _ in 0..20 {
            let error = ChunkJob::run(Panics(Barrier::new(2)), 1, 1, &mut || Ok(())).unwrap_err();
            let Error::Fault(fault) = error else { panic!("not an error of the engine") };
            assert_eq!(fault.what, "the native engine failed: the second inner chunk");
        }
    }
}
