//! Filters: codecs that compute on elements, as bytes → bytes codecs with the type of the elements.
//!
//! Only filters with a defined result for every value are here: others, for which NumPy raises, warns or depends on the
//! processor, belong to the reference engine, and `from_json` refuses them when the array is opened.

use serde_json::Value;

use super::bits::{round_integers, round_u16, round_u32, round_u64, swap};
use super::delta::{delta, undo_delta};
use super::integer;
use super::number::{BLOCK, Number, blocks, load_bits, map_f32, map_f64, rint32, rint64, store_bits};
use super::packbits::PackBits;
use crate::allocate;
use crate::error::{Error, Result};
use crate::region::wide_vectors;

#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// numcodecs' `delta`: the first element, then differences.
    Delta {
        decoded: Number,
        encoded: Number,
    },
    /// numcodecs' `quantize` of one type of floats: round(x × scale) / scale.
    Quantize {
        decoded: Number,
        encoded: Number,
        scale: f64,
    },
    /// numcodecs' `astype` between integers, which keeps the lowest bits.
    Cast {
        decoded: Number,
        encoded: Number,
    },
    /// Floats of `size` bytes with `mantissa` bits, of which the last `drop` are rounded away.
    BitRound {
        size: usize,
        mantissa: u32,
        drop: u32,
    },
    /// Integers of which `keep` bits from the highest that is set are kept.
    BitRoundInteger {
        number: Number,
        keep: u32,
    },
    PackBits(PackBits),
    /// Reversed byte order of words of `unit` bytes.
    Swap {
        unit: usize,
    },
}

fn unsupported(what: impl Into<String>) -> Error {
    Error::new("unsupported", what)
}

impl Filter {
    pub fn from_json(name: &str, configuration: &Value) -> Result<Option<Filter>> {
        let number = |member: &str| Number::member(configuration, member);
        let small =
            |member: &str| Ok::<_, Error>(u32::try_from(integer(configuration, member, 0)?).unwrap_or(u32::MAX));
        let types = |codec: &str| {
            let [decoded, encoded] = ["decoded", "encoded"].map(|member| configuration[member].as_str().unwrap_or("?"));
            unsupported(format!("the codec '{codec}' from {decoded} to {encoded}"))
        };
        let filter = match name {
            // NumPy refuses some first elements that are out of the encoded type's range.
            "filter.delta" => {
                let (decoded, encoded) = (number("decoded")?, number("encoded")?);
                if !encoded.holds(decoded) || decoded.is_float() && decoded.size < 4 {
                    return Err(types("delta"));
                }
                Filter::Delta { decoded, encoded }
            }
            "filter.quantize" => {
                let (decoded, encoded) = (number("decoded")?, number("encoded")?);
                let bits = configuration["scale_bits"].as_u64();
                let scale = bits.map(f64::from_bits).ok_or_else(|| unsupported("quantize without a scale"))?;
                if !decoded.is_float() || decoded.size < 4 || !decoded.is_type_of(encoded) {
                    return Err(types("quantize"));
                }
                Filter::Quantize { decoded, encoded, scale }
            }
            "filter.astype" => {
                let (decoded, encoded) = (number("decoded")?, number("encoded")?);
                if decoded.is_float() || encoded.is_float() {
                    return Err(types("astype"));
                }
                Filter::Cast { decoded, encoded }
            }
            "filter.bitround" => {
                let (size, mantissa, drop) = (small("size")? as usize, small("mantissa")?, small("drop")?);
                if !matches!((size, mantissa), (2, 7 | 10) | (4, 23) | (8, 52)) || drop == 0 || drop > mantissa {
                    return Err(unsupported("bitround of such elements"));
                }
                Filter::BitRound { size, mantissa, drop }
            }
            "filter.bitround_integer" => {
                let (number, keep) = (number("decoded")?, small("keepbits")?);
                if number.is_float() || keep == 0 || keep >= number.bits() {
                    return Err(unsupported("bitround of such elements"));
                }
                Filter::BitRoundInteger { number, keep }
            }
            "filter.packbits" => Filter::PackBits(PackBits::from_json(configuration)?),
            "filter.swap" => match small("unit")? {
                unit @ (2 | 4 | 8) => Filter::Swap { unit: unit as usize },
                _ => return Err(unsupported("a byte order of words other than 2, 4 or 8 bytes")),
            },
            _ => return Ok(None),
        };
        Ok(Some(filter))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Filter::Delta { .. } => "delta",
            Filter::Quantize { .. } => "quantize",
            Filter::Cast { .. } => "astype",
            Filter::BitRound { .. } | Filter::BitRoundInteger { .. } => "bitround",
            Filter::PackBits(_) => "packbits",
            Filter::Swap { .. } => "bytes",
        }
    }

    /// Bytes per element before and after encoding.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Filter::Delta { decoded, encoded }
            | Filter::Quantize { decoded, encoded, .. }
            | Filter::Cast { decoded, encoded } => (decoded.size, encoded.size),
            Filter::BitRoundInteger { number, .. } => (number.size, number.size),
            Filter::BitRound { size, .. } => (*size, *size),
            Filter::Swap { unit } => (*unit, *unit),
            Filter::PackBits(_) => (1, 1),
        }
    }

    /// See `Codec::encoded_size`.
    pub fn encoded_size(&self, n: usize) -> Option<usize> {
        if let Filter::PackBits(packing) = self {
            return packing.encoded_size(n);
        }
        let (decoded, encoded) = self.sizes();
        if n.is_multiple_of(decoded) { (n / decoded).checked_mul(encoded) } else { None }
    }

    /// See `Codec::decode_into`.
    pub fn decode_into(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        wide_vectors(|| self.decode_now(data, out))
    }

    #[inline(always)]
    fn decode_now(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if self.encoded_size(out.len()) != Some(data.len()) {
            return Err(Error::size(self.name(), out.len(), format!("the decoded form of {} bytes", data.len())));
        }
        match self {
            Filter::Delta { decoded, encoded } => undo_delta(*decoded, *encoded, data, out),
            Filter::Quantize { decoded, encoded, .. } | Filter::Cast { decoded, encoded } => {
                cast(*encoded, *decoded, data, out);
            }
            Filter::BitRound { .. } | Filter::BitRoundInteger { .. } => out.copy_from_slice(data),
            Filter::PackBits(packing) => packing.decode(data, out)?,
            Filter::Swap { unit } => swap(*unit, data, out),
        }
        Ok(())
    }

    /// See `Codec::encode`.
    pub fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Some(size) = self.encoded_size(data.len()) else {
            return Err(Error::codec(self.name(), "a filter needs whole elements").got(format!("{} bytes", data.len())));
        };
        let start = out.len();
        allocate::extend(out, size)?;
        wide_vectors(|| self.encode_now(data, &mut out[start..]));
        Ok(())
    }

    #[inline(always)]
    fn encode_now(&self, data: &[u8], out: &mut [u8]) {
        match self {
            Filter::Delta { decoded, encoded } => delta(*decoded, *encoded, data, out),
            Filter::Quantize { decoded, encoded, scale } => quantize(*decoded, *encoded, *scale, data, out),
            Filter::Cast { decoded, encoded } => cast(*decoded, *encoded, data, out),
            Filter::BitRound { size: 2, mantissa, drop } => round_u16(*mantissa, *drop, data, out),
            Filter::BitRound { size: 4, mantissa, drop } => round_u32(*mantissa, *drop, data, out),
            Filter::BitRound { mantissa, drop, .. } => round_u64(*mantissa, *drop, data, out),
            Filter::BitRoundInteger { number, keep } => round_integers(*number, *keep, data, out),
            Filter::PackBits(packing) => packing.encode(data, out),
            Filter::Swap { unit } => swap(*unit, data, out),
        }
    }
}

#[inline(always)]
fn quantize(decoded: Number, encoded: Number, scale: f64, data: &[u8], out: &mut [u8]) {
    let scale32 = scale as f32;
    match decoded.size {
        4 => map_f32(decoded, encoded, data, out, |x| rint32(scale32 * x) / scale32),
        _ => map_f64(decoded, encoded, data, out, |x| rint64(scale * x) / scale),
    }
}

/// Convert between integer types, or between the byte orders of one float type.
#[inline(always)]
fn cast(from: Number, to: Number, data: &[u8], out: &mut [u8]) {
    let mut values = [0u64; BLOCK];
    blocks((from.size, to.size), data, out, |data, out| {
        let values = &mut values[..data.len() / from.size];
        load_bits(from, data, values);
        store_bits(to, values, out);
    });
}
