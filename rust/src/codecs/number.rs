//! Numbers of the types that filters compute with, in and out of bytes.
//!
//! A block of elements is loaded into one of three domains (f32, f64, or integers as 64 bits of two's complement), worked
//! on there, and stored from there. Every conversion here is exact or the one rounding that IEEE 754 defines; storing
//! tells when a value had no such result (a float outside the range of an integer, a finite value that overflows).

use serde_json::Value;

use crate::error::{Error, Result};

/// Elements worked on together: what is loaded stays in the first-level cache.
pub const BLOCK: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Uint,
    Float,
}

/// A number type and its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    pub kind: Kind,
    pub size: usize,
    /// Whether its bytes are in the other order than the machine's.
    pub swapped: bool,
}

impl Number {
    /// From a NumPy type string: `<f4`, `>i8`, `|u1`.
    pub fn parse(text: Option<&str>) -> Result<Number> {
        let unsupported = || Error::new("unsupported", format!("a filter of elements {text:?}"));
        let [order, kind, size] = text.unwrap_or_default().as_bytes() else { return Err(unsupported()) };
        let kind = match kind {
            b'i' => Kind::Int,
            b'u' => Kind::Uint,
            b'f' => Kind::Float,
            _ => return Err(unsupported()),
        };
        let size = match (kind, size) {
            (Kind::Int | Kind::Uint, b'1') => 1,
            (_, b'2') => 2,
            (_, b'4') => 4,
            (_, b'8') => 8,
            _ => return Err(unsupported()),
        };
        let other = if cfg!(target_endian = "little") { b'>' } else { b'<' };
        Ok(Number { kind, size, swapped: *order == other && size > 1 })
    }

    /// Member `name` of a configuration.
    pub fn member(configuration: &Value, name: &str) -> Result<Number> {
        Number::parse(configuration[name].as_str())
    }

    pub fn is_float(&self) -> bool {
        self.kind == Kind::Float
    }

    pub fn bits(&self) -> u32 {
        8 * self.size as u32
    }

    /// Integers: `bits` cut off to this type and extended again.
    #[inline(always)]
    pub fn wrap(&self, bits: u64) -> u64 {
        let drop = 64 - self.bits();
        if self.kind == Kind::Int { ((bits << drop) as i64 >> drop) as u64 } else { bits << drop >> drop }
    }

    /// Integers: smallest and largest value.
    pub fn limits(&self) -> (i128, i128) {
        match self.kind {
            Kind::Int => (-(1 << (self.bits() - 1)), (1 << (self.bits() - 1)) - 1),
            _ => (0, (1 << self.bits()) - 1),
        }
    }
}

/// Runs `$body` with `$w` being the words (in machine order) of `$data`, W bytes each.
macro_rules! each_word {
    ($data:expr, $swapped:expr, $out:expr, $type:ty, |$word:ident| $body:expr) => {{
        let words = $data.as_chunks::<{ size_of::<$type>() }>().0;
        if $swapped {
            for (slot, bytes) in $out.iter_mut().zip(words) {
                let $word = <$type>::from_ne_bytes(*bytes).swap_bytes();
                *slot = $body;
            }
        } else {
            for (slot, bytes) in $out.iter_mut().zip(words) {
                let $word = <$type>::from_ne_bytes(*bytes);
                *slot = $body;
            }
        }
    }};
}

macro_rules! put_words {
    ($values:expr, $swapped:expr, $out:expr, $type:ty, |$value:ident| $body:expr) => {{
        let words = $out.as_chunks_mut::<{ size_of::<$type>() }>().0;
        if $swapped {
            for (bytes, &$value) in words.iter_mut().zip($values) {
                *bytes = <$type>::to_ne_bytes(($body as $type).swap_bytes());
            }
        } else {
            for (bytes, &$value) in words.iter_mut().zip($values) {
                *bytes = <$type>::to_ne_bytes($body as $type);
            }
        }
    }};
}

macro_rules! float_domain {
    ($load:ident, $store:ident, $float:ty, $wide:literal) => {
        /// Loads elements; integers are rounded to nearest where they must be. `false`: a signalling half.
        #[inline(always)]
        pub fn $load(number: Number, data: &[u8], out: &mut [$float]) -> bool {
            let swapped = number.swapped;
            match (number.kind, number.size) {
                (Kind::Int, 1) => each_word!(data, swapped, out, u8, |word| word as i8 as $float),
                (Kind::Int, 2) => each_word!(data, swapped, out, u16, |word| word as i16 as $float),
                (Kind::Int, 4) => each_word!(data, swapped, out, u32, |word| word as i32 as $float),
                (Kind::Int, _) => each_word!(data, swapped, out, u64, |word| word as i64 as $float),
                (Kind::Uint, 1) => each_word!(data, swapped, out, u8, |word| word as $float),
                (Kind::Uint, 2) => each_word!(data, swapped, out, u16, |word| word as $float),
                (Kind::Uint, 4) => each_word!(data, swapped, out, u32, |word| word as $float),
                (Kind::Uint, _) => each_word!(data, swapped, out, u64, |word| word as $float),
                (Kind::Float, 2) => {
                    let mut signalling = false;
                    each_word!(data, swapped, out, u16, |word| {
                        signalling |= word & 0x7c00 == 0x7c00 && word & 0x3ff != 0 && word & 0x200 == 0;
                        from_half(word) as $float
                    });
                    return !signalling;
                }
                (Kind::Float, 4) => each_word!(data, swapped, out, u32, |word| f32::from_bits(word) as $float),
                (Kind::Float, _) => each_word!(data, swapped, out, u64, |word| f64::from_bits(word) as $float),
            }
            true
        }

        /// Stores values, fractions of integers cut off. `false`: one has no result that is defined.
        #[inline(always)]
        pub fn $store(number: Number, values: &[$float], out: &mut [u8]) -> bool {
            let swapped = number.swapped;
            let mut fine = true;
            macro_rules! integers {
                ($word:ty, $type:ty) => {{
                    // The first value beyond the range, a power of two.
                    let end = (1u128 << (<$type>::BITS - u32::from(<$type>::MIN != 0))) as $float;
                    put_words!(values, swapped, out, $word, |value| {
                        let cut = value as $type;
                        fine &= (cut as $float - value).abs() < 1.0 && value < end;
                        cut
                    })
                }};
            }
            match (number.kind, number.size) {
                (Kind::Int, 1) => integers!(u8, i8),
                (Kind::Int, 2) => integers!(u16, i16),
                (Kind::Int, 4) => integers!(u32, i32),
                (Kind::Int, _) => integers!(u64, i64),
                (Kind::Uint, 1) => integers!(u8, u8),
                (Kind::Uint, 2) => integers!(u16, u16),
                (Kind::Uint, 4) => integers!(u32, u32),
                (Kind::Uint, _) => integers!(u64, u64),
                (Kind::Float, 2) => put_words!(values, swapped, out, u16, |value| {
                    let half = to_half(f64::from(value));
                    fine &= !value.is_nan() && (half & 0x7c00 != 0x7c00 || value.is_infinite());
                    half
                }),
                (Kind::Float, 4) => put_words!(values, swapped, out, u32, |value| {
                    let narrow = value as f32;
                    fine &= !$wide || narrow.is_finite() || !value.is_finite();
                    narrow.to_bits()
                }),
                (Kind::Float, _) => put_words!(values, swapped, out, u64, |value| f64::from(value).to_bits()),
            }
            fine
        }
    };
}

float_domain!(load_f32, store_f32, f32, false);
float_domain!(load_f64, store_f64, f64, true);

/// Rounds half to even and stores as integers. `false`: one lies outside the range.
#[inline(always)]
pub fn store_rounded(number: Number, values: &mut [f64], out: &mut [u8]) -> bool {
    if number.size > 4 {
        values.iter_mut().for_each(|value| *value = rint64(*value));
        return store_f64(number, values, out);
    }
    // Added to this, a number up to 2^51 is rounded, and the last 32 bits are its two's complement.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let (low, high) = number.limits();
    let (low, high) = (low as f64, high as f64);
    let swapped = number.swapped;
    let mut fine = true;
    macro_rules! rounded {
        ($word:ty) => {
            put_words!(&*values, swapped, out, $word, |value| {
                let shifted = value + SHIFT;
                let whole = shifted - SHIFT;
                fine &= (whole >= low) & (whole <= high);
                shifted.to_bits() as u32
            })
        };
    }
    match number.size {
        1 => rounded!(u8),
        2 => rounded!(u16),
        _ => rounded!(u32),
    }
    fine
}

/// Half to even, as `rint`; without the call that processors before SSE 4.1 need for it.
#[inline(always)]
pub fn rint32(value: f32) -> f32 {
    const WHOLE: f32 = 8_388_608.0; // from here on there are no fractions
    let magnitude = value.abs();
    if magnitude < WHOLE { (magnitude + WHOLE - WHOLE).copysign(value) } else { value }
}

/// As `rint32`.
#[inline(always)]
pub fn rint64(value: f64) -> f64 {
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let magnitude = value.abs();
    if magnitude < WHOLE { (magnitude + WHOLE - WHOLE).copysign(value) } else { value }
}

/// Stores whole numbers, those outside the range as its nearest end; NaN is 0.
#[inline(always)]
pub fn store_clamped(number: Number, values: &[f64], out: &mut [u8]) {
    let swapped = number.swapped;
    match (number.kind, number.size) {
        (Kind::Int, 1) => put_words!(values, swapped, out, u8, |value| value as i8),
        (Kind::Int, 2) => put_words!(values, swapped, out, u16, |value| value as i16),
        (Kind::Int, 4) => put_words!(values, swapped, out, u32, |value| value as i32),
        (Kind::Int, _) => put_words!(values, swapped, out, u64, |value| value as i64),
        (_, 1) => put_words!(values, swapped, out, u8, |value| value as u8),
        (_, 2) => put_words!(values, swapped, out, u16, |value| value as u16),
        (_, 4) => put_words!(values, swapped, out, u32, |value| value as u32),
        (_, _) => put_words!(values, swapped, out, u64, |value| value as u64),
    }
}

/// Loads integers, extended to 64 bits.
#[inline(always)]
pub fn load_bits(number: Number, data: &[u8], out: &mut [u64]) {
    let swapped = number.swapped;
    match (number.kind, number.size) {
        (Kind::Int, 1) => each_word!(data, swapped, out, u8, |word| word as i8 as u64),
        (Kind::Int, 2) => each_word!(data, swapped, out, u16, |word| word as i16 as u64),
        (Kind::Int, 4) => each_word!(data, swapped, out, u32, |word| word as i32 as u64),
        (_, 1) => each_word!(data, swapped, out, u8, |word| u64::from(word)),
        (_, 2) => each_word!(data, swapped, out, u16, |word| u64::from(word)),
        (_, 4) => each_word!(data, swapped, out, u32, |word| u64::from(word)),
        (_, _) => each_word!(data, swapped, out, u64, |word| word),
    }
}

/// Stores the lowest bits.
#[inline(always)]
pub fn store_bits(number: Number, values: &[u64], out: &mut [u8]) {
    let swapped = number.swapped;
    match number.size {
        1 => put_words!(values, swapped, out, u8, |value| value),
        2 => put_words!(values, swapped, out, u16, |value| value),
        4 => put_words!(values, swapped, out, u32, |value| value),
        _ => put_words!(values, swapped, out, u64, |value| value),
    }
}

/// The value of an IEEE half.
#[inline(always)]
fn from_half(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff);
    let bits = if magnitude >= 0x7c00 {
        0x7f80_0000 | (magnitude & 0x3ff) << 13
    } else if magnitude >= 0x400 {
        (magnitude << 13) + (112 << 23)
    } else {
        (magnitude as f32 * (1.0 / 16_777_216.0)).to_bits() // exact: subnormal halves are multiples of 2^-24
    };
    f32::from_bits(sign | bits)
}

/// The nearest IEEE half, ties to even; NaN stays one.
#[inline(always)]
fn to_half(value: f64) -> u16 {
    let sign = ((value.to_bits() >> 48) & 0x8000) as u16;
    let magnitude = value.abs();
    if magnitude.is_nan() {
        return sign | 0x7e00;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00; // halfway to what would be the next, and beyond
    }
    if magnitude < 6.103_515_625e-5 {
        // Adding 2^28 leaves multiples of 2^-24 in the lowest bits, rounded to even.
        return sign | ((magnitude + 268_435_456.0).to_bits() & 0x7ff) as u16;
    }
    // 42 of the 52 bits go, rounded to even; a carry into the exponent is right.
    let bits = magnitude.to_bits();
    let rounded = (bits + 0x1ff_ffff_ffff + (bits >> 42 & 1)) >> 42;
    sign | (rounded - (1008 << 10)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_round_trip() {
        for half in 0..=u16::MAX {
            if half & 0x7fff <= 0x7c00 {
                assert_eq!(to_half(f64::from(from_half(half))), half, "{half:#x}");
            }
        }
    }

    #[test]
    fn halves_are_rounded_to_even() {
        for half in 0..0x7bffu16 {
            let (low, high) = (f64::from(from_half(half)), f64::from(from_half(half + 1)));
            let even = if half.is_multiple_of(2) { half } else { half + 1 };
            let middle = f64::midpoint(low, high);
            assert_eq!(to_half(middle), even, "{half:#x}");
            assert_eq!(to_half(f64::from_bits(middle.to_bits() + 1)), half + 1, "{half:#x}");
            assert_eq!(to_half(f64::from_bits(middle.to_bits() - 1)), half, "{half:#x}");
        }
        assert_eq!((to_half(65519.999), to_half(65520.0), to_half(-1e300)), (0x7bff, 0x7c00, 0xfc00));
    }

    #[test]
    fn the_ends_of_integer_types_are_known() {
        let number = |text| Number::parse(Some(text)).unwrap();
        for (text, last, beyond) in [("|u1", 255.9, 256.0), ("|i1", 127.9, 128.0), ("<u2", 65535.5, 65536.0)] {
            let mut out = [0; 2];
            assert!(store_f64(number(text), &[last], &mut out), "{text}");
            assert!(!store_f64(number(text), &[beyond], &mut out), "{text}");
            assert!(!store_f64(number(text), &[f64::NAN], &mut out), "{text}");
        }
        let mut out = [0; 8];
        assert!(!store_f64(number("<i8"), &[9_223_372_036_854_775_808.0], &mut out));
        assert!(store_f64(number("<i8"), &[-9_223_372_036_854_775_808.0], &mut out));
        assert!(!store_f64(number("<u8"), &[18_446_744_073_709_551_616.0], &mut out));
        assert!(store_f64(number("<u8"), &[-0.5], &mut out) && !store_f64(number("<u8"), &[-1.0], &mut out));
    }
}
