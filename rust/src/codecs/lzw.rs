//! The `lzw` codec: LZW as TIFF has it, codes of 9 to 12 bits from the highest bit on, one code early.

use weezl::{BitOrder, LzwStatus, decode::Decoder, encode::Encoder};

use crate::allocate;
use crate::error::{Error, Result};

fn corrupt(got: impl Into<String>) -> Error {
    Error::codec("lzw", "a chunk is not valid lzw data").got(got)
}

pub fn decode(mut data: &[u8], out: &mut [u8]) -> Result<()> {
    let mut decoder = Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let (mut made, mut spill) = (0, [0; 1]);
    loop {
        let full = made == out.len();
        let target: &mut [u8] = if full { &mut spill } else { &mut out[made..] };
        let step = decoder.decode_bytes(data, target);
        data = &data[step.consumed_in..];
        if full && step.consumed_out > 0 {
            return Err(Error::size("lzw", out.len(), "more"));
        }
        made += if full { 0 } else { step.consumed_out };
        match step.status {
            Ok(LzwStatus::Done) => break,
            Ok(LzwStatus::Ok) if step.consumed_in + step.consumed_out > 0 => {}
            Ok(_) => return Err(corrupt("a truncated stream")),
            Err(error) => return Err(corrupt(error.to_string())),
        }
    }
    if made != out.len() {
        return Err(Error::size("lzw", out.len(), made));
    }
    if data.is_empty() { Ok(()) } else { Err(corrupt(format!("{} bytes after the end", data.len()))) }
}

pub fn encode(data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let packed = Encoder::with_tiff_size_switch(BitOrder::Msb, 8).encode(data);
    allocate::append(out, &packed.map_err(|error| corrupt(error.to_string()))?)
}
