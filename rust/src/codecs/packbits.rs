//! `packbits`: bits of elements without gaps; numcodecs' form (booleans, first in the highest bit) and that of v3.

use serde_json::Value;

use super::integer;
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    None,
    First,
    Last,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PackBits {
    /// numcodecs: the number of unused bits in a byte of its own, then booleans, the first in the highest bit.
    Booleans,
    Fields(Fields),
}

/// v3: bits `first..=last` of each component of `width` bytes (least significant byte first), the lowest bit first.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    width: usize,
    first: u32,
    last: u32,
    /// Bits of a whole component; above `last` they repeat its highest kept bit when it is `signed`.
    nbits: u32,
    signed: bool,
    padding: Padding,
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl PackBits {
    pub fn from_json(configuration: &Value) -> Result<PackBits> {
        let small = |name: &str| Ok::<_, Error>(u32::try_from(integer(configuration, name, 0)?).unwrap_or(u32::MAX));
        if configuration.get("width").is_none() {
            return Ok(PackBits::Booleans);
        }
        let padding = match configuration["padding_encoding"].as_str() {
            Some("first_byte") => Padding::First,
            Some("last_byte") => Padding::Last,
            _ => Padding::None,
        };
        let (width, first, last, nbits) = (small("width")? as usize, small("first")?, small("last")?, small("nbits")?);
        if !(1..=8).contains(&width) || nbits == 0 || nbits > 8 * width as u32 || first > last || last >= nbits {
            return Err(Error::new("unsupported", "packbits of such elements"));
        }
        let signed = configuration["signed"].as_bool().unwrap_or(false);
        Ok(PackBits::Fields(Fields { width, first, last, nbits, signed, padding }))
    }

    pub fn encoded_size(&self, n: usize) -> Option<usize> {
        match self {
            PackBits::Booleans => n.div_ceil(8).checked_add(1),
            PackBits::Fields(fields) if n.is_multiple_of(fields.width) => {
                let bits = (n / fields.width).checked_mul(fields.kept() as usize)?;
                bits.div_ceil(8).checked_add(usize::from(fields.padding != Padding::None))
            }
            PackBits::Fields(_) => None,
        }
    }

    /// Fills `out`, which has the size of the encoded `data`.
    pub fn encode(&self, data: &[u8], out: &mut [u8]) {
        match self {
            PackBits::Booleans => {
                out[0] = unused(data.len());
                for (eight, byte) in data.chunks(8).zip(&mut out[1..]) {
                    *byte =
                        eight.iter().enumerate().fold(0, |bits, (i, &value)| bits | u8::from(value != 0) << (7 - i));
                }
            }
            PackBits::Fields(fields) => fields.encode(data, out),
        }
    }

    /// Fills `out`; `data` has its encoded size. `false`: the data contradict themselves.
    pub fn decode(&self, data: &[u8], out: &mut [u8]) -> bool {
        match self {
            PackBits::Booleans => {
                for (eight, &byte) in out.chunks_mut(8).zip(&data[1..]) {
                    eight.iter_mut().enumerate().for_each(|(i, value)| *value = byte >> (7 - i) & 1);
                }
                data[0] == unused(out.len())
            }
            PackBits::Fields(fields) => fields.decode(data, out),
        }
    }
}

/// Bits that are left over in the last byte.
fn unused(bits: usize) -> u8 {
    (bits.wrapping_neg() % 8) as u8
}

impl Fields {
    fn kept(&self) -> u32 {
        self.last - self.first + 1
    }

    fn padding_byte(&self, nbytes: usize) -> u8 {
        unused((nbytes / self.width).wrapping_mul(self.kept() as usize))
    }

    fn encode(&self, data: &[u8], out: &mut [u8]) {
        let stated = self.padding_byte(data.len());
        let out = match (self.padding, out) {
            (Padding::None, out) => out,
            (Padding::First, [first, rest @ ..]) => {
                *first = stated;
                rest
            }
            (Padding::Last, [rest @ .., last]) => {
                *last = stated;
                rest
            }
            _ => return,
        };
        if (self.nbits, self.width) == (1, 1) {
            for (eight, byte) in data.chunks(8).zip(out) {
                *byte = eight.iter().enumerate().fold(0, |bits, (i, &value)| bits | u8::from(value != 0) << i);
            }
            return;
        }
        let (kept, keep) = (self.kept(), mask(self.kept()));
        let (mut bits, mut filled, mut at) = (0u128, 0, 0);
        for component in data.chunks_exact(self.width) {
            let mut word = [0; 8];
            word[..self.width].copy_from_slice(component);
            bits |= u128::from(u64::from_le_bytes(word) >> self.first & keep) << filled;
            filled += kept;
            if filled >= 64 {
                out[at..at + 8].copy_from_slice(&(bits as u64).to_le_bytes());
                (bits, filled, at) = (bits >> 64, filled - 64, at + 8);
            }
        }
        let rest = out.len() - at;
        out[at..].copy_from_slice(&bits.to_le_bytes()[..rest]);
    }

    fn decode(&self, data: &[u8], out: &mut [u8]) -> bool {
        let stated = self.padding_byte(out.len());
        let data = match (self.padding, data) {
            (Padding::None, data) => data,
            (Padding::First, [first, rest @ ..]) if *first == stated => rest,
            (Padding::Last, [rest @ .., last]) if *last == stated => rest,
            _ => return false,
        };
        if (self.nbits, self.width) == (1, 1) {
            for (eight, &byte) in out.chunks_mut(8).zip(data) {
                eight.iter_mut().enumerate().for_each(|(i, value)| *value = byte >> i & 1);
            }
            return true;
        }
        let (kept, keep) = (self.kept(), mask(self.kept()));
        let sign = 1u64 << (kept - 1);
        let whole = mask(self.nbits);
        let (mut bits, mut filled, mut rest) = (0u128, 0, data);
        for component in out.chunks_exact_mut(self.width) {
            if filled < kept {
                let n = rest.len().min(8);
                let mut word = [0; 8];
                word[..n].copy_from_slice(&rest[..n]);
                bits |= u128::from(u64::from_le_bytes(word)) << filled;
                (filled, rest) = (filled + 8 * n as u32, &rest[n..]);
            }
            let field = bits as u64 & keep;
            (bits, filled) = (bits >> kept, filled.saturating_sub(kept));
            let extended = if self.signed && field & sign != 0 { field | !keep } else { field };
            component.copy_from_slice(&(extended << self.first & whole).to_le_bytes()[..self.width]);
        }
        true
    }
}
