//! `scale_offset` of v3: (x − offset) × scale, within the type; what leaves it is left to the reference engine.

use super::filter::{Scalar, blocks, is_single, through_floats};
use super::number::{BLOCK, Kind, Number, load_bits, load_f64, rint64, store_bits, store_rounded};

#[inline(always)]
pub fn rescale(number: Number, scale: Scalar, offset: Scalar, data: &[u8], out: &mut [u8]) -> bool {
    match (scale, offset) {
        (Scalar::Float(scale), Scalar::Float(offset)) if number.is_float() => {
            let (scale32, offset32) = (scale as f32, offset as f32);
            let changes = (|x: f32| (x - offset32) * scale32, |x: f64| (x - offset) * scale);
            through_floats((number, number), is_single(number), data, out, changes) && same_finite(number, data, out)
        }
        (Scalar::Bits(scale), Scalar::Bits(offset)) if !number.is_float() => {
            let (scale, offset) = (wide(number, scale), wide(number, offset));
            let checked =
                |x: i128| x.checked_sub(offset).filter(|x| holds(number, *x)).and_then(|x| x.checked_mul(scale));
            let (scale, offset) = (scale as f64, offset as f64);
            through_integers(number, data, out, checked, |x| (x - offset, (x - offset) * scale))
        }
        _ => false,
    }
}

#[inline(always)]
pub fn unscale(number: Number, scale: Scalar, offset: Scalar, data: &[u8], out: &mut [u8]) -> bool {
    match (scale, offset) {
        (Scalar::Float(scale), Scalar::Float(offset)) if number.is_float() => {
            let (scale32, offset32) = (scale as f32, offset as f32);
            let changes = (|x: f32| x / scale32 + offset32, |x: f64| x / scale + offset);
            through_floats((number, number), is_single(number), data, out, changes) && same_finite(number, data, out)
        }
        (Scalar::Bits(scale), Scalar::Bits(offset)) if !number.is_float() => {
            let (scale, offset) = (wide(number, scale), wide(number, offset));
            let checked = |x: i128| {
                let quotient = (x.checked_rem(scale)? == 0).then(|| x / scale).filter(|x| holds(number, *x))?;
                quotient.checked_add(offset)
            };
            let (scale, offset) = (scale as f64, offset as f64);
            through_integers(number, data, out, checked, |x| (x / scale, x / scale + offset))
        }
        _ => false,
    }
}

#[inline(always)]
fn wide(number: Number, bits: u64) -> i128 {
    if number.kind == Kind::Int { i128::from(number.wrap(bits) as i64) } else { i128::from(number.wrap(bits)) }
}

#[inline(always)]
fn holds(number: Number, value: i128) -> bool {
    let (low, high) = number.limits();
    low <= value && value <= high
}

#[inline(always)]
fn through_integers(
    number: Number,
    data: &[u8],
    out: &mut [u8],
    change: impl Fn(i128) -> Option<i128>,
    small: impl Fn(f64) -> (f64, f64),
) -> bool {
    if number.size <= 4 {
        // Every whole number up to 2^53 is a double; what is larger lies outside the range and so is what it rounds to.
        let (low, high) = number.limits();
        let (low, high) = (low as f64, high as f64);
        let mut values = [0f64; BLOCK];
        return blocks((number.size, number.size), data, out, |data, out| {
            let values = &mut values[..data.len() / number.size];
            load_f64(number, data, values);
            let mut fine = true;
            for value in values.iter_mut() {
                let (first, second) = small(*value);
                fine &= (first >= low) & (first <= high) & (rint64(first) == first);
                *value = second;
            }
            fine & store_rounded(number, values, out)
        });
    }
    let mut values = [0u64; BLOCK];
    blocks((number.size, number.size), data, out, |data, out| {
        let values = &mut values[..data.len() / number.size];
        load_bits(number, data, values);
        for value in values.iter_mut() {
            match change(wide(number, *value)).filter(|changed| holds(number, *changed)) {
                Some(changed) => *value = changed as u64,
                None => return false,
            }
        }
        store_bits(number, values, out);
        true
    })
}

/// Whether no finite float became one that is not.
#[inline(always)]
fn same_finite(number: Number, before: &[u8], after: &[u8]) -> bool {
    let (mut old, mut new) = ([0f64; BLOCK], [0f64; BLOCK]);
    let size = BLOCK * number.size;
    before.chunks(size).zip(after.chunks(size)).all(|(before, after)| {
        let n = before.len() / number.size;
        load_f64(number, before, &mut old[..n]);
        load_f64(number, after, &mut new[..n]);
        old[..n].iter().zip(&new[..n]).fold(true, |fine, (old, new)| fine & (new.is_finite() | !old.is_finite()))
    })
}
