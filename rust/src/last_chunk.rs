//! The chunk of which an element was read last: loops over elements read many elements of one chunk.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Weak};

use crate::chain::{ArrayToBytes, Chain};
use crate::decode;
use crate::pool::process;
use crate::region::Memory;
use crate::store::{Version, read_exact_at, version_at};

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
pub enum ChunkBytes {
    Chunk(Weak<Vec<u8>>),
    /// A raw chunk, from that byte on.
    File(Weak<File>, u64),
}

/// The location of an element: the start of its chunk, and its position in the chunk, in the axes of the array.
pub struct Place {
    pub start: Vec<usize>,
    pub inside: Vec<usize>,
}

impl LastChunk {
    /// `None` if a later change of the file may not show in its version.
    pub fn new(
        chain: Arc<Chain>,
        path: Arc<Path>,
        version: Version,
        place: Place,
        bytes: ChunkBytes,
    ) -> Option<LastChunk> {
        let plain_chain = plain_chain(&chain).filter(|_| !version.is_coarse())?;
        let strides: Vec<usize> = plain_chain.stored_strides.iter().map(|&stride| stride as usize).collect();
        let (mut shape, mut strides) = (plain_chain.shape.clone(), array_order(plain_chain, &strides));
        if matches!(chain.serializer, ArrayToBytes::Shard(_)) {
            (shape, strides) = (array_order(&chain, &shape), array_order(&chain, &strides));
        }
        Some(LastChunk { start: place.start, shape, strides, path, version, chain, bytes })
    }

    /// The element at `at`, when it lies in this chunk and the file is still the same.
    pub fn read(&self, at: &[usize], out: &mut Memory) -> Option<()> {
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

    pub fn read_unchecked(&self, at: &[usize], out: &mut Memory) -> Option<()> {
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

/// The chain of plain elements: of inner chunks, in a shard. `None` in shards of shards.
pub fn plain_chain(chain: &Chain) -> Option<&Chain> {
    match &chain.serializer {
        ArrayToBytes::Bytes { .. } => Some(chain),
        ArrayToBytes::Shard(shard) if matches!(shard.inner.serializer, ArrayToBytes::Bytes { .. }) => {
            Some(&shard.inner)
        }
        ArrayToBytes::Shard(_) => None,
    }
}

/// Convert lengths from the order in which `chain` stores its axes to that of the array.
pub fn array_order(chain: &Chain, of: &[usize]) -> Vec<usize> {
    let mut back = of.to_vec();
    for (&axis, &n) in chain.order.iter().flatten().zip(of) {
        back[axis] = n;
    }
    back
}
