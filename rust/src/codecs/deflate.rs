//! gzip (RFC 1952, several members allowed) and zlib (RFC 1950).

use super::append;
use crate::error::{Error, Result};
use crate::region::Wrapper;
use crate::scratch;

/// The level at which the encoder is chosen by the data.
const FASTEST: i32 = 1;
/// The head of a gzip member as libdeflate writes it at level 1: no flags, no time, "fastest", system unknown.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
const ZLIB_HEAD: [u8; 2] = [0x78, 0x01];
const SAMPLE: usize = 4 << 10;
/// Chunks below this size are encoded by libdeflate: the sample, and clearing tables, would take too much of their time.
const LEAST_SAMPLED: usize = 64 << 10;

pub fn gunzip(data: &[u8], out: &mut [u8]) -> Result<()> {
    let (mut used, mut made) = (0, 0);
    loop {
        let (took, gave) = inflate("gzip", Wrapper::Gzip, &data[used..], &mut out[made..])?;
        (used, made) = (used + took, made + gave);
        if used == data.len() {
            return if made == out.len() { Ok(()) } else { Err(Error::size("gzip", out.len(), made)) };
        }
        if !data[used..].starts_with(&[0x1f, 0x8b]) {
            return Err(trailing("gzip", data.len() - used));
        }
    }
}

pub fn unzlib(data: &[u8], out: &mut [u8]) -> Result<()> {
    let (used, made) = inflate("zlib", Wrapper::Zlib, data, out)?;
    if used != data.len() {
        return Err(trailing("zlib", data.len() - used));
    }
    if made == out.len() { Ok(()) } else { Err(Error::size("zlib", out.len(), made)) }
}

fn inflate(name: &str, wrapper: Wrapper, data: &[u8], out: &mut [u8]) -> Result<(usize, usize)> {
    scratch::with_inflater(|inflater| inflater.inflate(wrapper, data, out)).ok_or_else(|| {
        Error::codec(name, format!("a chunk is not valid {name} data"))
            .expected(format!("a complete stream that decodes to {} bytes, with the right checksum", out.len()))
            .got(format!("{} bytes that are not such a stream", data.len()))
    })
}

fn trailing(name: &str, n: usize) -> Error {
    Error::codec(name, format!("a chunk has trailing data after its {name} stream"))
        .expected("nothing")
        .got(format!("{n} bytes"))
}

pub fn gzip(level: i32, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if level == FASTEST && is_noisy(data) {
        let tail = [libdeflater::crc32(data).to_le_bytes(), (data.len() as u32).to_le_bytes()];
        return frame("gzip", &GZIP_HEAD, data, tail.as_flattened(), out);
    }
    scratch::with_deflater(level, |deflater| {
        let bound = deflater.gzip_compress_bound(data.len());
        append(
            out,
            bound,
            |target| deflater.gzip_compress(data, target),
            |_| Error::codec("gzip", "gzip cannot compress a chunk"),
        )
    })
}

pub fn zlib(level: i32, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if level == FASTEST && is_noisy(data) {
        return frame("zlib", &ZLIB_HEAD, data, &libdeflater::adler32(data).to_be_bytes(), out);
    }
    let level = if level < 0 { 6 } else { level };
    scratch::with_deflater(level, |deflater| {
        let bound = deflater.zlib_compress_bound(data.len());
        append(
            out,
            bound,
            |target| deflater.zlib_compress(data, target),
            |_| Error::codec("zlib", "zlib cannot compress a chunk"),
        )
    })
}

/// Whether few matches are found in the middle of `data`, so that its bytes are mostly encoded one by one.
///
/// For such data miniz_oxide takes about half the time of libdeflate, and keeps up to 6 % more bytes. For other data it is
/// slower, and keeps up to half as many bytes again.
fn is_noisy(data: &[u8]) -> bool {
    if data.len() < LEAST_SAMPLED {
        return false;
    }
    let start = (data.len() - SAMPLE) / 2;
    let mut encoded = [0; SAMPLE * 2 / 3];
    scratch::deflate_fast(&data[start..start + SAMPLE], &mut encoded).is_none()
}

/// Append a deflate stream that miniz_oxide encodes, between the head and the tail of a container.
fn frame(name: &'static str, head: &[u8], data: &[u8], tail: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(head);
    let bound = 128 + data.len() + data.len() / 10; // that of miniz's `mz_deflateBound`
    append(
        out,
        bound,
        |target| scratch::deflate_fast(data, target).ok_or(()),
        |()| Error::codec(name, format!("{name} cannot compress a chunk")),
    )?;
    out.extend_from_slice(tail);
    Ok(())
}
