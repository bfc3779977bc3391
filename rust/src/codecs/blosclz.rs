//! BloscLZ, the FastLZ-like format of c-blosc 1: decoder and encoder, written against the format, bounds checked.
//!
//! A control byte below 32 starts a literal run of (control + 1) bytes. Otherwise bits 5-7 are the match length − 2 (7:
//! more length bytes follow, each byte 255 is followed by another one), bits 0-4 and the next byte the distance − 1; the largest
//! distance in this form means that a 16-bit distance, counted from 8191, follows. A stream begins and ends with literals.

const NEAR: usize = 8191;
const FAR: usize = NEAR + 65535;
const MIN_MATCH: usize = 4;

/// Decode `data` to exactly fill `out`; `None` for any other decoded size.
pub fn decode(data: &[u8], out: &mut [u8]) -> Option<()> {
    let mut at = 0;
    let mut made = 0;
    let mut control = usize::from(*data.first()? & 31);
    at += 1;
    loop {
        if control < 32 {
            let n = control + 1;
            out.get_mut(made..made + n)?.copy_from_slice(data.get(at..at + n)?);
            at += n;
            made += n;
        } else {
            let mut n = (control >> 5) + 2;
            let mut distance = (control & 31) << 8;
            if n == 9 {
                loop {
                    let more = *data.get(at)?;
                    at += 1;
                    n += usize::from(more);
                    if n > out.len() {
                        return None;
                    }
                    if more != 255 {
                        break;
                    }
                }
            }
            distance += usize::from(*data.get(at)?);
            at += 1;
            if distance == NEAR {
                distance += usize::from(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]));
                at += 2;
            }
            copy_match(out, made, distance + 1, n)?;
            made += n;
        }
        match data.get(at) {
            Some(&next) => control = usize::from(next),
            None => return (made == out.len()).then_some(()),
        }
        at += 1;
    }
}

/// Repeat the `n` bytes that begin `distance` before `made`; they may overlap their copy.
#[inline]
fn copy_match(out: &mut [u8], made: usize, distance: usize, n: usize) -> Option<()> {
    let from = made.checked_sub(distance)?;
    if made + n > out.len() {
        return None;
    }
    if distance >= n {
        out.copy_within(from..from + n, made);
    } else if distance == 1 {
        let value = out[from];
        out[made..made + n].fill(value);
    } else {
        let mut done = 0;
        while done < n {
            let step = (distance + done).min(n - done);
            out.copy_within(from..from + step, made + done);
            done += step;
        }
    }
    Some(())
}

/// Encode `data` into `out`; `None` when it does not fit (the caller then stores it uncompressed).
pub fn encode(data: &[u8], out: &mut [u8]) -> Option<usize> {
    const BITS: u32 = 14;
    let mut table = [u32::MAX; 1 << BITS];
    let mut sink = Sink { out, made: 0 };
    let (mut anchor, mut at) = (0, 1);
    // The last bytes are always literals, as the decoder expects.
    let limit = data.len().saturating_sub(12);
    let mut misses = 0;
    while at < limit {
        let word = word(data, at);
        let slot = (word.wrapping_mul(2_654_435_761) >> (32 - BITS)) as usize;
        let candidate = table[slot] as usize;
        table[slot] = at as u32;
        if candidate == u32::MAX as usize || at - candidate > FAR || self::word(data, candidate) != word {
            misses += 1;
            at += 1 + (misses >> 6);
            continue;
        }
        misses = 0;
        let longest = data.len() - 2 - at;
        let mut n = MIN_MATCH;
        while n < longest && data[candidate + n] == data[at + n] {
            n += 1;
        }
        sink.literals(&data[anchor..at])?;
        sink.matched(at - candidate - 1, n)?;
        at += n;
        anchor = at;
    }
    sink.literals(&data[anchor..])?;
    Some(sink.made)
}

fn word(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

struct Sink<'a> {
    out: &'a mut [u8],
    made: usize,
}

impl Sink<'_> {
    fn put(&mut self, byte: u8) -> Option<()> {
        *self.out.get_mut(self.made)? = byte;
        self.made += 1;
        Some(())
    }

    fn literals(&mut self, data: &[u8]) -> Option<()> {
        for run in data.chunks(32) {
            self.put(run.len() as u8 - 1)?;
            self.out.get_mut(self.made..self.made + run.len())?.copy_from_slice(run);
            self.made += run.len();
        }
        Some(())
    }

    fn matched(&mut self, distance: usize, n: usize) -> Option<()> {
        let near = distance < NEAR;
        let high = if near { distance >> 8 } else { 31 };
        let length = n - 2;
        if length < 7 {
            self.put((length << 5 | high) as u8)?;
        } else {
            self.put((7 << 5 | high) as u8)?;
            let mut rest = length - 7;
            while rest >= 255 {
                self.put(255)?;
                rest -= 255;
            }
            self.put(rest as u8)?;
        }
        if near {
            return self.put(distance as u8);
        }
        self.put(255)?;
        let far = distance - NEAR;
        self.put((far >> 8) as u8)?;
        self.put(far as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_decodes() {
        let mut data: Vec<u8> = (0..200_000u32).map(|i| (i / 7 % 13 * (i / 50_000 + 1)) as u8).collect();
        data.extend((0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8));
        data.extend_from_within(1000..90_000);
        for n in [1, 2, 12, 13, 14, 40, 1000, data.len()] {
            let mut packed = vec![0; n * 2 + 64];
            let made = encode(&data[..n], &mut packed).unwrap();
            let mut back = vec![0; n];
            decode(&packed[..made], &mut back).unwrap();
            assert_eq!(back, data[..n]);
        }
    }
}
