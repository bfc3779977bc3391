//! Encode the blosc 1 container (see `blosc.rs`), its blocks on idle threads too.

use std::sync::Mutex;

use super::blosc::{BLOCK_BYTES, Compressor, Config, HEADER, MAX_SPLITS, MIN_SPLIT, Rows, SHARED_BYTES, Shuffle};
use super::{append, blosclz, deflate, lz4_block, shuffle};
use crate::allocate;
use crate::error::{Error, Result};
use crate::pool::{locked, share, spare_threads};
use crate::scratch;

/// Decoded bytes of a stream, up to which lz4 addresses a block by 16 bits, which is faster.
const STREAM_BYTES: usize = 64 << 10;

/// Append a frame of `data` to `out`.
pub fn encode(config: &Config, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let frame = NewFrame::begin(config, data.len(), out)?;
    if config.level > 0 && !data.is_empty() {
        let blocks: Vec<&[u8]> = data.chunks(frame.blocksize).collect();
        let helpers = if data.len() > SHARED_BYTES { spare_threads().min(blocks.len() - 1) } else { 0 };
        let mut encoded: Vec<Mutex<Vec<u8>>> = Vec::new();
        if helpers > 0 {
            encoded.resize_with(blocks.len(), Mutex::default);
            share(blocks.len(), helpers, &|i| frame.encode(blocks[i], &mut locked(&encoded[i])))?;
        }
        for (i, block) in blocks.iter().enumerate() {
            frame.place(i, out);
            match encoded.get(i) {
                Some(encoded) => allocate::append(out, &locked(encoded))?,
                None => frame.encode(block, out)?,
            }
            if frame.is_longer(out) {
                break;
            }
        }
    }
    if config.level == 0 || frame.is_longer(out) {
        // Compression gains nothing: store the data uncompressed and unshuffled.
        out.truncate(frame.begin + HEADER);
        out[frame.begin + 2] |= 2;
        allocate::append(out, data)?;
    }
    frame.finish(out);
    Ok(())
}

/// Append a frame of `total` bytes, rows of `row` bytes that `source` makes some at a time, so that they stay in the processor's
/// cache until they are encoded. `false`: compression gains nothing; `out` is as before.
pub fn encode_rows(config: &Config, total: usize, row: usize, source: Rows, out: &mut Vec<u8>) -> Result<bool> {
    if config.level == 0 {
        return Ok(false);
    }
    let frame = NewFrame::begin(config, total, out)?;
    let mut buffer = scratch::take(frame.blocksize + row)?;
    let (mut made, mut held) = (0, 0);
    for (i, start) in (0..total).step_by(frame.blocksize).enumerate() {
        let size = frame.blocksize.min(total - start);
        if held < size {
            let more = (size - held).div_ceil(row) * row;
            source(made, &mut buffer[held..held + more])?;
            (made, held) = (made + more, held + more);
        }
        frame.place(i, out);
        frame.encode(&buffer[..size], out)?;
        if frame.is_longer(out) {
            out.truncate(frame.begin);
            return Ok(false);
        }
        buffer.copy_within(size..held, 0);
        held -= size;
    }
    frame.finish(out);
    Ok(true)
}

/// A frame that is being appended.
struct NewFrame<'a> {
    config: &'a Config,
    nbytes: usize,
    blocksize: usize,
    split: bool,
    begin: usize,
}

impl NewFrame<'_> {
    /// Append the header and the table of blocks.
    fn begin<'a>(config: &'a Config, nbytes: usize, out: &mut Vec<u8>) -> Result<NewFrame<'a>> {
        let size = u32::try_from(nbytes).ok().filter(|&n| n <= i32::MAX as u32 - HEADER as u32);
        let Some(size) = size else {
            return Err(Error::codec("blosc", "a chunk is too large for blosc").got(format!("{nbytes} bytes")));
        };
        let blocksize = block_size(config, nbytes);
        let frame = NewFrame { config, nbytes, blocksize, split: splits(config, blocksize), begin: out.len() };
        let format = match config.compressor {
            Compressor::BloscLz => 0,
            Compressor::Lz4 | Compressor::Lz4Hc => 1,
            Compressor::Snappy => 2,
            Compressor::Zlib => 3,
            Compressor::Zstd => 4u8,
        };
        let shuffle_flag = match config.shuffle {
            Shuffle::No => 0,
            Shuffle::Byte => 1,
            Shuffle::Bit => 4u8,
        };
        let flags = shuffle_flag | u8::from(!frame.split) << 4 | format << 5;
        out.extend_from_slice(&[2, 1, flags, config.typesize as u8]);
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&(blocksize as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        if config.level > 0 && nbytes > 0 {
            allocate::extend(out, 4 * nbytes.div_ceil(blocksize))?;
        }
        Ok(frame)
    }

    /// State that block `i` begins at the end of `out`.
    fn place(&self, i: usize, out: &mut [u8]) {
        let (offset, at) = ((out.len() - self.begin) as u32, self.begin + HEADER + 4 * i);
        out[at..at + 4].copy_from_slice(&offset.to_le_bytes());
    }

    fn encode(&self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let nsplits = if self.split && block.len() == self.blocksize { self.config.typesize } else { 1 };
        encode_block(self.config, block, nsplits, out)
    }

    /// Whether the frame is not shorter than what it encodes.
    fn is_longer(&self, out: &[u8]) -> bool {
        out.len() - self.begin >= HEADER + self.nbytes
    }

    fn finish(&self, out: &mut [u8]) {
        let size = (out.len() - self.begin) as u32;
        out[self.begin + 12..self.begin + 16].copy_from_slice(&size.to_le_bytes());
    }
}

/// Choose a multiple of the element size, large enough to compress well, small enough that a shuffled block fits into the
/// CPU cache and a partial read need not decode the whole chunk.
fn block_size(config: &Config, nbytes: usize) -> usize {
    let target = match config.blocksize {
        0 if splits_streams(config) => BLOCK_BYTES.min(STREAM_BYTES * config.typesize),
        0 => BLOCK_BYTES,
        given => given.max(MIN_SPLIT),
    };
    let size = target.min(nbytes).max(1);
    if size > config.typesize { size / config.typesize * config.typesize } else { size }
}

/// Whether blocks of whole elements are one stream per byte of an element.
fn splits_streams(config: &Config) -> bool {
    let fast = matches!(config.compressor, Compressor::BloscLz | Compressor::Lz4 | Compressor::Snappy);
    fast && config.typesize <= MAX_SPLITS && config.shuffle != Shuffle::No
}

fn splits(config: &Config, blocksize: usize) -> bool {
    splits_streams(config) && blocksize / config.typesize >= MIN_SPLIT && blocksize.is_multiple_of(config.typesize)
}

fn encode_block(config: &Config, block: &[u8], nsplits: usize, out: &mut Vec<u8>) -> Result<()> {
    let mut shuffled;
    let block = match config.shuffle {
        Shuffle::Byte if config.typesize > 1 => {
            shuffled = scratch::take(block.len())?;
            shuffle::shuffle(config.typesize, block, &mut shuffled);
            &*shuffled
        }
        Shuffle::Bit => {
            shuffled = scratch::take(block.len())?;
            shuffle::bitshuffle(config.typesize, block, &mut shuffled);
            &*shuffled
        }
        _ => block,
    };
    for stream in block.chunks_exact(block.len() / nsplits) {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        let made = encode_stream(config, stream, out);
        if made.is_none_or(|made| made >= stream.len()) {
            out.truncate(at + 4);
            allocate::append(out, stream)?;
        }
        let size = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&size.to_le_bytes());
    }
    Ok(())
}

/// Append the compressed stream and return its size; `None` for incompressible data.
fn encode_stream(config: &Config, data: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    use lz4::block::{CompressionMode, compress_bound, compress_to_buffer};
    let failed = || Error::codec("blosc", "a stream cannot be compressed");
    let start = out.len();
    let level = config.level;
    match config.compressor {
        Compressor::BloscLz => append(out, data.len(), |t| blosclz::encode(data, t).ok_or(()), |()| failed()).ok()?,
        Compressor::Lz4 | Compressor::Lz4Hc => {
            if let Some(value) = lz4_block::repeated(data) {
                lz4_block::encode_repeated(value, data.len(), out).ok()?;
                return Some(out.len() - start);
            }
            let mode = match config.compressor {
                Compressor::Lz4 => CompressionMode::FAST(10 - level as i32),
                _ => CompressionMode::HIGHCOMPRESSION(level as i32),
            };
            // Into memory that need not be cleared for each stream.
            let mut made = scratch::take(compress_bound(data.len()).ok()?).ok()?;
            let size = compress_to_buffer(data, Some(mode), false, &mut made).ok()?;
            allocate::append(out, &made[..size]).ok()?;
        }
        Compressor::Snappy => {
            let bound = snap::raw::max_compress_len(data.len());
            append(out, bound, |t| snap::raw::Encoder::new().compress(data, t), |_| failed()).ok()?;
        }
        Compressor::Zlib => deflate::zlib(level as i32, data, out).ok()?,
        Compressor::Zstd => {
            let level = match level {
                9 => zstd_safe::max_c_level(),
                8 => zstd_safe::max_c_level() - 2,
                level => level as i32 * 2 - 1,
            };
            super::encode_zstd(level, false, data, out).ok()?;
        }
    }
    Some(out.len() - start)
}
