//! Checksums of four bytes: crc32c (v3: after the data) and those of numcodecs (crc32, crc32c, adler32: at either side;
//! fletcher32 and jenkins_lookup3 are HDF5's).

use serde_json::Value;

use super::integer;
use crate::allocate;
use crate::chain::integers;
use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sum {
    Crc32c,
    Crc32,
    Adler32,
    Fletcher32,
    /// Bob Jenkins' lookup3; the prefix is hashed before the data.
    Jenkins {
        initval: u32,
        prefix: Vec<u8>,
    },
}

/// A checksum before or after the data.
#[derive(Clone, Debug, PartialEq, Eq)]
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
            "jenkins_lookup3" => {
                let initval = u32::try_from(integer(configuration, "initval", 0)?);
                let initval = initval.map_err(|_| Error::new("unsupported", "initval is not a 32-bit number"))?;
                let prefix = match configuration.get("prefix") {
                    None | Some(Value::Null) => Vec::new(),
                    Some(list) => integers(list, "prefix")?.into_iter().map(|byte| byte as u8).collect(),
                };
                (Sum::Jenkins { initval, prefix }, false)
            }
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
        match &self.sum {
            Sum::Crc32c => "crc32c",
            Sum::Crc32 => "crc32",
            Sum::Adler32 => "adler32",
            Sum::Fletcher32 => "fletcher32",
            Sum::Jenkins { .. } => "jenkins_lookup3",
        }
    }

    fn of(&self, data: &[u8]) -> u32 {
        match &self.sum {
            Sum::Crc32c => crc32c::crc32c(data),
            Sum::Crc32 => libdeflater::crc32(data),
            Sum::Adler32 => libdeflater::adler32(data),
            Sum::Fletcher32 => fletcher32(data),
            Sum::Jenkins { initval, prefix } if prefix.is_empty() => lookup3(*initval, data),
            Sum::Jenkins { initval, prefix } => lookup3(*initval, &[prefix, data].concat()),
        }
    }

    /// Verify the checksum, and return the data without it.
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

    /// Append `data` and its checksum to `out`.
    pub fn append(&self, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let sum = self.of(data).to_le_bytes();
        let (first, second) = if self.at_start { (&sum[..], data) } else { (data, &sum[..]) };
        allocate::append(out, first)?;
        allocate::append(out, second)
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

/// Bob Jenkins' lookup3 (hashlittle).
fn lookup3(initval: u32, data: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(data.len() as u32).wrapping_add(initval);
    let (mut a, mut b, mut c) = (start, start, start);
    if data.is_empty() {
        return c;
    }
    let add = |a: &mut u32, b: &mut u32, c: &mut u32, block: &[u8]| {
        let mut words = [0; 12];
        words[..block.len()].copy_from_slice(block);
        let word = |i: usize| u32::from_le_bytes([words[i], words[i + 1], words[i + 2], words[i + 3]]);
        *a = a.wrapping_add(word(0));
        *b = b.wrapping_add(word(4));
        *c = c.wrapping_add(word(8));
    };
    // The last block, whole or not, is mixed differently.
    let (blocks, last) = data.split_at((data.len() - 1) / 12 * 12);
    for block in blocks.chunks_exact(12) {
        add(&mut a, &mut b, &mut c, block);
        for (r1, r2, r3) in [(4, 6, 8), (16, 19, 4)] {
            a = a.wrapping_sub(c) ^ c.rotate_left(r1);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(r2);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(r3);
            b = b.wrapping_add(a);
        }
    }
    add(&mut a, &mut b, &mut c, last);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}
