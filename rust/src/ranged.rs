//! Reading parts of shards from a store that Python serves: indices first, then the inner chunks that are wanted.
//!
//! All parts go through one wave after another, and a wave is one call of the store: ranges of keys, answered with
//! buffers. What a wave brings is decoded before the next is asked for. A shard that is replaced between two waves is
//! noticed by its index, which every further wave asks for again, behind the data: it is read anew then. (An index that
//! stayed the same fits the new data as it did the old.)

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::array::Array;
use crate::chain::{Chain, Middle, Shard};
use crate::decode::{self, Reading};
use crate::error::{Error, Result};
use crate::part::{Part, Spread};
use crate::pool::{Gate, Job, process, threads};
use crate::read::SMALL_WORK;
use crate::region::Memory;
use crate::store::{Held, Source};

/// How often a shard that keeps changing is read anew.
const ROUNDS: usize = 5;

/// Bytes `start..stop` of a value; a negative start counts from the end, without a stop it goes to the end.
pub type Range = (i64, Option<i64>);

/// What to fetch of the value of part `number`: all of it, or ranges.
pub struct Ask {
    pub number: usize,
    pub ranges: Option<Vec<Range>>,
}

/// Bytes that must still be there, or the offsets at hand are those of another shard.
#[derive(Clone)]
struct Guard {
    range: Range,
    bytes: Held,
}

/// A chunk that is being read: that of part `number`, or at `depth` > 0 an inner chunk that is a shard itself.
struct Node {
    number: usize,
    depth: usize,
    /// As the chain at this depth sees it.
    part: Part,
    within: Option<(u64, usize)>,
    guards: Vec<Guard>,
    want: Want,
}

enum Want {
    Whole,
    Index,
    /// Inner chunks: part, offset and size in the value; and a byte that the value must have.
    Data {
        inner: Vec<(Part, u64, usize)>,
        last: Option<u64>,
    },
}

/// A chunk without inner chunks, fetched.
struct Leaf {
    number: usize,
    depth: usize,
    part: Part,
    held: Held,
    start: usize,
    len: usize,
}

pub struct Waves {
    array: Arc<Array>,
    spread: Arc<Spread>,
    out: Memory<'static>,
    /// Shards of at most so many decoded bytes are fetched whole.
    small: usize,
    nodes: Vec<Node>,
    rounds: HashMap<usize, usize>,
}

fn at_depth(chain: &Chain, depth: usize) -> &Chain {
    (0..depth).fold(chain, |chain, _| match &chain.middle {
        Middle::Shard(shard) => &shard.inner,
        Middle::Bytes { .. } => chain,
    })
}

fn inner_parts(chain: &Chain, shard: &Shard, part: &Part) -> Spread {
    match &chain.order {
        None => Spread::new(part, &shard.cuts),
        Some(order) => Spread::new(&part.permuted(order), &shard.cuts),
    }
}

/// Whether fetching all of a shard is better than asking for what `part` needs.
fn wants_whole(small: usize, chain: &Chain, shard: &Shard, part: &Part, inside: &[usize]) -> bool {
    let inner: usize = shard.grid.iter().product();
    chain.nbytes <= small || part.covers(inside) || 2 * inner_parts(chain, shard, part).len() >= inner
}

/// How many parts to read together so that what is fetched for them stays within `most` bytes, decoded; `None`: ranges
/// are of no use for the first of them, which stands for all.
pub fn at_once(array: &Array, spread: &Spread, small: usize, most: usize) -> Result<Option<usize>> {
    let (coords, part) = spread.get(0);
    let chain = array.chain_at(&coords)?;
    let Middle::Shard(shard) = &chain.middle else { return Ok(None) };
    if spread.len() <= 2 && wants_whole(small, &chain, shard, &part, &array.inside(&coords)) {
        return Ok(None);
    }
    let nbytes = inner_parts(&chain, shard, &part).len().saturating_mul(shard.inner.nbytes);
    Ok(Some((most / nbytes.max(1)).max(1)))
}

impl Waves {
    /// Begins to read parts `range` of `spread`; `None` when all of them are better fetched whole.
    pub fn start(
        array: &Arc<Array>,
        spread: &Arc<Spread>,
        out: Memory<'static>,
        range: (usize, usize),
        small: usize,
    ) -> Result<Option<Waves>> {
        let (array, spread) = (array.clone(), spread.clone());
        let mut waves = Waves { array, spread, out, small, nodes: Vec::new(), rounds: HashMap::new() };
        for number in range.0..range.1 {
            let node = waves.begin(number)?;
            waves.nodes.push(node);
        }
        let ranged = waves.nodes.iter().any(|node| matches!(node.want, Want::Index));
        Ok(ranged.then_some(waves))
    }

    fn begin(&self, number: usize) -> Result<Node> {
        let (coords, part) = self.spread.get(number);
        let chain = self.array.chain_at(&coords)?;
        let want = match &chain.middle {
            Middle::Shard(shard) if !wants_whole(self.small, &chain, shard, &part, &self.array.inside(&coords)) => {
                Want::Index
            }
            _ => Want::Whole,
        };
        Ok(Node { number, depth: 0, part, within: None, guards: Vec::new(), want })
    }

    fn chain(&self, number: usize) -> Result<Arc<Chain>> {
        self.array.chain_at(&self.spread.get(number).0)
    }

    fn place(&self, number: usize, error: Error) -> Error {
        let coords = self.spread.get(number).0;
        let chunk: Vec<u64> = coords.iter().map(|&i| i as u64).collect();
        error.at(&chunk, &self.array.key(&coords))
    }

    /// What to fetch now; nothing when all is read.
    pub fn asks(&self) -> Result<Vec<Ask>> {
        let ask = |node: &Node| {
            let mut ranges: Vec<Range> = match (&node.want, node.within) {
                (Want::Whole, None) => return Ok(Ask { number: node.number, ranges: None }),
                (Want::Whole, Some((offset, len))) => vec![span(offset, len)],
                (Want::Index, _) => vec![self.index_range(node)?],
                (Want::Data { inner, last }, _) => {
                    let last = last.iter().map(|&at| span(at, 1));
                    inner.iter().map(|(_, offset, len)| span(*offset, *len)).chain(last).collect()
                }
            };
            ranges.extend(node.guards.iter().map(|guard| guard.range));
            Ok(Ask { number: node.number, ranges: Some(ranges) })
        };
        self.nodes.iter().map(ask).collect()
    }

    fn index_range(&self, node: &Node) -> Result<Range> {
        let chain = self.chain(node.number)?;
        let Middle::Shard(shard) = &at_depth(&chain, node.depth).middle else {
            return Err(Error::new("internal", "an index of what is no shard"));
        };
        let n = shard.index_nbytes;
        Ok(match (shard.at_start, node.within) {
            (true, within) => span(within.map_or(0, |(offset, _)| offset), n),
            (false, None) => (-(n as i64), None),
            // A nested shard that is shorter than its index is found out when that is decoded.
            (false, Some((offset, len))) => span(offset + len.saturating_sub(n) as u64, n.min(len)),
        })
    }

    /// Takes what `asks` asked for (per ask the buffers, or `None` for a missing key), decodes what can be decoded.
    pub fn answer(&mut self, answers: Vec<Option<Vec<Held>>>, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let nodes = std::mem::take(&mut self.nodes);
        let (mut leaves, mut changed) = (Vec::new(), HashSet::new());
        for (node, parts) in nodes.into_iter().zip(answers) {
            let number = node.number;
            if !changed.contains(&number)
                && !self.take(node, parts, &mut leaves).map_err(|error| self.place(number, error))?
            {
                changed.insert(number);
            }
        }
        leaves.retain(|leaf: &Leaf| !changed.contains(&leaf.number));
        self.nodes.retain(|node| !changed.contains(&node.number));
        for number in changed {
            let rounds = self.rounds.entry(number).or_insert(0);
            *rounds += 1;
            if *rounds >= ROUNDS {
                let error = Error::new("store", "the shard changed while it was being read");
                return Err(self.place(number, error.got(format!("{ROUNDS} times"))));
            }
            let again = self.begin(number)?;
            self.nodes.push(again);
        }
        DecodeJob::run(self, leaves, poll)
    }

    /// `false`: the shard is not the one whose index is at hand.
    fn take(&mut self, node: Node, parts: Option<Vec<Held>>, leaves: &mut Vec<Leaf>) -> Result<bool> {
        let chain = self.chain(node.number)?;
        let here = at_depth(&chain, node.depth);
        let Some(mut parts) = parts else {
            if node.depth > 0 || matches!(node.want, Want::Data { .. }) {
                return Ok(false);
            }
            if !self.array.read_missing {
                return Err(Error::new("chunk_not_found", "a chunk is missing"));
            }
            decode::fill(here, &node.part, self.out);
            return Ok(true);
        };
        let guarded = parts.split_off(parts.len().saturating_sub(node.guards.len()));
        if guarded.len() != node.guards.len()
            || guarded.iter().zip(&node.guards).any(|(now, then)| **now != *then.bytes)
        {
            return Ok(false);
        }
        let short = || Error::new("internal", "a store answered with fewer ranges than it was asked for");
        match (&node.want, &here.middle) {
            (Want::Data { inner, last }, Middle::Shard(_)) => {
                if parts.len() != inner.len() + usize::from(last.is_some()) {
                    return Err(short());
                }
                if last.is_some() && parts.pop().is_none_or(|byte| byte.len() != 1) {
                    return Err(too_short(0, 0).got("a shard that ends there"));
                }
                for ((part, offset, len), held) in inner.iter().zip(parts) {
                    if held.len() != *len {
                        return Err(too_short(*offset, *len).got(format!("{} bytes", held.len())));
                    }
                    let (part, len) = (part.clone(), *len);
                    leaves.push(Leaf { number: node.number, depth: node.depth + 1, part, held, start: 0, len });
                }
            }
            (Want::Index, Middle::Shard(shard)) => {
                let bytes = parts.into_iter().next().ok_or_else(short)?;
                let index = decode::read_index(shard, Source::Read(&bytes))?;
                let range = self.index_range(&node)?;
                self.ask_inner(node, here, shard, &index, Guard { range, bytes })?;
            }
            (_, middle) => {
                let held = parts.into_iter().next().ok_or_else(short)?;
                if node.within.is_some_and(|(_, len)| len != held.len()) {
                    let (offset, len) = node.within.unwrap_or_default();
                    return Err(too_short(offset, len).got(format!("{} bytes", held.len())));
                }
                let len = held.len();
                match middle {
                    Middle::Shard(shard) => {
                        let index = decode::read_index(shard, Source::Read(&held))?;
                        self.split(&node, here, shard, &index, held, leaves)?;
                    }
                    Middle::Bytes { .. } => {
                        let Node { number, depth, part, .. } = node;
                        leaves.push(Leaf { number, depth, part, held, start: 0, len });
                    }
                }
            }
        }
        Ok(true)
    }

    /// The index of a shard is known: notes what to ask for next, and fills what is not stored.
    fn ask_inner(&mut self, node: Node, chain: &Chain, shard: &Shard, index: &[u8], guard: Guard) -> Result<()> {
        let Node { number, depth, part, within, mut guards, .. } = node;
        guards.push(guard);
        let base = within.map_or(0, |(offset, _)| offset);
        let spread = inner_parts(chain, shard, &part);
        let mut wanted = Vec::new();
        for i in 0..spread.len() {
            let (coords, part) = spread.get(i);
            match decode::entry(shard, index, &coords, within.map(|(_, len)| len as u64))? {
                None => decode::fill(&shard.inner, &part, self.out),
                Some((offset, len)) => wanted.push((part, base + offset, len)),
            }
        }
        if let Middle::Shard(inner) = &shard.inner.middle {
            for (part, offset, len) in wanted {
                let whole = wants_whole(self.small, &shard.inner, inner, &part, &shard.inner.shape);
                let want = if whole { Want::Whole } else { Want::Index };
                let guards = guards.clone();
                self.nodes.push(Node { number, depth: depth + 1, part, within: Some((offset, len)), guards, want });
            }
        } else if let Some(stop) = wanted.iter().map(|(_, offset, len)| offset + *len as u64).max() {
            // Without the size of the shard nothing else tells whether a chunk reaches into the index.
            let behind = if shard.at_start { 0 } else { shard.index_nbytes as u64 };
            let last = within.is_none().then(|| stop + behind - 1);
            self.nodes.push(Node { number, depth, part, within, guards, want: Want::Data { inner: wanted, last } });
        }
        Ok(())
    }

    /// The inner chunks of a shard that was fetched whole.
    fn split(
        &self,
        node: &Node,
        chain: &Chain,
        shard: &Shard,
        index: &[u8],
        held: Held,
        leaves: &mut Vec<Leaf>,
    ) -> Result<()> {
        let spread = inner_parts(chain, shard, &node.part);
        for i in 0..spread.len() {
            let (coords, part) = spread.get(i);
            match decode::entry(shard, index, &coords, Some(held.len() as u64))? {
                None => decode::fill(&shard.inner, &part, self.out),
                Some((offset, len)) => {
                    let (number, depth, held) = (node.number, node.depth + 1, held.clone());
                    leaves.push(Leaf { number, depth, part, held, start: offset as usize, len });
                }
            }
        }
        Ok(())
    }
}

fn span(offset: u64, len: usize) -> Range {
    (offset as i64, Some(offset.saturating_add(len as u64) as i64))
}

fn too_short(offset: u64, len: usize) -> Error {
    Error::new("shard_index", "a shard ends before an inner chunk that its index promises")
        .with(|fault| fault.codec = Some("sharding_indexed".into()))
        .expected(format!("{len} bytes at offset {offset}"))
}

/// Decodes the leaves of a wave on all threads.
struct DecodeJob {
    array: Arc<Array>,
    spread: Arc<Spread>,
    out: Memory<'static>,
    leaves: Vec<Leaf>,
    next: AtomicUsize,
    stopped: AtomicBool,
    error: Mutex<Option<Error>>,
    gate: Gate,
}

impl DecodeJob {
    fn run(waves: &Waves, leaves: Vec<Leaf>, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let Some(first) = leaves.first() else { return Ok(()) };
        let chain = waves.chain(first.number)?;
        let work = leaves.len().saturating_mul(at_depth(&chain, first.depth).nbytes);
        let helpers = if work < SMALL_WORK { 0 } else { threads().min(leaves.len()).saturating_sub(1) };
        let job = Arc::new(DecodeJob {
            array: waves.array.clone(),
            spread: waves.spread.clone(),
            out: waves.out,
            leaves,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            error: Mutex::new(None),
            gate: Gate::default(),
        });
        process().run(job.clone(), helpers, poll);
        let error = job.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), Err)
    }

    fn steps(&self, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        while !self.stopped.load(Ordering::Relaxed) {
            let Some(leaf) = self.leaves.get(self.next.fetch_add(1, Ordering::Relaxed)) else { break };
            let coords = self.spread.get(leaf.number).0;
            let chain = self.array.chain_at(&coords)?;
            let source = Source::Read(&leaf.held[leaf.start..leaf.start + leaf.len]);
            let how = Reading { out: self.out, keep: false };
            decode::read(at_depth(&chain, leaf.depth), source, &leaf.part, how).map_err(|error| {
                let chunk: Vec<u64> = coords.iter().map(|&i| i as u64).collect();
                error.at(&chunk, &self.array.key(&coords))
            })?;
            poll()?;
        }
        Ok(())
    }
}

impl Job for DecodeJob {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn work(&self, poll: &mut dyn FnMut() -> Result<()>) {
        if let Err(error) = self.steps(poll) {
            self.stop(error);
        }
    }

    fn stop(&self, error: Error) {
        self.stopped.store(true, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}
