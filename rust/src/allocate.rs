//! Allocate memory whose size comes from a document or a request. A failure is an error, which becomes Python's `MemoryError`;
//! an ordinary allocation that fails ends the process.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Error, Result};
use crate::region;

/// Return `len` zero bytes.
pub fn zeros(len: usize) -> Result<Vec<u8>> {
    region::zeros(len).ok_or_else(|| Error::memory(len))
}

/// Return an empty vector with room for `len` items.
pub fn with_room<T>(len: usize) -> Result<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| Error::memory(len.saturating_mul(size_of::<T>())))?;
    Ok(items)
}

/// Return `len` times `item`.
pub fn repeated<T: Clone>(len: usize, item: T) -> Result<Vec<T>> {
    let mut items = with_room(len)?;
    items.resize(len, item);
    Ok(items)
}

/// Collect items whose number is known.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut found = with_room(items.len())?;
    found.extend(items);
    Ok(found)
}

/// Append `len` zero bytes.
pub fn extend(bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    bytes.try_reserve(len).map_err(|_| Error::memory(len))?;
    bytes.resize(bytes.len() + len, 0);
    Ok(())
}

/// Append `more`.
pub fn append(bytes: &mut Vec<u8>, more: &[u8]) -> Result<()> {
    bytes.try_reserve(more.len()).map_err(|_| Error::memory(more.len()))?;
    bytes.extend_from_slice(more);
    Ok(())
}

/// Fail unless `nbytes` can be allocated now, for many small allocations that follow.
pub fn probe(nbytes: usize) -> Result<()> {
    with_room::<u8>(nbytes).map(drop)
}

/// Make a `bytes` of Python.
pub fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, content.len(), |out| {
        out.copy_from_slice(content);
        Ok(())
    })
}
