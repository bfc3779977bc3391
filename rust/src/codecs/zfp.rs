//! The `zfp` codec: the zfp streams of a chunk, without their header.
//!
//! Integers of less than 32 bits are spread over int32 as zfp's utility functions do; unsigned ones of 32 and 64 bits are
//! taken as signed, which cannot hold the upper half. The configuration has `element` (a NumPy type string without byte
//! order), `shape` and the members of the codec, with floats as their bits: `{"float": 4607182418800017408}`.

use serde_json::Value;
use zfp_rs::{
    ZfpBitStream, ZfpConfig, ZfpDecompressionError, ZfpDimensionality, ZfpField, ZfpFieldMut, ZfpScalar, ZfpScalarType,
    ZfpStreamAlignment,
};

use crate::allocate;
use crate::chain::{integers, product};
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Reversible,
    Expert { min_bits: u32, max_bits: u32, max_prec: u32, min_exp: i32 },
    Accuracy(f64),
    Rate(f64),
    Precision(u32),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Zfp {
    element: Element,
    /// Sizes in zfp's form: the fastest axis first, unused ones 0.
    sizes: [usize; 4],
    ndim: usize,
    count: usize,
    mode: Mode,
}

fn unsupported(what: impl Into<String>) -> Error {
    Error::new("unsupported", what)
}

fn corrupt(got: impl Into<String>) -> Error {
    Error::codec("zfp", "a chunk is not valid zfp data").got(got)
}

impl Zfp {
    pub fn from_json(json: &Value) -> Result<Zfp> {
        let element = match json["element"].as_str() {
            Some("i1") => Element::I8,
            Some("u1") => Element::U8,
            Some("i2") => Element::I16,
            Some("u2") => Element::U16,
            Some("i4") => Element::I32,
            Some("u4") => Element::U32,
            Some("i8") => Element::I64,
            Some("u8") => Element::U64,
            Some("f4") => Element::F32,
            Some("f8") => Element::F64,
            _ => return Err(unsupported("zfp of elements of this type")),
        };
        let shape = integers(&json["shape"], "shape")?;
        let count = product(&shape, 1)?;
        if shape.is_empty() || shape.len() > 4 {
            return Err(unsupported("zfp of more than four dimensions"));
        }
        let mut sizes = [0; 4];
        sizes.iter_mut().zip(shape.iter().rev()).for_each(|(slot, &n)| *slot = n);
        let small = |name: &str| {
            json[name].as_u64().and_then(|n| u32::try_from(n).ok()).ok_or_else(|| unsupported(format!("{name} of zfp")))
        };
        let float = |name: &str| {
            json[name]["float"].as_u64().map(f64::from_bits).ok_or_else(|| unsupported(format!("{name} of zfp")))
        };
        let mode = match json["mode"].as_str() {
            Some("reversible") => Mode::Reversible,
            Some("fixed_accuracy") => Mode::Accuracy(float("tolerance")?),
            Some("fixed_rate") => Mode::Rate(float("rate")?),
            Some("fixed_precision") => Mode::Precision(small("precision")?),
            Some("expert") => Mode::Expert {
                min_bits: small("minbits")?,
                max_bits: small("maxbits")?,
                max_prec: small("maxprec")?,
                min_exp: json["minexp"].as_i64().map_or(0, |n| n.clamp(i32::MIN.into(), i32::MAX.into()) as i32),
            },
            _ => return Err(unsupported("the mode of zfp")),
        };
        let zfp = Zfp { element, sizes, ndim: shape.len(), count, mode };
        zfp.config(zfp.ndim)?;
        Ok(zfp)
    }

    fn scalar(&self) -> ZfpScalarType {
        match self.element {
            Element::I64 | Element::U64 => ZfpScalarType::I64,
            Element::F32 => ZfpScalarType::F32,
            Element::F64 => ZfpScalarType::F64,
            _ => ZfpScalarType::I32,
        }
    }

    /// The options for zfp; with a fixed rate, the bits of a block of `ndim` axes.
    fn config(&self, ndim: usize) -> Result<ZfpConfig> {
        let refused = |error: &dyn std::fmt::Display| unsupported(format!("zfp rejects the options: {error}"));
        Ok(match self.mode {
            Mode::Reversible => ZfpConfig::reversible(),
            Mode::Accuracy(tolerance) => ZfpConfig::fixed_accuracy(tolerance),
            Mode::Precision(precision) => ZfpConfig::fixed_precision(precision),
            Mode::Expert { min_bits, max_bits, max_prec, min_exp } => {
                ZfpConfig::expert(min_bits, max_bits, max_prec, min_exp).map_err(|error| refused(&error))?
            }
            Mode::Rate(rate) => {
                let dims = match ndim {
                    1 => ZfpDimensionality::D1,
                    2 => ZfpDimensionality::D2,
                    3 => ZfpDimensionality::D3,
                    _ => ZfpDimensionality::D4,
                };
                let rate = ZfpConfig::fixed_rate(rate, self.scalar(), dims, ZfpStreamAlignment::Unaligned);
                rate.map_err(|error| refused(&error))?
            }
        })
    }

    /// The options `data` was written with: zarrs counts the bits of a block as if it always had three axes.
    fn config_of(&self, data: &[u8]) -> Result<ZfpConfig> {
        let own = self.config(self.ndim)?;
        if !matches!(self.mode, Mode::Rate(_)) || self.ndim == 3 {
            return Ok(own);
        }
        let blocks: usize = self.sizes[..self.ndim].iter().map(|n| n.div_ceil(4)).product();
        let nbytes = |config: &ZfpConfig| {
            blocks.checked_mul(config.max_bits() as usize).map(|bits| bits.div_ceil(64).saturating_mul(8))
        };
        Ok(match self.config(3) {
            Ok(other) if nbytes(&own) != Some(data.len()) && nbytes(&other) == Some(data.len()) => other,
            _ => own,
        })
    }

    pub fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self.element {
            Element::I8 => self.compress(&load(data, |[byte]: [u8; 1]| i32::from(byte as i8) << 23)?, out),
            Element::U8 => self.compress(&load(data, |[byte]: [u8; 1]| (i32::from(byte) - 0x80) << 23)?, out),
            Element::I16 => self.compress(&load(data, |two| i32::from(i16::from_ne_bytes(two)) << 15)?, out),
            Element::U16 => self.compress(&load(data, |two| (i32::from(u16::from_ne_bytes(two)) - 0x8000) << 15)?, out),
            Element::I32 => self.compress(&load(data, i32::from_ne_bytes)?, out),
            Element::I64 => self.compress(&load(data, i64::from_ne_bytes)?, out),
            Element::F32 => self.compress(&load(data, f32::from_ne_bytes)?, out),
            Element::F64 => self.compress(&load(data, f64::from_ne_bytes)?, out),
            Element::U32 => self.compress(&signed(load(data, i32::from_ne_bytes)?, |&value| value < 0)?, out),
            Element::U64 => self.compress(&signed(load(data, i64::from_ne_bytes)?, |&value| value < 0)?, out),
        }
    }

    /// Fill `out`, which has the size of the chunk.
    pub fn decode_into(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        match self.element {
            Element::I8 => store(&self.decompress(data)?, out, |v: i32| [(v >> 23).clamp(-0x80, 0x7f) as u8]),
            Element::U8 => store(&self.decompress(data)?, out, |v: i32| [((v >> 23) + 0x80).clamp(0, 0xff) as u8]),
            Element::I16 => {
                store(&self.decompress(data)?, out, |v: i32| ((v >> 15).clamp(-0x8000, 0x7fff) as i16).to_ne_bytes())
            }
            Element::U16 => store(&self.decompress(data)?, out, |v: i32| {
                (((v >> 15) + 0x8000).clamp(0, 0xffff) as u16).to_ne_bytes()
            }),
            Element::I32 => store(&self.decompress(data)?, out, i32::to_ne_bytes),
            Element::I64 => store(&self.decompress(data)?, out, i64::to_ne_bytes),
            Element::F32 => store(&self.decompress(data)?, out, f32::to_ne_bytes),
            Element::F64 => store(&self.decompress(data)?, out, f64::to_ne_bytes),
            Element::U32 => store(&self.decompress(data)?, out, |v: i32| v.max(0).to_ne_bytes()),
            Element::U64 => store(&self.decompress(data)?, out, |v: i64| v.max(0).to_ne_bytes()),
        }
    }

    fn compress<T: ZfpScalar>(&self, values: &[T], out: &mut Vec<u8>) -> Result<()> {
        let failed =
            |error: &dyn std::fmt::Display| Error::codec("zfp", "zfp cannot compress a chunk").got(error.to_string());
        if values.len() != self.count {
            return Err(Error::size("zfp", self.count, values.len()));
        }
        if values.is_empty() {
            return Ok(());
        }
        let config = self.config(self.ndim)?;
        let field = ZfpField::new(values, self.sizes).map_err(|error| failed(&error))?;
        let room =
            config.maximum_size(self.scalar(), self.sizes).ok_or_else(|| unsupported("zfp of a chunk of this size"))?;
        let mut stream = ZfpBitStream::new(room).map_err(|error| failed(&error))?;
        let size = stream.compress(&config, &field).map_err(|error| failed(&error))?;
        allocate::append(out, &stream.as_bytes()[..size])
    }

    fn decompress<T: ZfpScalar>(&self, data: &[u8]) -> Result<Vec<T>> {
        let mut values = allocate::repeated(self.count, T::default())?;
        if self.count == 0 {
            return if data.is_empty() {
                Ok(values)
            } else {
                Err(corrupt(format!("{} bytes for a chunk without elements", data.len())))
            };
        }
        let config = self.config_of(data)?;
        let mut stream = ZfpBitStream::from_bytes(data).map_err(|error| corrupt(error.to_string()))?;
        let mut field = ZfpFieldMut::new(&mut values, self.sizes).map_err(|error| unsupported(error.to_string()))?;
        let used = stream.decompress(&config, &mut field).map_err(|error| match error {
            ZfpDecompressionError::Truncated { capacity, .. } => {
                corrupt(format!("a stream truncated after {capacity} bytes"))
            }
            other => corrupt(other.to_string()),
        })?;
        // A stream ends with a whole word of 64 bits, or with a whole byte if zfp was built with words of 8 bits.
        if used != data.len().next_multiple_of(8) {
            return Err(corrupt(format!("{} bytes, of which {used} are used", data.len())));
        }
        Ok(values)
    }
}

fn load<const W: usize, T>(data: &[u8], value: impl Fn([u8; W]) -> T) -> Result<Vec<T>> {
    let chunks = data.as_chunks::<W>().0;
    let mut values = allocate::with_room(chunks.len())?;
    values.extend(chunks.iter().map(|bytes| value(*bytes)));
    Ok(values)
}

fn store<const W: usize, T: Copy>(values: &[T], out: &mut [u8], bytes: impl Fn(T) -> [u8; W]) -> Result<()> {
    if out.len() != values.len() * W {
        return Err(Error::size("zfp", out.len(), values.len() * W));
    }
    out.as_chunks_mut::<W>().0.iter_mut().zip(values).for_each(|(slot, &value)| *slot = bytes(value));
    Ok(())
}

fn signed<T>(values: Vec<T>, too_large: impl Fn(&T) -> bool) -> Result<Vec<T>> {
    if values.iter().any(too_large) {
        return Err(Error::codec("zfp", "zfp cannot hold the upper half of an unsigned type")
            .expected("values below 2^31, or 2^63")
            .hint("Subtract an offset, for instance with the scale_offset codec"));
    }
    Ok(values)
}
