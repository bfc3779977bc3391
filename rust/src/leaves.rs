//! Decode chunks of plain elements, received from a store that Python serves, into the caller's memory.

use std::ffi::OsString;
use std::sync::Arc;

use crate::array::{Array, Asking, Store};
use crate::cache::{self, CacheKey, Validator};
use crate::chain::{ArrayToBytes, Chain};
use crate::chunk_job::SMALL_WORK;
use crate::decode::{self, Reading};
use crate::error::{Error, Result};
use crate::part::{Part, Plan};
use crate::pool::{each, process, threads};
use crate::region::Memory;
use crate::store::{OwnedBytes, Source};

pub type Value = Arc<Vec<u8>>;

/// A selection, and the memory it is read into.
#[derive(Clone)]
pub struct Job {
    pub array: Arc<Array>,
    pub plan: Arc<Plan>,
    pub out: Memory<'static>,
}

/// A received or cached chunk without inner chunks.
pub struct Leaf {
    /// The number of the part of the request.
    pub number: usize,
    /// Number of nested shards around the chunk.
    pub depth: usize,
    pub part: Part,
    pub data: Data,
}

pub enum Data {
    Decoded(Value),
    /// `start..start + len` of the bytes; with a version, cached as the chunk at `offset` of the value.
    Stored {
        held: OwnedBytes,
        start: usize,
        len: usize,
        offset: u64,
        keep: Option<Arc<str>>,
    },
}

impl Leaf {
    /// A cached chunk that is still fresh.
    pub fn kept(number: usize, depth: usize, part: Part, value: Value) -> Leaf {
        process().cache.hit();
        Leaf { number, depth, part, data: Data::Decoded(value) }
    }
}

/// The chain of the inner chunks of inner chunks …
pub fn at_depth(chain: &Chain, depth: usize) -> &Chain {
    (0..depth).fold(chain, |chain, _| match &chain.middle {
        ArrayToBytes::Shard(shard) => &shard.inner,
        ArrayToBytes::Bytes { .. } => chain,
    })
}

impl Job {
    pub fn chain(&self, number: usize) -> Result<Arc<Chain>> {
        self.array.chain_at(&self.plan.get(number).0)
    }

    pub fn key(&self, number: usize) -> String {
        self.array.key(&self.plan.get(number).0)
    }

    pub fn placed(&self, number: usize, error: Error) -> Error {
        let coords = self.plan.get(number).0;
        error.at(&coords, &self.array.key(&coords))
    }

    pub fn asking(&self) -> &Asking {
        match &self.array.store {
            Store::Python(asking) => asking,
            Store::Local(_) => &Asking::NEAR,
        }
    }

    /// The name of the value of part `number` in the cache.
    pub fn name(&self, number: usize) -> Option<OsString> {
        self.asking().name(&self.key(number))
    }

    /// The cached entry for the value of part `number`, and its version.
    pub fn last_seen(&self, number: usize, cache_key: CacheKey) -> Option<(Value, Arc<str>)> {
        match process().cache.last_seen(&self.name(number)?, cache_key)? {
            (value, Validator::Tag(version)) => Some((value, version)),
            _ => None,
        }
    }

    /// Decodes leaves on all threads.
    pub fn decode(&self, leaves: &[Leaf], poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let Some(first) = leaves.first() else { return Ok(()) };
        let work = leaves.len().saturating_mul(at_depth(&*self.chain(first.number)?, first.depth).nbytes);
        let helpers = if work < SMALL_WORK { 0 } else { threads().min(leaves.len()).saturating_sub(1) };
        each(leaves.len(), helpers, poll, &|i| {
            let number = leaves[i].number;
            self.decode_one(&leaves[i]).map_err(|error| self.placed(number, error))
        })
    }

    fn decode_one(&self, leaf: &Leaf) -> Result<()> {
        let chain = self.chain(leaf.number)?;
        let chain = at_depth(&chain, leaf.depth);
        match &leaf.data {
            Data::Decoded(value) => decode::place(chain, value, &leaf.part, self.out),
            Data::Stored { held, start, len, offset, keep } => {
                let source = Source::Read(&held[*start..*start + *len]);
                let kept = keep.as_ref().filter(|_| cache::fits(chain.nbytes)).zip(self.name(leaf.number));
                let Some((version, name)) = kept else {
                    let how = Reading { out: self.out, keep: false };
                    return decode::read(chain, source, &leaf.part, how);
                };
                let mut value = vec![0; chain.nbytes];
                decode::check_size(chain, source)?;
                decode::decode_into(chain, source, &mut value)?;
                decode::place(chain, &value, &leaf.part, self.out);
                let validator = Validator::Tag(version.clone());
                process().cache.made(&name, chain.cache_key(*offset), &validator, value.into());
            }
        }
        Ok(())
    }
}
