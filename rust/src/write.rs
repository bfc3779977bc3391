//! Writing a selection: chunks are shared out among threads; inside a shard, its inner chunks are.
//!
//! A chunk that is covered whole is replaced without reading. Any other is merged into what is stored, under the lock of
//! its file. Encoded inner chunks of a shard go to the new file as they are made, in whatever order that is.

use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use crate::array::{Array, Store};
use crate::chain::{Chain, Middle, Shard};
use crate::chunk_job::{ChunkJob, ChunkWork, SMALL_WORK};
use crate::decode;
use crate::encode::{self, Stored, Writing, merge, set_entry, stored_order};
use crate::error::{Error, Result};
use crate::part::{Part, Spread};
use crate::pool::{Poll, locked, release, threads};
use crate::region::Memory;
use crate::replace::{LARGE, Lock, Over, Place, REPLACING_IS_SEEN, ROOM, Replacement, remove};
use crate::store::{Local, Object, STALE, Source};

thread_local! {
    static ENCODED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Run `work` with an empty buffer that the thread keeps, unless it grew large.
fn with_buffer<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    ENCODED.with_borrow_mut(|buffer| {
        buffer.clear();
        let done = work(buffer);
        if buffer.capacity() > 16 << 20 {
            *buffer = Vec::new();
        }
        done
    })
}

/// Encoded inner chunks that a thread collects before it writes them.
const ARENA: usize = 512 << 10;

/// How often a chunk is merged anew because the value was replaced meanwhile.
const ROUNDS: usize = 200;

/// Threads that write what is to be on the disk when they are done.
const SYNCING: usize = 8;

/// A shard that is being made.
struct OpenShard {
    array: Arc<Array>,
    chain: Arc<Chain>,
    spread: Spread,
    coords: Vec<usize>,
    key: String,
    inside: Vec<usize>,
    /// The shard as it was, and its inner chunks by number (`None` when it is replaced whole).
    old: Option<(Object, Vec<Option<Stored>>)>,
    path: Arc<Path>,
    file: OnceLock<Replacement>,
    made: Mutex<Made>,
}

/// What of a shard is done.
struct Made {
    index: Vec<u8>,
    end: u64,
    any: bool,
}

struct WriteWork {
    array: Arc<Array>,
    spread: Spread,
    how: Writing,
}

/// Write `part` of the array from `value`.
pub fn write(array: &Arc<Array>, part: &Part, value: Memory<'static>, selected: usize, poll: Poll) -> Result<()> {
    let spread = Spread::new(part, &array.cuts);
    let chain = array.chain_at(&spread.get(0).0)?;
    let pieces = match &chain.middle {
        Middle::Shard(shard) => spread.len().max(selected / shard.inner.nbytes.max(1)),
        Middle::Bytes { .. } => spread.len(),
    };
    // Every further chunk is encoded whole, however little of it is written.
    let work = selected.max((spread.len() - 1).saturating_mul(chain.nbytes));
    let threads = match (threads(), &chain.middle) {
        // Most of them wait for the disk, which shards, few and long in the making, make them do less.
        (n, Middle::Bytes { .. }) if n > 1 && array.durable => n.max(SYNCING),
        (n, _) => n,
    };
    let helpers = if work < SMALL_WORK { 0 } else { threads.min(pieces).saturating_sub(1) };
    let (total, how) = (spread.len(), Writing { value, keep_empty: array.write_empty });
    ChunkJob::run(WriteWork { array: array.clone(), spread, how }, total, helpers, poll)
}

impl ChunkWork for WriteWork {
    type Shard = OpenShard;

    fn chunk(&self, job: &ChunkJob<Self>, number: usize, poll: Poll) -> Result<()> {
        let (coords, part) = self.spread.get(number);
        let chain = self.array.chain_at(&coords)?;
        let key = self.array.key(&coords);
        let inside = self.array.inside(&coords);
        let covers = part.covers(&inside);
        let (part, inside) = stored_order(&chain, part, &inside);
        let path = self.array.path(&key).ok_or_else(|| Error::new("internal", "no local files"))?;
        let whole = Whole { chain, coords, key, path, part, inside };
        self.store(job, &whole, covers, poll).map_err(|error| error.at(&whole.coords, &whole.key))
    }

    fn batch(&self, open: &OpenShard, range: Range<usize>) -> Result<()> {
        let Middle::Shard(shard) = &open.chain.middle else { return Ok(()) };
        with_buffer(|buffer| open.batch(shard, range, self.how, buffer))
            .map_err(|error| error.at(&open.coords, &open.key))
    }
}

impl WriteWork {
    fn store(&self, job: &ChunkJob<Self>, whole: &Whole, covers: bool, poll: Poll) -> Result<()> {
        let place = place(&self.array)?;
        if covers && REPLACING_IS_SEEN && !place.coarse.load(Ordering::Relaxed) {
            return self.replace(job, whole, None, None, &mut *poll);
        }
        let mut wait = || job.check().and_then(|()| poll());
        let _lock = Lock::hold(&whole.path, place, &mut wait)?;
        if covers {
            return self.replace(job, whole, None, None, &mut *poll);
        }
        for attempt in 0.. {
            let old = Local::find(whole.path.clone(), false)?;
            let version = old.as_ref().map(|local| local.version);
            // Freeing a replaced shard takes the kernel longer than anything but copying it: not while somebody waits.
            let large = old.as_ref().filter(|local| local.version.size() >= ROOM).and_then(Local::opened);
            let _release = Later(large);
            match self.replace(job, whole, old.map(Object::Local), Some(version), &mut *poll) {
                // Somebody replaced the whole value without the lock, which is allowed: merge into that.
                Err(Error::Fault(fault)) if fault.kind == STALE => {
                    if attempt == ROUNDS {
                        let error = Error::new("store", "the value was replaced again and again while it was changed");
                        return Err(error.got(format!("{ROUNDS} times")));
                    }
                }
                done => return done,
            }
        }
        Ok(())
    }

    fn replace(&self, job: &ChunkJob<Self>, whole: &Whole, old: Option<Object>, over: Over, poll: Poll) -> Result<()> {
        let (place, path) = (place(&self.array)?, &whole.path);
        if let Middle::Shard(shard) = &whole.chain.middle {
            return self.replace_shard(job, whole, shard, old, over, poll);
        }
        let source = old.as_ref().map(Source::whole);
        if whole.chain.is_raw() {
            // The elements are the file: they go there from where they are.
            let store = |chunk: &[u8]| {
                let file = Replacement::begin(path, place)?;
                file.reserve(chunk.len() as u64)?;
                file.write_at(chunk, 0)?;
                file.finish(place, over)
            };
            let any = encode::with_merged(&whole.chain, source, &whole.part, &whole.inside, self.how, store)?;
            return if any { Ok(()) } else { remove(path, place, over) };
        }
        with_buffer(|encoded| {
            if !merge(&whole.chain, source, &whole.part, &whole.inside, self.how, encoded)? {
                return remove(path, place, over);
            }
            let file = Replacement::begin(path, place)?;
            file.reserve(encoded.len() as u64)?;
            file.write_at(encoded, 0)?;
            file.finish(place, over)
        })
    }

    // -- shards ----------------------------------------------------------------------------------------------------

    fn replace_shard(
        &self,
        job: &ChunkJob<Self>,
        whole: &Whole,
        shard: &Shard,
        old: Option<Object>,
        over: Over,
        poll: Poll,
    ) -> Result<()> {
        let (place, spread) = (place(&self.array)?, Spread::new(&whole.part, &shard.cuts));
        let total = spread.len();
        let base = if shard.at_start { shard.index_nbytes as u64 } else { 0 };
        let many = (ARENA / shard.inner.nbytes.max(1)).clamp(1, 64).min(total.div_ceil(threads())).max(1);
        let mut made = Made { index: vec![0xff; shard.index_chain().nbytes], end: base, any: false };
        let mut open = OpenShard {
            array: self.array.clone(),
            chain: whole.chain.clone(),
            spread,
            coords: whole.coords.clone(),
            key: whole.key.clone(),
            inside: whole.inside.clone(),
            old: None,
            path: whole.path.clone(),
            file: OnceLock::new(),
            made: Mutex::new(Made { index: Vec::new(), end: 0, any: false }),
        };
        if let Some(object) = old {
            open.keep_untouched(shard, object, &mut made)?;
        }
        open.made = Mutex::new(made);
        let open = job.share(open, total, many, poll)?;
        open.wait()?;
        let made = locked(&open.made);
        let Some(file) = open.file.get().filter(|_| made.any) else {
            return remove(&whole.path, place, over);
        };
        let index = encode::encode_index(shard, made.index.clone())?;
        file.write_at(&index, if shard.at_start { 0 } else { made.end })?;
        file.trim(made.end + if shard.at_start { 0 } else { index.len() as u64 })?;
        file.finish(place, over)
    }
}

/// Closes a file when nobody waits for it.
struct Later(Option<Arc<File>>);

impl Drop for Later {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            release(file);
        }
    }
}

/// One chunk of the plan; part and inside are in stored order.
struct Whole {
    chain: Arc<Chain>,
    coords: Vec<usize>,
    key: String,
    path: Arc<Path>,
    part: Part,
    inside: Vec<usize>,
}

impl OpenShard {
    fn file(&self) -> Result<&Replacement> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = Replacement::begin(&self.path, place(&self.array)?)?;
        Ok(self.file.get_or_init(|| file)) // the loser's temporary file is removed by its drop
    }

    /// Copies the encoded inner chunks that will not be touched, and notes those that may be merged into.
    fn keep_untouched(&mut self, shard: &Shard, object: Object, made: &mut Made) -> Result<()> {
        let source = Source::whole(&object);
        let index = decode::read_index(shard, source)?;
        let stored = encode::stored_chunks(shard, &index, source.len() as u64)?;
        let mut touched = vec![false; index.len() / 16];
        for number in 0..self.spread.len() {
            touched[shard.number(&self.spread.get(number).0)] = true;
        }
        let mut by_number = vec![None; touched.len()];
        let mut kept = Vec::new();
        for chunk in stored {
            if touched[chunk.number] {
                by_number[chunk.number] = Some(chunk);
            } else {
                kept.push(chunk);
            }
        }
        let live: u64 = kept.iter().map(|chunk| chunk.len as u64).sum();
        let fresh = (self.spread.len() * (shard.inner.nbytes + shard.inner.nbytes / 64 + 256)) as u64;
        if source.len() as u64 >= LARGE && !kept.is_empty() {
            // A shared file keeps the bytes of what is replaced; they are left behind when they are a third of it.
            if 2 * (source.len() as u64 - live.min(source.len() as u64)) < live && self.share(&object)? {
                for chunk in &kept {
                    set_entry(&mut made.index, chunk.number, chunk.offset, chunk.len as u64);
                }
                (made.end, made.any) = (source.len() as u64, true);
                self.old = Some((object, by_number));
                return Ok(());
            }
            self.file()?.reserve(made.end + live + fresh + made.index.len() as u64)?;
        }
        kept.sort_by_key(|chunk| chunk.offset);
        // Runs of touching ranges are copied as one; overlapping ones (legal, if odd) only once.
        let mut rest = &kept[..];
        while let Some(first) = rest.first() {
            let (mut stop, mut n) = (first.offset, 0);
            while let Some(chunk) = rest.get(n).filter(|chunk| chunk.offset <= stop) {
                stop = stop.max(chunk.offset + chunk.len as u64);
                n += 1;
            }
            let (run, later) = rest.split_at(n);
            rest = later;
            self.copy_run(&object, first.offset, stop - first.offset, made.end)?;
            for chunk in run {
                let at = made.end + (chunk.offset - first.offset);
                set_entry(&mut made.index, chunk.number, at, chunk.len as u64);
            }
            made.end += stop - first.offset;
            made.any = true;
        }
        self.old = Some((object, by_number));
        Ok(())
    }

    /// Makes the new file share all bytes of the old one, where the file system can; tells whether.
    fn share(&self, object: &Object) -> Result<bool> {
        match object.local() {
            Some(local) => Ok(self.file()?.share(local.open()?)),
            None => Ok(false),
        }
    }

    fn copy_run(&self, object: &Object, from: u64, len: u64, to: u64) -> Result<()> {
        let file = self.file()?;
        match object.local() {
            Some(local) => file.copy_from(local.open()?, from, len, to),
            None => file.write_at(&object.read(from, len as usize)?, to),
        }
    }

    /// Encodes some inner chunks and writes them with one call.
    fn batch(&self, shard: &Shard, range: Range<usize>, how: Writing, arena: &mut Vec<u8>) -> Result<()> {
        let mut entries = Vec::with_capacity(range.len());
        for number in range {
            let (coords, part) = self.spread.get(number);
            let at = shard.number(&coords);
            let old = self.old.as_ref().and_then(|(object, stored)| Some((object, stored[at]?)));
            let old = old.map(|(object, chunk)| Source::Stored { object, offset: chunk.offset, len: chunk.len });
            let inside = encode::inner_inside(shard, &coords, &self.inside);
            let (part, inside) = stored_order(&shard.inner, part, &inside);
            let start = arena.len();
            if merge(&shard.inner, old, &part, &inside, how, arena)? {
                entries.push((at, start as u64, (arena.len() - start) as u64));
            } else {
                arena.truncate(start);
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        let file = self.file()?;
        let begin = {
            let mut made = locked(&self.made);
            let begin = made.end;
            made.end += arena.len() as u64;
            made.any = true;
            for (at, start, len) in entries {
                set_entry(&mut made.index, at, begin + start, len);
            }
            begin
        };
        file.write_at(arena, begin)
    }
}

/// Where the chunks of an array are written.
fn place(array: &Array) -> Result<Place<'_>> {
    match &array.store {
        Store::Local(root) => Ok(Place { root, durable: array.durable, coarse: &array.coarse }),
        Store::Python(_) => Err(Error::new("internal", "only local files are written")),
    }
}
