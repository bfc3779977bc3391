//! Load and store the numbers that filters compute with.
//!
//! Integers are processed in blocks, as 64-bit two's complement; floats one by one, in their own precision.

use serde_json::Value;

use crate::error::{Error, Result};

/// Elements per block: a block fits into the first-level cache.
pub const BLOCK: usize = 256;

/// Run `work` on blocks of elements of two sizes.
#[inline(always)]
pub fn blocks(sizes: (usize, usize), data: &[u8], out: &mut [u8], mut work: impl FnMut(&[u8], &mut [u8])) {
    data.chunks(BLOCK * sizes.0).zip(out.chunks_mut(BLOCK * sizes.1)).for_each(|(from, to)| work(from, to));
}

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
    /// Whether its bytes are not in native order.
    pub swapped: bool,
}

impl Number {
    /// Parse a NumPy type string: `<f4`, `>i8`, `|u1`.
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

    /// Whether both have the same kind and size, in any byte order.
    pub fn is_type_of(&self, other: Number) -> bool {
        (self.kind, self.size) == (other.kind, other.size)
    }

    /// Whether this type has every value of `other`; of floats, whether it is the same type.
    pub fn holds(&self, other: Number) -> bool {
        if self.is_float() || other.is_float() {
            return self.is_type_of(other);
        }
        let ((low, high), (lowest, highest)) = (self.limits(), other.limits());
        low <= lowest && highest <= high
    }

    pub fn bits(&self) -> u32 {
        8 * self.size as u32
    }

    /// Integers: `bits` truncated to this type and extended again.
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

/// Run `$body` with `$w` being the words (in native order) of `$data`, W bytes each.
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

macro_rules! map_floats {
    ($name:ident, $float:ty, $bits:ty) => {
        /// Replace each float by its image under a function.
        #[inline(always)]
        pub fn $name(from: Number, to: Number, data: &[u8], out: &mut [u8], mut change: impl FnMut($float) -> $float) {
            const W: usize = size_of::<$bits>();
            let order = |word: $bits, swapped: bool| if swapped { word.swap_bytes() } else { word };
            for (word, slot) in data.as_chunks::<W>().0.iter().zip(out.as_chunks_mut::<W>().0) {
                let value = <$float>::from_bits(order(<$bits>::from_ne_bytes(*word), from.swapped));
                *slot = order(change(value).to_bits(), to.swapped).to_ne_bytes();
            }
        }
    };
}

map_floats!(map_f32, f32, u32);
map_floats!(map_f64, f64, u64);

/// Round half to even, like `rint`, without the function call that processors before SSE 4.1 need.
#[inline(always)]
pub fn rint32(value: f32) -> f32 {
    const WHOLE: f32 = 8_388_608.0; // larger floats are whole numbers
    let magnitude = value.abs();
    if magnitude < WHOLE { (magnitude + WHOLE - WHOLE).copysign(value) } else { value }
}

/// Round like `rint32`.
#[inline(always)]
pub fn rint64(value: f64) -> f64 {
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let magnitude = value.abs();
    if magnitude < WHOLE { (magnitude + WHOLE - WHOLE).copysign(value) } else { value }
}

/// Load integers, extended to 64 bits.
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

/// Store the lowest bits.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_holds_another_when_no_value_is_lost() {
        let number = |text| Number::parse(Some(text)).unwrap();
        for (wide, narrow) in [("<i4", ">i2"), (">u8", "<u4"), ("<i2", "|u1"), ("<f4", ">f4"), ("<i8", "<i8")] {
            assert!(number(wide).holds(number(narrow)), "{wide} {narrow}");
        }
        for (one, other) in [("<i4", "<u4"), ("<u8", "|i1"), ("<f8", "<f4"), ("<f4", "<i2"), ("|i1", "<i2")] {
            assert!(!number(one).holds(number(other)), "{one} {other}");
        }
    }
}
