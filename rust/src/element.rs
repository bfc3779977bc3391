//! Read one element without plan and job. If its chunk is cached or raw, a `stat` or a read of the file is enough.
//!
//! Loops over elements read many elements of one chunk: an array caches the last chunk (`LastChunk`).

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::array::{Array, Store};
use crate::cache::Cache;
use crate::chain::{ArrayToBytes, Chain};
use crate::decode;
use crate::last_chunk::{ChunkBytes, LastChunk, Place, array_order, plain_chain};
use crate::pool::process;
use crate::region::Memory;
use crate::store::{Local, Object, Source, Version, version_at};

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
