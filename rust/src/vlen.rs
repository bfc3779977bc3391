//! Text and bytes of varying length (`vlen-utf8`, `vlen-bytes`) between a chunk's bytes and what NumPy takes.
//!
//! Used by `tessarr.codecs.array_to_bytes.vlen_native`. A chunk is the number of elements, then for each its length and its bytes;
//! numbers are 32-bit, unsigned, little-endian. For corrupt data and unsupported objects the functions return `None`; the codec
//! in Python, which handles every case, reports the error.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::allocate;

const HEAD: usize = 4;

/// Elements, and bytes of each, that are enough to tell whether a block is of a language beyond ASCII.
const SAMPLE: usize = 8;
const SAMPLE_BYTES: usize = 1 << 10;

/// Texts of more bytes are never padded: NumPy's fixed-width types end at 2 GiB.
const WIDEST_BEYOND_ASCII: usize = 1 << 20;

/// The length of the element that starts at `at`, if all its bytes are inside `data`.
fn length(data: &[u8], at: usize) -> Option<usize> {
    let (head, rest) = data.get(at..)?.split_first_chunk::<HEAD>()?;
    let size = u32::from_le_bytes(*head) as usize;
    (size <= rest.len()).then_some(size)
}

/// Iterates over elements that are known to be inside the data.
struct Elements<'a> {
    data: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let size = length(self.data, self.at)?;
        let start = self.at + HEAD;
        self.at = start + size;
        Some(&self.data[start..self.at])
    }
}

/// Some elements of a chunk, checked.
pub struct Block<'a> {
    data: &'a [u8],
    at: usize,
    /// Number of elements.
    pub count: usize,
    /// Where the next element starts.
    pub end: usize,
    /// Bytes of the longest element.
    pub width: usize,
    /// An element ends in NUL.
    pub nul: bool,
}

impl<'a> Block<'a> {
    /// Check the `count` elements that start at `at`; `None` when the data is too short.
    pub fn new(data: &'a [u8], at: usize, count: usize) -> Option<Block<'a>> {
        if at > data.len() || count > data.len() / HEAD {
            return None;
        }
        let (mut end, mut width, mut nul) = (at, 0, false);
        for _ in 0..count {
            let size = length(data, end)?;
            end += HEAD + size;
            width = width.max(size);
            nul |= size > 0 && data[end - 1] == 0;
        }
        Some(Block { data, at, count, end, width, nul })
    }

    /// Their bytes.
    pub fn elements(&self) -> impl Iterator<Item = &'a [u8]> {
        Elements { data: self.data, at: self.at, left: self.count }
    }

    /// Whether every element is UTF-8.
    pub fn is_text(&self) -> bool {
        // Lengths below 128 are ASCII too, so most blocks of ASCII need one check.
        self.data[self.at..self.end].is_ascii() || self.elements().all(|item| std::str::from_utf8(item).is_ok())
    }

    /// Whether the elements can be padded with NUL to one width without ambiguity and much more memory.
    pub fn pads_well(&self) -> bool {
        !self.nul && self.width.saturating_mul(self.count) <= 64 * self.count + 4 * (self.end - self.at)
    }

    /// Whether the first elements have characters beyond ASCII, as those that follow then have as a rule.
    pub fn starts_beyond_ascii(&self) -> bool {
        self.elements().take(SAMPLE).any(|item| !item[..item.len().min(SAMPLE_BYTES)].is_ascii())
    }

    /// Write the elements into `out`, which is zero and holds `count` times `width` bytes.
    pub fn pad(&self, out: &mut [u8]) {
        for (item, place) in self.elements().zip(out.chunks_exact_mut(self.width.max(1))) {
            place[..item.len()].copy_from_slice(item);
        }
    }
}

/// A block in the form that NumPy converts fastest, the width of its elements (0: a list), and the end.
type Found<'py> = (Bound<'py, PyAny>, usize, usize);

/// `count` texts of `data` from the position `at` on: `(texts, width, end)`. `texts` holds them padded with NUL to `width`
/// bytes, or, with a `width` of 0, is a list of `str`. `None`: too little data, or not UTF-8.
///
/// Texts of more than `widest` bytes are padded only beyond ASCII: a `str` of them is decoded here, and encoded by NumPy again.
#[pyfunction]
pub fn vlen_texts<'py>(
    py: Python<'py>,
    data: &[u8],
    at: usize,
    count: usize,
    widest: usize,
) -> PyResult<Option<Found<'py>>> {
    let Some(block) = Block::new(data, at, count) else { return Ok(None) };
    let narrow = block.width <= widest || (block.width <= WIDEST_BEYOND_ASCII && block.starts_beyond_ascii());
    if block.width > 0 && block.pads_well() && narrow {
        if !block.is_text() {
            return Ok(None);
        }
        let padded = PyBytes::new_with(py, block.width * count, |out| {
            block.pad(out);
            Ok(())
        })?;
        return Ok(Some((padded.into_any(), block.width, block.end)));
    }
    // Python checks that they are UTF-8.
    let Ok(texts) = block.elements().map(|item| PyString::from_bytes(py, item)).collect::<PyResult<Vec<_>>>() else {
        return Ok(None);
    };
    Ok(Some((PyList::new(py, texts)?.into_any(), 0, block.end)))
}

/// `count` elements of `data` from the position `at` on: a list of `bytes`, and the end. `None`: the data is too short.
#[pyfunction]
pub fn vlen_bytes<'py>(
    py: Python<'py>,
    data: &[u8],
    at: usize,
    count: usize,
) -> PyResult<Option<(Bound<'py, PyList>, usize)>> {
    let Some(block) = Block::new(data, at, count) else { return Ok(None) };
    let items = block.elements().map(|item| allocate::bytes(py, item)).collect::<PyResult<Vec<_>>>()?;
    Ok(Some((PyList::new(py, items)?, block.end)))
}

/// The bytes of a `str`, or no bytes for `None`. `None`: another object, not encodable as UTF-8, or too long.
fn bytes_of<'a>(text: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    let bytes = match text.cast_exact::<PyString>() {
        Ok(text) => text.to_str().ok()?.as_bytes(),
        Err(_) => text.is_none().then_some(&[][..])?,
    };
    u32::try_from(bytes.len()).is_ok().then_some(bytes)
}

/// The elements of a list of `str` and `None`, each after its length. `None`: another object is among them, or text
/// that is not encodable as UTF-8.
#[pyfunction]
pub fn vlen_join<'py>(py: Python<'py>, texts: &Bound<'py, PyList>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let texts: Vec<_> = texts.iter().collect();
    let Some(items) = texts.iter().map(bytes_of).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let size = items.iter().map(|item| HEAD + item.len()).sum();
    let joined = PyBytes::new_with(py, size, |mut out| {
        for item in items {
            let (place, rest) = out.split_at_mut(HEAD + item.len());
            place[..HEAD].copy_from_slice(&(item.len() as u32).to_le_bytes());
            place[HEAD..].copy_from_slice(item);
            out = rest;
        }
        Ok(())
    })?;
    Ok(Some(joined))
}

/// Add the functions of this file to the Python module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(vlen_texts, module)?)?;
    module.add_function(wrap_pyfunction!(vlen_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(vlen_join, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_found() {
        let data = [&2u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc", &0u32.to_le_bytes()].concat();
        let block = Block::new(&data, HEAD, 2).expect("two elements");
        assert_eq!((block.end, block.width, block.nul), (data.len(), 3, false));
        assert_eq!(block.elements().collect::<Vec<_>>(), [&b"abc"[..], b""]);
        let wrong = [(HEAD, 3), (0, 2), (5, 1), (data.len(), 1), (usize::MAX, 1), (usize::MAX, 0), (HEAD, usize::MAX)];
        for (at, count) in wrong {
            assert!(Block::new(&data, at, count).is_none(), "{at} {count}");
        }
        assert!((0..data.len()).all(|cut| Block::new(&data[..cut], HEAD, 2).is_none()));
    }
}
