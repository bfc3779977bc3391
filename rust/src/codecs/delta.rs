//! `delta` of numcodecs: the first element, then differences; integers wrap around in the type of the elements.

use super::number::{BLOCK, Number, blocks, load_bits, map_f32, map_f64, store_bits};

macro_rules! float_deltas {
    ($encode:ident, $decode:ident, $map:ident, $float:ty) => {
        #[inline(always)]
        fn $encode(decoded: Number, encoded: Number, data: &[u8], out: &mut [u8]) {
            let mut before: Option<$float> = None;
            $map(decoded, encoded, data, out, |now| before.replace(now).map_or(now, |before| now - before));
        }

        #[inline(always)]
        fn $decode(decoded: Number, encoded: Number, data: &[u8], out: &mut [u8]) {
            let mut sum: Option<$float> = None;
            $map(encoded, decoded, data, out, |value| *sum.insert(sum.map_or(value, |sum| sum + value)));
        }
    };
}

float_deltas!(delta_f32, undo_delta_f32, map_f32, f32);
float_deltas!(delta_f64, undo_delta_f64, map_f64, f64);

#[inline(always)]
pub fn delta(decoded: Number, encoded: Number, data: &[u8], out: &mut [u8]) {
    if decoded.is_float() {
        let run = if decoded.size == 4 { delta_f32 } else { delta_f64 };
        return run(decoded, encoded, data, out);
    }
    if is_direct(decoded, encoded) {
        return match decoded.size {
            1 => {
                differences::<u8, 1>(data, out, u8::from_ne_bytes, |now, before| now.wrapping_sub(before).to_ne_bytes())
            }
            2 => differences::<u16, 2>(data, out, u16::from_ne_bytes, |now, before| {
                now.wrapping_sub(before).to_ne_bytes()
            }),
            4 => differences::<u32, 4>(data, out, u32::from_ne_bytes, |now, before| {
                now.wrapping_sub(before).to_ne_bytes()
            }),
            _ => differences::<u64, 8>(data, out, u64::from_ne_bytes, |now, before| {
                now.wrapping_sub(before).to_ne_bytes()
            }),
        };
    }
    let (mut values, mut before) = ([0u64; BLOCK], 0);
    blocks((decoded.size, encoded.size), data, out, |data, out| {
        let values = &mut values[..data.len() / decoded.size];
        load_bits(decoded, data, values);
        for value in values.iter_mut() {
            let now = *value;
            *value = decoded.wrap(now.wrapping_sub(before));
            before = now;
        }
        store_bits(encoded, values, out);
    });
}

/// Whether differences are words of the elements' size, in native byte order.
fn is_direct(decoded: Number, encoded: Number) -> bool {
    decoded.size == encoded.size && !decoded.swapped && !encoded.swapped
}

#[inline(always)]
fn differences<T: Copy, const W: usize>(
    data: &[u8],
    out: &mut [u8],
    word: impl Fn([u8; W]) -> T,
    difference: impl Fn(T, T) -> [u8; W],
) {
    let (words, slots) = (data.as_chunks::<W>().0, out.as_chunks_mut::<W>().0);
    let (Some(first), Some((slot, slots))) = (words.first(), slots.split_first_mut()) else { return };
    *slot = *first;
    for (slot, (before, now)) in slots.iter_mut().zip(words.iter().zip(&words[1..])) {
        *slot = difference(word(*now), word(*before));
    }
}

#[inline(always)]
fn sums<T: Copy + Default, const W: usize>(
    data: &[u8],
    out: &mut [u8],
    add: impl Fn(T, [u8; W]) -> T,
    bytes: impl Fn(T) -> [u8; W],
) {
    let mut sum = T::default();
    for (slot, word) in out.as_chunks_mut::<W>().0.iter_mut().zip(data.as_chunks::<W>().0) {
        sum = add(sum, *word);
        *slot = bytes(sum);
    }
}

#[inline(always)]
pub fn undo_delta(decoded: Number, encoded: Number, data: &[u8], out: &mut [u8]) {
    if decoded.is_float() {
        let run = if decoded.size == 4 { undo_delta_f32 } else { undo_delta_f64 };
        return run(decoded, encoded, data, out);
    }
    if is_direct(decoded, encoded) {
        return match decoded.size {
            1 => sums::<u8, 1>(data, out, |sum, bytes| sum.wrapping_add(u8::from_ne_bytes(bytes)), u8::to_ne_bytes),
            2 => sums::<u16, 2>(data, out, |sum, bytes| sum.wrapping_add(u16::from_ne_bytes(bytes)), u16::to_ne_bytes),
            4 => sums::<u32, 4>(data, out, |sum, bytes| sum.wrapping_add(u32::from_ne_bytes(bytes)), u32::to_ne_bytes),
            _ => sums::<u64, 8>(data, out, |sum, bytes| sum.wrapping_add(u64::from_ne_bytes(bytes)), u64::to_ne_bytes),
        };
    }
    let (mut values, mut sum) = ([0u64; BLOCK], 0u64);
    blocks((encoded.size, decoded.size), data, out, |data, out| {
        let values = &mut values[..data.len() / encoded.size];
        load_bits(encoded, data, values);
        for value in values.iter_mut() {
            sum = sum.wrapping_add(*value);
            *value = sum;
        }
        store_bits(decoded, values, out);
    });
}
