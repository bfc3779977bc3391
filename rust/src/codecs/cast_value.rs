//! `cast_value` of v3: the same values in another number type.

use serde_json::Value;

use super::filter::blocks;
use super::number::{
    BLOCK, Kind, Number, load_bits, load_f32, load_f64, rint64, store_bits, store_clamped, store_f32, store_f64,
    store_rounded,
};
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    NearestEven,
    TowardsZero,
    TowardsPositive,
    TowardsNegative,
    NearestAway,
}

/// What becomes of values that the target does not hold; all that is not said here is left to the reference engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Refuse,
    Clamp,
    Wrap,
}

/// A value of the scalar map: what is looked for, and the bytes of what it becomes.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    float: f64,
    bits: u64,
    becomes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
struct Direction {
    from: Number,
    to: Number,
    pairs: Vec<Pair>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CastValue {
    rounding: Rounding,
    outside: Outside,
    encode: Direction,
    decode: Direction,
}

const MOST_PAIRS: usize = 16;

fn parse_pairs(json: &Value, from: Number, to: Number) -> Result<Vec<Pair>> {
    let unsupported = || Error::new("unsupported", "a scalar_map of this kind");
    let list = json.as_array().ok_or_else(unsupported)?;
    if list.len() > MOST_PAIRS {
        return Err(unsupported());
    }
    let pair = |json: &Value| {
        let bits = json["key"].as_u64().ok_or_else(unsupported)?;
        let becomes = json["value"].as_array().ok_or_else(unsupported)?;
        let becomes: Vec<u8> = becomes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect();
        if becomes.len() != to.size {
            return Err(unsupported());
        }
        let float = if from.is_float() { f64::from_bits(bits) } else { 0.0 };
        Ok(Pair { float, bits, becomes })
    };
    list.iter().map(pair).collect()
}

impl CastValue {
    pub fn from_json(configuration: &Value) -> Result<CastValue> {
        let decoded = Number::member(configuration, "decoded")?;
        let encoded = Number::member(configuration, "encoded")?;
        let rounding = match configuration["rounding"].as_str() {
            Some("nearest-even") => Rounding::NearestEven,
            Some("towards-zero") => Rounding::TowardsZero,
            Some("towards-positive") => Rounding::TowardsPositive,
            Some("towards-negative") => Rounding::TowardsNegative,
            Some("nearest-away") => Rounding::NearestAway,
            _ => return Err(Error::new("unsupported", "a rounding of cast_value")),
        };
        let outside = match configuration["out_of_range"].as_str() {
            None => Outside::Refuse,
            Some("clamp") => Outside::Clamp,
            Some("wrap") => Outside::Wrap,
            _ => return Err(Error::new("unsupported", "an out_of_range of cast_value")),
        };
        let direction = |name: &str, from, to| {
            let pairs = parse_pairs(&configuration[name], from, to)?;
            Ok::<_, Error>(Direction { from, to, pairs })
        };
        let encode = direction("encode", decoded, encoded)?;
        let decode = direction("decode", encoded, decoded)?;
        Ok(CastValue { rounding, outside, encode, decode })
    }

    pub fn sizes(&self) -> (usize, usize) {
        (self.encode.from.size, self.encode.to.size)
    }

    /// `false`: a value that the reference engine must judge.
    #[inline(always)]
    pub fn encode(&self, data: &[u8], out: &mut [u8]) -> bool {
        self.cast(&self.encode, data, out)
    }

    /// As `encode`.
    #[inline(always)]
    pub fn decode(&self, data: &[u8], out: &mut [u8]) -> bool {
        self.cast(&self.decode, data, out)
    }

    #[inline(always)]
    fn cast(&self, direction: &Direction, data: &[u8], out: &mut [u8]) -> bool {
        let Direction { from, to, pairs } = direction;
        let mut mapped = [0u8; BLOCK];
        blocks((from.size, to.size), data, out, |data, out| {
            let mapped = &mut mapped[..data.len() / from.size];
            mapped.fill(0);
            let fine = match (from.is_float(), to.is_float()) {
                (true, _) => self.cast_floats(direction, mapped, data, out),
                (false, true) => cast_integers_to_floats(direction, mapped, data, out),
                (false, false) => self.cast_integers(direction, mapped, data, out),
            };
            if !pairs.is_empty() {
                for (slot, &number) in out.chunks_exact_mut(to.size).zip(&*mapped) {
                    if let Some(pair) = usize::from(number).checked_sub(1).and_then(|i| pairs.get(i)) {
                        slot.copy_from_slice(&pair.becomes);
                    }
                }
            }
            fine
        })
    }

    #[inline(always)]
    fn cast_floats(&self, direction: &Direction, mapped: &mut [u8], data: &[u8], out: &mut [u8]) -> bool {
        let Direction { from, to, pairs } = direction;
        let mut values = [0f64; BLOCK];
        let values = &mut values[..mapped.len()];
        let mut fine = load_f64(*from, data, values);
        for (number, pair) in (1..).zip(pairs) {
            for (value, mapped) in values.iter_mut().zip(&mut *mapped) {
                if *mapped == 0 && (*value == pair.float || value.is_nan() && pair.float.is_nan()) {
                    *mapped = number;
                }
            }
        }
        if !pairs.is_empty() {
            values.iter_mut().zip(&*mapped).filter(|(_, mapped)| **mapped != 0).for_each(|(value, _)| *value = 0.0);
        }
        if to.is_float() {
            let stored = store_f64(*to, values, out);
            // What overflows is infinite then, which is what clamping to a type with infinities means.
            let clamped = self.outside == Outside::Clamp && (to.size > 2 || values.iter().all(|value| !value.is_nan()));
            return fine && (stored || clamped);
        }
        if self.rounding == Rounding::NearestEven && self.outside != Outside::Clamp {
            return store_rounded(*to, values, out) && fine;
        }
        match self.rounding {
            Rounding::NearestEven => values.iter_mut().for_each(|value| *value = rint64(*value)),
            Rounding::TowardsZero => values.iter_mut().for_each(|value| *value = cut(*value)),
            Rounding::TowardsPositive => values.iter_mut().for_each(|value| *value = -down(-*value)),
            Rounding::TowardsNegative => values.iter_mut().for_each(|value| *value = down(*value)),
            Rounding::NearestAway => values.iter_mut().for_each(|value| {
                let whole = cut(*value);
                *value = if (*value - whole).abs() >= 0.5 { whole + 1f64.copysign(*value) } else { whole };
            }),
        }
        if self.outside == Outside::Clamp {
            fine &= values.iter().fold(true, |fine, value| fine & !value.is_nan());
            store_clamped(*to, values, out);
            return fine;
        }
        store_f64(*to, values, out) && fine
    }

    #[inline(always)]
    fn cast_integers(&self, direction: &Direction, mapped: &mut [u8], data: &[u8], out: &mut [u8]) -> bool {
        let Direction { from, to, .. } = direction;
        if from.size <= 4 && to.size <= 4 && direction.pairs.is_empty() && self.outside != Outside::Wrap {
            return self.cast_small(direction, mapped.len(), data, out);
        }
        let mut values = [0u64; BLOCK];
        let values = &mut values[..mapped.len()];
        load_bits(*from, data, values);
        find(direction, values, mapped);
        values.iter_mut().zip(&*mapped).filter(|(_, mapped)| **mapped != 0).for_each(|(value, _)| *value = 0);
        let (low, high) = to.limits();
        let mut fine = true;
        if from.kind == Kind::Int {
            let (low, high) = (low.max(i64::MIN.into()) as i64, high.min(i64::MAX.into()) as i64);
            for value in values.iter_mut() {
                let inside = (*value as i64).clamp(low, high) as u64;
                fine &= inside == *value;
                *value = if self.outside == Outside::Clamp { inside } else { *value };
            }
        } else {
            for value in values.iter_mut() {
                let inside = (*value).min(high as u64);
                fine &= inside == *value;
                *value = if self.outside == Outside::Clamp { inside } else { *value };
            }
        }
        store_bits(*to, values, out);
        fine || self.outside != Outside::Refuse
    }

    /// Integers that doubles hold, which processors compare faster than 64-bit integers.
    #[inline(always)]
    fn cast_small(&self, direction: &Direction, n: usize, data: &[u8], out: &mut [u8]) -> bool {
        let Direction { from, to, .. } = direction;
        let mut values = [0f64; BLOCK];
        let values = &mut values[..n];
        load_f64(*from, data, values);
        if self.outside == Outside::Clamp {
            let (low, high) = to.limits();
            values.iter_mut().for_each(|value| *value = value.max(low as f64).min(high as f64));
        }
        store_rounded(*to, values, out)
    }
}

#[inline(always)]
fn find(direction: &Direction, values: &[u64], mapped: &mut [u8]) {
    for (number, pair) in (1..).zip(&direction.pairs) {
        for (value, mapped) in values.iter().zip(&mut *mapped) {
            if *mapped == 0 && *value == pair.bits {
                *mapped = number;
            }
        }
    }
}

#[inline(always)]
fn cast_integers_to_floats(direction: &Direction, mapped: &mut [u8], data: &[u8], out: &mut [u8]) -> bool {
    let Direction { from, to, pairs } = direction;
    let n = mapped.len();
    if !pairs.is_empty() {
        let mut values = [0u64; BLOCK];
        load_bits(*from, data, &mut values[..n]);
        find(direction, &values[..n], mapped);
    }
    if to.size == 8 {
        let mut values = [0f64; BLOCK];
        load_f64(*from, data, &mut values[..n]);
        return store_f64(*to, &values[..n], out);
    }
    let mut values = [0f32; BLOCK];
    load_f32(*from, data, &mut values[..n]);
    store_f32(*to, &values[..n], out)
}

/// Without the fraction.
#[inline(always)]
fn cut(value: f64) -> f64 {
    let magnitude = value.abs();
    let near = rint64(magnitude);
    (if near > magnitude { near - 1.0 } else { near }).copysign(value)
}

/// The whole number at or below.
#[inline(always)]
fn down(value: f64) -> f64 {
    let near = rint64(value);
    if near > value { near - 1.0 } else { near }
}
