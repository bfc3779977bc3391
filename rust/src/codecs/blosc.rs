//! The blosc 1 container, read in safe Rust; `blosc_encode.rs` writes it.
//!
//! 16 bytes of header (version, compressor version, flags, typesize, decoded size, block size, encoded size), then one
//! int32 per block with its offset, then the blocks. A block is one stream, or one per byte of an element; a
//! stream is an int32 with its encoded size, then its bytes, which are uncompressed when that is the decoded size.
//! Every length is checked against the buffer it points into and against the decoded size the chunk must have.
//!
//! Blocks are decoded on idle threads too. Of a frame in a file only the blocks that are wanted are read, each by
//! the thread that decodes it.

use std::ops::Range;
use std::sync::Mutex;

use serde_json::Value;

use super::{blosclz, deflate, integer, lz4_block, shuffle};
use crate::error::{Error, Result};
use crate::pool::{locked, share, spare_threads};
use crate::scratch;
use crate::store::{Bytes, Source};

pub const HEADER: usize = 16;
/// Of a frame in a file, the bytes that are read first: the header, and the offsets of a thousand blocks.
const HEAD_BYTES: usize = 4 << 10;
/// Blocks of more bytes together are shared with other threads.
pub const SHARED_BYTES: usize = 128 << 10;
/// Decoded bytes of a block, unless given.
pub const BLOCK_BYTES: usize = 256 << 10;
/// Decoded rows that are passed on: at most a block and a row stay, so that all of it fits into the cache of a processor.
const ENOUGH: usize = BLOCK_BYTES / 2;
pub const MAX_SPLITS: usize = 16;
pub const MIN_SPLIT: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    BloscLz,
    Lz4,
    Lz4Hc,
    Snappy,
    Zlib,
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    No,
    Byte,
    Bit,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub compressor: Compressor,
    pub level: usize,
    pub shuffle: Shuffle,
    pub typesize: usize,
    /// 0: automatic.
    pub blocksize: usize,
}

impl Config {
    pub fn from_json(json: &Value) -> Result<Config> {
        let cname = json.get("cname").and_then(Value::as_str).unwrap_or("lz4");
        let compressor = match cname {
            "blosclz" => Compressor::BloscLz,
            "lz4" => Compressor::Lz4,
            "lz4hc" => Compressor::Lz4Hc,
            "snappy" => Compressor::Snappy,
            "zlib" => Compressor::Zlib,
            "zstd" => Compressor::Zstd,
            other => return Err(Error::new("unsupported", format!("blosc compressor {other:?}"))),
        };
        let typesize = integer(json, "typesize", 1)?.clamp(1, 255) as usize;
        let shuffle = match json.get("shuffle") {
            None => Shuffle::Byte,
            Some(value) => match (value.as_str(), value.as_i64()) {
                (Some("noshuffle"), _) | (_, Some(0)) => Shuffle::No,
                (Some("shuffle"), _) | (_, Some(1)) => Shuffle::Byte,
                (Some("bitshuffle"), _) | (_, Some(2)) => Shuffle::Bit,
                // numcodecs' automatic choice
                (_, Some(-1)) if typesize == 1 => Shuffle::Bit,
                (_, Some(-1)) => Shuffle::Byte,
                _ => return Err(Error::new("unsupported", format!("blosc shuffle {value}"))),
            },
        };
        let blocksize = integer(json, "blocksize", 0)?.clamp(0, 1 << 30) as usize;
        Ok(Config { compressor, level: integer(json, "clevel", 5)?.clamp(0, 9) as usize, shuffle, typesize, blocksize })
    }
}

fn corrupt(what: &str) -> Error {
    Error::codec("blosc", format!("a chunk is not valid blosc data: {what}"))
}

/// The bytes of a frame.
#[derive(Clone, Copy)]
enum Encoded<'a> {
    Whole(&'a [u8]),
    InFile(Source<'a>),
}

/// A frame whose header has been checked.
struct Frame<'a> {
    /// Begins with the header and the table of blocks.
    head: &'a [u8],
    data: Encoded<'a>,
    len: usize,
    flags: u8,
    typesize: usize,
    nbytes: usize,
    blocksize: usize,
}

fn u32_at(data: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*data.get(at..at.checked_add(4)?)?.first_chunk()?) as usize)
}

impl<'a> Frame<'a> {
    fn whole(data: &'a [u8], expected: usize) -> Result<Frame<'a>> {
        Frame::parse(data, Encoded::Whole(data), data.len(), expected)
    }

    fn parse(bytes: &'a [u8], data: Encoded<'a>, len: usize, expected: usize) -> Result<Frame<'a>> {
        let Some(head) = bytes.first_chunk::<HEADER>() else {
            return Err(corrupt("shorter than its header").got(format!("{len} bytes")));
        };
        if head[0] != 2 {
            return Err(corrupt("not a blosc 1 frame")
                .expected("format version 2")
                .got(format!("version {}", head[0])));
        }
        let size = |at| u32_at(head, at).unwrap_or(0);
        let (flags, typesize) = (head[2], usize::from(head[3]));
        let frame = Frame { head: bytes, data, len, flags, typesize, nbytes: size(4), blocksize: size(8) };
        if frame.flags & 5 == 5 {
            return Err(corrupt("a Blosc 2 frame").expected("a Blosc 1 frame"));
        }
        if frame.nbytes != expected {
            return Err(Error::size("blosc", expected, frame.nbytes));
        }
        if size(12) != len {
            return Err(corrupt("its length differs from the length in its header")
                .expected(format!("{} bytes", size(12)))
                .got(format!("{len} bytes")));
        }
        if frame.flags & 8 != 0 || frame.typesize == 0 {
            return Err(corrupt("its header is inconsistent"));
        }
        if frame.copied() {
            if len != HEADER + frame.nbytes {
                return Err(corrupt("a stored frame has the wrong length"));
            }
        } else if frame.nbytes > 0 {
            let blocks_ok = frame.blocksize > 0 && frame.blocksize <= frame.nbytes;
            if head[1] != 1 || !blocks_ok || HEADER + 4 * frame.nblocks() > len {
                return Err(corrupt("its codec version, block size or block table is invalid"));
            }
        }
        Ok(frame)
    }

    fn copied(&self) -> bool {
        self.flags & 2 != 0
    }

    fn nblocks(&self) -> usize {
        self.nbytes.div_ceil(self.blocksize)
    }

    fn shuffle(&self) -> Shuffle {
        match self.flags {
            flags if flags & 1 != 0 && self.typesize > 1 => Shuffle::Byte,
            flags if flags & 4 != 0 && self.blocksize >= self.typesize => Shuffle::Bit,
            _ => Shuffle::No,
        }
    }

    /// Where block `i` begins in the frame.
    fn start(&self, i: usize) -> Result<usize> {
        let start = u32_at(self.head, HEADER + 4 * i).filter(|&at| at >= HEADER + 4 * self.nblocks());
        start.ok_or_else(|| corrupt("a block begins inside the block table"))
    }

    /// The encoded bytes from the beginning of block `i` on, at least to its end.
    fn encoded(&self, i: usize) -> Result<Bytes<'a>> {
        let (start, outside) = (self.start(i)?, || corrupt("a stream lies outside the frame"));
        match self.data {
            Encoded::Whole(data) => data.get(start..).map(Bytes::Borrowed).ok_or_else(outside),
            Encoded::InFile(source) => {
                let later = (0..self.nblocks()).filter_map(|i| self.start(i).ok()).filter(|&other| other > start);
                let stop = later.min().unwrap_or(self.len);
                if start > stop || stop > self.len {
                    return Err(outside());
                }
                source.part(start, stop - start).read()
            }
        }
    }

    /// Decode block `i` into `out`, which has its exact size.
    fn block(&self, i: usize, out: &mut [u8]) -> Result<()> {
        let whole = out.len() == self.blocksize;
        let split = self.flags & 0x10 == 0
            && self.typesize <= MAX_SPLITS
            && self.blocksize / self.typesize >= MIN_SPLIT
            && whole;
        let nsplits = if split { self.typesize } else { 1 };
        let encoded = self.encoded(i)?;
        match self.shuffle() {
            Shuffle::No => self.streams(&encoded, nsplits, out),
            kind => {
                let mut shuffled = scratch::take(out.len())?;
                self.streams(&encoded, nsplits, &mut shuffled)?;
                match kind {
                    Shuffle::Byte => shuffle::unshuffle(self.typesize, &shuffled, out),
                    _ => shuffle::bitunshuffle(self.typesize, &shuffled, out),
                }
                Ok(())
            }
        }
    }

    /// Decode the blocks from `first` on that fill `out`, on idle threads too.
    fn blocks(&self, first: usize, out: &mut [u8]) -> Result<()> {
        let helpers = if out.len() > SHARED_BYTES { spare_threads() } else { 0 };
        if helpers == 0 {
            let mut blocks = out.chunks_mut(self.blocksize).enumerate();
            return blocks.try_for_each(|(i, block)| self.block(first + i, block));
        }
        let blocks: Vec<Mutex<&mut [u8]>> = out.chunks_mut(self.blocksize).map(Mutex::new).collect();
        share(blocks.len(), helpers, &|i| self.block(first + i, &mut locked(&blocks[i])))
    }

    /// Decode the blocks that hold bytes `start..stop`; the result begins at the returned position.
    fn part(&self, start: usize, stop: usize) -> Result<(usize, scratch::Scratch)> {
        let (first, last) = (start / self.blocksize, stop.div_ceil(self.blocksize));
        let begin = first * self.blocksize;
        let mut out = scratch::take((last * self.blocksize).min(self.nbytes) - begin)?;
        self.blocks(first, &mut out)?;
        Ok((begin, out))
    }

    /// Decode bytes `start..stop`, whole rows of `row` bytes, and pass them on some rows at a time, each with its position.
    fn rows(&self, Range { start, end: stop }: Range<usize>, row: usize, sink: Rows) -> Result<()> {
        let (first, last) = (start / self.blocksize, stop.div_ceil(self.blocksize));
        let mut buffer = scratch::take(BLOCK_BYTES + row + self.blocksize)?;
        let (mut begin, mut held) = (start, 0);
        for i in first..last {
            let before = if i == first { start - i * self.blocksize } else { 0 };
            let size = self.blocksize.min(self.nbytes - i * self.blocksize);
            self.block(i, &mut buffer[held..held + size])?;
            buffer.copy_within(held + before..held + size, held);
            held += size - before;
            let whole = if i + 1 == last { stop - begin } else { held / row * row };
            if whole >= ENOUGH || i + 1 == last {
                sink(begin, &mut buffer[..whole])?;
                buffer.copy_within(whole..held, 0);
                (begin, held) = (begin + whole, held - whole);
            }
        }
        Ok(())
    }

    fn streams(&self, encoded: &[u8], nsplits: usize, out: &mut [u8]) -> Result<()> {
        let mut at = 0;
        if !out.len().is_multiple_of(nsplits) {
            return Err(corrupt("the size of a block is not a multiple of its number of streams"));
        }
        for target in out.chunks_exact_mut(out.len() / nsplits) {
            let size = u32_at(encoded, at).ok_or_else(|| corrupt("a stream lies outside the frame"))?;
            let stream = encoded[at + 4..].get(..size).ok_or_else(|| corrupt("a stream lies outside the frame"))?;
            at += 4 + size;
            if size == target.len() {
                target.copy_from_slice(stream);
            } else {
                self.stream(stream, target)?;
            }
        }
        Ok(())
    }

    fn stream(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let (name, done) = match self.flags >> 5 {
            0 => ("blosclz", blosclz::decode(data, out).is_some()),
            1 => ("lz4", lz4_block::decode(data, out).is_some()),
            2 => ("snappy", unsnap(data, out)),
            3 => ("zlib", deflate::unzlib(data, out).is_ok()),
            4 => ("zstd", super::decode_zstd(data, out).is_ok()),
            _ => ("unknown", false),
        };
        if done { Ok(()) } else { Err(corrupt(&format!("a {name} stream is invalid"))) }
    }
}

fn unsnap(data: &[u8], out: &mut [u8]) -> bool {
    snap::raw::decompress_len(data).is_ok_and(|n| n == out.len())
        && snap::raw::Decoder::new().decompress(data, out).is_ok_and(|n| n == out.len())
}

/// Decode a frame to exactly fill `out`.
pub fn decode(data: &[u8], out: &mut [u8]) -> Result<()> {
    let frame = Frame::whole(data, out.len())?;
    if frame.copied() {
        out.copy_from_slice(&data[HEADER..]);
        return Ok(());
    }
    if out.is_empty() {
        return Ok(());
    }
    frame.blocks(0, out)
}

/// Decode the blocks that hold bytes `start..stop` of a frame of `total` decoded bytes; the result begins at the
/// returned position.
pub fn decode_part(data: &[u8], total: usize, start: usize, stop: usize) -> Result<(usize, scratch::Scratch)> {
    let frame = Frame::whole(data, total)?;
    if frame.copied() || total == 0 {
        let mut out = scratch::take(stop - start)?;
        out.copy_from_slice(&data[HEADER + start..HEADER + stop]);
        return Ok((start, out));
    }
    frame.part(start, stop)
}

/// Whether other threads can decode blocks of a frame of `nbytes` decoded bytes.
pub fn is_shared(nbytes: usize) -> bool {
    nbytes > SHARED_BYTES && spare_threads() > 0
}

/// Pass a frame in a file, of `total` decoded bytes in blocks, to `decode`. An error says only that the whole frame must be
/// decoded: `decode` allows blocks to overlap, and says what is wrong.
fn in_file<T>(source: Source, total: usize, decode: impl FnOnce(&Frame) -> Result<T>) -> Result<T> {
    let head = source.part(0, source.len().min(HEAD_BYTES)).read()?;
    let frame = Frame::parse(&head, Encoded::InFile(source), source.len(), total)?;
    if frame.copied() || total == 0 || source.len().saturating_mul(super::MAX_RATIO) < total {
        return Err(corrupt("no blocks"));
    }
    decode(&frame)
}

/// Decode a frame in a file to exactly fill `out`; see `in_file`.
pub fn decode_file(source: Source, out: &mut [u8]) -> Result<()> {
    in_file(source, out.len(), |frame| frame.blocks(0, out))
}

/// Decode the blocks of a frame in a file that hold bytes `start..stop`, like `decode_part`; see `in_file`.
pub fn decode_file_part(source: Source, total: usize, start: usize, stop: usize) -> Result<(usize, scratch::Scratch)> {
    in_file(source, total, |frame| frame.part(start, stop))
}

/// What gets some rows of a chunk, and the position of the first byte.
pub type Rows<'a> = &'a mut dyn FnMut(usize, &mut [u8]) -> Result<()>;

/// Decode bytes `start..stop` of a frame in a file, whole rows of `row` bytes, some of them at a time, so that what is decoded
/// stays in the processor's cache until it is copied; see `in_file`.
pub fn decode_file_rows(source: Source, total: usize, range: Range<usize>, row: usize, sink: Rows) -> Result<()> {
    in_file(source, total, |frame| {
        if frame.blocksize > 4 * BLOCK_BYTES {
            return Err(corrupt("large blocks"));
        }
        frame.rows(range, row, sink)
    })
}
