//! Blocks of lz4, and those of a single value that repeats, as most of the upper bytes of shuffled numbers are.
//!
//! Such a block is some literals, one match at a distance of 1, and some more literals, which is made and read at the speed of
//! memory. Source: lz4's `lz4_Block_format.md`, "End of block restrictions".

use crate::allocate;
use crate::error::Result;

/// The shortest match, and the literals that end a block.
const MIN_MATCH: usize = 4;
const LAST_LITERALS: usize = 5;
/// The largest number in half of a token; more bytes follow it.
const NIBBLE: usize = 15;
/// Shorter data are left to the library.
const MIN_BYTES: usize = 64;

/// Decode one raw lz4 block that exactly fills `out`; `None` for any other decoded size.
pub fn decode(block: &[u8], out: &mut [u8]) -> Option<()> {
    if let Some(value) = repeated_in(block, out.len()) {
        out.fill(value);
        return Some(());
    }
    let size = i32::try_from(out.len()).ok()?;
    if i32::try_from(block.len()).is_err() {
        return None;
    }
    (lz4::block::decompress_to_buffer(block, Some(size), out).ok()? == out.len()).then_some(())
}

/// The value of which `data` consists.
pub fn repeated(data: &[u8]) -> Option<u8> {
    let (&value, rest) = data.split_first()?;
    (data.len() >= MIN_BYTES && data.last() == Some(&value) && rest == &data[..rest.len()]).then_some(value)
}

/// Append a block that holds `value` `n` times, `n` ≥ `MIN_BYTES`.
pub fn encode_repeated(value: u8, n: usize, out: &mut Vec<u8>) -> Result<()> {
    let more = n - 1 - LAST_LITERALS - MIN_MATCH - NIBBLE;
    allocate::append(out, &[0x10 | NIBBLE as u8, value, 1, 0])?;
    let start = out.len();
    allocate::extend(out, more / 255 + 1)?;
    out[start..].fill(255);
    out[start + more / 255] = (more % 255) as u8;
    allocate::append(out, &[(LAST_LITERALS as u8) << 4, value, value, value, value, value])
}

/// The value of which the decoded `block` of `n` bytes consists, if it is one match between literals.
fn repeated_in(block: &[u8], n: usize) -> Option<u8> {
    let (&token, rest) = block.split_first()?;
    let (before, rest) = rest.split_at_checked(usize::from(token >> 4))?;
    let &value = before.first()?;
    let rest = rest.strip_prefix(&[1, 0])?;
    if token & 15 != NIBBLE as u8 || before.len() == NIBBLE {
        return None;
    }
    let full = rest.iter().position(|&byte| byte != 255)?;
    let length = MIN_MATCH + NIBBLE + 255 * full + usize::from(rest[full]);
    let (&token, after) = rest[full + 1..].split_first()?;
    let complete = token >> 4 != NIBBLE as u8 && usize::from(token >> 4) == after.len() && after.len() >= LAST_LITERALS;
    let exact = before.len() + length + after.len() == n;
    (complete && exact && before.iter().chain(after).all(|&byte| byte == value)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4::block::{CompressionMode, compress, decompress};

    #[test]
    fn a_repeated_value_is_what_the_library_reads() {
        for n in (MIN_BYTES..2000).chain([4096, 32 << 10, 65_535, 65_536, 1 << 20]) {
            let (data, mut made, mut back) = (vec![7; n], Vec::new(), vec![0; n]);
            encode_repeated(7, n, &mut made).unwrap();
            assert_eq!(decompress(&made, Some(n as i32)).unwrap(), data, "{n}");
            assert_eq!(repeated_in(&made, n), Some(7), "{n}");
            decode(&made, &mut back).unwrap();
            assert_eq!(back, data, "{n}");
        }
    }

    #[test]
    fn the_blocks_of_the_library_are_read_alike() {
        for acceleration in 1..=10 {
            let mode = CompressionMode::FAST(acceleration);
            for n in [0, 1, 12, 13, 40, 64, 65, 300, 5000, 65_536] {
                let mut data = vec![9; n];
                for changed in [None, Some(0), Some(n / 2), n.checked_sub(1)] {
                    if let Some(byte) = changed.and_then(|at| data.get_mut(at)) {
                        *byte = 3;
                    }
                    let (block, mut back) = (compress(&data, Some(mode), false).unwrap(), vec![0; n]);
                    decode(&block, &mut back).unwrap();
                    assert_eq!(back, data, "{acceleration} {n} {changed:?}");
                }
            }
        }
    }

    #[test]
    fn what_the_library_refuses_is_refused() {
        let mut made = Vec::new();
        encode_repeated(7, 600, &mut made).unwrap();
        for at in 0..made.len() {
            for byte in 0..=255 {
                let mut block = made.clone();
                block[at] = byte;
                let (mut ours, mut theirs) = (vec![0; 600], vec![0; 600]);
                let expected = lz4::block::decompress_to_buffer(&block, Some(600), &mut theirs);
                let expected = expected.is_ok_and(|n| n == 600);
                assert_eq!(decode(&block, &mut ours).is_some(), expected, "{at} {byte}");
                assert!(!expected || ours == theirs, "{at} {byte}");
            }
        }
    }

    #[test]
    fn other_data_repeat_nothing() {
        assert_eq!(repeated(&[5; 63]), None);
        assert_eq!(repeated(&[5; 64]), Some(5));
        let mut data = [5; 100];
        for at in 0..100 {
            data[at] = 6;
            assert_eq!(repeated(&data), None);
            data[at] = 5;
        }
    }
}
