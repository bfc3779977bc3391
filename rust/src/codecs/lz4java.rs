//! The block stream of lz4-java, as N5 stores it: blocks with a magic number, sizes and an xxHash, and an empty one at the end.

use xxhash_rust::xxh32::xxh32;

use super::lz4_block;
use crate::allocate;
use crate::error::{Error, Result};

const NAME: &str = "lz4java";
const MAGIC: &[u8; 8] = b"LZ4Block";
const HEAD: usize = 21;
const RAW: u8 = 0x10;
const LZ4: u8 = 0x20;
const SEED: u32 = 0x9747_b28c;
/// Java's checksum is the low 28 bits of the hash.
const MASK: u32 = 0x0fff_ffff;
const LEVEL_BASE: u32 = 10;

fn corrupt(got: impl Into<String>) -> Error {
    Error::codec(NAME, "a chunk is not a valid LZ4Block stream").got(got)
}

fn word(data: &[u8], at: usize) -> u32 {
    data.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub fn decode(mut data: &[u8], out: &mut [u8]) -> Result<()> {
    let mut made = 0;
    loop {
        let Some((head, rest)) = data.split_at_checked(HEAD) else {
            return Err(corrupt("a truncated stream"));
        };
        let (stored, size, checksum) = (word(head, 9) as usize, word(head, 13) as usize, word(head, 17));
        if &head[..8] != MAGIC {
            return Err(corrupt("a block without the magic number"));
        }
        let Some((body, rest)) = rest.split_at_checked(stored) else { return Err(corrupt("a truncated block")) };
        if size == 0 {
            if stored != 0 || checksum != 0 || !rest.is_empty() {
                return Err(corrupt(format!("{} bytes after the end", stored + rest.len())));
            }
            return if made == out.len() { Ok(()) } else { Err(Error::size(NAME, out.len(), made)) };
        }
        let total = out.len();
        let target = made.checked_add(size).and_then(|stop| out.get_mut(made..stop));
        let target = target.ok_or_else(|| Error::size(NAME, total, "more"))?;
        match head[8] & 0xf0 {
            RAW if stored == size => target.copy_from_slice(body),
            LZ4 => lz4_block::decode(body, target).ok_or_else(|| corrupt("a block that is not lz4"))?,
            method => return Err(corrupt(format!("a block of method {method:#x}, of {stored} bytes for {size}"))),
        }
        let computed = xxh32(target, SEED) & MASK;
        if computed != checksum {
            return Err(Error::new("checksum", "a checksum does not match")
                .with(|fault| fault.codec = Some(NAME.into()))
                .expected(format!("the stored {checksum:#010x}"))
                .got(format!("{computed:#010x}")));
        }
        (data, made) = (rest, made + size);
    }
}

pub fn encode(block: usize, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |error: std::io::Error| Error::codec(NAME, "lz4 cannot compress a chunk").got(error.to_string());
    let level = (block.max(1) - 1).checked_ilog2().map_or(0, |n| n + 1).saturating_sub(LEVEL_BASE) as u8 & 0x0f;
    for piece in data.chunks(block.max(1)) {
        let packed = lz4::block::compress(piece, None, false).map_err(failed)?;
        let (method, body) = if packed.len() < piece.len() { (LZ4, &packed[..]) } else { (RAW, piece) };
        head(out, method | level, body.len(), piece.len(), xxh32(piece, SEED) & MASK);
        allocate::append(out, body)?;
    }
    head(out, RAW | level, 0, 0, 0);
    Ok(())
}

fn head(out: &mut Vec<u8>, token: u8, stored: usize, size: usize, checksum: u32) {
    out.extend_from_slice(MAGIC);
    out.push(token);
    for number in [stored as u32, size as u32, checksum] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}
