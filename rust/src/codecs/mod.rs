//! Bytes → bytes codecs: compressors, checksums, shuffles, and filters with the type of the elements.
//!
//! Decoders get a destination of the exact decoded size; any other decoded size is an error.

mod bits;
pub mod blosc;
pub mod blosc_encode;
pub mod blosclz;
pub mod checksum;
mod conditional;
pub mod deflate;
mod delta;
mod extension;
pub mod filter;
mod lz4_block;
mod lz4java;
mod lzw;
mod n5;
mod number;
mod packbits;
mod shuffle;
mod zfp;

use serde_json::Value;

use crate::allocate;
use crate::error::{Error, Result};
use crate::scratch;
use checksum::Checksum;
use extension::Extension;
use filter::Filter;

/// Largest ratio of decoded to encoded bytes of zstd, lz4, deflate and Blosc: a run of 128 KiB takes zstd four bytes.
const MAX_RATIO: usize = 1 << 15;
/// The largest ratio of bzip2, whose blocks of 900 kB hold run lengths: 45 MB in about 40 bytes.
const MAX_RATIO_BZ2: usize = 1 << 21;

/// One bytes → bytes codec with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum Codec {
    Blosc(blosc::Config),
    Gzip { level: i32 },
    Zlib { level: i32 },
    Zstd { level: i32, checksum: bool },
    Lz4 { acceleration: i32 },
    Bz2 { level: u32 },
    Checksum(Checksum),
    Shuffle { elementsize: usize },
    Filter(Filter),
    Extension(Box<Extension>),
}

/// `configuration[name]` as an integer, `default` when absent.
pub fn integer(configuration: &Value, name: &str, default: i64) -> Result<i64> {
    match configuration.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value.as_i64().ok_or_else(|| Error::new("unsupported", format!("{name} is not an integer"))),
    }
}

impl Codec {
    /// Parse a v3 name (or a numcodecs id) and its configuration; `None` for an unknown name.
    pub fn from_json(name: &str, configuration: &Value) -> Result<Option<Codec>> {
        let int = |key: &str, default| integer(configuration, key, default);
        let flag = |key: &str| configuration.get(key).and_then(Value::as_bool).unwrap_or(false);
        Ok(Some(match name {
            "blosc" => Codec::Blosc(blosc::Config::from_json(configuration)?),
            "gzip" => Codec::Gzip { level: int("level", 5)? as i32 },
            "zlib" => Codec::Zlib { level: int("level", 1)? as i32 },
            "zstd" => Codec::Zstd { level: int("level", 0)? as i32, checksum: flag("checksum") },
            "lz4" => Codec::Lz4 { acceleration: int("acceleration", 1)? as i32 },
            "bz2" => Codec::Bz2 { level: int("level", 1)?.clamp(1, 9) as u32 },
            "shuffle" => Codec::Shuffle { elementsize: usize::try_from(int("elementsize", 4)?).unwrap_or(0) },
            _ => match Checksum::from_json(name, configuration)? {
                Some(checksum) => Codec::Checksum(checksum),
                None => match Filter::from_json(name, configuration)? {
                    Some(filter) => Codec::Filter(filter),
                    None => {
                        let extension = Extension::from_json(name, configuration)?;
                        return Ok(extension.map(|extension| Codec::Extension(Box::new(extension))));
                    }
                },
            },
        }))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Codec::Blosc(_) => "blosc",
            Codec::Gzip { .. } => "gzip",
            Codec::Zlib { .. } => "zlib",
            Codec::Zstd { .. } => "zstd",
            Codec::Lz4 { .. } => "lz4",
            Codec::Bz2 { .. } => "bz2",
            Codec::Checksum(checksum) => checksum.name(),
            Codec::Shuffle { .. } => "shuffle",
            Codec::Filter(filter) => filter.name(),
            Codec::Extension(extension) => extension.name(),
        }
    }

    /// The exact encoded size of `n` bytes, where it does not depend on them.
    pub fn encoded_size(&self, n: usize) -> Option<usize> {
        match self {
            Codec::Checksum(_) => n.checked_add(4),
            Codec::Shuffle { .. } => Some(n),
            Codec::Filter(filter) => filter.encoded_size(n),
            Codec::Extension(extension) => extension.encoded_size(n),
            _ => None,
        }
    }

    /// Refuse data that cannot decode to `size` bytes, before that memory is allocated.
    pub fn check_plausible(&self, data: &[u8], size: usize) -> Result<()> {
        let n = data.len();
        let most = n.saturating_mul(if matches!(self, Codec::Bz2 { .. }) { MAX_RATIO_BZ2 } else { MAX_RATIO });
        let got = match self {
            Codec::Checksum(_) => None, // allocates nothing
            Codec::Shuffle { .. } => (n != size).then(|| n.to_string()),
            Codec::Filter(filter) => {
                (filter.encoded_size(size) != Some(n)).then(|| format!("the decoded form of {n} bytes"))
            }
            _ => (most < size).then(|| format!("at most {most}")),
        };
        got.map_or(Ok(()), |got| Err(Error::size(self.name(), size, got)))
    }

    /// Decode `data` to exactly fill `out`.
    pub fn decode_into(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Codec::Blosc(_) => blosc::decode(data, out),
            Codec::Gzip { .. } => deflate::gunzip(data, out),
            Codec::Zlib { .. } => deflate::unzlib(data, out),
            Codec::Zstd { .. } => decode_zstd(data, out),
            Codec::Lz4 { .. } => decode_lz4(data, out),
            Codec::Bz2 { .. } => decode_bz2(data, out),
            Codec::Checksum(checksum) => {
                let body = checksum.check(data)?;
                if body.len() != out.len() {
                    return Err(Error::size(checksum.name(), out.len(), body.len()));
                }
                out.copy_from_slice(body);
                Ok(())
            }
            Codec::Shuffle { elementsize } => {
                if data.len() != out.len() {
                    return Err(Error::size("shuffle", out.len(), data.len()));
                }
                whole_elements(*elementsize, data)?;
                shuffle::unshuffle(*elementsize, data, out);
                Ok(())
            }
            Codec::Filter(filter) => filter.decode_into(data, out),
            Codec::Extension(extension) => extension.decode_into(data, out),
        }
    }

    /// Append the encoded form of `data` to `out`.
    pub fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Codec::Blosc(config) => blosc_encode::encode(config, data, out),
            Codec::Gzip { level } => deflate::gzip(*level, data, out),
            Codec::Zlib { level } => deflate::zlib(*level, data, out),
            Codec::Zstd { level, checksum } => encode_zstd(*level, *checksum, data, out),
            Codec::Lz4 { acceleration } => encode_lz4(*acceleration, data, out),
            Codec::Bz2 { level } => encode_bz2(*level, data, out),
            Codec::Checksum(checksum) => checksum.append(data, out),
            Codec::Shuffle { elementsize } => {
                whole_elements(*elementsize, data)?;
                let start = out.len();
                allocate::extend(out, data.len())?;
                shuffle::shuffle(*elementsize, data, &mut out[start..]);
                Ok(())
            }
            Codec::Filter(filter) => filter.encode(data, out),
            Codec::Extension(extension) => extension.encode(data, out),
        }
    }
}

fn whole_elements(width: usize, data: &[u8]) -> Result<()> {
    if data.len().is_multiple_of(width.max(1)) {
        return Ok(());
    }
    Err(Error::codec("shuffle", "shuffle needs whole elements")
        .expected(format!("a multiple of {width} bytes"))
        .got(format!("{} bytes", data.len())))
}

/// Append up to `bound` bytes that `write` makes; `write` returns their number, or an error, which `failed` describes.
pub fn append<E>(
    out: &mut Vec<u8>,
    bound: usize,
    write: impl FnOnce(&mut [u8]) -> std::result::Result<usize, E>,
    failed: impl FnOnce(E) -> Error,
) -> Result<()> {
    let start = out.len();
    allocate::extend(out, bound)?;
    let made = write(&mut out[start..]).map_err(failed)?;
    out.truncate(start + made);
    Ok(())
}

fn decode_zstd(data: &[u8], out: &mut [u8]) -> Result<()> {
    if let Ok(Some(declared)) = zstd_safe::get_frame_content_size(data)
        && declared > out.len() as u64
    {
        return Err(Error::size("zstd", out.len(), declared));
    }
    let made = scratch::with_zstd_decoder(|decoder| decoder.decompress(out, data))
        .map_err(|code| Error::codec("zstd", "a chunk is not valid zstd data").got(zstd_safe::get_error_name(code)))?;
    if made == out.len() { Ok(()) } else { Err(Error::size("zstd", out.len(), made)) }
}

/// The first `stop` bytes of data that decode to `total` bytes.
pub fn zstd_prefix(data: &[u8], total: usize, stop: usize) -> Result<scratch::Scratch> {
    zstd_stream(data, total, stop).or_else(|_| {
        // Streaming needs memory for the frame's window, which may be too large; decoding a whole frame does not.
        let mut out = scratch::take(total)?;
        decode_zstd(data, &mut out)?;
        out.truncate(stop);
        Ok(out)
    })
}

fn zstd_stream(data: &[u8], total: usize, stop: usize) -> Result<scratch::Scratch> {
    let bad = |got: &str| Error::codec("zstd", "a chunk is not valid zstd data").got(got);
    if let Ok(Some(declared)) = zstd_safe::get_frame_content_size(data)
        && declared > total as u64
    {
        return Err(Error::size("zstd", total, declared));
    }
    let mut out = scratch::take(stop)?;
    scratch::with_zstd_decoder(|decoder| {
        decoder.init().map_err(|code| bad(zstd_safe::get_error_name(code)))?;
        let mut input = zstd_safe::InBuffer::around(data);
        let mut output = zstd_safe::OutBuffer::around(&mut *out);
        while output.pos() < stop {
            let before = (input.pos(), output.pos());
            decoder.decompress_stream(&mut output, &mut input).map_err(|code| bad(zstd_safe::get_error_name(code)))?;
            if (input.pos(), output.pos()) == before {
                return Err(bad("a truncated stream"));
            }
        }
        Ok(())
    })?;
    Ok(out)
}

fn encode_zstd(level: i32, checksum: bool, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    use zstd_safe::CParameter;
    let write = |target: &mut [u8]| {
        scratch::with_zstd_encoder(|encoder| {
            encoder.set_parameter(CParameter::CompressionLevel(level))?;
            encoder.set_parameter(CParameter::ChecksumFlag(checksum))?;
            encoder.compress2(target, data)
        })
    };
    append(out, zstd_safe::compress_bound(data.len()), write, |code| {
        Error::codec("zstd", "zstd cannot compress a chunk").got(zstd_safe::get_error_name(code))
    })
}

/// numcodecs' frame: the decoded size as a little-endian int32, then one lz4 block.
fn decode_lz4(data: &[u8], out: &mut [u8]) -> Result<()> {
    let Some((head, block)) = data.split_first_chunk::<4>() else {
        return Err(Error::codec("lz4", "a chunk is shorter than the lz4 header").got(format!("{} bytes", data.len())));
    };
    let declared = i32::from_le_bytes(*head);
    if declared < 0 || declared as usize != out.len() {
        return Err(Error::size("lz4", out.len(), declared));
    }
    lz4_block::decode(block, out).ok_or_else(|| Error::codec("lz4", "a chunk is not valid lz4 data"))
}

fn encode_lz4(acceleration: i32, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |_| Error::codec("lz4", "lz4 cannot compress a chunk").got(format!("{} bytes", data.len()));
    let bound = lz4::block::compress_bound(data.len()).map_err(failed)? + 4;
    let mode = lz4::block::CompressionMode::FAST(acceleration);
    append(out, bound, |target| lz4::block::compress_to_buffer(data, Some(mode), true, target), failed)
}

fn decode_bz2(data: &[u8], out: &mut [u8]) -> Result<()> {
    let bad = |got: String| Error::codec("bz2", "a chunk is not valid bz2 data").got(got);
    let (mut used, mut made) = (0, 0);
    // Several streams one after another are legal, as in gzip.
    while used < data.len() || made < out.len() {
        let mut decoder = bzip2::Decompress::new(false);
        loop {
            let (before_in, before_out) = (decoder.total_in(), decoder.total_out());
            let mut probe = [0u8; 1];
            let full = made == out.len();
            let target: &mut [u8] = if full { &mut probe } else { &mut out[made..] };
            let status = decoder.decompress(&data[used..], target).map_err(|error| bad(error.to_string()))?;
            let (took, gave) = ((decoder.total_in() - before_in) as usize, (decoder.total_out() - before_out) as usize);
            used += took;
            if full && gave > 0 {
                return Err(Error::size("bz2", out.len(), "more"));
            }
            made += gave;
            match status {
                bzip2::Status::StreamEnd => break,
                _ if took == 0 && gave == 0 => return Err(bad("a truncated stream".into())),
                _ => {}
            }
        }
    }
    Ok(())
}

fn encode_bz2(level: u32, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let bound = data.len() + data.len() / 100 + 601;
    let mut encoder = bzip2::Compress::new(bzip2::Compression::new(level), 0);
    let write = |target: &mut [u8]| {
        let status = encoder.compress(data, target, bzip2::Action::Finish)?;
        debug_assert_eq!(status, bzip2::Status::StreamEnd);
        Ok(encoder.total_out() as usize)
    };
    append(out, bound, write, |error: bzip2::Error| {
        Error::codec("bz2", "bz2 cannot compress a chunk").got(error.to_string())
    })
}
