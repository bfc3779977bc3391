//! Filters: codecs that compute on elements, as bytes → bytes codecs that know the type of what they are given.
//!
//! They do what NumPy does, operation by operation, in the same precision. Where NumPy's result depends on the processor
//! (a float outside the range of an integer), or would be an error, a filter gives up with the error kind `reference`:
//! the caller then leaves the whole request to the reference engine.

use serde_json::Value;

use super::bits::{round_integers, round_u16, round_u32, round_u64, swap};
use super::delta::{delta, undo_delta};
use super::number::{
    BLOCK, Kind, Number, load_bits, load_f32, load_f64, rint32, rint64, store_bits, store_f32, store_f64, store_rounded,
};
use super::packbits::PackBits;
use super::scale_offset::{rescale, unscale};
use super::{cast_value::CastValue, integer};
use crate::error::{Error, Result};
use crate::region::wide_vectors;

#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// numcodecs' `delta`: the first element, then differences.
    Delta {
        decoded: Number,
        encoded: Number,
    },
    FixedScaleOffset(FixedScaleOffset),
    /// numcodecs' `quantize`: round(x × scale) / scale, in the decoded type.
    Quantize {
        decoded: Number,
        encoded: Number,
        scale: f64,
    },
    /// numcodecs' `astype`.
    Cast {
        decoded: Number,
        encoded: Number,
    },
    /// `scale_offset` of v3: (x − offset) × scale, within the type.
    ScaleOffset {
        number: Number,
        scale: Scalar,
        offset: Scalar,
    },
    CastValue(Box<CastValue>),
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
    /// The byte order of words of `unit` bytes, changed.
    Swap {
        unit: usize,
    },
}

/// A number of the configuration, as Python computes with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Float(f64),
    /// Two's complement, within the type of the elements.
    Bits(u64),
}

impl Scalar {
    /// From `{"float": bits}` or `{"bits": bits}`: JSON decimals would have to be parsed exactly.
    fn member(configuration: &Value, name: &str) -> Result<Scalar> {
        let json = &configuration[name];
        match (json["float"].as_u64(), json["bits"].as_u64()) {
            (Some(bits), None) => Ok(Scalar::Float(f64::from_bits(bits))),
            (None, Some(bits)) => Ok(Scalar::Bits(bits)),
            _ => Err(Error::new("unsupported", format!("the number {name} of a filter"))),
        }
    }
}

/// numcodecs' `fixedscaleoffset`: round((x − offset) × scale).
#[derive(Clone, Debug, PartialEq)]
pub struct FixedScaleOffset {
    decoded: Number,
    encoded: Number,
    scale: Scalar,
    offset: Scalar,
    /// Scale and offset as floats, for decoding.
    float_scale: f64,
    float_offset: f64,
}

/// Leaves the request to the reference engine.
pub fn give_up() -> Error {
    Error::new("reference", "a filter met a value that the reference engine must judge")
}

/// `fine`, or the error of `give_up`.
#[inline(always)]
pub fn given_up(fine: bool) -> Result<()> {
    if fine { Ok(()) } else { Err(give_up()) }
}

impl Filter {
    pub fn from_json(name: &str, configuration: &Value) -> Result<Option<Filter>> {
        let number = |member: &str| Number::member(configuration, member);
        let small =
            |member: &str| Ok::<_, Error>(u32::try_from(integer(configuration, member, 0)?).unwrap_or(u32::MAX));
        let filter = match name {
            "filter.delta" => {
                let (decoded, encoded) = (number("decoded")?, number("encoded")?);
                let same = decoded.size == encoded.size && decoded.size >= 4;
                if decoded.is_float() != encoded.is_float() || decoded.is_float() && !same {
                    return Err(Error::new(
                        "unsupported",
                        "delta of other elements than integers or one type of floats",
                    ));
                }
                Filter::Delta { decoded, encoded }
            }
            "filter.fixedscaleoffset" => Filter::FixedScaleOffset(FixedScaleOffset::from_json(configuration)?),
            "filter.quantize" => {
                let (decoded, encoded) = (number("decoded")?, number("encoded")?);
                let Scalar::Float(scale) = Scalar::member(configuration, "scale")? else {
                    return Err(Error::new("unsupported", "a scale that is no float"));
                };
                computes(decoded)?;
                Filter::Quantize { decoded, encoded, scale }
            }
            "filter.astype" => Filter::Cast { decoded: number("decoded")?, encoded: number("encoded")? },
            "filter.scale_offset" => {
                let number = number("decoded")?;
                computes(number)?;
                let (scale, offset) =
                    (Scalar::member(configuration, "scale")?, Scalar::member(configuration, "offset")?);
                Filter::ScaleOffset { number, scale, offset }
            }
            "filter.cast_value" => Filter::CastValue(Box::new(CastValue::from_json(configuration)?)),
            "filter.bitround" => {
                let (size, mantissa, drop) = (small("size")? as usize, small("mantissa")?, small("drop")?);
                if !matches!((size, mantissa), (2, 7 | 10) | (4, 23) | (8, 52)) || drop == 0 || drop > mantissa {
                    return Err(Error::new("unsupported", "bitround of such elements"));
                }
                Filter::BitRound { size, mantissa, drop }
            }
            "filter.bitround_integer" => {
                let (number, keep) = (number("decoded")?, small("keepbits")?);
                if number.is_float() || keep == 0 || keep >= number.bits() {
                    return Err(Error::new("unsupported", "bitround of such elements"));
                }
                Filter::BitRoundInteger { number, keep }
            }
            "filter.packbits" => Filter::PackBits(PackBits::from_json(configuration)?),
            "filter.swap" => match small("unit")? {
                unit @ (2 | 4 | 8) => Filter::Swap { unit: unit as usize },
                _ => return Err(Error::new("unsupported", "a byte order of such words")),
            },
            _ => return Ok(None),
        };
        Ok(Some(filter))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Filter::Delta { .. } => "delta",
            Filter::FixedScaleOffset(_) => "fixedscaleoffset",
            Filter::Quantize { .. } => "quantize",
            Filter::Cast { .. } => "astype",
            Filter::ScaleOffset { .. } => "scale_offset",
            Filter::CastValue(_) => "cast_value",
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
            Filter::FixedScaleOffset(filter) => (filter.decoded.size, filter.encoded.size),
            Filter::CastValue(filter) => filter.sizes(),
            Filter::ScaleOffset { number, .. } | Filter::BitRoundInteger { number, .. } => (number.size, number.size),
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
            return Err(Error::size(self.name(), out.len(), format!("what {} encoded", data.len())));
        }
        match self {
            Filter::Delta { decoded, encoded } => {
                undo_delta(*decoded, *encoded, data, out);
                Ok(())
            }
            Filter::FixedScaleOffset(filter) => given_up(filter.decode(data, out)),
            Filter::Quantize { decoded, encoded, .. } | Filter::Cast { decoded, encoded } => {
                given_up(cast(*encoded, *decoded, data, out))
            }
            Filter::ScaleOffset { number, scale, offset } => given_up(unscale(*number, *scale, *offset, data, out)),
            Filter::CastValue(filter) => given_up(filter.decode(data, out)),
            Filter::BitRound { .. } | Filter::BitRoundInteger { .. } => {
                out.copy_from_slice(data);
                Ok(())
            }
            Filter::PackBits(packing) => given_up(packing.decode(data, out)),
            Filter::Swap { unit } => {
                swap(*unit, data, out);
                Ok(())
            }
        }
    }

    /// See `Codec::encode`.
    pub fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Some(size) = self.encoded_size(data.len()) else {
            return Err(Error::codec(self.name(), "a filter needs whole elements").got(format!("{} bytes", data.len())));
        };
        let start = out.len();
        out.resize(start + size, 0);
        wide_vectors(|| self.encode_now(data, &mut out[start..]))
    }

    #[inline(always)]
    fn encode_now(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Filter::Delta { decoded, encoded } => delta(*decoded, *encoded, data, out),
            Filter::FixedScaleOffset(filter) => given_up(filter.encode(data, out)),
            Filter::Quantize { decoded, encoded, scale } => given_up(quantize(*decoded, *encoded, *scale, data, out)),
            Filter::Cast { decoded, encoded } => given_up(cast(*decoded, *encoded, data, out)),
            Filter::ScaleOffset { number, scale, offset } => given_up(rescale(*number, *scale, *offset, data, out)),
            Filter::CastValue(filter) => given_up(filter.encode(data, out)),
            Filter::BitRound { size, mantissa, drop } => {
                match size {
                    2 => round_u16(*mantissa, *drop, data, out),
                    4 => round_u32(*mantissa, *drop, data, out),
                    _ => round_u64(*mantissa, *drop, data, out),
                }
                Ok(())
            }
            Filter::BitRoundInteger { number, keep } => {
                round_integers(*number, *keep, data, out);
                Ok(())
            }
            Filter::PackBits(packing) => {
                packing.encode(data, out);
                Ok(())
            }
            Filter::Swap { unit } => {
                swap(*unit, data, out);
                Ok(())
            }
        }
    }
}

/// Refuses floats that NumPy computes with in another precision than their own.
fn computes(number: Number) -> Result<()> {
    if number.is_float() && number.size < 4 {
        return Err(Error::new("unsupported", "a filter that computes with half precision"));
    }
    Ok(())
}

/// Runs `work` on blocks of elements of two sizes until it says `false`.
#[inline(always)]
pub fn blocks(
    sizes: (usize, usize),
    data: &[u8],
    out: &mut [u8],
    mut work: impl FnMut(&[u8], &mut [u8]) -> bool,
) -> bool {
    data.chunks(BLOCK * sizes.0).zip(out.chunks_mut(BLOCK * sizes.1)).all(|(from, to)| work(from, to))
}

/// Blocks of `from` as floats, changed by `change`, stored as `to`; in f32 where `narrow`.
#[inline(always)]
pub fn through_floats(
    (from, to): (Number, Number),
    narrow: bool,
    data: &[u8],
    out: &mut [u8],
    (change32, change64): (impl Fn(f32) -> f32, impl Fn(f64) -> f64),
) -> bool {
    if narrow {
        let mut values = [0f32; BLOCK];
        return blocks((from.size, to.size), data, out, |data, out| {
            let values = &mut values[..data.len() / from.size];
            let fine = load_f32(from, data, values);
            values.iter_mut().for_each(|value| *value = change32(*value));
            store_f32(to, values, out) && fine
        });
    }
    let mut values = [0f64; BLOCK];
    blocks((from.size, to.size), data, out, |data, out| {
        let values = &mut values[..data.len() / from.size];
        let fine = load_f64(from, data, values);
        values.iter_mut().for_each(|value| *value = change64(*value));
        store_f64(to, values, out) && fine
    })
}

/// As `through_floats`, to integers by rounding.
#[inline(always)]
fn to_integers(
    (from, to): (Number, Number),
    narrow: bool,
    data: &[u8],
    out: &mut [u8],
    (change32, change64): (impl Fn(f32) -> f32, impl Fn(f64) -> f64),
) -> bool {
    let (mut singles, mut values) = ([0f32; BLOCK], [0f64; BLOCK]);
    blocks((from.size, to.size), data, out, |data, out| {
        let n = data.len() / from.size;
        let values = &mut values[..n];
        let fine = if narrow {
            let fine = load_f32(from, data, &mut singles[..n]);
            values.iter_mut().zip(&singles).for_each(|(value, single)| *value = f64::from(change32(*single)));
            fine
        } else {
            let fine = load_f64(from, data, values);
            values.iter_mut().for_each(|value| *value = change64(*value));
            fine
        };
        store_rounded(to, values, out) && fine
    })
}

/// Whether this is IEEE 754 single precision.
#[inline(always)]
pub fn is_single(number: Number) -> bool {
    number.is_float() && number.size == 4
}

impl FixedScaleOffset {
    fn from_json(configuration: &Value) -> Result<FixedScaleOffset> {
        let float = |name: &str| match Scalar::member(configuration, name)? {
            Scalar::Float(value) => Ok(value),
            Scalar::Bits(_) => Err(Error::new("unsupported", "an integer in a float's place")),
        };
        let filter = FixedScaleOffset {
            decoded: Number::member(configuration, "decoded")?,
            encoded: Number::member(configuration, "encoded")?,
            scale: Scalar::member(configuration, "scale")?,
            offset: Scalar::member(configuration, "offset")?,
            float_scale: float("float_scale")?,
            float_offset: float("float_offset")?,
        };
        computes(filter.decoded)?;
        computes(filter.encoded)?;
        let whole = matches!((filter.scale, filter.offset), (Scalar::Bits(_), Scalar::Bits(_)));
        if whole && filter.encoded.is_float() {
            return Err(Error::new("unsupported", "fixedscaleoffset from integers to floats"));
        }
        Ok(filter)
    }

    #[inline(always)]
    fn encode(&self, data: &[u8], out: &mut [u8]) -> bool {
        let types = (self.decoded, self.encoded);
        if let (Scalar::Bits(offset), false) = (self.offset, self.decoded.is_float()) {
            return self.encode_integers(offset, data, out);
        }
        let (scale, offset) = (self.float_scale, self.float_offset);
        let (scale32, offset32) = (scale as f32, offset as f32);
        if !self.encoded.is_float() {
            let changes = (|x: f32| (x - offset32) * scale32, |x: f64| (x - offset) * scale);
            return to_integers(types, is_single(self.decoded), data, out, changes);
        }
        let change32 = |value: f32| rint32((value - offset32) * scale32);
        let change64 = |value: f64| rint64((value - offset) * scale);
        through_floats(types, is_single(self.decoded), data, out, (change32, change64))
    }

    /// Integers minus an integer wrap around in their own type.
    #[inline(always)]
    fn encode_integers(&self, offset: u64, data: &[u8], out: &mut [u8]) -> bool {
        let (mut values, mut floats) = ([0u64; BLOCK], [0f64; BLOCK]);
        let signed = self.decoded.kind == Kind::Int;
        blocks((self.decoded.size, self.encoded.size), data, out, |data, out| {
            let n = data.len() / self.decoded.size;
            let values = &mut values[..n];
            load_bits(self.decoded, data, values);
            let less = |value: u64| self.decoded.wrap(value.wrapping_sub(offset));
            if let Scalar::Bits(scale) = self.scale {
                values.iter_mut().for_each(|value| *value = self.decoded.wrap(less(*value).wrapping_mul(scale)));
                store_bits(self.encoded, values, out);
                return true;
            }
            for (float, &value) in floats.iter_mut().zip(&*values) {
                let less = less(value);
                *float = rint64(if signed { less as i64 as f64 } else { less as f64 } * self.float_scale);
            }
            store_f64(self.encoded, &floats[..n], out)
        })
    }

    #[inline(always)]
    fn decode(&self, data: &[u8], out: &mut [u8]) -> bool {
        let (scale, offset) = (self.float_scale, self.float_offset);
        let (scale32, offset32) = (scale as f32, offset as f32);
        let changes = (|value: f32| value / scale32 + offset32, |value: f64| value / scale + offset);
        through_floats((self.encoded, self.decoded), is_single(self.encoded), data, out, changes)
    }
}

#[inline(always)]
fn quantize(decoded: Number, encoded: Number, scale: f64, data: &[u8], out: &mut [u8]) -> bool {
    let scale32 = scale as f32;
    let changes = (|x: f32| rint32(scale32 * x) / scale32, |x: f64| rint64(scale * x) / scale);
    through_floats((decoded, encoded), is_single(decoded), data, out, changes)
}

/// NumPy's `astype`.
#[inline(always)]
fn cast(from: Number, to: Number, data: &[u8], out: &mut [u8]) -> bool {
    if from.is_float() || to.is_float() {
        // Through the target's precision, so that integers are rounded once.
        let narrow = !from.is_float() && is_single(to) || is_single(from);
        return through_floats((from, to), narrow, data, out, (|value| value, |value| value));
    }
    let mut values = [0u64; BLOCK];
    blocks((from.size, to.size), data, out, |data, out| {
        let values = &mut values[..data.len() / from.size];
        load_bits(from, data, values);
        store_bits(to, values, out);
        true
    })
}
