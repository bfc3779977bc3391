//! The `conditional` codec: one bit per nested codec in a header states whether the codec was applied.
//!
//! The configuration has `codecs`, `header_bytes` and `always`; unless `always`, all codecs are applied or none,
//! whichever is smaller.

use serde_json::Value;

use super::Codec;
use crate::allocate;
use crate::error::{Error, Result};

const NAME: &str = "conditional";

#[derive(Clone, Debug, PartialEq)]
pub struct Conditional {
    codecs: Vec<Codec>,
    header: usize,
    always: bool,
}

fn corrupt(got: impl Into<String>) -> Error {
    Error::codec(NAME, "the header of a conditional chunk is wrong").got(got)
}

impl Conditional {
    pub fn from_json(json: &Value) -> Result<Conditional> {
        let unsupported = || Error::new("unsupported", "the codecs of a conditional codec");
        let list = json["codecs"].as_array().ok_or_else(unsupported)?;
        let mut codecs = Vec::with_capacity(list.len());
        for codec in list {
            let name = codec["name"].as_str().unwrap_or_default();
            codecs.push(Codec::from_json(name, &codec["configuration"])?.ok_or_else(unsupported)?);
        }
        let header = json["header_bytes"].as_u64().map_or(0, |n| n as usize);
        if header > 1 << 10 || header * 8 < codecs.len() {
            return Err(unsupported());
        }
        Ok(Conditional { codecs, header, always: json["always"].as_bool().unwrap_or(false) })
    }

    /// The codecs that were applied according to the header, and the bytes after the header.
    fn applied<'a>(&self, data: &'a [u8]) -> Result<(Vec<&Codec>, &'a [u8])> {
        let Some((header, body)) = data.split_at_checked(self.header) else {
            return Err(corrupt(format!("{} bytes", data.len())).expected(format!("{} bytes or more", self.header)));
        };
        let bit = |i: usize| header[i / 8] >> (i % 8) & 1 == 1;
        if let Some(i) = (self.codecs.len()..8 * self.header).find(|&i| bit(i)) {
            return Err(corrupt(format!("bit {i} is set")).expected(format!("bits of {} codecs", self.codecs.len())));
        }
        let codecs = self.codecs.iter().enumerate().filter(|&(i, _)| bit(i)).map(|(_, codec)| codec);
        Ok((codecs.collect(), body))
    }

    pub fn decode_into(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let (applied, body) = self.applied(data)?;
        // The input size of each codec, where known.
        let mut sizes = vec![Some(out.len())];
        for codec in &applied {
            sizes.push(sizes.last().copied().flatten().and_then(|n| codec.encoded_size(n)));
        }
        let Some((first, rest)) = applied.split_first() else {
            if body.len() != out.len() {
                return Err(Error::size(NAME, out.len(), body.len()));
            }
            out.copy_from_slice(body);
            return Ok(());
        };
        let mut data = std::borrow::Cow::Borrowed(body);
        for (codec, size) in rest.iter().zip(&sizes[1..]).rev() {
            let size = match (codec, size) {
                (_, Some(size)) => *size,
                (Codec::Checksum(_), None) => data.len().saturating_sub(4),
                _ => return Err(Error::new("reference", "a codec after one whose output has no known size")),
            };
            codec.check_plausible(&data, size)?;
            let mut decoded = allocate::zeros(size)?;
            codec.decode_into(&data, &mut decoded)?;
            data = decoded.into();
        }
        first.check_plausible(&data, out.len())?;
        first.decode_into(&data, out)
    }

    pub fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut encoded = std::borrow::Cow::Borrowed(data);
        for codec in &self.codecs {
            let mut next = Vec::new();
            codec.encode(&encoded, &mut next)?;
            encoded = next.into();
        }
        let apply = self.always || encoded.len() < data.len();
        let start = out.len();
        allocate::extend(out, self.header)?;
        if apply {
            (0..self.codecs.len()).for_each(|i| out[start + i / 8] |= 1 << (i % 8));
        }
        allocate::append(out, if apply { &encoded } else { data })
    }
}
