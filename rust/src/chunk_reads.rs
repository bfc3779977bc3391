//! Chunk reads from a store that Python serves.
//!
//! `requests` returns the requests needed now, for whole values or ranges of them. `receive` takes responses in any order,
//! decodes complete chunks and finds the next requests. Of a shard the index is requested first, then the selected inner
//! chunks, with coalesced ranges.
//!
//! A shard may be replaced between two responses. If the store has versions, all responses must have the same one;
//! otherwise the index is requested again with the data (an unchanged index fits the new data as it did the old). On a
//! mismatch the chunk read restarts.
//!
//! With versions, indexes and decoded chunks of partial reads are cached. A cached entry is only valid if a response of the
//! same read shows that the value still has the entry's version.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::array::Array;
use crate::cache::Validator;
use crate::chain::{ArrayToBytes, Chain, Shard};
use crate::decode;
use crate::error::{Error, Result};
use crate::part::{Part, Plan};
use crate::pool::process;
use crate::received::{Data, ReadTarget, ReceivedChunk, Value, at_depth};
use crate::store::{OwnedBytes, Source};

/// Attempts to read parts of a shard that changes; then the whole shard is requested, at one version.
const MAX_ATTEMPTS: usize = 5;
/// Largest coalesced request in bytes.
const MAX_REQUEST: u64 = 16 << 20;

/// Bytes `start..stop` of a value; a negative start counts from the end, without a stop it goes to the end.
pub type Range = (i64, Option<i64>);

/// A request for the value of `key`: all of it, or ranges.
pub struct Request {
    pub id: usize,
    pub key: String,
    pub ranges: Option<Vec<Range>>,
}

pub struct Response {
    /// The id of the `Request`.
    pub id: usize,
    /// A buffer per range; `None` for a missing key.
    pub parts: Option<Vec<OwnedBytes>>,
    /// The version of the value, if the store has versions.
    pub version: Option<Arc<str>>,
}

/// Bytes that must be unchanged, else the offsets from the index belong to another shard.
#[derive(Clone)]
struct Guard {
    range: Range,
    bytes: OwnedBytes,
}

/// The version that further responses must have: that of the cached entry or of the index.
#[derive(Clone)]
struct ExpectedVersion {
    version: Arc<str>,
    /// The index was read by this request, not from the cache.
    fresh: bool,
}

/// The read of one chunk: that of part `number`, or at `depth` > 0 an inner chunk that is a shard itself.
struct ChunkRead {
    number: usize,
    depth: usize,
    /// The part in the axes of the chain at this depth.
    part: Part,
    within: Option<(u64, usize)>,
    guards: Vec<Guard>,
    expected: Option<ExpectedVersion>,
    phase: Phase,
}

enum Phase {
    Whole,
    Index,
    /// Only the version: the chunk itself is in the cache.
    Version(Value),
    InnerChunks(InnerChunks),
}

/// Inner chunks of one shard.
#[derive(Default)]
struct InnerChunks {
    /// The part of each stored inner chunk, and its offset and size in the value.
    stored: Vec<(Part, u64, usize)>,
    /// Coalesced ranges to request, ascending, that contain all of `stored`.
    spans: Vec<(u64, u64)>,
    /// Parts found in the cache.
    cached: Vec<(Part, Value)>,
    /// A byte that must exist in the value.
    last: Option<u64>,
}

pub struct ChunkReads {
    target: ReadTarget,
    /// Shards with at most this many decoded bytes are requested whole.
    whole_below: usize,
    /// Reads whose next request was not sent yet.
    pending: Vec<ChunkRead>,
    in_flight: HashMap<usize, ChunkRead>,
    requested: usize,
    attempts: HashMap<usize, usize>,
}

fn inner_parts(chain: &Chain, shard: &Shard, part: &Part) -> Result<Plan> {
    match &chain.order {
        None => Plan::new(part, &shard.grid_axes),
        Some(order) => Plan::new(&part.permuted(order)?, &shard.grid_axes),
    }
}

/// Whether all of a shard is requested, instead of the inner chunks that `part` needs.
pub fn is_read_whole(whole_below: usize, chain: &Chain, shard: &Shard, part: &Part, inside: &[usize]) -> Result<bool> {
    let inner: usize = shard.grid.iter().product();
    let is_whole = chain.nbytes <= whole_below || part.covers(inside);
    Ok(is_whole || 2 * inner_parts(chain, shard, part)?.len() >= inner)
}

/// Decoded bytes that are fetched for the first part, which is representative.
pub fn part_nbytes(array: &Array, plan: &Plan) -> Result<usize> {
    let (coords, part) = plan.get(0)?;
    let chain = array.chain_at(&coords)?;
    Ok(match &chain.serializer {
        ArrayToBytes::Shard(shard) if !is_read_whole(0, &chain, shard, &part, &array.inside(&coords))? => {
            inner_parts(&chain, shard, &part)?.len().saturating_mul(shard.inner.nbytes)
        }
        _ => chain.nbytes,
    })
}

impl ChunkReads {
    /// Begin to read parts `first..stop`; shards of at most `whole_below` decoded bytes are requested whole.
    pub fn start(target: ReadTarget, (first, stop): (usize, usize), whole_below: usize) -> Result<ChunkReads> {
        let (in_flight, attempts) = (HashMap::new(), HashMap::new());
        let mut reads = ChunkReads { target, whole_below, pending: Vec::new(), in_flight, requested: 0, attempts };
        for number in first..stop {
            reads.begin(number, whole_below).map_err(|error| reads.target.located(number, error))?;
        }
        Ok(reads)
    }

    fn begin(&mut self, number: usize, whole_below: usize) -> Result<()> {
        let (coords, part) = self.target.plan.get(number)?;
        let chain = self.target.array.chain_at(&coords)?;
        let inside = self.target.array.inside(&coords);
        let mut read =
            ChunkRead { number, depth: 0, part, within: None, guards: Vec::new(), expected: None, phase: Phase::Whole };
        match &chain.serializer {
            ArrayToBytes::Shard(shard) if !is_read_whole(whole_below, &chain, shard, &read.part, &inside)? => {
                if let Some((index, version)) = self.target.unvalidated(number, chain.index_cache_key(0)) {
                    read.expected = Some(ExpectedVersion { version, fresh: false });
                    return self.request_inner(read, &chain, shard, &index);
                }
                read.phase = Phase::Index;
            }
            ArrayToBytes::Bytes { .. } if !read.part.covers(&inside) => {
                if let Some((value, version)) = self.target.unvalidated(number, chain.cache_key(0)) {
                    read.expected = Some(ExpectedVersion { version, fresh: false });
                    read.phase = Phase::Version(value);
                }
            }
            _ => {}
        }
        self.pending.push(read);
        Ok(())
    }

    /// The requests needed now; none while all are in flight, or when everything is read.
    pub fn requests(&mut self) -> Result<Vec<Request>> {
        let mut requests = Vec::with_capacity(self.pending.len());
        for read in std::mem::take(&mut self.pending) {
            let (id, key) = (self.requested, self.target.key(read.number));
            requests.push(Request { id, key, ranges: self.ranges(&read)? });
            self.in_flight.insert(id, read);
            self.requested += 1;
        }
        Ok(requests)
    }

    fn ranges(&self, read: &ChunkRead) -> Result<Option<Vec<Range>>> {
        let mut ranges: Vec<Range> = match (&read.phase, read.within) {
            (Phase::Whole, None) => return Ok(None),
            (Phase::Whole, Some((offset, len))) => vec![span(offset, len)],
            (Phase::Index, _) => vec![self.index_range(read)?],
            (Phase::Version(_), _) => vec![(0, Some(0))],
            (Phase::InnerChunks(inner), _) if inner.spans.is_empty() => {
                vec![inner.last.map_or((0, Some(0)), |at| span(at, 1))]
            }
            (Phase::InnerChunks(inner), _) => {
                let spans = inner.spans.iter().map(|&(start, stop)| span(start, (stop - start) as usize));
                spans.chain(inner.last.map(|at| span(at, 1))).collect()
            }
        };
        ranges.extend(read.guards.iter().map(|guard| guard.range));
        Ok(Some(ranges))
    }

    fn index_range(&self, read: &ChunkRead) -> Result<Range> {
        let chain = self.target.chain(read.number)?;
        let ArrayToBytes::Shard(shard) = &at_depth(&chain, read.depth).serializer else {
            return Err(Error::new("internal", "an index of a chunk that is not a shard"));
        };
        let n = shard.index_nbytes;
        Ok(match (shard.at_start, read.within) {
            (true, within) => span(within.map_or(0, |(offset, _)| offset), n),
            (false, None) => (-(n as i64), None),
            // Decoding the index detects a nested shard that is shorter than its index.
            (false, Some((offset, len))) => span(offset + len.saturating_sub(n) as u64, n.min(len)),
        })
    }

    /// Receive some responses, and decode complete chunks.
    pub fn receive(&mut self, responses: Vec<Response>, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let (mut received, mut changed) = (Vec::new(), HashSet::new());
        for response in responses {
            // Responses to an earlier attempt at a changed shard may still be in flight.
            let Some(read) = self.in_flight.remove(&response.id) else { continue };
            let number = read.number;
            if !changed.contains(&number)
                && !self
                    .receive_one(read, response, &mut received)
                    .map_err(|error| self.target.located(number, error))?
            {
                changed.insert(number);
            }
        }
        received.retain(|chunk: &ReceivedChunk| !changed.contains(&chunk.number));
        for number in changed {
            self.restart(number).map_err(|error| self.target.located(number, error))?;
        }
        self.target.decode(&received, poll)
    }

    /// Restart a chunk read whose shard has changed.
    fn restart(&mut self, number: usize) -> Result<()> {
        self.pending.retain(|read| read.number != number);
        self.in_flight.retain(|_, read| read.number != number);
        let attempts = self.attempts.entry(number).or_insert(0);
        *attempts += 1;
        let whole_below = if *attempts < MAX_ATTEMPTS { self.whole_below } else { usize::MAX };
        if let Some(name) = self.target.name(number) {
            process().cache.invalidate(&name);
        }
        self.begin(number, whole_below)
    }

    /// Receive one response; `false`: the value has another version than earlier responses.
    fn receive_one(
        &mut self,
        mut read: ChunkRead,
        response: Response,
        received: &mut Vec<ReceivedChunk>,
    ) -> Result<bool> {
        let chain = self.target.chain(read.number)?;
        let here = at_depth(&chain, read.depth);
        let Some(mut parts) = response.parts else {
            if read.depth > 0 || read.expected.is_some() || matches!(read.phase, Phase::InnerChunks(_)) {
                return Ok(false);
            }
            if !self.target.array.read_missing {
                return Err(Error::new("chunk_not_found", "a chunk is missing"));
            }
            decode::fill(here, &read.part, self.target.out)?;
            return Ok(true);
        };
        let same = match (&read.expected, &response.version) {
            (Some(expected), Some(version)) => expected.version == *version,
            // A range past the end has no version; only entries of the cache are in doubt then.
            (Some(expected), None) => expected.fresh,
            (None, _) => true,
        };
        let guarded = parts.split_off(parts.len().saturating_sub(read.guards.len()));
        let untouched = guarded.len() == read.guards.len()
            && guarded.iter().zip(&read.guards).all(|(now, then)| **now == *then.bytes);
        if !same || !untouched {
            return Ok(false);
        }
        let version = response.version.or_else(|| read.expected.as_ref().map(|expected| expected.version.clone()));
        match (std::mem::replace(&mut read.phase, Phase::Whole), &here.serializer) {
            (Phase::InnerChunks(inner), ArrayToBytes::Shard(shard)) => {
                self.receive_inner(&read, &shard.inner, inner, parts, version, received)?;
            }
            (Phase::Version(value), _) => {
                received.push(ReceivedChunk::cached(read.number, read.depth, read.part, value))
            }
            (Phase::Index, ArrayToBytes::Shard(shard)) => {
                let bytes = parts.into_iter().next().ok_or_else(too_few_ranges)?;
                let index = decode::read_index(shard, Source::Read(&bytes))?;
                self.receive_index(read, here, shard, Arc::new(index), bytes, version)?;
            }
            (_, serializer) => {
                let bytes = parts.into_iter().next().ok_or_else(too_few_ranges)?;
                if let Some((offset, len)) = read.within.filter(|&(_, len)| len != bytes.len()) {
                    return Err(too_short(offset, len).got(format!("{} bytes", bytes.len())));
                }
                match serializer {
                    ArrayToBytes::Shard(shard) => {
                        let index = decode::read_index(shard, Source::Read(&bytes))?;
                        self.split(&read, here, shard, &index, bytes, received)?;
                    }
                    ArrayToBytes::Bytes { .. } => {
                        let (len, offset) = (bytes.len(), read.within.map_or(0, |(offset, _)| offset));
                        let inside = self.target.array.inside(&self.target.plan.coords(read.number));
                        let keep = version.filter(|_| read.depth == 0 && !read.part.covers(&inside));
                        let data = Data::Stored { bytes, start: 0, len, offset, keep };
                        received.push(ReceivedChunk { number: read.number, depth: read.depth, part: read.part, data });
                    }
                }
            }
        }
        Ok(true)
    }

    fn receive_inner(
        &self,
        read: &ChunkRead,
        chain: &Chain,
        inner: InnerChunks,
        mut parts: Vec<OwnedBytes>,
        version: Option<Arc<str>>,
        received: &mut Vec<ReceivedChunk>,
    ) -> Result<()> {
        let (number, depth) = (read.number, read.depth + 1);
        received
            .extend(inner.cached.into_iter().map(|(part, value)| ReceivedChunk::cached(number, depth, part, value)));
        if inner.last.is_some() && parts.pop().is_none_or(|byte| byte.len() != 1) {
            return Err(too_short(0, 0).got("a shard that ends there"));
        }
        if parts.len() < inner.spans.len() {
            return Err(too_few_ranges());
        }
        for (part, offset, len) in inner.stored {
            let at = inner.spans.partition_point(|span| span.0 <= offset) - 1;
            let (bytes, start) = (&parts[at], (offset - inner.spans[at].0) as usize);
            if bytes.len() < start + len {
                let got = format!("{} bytes", bytes.len().saturating_sub(start));
                return Err(too_short(offset, len).got(got));
            }
            let keep = version.clone().filter(|_| !part.covers(&chain.shape));
            let data = Data::Stored { bytes: bytes.clone(), start, len, offset, keep };
            received.push(ReceivedChunk { number, depth, part, data });
        }
        Ok(())
    }

    /// Receive the index of a shard: cache it if the store has versions, else check it again with the data.
    fn receive_index(
        &mut self,
        mut read: ChunkRead,
        chain: &Chain,
        shard: &Shard,
        index: Value,
        bytes: OwnedBytes,
        version: Option<Arc<str>>,
    ) -> Result<()> {
        match version {
            Some(version) => {
                if let Some(name) = self.target.name(read.number) {
                    let cache_key = chain.index_cache_key(read.within.map_or(0, |(offset, _)| offset));
                    process().cache.insert(&name, cache_key, &Validator::Tag(version.clone()), index.clone());
                }
                read.expected = Some(ExpectedVersion { version, fresh: true });
            }
            None if self.target.python_store().remote => {}
            None => read.guards.push(Guard { range: self.index_range(&read)?, bytes }),
        }
        self.request_inner(read, chain, shard, &index)
    }

    /// Plan the requests for inner chunks from the index of a shard, and fill those that are not stored.
    fn request_inner(&mut self, read: ChunkRead, chain: &Chain, shard: &Shard, index: &[u8]) -> Result<()> {
        let ChunkRead { number, depth, part, within, guards, expected, .. } = read;
        let base = within.map_or(0, |(offset, _)| offset);
        let plan = inner_parts(chain, shard, &part)?;
        let mut inner = InnerChunks::default();
        let mut missing = Vec::new();
        for i in 0..plan.len() {
            let (coords, part) = plan.get(i)?;
            match decode::entry(shard, index, &coords, within.map(|(_, len)| len as u64))? {
                None => missing.push(part),
                Some((offset, len)) => inner.stored.push((part, base + offset, len)),
            }
        }
        if inner.stored.is_empty() && expected.as_ref().is_some_and(|expected| !expected.fresh) {
            // No other request would show whether the index is still valid.
            let phase = Phase::Index;
            self.pending.push(ChunkRead { number, depth, part, within, guards, expected: None, phase });
            return Ok(());
        }
        missing.iter().try_for_each(|part| decode::fill(&shard.inner, part, self.target.out))?;
        if let ArrayToBytes::Shard(nested) = &shard.inner.serializer {
            for (part, offset, len) in inner.stored {
                let whole_below = self.whole_below;
                let whole = is_read_whole(whole_below, &shard.inner, nested, &part, &shard.inner.shape)?;
                let (depth, within, guards, expected) =
                    (depth + 1, Some((offset, len)), guards.clone(), expected.clone());
                let phase = if whole { Phase::Whole } else { Phase::Index };
                self.pending.push(ChunkRead { number, depth, part, within, guards, expected, phase });
            }
        } else if let Some(stop) = inner.stored.iter().map(|(_, offset, len)| offset + *len as u64).max() {
            // Without the size of the shard, only this shows whether a chunk reaches into the index.
            let index_after = if shard.at_start { 0 } else { shard.index_nbytes as u64 };
            inner.last = (within.is_none() && !self.target.python_store().remote).then(|| stop + index_after - 1);
            self.plan(number, &shard.inner, &mut inner, expected.as_ref());
            self.pending.push(ChunkRead {
                number,
                depth,
                part,
                within,
                guards,
                expected,
                phase: Phase::InnerChunks(inner),
            });
        }
        Ok(())
    }

    /// Look up chunks in the cache, and coalesce the ranges of the others.
    fn plan(&self, number: usize, chain: &Chain, inner: &mut InnerChunks, expected: Option<&ExpectedVersion>) {
        let gap = self.target.python_store().gap;
        if let (Some(expected), Some(name)) = (expected, self.target.name(number)) {
            let validator = Validator::Tag(expected.version.clone());
            for (part, offset, len) in std::mem::take(&mut inner.stored) {
                match process().cache.peek(&name, chain.cache_key(offset), &validator) {
                    Some(value) => inner.cached.push((part, value)),
                    None => inner.stored.push((part, offset, len)),
                }
            }
        }
        inner.stored.sort_by_key(|(_, offset, _)| *offset);
        for (_, offset, len) in &inner.stored {
            let stop = offset + *len as u64;
            match inner.spans.last_mut() {
                Some(span) if *offset <= span.1 + gap && stop.max(span.1) - span.0 <= MAX_REQUEST => {
                    span.1 = span.1.max(stop);
                }
                _ => inner.spans.push((*offset, stop)),
            }
        }
    }

    /// Read the inner chunks of a shard that was requested whole.
    fn split(
        &self,
        read: &ChunkRead,
        chain: &Chain,
        shard: &Shard,
        index: &[u8],
        bytes: OwnedBytes,
        received: &mut Vec<ReceivedChunk>,
    ) -> Result<()> {
        let plan = inner_parts(chain, shard, &read.part)?;
        for i in 0..plan.len() {
            let (coords, part) = plan.get(i)?;
            match decode::entry(shard, index, &coords, Some(bytes.len() as u64))? {
                None => decode::fill(&shard.inner, &part, self.target.out)?,
                Some((offset, len)) => {
                    let (number, depth, bytes) = (read.number, read.depth + 1, bytes.clone());
                    let data = Data::Stored { bytes, start: offset as usize, len, offset, keep: None };
                    received.push(ReceivedChunk { number, depth, part, data });
                }
            }
        }
        Ok(())
    }
}

fn span(offset: u64, len: usize) -> Range {
    (offset as i64, Some(offset.saturating_add(len as u64) as i64))
}

fn too_few_ranges() -> Error {
    Error::new("internal", "a store returned fewer ranges than were requested")
}

fn too_short(offset: u64, len: usize) -> Error {
    Error::new("shard_index", "a shard ends before an inner chunk that its index lists")
        .with(|fault| fault.codec = Some("sharding_indexed".into()))
        .expected(format!("{len} bytes at offset {offset}"))
}
