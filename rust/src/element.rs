//! Read one element without plan and job. If its chunk is cached or raw, a `stat` or a read of the file is enough.
//!
//! Loops over elements read many elements of one chunk: an array caches the last chunk (`LastChunk`).

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use crate::array::{Array, Store};
use crate::cache::Cache;
use crate::chain::{ArrayToBytes, Chain};
use crate::decode;
use crate::pool::process;
use crate::region::Memory;
use crate::store::{Local, Object, Source, Version, read_exact_at, version_at};

/// The chunk, or inner chunk, of plain elements that was read last.
pub struct LastChunk {
    /// Its first element and its shape, in the axes of the array, and the bytes from one element to the next.
    start: Vec<usize>,
    shape: Vec<usize>,
    strides: Vec<usize>,
    path: Arc<Path>,
    version: Version,
    /// The chain of the whole chunk.
    chain: Arc<Chain>,
    bytes: ChunkBytes,
}

/// The array keeps neither alive: the cache counts its bytes, and few files stay open.
enum ChunkBytes {
    Chunk(Weak<Vec<u8>>),
    /// A raw chunk, from that byte on.
    File(Weak<File>, u64),
}

/// Read the element at `at`, which must be within bounds, into the first bytes of `out`, if no chunk has to be decoded.
/// `false`: nothing was read.
pub fn find(array: &Array, at: &[usize], mut out: Memory) -> bool {
    let last = array.last.try_lock().ok().and_then(|last| last.clone());
    if let Some(last) = last
        && last.read(at, &mut out).is_some()
    {
        return true;
    }
    let Store::Local(root) = &array.store else { return false };
    let mut place = Place { start: Vec::with_capacity(at.len()), inside: Vec::with_capacity(at.len()) };
    let mut coords = Vec::with_capacity(at.len());
    for (axis, &position) in array.grid_axes.iter().zip(at) {
        let index = axis.find(position);
        let start = axis.interval(index).0;
        coords.push(index);
        place.start.push(start);
        place.inside.push(position - start);
    }
    let Ok(chain) = array.chain_at(&coords) else { return false };
    let path: Arc<Path> = root.join(array.key(&coords)).into();
    let found = if plain_chain(&chain).is_some_and(Chain::is_raw) {
        stored(chain, path, place)
    } else {
        cached(chain, path, place, &process().cache)
    };
    let Some(last) = found.filter(|last| last.read_unchecked(at, &mut out).is_some()) else { return false };
    if let Ok(mut slot) = array.last.try_lock() {
        *slot = Some(Arc::new(last));
    }
    true
}

/// The location of an element: the start of its chunk, and its position in the chunk, in the axes of the array.
struct Place {
    start: Vec<usize>,
    inside: Vec<usize>,
}

/// The chain of plain elements: of inner chunks, in a shard. `None` in shards of shards.
fn plain_chain(chain: &Chain) -> Option<&Chain> {
    match &chain.serializer {
        ArrayToBytes::Bytes { .. } => Some(chain),
        ArrayToBytes::Shard(shard) if matches!(shard.inner.serializer, ArrayToBytes::Bytes { .. }) => {
            Some(&shard.inner)
        }
        ArrayToBytes::Shard(_) => None,
    }
}

/// Find an element of a cached chunk.
fn cached(chain: Arc<Chain>, path: Arc<Path>, place: Place, cache: &Cache) -> Option<LastChunk> {
    let name = path.as_os_str();
    if !cache.contains_name(name) {
        return None;
    }
    let version = version_at(&path)?;
    let validator = version.into();
    let (place, offset) = match &chain.serializer {
        ArrayToBytes::Bytes { .. } => (place, 0),
        ArrayToBytes::Shard(_) => {
            inner(&chain, &cache.get(name, chain.index_cache_key(0), &validator)?, version, place)?
        }
    };
    let chunk = cache.get(name, chain.cache_key(offset), &validator)?;
    LastChunk::new(chain, path, version, place, ChunkBytes::Chunk(Arc::downgrade(&chunk)))
}

/// Find an element of a raw chunk.
fn stored(chain: Arc<Chain>, path: Arc<Path>, place: Place) -> Option<LastChunk> {
    let object = Object::Local(Local::find(path.clone(), false).ok()??);
    let local = object.local()?;
    let (version, file) = (local.version, local.opened()?);
    let (place, offset) = match &chain.serializer {
        ArrayToBytes::Bytes { .. } => (place, 0),
        ArrayToBytes::Shard(shard) => {
            inner(&chain, &decode::cached_index(shard, Source::whole(&object)).ok()?, version, place)?
        }
    };
    if matches!(chain.serializer, ArrayToBytes::Bytes { .. }) && version.size() != chain.nbytes as u64 {
        return None; // an error, which the ordinary read reports
    }
    keep_open(file.clone());
    LastChunk::new(chain, path, version, place, ChunkBytes::File(Arc::downgrade(&file), offset))
}

/// Convert a location in a shard to one in its inner chunk; return also the offset of the inner chunk.
fn inner(chain: &Chain, index: &[u8], version: Version, place: Place) -> Option<(Place, u64)> {
    let ArrayToBytes::Shard(shard) = &chain.serializer else { return None };
    let inside = stored_order(chain, &place.inside);
    let coords: Vec<usize> = inside.iter().zip(&shard.inner.shape).map(|(position, n)| position / n).collect();
    let (offset, _) = decode::entry(shard, index, &coords, Some(version.size())).ok()??;
    let shape = array_order(chain, &shard.inner.shape);
    let moved = place.inside.iter().zip(&shape).map(|(position, n)| position - position % n);
    let start = place.start.iter().zip(moved).map(|(start, by)| start + by).collect();
    let inside = place.inside.iter().zip(&shape).map(|(position, n)| position % n).collect();
    Some((Place { start, inside }, offset))
}

/// Positions, or lengths, in the order in which `chain` stores its axes.
fn stored_order(chain: &Chain, of: &[usize]) -> Vec<usize> {
    match &chain.order {
        None => of.to_vec(),
        Some(order) => order.iter().map(|&axis| of[axis]).collect(),
    }
}

/// Undo `stored_order`.
fn array_order(chain: &Chain, of: &[usize]) -> Vec<usize> {
    let mut back = of.to_vec();
    for (&axis, &n) in chain.order.iter().flatten().zip(of) {
        back[axis] = n;
    }
    back
}

impl LastChunk {
    fn new(chain: Arc<Chain>, path: Arc<Path>, version: Version, place: Place, bytes: ChunkBytes) -> Option<LastChunk> {
        let plain_chain = plain_chain(&chain).filter(|_| !version.is_coarse())?;
        let strides: Vec<usize> = plain_chain.stored_strides.iter().map(|&stride| stride as usize).collect();
        let (mut shape, mut strides) = (plain_chain.shape.clone(), array_order(plain_chain, &strides));
        if matches!(chain.serializer, ArrayToBytes::Shard(_)) {
            (shape, strides) = (array_order(&chain, &shape), array_order(&chain, &strides));
        }
        Some(LastChunk { start: place.start, shape, strides, path, version, chain, bytes })
    }

    /// The element at `at`, when it lies in this chunk and the file is still the same.
    fn read(&self, at: &[usize], out: &mut Memory) -> Option<()> {
        let inside = at.iter().zip(&self.start).zip(&self.shape).all(|((i, start), n)| i.wrapping_sub(*start) < *n);
        if !inside || version_at(&self.path)? != self.version {
            return None;
        }
        self.read_unchecked(at, out)?;
        if let ChunkBytes::Chunk(_) = self.bytes {
            process().cache.hit();
        }
        Some(())
    }

    fn read_unchecked(&self, at: &[usize], out: &mut Memory) -> Option<()> {
        let plain_chain = plain_chain(&self.chain)?;
        let offset: usize =
            at.iter().zip(&self.start).zip(&self.strides).map(|((i, start), stride)| (i - start) * stride).sum();
        let out = out.slice_mut(0, plain_chain.item)?;
        match &self.bytes {
            ChunkBytes::Chunk(chunk) => out.copy_from_slice(chunk.upgrade()?.get(offset..offset + plain_chain.item)?),
            ChunkBytes::File(file, begin) => {
                read_exact_at(file.upgrade()?.as_ref(), out, begin + offset as u64).ok()?;
                decode::finish(plain_chain, out);
            }
        }
        Some(())
    }
}

/// Recently used files of raw chunks, kept open.
static OPEN: Mutex<VecDeque<Arc<File>>> = Mutex::new(VecDeque::new());
const OPEN_FILES: usize = 16;

fn keep_open(file: Arc<File>) {
    // Never blocks: in a forked child, a thread of the parent may hold the lock forever.
    let Ok(mut open) = OPEN.try_lock() else { return };
    if open.len() >= OPEN_FILES {
        open.pop_front();
    }
    open.push_back(file);
}
