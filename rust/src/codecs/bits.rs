//! `bitround`, and changes of byte order.

use super::number::{BLOCK, Kind, Number, blocks, load_bits, store_bits};

macro_rules! rounding_words {
    ($name:ident, $word:ty) => {
        #[inline(always)]
        pub fn $name(mantissa: u32, drop: u32, data: &[u8], out: &mut [u8]) {
            const W: usize = size_of::<$word>();
            let special = (<$word>::MAX >> 1) >> mantissa << mantissa;
            for (bytes, slot) in data.as_chunks::<W>().0.iter().zip(out.as_chunks_mut::<W>().0) {
                let bits = <$word>::from_ne_bytes(*bytes);
                let up = bits.wrapping_add((bits >> drop & 1) + (1 << (drop - 1)) - 1) >> drop << drop;
                *slot = (if bits & special == special { bits } else { up }).to_ne_bytes();
            }
        }
    };
}

rounding_words!(round_u16, u16);
rounding_words!(round_u32, u32);
rounding_words!(round_u64, u64);

#[inline(always)]
pub fn round_integers(number: Number, keep: u32, data: &[u8], out: &mut [u8]) {
    let mut values = [0u64; BLOCK];
    let limit = number.limits().1 as u64;
    blocks((number.size, number.size), data, out, |data, out| {
        let values = &mut values[..data.len() / number.size];
        load_bits(number, data, values);
        for value in values.iter_mut() {
            let negative = number.kind == Kind::Int && (*value as i64) < 0;
            let magnitude = if negative { value.wrapping_neg() } else { *value };
            let drop = (64 - magnitude.leading_zeros()).saturating_sub(keep);
            let kept = magnitude >> drop;
            let (rest, half) = (magnitude - (kept << drop), (1u64 << drop) >> 1);
            let up = rest > half || rest == half && drop > 0 && kept & 1 == 1;
            let cut = kept << drop;
            let rounded = cut.checked_add(u64::from(up) << drop).filter(|rounded| *rounded <= limit).unwrap_or(cut);
            *value = if negative { rounded.wrapping_neg() } else { rounded };
        }
        store_bits(number, values, out);
    });
}

#[inline(always)]
pub fn swap(unit: usize, data: &[u8], out: &mut [u8]) {
    fn words<const W: usize>(data: &[u8], out: &mut [u8]) {
        for (from, to) in data.as_chunks::<W>().0.iter().zip(out.as_chunks_mut::<W>().0) {
            *to = *from;
            to.reverse();
        }
    }
    match unit {
        2 => words::<2>(data, out),
        4 => words::<4>(data, out),
        _ => words::<8>(data, out),
    }
}
