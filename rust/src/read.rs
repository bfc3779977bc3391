//! Reading a selection: chunks are shared out among threads; inside a shard, its inner chunks are.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::array::Array;
use crate::chain::{Chain, Middle, Shard};
use crate::decode::{self, Reading};
use crate::error::{Error, Result};
use crate::part::{Part, Spread};
use crate::pool::{Gate, Job, process, threads};
use crate::region::Memory;
use crate::store::{Local, Object, STALE, Source};

/// Less than this much work is done by the calling thread alone: waking another costs more.
pub const SMALL_WORK: usize = 64 << 10;

/// A shard that some thread has opened, for others to help with.
struct OpenShard {
    chain: Arc<Chain>,
    object: Object,
    index: Arc<Vec<u8>>,
    spread: Spread,
    coords: Vec<usize>,
    key: String,
    keep: bool,
    next: AtomicUsize,
}

#[derive(Default)]
struct Help {
    shards: Vec<Arc<OpenShard>>,
    opening: usize,
}

pub struct ReadJob {
    array: Arc<Array>,
    spread: Spread,
    out: Memory<'static>,
    next: AtomicUsize,
    help: Mutex<Help>,
    opened: Condvar,
    alone: bool,
    stopped: AtomicBool,
    error: Mutex<Option<Error>>,
    gate: Gate,
}

type Poll<'a> = &'a mut dyn FnMut() -> Result<()>;

impl ReadJob {
    /// Reads all parts of `spread`, which hold `selected` bytes, from local files.
    pub fn run(array: &Arc<Array>, spread: Spread, out: Memory<'static>, selected: usize, poll: Poll) -> Result<()> {
        let helpers = helpers(array, &spread, selected)?;
        let job = Arc::new(ReadJob {
            array: array.clone(),
            spread,
            out,
            next: AtomicUsize::new(0),
            help: Mutex::default(),
            opened: Condvar::new(),
            alone: helpers == 0,
            stopped: AtomicBool::new(false),
            error: Mutex::new(None),
            gate: Gate::default(),
        });
        process().run(job.clone(), helpers, poll);
        let error = job.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), Err)
    }

    fn lock_help(&self) -> MutexGuard<'_, Help> {
        self.help.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chunk(&self, number: usize, poll: Poll) -> Result<()> {
        let (coords, part) = self.spread.get(number);
        let chain = self.array.chain_at(&coords)?;
        let key = self.array.key(&coords);
        let place = |error: Error| error.at(&coords, &key);
        let keep = !part.covers(&self.array.inside(&coords));
        let how = Reading { out: self.out, keep };
        let Some(path) = self.array.path(&key) else { return Err(Error::new("internal", "no local files")) };
        for attempt in 0.. {
            let lazy = keep && attempt == 0 && process().cache.knows(path.as_os_str());
            let Some(local) = Local::find(path.clone(), lazy).map_err(place)? else {
                return self.missing(&chain, &part).map_err(place);
            };
            let object = Object::Local(local);
            let done = match &chain.middle {
                Middle::Shard(shard) => self.shard(&chain, shard, object, (&coords, &key, &part), keep, &mut *poll),
                Middle::Bytes { .. } => decode::read(&chain, Source::whole(&object), &part, how),
            };
            match done {
                Err(Error::Fault(fault)) if fault.kind == STALE && attempt < 100 => {}
                other => return other.map_err(place),
            }
        }
        Ok(())
    }

    fn missing(&self, chain: &Chain, part: &Part) -> Result<()> {
        if !self.array.read_missing {
            return Err(Error::new("chunk_not_found", "a chunk is missing"));
        }
        decode::fill(chain, part, self.out);
        Ok(())
    }

    fn shard(
        &self,
        chain: &Arc<Chain>,
        shard: &Shard,
        object: Object,
        (coords, key, part): (&[usize], &str, &Part),
        keep: bool,
        poll: Poll,
    ) -> Result<()> {
        let permuted = chain.order.as_ref().map(|order| part.permuted(order));
        let spread = Spread::new(permuted.as_ref().unwrap_or(part), &shard.cuts);
        let index = decode::cached_index(shard, Source::whole(&object))?;
        let total = spread.len();
        let shareable = !self.alone && total > 1;
        if shareable && let Some(local) = object.local() {
            local.open()?;
        }
        let open = Arc::new(OpenShard {
            chain: chain.clone(),
            object,
            index,
            spread,
            coords: coords.to_vec(),
            key: key.to_owned(),
            keep,
            next: AtomicUsize::new(0),
        });
        if shareable {
            self.lock_help().shards.push(open.clone());
            self.opened.notify_all();
        }
        self.inner_chunks(&open, poll)
    }

    /// Reads inner chunks of an open shard until none is left to take.
    fn inner_chunks(&self, open: &OpenShard, poll: Poll) -> Result<()> {
        let Middle::Shard(shard) = &open.chain.middle else { return Ok(()) };
        let total = open.spread.len();
        let many = (SMALL_WORK / shard.inner.nbytes.max(1)).clamp(1, 64);
        loop {
            let from = open.next.fetch_add(many, Ordering::Relaxed);
            if from >= total || self.stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.batch(shard, open, from, (from + many).min(total))
                .map_err(|error| error.at(&open.coords, &open.key))?;
            poll()?;
        }
    }

    /// Reads some inner chunks that lie near each other with few reads.
    fn batch(&self, shard: &Shard, open: &OpenShard, from: usize, to: usize) -> Result<()> {
        let source = Source::whole(&open.object);
        let known = Some(open.object.len());
        let mut wanted: Vec<(u64, usize, Part, bool)> = Vec::with_capacity(to - from);
        for number in from..to {
            let (coords, part) = open.spread.get(number);
            match decode::entry(shard, &open.index, &coords, known)? {
                None => decode::fill(&shard.inner, &part, self.out),
                Some((offset, len)) => {
                    let keep = open.keep && !part.covers(&shard.inner.shape);
                    wanted.push((offset, len, part, keep));
                }
            }
        }
        let coalesce = source.is_file() && wanted.len() > 1;
        if coalesce {
            wanted.sort_by_key(|want| want.0);
        }
        let mut rest = &wanted[..];
        while let Some((first, _)) = rest.split_first() {
            let run = if coalesce { run_length(rest) } else { 1 };
            let (now, later) = rest.split_at(run);
            rest = later;
            if run == 1 {
                let how = Reading { out: self.out, keep: first.3 };
                decode::read(&shard.inner, source_at(&open.object, first.0, first.1), &first.2, how)?;
                continue;
            }
            let end = now.iter().map(|want| want.0 + want.1 as u64).max().unwrap_or(first.0);
            let bytes = open.object.read(first.0, (end - first.0) as usize)?;
            for (offset, len, part, keep) in now {
                let start = (offset - first.0) as usize;
                let how = Reading { out: self.out, keep: *keep };
                decode::read(&shard.inner, Source::Read(&bytes[start..start + len]), part, how)?;
            }
        }
        Ok(())
    }

    /// An open shard with work left; waits while another thread is about to open one.
    fn helpable(&self) -> Option<Arc<OpenShard>> {
        let mut help = self.lock_help();
        loop {
            help.shards.retain(|open| open.next.load(Ordering::Relaxed) < open.spread.len());
            if let Some(open) = help.shards.first() {
                return Some(open.clone());
            }
            if help.opening == 0 || self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            help = self.opened.wait(help).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn steps(&self, poll: Poll) -> Result<()> {
        while !self.stopped.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.spread.len() {
                break;
            }
            if self.alone {
                self.chunk(number, &mut *poll)?;
            } else {
                self.lock_help().opening += 1;
                let _opening = Opening(self);
                self.chunk(number, &mut *poll)?;
            }
            if number + 1 < self.spread.len() {
                poll()?;
            }
        }
        if !self.alone {
            while let Some(open) = self.helpable() {
                self.inner_chunks(&open, &mut *poll)?;
            }
        }
        Ok(())
    }
}

struct Opening<'a>(&'a ReadJob);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.lock_help().opening -= 1;
        self.0.opened.notify_all();
    }
}

impl Job for ReadJob {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn work(&self, poll: Poll) {
        if let Err(error) = self.steps(poll) {
            self.stop(error);
        }
    }

    fn stop(&self, error: Error) {
        self.stopped.store(true, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        // Under the lock, so that nobody is between looking and waiting.
        let _help = self.lock_help();
        self.opened.notify_all();
    }
}

fn source_at(object: &Object, offset: u64, len: usize) -> Source<'_> {
    Source::Stored { object, offset, len }
}

/// Gaps up to this are read along.
const GAP: u64 = 4 << 10;
const MAX_RUN: u64 = 1 << 20;

fn run_length(wanted: &[(u64, usize, Part, bool)]) -> usize {
    let mut end = wanted[0].0 + wanted[0].1 as u64;
    let mut n = 1;
    for (offset, len, _, keep) in &wanted[1..] {
        let stop = offset + *len as u64;
        if *keep || wanted[0].3 || *offset > end + GAP || stop.max(end) - wanted[0].0 > MAX_RUN {
            break;
        }
        end = end.max(stop);
        n += 1;
    }
    n
}

/// How many other threads are worth waking: none for little work, and none without a chunk of its own.
fn helpers(array: &Array, spread: &Spread, selected: usize) -> Result<usize> {
    let parts = spread.len();
    let most = threads().saturating_sub(1);
    if most == 0 || parts == 0 {
        return Ok(0);
    }
    let (coords, part) = spread.get(0);
    let chain = array.chain_at(&coords)?;
    let (pieces, work) = match &chain.middle {
        Middle::Shard(shard) => {
            // The first part stands for all.
            let inner = match (&part, &chain.order) {
                (Part::Points { out, .. }, _) => out.len(),
                (part, None) => Spread::new(part, &shard.cuts).len(),
                (part, Some(order)) => Spread::new(&part.permuted(order), &shard.cuts).len(),
            };
            let pieces = parts.saturating_mul(inner);
            (pieces, if shard.inner.after.is_empty() { selected } else { pieces.saturating_mul(shard.inner.nbytes) })
        }
        Middle::Bytes { .. } if chain.after.is_empty() => (parts, selected),
        Middle::Bytes { .. } => (parts, parts.saturating_mul(chain.nbytes)),
    };
    Ok(if work < SMALL_WORK { 0 } else { most.min(pieces.saturating_sub(1)) })
}
