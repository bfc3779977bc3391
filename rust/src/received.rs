//! Decode chunks of plain elements, received from a store that Python serves, into the caller's memory.

use std::ffi::OsString;
use std::sync::Arc;

use crate::array::{Array, PythonStore, Store};
use crate::cache::{self, CacheKey, Validator};
use crate::chain::{ArrayToBytes, Chain};
use crate::chunk_job::SMALL_WORK;
use crate::decode::{self, ReadOptions};
use crate::error::{Error, Result};
use crate::part::{Part, Plan};
use crate::pool::{each, process, threads};
use crate::region::Memory;
use crate::store::{OwnedBytes, Source};

pub type Value = Arc<Vec<u8>>;

/// A selection, and the memory that it is read into.
#[derive(Clone)]
pub struct ReadTarget {
    pub array: Arc<Array>,
    pub plan: Arc<Plan>,
    pub out: Memory<'static>,
}

/// A received or cached chunk without inner chunks.
pub struct ReceivedChunk {
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
        bytes: OwnedBytes,
        start: usize,
        len: usize,
        offset: u64,
        keep: Option<Arc<str>>,
    },
}

impl ReceivedChunk {
    /// A cached chunk that is still fresh.
    pub fn cached(number: usize, depth: usize, part: Part, value: Value) -> ReceivedChunk {
        process().cache.hit();
        ReceivedChunk { number, depth, part, data: Data::Decoded(value) }
    }
}

/// The chain of the inner chunks of inner chunks …
pub fn at_depth(chain: &Chain, depth: usize) -> &Chain {
    (0..depth).fold(chain, |chain, _| match &chain.serializer {
        ArrayToBytes::Shard(shard) => &shard.inner,
        ArrayToBytes::Bytes { .. } => chain,
    })
}

impl ReadTarget {
    pub fn chain(&self, number: usize) -> Result<Arc<Chain>> {
        self.array.chain_at(&self.plan.coords(number))
    }

    pub fn key(&self, number: usize) -> String {
        self.array.key(&self.plan.coords(number))
    }

    pub fn located(&self, number: usize, error: Error) -> Error {
        let coords = self.plan.coords(number);
        error.at(&coords, &self.array.key(&coords))
    }

    pub fn python_store(&self) -> &PythonStore {
        match &self.array.store {
            Store::Python(python_store) => python_store,
            Store::Local(_) => &PythonStore::IN_PROCESS,
        }
    }

    /// The name of the value of part `number` in the cache.
    pub fn name(&self, number: usize) -> Option<OsString> {
        self.python_store().name(&self.key(number))
    }

    /// The cached entry for the value of part `number`, and its version.
    pub fn unvalidated(&self, number: usize, cache_key: CacheKey) -> Option<(Value, Arc<str>)> {
        match process().cache.unvalidated(&self.name(number)?, cache_key)? {
            (value, Validator::Tag(version)) => Some((value, version)),
            _ => None,
        }
    }

    /// Decode `chunks` on all threads.
    pub fn decode(&self, chunks: &[ReceivedChunk], poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let Some(first) = chunks.first() else { return Ok(()) };
        let work = chunks.len().saturating_mul(at_depth(&*self.chain(first.number)?, first.depth).nbytes);
        let helpers = if work < SMALL_WORK { 0 } else { threads().min(chunks.len()).saturating_sub(1) };
        each(chunks.len(), helpers, poll, &|i| {
            let number = chunks[i].number;
            self.decode_one(&chunks[i]).map_err(|error| self.located(number, error))
        })
    }

    fn decode_one(&self, chunk: &ReceivedChunk) -> Result<()> {
        let chain = self.chain(chunk.number)?;
        let chain = at_depth(&chain, chunk.depth);
        match &chunk.data {
            Data::Decoded(value) => decode::place(chain, value, &chunk.part, self.out)?,
            Data::Stored { bytes, start, len, offset, keep } => {
                let source = Source::Read(&bytes[*start..*start + *len]);
                let cached = keep.as_ref().filter(|_| cache::fits(chain.nbytes)).zip(self.name(chunk.number));
                let Some((version, name)) = cached else {
                    let options = ReadOptions { out: self.out, keep: false };
                    return decode::read(chain, source, &chunk.part, options);
                };
                let value = decode::whole(chain, source)?;
                decode::place(chain, &value, &chunk.part, self.out)?;
                let validator = Validator::Tag(version.clone());
                process().cache.insert_after_miss(&name, chain.cache_key(*offset), &validator, value.into());
            }
        }
        Ok(())
    }
}
