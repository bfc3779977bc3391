//! Registered and proposed codecs beyond the core specification.

use serde_json::Value;

use super::conditional::Conditional;
use super::n5::N5;
use super::zfp::Zfp;
use super::{integer, lz4java, lzw};
use crate::allocate;
use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq)]
pub enum Extension {
    Zfp(Zfp),
    N5(N5),
    Conditional(Conditional),
    Lz4Java {
        block: usize,
    },
    Lzw,
    /// Bytes before or after a chunk, which decoding ignores.
    Pad {
        padding: Vec<u8>,
        at_start: bool,
    },
}

impl Extension {
    /// Parse the name and configuration of a codec; `None` for an unknown name.
    pub fn from_json(name: &str, configuration: &Value) -> Result<Option<Extension>> {
        Ok(Some(match name {
            "zfp" => Extension::Zfp(Zfp::from_json(configuration)?),
            "n5_default" => Extension::N5(N5::from_json(configuration)?),
            "conditional" => Extension::Conditional(Conditional::from_json(configuration)?),
            "lz4java" => {
                let block = usize::try_from(integer(configuration, "block_size", 1 << 16)?).unwrap_or(0);
                Extension::Lz4Java { block: block.clamp(64, 1 << 25) }
            }
            "lzw" => Extension::Lzw,
            "pad" => {
                let padding = crate::chain::integers(&configuration["padding"], "padding")?;
                let padding = padding.into_iter().map(|byte| byte as u8).collect();
                Extension::Pad { padding, at_start: configuration["location"].as_str() == Some("start") }
            }
            _ => return Ok(None),
        }))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Extension::Zfp(_) => "zfp",
            Extension::N5(_) => "n5_default",
            Extension::Conditional(_) => "conditional",
            Extension::Lz4Java { .. } => "lz4java",
            Extension::Lzw => "lzw",
            Extension::Pad { .. } => "pad",
        }
    }

    pub fn encoded_size(&self, n: usize) -> Option<usize> {
        match self {
            Extension::Pad { padding, .. } => n.checked_add(padding.len()),
            _ => None,
        }
    }

    pub fn decode_into(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Extension::Zfp(zfp) => zfp.decode_into(data, out),
            Extension::N5(n5) => n5.decode_into(data, out),
            Extension::Conditional(conditional) => conditional.decode_into(data, out),
            Extension::Lz4Java { .. } => lz4java::decode(data, out),
            Extension::Lzw => lzw::decode(data, out),
            Extension::Pad { padding, at_start } => {
                if data.len().checked_sub(padding.len()) != Some(out.len()) {
                    return Err(Error::size("pad", out.len(), data.len().saturating_sub(padding.len())));
                }
                let start = if *at_start { padding.len() } else { 0 };
                out.copy_from_slice(&data[start..start + out.len()]);
                Ok(())
            }
        }
    }

    pub fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Extension::Zfp(zfp) => zfp.encode(data, out),
            Extension::N5(n5) => n5.encode(data, out),
            Extension::Conditional(conditional) => conditional.encode(data, out),
            Extension::Lz4Java { block } => lz4java::encode(*block, data, out),
            Extension::Lzw => lzw::encode(data, out),
            Extension::Pad { padding, at_start } => {
                let (first, second): (&[u8], &[u8]) = if *at_start { (padding, data) } else { (data, padding) };
                allocate::append(out, first)?;
                allocate::append(out, second)
            }
        }
    }
}
