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
    /// numcodecs: a byte with the number of unused bits, then booleans, the first in the highest bit.
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
            return Err(Error::new("unsupported", "packbits of elements of this type"));
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

    /// Fill `out`, which has the size of the encoded `data`.
    #[inline(always)]
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

    /// Fill `out`; `data` has its encoded size.
    #[inline(always)]
    pub fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            PackBits::Booleans => {
                check_padding(data[0], unused(out.len()))?;
                unpack(&data[1..], out, 0x0102_0408_1020_4080);
                Ok(())
            }
            PackBits::Fields(fields) => fields.decode(data, out),
        }
    }
}

/// Unused bits in the last byte.
fn unused(bits: usize) -> u8 {
    (bits.wrapping_neg() % 8) as u8
}

fn check_padding(stated: u8, there: u8) -> Result<()> {
    if stated == there {
        return Ok(());
    }
    let what = format!("packbits data is corrupt: it states {stated} unused bits, there are {there}");
    Err(Error::codec("packbits", what)
        .hint("The stored value is damaged or truncated, or was written with another codec"))
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Pack eight booleans into a byte, the first in the lowest bit after `order`.
#[inline(always)]
fn pack(data: &[u8], out: &mut [u8], order: impl Fn(u64) -> u64) {
    let byte = |eight: [u8; 8]| {
        let eight = order(u64::from_le_bytes(eight));
        let ones = (((eight & (0x7f * ONES)) + 0x7f * ONES) | eight) >> 7 & ONES;
        (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8 // gathers the lowest bits
    };
    let (whole, rest) = data.as_chunks::<8>();
    out.iter_mut().zip(whole).for_each(|(slot, eight)| *slot = byte(*eight));
    if let (Some(slot), false) = (out.get_mut(whole.len()), rest.is_empty()) {
        let mut eight = [0; 8];
        eight[..rest.len()].copy_from_slice(rest);
        *slot = byte(eight);
    }
}

/// Unpack a byte to eight booleans; byte i of `masks` selects the bit of the i-th one.
#[inline(always)]
fn unpack(data: &[u8], out: &mut [u8], masks: u64) {
    let (whole, rest) = out.as_chunks_mut::<8>();
    let eight = |byte: u8| {
        let bits = u64::from(byte).wrapping_mul(ONES) & masks;
        ((bits + 0x7f * ONES) >> 7 & ONES).to_le_bytes() // no byte exceeds 0x80: there are no carries
    };
    whole.iter_mut().zip(data).for_each(|(slot, &byte)| *slot = eight(byte));
    if let Some(&byte) = data.get(whole.len()) {
        rest.copy_from_slice(&eight(byte)[..rest.len()]);
    }
}

impl Fields {
    #[inline(always)]
    fn kept(&self) -> u32 {
        self.last - self.first + 1
    }

    fn padding_byte(&self, nbytes: usize) -> u8 {
        unused((nbytes / self.width).wrapping_mul(self.kept() as usize))
    }

    #[inline(always)]
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
            return pack(data, out, |eight| eight);
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

    #[inline(always)]
    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let there = self.padding_byte(out.len());
        let (stated, data) = match (self.padding, data) {
            (Padding::First, [first, rest @ ..]) => (*first, rest),
            (Padding::Last, [rest @ .., last]) => (*last, rest),
            (_, data) => (there, data),
        };
        check_padding(stated, there)?;
        if (self.nbits, self.width) == (1, 1) {
            unpack(data, out, 0x8040_2010_0804_0201);
            return Ok(());
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
        Ok(())
    }
}
