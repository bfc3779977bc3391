//! gzip (RFC 1952, several members allowed) and zlib (RFC 1950).

use super::append;
use crate::error::{Error, Result};
use crate::region::Wrapper;
use crate::scratch;

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
