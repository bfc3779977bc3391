//! Byte and bit shuffles in the layouts of blosc and numcodecs.
//!
//! Shuffle: byte 0 of every element, then byte 1 of every element, …; the bytes of a last incomplete element follow
//! unchanged. Bit shuffle does the same with bits, for a number of elements that is a multiple of eight.

use crate::region::wide_vectors;

/// Elements per block: both sides of a block fit into the first-level cache.
const BLOCK: usize = 1024;

pub fn shuffle(width: usize, data: &[u8], out: &mut [u8]) {
    wide_vectors(|| shuffle_now(width, data, out));
}

/// Undo `shuffle`.
pub fn unshuffle(width: usize, data: &[u8], out: &mut [u8]) {
    wide_vectors(|| unshuffle_now(width, data, out));
}

#[inline(always)]
fn shuffle_now(width: usize, data: &[u8], out: &mut [u8]) {
    if width <= 1 {
        out.copy_from_slice(data);
        return;
    }
    let n = data.len() / width;
    let (body, rest) = data.split_at(n * width);
    out[n * width..].copy_from_slice(rest);
    match width {
        2 => shuffle2(body, out, n),
        4 => shuffle4(body, out, n),
        8 => shuffle8(body, out, n),
        16 => shuffle_fixed::<16>(body, out, n),
        _ => {
            for byte in 0..width {
                for i in 0..n {
                    out[byte * n + i] = body[i * width + byte];
                }
            }
        }
    }
}

#[inline(always)]
fn shuffle_fixed<const W: usize>(data: &[u8], out: &mut [u8], n: usize) {
    for start in (0..n).step_by(BLOCK) {
        let stop = (start + BLOCK).min(n);
        let elements = data[start * W..stop * W].as_chunks::<W>().0;
        for byte in 0..W {
            let plane = &mut out[byte * n + start..byte * n + stop];
            for (target, element) in plane.iter_mut().zip(elements) {
                *target = element[byte];
            }
        }
    }
}

// The loops below are written so that compilers turn them into vector code: whole integers, one output per loop.

#[inline(always)]
fn shuffle2(data: &[u8], out: &mut [u8], n: usize) {
    let (low, high) = out[..2 * n].split_at_mut(n);
    let elements = data.as_chunks::<2>().0;
    let planes = low.chunks_mut(BLOCK).zip(high.chunks_mut(BLOCK));
    for (elements, (low, high)) in elements.chunks(BLOCK).zip(planes) {
        for (target, element) in low.iter_mut().zip(elements) {
            *target = u16::from_le_bytes(*element) as u8;
        }
        for (target, element) in high.iter_mut().zip(elements) {
            *target = (u16::from_le_bytes(*element) >> 8) as u8;
        }
    }
}

#[inline(always)]
fn planes4(words: &[u32], out: &mut [u8], n: usize, start: usize) {
    for byte in 0..4 {
        let plane = &mut out[byte * n + start..byte * n + start + words.len()];
        let shift = 8 * byte as u32;
        for (target, word) in plane.iter_mut().zip(words) {
            *target = (word >> shift) as u8;
        }
    }
}

#[inline(always)]
fn shuffle4(data: &[u8], out: &mut [u8], n: usize) {
    let mut words = [0u32; BLOCK];
    for (i, elements) in data.as_chunks::<4>().0.chunks(BLOCK).enumerate() {
        let words = &mut words[..elements.len()];
        for (word, element) in words.iter_mut().zip(elements) {
            *word = u32::from_le_bytes(*element);
        }
        planes4(words, out, n, i * BLOCK);
    }
}

#[inline(always)]
fn shuffle8(data: &[u8], out: &mut [u8], n: usize) {
    let (mut low, mut high) = ([0u32; BLOCK], [0u32; BLOCK]);
    for (i, elements) in data.as_chunks::<8>().0.chunks(BLOCK).enumerate() {
        let (low, high) = (&mut low[..elements.len()], &mut high[..elements.len()]);
        for (word, element) in low.iter_mut().zip(elements) {
            *word = u64::from_le_bytes(*element) as u32;
        }
        for (word, element) in high.iter_mut().zip(elements) {
            *word = (u64::from_le_bytes(*element) >> 32) as u32;
        }
        let (first, second) = out.split_at_mut(4 * n);
        planes4(low, first, n, i * BLOCK);
        planes4(high, second, n, i * BLOCK);
    }
}

#[inline(always)]
fn unshuffle_now(width: usize, data: &[u8], out: &mut [u8]) {
    if width <= 1 {
        out.copy_from_slice(data);
        return;
    }
    let n = data.len() / width;
    out[n * width..].copy_from_slice(&data[n * width..]);
    match width {
        2 => unshuffle2(data, out, n),
        4 => unshuffle4(data, out, n),
        8 => unshuffle8(data, out, n),
        16 => unshuffle_fixed::<16>(data, out, n),
        _ => {
            for byte in 0..width {
                for i in 0..n {
                    out[i * width + byte] = data[byte * n + i];
                }
            }
        }
    }
}

#[inline(always)]
fn unshuffle2(data: &[u8], out: &mut [u8], n: usize) {
    let (a, b) = (&data[..n], &data[n..2 * n]);
    for ((target, &a), &b) in out[..2 * n].as_chunks_mut::<2>().0.iter_mut().zip(a).zip(b) {
        *target = [a, b];
    }
}

/// Four planes as words: the first plane holds the lowest bytes.
#[inline(always)]
fn words4(planes: [&[u8]; 4], words: &mut [u32]) {
    let mut low = [0u16; BLOCK];
    let low = &mut low[..words.len()];
    for ((word, &a), &b) in low.iter_mut().zip(planes[0]).zip(planes[1]) {
        *word = u16::from(a) | u16::from(b) << 8;
    }
    let mut high = [0u16; BLOCK];
    let high = &mut high[..words.len()];
    for ((word, &a), &b) in high.iter_mut().zip(planes[2]).zip(planes[3]) {
        *word = u16::from(a) | u16::from(b) << 8;
    }
    for ((word, &a), &b) in words.iter_mut().zip(&*low).zip(&*high) {
        *word = u32::from(a) | u32::from(b) << 16;
    }
}

#[inline(always)]
fn planes_at(data: &[u8], n: usize, first: usize, start: usize, len: usize) -> [&[u8]; 4] {
    std::array::from_fn(|k| &data[(first + k) * n + start..(first + k) * n + start + len])
}

#[inline(always)]
fn unshuffle4(data: &[u8], out: &mut [u8], n: usize) {
    let mut words = [0u32; BLOCK];
    for (i, elements) in out[..4 * n].as_chunks_mut::<4>().0.chunks_mut(BLOCK).enumerate() {
        let words = &mut words[..elements.len()];
        words4(planes_at(data, n, 0, i * BLOCK, words.len()), words);
        for (element, word) in elements.iter_mut().zip(words) {
            *element = word.to_le_bytes();
        }
    }
}

#[inline(always)]
fn unshuffle8(data: &[u8], out: &mut [u8], n: usize) {
    let (mut low, mut high) = ([0u32; BLOCK], [0u32; BLOCK]);
    for (i, elements) in out[..8 * n].as_chunks_mut::<8>().0.chunks_mut(BLOCK).enumerate() {
        let (low, high) = (&mut low[..elements.len()], &mut high[..elements.len()]);
        words4(planes_at(data, n, 0, i * BLOCK, low.len()), low);
        words4(planes_at(data, n, 4, i * BLOCK, high.len()), high);
        for ((element, &a), &b) in elements.iter_mut().zip(&*low).zip(&*high) {
            *element = (u64::from(a) | u64::from(b) << 32).to_le_bytes();
        }
    }
}

#[inline(always)]
fn unshuffle_fixed<const W: usize>(data: &[u8], out: &mut [u8], n: usize) {
    for start in (0..n).step_by(BLOCK) {
        let stop = (start + BLOCK).min(n);
        let elements = out[start * W..stop * W].as_chunks_mut::<W>().0;
        for byte in 0..W {
            let plane = &data[byte * n + start..byte * n + stop];
            for (element, &value) in elements.iter_mut().zip(plane) {
                element[byte] = value;
            }
        }
    }
}

/// The 8 × 8 bits of a word, transposed (bit i of byte j ↔ bit j of byte i).
#[inline]
fn transpose8(mut x: u64) -> u64 {
    let mut t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// Bit shuffle; data is left unchanged when the number of elements is not a multiple of eight (c-blosc's rule).
pub fn bitshuffle(width: usize, data: &[u8], out: &mut [u8]) {
    let n = data.len().checked_div(width).unwrap_or(0);
    if !n.is_multiple_of(8) || n == 0 {
        out.copy_from_slice(data);
        return;
    }
    out[n * width..].copy_from_slice(&data[n * width..]);
    let row = n / 8;
    for byte in 0..width {
        for i in 0..row {
            let mut word = [0u8; 8];
            for (k, target) in word.iter_mut().enumerate() {
                *target = data[(i * 8 + k) * width + byte];
            }
            let bits = transpose8(u64::from_le_bytes(word)).to_le_bytes();
            for (bit, value) in bits.into_iter().enumerate() {
                out[(byte * 8 + bit) * row + i] = value;
            }
        }
    }
}

pub fn bitunshuffle(width: usize, data: &[u8], out: &mut [u8]) {
    let n = data.len().checked_div(width).unwrap_or(0);
    if !n.is_multiple_of(8) || n == 0 {
        out.copy_from_slice(data);
        return;
    }
    out[n * width..].copy_from_slice(&data[n * width..]);
    let row = n / 8;
    for byte in 0..width {
        let planes: [&[u8]; 8] = std::array::from_fn(|bit| &data[(byte * 8 + bit) * row..(byte * 8 + bit + 1) * row]);
        for (i, group) in out[..n * width].chunks_exact_mut(8 * width).enumerate() {
            let word: [u8; 8] = std::array::from_fn(|bit| planes[bit][i]);
            let values = transpose8(u64::from_le_bytes(word)).to_le_bytes();
            for (k, value) in values.into_iter().enumerate() {
                group[k * width + byte] = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unshuffling_undoes_shuffling_for_every_width_and_length() {
        for width in 1..20 {
            for n in [0, 1, 7, 15, 16, 64, 160, 161, 1000, 4096, 70001] {
                let data: Vec<u8> = (0..n).map(|i| (i * 31 % 251) as u8).collect();
                let (mut a, mut b) = (vec![0; n], vec![0; n]);
                shuffle(width, &data, &mut a);
                unshuffle(width, &a, &mut b);
                assert_eq!(data, b, "shuffle {width} {n}");
                let (mut plain, mut back) = (vec![0; n], vec![0; n]);
                shuffle_now(width, &data, &mut plain);
                unshuffle_now(width, &plain, &mut back);
                assert_eq!((&plain, &back), (&a, &data), "without wide instructions {width} {n}");
                bitshuffle(width, &data, &mut a);
                bitunshuffle(width, &a, &mut b);
                assert_eq!(data, b, "bitshuffle {width} {n}");
            }
        }
    }
}
