//! Decode stored chunks into the caller's memory, one chunk at a time.

use std::sync::Arc;

use crate::allocate;
use crate::chain::{ArrayToBytes, Chain, Shard, Swap};
use crate::codecs::{Codec, blosc, zstd_prefix};
use crate::error::{Error, Result};
use crate::part::{AxisSelection, Part, Plan, strides};
use crate::pool::process;
use crate::region::{CopyAxis, Memory, Steps, copy};
use crate::scratch;
use crate::store::{Bytes, Source};

/// How a chunk is read.
#[derive(Clone, Copy)]
pub struct ReadOptions {
    pub out: Memory<'static>,
    /// Cache the decoded chunk for the next partial read.
    pub keep: bool,
}

/// Write the fill value to the output positions of `part`.
pub fn fill(chain: &Chain, part: &Part, out: Memory) -> Result<()> {
    let value = Memory::of(&chain.fill);
    match part {
        Part::Box(axes) => {
            let (_, place, axes) = Part::copy_axes(axes, &vec![0; axes.len()]);
            copy(value, 0, out, place, axes, chain.item);
        }
        Part::Points { out: places, .. } => {
            let to = allocate::collected(places.iter().copied())?;
            let axis = CopyAxis { n: places.len(), src: Steps::Affine(0), dst: Steps::Table(to) };
            copy(value, 0, out, 0, vec![axis], chain.item);
        }
    }
    Ok(())
}

/// Read `part` of a stored chunk into `options.out`.
pub fn read(chain: &Chain, source: Source, part: &Part, options: ReadOptions) -> Result<()> {
    let permuted;
    let part = match &chain.order {
        None => part,
        Some(order) => {
            permuted = part.permuted(order)?;
            &permuted
        }
    };
    match &chain.serializer {
        ArrayToBytes::Bytes { .. } => read_plain(chain, source, part, options),
        ArrayToBytes::Shard(shard) => read_shard(shard, source, part, options),
    }
}

fn read_shard(shard: &Shard, source: Source, part: &Part, options: ReadOptions) -> Result<()> {
    let index = read_index(shard, source)?;
    let plan = Plan::new(part, &shard.grid_axes)?;
    for number in 0..plan.len() {
        let (coords, part) = plan.get(number)?;
        match entry(shard, &index, &coords, Some(source.len() as u64))? {
            None => fill(&shard.inner, &part, options.out)?,
            Some((start, len)) => read(&shard.inner, source.part(start as usize, len), &part, options)?,
        }
    }
    Ok(())
}

// -- the shard index -------------------------------------------------------------------------------------------------

fn index_error(what: impl Into<String>) -> Error {
    Error::new("shard_index", what).with(|fault| fault.codec = Some("sharding_indexed".into()))
}

/// The decoded index of the shard `source`: offset and size of each inner chunk, native uint64s in C order.
pub fn read_index(shard: &Shard, source: Source) -> Result<Vec<u8>> {
    let n = shard.index_nbytes;
    if source.len() < n {
        return Err(index_error("a shard is shorter than its index")
            .expected(format!("an index of {n} bytes"))
            .got(format!("{} bytes", source.len()))
            .hint("The shard is truncated; restore it from a copy, or run `tessarr repair`"));
    }
    let start = if shard.at_start { 0 } else { source.len() - n };
    decode_index(shard, source.part(start, n))
}

/// Decode exactly the bytes of an index.
pub fn decode_index(shard: &Shard, source: Source) -> Result<Vec<u8>> {
    let chain = shard.index_chain();
    let mut index = allocate::zeros(chain.nbytes)?;
    let axes = chain.shape.iter().zip(strides(&chain.shape, 8));
    let part = axes.map(|(&n, stride)| AxisSelection::Range { start: 0, step: 1, n, out: 0, stride }).collect();
    let out = Memory::of_mut(&mut index);
    read_into(chain, source, &Part::Box(part), out).map_err(|error| match error {
        Error::Fault(fault) if matches!(fault.kind, "codec" | "checksum") => {
            let got = fault.got.unwrap_or_default();
            index_error(format!("a shard's index cannot be decoded: {}; got {got}", fault.what))
                .expected(fault.expected.unwrap_or_else(|| "a valid index".into()))
                .hint("The shard is corrupt; run `tessarr check --data`")
        }
        other => other,
    })?;
    Ok(index)
}

/// Read `part` of a chunk of plain elements, without the cache.
pub fn read_into(chain: &Chain, source: Source, part: &Part, out: Memory) -> Result<()> {
    let permuted;
    let part = match &chain.order {
        None => part,
        Some(order) => {
            permuted = part.permuted(order)?;
            &permuted
        }
    };
    let data = decoded(chain, source)?;
    scatter(chain, &data, 0, part, out)
}

/// Where inner chunk `coords` lies in the shard (offset, size); `None` when it is not stored.
pub fn entry(shard: &Shard, index: &[u8], coords: &[usize], nbytes: Option<u64>) -> Result<Option<(u64, usize)>> {
    const MISSING: u64 = u64::MAX;
    let at = shard.number(coords) * 16;
    let word = |at: usize| index[at..at + 8].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let (offset, size) = (word(at), word(at + 8));
    if offset == MISSING && size == MISSING {
        return Ok(None);
    }
    let begin = if shard.at_start { shard.index_nbytes as u64 } else { 0 };
    let end = nbytes.map_or(i64::MAX as u64, |n| if shard.at_start { n } else { n - shard.index_nbytes as u64 });
    let exact = shard.inner.encoded_size;
    let fits = offset.checked_add(size).is_some_and(|stop| offset >= begin && stop <= end && size > 0);
    if !fits || exact.is_some_and(|exact| size != exact as u64) {
        let exact = exact.map_or(String::new(), |n| format!(" of {n} bytes"));
        return Err(index_error(format!("the shard's index entry of inner chunk {coords:?} is invalid"))
            .expected(format!("a range within bytes {begin}-{end}{exact}"))
            .got(format!("offset {offset}, size {size}"))
            .hint("The shard is corrupt; run `tessarr check --data`"));
    }
    Ok(Some((offset, size as usize)))
}

// -- one chunk of plain elements -------------------------------------------------------------------------------------

fn read_plain(chain: &Chain, source: Source, part: &Part, options: ReadOptions) -> Result<()> {
    check_size(chain, source)?;
    if chain.after.is_empty() {
        return read_raw(chain, source, part, options.out);
    }
    if let Some(place) = contiguous(chain, part)
        && let Some(target) = options.out.slice_mut(place, chain.nbytes)
    {
        return decode_into(chain, source, target);
    }
    if options.keep
        && let Some((local, offset)) = source.origin()
    {
        let make = || {
            let data = peel(chain, source)?;
            let (codec, size) = &chain.after[0];
            codec.check_plausible(&data, *size)?;
            let mut value = allocate::zeros(chain.nbytes)?;
            codec.decode_into(&data, &mut value)?;
            finish(chain, &mut value);
            Ok(value)
        };
        let (name, cache_key, validator) = (local.path.as_os_str(), chain.cache_key(offset), local.version.into());
        if let Some(value) = process().cache.get_or_make_again(name, cache_key, &validator, chain.nbytes, make)? {
            return scatter(chain, &value, 0, part, options.out);
        }
    }
    read_some(chain, source, part, options.out)
}

/// Decode all of a chunk to new memory, in stored order.
pub fn whole(chain: &Chain, source: Source) -> Result<Vec<u8>> {
    check_size(chain, source)?;
    let mut value = allocate::zeros(chain.nbytes)?;
    decode_into(chain, source, &mut value)?;
    Ok(value)
}

/// Copy `part` of a decoded chunk to the output.
pub fn place(chain: &Chain, data: &[u8], part: &Part, out: Memory) -> Result<()> {
    match &chain.order {
        None => scatter(chain, data, 0, part, out),
        Some(order) => scatter(chain, data, 0, &part.permuted(order)?, out),
    }
}

/// Decode as little of a chunk as `part` needs.
fn read_some(chain: &Chain, source: Source, part: &Part, out: Memory) -> Result<()> {
    let Some((start, stop)) = partial(chain, part) else {
        if read_rows(chain, source, part, out) {
            return Ok(());
        }
        let data = decoded(chain, source)?;
        return scatter(chain, &data, 0, part, out);
    };
    let (begin, mut bytes) = decode_some(chain, source, start, stop)?;
    finish(chain, &mut bytes);
    scatter(chain, &bytes, begin, part, out)
}

/// Read a part of a stored chunk some rows at a time, so that what is decoded stays in the processor's cache
/// until it is copied. Whether that was possible: the codec has blocks, and no other thread is idle, which could decode some.
fn read_rows(chain: &Chain, source: Source, part: &Part, out: Memory) -> bool {
    let (Part::Box(axes), Some((level, row))) = (part, chain.rows()) else { return false };
    if !is_blosc_file(chain, source) || blosc::is_shared(chain.nbytes) {
        return false;
    }
    let (first, last) = axes[level].bounds();
    let range = first * row..(last + 1) * row;
    blosc::decode_file_rows(source, chain.nbytes, range, row, &mut |begin, rows| {
        finish(chain, rows);
        let Some(some) = Part::rows(axes, level, begin / row, rows.len() / row) else { return Ok(()) };
        scatter(chain, rows, 0, &some, out)
    })
    .is_ok()
}

/// Decode at least the bytes `start..stop` of a chunk; the result begins at the returned position.
fn decode_some(chain: &Chain, source: Source, start: usize, stop: usize) -> Result<(usize, scratch::Scratch)> {
    if is_blosc_file(chain, source)
        && let Ok(found) = blosc::decode_file_part(source, chain.nbytes, start, stop)
    {
        return Ok(found);
    }
    let data = peel(chain, source)?;
    chain.after[0].0.check_plausible(&data, chain.nbytes)?;
    match chain.after.first() {
        Some((Codec::Zstd { .. }, _)) => Ok((0, zstd_prefix(&data, chain.nbytes, stop)?)),
        _ => blosc::decode_part(&data, chain.nbytes, start, stop),
    }
}

/// Whether blocks of blosc can be read from a file one by one.
fn is_blosc_file(chain: &Chain, source: Source) -> bool {
    source.is_file() && matches!(chain.after[..], [(Codec::Blosc(_), _)])
}

/// Refuse a stored chunk whose size is not the fixed encoded size of its chain.
pub fn check_size(chain: &Chain, source: Source) -> Result<()> {
    match chain.encoded_size {
        Some(exact) if exact != source.len() => Err(wrong_size(chain, exact, source.len())),
        _ => Ok(()),
    }
}

fn wrong_size(chain: &Chain, expected: usize, got: usize) -> Error {
    let name = chain.after.last().map_or("bytes", |(codec, _)| codec.name());
    Error::codec(name, "a stored chunk has the wrong size")
        .expected(format!("{expected} bytes for shape {:?} of {}-byte elements", chain.stored_shape, chain.item))
        .got(format!("{got} bytes"))
        .hint("The stored value is truncated or belongs to another array; run `tessarr check --data`")
}

/// The byte range of the chunk that holds all of `part`, when decoding less than the chunk is possible and worthwhile:
/// the blocks of a blosc chunk that are touched, or a zstd chunk from its beginning on.
fn partial(chain: &Chain, part: &Part) -> Option<(usize, usize)> {
    let Part::Box(axes) = part else { return None };
    let first = &chain.after.first()?.0;
    if !matches!(first, Codec::Blosc(_) | Codec::Zstd { checksum: false, .. }) {
        return None;
    }
    let (low, high) = span(chain, axes);
    let work = if matches!(first, Codec::Zstd { .. }) { high } else { 2 * (high - low) };
    (work <= chain.nbytes / 4 * 3 && chain.nbytes > 64 << 10).then_some((low, high))
}

fn span(chain: &Chain, axes: &[AxisSelection]) -> (usize, usize) {
    let (mut low, mut high) = (0, chain.item);
    for (axis, &stride) in axes.iter().zip(&chain.stored_strides) {
        let (first, last) = axis.bounds();
        low += first * stride as usize;
        high += last * stride as usize;
    }
    (low, high)
}

/// The output offset of the whole chunk, if it is contiguous there in stored order.
pub fn contiguous(chain: &Chain, part: &Part) -> Option<isize> {
    let Part::Box(axes) = part else { return None };
    let mut place = 0;
    for ((axis, &n), &width) in axes.iter().zip(&chain.stored_shape).zip(&chain.stored_strides) {
        match axis {
            AxisSelection::Range { start: 0, step, n: m, out, stride }
                if *m == n && (n == 1 || *step == 1 && *stride == width) =>
            {
                place += out;
            }
            _ => return None,
        }
    }
    Some(place)
}

/// Decode every bytes → bytes codec but the first.
fn peel<'a>(chain: &Chain, source: Source<'a>) -> Result<Bytes<'a>> {
    let mut data = source.read()?;
    for (codec, size) in chain.after.iter().skip(1).rev() {
        data = undo(codec, *size, data)?;
    }
    Ok(data)
}

fn undo<'a>(codec: &Codec, size: usize, data: Bytes<'a>) -> Result<Bytes<'a>> {
    if let Codec::Checksum(checksum) = codec {
        let body = checksum.check(&data)?.len();
        let start = if checksum.at_start { 4 } else { 0 };
        if size != usize::MAX && body != size {
            return Err(Error::size(codec.name(), size, body));
        }
        return Ok(data.sub(start, body));
    }
    codec.check_plausible(&data, size)?;
    let mut out = scratch::take(size)?;
    codec.decode_into(&data, &mut out)?;
    Ok(Bytes::Scratch(out))
}

/// All elements of the chunk in memory byte order, in stored order.
fn decoded<'a>(chain: &Chain, source: Source<'a>) -> Result<Bytes<'a>> {
    let mut data = peel(chain, source)?;
    if let Some((codec, size)) = chain.after.first() {
        data = undo(codec, *size, data)?;
    }
    if data.len() != chain.nbytes {
        return Err(wrong_size(chain, chain.nbytes, data.len()));
    }
    in_memory_order(chain, data)
}

/// Convert `data` to memory byte order; copy only borrowed data that must change.
fn in_memory_order<'a>(chain: &Chain, data: Bytes<'a>) -> Result<Bytes<'a>> {
    if !needs_finish(chain, &data) {
        return Ok(data);
    }
    match data {
        Bytes::Scratch(mut bytes) => {
            finish(chain, &mut bytes);
            Ok(Bytes::Scratch(bytes))
        }
        other => {
            let mut bytes = scratch::take(other.len())?;
            bytes.copy_from_slice(&other);
            finish(chain, &mut bytes);
            Ok(Bytes::Scratch(bytes))
        }
    }
}

pub fn decode_into(chain: &Chain, source: Source, target: &mut [u8]) -> Result<()> {
    let by_blocks = is_blosc_file(chain, source) && blosc::is_shared(target.len());
    match chain.after.first() {
        Some(_) if by_blocks && blosc::decode_file(source, target).is_ok() => {}
        None => source.read_into(target)?,
        Some((codec, _)) => {
            let data = peel(chain, source)?;
            codec.decode_into(&data, target)?;
        }
    }
    finish(chain, target);
    Ok(())
}

fn needs_finish(chain: &Chain, data: &[u8]) -> bool {
    match &chain.serializer {
        ArrayToBytes::Bytes { swap, boolean } => !swap.is_empty() || *boolean && data.iter().any(|&byte| byte > 1),
        ArrayToBytes::Shard(_) => false,
    }
}

/// Convert elements from stored to memory byte order, or (a reversal being its own inverse) back.
pub fn finish(chain: &Chain, data: &mut [u8]) {
    if let ArrayToBytes::Bytes { swap, boolean } = &chain.serializer {
        swap_bytes(swap, chain.item, data);
        if *boolean {
            // Any byte but 0 is true.
            data.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }
}

fn swap_bytes(swaps: &[Swap], item: usize, data: &mut [u8]) {
    match swaps {
        [] => {}
        [Swap { offset: 0, unit, count }] if unit * count == item => match unit {
            2 => reverse::<2>(data),
            4 => reverse::<4>(data),
            8 => reverse::<8>(data),
            _ => data.chunks_exact_mut(*unit).for_each(<[u8]>::reverse),
        },
        _ => {
            for element in data.chunks_exact_mut(item) {
                for swap in swaps {
                    let field = &mut element[swap.offset..swap.offset + swap.unit * swap.count];
                    field.chunks_exact_mut(swap.unit).for_each(<[u8]>::reverse);
                }
            }
        }
    }
}

fn reverse<const W: usize>(data: &mut [u8]) {
    for value in data.as_chunks_mut::<W>().0 {
        value.reverse();
    }
}

/// Copy `part` from `data` (the chunk's elements from byte `begin` on) to the output.
fn scatter(chain: &Chain, data: &[u8], begin: usize, part: &Part, out: Memory) -> Result<()> {
    let source = Memory::of(data);
    match part {
        Part::Box(axes) => {
            let (from, place, axes) = Part::copy_axes(axes, &chain.stored_strides);
            copy(source, from - begin as isize, out, place, axes, chain.item);
        }
        Part::Points { ndim, at, out: places } => {
            let from = allocate::collected(point_offsets(chain, *ndim, at).map(|offset| offset - begin as isize))?;
            let to = allocate::collected(places.iter().copied())?;
            let axis = CopyAxis { n: places.len(), src: Steps::Table(from), dst: Steps::Table(to) };
            copy(source, 0, out, 0, vec![axis], chain.item);
        }
    }
    Ok(())
}

pub fn point_offsets<'a>(chain: &'a Chain, ndim: usize, at: &'a [usize]) -> impl ExactSizeIterator<Item = isize> + 'a {
    let strides = &chain.stored_strides;
    at.chunks(ndim).map(move |point| point.iter().zip(strides).map(|(&p, &stride)| p as isize * stride).sum())
}

// -- raw chunks ------------------------------------------------------------------------------------------------------

/// The cost of an additional read, expressed in bytes.
const READ_COST: usize = 6 << 10;

fn read_raw(chain: &Chain, source: Source, part: &Part, out: Memory) -> Result<()> {
    if let Some(place) = contiguous(chain, part)
        && let Some(target) = out.slice_mut(place, chain.nbytes)
    {
        return decode_into(chain, source, target);
    }
    match part {
        Part::Box(axes) if source.is_file() || !chain.is_plain() => read_box(chain, source, axes, 0, out),
        Part::Points { ndim, at, out: places } if places.len() * READ_COST < chain.nbytes => {
            for (i, offset) in point_offsets(chain, *ndim, at).enumerate() {
                let data = in_memory_order(chain, source.part(offset as usize, chain.item).read()?)?;
                copy(Memory::of(&data), 0, out, places[i], Vec::new(), chain.item);
            }
            Ok(())
        }
        _ => {
            let data = decoded(chain, source)?;
            scatter(chain, &data, 0, part, out)
        }
    }
}

/// Read a box: its whole span at once, or one position of axis `level` at a time, whichever is cheaper.
fn read_box(chain: &Chain, source: Source, axes: &[AxisSelection], mut level: usize, out: Memory) -> Result<()> {
    let (low, high) = span(chain, axes);
    let selected: usize = axes.iter().map(AxisSelection::len).product::<usize>() * chain.item;
    while level < axes.len() && axes[level].len() == 1 {
        level += 1;
    }
    if level >= axes.len() || high - low <= (2 * selected).max(axes[level].len() * READ_COST) {
        let data = in_memory_order(chain, source.part(low, high - low).read()?)?;
        let (from, place, axes) = Part::copy_axes(axes, &chain.stored_strides);
        copy(Memory::of(&data), from - low as isize, out, place, axes, chain.item);
        return Ok(());
    }
    let mut axes = axes.to_vec();
    let whole = axes[level].clone();
    for i in 0..whole.len() {
        axes[level] = whole.only(i);
        read_box(chain, source, &axes, level + 1, out)?;
    }
    Ok(())
}

/// The index of a shard, cached for files.
pub fn cached_index(shard: &Shard, source: Source) -> Result<Arc<Vec<u8>>> {
    match source.origin() {
        Some((local, offset)) => {
            let (cache_key, validator) = (shard.inner.index_cache_key(offset), local.version.into());
            process().cache.get_or_make(local.path.as_os_str(), cache_key, &validator, || read_index(shard, source))
        }
        None => Ok(Arc::new(read_index(shard, source)?)),
    }
}
