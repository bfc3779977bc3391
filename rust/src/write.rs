//! Write a selection to local files; `chunk_job` distributes chunks and inner chunks over threads.
//!
//! A chunk that the selection covers is replaced without reading. Any other chunk, one that the end of the array cuts too, is
//! merged with the stored value, under the lock of its file. Encoded inner chunks go to the new file of a shard in the order
//! in which threads finish them, unless the shard has a write order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use crate::allocate;
use crate::array::{Array, Store};
use crate::chain::{ArrayToBytes, Chain, Shard, WriteOrder};
use crate::chunk_job::{ChunkJob, ChunkWork, SMALL_WORK};
use crate::decode;
use crate::encode::{self, Stored, WriteOptions, merge, set_entry, stored_order};
use crate::error::{Error, Result};
use crate::part::{Part, Plan};
use crate::pool::{Poll, locked, release, threads};
use crate::region::Memory;
use crate::replace::{LARGE, Lock, Place, Precondition, REPLACING_IS_SEEN, ROOM, Replacement, remove};
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

/// Size of the buffer in which a thread encodes inner chunks before it writes them.
const ARENA: usize = 512 << 10;

/// Retries of an update whose stored value another writer replaced.
const ROUNDS: usize = 200;

/// Threads of a durable write, most of which wait for the disk.
const SYNCING: usize = 8;

/// A shard whose new value several threads write.
struct OpenShard {
    array: Arc<Array>,
    chain: Arc<Chain>,
    plan: Plan,
    /// The numbers of the parts of `plan`, in write order.
    order: Vec<usize>,
    coords: Vec<usize>,
    key: String,
    /// The old shard, and its inner chunks by number (`None` when it is replaced whole).
    old: Option<(Object, Vec<Option<Stored>>)>,
    path: Arc<Path>,
    file: OnceLock<Replacement>,
    contents: Mutex<ShardContents>,
}

/// Index and size of the part of a shard that is written.
#[derive(Default)]
struct ShardContents {
    index: Vec<u8>,
    end: u64,
    any: bool,
    /// Inner chunks that were encoded before others that come first in write order, by the position of the first of them.
    early: BTreeMap<usize, EncodedBatch>,
    /// The position after the last inner chunk that has its place.
    placed: usize,
}

/// Encoded inner chunks that are adjacent in the file.
struct EncodedBatch {
    /// The position in write order after the last of them.
    stop: usize,
    /// Number, offset in `bytes` and size of each that is stored.
    entries: Vec<(usize, u64, u64)>,
    bytes: Vec<u8>,
}

impl ShardContents {
    /// Give a place to `bytes`; return its offset.
    fn place(&mut self, entries: &[(usize, u64, u64)], bytes: &[u8]) -> u64 {
        let begin = self.end;
        self.end += bytes.len() as u64;
        self.any |= !entries.is_empty();
        for &(at, start, len) in entries {
            set_entry(&mut self.index, at, begin + start, len);
        }
        begin
    }

    /// Give their places to the batches that are next in write order; return them with their offsets.
    fn place_next(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut ready = Vec::new();
        while let Some(batch) = self.early.remove(&self.placed) {
            self.placed = batch.stop;
            ready.push((self.place(&batch.entries, &batch.bytes), batch.bytes));
        }
        ready
    }
}

struct WriteWork {
    array: Arc<Array>,
    plan: Plan,
    options: WriteOptions,
}

/// Write `part` of the array from `value`.
pub fn write(array: &Arc<Array>, part: &Part, value: Memory<'static>, selected: usize, poll: Poll) -> Result<()> {
    let plan = Plan::new(part, &array.grid_axes)?;
    let chain = array.chain_at(&plan.coords(0))?;
    let chunks = match &chain.serializer {
        ArrayToBytes::Shard(shard) => plan.len().max(selected / shard.inner.nbytes.max(1)),
        ArrayToBytes::Bytes { .. } => plan.len(),
    };
    // Every further chunk is encoded whole, even if little of it is written.
    let work = selected.max((plan.len() - 1).saturating_mul(chain.nbytes));
    let threads = match (threads(), &chain.serializer) {
        // Most threads wait for the disk; less so with shards, which are few and take long to encode.
        (n, ArrayToBytes::Bytes { .. }) if n > 1 && array.durable => n.max(SYNCING),
        (n, _) => n,
    };
    let helpers = if work < SMALL_WORK { 0 } else { threads.min(chunks).saturating_sub(1) };
    let (total, options) = (plan.len(), WriteOptions { value, keep_empty: array.write_empty });
    ChunkJob::run(WriteWork { array: array.clone(), plan, options }, total, helpers, poll)
}

impl ChunkWork for WriteWork {
    type Shard = OpenShard;

    fn chunk(&self, job: &ChunkJob<Self>, number: usize, poll: Poll) -> Result<()> {
        let (coords, part) = self.plan.get(number)?;
        let chain = self.array.chain_at(&coords)?;
        let key = self.array.key(&coords);
        let covers = self.array.is_replaced(&coords, &part);
        let is_cut = !covers && part.covers(&self.array.inside(&coords));
        let part = stored_order(&chain, part)?;
        let path = self.array.path(&key).ok_or_else(|| Error::new("internal", "no local files"))?;
        let chunk = ChunkWrite { chain, coords, key, path, part, is_cut };
        self.store(job, &chunk, covers, poll).map_err(|error| error.at(&chunk.coords, &chunk.key))
    }

    fn batch(&self, open: &OpenShard, range: Range<usize>) -> Result<()> {
        let ArrayToBytes::Shard(shard) = &open.chain.serializer else { return Ok(()) };
        with_buffer(|buffer| open.batch(shard, range, self.options, buffer))
            .map_err(|error| error.at(&open.coords, &open.key))
    }
}

impl WriteWork {
    fn store(&self, job: &ChunkJob<Self>, chunk: &ChunkWrite, covers: bool, poll: Poll) -> Result<()> {
        let place = place(&self.array)?;
        if covers && REPLACING_IS_SEEN && !place.coarse.load(Ordering::Relaxed) {
            return self.replace(job, chunk, None, None, &mut *poll);
        }
        let mut wait = || job.check().and_then(|()| poll());
        let _lock = Lock::hold(&chunk.path, place, &mut wait)?;
        if covers {
            return self.replace(job, chunk, None, None, &mut *poll);
        }
        let mut keeps = true;
        for attempt in 0.. {
            let old = Local::find(chunk.path.clone(), false)?;
            let version = old.as_ref().map(|local| local.version);
            let old = old.filter(|_| keeps);
            // Freeing a replaced shard takes the kernel nearly as long as copying it: do it on an idle thread.
            let large = old.as_ref().filter(|local| local.version.size() >= ROOM).and_then(Local::opened);
            let _release = ReleaseOnDrop(large);
            match self.replace(job, chunk, old.map(Object::Local), Some(version), &mut *poll) {
                // Another writer replaced the whole value without the lock, which is allowed: merge into the new one.
                Err(Error::Fault(fault)) if fault.kind == STALE => {
                    if attempt == ROUNDS {
                        let error =
                            Error::new("store", "other writers replaced the value during every attempt to update it");
                        return Err(error.got(format!("{ROUNDS} times")));
                    }
                }
                // What cannot be decoded has no rows of others to keep.
                Err(Error::Fault(fault)) if keeps && chunk.is_cut && fault.codec.is_some() => keeps = false,
                done => return done,
            }
        }
        Ok(())
    }

    fn replace(
        &self,
        job: &ChunkJob<Self>,
        chunk: &ChunkWrite,
        old: Option<Object>,
        if_match: Precondition,
        poll: Poll,
    ) -> Result<()> {
        let (place, path) = (place(&self.array)?, &chunk.path);
        if let ArrayToBytes::Shard(shard) = &chunk.chain.serializer {
            return self.replace_shard(job, chunk, shard, old, if_match, poll);
        }
        let source = old.as_ref().map(Source::whole);
        if chunk.chain.is_raw() {
            // The file holds the raw elements: write them without a copy.
            let store = |elements: &[u8]| {
                let file = Replacement::begin(path, place)?;
                file.reserve(elements.len() as u64)?;
                file.write_at(elements, 0)?;
                file.finish(place, if_match)
            };
            let any = encode::with_merged(&chunk.chain, source, &chunk.part, self.options, store)?;
            return if any { Ok(()) } else { remove(path, place, if_match) };
        }
        with_buffer(|encoded| {
            if !merge(&chunk.chain, source, &chunk.part, self.options, encoded)? {
                return remove(path, place, if_match);
            }
            let file = Replacement::begin(path, place)?;
            file.reserve(encoded.len() as u64)?;
            file.write_at(encoded, 0)?;
            file.finish(place, if_match)
        })
    }

    // -- shards ----------------------------------------------------------------------------------------------------

    fn replace_shard(
        &self,
        job: &ChunkJob<Self>,
        chunk: &ChunkWrite,
        shard: &Shard,
        old: Option<Object>,
        if_match: Precondition,
        poll: Poll,
    ) -> Result<()> {
        let (place, plan) = (place(&self.array)?, Plan::new(&chunk.part, &shard.grid_axes)?);
        let total = plan.len();
        let base = if shard.at_start { shard.index_nbytes as u64 } else { 0 };
        let many = (ARENA / shard.inner.nbytes.max(1)).clamp(1, 64).min(total.div_ceil(threads())).max(1);
        let index = allocate::repeated(shard.index_chain().nbytes, 0xff)?;
        let mut contents = ShardContents { index, end: base, ..ShardContents::default() };
        let mut open = OpenShard {
            array: self.array.clone(),
            chain: chunk.chain.clone(),
            order: shard.in_write_order(&plan),
            plan,
            coords: chunk.coords.clone(),
            key: chunk.key.clone(),
            old: None,
            path: chunk.path.clone(),
            file: OnceLock::new(),
            contents: Mutex::default(),
        };
        if let Some(object) = old {
            open.keep_untouched(shard, object, &mut contents)?;
        }
        open.contents = Mutex::new(contents);
        let open = job.share(open, total, many, poll)?;
        open.wait()?;
        let contents = locked(&open.contents);
        let Some(file) = open.file.get().filter(|_| contents.any) else {
            return remove(&chunk.path, place, if_match);
        };
        let index = encode::encode_index(shard, &contents.index)?;
        file.write_at(&index, if shard.at_start { 0 } else { contents.end })?;
        file.trim(contents.end + if shard.at_start { 0 } else { index.len() as u64 })?;
        file.finish(place, if_match)
    }
}

/// Close a file on an idle thread.
struct ReleaseOnDrop(Option<Arc<File>>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            release(file);
        }
    }
}

/// A chunk to write; `part` is in stored order.
struct ChunkWrite {
    chain: Arc<Chain>,
    coords: Vec<usize>,
    key: String,
    path: Arc<Path>,
    part: Part,
    /// Whether the end of the array cuts the chunk, and all else of it is written.
    is_cut: bool,
}

impl OpenShard {
    fn file(&self) -> Result<&Replacement> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = Replacement::begin(&self.path, place(&self.array)?)?;
        Ok(self.file.get_or_init(|| file)) // the temporary file of the second one is removed when it is dropped
    }

    /// Copy the encoded inner chunks that the selection does not touch, and keep those to merge into.
    fn keep_untouched(&mut self, shard: &Shard, object: Object, contents: &mut ShardContents) -> Result<()> {
        let source = Source::whole(&object);
        let index = decode::read_index(shard, source)?;
        let stored = encode::stored_chunks(shard, &index, source.len() as u64)?;
        let mut touched = allocate::repeated(index.len() / 16, false)?;
        for number in 0..self.plan.len() {
            touched[shard.number(&self.plan.coords(number))] = true;
        }
        let mut by_number = allocate::repeated(touched.len(), None)?;
        let mut kept = Vec::new();
        for chunk in stored {
            if touched[chunk.number] {
                by_number[chunk.number] = Some(chunk);
            } else {
                kept.push(chunk);
            }
        }
        let live: u64 = kept.iter().map(|chunk| chunk.len as u64).sum();
        let fresh = (self.plan.len() * (shard.inner.nbytes + shard.inner.nbytes / 64 + 256)) as u64;
        if source.len() as u64 >= LARGE && !kept.is_empty() {
            // A cloned file keeps the bytes of replaced inner chunks; above a third of the file, copy the others instead.
            if 2 * (source.len() as u64 - live.min(source.len() as u64)) < live && self.share(&object)? {
                for chunk in &kept {
                    set_entry(&mut contents.index, chunk.number, chunk.offset, chunk.len as u64);
                }
                (contents.end, contents.any) = (source.len() as u64, true);
                self.old = Some((object, by_number));
                return Ok(());
            }
            self.file()?.reserve(contents.end + live + fresh + contents.index.len() as u64)?;
        }
        kept.sort_by_key(|chunk| chunk.offset);
        // Adjacent ranges are copied as one; overlapping ones (legal, if odd) only once.
        let mut rest = &kept[..];
        while let Some(first) = rest.first() {
            let (mut stop, mut n) = (first.offset, 0);
            while let Some(chunk) = rest.get(n).filter(|chunk| chunk.offset <= stop) {
                stop = stop.max(chunk.offset + chunk.len as u64);
                n += 1;
            }
            let (run, later) = rest.split_at(n);
            rest = later;
            self.copy_run(&object, first.offset, stop - first.offset, contents.end)?;
            for chunk in run {
                let at = contents.end + (chunk.offset - first.offset);
                set_entry(&mut contents.index, chunk.number, at, chunk.len as u64);
            }
            contents.end += stop - first.offset;
            contents.any = true;
        }
        self.old = Some((object, by_number));
        Ok(())
    }

    /// Clone all bytes of the old file (reflink), where the file system can; return whether it did.
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

    /// Encode some inner chunks and write them with one call.
    fn batch(&self, shard: &Shard, range: Range<usize>, options: WriteOptions, arena: &mut Vec<u8>) -> Result<()> {
        let mut entries = Vec::with_capacity(range.len());
        for position in range.clone() {
            let (coords, part) = self.plan.get(self.order[position])?;
            let at = shard.number(&coords);
            let old = self.old.as_ref().and_then(|(object, stored)| Some((object, stored[at]?)));
            let old = old.map(|(object, chunk)| Source::Stored { object, offset: chunk.offset, len: chunk.len });
            let part = stored_order(&shard.inner, part)?;
            let start = arena.len();
            if merge(&shard.inner, old, &part, options, arena)? {
                entries.push((at, start as u64, (arena.len() - start) as u64));
            } else {
                arena.truncate(start);
            }
        }
        if shard.write_order != WriteOrder::Any {
            let batch = EncodedBatch { stop: range.end, entries, bytes: std::mem::take(arena) };
            let ready = {
                let mut contents = locked(&self.contents);
                contents.early.insert(range.start, batch);
                contents.place_next()
            };
            return ready
                .iter()
                .filter(|(_, bytes)| !bytes.is_empty())
                .try_for_each(|(begin, bytes)| self.file()?.write_at(bytes, *begin));
        }
        if entries.is_empty() {
            return Ok(());
        }
        let file = self.file()?;
        let begin = locked(&self.contents).place(&entries, arena);
        file.write_at(arena, begin)
    }
}

/// The directory to which the chunks of an array are written.
fn place(array: &Array) -> Result<Place<'_>> {
    match &array.store {
        Store::Local(root) => {
            Ok(Place { root, mark: Some(&array.mark), durable: array.durable, coarse: &array.coarse })
        }
        Store::Python(_) => Err(Error::new("internal", "only local files are written")),
    }
}
