//! Read a selection from local files, or from values that are extents of local files; `chunk_job` distributes chunks and
//! inner chunks over threads.

use std::ops::Range;
use std::sync::Arc;

use crate::array::Array;
use crate::chain::{ArrayToBytes, Chain, Shard};
use crate::chunk_job::{ChunkJob, ChunkWork, SMALL_WORK};
use crate::chunk_reads::is_read_whole;
use crate::decode::{self, ReadOptions};
use crate::error::{Error, Result};
use crate::extents::Extents;
use crate::part::{Part, Plan};
use crate::pool::{Poll, process, threads};
use crate::region::Memory;
use crate::store::{Local, Object, STALE, Source};

/// A shard that a thread has opened.
struct OpenShard {
    chain: Arc<Chain>,
    object: Object,
    index: Arc<Vec<u8>>,
    plan: Plan,
    coords: Vec<usize>,
    key: String,
    keep: bool,
}

struct ReadWork {
    array: Arc<Array>,
    plan: Arc<Plan>,
    /// The values; `None`: each is a file, named by its key.
    extents: Option<Extents>,
    out: Memory<'static>,
}

/// Read all parts of `plan`, which hold `selected` bytes, from local files, or from `extents` of some.
pub fn read(
    array: &Arc<Array>,
    plan: Arc<Plan>,
    extents: Option<Extents>,
    out: Memory<'static>,
    selected: usize,
    poll: Poll,
) -> Result<()> {
    let (total, helpers) = (plan.len(), helpers(array, &plan, selected)?);
    ChunkJob::run(ReadWork { array: array.clone(), plan, extents, out }, total, helpers, poll)
}

impl ChunkWork for ReadWork {
    type Shard = OpenShard;

    fn chunk(&self, job: &ChunkJob<Self>, number: usize, poll: Poll) -> Result<()> {
        let (coords, part) = self.plan.get(number)?;
        let chain = self.array.chain_at(&coords)?;
        let key = self.array.key(&coords);
        let place = |error: Error| error.at(&coords, &key);
        let keep = !part.covers(&self.array.inside(&coords));
        if let Some(extents) = &self.extents {
            let whole = match &chain.serializer {
                ArrayToBytes::Shard(shard) => {
                    is_read_whole(extents.whole_below, &chain, shard, &part, &self.array.inside(&coords))?
                }
                ArrayToBytes::Bytes { .. } => true,
            };
            let versioned = if keep { extents.versioned(&self.array, number).map_err(place)? } else { None };
            if let Some(local) = versioned
                && self.cached_extent(&chain, extents, number, local, &part).map_err(place)?
            {
                return Ok(());
            }
            // A chunk without inner chunks is kept by `cached_extent`, which compares its checksum.
            let keep = versioned.is_some() && matches!(chain.serializer, ArrayToBytes::Shard(_));
            return match extents.value(&self.array, number, whole).map_err(place)? {
                None => self.missing(&chain, &part).map_err(place),
                Some(object) => self.value(job, &chain, object, (&coords, &key, &part), keep, poll).map_err(place),
            };
        }
        let Some(path) = self.array.path(&key) else { return Err(Error::new("internal", "no local files")) };
        for attempt in 0.. {
            let lazy = keep && attempt == 0 && process().cache.contains_name(path.as_os_str());
            let Some(local) = Local::find(path.clone(), lazy).map_err(place)? else {
                return self.missing(&chain, &part).map_err(place);
            };
            match self.value(job, &chain, Object::Local(local), (&coords, &key, &part), keep, &mut *poll) {
                Err(Error::Fault(fault)) if fault.kind == STALE && attempt < 100 => {}
                other => return other.map_err(place),
            }
        }
        Ok(())
    }

    fn batch(&self, open: &OpenShard, range: Range<usize>) -> Result<()> {
        let ArrayToBytes::Shard(shard) = &open.chain.serializer else { return Ok(()) };
        self.inner_chunks(shard, open, range).map_err(|error| error.at(&open.coords, &open.key))
    }
}

impl ReadWork {
    fn missing(&self, chain: &Chain, part: &Part) -> Result<()> {
        if !self.array.read_missing {
            return Err(Error::new("chunk_not_found", "a chunk is missing"));
        }
        decode::fill(chain, part, self.out)
    }

    /// Read `part` of a compressed chunk at an offset of a file from the cache. Whether it was read.
    fn cached_extent(
        &self,
        chain: &Chain,
        extents: &Extents,
        number: usize,
        (local, offset): (&Local, u64),
        part: &Part,
    ) -> Result<bool> {
        if chain.after.is_empty() || !matches!(chain.serializer, ArrayToBytes::Bytes { .. }) {
            return Ok(false);
        }
        let make = || match extents.value(&self.array, number, true)? {
            Some(object) => decode::whole(chain, Source::whole(&object)),
            None => Err(Error::new("internal", "a value that was located is missing")),
        };
        let (name, cache_key, validator) = (local.path.as_os_str(), chain.cache_key(offset), local.version.into());
        let found = process().cache.get_or_make_again(name, cache_key, &validator, chain.nbytes, make)?;
        found.map_or(Ok(false), |value| decode::place(chain, &value, part, self.out).map(|()| true))
    }

    /// Read `part` of a stored value.
    fn value(
        &self,
        job: &ChunkJob<Self>,
        chain: &Arc<Chain>,
        object: Object,
        (coords, key, part): (&[usize], &str, &Part),
        keep: bool,
        poll: Poll,
    ) -> Result<()> {
        let ArrayToBytes::Shard(shard) = &chain.serializer else {
            return decode::read(chain, Source::whole(&object), part, ReadOptions { out: self.out, keep });
        };
        let permuted = chain.order.as_ref().map(|order| part.permuted(order)).transpose()?;
        let plan = Plan::new(permuted.as_ref().unwrap_or(part), &shard.grid_axes)?;
        let index = decode::cached_index(shard, Source::whole(&object))?;
        let total = plan.len();
        if job.is_shared(total)
            && let Some(local) = object.local()
        {
            local.open()?;
        }
        let (chain, coords, key) = (chain.clone(), coords.to_vec(), key.to_owned());
        let many = (SMALL_WORK / shard.inner.nbytes.max(1)).clamp(1, 64);
        job.share(OpenShard { chain, object, index, plan, coords, key, keep }, total, many, poll).map(drop)
    }

    /// Read some inner chunks of a shard, coalescing ranges that are near each other.
    fn inner_chunks(&self, shard: &Shard, open: &OpenShard, range: Range<usize>) -> Result<()> {
        let source = Source::whole(&open.object);
        let known = Some(open.object.len());
        let mut stored: Vec<(u64, usize, Part, bool)> = Vec::with_capacity(range.len());
        for number in range {
            let (coords, part) = open.plan.get(number)?;
            match decode::entry(shard, &open.index, &coords, known)? {
                None => decode::fill(&shard.inner, &part, self.out)?,
                Some((offset, len)) => {
                    let keep = open.keep && !part.covers(&shard.inner.shape);
                    stored.push((offset, len, part, keep));
                }
            }
        }
        let coalesce = source.is_file() && stored.len() > 1;
        if coalesce {
            stored.sort_by_key(|chunk| chunk.0);
        }
        let mut rest = &stored[..];
        while let Some((first, _)) = rest.split_first() {
            let run = if coalesce { run_length(rest) } else { 1 };
            let (now, later) = rest.split_at(run);
            rest = later;
            if run == 1 {
                let options = ReadOptions { out: self.out, keep: first.3 };
                decode::read(&shard.inner, source_at(&open.object, first.0, first.1), &first.2, options)?;
                continue;
            }
            let end = now.iter().map(|chunk| chunk.0 + chunk.1 as u64).max().unwrap_or(first.0);
            let bytes = open.object.read(first.0, (end - first.0) as usize)?;
            for (offset, len, part, keep) in now {
                let start = (offset - first.0) as usize;
                let options = ReadOptions { out: self.out, keep: *keep };
                decode::read(&shard.inner, Source::Read(&bytes[start..start + len]), part, options)?;
            }
        }
        Ok(())
    }
}

fn source_at(object: &Object, offset: u64, len: usize) -> Source<'_> {
    Source::Stored { object, offset, len }
}

/// Largest gap between coalesced ranges.
const GAP: u64 = 4 << 10;
const MAX_RUN: u64 = 1 << 20;

fn run_length(stored: &[(u64, usize, Part, bool)]) -> usize {
    let mut end = stored[0].0 + stored[0].1 as u64;
    let mut n = 1;
    for (offset, len, _, keep) in &stored[1..] {
        let stop = offset + *len as u64;
        if *keep || stored[0].3 || *offset > end + GAP || stop.max(end) - stored[0].0 > MAX_RUN {
            break;
        }
        end = end.max(stop);
        n += 1;
    }
    n
}

/// Count the threads worth waking: none for little work, and none that would have no chunk.
fn helpers(array: &Array, plan: &Plan, selected: usize) -> Result<usize> {
    let parts = plan.len();
    let most = threads().saturating_sub(1);
    if most == 0 || parts == 0 {
        return Ok(0);
    }
    let (coords, part) = plan.get(0)?;
    let chain = array.chain_at(&coords)?;
    let (chunks, work) = match &chain.serializer {
        ArrayToBytes::Shard(shard) => {
            // The first part is representative.
            let inner = match (&part, &chain.order) {
                (Part::Points { out, .. }, _) => out.len(),
                (part, None) => Plan::new(part, &shard.grid_axes)?.len(),
                (part, Some(order)) => Plan::new(&part.permuted(order)?, &shard.grid_axes)?.len(),
            };
            let chunks = parts.saturating_mul(inner);
            (chunks, if shard.inner.after.is_empty() { selected } else { chunks.saturating_mul(shard.inner.nbytes) })
        }
        ArrayToBytes::Bytes { .. } if chain.after.is_empty() => (parts, selected),
        ArrayToBytes::Bytes { .. } => (parts, parts.saturating_mul(chain.nbytes)),
    };
    Ok(if work < SMALL_WORK { 0 } else { most.min(chunks.saturating_sub(1)) })
}
