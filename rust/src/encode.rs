//! Encode the caller's memory to stored chunks, one chunk at a time.

use crate::allocate;
use crate::chain::{ArrayToBytes, Chain, Shard};
use crate::codecs::{Codec, blosc, blosc_encode};
use crate::decode::{self, decode_into, finish, read_index};
use crate::error::{Error, Result};
use crate::part::{Part, Plan};
use crate::region::{CopyAxis, Memory, Steps, copy};
use crate::scratch::{self, Scratch};
use crate::store::Source;

/// The values to write, and options.
#[derive(Clone, Copy)]
pub struct WriteOptions {
    pub value: Memory<'static>,
    /// Store chunks that hold only the fill value.
    pub keep_empty: bool,
}

/// Whether `data` repeats `fill`, bit for bit; the first element nearly always decides.
pub fn is_fill(data: &[u8], fill: &[u8]) -> bool {
    // All elements are equal if the data equals itself shifted by one element.
    data.starts_with(fill) && data[fill.len()..] == data[..data.len() - fill.len()] || data.is_empty()
}

/// Copy the values of `part` into the chunk `chunk` (whole, in stored order).
pub fn gather(chain: &Chain, part: &Part, value: Memory, chunk: &mut [u8]) -> Result<()> {
    let target = Memory::of_mut(chunk);
    match part {
        Part::Box(axes) => {
            let (at, place, axes) = Part::copy_axes(axes, &chain.stored_strides);
            let turned = axes.into_iter().map(|CopyAxis { n, src, dst }| CopyAxis { n, src: dst, dst: src }).collect();
            copy(value, place, target, at, turned, chain.item);
        }
        Part::Points { ndim, at, out } => {
            let to = allocate::collected(decode::point_offsets(chain, *ndim, at))?;
            let from = allocate::collected(out.iter().copied())?;
            let axis = CopyAxis { n: out.len(), src: Steps::Table(from), dst: Steps::Table(to) };
            copy(value, 0, target, 0, vec![axis], chain.item);
        }
    }
    Ok(())
}

fn fill_chunk(chain: &Chain, chunk: &mut [u8]) {
    let axis = CopyAxis { n: chunk.len() / chain.item, src: Steps::Affine(0), dst: Steps::Affine(chain.item as isize) };
    copy(Memory::of(&chain.fill), 0, Memory::of_mut(chunk), 0, vec![axis], chain.item);
}

/// Append the encoded chunk of `old` (`None`: fill value) with `part` of the value merged into it; return whether
/// there is anything to store. `part` is in stored order.
///
/// What the end of the array cuts off stays too: another writer may have appended there.
pub fn merge(
    chain: &Chain,
    old: Option<Source>,
    part: &Part,
    options: WriteOptions,
    out: &mut Vec<u8>,
) -> Result<bool> {
    match &chain.serializer {
        ArrayToBytes::Shard(shard) => merge_shard(shard, old, part, options, out),
        ArrayToBytes::Bytes { .. } => merge_plain(chain, old, part, options, out),
    }
}

/// `part` in the order in which `chain` stores its axes.
pub fn stored_order(chain: &Chain, part: Part) -> Result<Part> {
    match &chain.order {
        None => Ok(part),
        Some(order) => part.permuted(order),
    }
}

fn merge_plain(
    chain: &Chain,
    old: Option<Source>,
    part: &Part,
    options: WriteOptions,
    out: &mut Vec<u8>,
) -> Result<bool> {
    if encode_rows(chain, part, options, out)? {
        return Ok(true);
    }
    with_merged(chain, old, part, options, |chunk| encode_plain(chain, chunk, out))
}

/// Append a chunk that `part` of the value covers and that is not contiguous there, encoded some rows at a time, so that what
/// is copied stays in the processor's cache until it is encoded. Whether that was possible (see `decode::read_rows`); if not, or if the chunk may hold nothing but fill values, nothing was appended.
fn encode_rows(chain: &Chain, part: &Part, options: WriteOptions, out: &mut Vec<u8>) -> Result<bool> {
    let ([(Codec::Blosc(config), _)], Part::Box(axes)) = (&chain.after[..], part) else { return Ok(false) };
    let Some((level, row)) = chain.rows() else { return Ok(false) };
    if !part.covers(&chain.stored_shape) || blosc::is_shared(chain.nbytes) || decode::contiguous(chain, part).is_some()
    {
        return Ok(false);
    }
    let fill = |begin: usize, rows: &mut [u8]| {
        let some = Part::rows(axes, level, begin / row, rows.len() / row);
        gather(chain, &some.ok_or_else(|| Error::new("internal", "a chunk lacks rows"))?, options.value, rows)
    };
    if !options.keep_empty {
        let mut first = scratch::take(row)?;
        fill(0, &mut first)?;
        if is_fill(&first, &chain.fill) {
            return Ok(false);
        }
    }
    let mut source = |begin: usize, rows: &mut [u8]| {
        fill(begin, rows)?;
        finish(chain, rows);
        Ok(())
    };
    blosc_encode::encode_rows(config, chain.nbytes, row, &mut source, out)
}

/// Pass the elements of a merged chunk that is not a shard, as input of its bytes → bytes codecs, to `sink`; return
/// whether there is anything to store (else `sink` is not called).
pub fn with_merged(
    chain: &Chain,
    old: Option<Source>,
    part: &Part,
    options: WriteOptions,
    sink: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<bool> {
    if let Some(place) = decode::contiguous(chain, part)
        && let Some(chunk) = options.value.slice(place, chain.nbytes)
    {
        if !options.keep_empty && is_fill(chunk, &chain.fill) {
            return Ok(false);
        }
        if chain.is_plain() {
            sink(chunk)?;
            return Ok(true);
        }
    }
    let mut chunk = chunk_of(chain, old, part)?;
    gather(chain, part, options.value, &mut chunk)?;
    if !options.keep_empty && is_fill(&chunk, &chain.fill) {
        return Ok(false);
    }
    finish(chain, &mut chunk);
    sink(&chunk)?;
    Ok(true)
}

/// A chunk to write `part` into: arbitrary where the part covers it, else the old values, else fill.
fn chunk_of(chain: &Chain, old: Option<Source>, part: &Part) -> Result<Scratch> {
    let mut chunk = scratch::take(chain.nbytes)?;
    if part.covers(&chain.stored_shape) {
        return Ok(chunk);
    }
    match old {
        None => fill_chunk(chain, &mut chunk),
        Some(source) => {
            decode::check_size(chain, source)?;
            decode_into(chain, source, &mut chunk)?;
        }
    }
    Ok(chunk)
}

/// Append the elements `chunk` (already in stored byte order), encoded.
fn encode_plain(chain: &Chain, chunk: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match &chain.after[..] {
        [] => allocate::append(out, chunk)?,
        [(only, _)] => only.encode(chunk, out)?,
        [(first, _), rest @ .., (last, _)] => {
            let mut data = Vec::new();
            first.encode(chunk, &mut data)?;
            for (codec, _) in rest {
                let mut next = Vec::new();
                codec.encode(&data, &mut next)?;
                data = next;
            }
            last.encode(&data, out)?;
        }
    }
    Ok(())
}

fn merge_shard(
    shard: &Shard,
    old: Option<Source>,
    part: &Part,
    options: WriteOptions,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let mut kept = match old {
        None => Vec::new(),
        Some(source) => stored_chunks(shard, &read_index(shard, source)?, source.len() as u64)?,
    };
    let plan = Plan::new(part, &shard.grid_axes)?;
    let begin = out.len();
    let base = if shard.at_start { shard.index_nbytes } else { 0 };
    allocate::extend(out, base)?;
    let mut index = allocate::repeated(shard.index_chain().nbytes, 0xff)?;
    let mut any = false;
    for number in shard.in_write_order(&plan) {
        let (coords, part) = plan.get(number)?;
        let at = shard.number(&coords);
        let before = kept.iter().position(|stored| stored.number == at).map(|i| kept.swap_remove(i));
        let before = before.zip(old).map(|(stored, source)| source.part(stored.offset as usize, stored.len));
        let start = out.len();
        let part = stored_order(&shard.inner, part)?;
        if merge(&shard.inner, before, &part, options, out)? {
            set_entry(&mut index, at, (start - begin) as u64, (out.len() - start) as u64);
            any = true;
        } else {
            out.truncate(start);
        }
    }
    if let Some(source) = old {
        kept.sort_by_key(|stored| stored.offset);
        for stored in &kept {
            let start = out.len();
            allocate::append(out, &source.part(stored.offset as usize, stored.len).read()?)?;
            set_entry(&mut index, stored.number, (start - begin) as u64, stored.len as u64);
            any = true;
        }
    }
    if !any {
        out.truncate(begin);
        return Ok(false);
    }
    let packed = encode_index(shard, &index)?;
    if shard.at_start {
        out[begin..begin + base].copy_from_slice(&packed);
    } else {
        allocate::append(out, &packed)?;
    }
    Ok(true)
}

/// An inner chunk that a shard holds.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    pub number: usize,
    pub offset: u64,
    pub len: usize,
}

/// Every inner chunk that the index of a shard of `nbytes` names.
pub fn stored_chunks(shard: &Shard, index: &[u8], nbytes: u64) -> Result<Vec<Stored>> {
    let mut found = Vec::new();
    let count = index.len() / 16;
    let mut coords = vec![0; shard.grid.len()];
    for number in 0..count {
        if let Some((offset, len)) = decode::entry(shard, index, &coords, Some(nbytes))? {
            found.push(Stored { number, offset, len });
        }
        for (i, &n) in coords.iter_mut().zip(&shard.grid).rev() {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
    Ok(found)
}

pub fn set_entry(index: &mut [u8], number: usize, offset: u64, len: u64) {
    index[number * 16..number * 16 + 8].copy_from_slice(&offset.to_ne_bytes());
    index[number * 16 + 8..number * 16 + 16].copy_from_slice(&len.to_ne_bytes());
}

/// The stored form of an index of native uint64s in C order.
pub fn encode_index(shard: &Shard, index: &[u8]) -> Result<Vec<u8>> {
    let chain = shard.index_chain();
    let mut stored = allocate::zeros(chain.nbytes)?;
    let strides = crate::part::strides(&chain.shape, 8);
    let order: Vec<usize> = chain.order.clone().unwrap_or_else(|| (0..chain.shape.len()).collect());
    let axes = order.iter().zip(&chain.stored_strides).map(|(&axis, &stride)| CopyAxis {
        n: chain.shape[axis],
        src: Steps::Affine(strides[axis]),
        dst: Steps::Affine(stride),
    });
    copy(Memory::of(index), 0, Memory::of_mut(&mut stored), 0, axes.collect(), 8);
    finish(chain, &mut stored);
    let mut out = allocate::with_room(shard.index_nbytes)?;
    encode_plain(chain, &stored, &mut out)?;
    Ok(out)
}
