//! Checksums of four bytes: crc32c (v3: after the data) and those of numcodecs (crc32, crc32c, adler32: at either side;
//! fletcher32 and jenkins_lookup3 are HDF5's).

use serde_json::Value;

use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    Crc32c,
    Crc32,
    Adler32,
    Fletcher32,
}

/// A checksum beside the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    pub sum: Sum,
    pub at_start: bool,
}

impl Checksum {
    pub fn from_json(name: &str, configuration: &Value) -> Result<Option<Checksum>> {
        let (sum, start_by_default) = match name {
            "crc32c" => (Sum::Crc32c, false),
            "numcodecs.crc32c" => (Sum::Crc32c, false),
            "crc32" => (Sum::Crc32, true),
            "adler32" => (Sum::Adler32, true),
            "fletcher32" => (Sum::Fletcher32, false),
            _ => return Ok(None),
        };
        let at_start = match configuration.get("location").and_then(Value::as_str) {
            None => start_by_default,
            Some("start") => true,
            Some("end") => false,
            Some(other) => return Err(Error::new("unsupported", format!("checksum location {other:?}"))),
        };
        Ok(Some(Checksum { sum, at_start }))
    }

    pub fn name(&self) -> &'static str {
        match self.sum {
            Sum::Crc32c => "crc32c",
            Sum::Crc32 => "crc32",
            Sum::Adler32 => "adler32",
            Sum::Fletcher32 => "fletcher32",
        }
    }

    fn of(&self, data: &[u8]) -> u32 {
        match self.sum {
            Sum::Crc32c => crc32c::crc32c(data),
            Sum::Crc32 => libdeflater::crc32(data),
            Sum::Adler32 => libdeflater::adler32(data),
            Sum::Fletcher32 => fletcher32(data),
        }
    }

    /// The data without its checksum, which was right.
    pub fn check<'a>(&self, data: &'a [u8]) -> Result<&'a [u8]> {
        let Some(n) = data.len().checked_sub(4) else {
            return Err(Error::codec(self.name(), "a value is shorter than its checksum")
                .expected("at least 4 bytes")
                .got(format!("{} bytes", data.len())));
        };
        let (body, stored) = if self.at_start { (&data[4..], &data[..4]) } else { (&data[..n], &data[n..]) };
        let stored = u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]);
        let computed = self.of(body);
        if stored == computed {
            return Ok(body);
        }
        let mut error = Error::new("checksum", format!("the {} checksum of a value is wrong", self.name()))
            .expected(format!("0x{stored:08x} (stored)"))
            .got(format!("0x{computed:08x} (computed)"))
            .hint("The stored value is corrupt; restore it from a copy");
        error = error.with(|fault| fault.codec = Some(self.name().into()));
        Err(error)
    }

    /// Appends `data` and its checksum to `out`.
    pub fn append(&self, data: &[u8], out: &mut Vec<u8>) {
        let sum = self.of(data).to_le_bytes();
        if self.at_start {
            out.extend_from_slice(&sum);
            out.extend_from_slice(data);
        } else {
            out.extend_from_slice(data);
            out.extend_from_slice(&sum);
        }
    }
}

/// HDF5's Fletcher checksum: big-endian 16-bit words, an odd last byte as the high half of a word.
fn fletcher32(data: &[u8]) -> u32 {
    let (mut low, mut high) = (0u32, 0u32);
    // 360 words are the most that cannot overflow the sums.
    for block in data.chunks(720) {
        let words = block.chunks_exact(2);
        let rest = words.remainder();
        for word in words {
            low += u32::from(u16::from_be_bytes([word[0], word[1]]));
            high += low;
        }
        if let [last] = rest {
            low += u32::from(*last) << 8;
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    high << 16 | low
}
