//! Text and bytes of varying length (`vlen-utf8`, `vlen-bytes`) between a chunk's bytes and the elements of an array.
//!
//! Used by `tessarr.codecs.array_to_bytes.vlen_native`. A chunk is the number of elements, then for each its length and its bytes;
//! numbers are 32-bit, unsigned, little-endian. For corrupt data and unsupported objects the functions return `None` or `False`;
//! the codec in Python, which handles every case, reports the error.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use simdutf8::basic::from_utf8;

use crate::error::{Error, Result};
use crate::numpy::{self, Filling, NewBytes, Objects, Texts};
use crate::region::Memory;

const HEAD: usize = 4;

/// The elements of a chunk, as they are stored.
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// `None`: the chunk has another number of elements.
    pub fn new(chunk: &'a [u8], count: usize) -> Option<Elements<'a>> {
        let (head, rest) = chunk.split_first_chunk::<HEAD>()?;
        (u32::from_le_bytes(*head) as usize == count).then_some(Elements { rest })
    }

    /// The next element, if its length and all its bytes are there.
    #[inline]
    pub fn take(&mut self) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_first_chunk::<HEAD>()?;
        let (item, rest) = rest.split_at_checked(u32::from_le_bytes(*head) as usize)?;
        self.rest = rest;
        Some(item)
    }

    /// Whether every byte was taken.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// The bytes of one element in a chunk, its length included; `None`: it is too long.
fn stored_size(item: &[u8]) -> Option<usize> {
    u32::try_from(item.len()).is_ok().then_some(HEAD + item.len())
}

/// Append an element, if there is room for it.
#[inline]
fn push(out: &mut Filling, item: &[u8]) -> Option<()> {
    (out.push(&(item.len() as u32).to_le_bytes()) && out.push(item)).then_some(())
}

/// Decode a chunk into an array of `StringDType`; `false`: it is corrupt.
fn decode_texts(chunk: &[u8], out: &Texts<'_>) -> Result<bool> {
    let Some(mut elements) = Elements::new(chunk, out.count()) else { return Ok(false) };
    let mut locked = out.lock();
    for number in 0..out.count() {
        let Some(Ok(text)) = elements.take().map(from_utf8) else { return Ok(false) };
        if !locked.set(number, text) {
            return Err(Error::memory(text.len()));
        }
    }
    Ok(elements.is_empty())
}

/// Decode a chunk into an array of objects; `false`: it is corrupt.
fn decode_objects(py: Python<'_>, chunk: &[u8], out: &Objects<'_, '_>, as_text: bool) -> PyResult<bool> {
    let Some(mut elements) = Elements::new(chunk, out.count()) else { return Ok(false) };
    for number in 0..out.count() {
        let Some(item) = elements.take() else { return Ok(false) };
        let object = if as_text {
            match PyString::from_bytes(py, item) {
                Ok(text) => text.into_any(),
                Err(error) if error.is_instance_of::<PyUnicodeDecodeError>(py) => return Ok(false),
                Err(error) => return Err(error),
            }
        } else {
            numpy::bytes(py, item)?
        };
        out.set(number, object);
    }
    Ok(elements.is_empty())
}

/// Decode a chunk into a one-dimensional array, of `StringDType` or of objects: `str` or else `bytes`. `False`: the data is
/// corrupt, of another number of elements, or the array cannot be written here; some elements may have been written then.
#[pyfunction]
fn vlen_decode(py: Python<'_>, data: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>, as_text: bool) -> PyResult<bool> {
    let buffer = PyUntypedBuffer::get(data)?;
    if !buffer.is_c_contiguous() {
        return Err(PyValueError::new_err("the data is not contiguous"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(false); // its pointer may be null
    }
    // The buffer outlives every use of this, and the caller lets no thread write to it.
    let Some(chunk) = Memory::of_buffer(&buffer).slice(0, buffer.len_bytes()) else { return Ok(false) };
    if let Some(texts) = Texts::of(out)?.filter(|texts| as_text && texts.is_writable()) {
        return Ok(py.detach(|| decode_texts(chunk, &texts))?);
    }
    match Objects::of(out)?.filter(Objects::is_writable) {
        Some(objects) => decode_objects(py, chunk, &objects, as_text),
        None => Ok(false),
    }
}

/// Encode an array of `StringDType`. `None`: an element is missing, or is not UTF-8.
fn encode_texts<'py>(py: Python<'py>, texts: &Texts<'_>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Ok(count) = u32::try_from(texts.count()) else { return Ok(None) };
    let size = py.detach(|| {
        let locked = texts.lock();
        (0..texts.count()).try_fold(HEAD, |size, number| size.checked_add(stored_size(locked.get(number)?)?))
    });
    let Some(size) = size else { return Ok(None) };
    let mut made = NewBytes::of(py, size)?;
    let out = made.filling();
    // The lock was released for Python, so that a thread may have changed an element: what does not fill `made` is refused.
    let written = py.detach(|| {
        let locked = texts.lock();
        (out.push(&count.to_le_bytes())).then_some(())?;
        (0..texts.count()).try_for_each(|number| {
            let item = locked.get(number)?;
            from_utf8(item).ok()?;
            push(out, item)
        })
    });
    Ok(written.and_then(|()| made.finish()))
}

/// The bytes of a `str` or a `bytes`, or no bytes for `None`. `None`: another object, or not encodable as UTF-8.
fn bytes_of<'a>(object: Option<&'a Bound<'_, PyAny>>, as_text: bool) -> Option<&'a [u8]> {
    let Some(object) = object else { return Some(&[]) };
    let found = if as_text {
        object.cast_exact::<PyString>().ok().map(|text| text.to_str().ok().map(str::as_bytes))
    } else {
        object.cast_exact::<PyBytes>().ok().map(|bytes| Some(bytes.as_bytes()))
    };
    found.unwrap_or_else(|| object.is_none().then_some(&[]))
}

/// Encode an array of objects. `None`: another object than `str`, or else `bytes`, and `None`; or not encodable as UTF-8.
fn encode_objects<'py>(
    py: Python<'py>,
    objects: &Objects<'_, 'py>,
    as_text: bool,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Ok(count) = u32::try_from(objects.count()) else { return Ok(None) };
    let size = (0..objects.count()).try_fold(HEAD, |size, number| {
        size.checked_add(stored_size(bytes_of(objects.get(number).as_ref(), as_text)?)?)
    });
    let Some(size) = size else { return Ok(None) };
    let mut made = NewBytes::of(py, size)?;
    let out = made.filling();
    // Without a GIL, a thread may have replaced an element since: what does not fill `made` is refused.
    let written = out.push(&count.to_le_bytes()).then_some(()).and_then(|()| {
        (0..objects.count()).try_for_each(|number| push(out, bytes_of(objects.get(number).as_ref(), as_text)?))
    });
    Ok(written.and_then(|()| made.finish()))
}

/// Encode a one-dimensional array of `StringDType` or of objects to a chunk: of `str`, or else of `bytes`; ``None`` as an empty
/// element. `None`: an object is neither, a text is not encodable as UTF-8, or the array cannot be read here.
#[pyfunction]
fn vlen_encode<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    as_text: bool,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if let Some(texts) = Texts::of(values)?.filter(|_| as_text) {
        return encode_texts(py, &texts);
    }
    match Objects::of(values)? {
        Some(objects) => encode_objects(py, &objects, as_text),
        None => Ok(None),
    }
}

/// Add the functions of this file to the Python module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(vlen_decode, module)?)?;
    module.add_function(wrap_pyfunction!(vlen_encode, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(chunk: &[u8], count: usize) -> Option<Vec<&[u8]>> {
        let mut elements = Elements::new(chunk, count)?;
        let found = (0..count).map(|_| elements.take()).collect::<Option<Vec<_>>>()?;
        elements.is_empty().then_some(found)
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let chunk = [&2u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc", &0u32.to_le_bytes()].concat();
        assert_eq!(items(&chunk, 2), Some(vec![&b"abc"[..], b""]));
        for count in [0, 1, 3, usize::MAX] {
            assert!(items(&chunk, count).is_none(), "{count}");
        }
        assert!((0..chunk.len()).all(|cut| items(&chunk[..cut], 2).is_none()));
        assert!(items(&[&chunk[..], b"x"].concat(), 2).is_none());
    }
}
