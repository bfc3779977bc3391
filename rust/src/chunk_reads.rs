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
use crate::leaves::{Data, Job, Leaf, Value, at_depth};
use crate::part::{Part, Plan};
use crate::pool::process;
use crate::store::{OwnedBytes, Source};

/// How often a read of parts of a changing shard is retried; then the whole shard is requested, at one version.
const ROUNDS: usize = 5;
/// Largest coalesced request in bytes.
const LONGEST: u64 = 16 << 20;

/// Bytes `start..stop` of a value; a negative start counts from the end, without a stop it goes to the end.
pub type Range = (i64, Option<i64>);

/// What is needed of the value of `key`: all of it, or ranges.
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

/// Bytes that must be unchanged, else the known offsets belong to another shard.
#[derive(Clone)]
struct Guard {
    range: Range,
    bytes: OwnedBytes,
}

/// The version of the known index.
#[derive(Clone)]
struct Known {
    version: Arc<str>,
    /// The index was read by this request, not found in the cache.
    fresh: bool,
}

/// A chunk that is being read: that of part `number`, or at `depth` > 0 an inner chunk that is a shard itself.
struct Node {
    number: usize,
    depth: usize,
    /// The part in the axes of the chain at this depth.
    part: Part,
    within: Option<(u64, usize)>,
    guards: Vec<Guard>,
    known: Option<Known>,
    want: Want,
}

enum Want {
    Whole,
    Index,
    /// Only the version: the chunk itself is in the cache.
    Version(Value),
    Inner(Inner),
}

/// Inner chunks of one shard.
#[derive(Default)]
struct Inner {
    /// Part, offset and size in the value.
    wanted: Vec<(Part, u64, usize)>,
    /// Coalesced ranges to request, ascending, that contain all of `wanted`.
    spans: Vec<(u64, u64)>,
    /// Parts found in the cache.
    kept: Vec<(Part, Value)>,
    /// A byte that must exist in the value.
    last: Option<u64>,
}

pub struct ChunkReads {
    job: Job,
    /// Shards with at most this many decoded bytes are requested whole.
    whole_below: usize,
    /// Not yet requested.
    nodes: Vec<Node>,
    waiting: HashMap<usize, Node>,
    requested: usize,
    rounds: HashMap<usize, usize>,
}

fn inner_parts(chain: &Chain, shard: &Shard, part: &Part) -> Plan {
    match &chain.order {
        None => Plan::new(part, &shard.grid_axes),
        Some(order) => Plan::new(&part.permuted(order), &shard.grid_axes),
    }
}

/// Whether fetching all of a shard is better than requesting what `part` needs.
fn wants_whole(whole_below: usize, chain: &Chain, shard: &Shard, part: &Part, inside: &[usize]) -> bool {
    let inner: usize = shard.grid.iter().product();
    chain.nbytes <= whole_below || part.covers(inside) || 2 * inner_parts(chain, shard, part).len() >= inner
}

/// Decoded bytes that are fetched for the first part, which is representative.
pub fn part_nbytes(array: &Array, plan: &Plan) -> Result<usize> {
    let (coords, part) = plan.get(0);
    let chain = array.chain_at(&coords)?;
    Ok(match &chain.middle {
        ArrayToBytes::Shard(shard) if !wants_whole(0, &chain, shard, &part, &array.inside(&coords)) => {
            inner_parts(&chain, shard, &part).len().saturating_mul(shard.inner.nbytes)
        }
        _ => chain.nbytes,
    })
}

impl ChunkReads {
    /// Begins to read parts `first..stop`; shards of at most `whole_below` decoded bytes are requested whole.
    pub fn start(job: Job, (first, stop): (usize, usize), whole_below: usize) -> Result<ChunkReads> {
        let (waiting, rounds) = (HashMap::new(), HashMap::new());
        let mut reads = ChunkReads { job, whole_below, nodes: Vec::new(), waiting, requested: 0, rounds };
        for number in first..stop {
            reads.begin(number, whole_below).map_err(|error| reads.job.placed(number, error))?;
        }
        Ok(reads)
    }

    fn begin(&mut self, number: usize, whole_below: usize) -> Result<()> {
        let (coords, part) = self.job.plan.get(number);
        let chain = self.job.array.chain_at(&coords)?;
        let inside = self.job.array.inside(&coords);
        let mut node =
            Node { number, depth: 0, part, within: None, guards: Vec::new(), known: None, want: Want::Whole };
        match &chain.middle {
            ArrayToBytes::Shard(shard) if !wants_whole(whole_below, &chain, shard, &node.part, &inside) => {
                if let Some((index, version)) = self.job.last_seen(number, chain.index_cache_key(0)) {
                    node.known = Some(Known { version, fresh: false });
                    return self.request_inner(node, &chain, shard, &index);
                }
                node.want = Want::Index;
            }
            ArrayToBytes::Bytes { .. } if !node.part.covers(&inside) => {
                if let Some((value, version)) = self.job.last_seen(number, chain.cache_key(0)) {
                    node.known = Some(Known { version, fresh: false });
                    node.want = Want::Version(value);
                }
            }
            _ => {}
        }
        self.nodes.push(node);
        Ok(())
    }

    /// The requests needed now; none while all are in flight, or when everything is read.
    pub fn requests(&mut self) -> Result<Vec<Request>> {
        let mut requests = Vec::with_capacity(self.nodes.len());
        for node in std::mem::take(&mut self.nodes) {
            let (id, key) = (self.requested, self.job.key(node.number));
            requests.push(Request { id, key, ranges: self.ranges(&node)? });
            self.waiting.insert(id, node);
            self.requested += 1;
        }
        Ok(requests)
    }

    fn ranges(&self, node: &Node) -> Result<Option<Vec<Range>>> {
        let mut ranges: Vec<Range> = match (&node.want, node.within) {
            (Want::Whole, None) => return Ok(None),
            (Want::Whole, Some((offset, len))) => vec![span(offset, len)],
            (Want::Index, _) => vec![self.index_range(node)?],
            (Want::Version(_), _) => vec![(0, Some(0))],
            (Want::Inner(inner), _) if inner.spans.is_empty() => vec![(0, Some(0))],
            (Want::Inner(inner), _) => {
                let spans = inner.spans.iter().map(|&(start, stop)| span(start, (stop - start) as usize));
                spans.chain(inner.last.map(|at| span(at, 1))).collect()
            }
        };
        ranges.extend(node.guards.iter().map(|guard| guard.range));
        Ok(Some(ranges))
    }

    fn index_range(&self, node: &Node) -> Result<Range> {
        let chain = self.job.chain(node.number)?;
        let ArrayToBytes::Shard(shard) = &at_depth(&chain, node.depth).middle else {
            return Err(Error::new("internal", "an index of a chunk that is not a shard"));
        };
        let n = shard.index_nbytes;
        Ok(match (shard.at_start, node.within) {
            (true, within) => span(within.map_or(0, |(offset, _)| offset), n),
            (false, None) => (-(n as i64), None),
            // Decoding the index detects a nested shard that is shorter than its index.
            (false, Some((offset, len))) => span(offset + len.saturating_sub(n) as u64, n.min(len)),
        })
    }

    /// Receives some responses, and decodes complete chunks.
    pub fn receive(&mut self, responses: Vec<Response>, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let (mut leaves, mut changed) = (Vec::new(), HashSet::new());
        for response in responses {
            // Responses to an earlier try at a changed shard may still be in flight.
            let Some(node) = self.waiting.remove(&response.id) else { continue };
            let number = node.number;
            if !changed.contains(&number)
                && !self.take(node, response, &mut leaves).map_err(|error| self.job.placed(number, error))?
            {
                changed.insert(number);
            }
        }
        leaves.retain(|leaf: &Leaf| !changed.contains(&leaf.number));
        for number in changed {
            self.again(number).map_err(|error| self.job.placed(number, error))?;
        }
        self.job.decode(&leaves, poll)
    }

    /// Restarts a chunk read whose shard has changed.
    fn again(&mut self, number: usize) -> Result<()> {
        self.nodes.retain(|node| node.number != number);
        self.waiting.retain(|_, node| node.number != number);
        let rounds = self.rounds.entry(number).or_insert(0);
        *rounds += 1;
        let whole_below = if *rounds < ROUNDS { self.whole_below } else { usize::MAX };
        if let Some(name) = self.job.name(number) {
            process().cache.forget(&name);
        }
        self.begin(number, whole_below)
    }

    /// `false`: the value has another version than earlier responses.
    fn take(&mut self, mut node: Node, response: Response, leaves: &mut Vec<Leaf>) -> Result<bool> {
        let chain = self.job.chain(node.number)?;
        let here = at_depth(&chain, node.depth);
        let Some(mut parts) = response.parts else {
            if node.depth > 0 || node.known.is_some() || matches!(node.want, Want::Inner(_)) {
                return Ok(false);
            }
            if !self.job.array.read_missing {
                return Err(Error::new("chunk_not_found", "a chunk is missing"));
            }
            decode::fill(here, &node.part, self.job.out);
            return Ok(true);
        };
        let same = match (&node.known, &response.version) {
            (Some(known), Some(version)) => known.version == *version,
            // A range past the end has no version; only entries of the cache are in doubt then.
            (Some(known), None) => known.fresh,
            (None, _) => true,
        };
        let guarded = parts.split_off(parts.len().saturating_sub(node.guards.len()));
        let untouched = guarded.len() == node.guards.len()
            && guarded.iter().zip(&node.guards).all(|(now, then)| **now == *then.bytes);
        if !same || !untouched {
            return Ok(false);
        }
        let version = response.version.or_else(|| node.known.as_ref().map(|known| known.version.clone()));
        match (std::mem::replace(&mut node.want, Want::Whole), &here.middle) {
            (Want::Inner(inner), ArrayToBytes::Shard(shard)) => {
                self.take_inner(&node, &shard.inner, inner, parts, version, leaves)?;
            }
            (Want::Version(value), _) => leaves.push(Leaf::kept(node.number, node.depth, node.part, value)),
            (Want::Index, ArrayToBytes::Shard(shard)) => {
                let bytes = parts.into_iter().next().ok_or_else(fewer)?;
                let index = decode::read_index(shard, Source::Read(&bytes))?;
                self.take_index(node, here, shard, Arc::new(index), bytes, version)?;
            }
            (_, middle) => {
                let held = parts.into_iter().next().ok_or_else(fewer)?;
                if let Some((offset, len)) = node.within.filter(|&(_, len)| len != held.len()) {
                    return Err(too_short(offset, len).got(format!("{} bytes", held.len())));
                }
                match middle {
                    ArrayToBytes::Shard(shard) => {
                        let index = decode::read_index(shard, Source::Read(&held))?;
                        self.split(&node, here, shard, &index, held, leaves)?;
                    }
                    ArrayToBytes::Bytes { .. } => {
                        let (len, offset) = (held.len(), node.within.map_or(0, |(offset, _)| offset));
                        let inside = self.job.array.inside(&self.job.plan.get(node.number).0);
                        let keep = version.filter(|_| node.depth == 0 && !node.part.covers(&inside));
                        let data = Data::Stored { held, start: 0, len, offset, keep };
                        leaves.push(Leaf { number: node.number, depth: node.depth, part: node.part, data });
                    }
                }
            }
        }
        Ok(true)
    }

    fn take_inner(
        &self,
        node: &Node,
        chain: &Chain,
        inner: Inner,
        mut parts: Vec<OwnedBytes>,
        version: Option<Arc<str>>,
        leaves: &mut Vec<Leaf>,
    ) -> Result<()> {
        let (number, depth) = (node.number, node.depth + 1);
        leaves.extend(inner.kept.into_iter().map(|(part, value)| Leaf::kept(number, depth, part, value)));
        if inner.last.is_some() && parts.pop().is_none_or(|byte| byte.len() != 1) {
            return Err(too_short(0, 0).got("a shard that ends there"));
        }
        if parts.len() < inner.spans.len() {
            return Err(fewer());
        }
        for (part, offset, len) in inner.wanted {
            let at = inner.spans.partition_point(|span| span.0 <= offset) - 1;
            let (held, start) = (&parts[at], (offset - inner.spans[at].0) as usize);
            if held.len() < start + len {
                let got = format!("{} bytes", held.len().saturating_sub(start));
                return Err(too_short(offset, len).got(got));
            }
            let keep = version.clone().filter(|_| !part.covers(&chain.shape));
            let data = Data::Stored { held: held.clone(), start, len, offset, keep };
            leaves.push(Leaf { number, depth, part, data });
        }
        Ok(())
    }

    /// Receives the index of a shard: caches it if the version is known, else checks it again with the data.
    fn take_index(
        &mut self,
        mut node: Node,
        chain: &Chain,
        shard: &Shard,
        index: Value,
        bytes: OwnedBytes,
        version: Option<Arc<str>>,
    ) -> Result<()> {
        match version {
            Some(version) => {
                if let Some(name) = self.job.name(node.number) {
                    let cache_key = chain.index_cache_key(node.within.map_or(0, |(offset, _)| offset));
                    process().cache.keep(&name, cache_key, &Validator::Tag(version.clone()), index.clone());
                }
                node.known = Some(Known { version, fresh: true });
            }
            None if self.job.asking().remote => {}
            None => node.guards.push(Guard { range: self.index_range(&node)?, bytes }),
        }
        self.request_inner(node, chain, shard, &index)
    }

    /// Plans the requests for inner chunks from the index of a shard, and fills those that are not stored.
    fn request_inner(&mut self, node: Node, chain: &Chain, shard: &Shard, index: &[u8]) -> Result<()> {
        let Node { number, depth, part, within, guards, known, .. } = node;
        let base = within.map_or(0, |(offset, _)| offset);
        let plan = inner_parts(chain, shard, &part);
        let mut inner = Inner::default();
        let mut missing = Vec::new();
        for i in 0..plan.len() {
            let (coords, part) = plan.get(i);
            match decode::entry(shard, index, &coords, within.map(|(_, len)| len as u64))? {
                None => missing.push(part),
                Some((offset, len)) => inner.wanted.push((part, base + offset, len)),
            }
        }
        if inner.wanted.is_empty() && known.as_ref().is_some_and(|known| !known.fresh) {
            // No other request would show whether the index is still valid.
            let want = Want::Index;
            self.nodes.push(Node { number, depth, part, within, guards, known: None, want });
            return Ok(());
        }
        missing.iter().for_each(|part| decode::fill(&shard.inner, part, self.job.out));
        if let ArrayToBytes::Shard(nested) = &shard.inner.middle {
            for (part, offset, len) in inner.wanted {
                let whole_below = self.whole_below;
                let whole = wants_whole(whole_below, &shard.inner, nested, &part, &shard.inner.shape);
                let (depth, within, guards, known) = (depth + 1, Some((offset, len)), guards.clone(), known.clone());
                let want = if whole { Want::Whole } else { Want::Index };
                self.nodes.push(Node { number, depth, part, within, guards, known, want });
            }
        } else if let Some(stop) = inner.wanted.iter().map(|(_, offset, len)| offset + *len as u64).max() {
            // Without the size of the shard, only this shows whether a chunk reaches into the index.
            let behind = if shard.at_start { 0 } else { shard.index_nbytes as u64 };
            inner.last = (within.is_none() && !self.job.asking().remote).then(|| stop + behind - 1);
            self.plan(number, &shard.inner, &mut inner, known.as_ref());
            self.nodes.push(Node { number, depth, part, within, guards, known, want: Want::Inner(inner) });
        }
        Ok(())
    }

    /// Takes cached chunks, and coalesces the ranges of the others.
    fn plan(&self, number: usize, chain: &Chain, inner: &mut Inner, known: Option<&Known>) {
        let gap = self.job.asking().gap;
        if let (Some(known), Some(name)) = (known, self.job.name(number)) {
            let validator = Validator::Tag(known.version.clone());
            for (part, offset, len) in std::mem::take(&mut inner.wanted) {
                match process().cache.peek(&name, chain.cache_key(offset), &validator) {
                    Some(value) => inner.kept.push((part, value)),
                    None => inner.wanted.push((part, offset, len)),
                }
            }
        }
        inner.wanted.sort_by_key(|(_, offset, _)| *offset);
        for (_, offset, len) in &inner.wanted {
            let stop = offset + *len as u64;
            match inner.spans.last_mut() {
                Some(span) if *offset <= span.1 + gap && stop.max(span.1) - span.0 <= LONGEST => {
                    span.1 = span.1.max(stop);
                }
                _ => inner.spans.push((*offset, stop)),
            }
        }
    }

    /// Reads the inner chunks of a shard that was requested whole.
    fn split(
        &self,
        node: &Node,
        chain: &Chain,
        shard: &Shard,
        index: &[u8],
        held: OwnedBytes,
        leaves: &mut Vec<Leaf>,
    ) -> Result<()> {
        let plan = inner_parts(chain, shard, &node.part);
        for i in 0..plan.len() {
            let (coords, part) = plan.get(i);
            match decode::entry(shard, index, &coords, Some(held.len() as u64))? {
                None => decode::fill(&shard.inner, &part, self.job.out),
                Some((offset, len)) => {
                    let (number, depth, held) = (node.number, node.depth + 1, held.clone());
                    let data = Data::Stored { held, start: offset as usize, len, offset, keep: None };
                    leaves.push(Leaf { number, depth, part, data });
                }
            }
        }
        Ok(())
    }
}

fn span(offset: u64, len: usize) -> Range {
    (offset as i64, Some(offset.saturating_add(len as u64) as i64))
}

fn fewer() -> Error {
    Error::new("internal", "a store answered with fewer ranges than were requested")
}

fn too_short(offset: u64, len: usize) -> Error {
    Error::new("shard_index", "a shard ends before an inner chunk that its index promises")
        .with(|fault| fault.codec = Some("sharding_indexed".into()))
        .expected(format!("{len} bytes at offset {offset}"))
}
