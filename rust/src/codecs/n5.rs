//! The block of N5 in its default mode: a header with the block's own shape, then its elements, compressed.
//!
//! Blocks may be smaller or larger than the chunk they are read into: they are filled or cropped. The configuration has
//! `shape` (the chunk's, slowest axis first: the header names axes the other way round), `item`, `fill` (bytes of the
//! fill value in stored order) and `codecs`, at most one compressor.

use serde_json::Value;

use super::Codec;
use crate::allocate;
use crate::chain::{integers, product};
use crate::error::{Error, Result};
use crate::scratch;

const NAME: &str = "n5_default";
/// Largest ratio of a block's elements to those of its chunk.
const MOST: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub struct N5 {
    shape: Vec<usize>,
    item: usize,
    fill: Vec<u8>,
    compressor: Option<Codec>,
}

fn unsupported(what: &str) -> Error {
    Error::new("unsupported", what)
}

fn corrupt(got: impl Into<String>) -> Error {
    Error::codec(NAME, "a chunk is not an N5 block in default mode").got(got)
}

impl N5 {
    pub fn from_json(json: &Value) -> Result<N5> {
        let shape = integers(&json["shape"], "shape")?;
        let item = json["item"].as_u64().map_or(0, |n| n as usize);
        let fill: Vec<u8> = integers(&json["fill"], "fill")?.into_iter().map(|byte| byte as u8).collect();
        product(&shape, item)?;
        let compressor = match json["codecs"].as_array().map(Vec::as_slice) {
            Some([]) => None,
            Some([codec]) => {
                let name = codec["name"].as_str().unwrap_or_default();
                let found = Codec::from_json(name, &codec["configuration"])?;
                Some(found.ok_or_else(|| unsupported("the compressor of N5 blocks"))?)
            }
            _ => return Err(unsupported("several compressors of N5 blocks")),
        };
        if item == 0 || fill.len() != item || shape.iter().any(|&n| u32::try_from(n).is_err()) {
            return Err(unsupported("N5 blocks of chunks of this shape or element size"));
        }
        Ok(N5 { shape, item, fill, compressor })
    }

    pub fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&0u16.to_be_bytes());
        out.extend_from_slice(&(self.shape.len() as u16).to_be_bytes());
        for &n in self.shape.iter().rev() {
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        match &self.compressor {
            None => allocate::append(out, data)?,
            Some(codec) => codec.encode(data, out)?,
        }
        Ok(())
    }

    /// Parse the shape of a block, slowest axis first; return also the bytes after its header.
    fn header<'a>(&self, data: &'a [u8]) -> Result<(Vec<usize>, &'a [u8])> {
        let number = |at: usize| data.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
        let (Some(mode), Some(ndim)) = (number(0), number(2)) else {
            return Err(corrupt(format!("{} bytes, less than a header", data.len())));
        };
        if mode != 0 {
            return Err(corrupt(format!("a block of mode {mode}")));
        }
        if usize::from(ndim) != self.shape.len() {
            return Err(corrupt(format!("a block of {ndim} dimensions")).expected(format!("{}", self.shape.len())));
        }
        let Some((sizes, body)) = data[4..].split_at_checked(4 * self.shape.len()) else {
            return Err(corrupt(format!("{} bytes, less than a header", data.len())));
        };
        let sizes: Vec<usize> =
            sizes.as_chunks::<4>().0.iter().rev().map(|bytes| u32::from_be_bytes(*bytes) as usize).collect();
        Ok((sizes, body))
    }

    /// Fill `out`, which must have the size of the chunk.
    pub fn decode_into(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        let chunk_nbytes = self.shape.iter().fold(self.item, |n, &m| n.saturating_mul(m));
        if out.len() != chunk_nbytes {
            return Err(Error::size(NAME, out.len(), chunk_nbytes));
        }
        let (sizes, body) = self.header(data)?;
        if sizes == self.shape {
            return self.unpack(body, out);
        }
        let most = out.len().saturating_mul(MOST);
        let nbytes = sizes.iter().try_fold(self.item, |n, &m| n.checked_mul(m)).filter(|&n| n <= most);
        let Some(nbytes) = nbytes else {
            return Err(corrupt(format!("a block of shape {sizes:?}")).expected(format!("about {:?}", self.shape)));
        };
        let mut block = scratch::take(nbytes)?;
        self.unpack(body, &mut block)?;
        out.chunks_exact_mut(self.item).for_each(|element| element.copy_from_slice(&self.fill));
        self.place(&sizes, &block, out);
        Ok(())
    }

    fn unpack(&self, body: &[u8], out: &mut [u8]) -> Result<()> {
        match &self.compressor {
            Some(codec) => {
                codec.check_plausible(body, out.len())?;
                codec.decode_into(body, out)
            }
            None if body.len() == out.len() => {
                out.copy_from_slice(body);
                Ok(())
            }
            None => Err(Error::size(NAME, out.len(), body.len())),
        }
    }

    /// Copy the common part of a block of `sizes` and the chunk, row by row.
    fn place(&self, sizes: &[usize], block: &[u8], out: &mut [u8]) {
        let common: Vec<usize> = sizes.iter().zip(&self.shape).map(|(&n, &m)| n.min(m)).collect();
        let Some((&row, outer)) = common.split_last() else {
            out.copy_from_slice(block);
            return;
        };
        if row == 0 {
            return;
        }
        let offset = |at: &[usize], shape: &[usize]| at.iter().zip(shape).fold(0, |n, (&i, &m)| n * m + i);
        let mut at = vec![0; common.len()];
        for _ in 0..outer.iter().product::<usize>() {
            let (from, to) = (offset(&at, sizes) * self.item, offset(&at, &self.shape) * self.item);
            out[to..to + row * self.item].copy_from_slice(&block[from..from + row * self.item]);
            for (i, &n) in at.iter_mut().zip(outer).rev() {
                *i += 1;
                if *i < n {
                    break;
                }
                *i = 0;
            }
        }
    }
}
