//! One element of a chunk that is in the cache: no plan, no job, one look at the file.

use std::path::Path;

use crate::array::{Array, Store};
use crate::cache::{Cache, INDEX};
use crate::chain::{Chain, Middle};
use crate::decode;
use crate::pool::process;
use crate::region::Memory;
use crate::store::{Version, version_at};

/// Puts the element at `at`, which lies inside the array, into the first bytes of `out`, when the cache has it.
/// `false`: it has not, or whether it has takes the long way to find out.
pub fn cached(array: &Array, at: &[usize], out: Memory) -> bool {
    let Store::Local(root) = &array.store else { return false };
    let mut coords = Vec::with_capacity(at.len());
    let mut inside = Vec::with_capacity(at.len());
    for (cut, &position) in array.cuts.iter().zip(at) {
        let index = cut.find(position);
        coords.push(index);
        inside.push(position - cut.piece(index).0);
    }
    let Ok(chain) = array.chain_at(&coords) else { return false };
    if chain.is_raw() {
        return false; // such chunks are never kept
    }
    let path = root.join(array.key(&coords));
    let cache = &process().cache;
    if !cache.knows(&path) {
        return false;
    }
    let Some(version) = version_at(&path) else { return false };
    from_cache(&chain, inside, cache, &path, version, out).is_some()
}

fn from_cache(
    chain: &Chain,
    inside: Vec<usize>,
    cache: &Cache,
    path: &Path,
    version: Version,
    out: Memory,
) -> Option<()> {
    let inside = stored(chain, inside);
    let Middle::Shard(shard) = &chain.middle else { return take(chain, &inside, cache, (path, 0, version), out) };
    if matches!(shard.inner.middle, Middle::Shard(_)) {
        return None;
    }
    let index = cache.get(path, INDEX, version)?;
    let coords: Vec<usize> = inside.iter().zip(&shard.inner.shape).map(|(position, n)| position / n).collect();
    let (offset, _) = decode::entry(shard, &index, &coords, Some(version.size())).ok()??;
    let inside = inside.iter().zip(&shard.inner.shape).map(|(position, n)| position % n).collect();
    take(&shard.inner, &stored(&shard.inner, inside), cache, (path, offset, version), out)
}

/// A position in the order in which `chain` stores its axes.
fn stored(chain: &Chain, inside: Vec<usize>) -> Vec<usize> {
    match &chain.order {
        None => inside,
        Some(order) => order.iter().map(|&axis| inside[axis]).collect(),
    }
}

fn take(chain: &Chain, at: &[usize], cache: &Cache, of: (&Path, u64, Version), out: Memory) -> Option<()> {
    let chunk = cache.get(of.0, of.1, of.2)?;
    let start: usize = at.iter().zip(&chain.stored_strides).map(|(&i, &stride)| i * stride as usize).sum();
    out.slice_mut(0, chain.item)?.copy_from_slice(chunk.get(start..start + chain.item)?);
    Some(())
}
