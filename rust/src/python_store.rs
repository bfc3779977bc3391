//! Stores that Python serves: Python sends the requests of chunk reads and passes the responses back (`ReadPlan`,
//! `ChunkReads`), and stores the new values of chunks (`WritePlan`). This module never calls Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

use crate::allocate;
use crate::array::Array;
use crate::chain::ArrayToBytes;
use crate::chunk_reads::{self, Range, Response};
use crate::encode::{self, merge, stored_order};
use crate::error::Result;
use crate::extents::{Extent, ExtentFile, Extents, LocatedValue};
use crate::part::Plan;
use crate::pool::{each, threads};
use crate::read;
use crate::received::ReadTarget;
use crate::region::{Exported, Memory};
use crate::signals::poll;
use crate::staged_files::{StagedFiles, StagedKey};
use crate::store::{Object, OwnedBytes, Source};

/// A request with the caller's memory.
pub struct Planned {
    pub array: Arc<Array>,
    pub plan: Arc<Plan>,
    /// Bytes of the selected elements.
    pub selected: usize,
    pub buffer: PyUntypedBuffer,
}

/// A selection that is being read: its parts, one per chunk, are read in any number of `ChunkReads`.
#[pyclass(frozen, module = "tessarr._native")]
pub struct ReadPlan(pub Planned);

#[pymethods]
impl ReadPlan {
    fn __len__(&self) -> usize {
        self.0.plan.len()
    }

    /// Decoded bytes that are fetched for the first part, which is representative.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(if self.0.plan.len() == 0 { 0 } else { chunk_reads::part_nbytes(&self.0.array, &self.0.plan)? })
    }

    /// The keys of the chunks of all parts.
    fn keys(&self, py: Python<'_>) -> Vec<String> {
        let Planned { array, plan, .. } = &self.0;
        py.detach(|| (0..plan.len()).map(|number| array.key(&plan.coords(number))).collect())
    }

    /// Read all parts from extents of local files: `files` are paths, with versions where these are known; of each value
    /// (`None`: missing), its extents (file number, offset, bytes or `None` for the rest of the file) and its CRC-32, if known.
    fn read_extents(
        &self,
        py: Python<'_>,
        files: Vec<(PathBuf, Option<String>)>,
        values: Vec<Option<PyLocated>>,
        whole_below: usize,
    ) -> PyResult<()> {
        let Planned { array, plan, selected, buffer } = &self.0;
        if values.len() != plan.len() {
            return Err(PyIndexError::new_err("a value per part expected"));
        }
        if *selected == 0 {
            return Ok(());
        }
        let files = files.into_iter().map(|(path, version)| ExtentFile::new(path, version)).collect();
        let extent = |(file, offset, nbytes): PyExtent| Extent { file, offset, nbytes };
        let value = |(extents, crc32): PyLocated| {
            let extents = extents.into_iter().map(extent).collect();
            LocatedValue { extents, crc32 }
        };
        let values = values.into_iter().map(|located| located.map(value)).collect();
        // `self` holds the buffer while this runs, and no thread uses it after `read::read`.
        let (out, extents) = (Memory::of_buffer(buffer), Extents::new(files, values, whole_below));
        Ok(py.detach(|| read::read(array, plan.clone(), Some(extents), out, *selected, &mut poll()))?)
    }

    /// Begin to read parts `first..stop`. Shards of at most `whole_below` decoded bytes are requested whole.
    fn start(slf: &Bound<'_, Self>, first: usize, stop: usize, whole_below: usize) -> PyResult<ChunkReads> {
        let Planned { array, plan, buffer, .. } = &slf.get().0;
        if first > stop || stop > plan.len() {
            return Err(PyIndexError::new_err("no such parts"));
        }
        // `ChunkReads` keeps `slf`, and with it the buffer.
        let target = ReadTarget { array: array.clone(), plan: plan.clone(), out: Memory::of_buffer(buffer) };
        let reads = slf.py().detach(|| chunk_reads::ChunkReads::start(target, (first, stop), whole_below))?;
        Ok(ChunkReads { reads: Mutex::new(reads), _plan: slf.clone().unbind() })
    }
}

/// See `crate::chunk_reads`.
#[pyclass(frozen, module = "tessarr._native")]
pub struct ChunkReads {
    reads: Mutex<chunk_reads::ChunkReads>,
    _plan: Py<ReadPlan>,
}

type PyExtent = (usize, u64, Option<u64>);
type PyLocated = (Vec<PyExtent>, Option<u32>);
type PyRequest = (usize, String, Option<Vec<Range>>);
type PyResponse<'py> = (usize, Option<Bound<'py, PyAny>>, Option<String>);

impl ChunkReads {
    fn with<T>(&self, work: impl FnOnce(&mut chunk_reads::ChunkReads) -> Result<T>) -> PyResult<T> {
        let taken = self.reads.try_lock();
        let mut reads = taken.map_err(|_| PyRuntimeError::new_err("chunk reads belong to one thread at a time"))?;
        Ok(work(&mut reads)?)
    }
}

#[pymethods]
impl ChunkReads {
    /// The requests needed now: (id, key, ranges or `None` for the whole value).
    fn requests(&self, py: Python<'_>) -> PyResult<Vec<PyRequest>> {
        let requests = py.detach(|| self.with(chunk_reads::ChunkReads::requests))?;
        Ok(requests.into_iter().map(|request| (request.id, request.key, request.ranges)).collect())
    }

    /// Receive responses: (id, a buffer per range or `None` for a missing key, version or `None`).
    fn receive(&self, py: Python<'_>, responses: Vec<PyResponse<'_>>) -> PyResult<()> {
        let taken = responses.into_iter().map(|(id, parts, version)| {
            let parts = parts.map(|parts| buffers(&parts)).transpose()?;
            Ok(Response { id, parts, version: version.map(Arc::from) })
        });
        let responses = taken.collect::<PyResult<Vec<_>>>()?;
        py.detach(|| self.with(|reads| reads.receive(responses, &mut poll())))
    }
}

/// A selection that is being written, chunk by chunk.
#[pyclass(frozen, module = "tessarr._native")]
pub struct WritePlan(pub Planned);

#[pymethods]
impl WritePlan {
    fn __len__(&self) -> usize {
        self.0.plan.len()
    }

    /// Coords and key of the chunk of part `number`, and whether the selection covers it.
    fn part<'py>(&self, py: Python<'py>, number: usize) -> PyResult<(Bound<'py, PyTuple>, String, bool)> {
        let Planned { array, plan, .. } = &self.0;
        if number >= plan.len() {
            return Err(PyIndexError::new_err("no such part"));
        }
        let (coords, part) = plan.get(number)?;
        Ok((PyTuple::new(py, &coords)?, array.key(&coords), array.is_replaced(&coords, &part)))
    }

    /// Whether the selection covers what the end of the array leaves of the chunk of part `number`, which it does not replace.
    fn is_cut(&self, number: usize) -> PyResult<bool> {
        let Planned { array, plan, .. } = &self.0;
        if number >= plan.len() {
            return Err(PyIndexError::new_err("no such part"));
        }
        let (coords, part) = plan.get(number)?;
        Ok(!array.is_replaced(&coords, &part) && part.covers(&array.inside(&coords)))
    }

    /// Encode the parts `first..stop`, on idle threads too. `None`: the selection does not cover one of their chunks.
    fn encode_covered<'py>(&self, py: Python<'py>, first: usize, stop: usize) -> PyResult<Option<Vec<Encoded<'py>>>> {
        let Planned { array, plan, buffer, .. } = &self.0;
        if first > stop || stop > plan.len() {
            return Err(PyIndexError::new_err("no such parts"));
        }
        // `self` holds the buffer while this runs.
        let value = Memory::of_buffer(buffer);
        let Some(made) = py.detach(|| encode_covered(array, plan, first, stop, value))? else { return Ok(None) };
        let found =
            made.into_iter().map(|(key, new)| Ok((key, new.map(|bytes| allocate::bytes(py, &bytes)).transpose()?)));
        found.collect::<PyResult<_>>().map(Some)
    }

    /// Encode the parts `first..stop` to staged files of a transaction: of each key the file; `None`: nothing is to be stored.
    /// `None` for all: nothing was written, because the selection does not cover one of the chunks, or a file could not be
    /// written.
    fn stage_covered(
        &self,
        py: Python<'_>,
        first: usize,
        stop: usize,
        files: &Bound<'_, StagedFiles>,
    ) -> PyResult<Option<Vec<StagedKey>>> {
        let Planned { array, plan, buffer, .. } = &self.0;
        if first > stop || stop > plan.len() {
            return Err(PyIndexError::new_err("no such parts"));
        }
        // `self` holds the buffer while this runs.
        let (value, files) = (Memory::of_buffer(buffer), files.get());
        Ok(py.detach(|| stage_covered(array, plan, (first, stop), value, files))?)
    }

    /// Encode part `number` merged into `old` (`None`: fill value); `None` when nothing is to be stored.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        old: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Planned { array, plan, buffer, .. } = &self.0;
        if number >= plan.len() {
            return Err(PyIndexError::new_err("no such part"));
        }
        // `self` holds the buffer while this runs.
        encode_detached(py, array, plan, number, Memory::of_buffer(buffer), old)
    }
}

/// An encoded chunk: its key and value; `None`: nothing is to be stored.
type Encoded<'py> = (String, Option<Bound<'py, PyBytes>>);

fn encode_detached<'py>(
    py: Python<'py>,
    array: &Array,
    plan: &Plan,
    number: usize,
    value: Memory<'static>,
    old: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let old = if old.is_none() { None } else { Some(Object::Bytes(owned_bytes(old)?)) };
    let new = py.detach(|| encode(array, plan, number, value, old.as_ref()))?;
    new.map(|new| allocate::bytes(py, &new)).transpose()
}

/// A key and its encoded chunk; `None`: nothing is to be stored.
type KeyValue = (String, Option<Vec<u8>>);

/// Encode the parts `first..stop`; `None`: the selection does not cover one of their chunks.
fn encode_covered(
    array: &Array,
    plan: &Plan,
    first: usize,
    stop: usize,
    value: Memory<'static>,
) -> Result<Option<Vec<KeyValue>>> {
    if !(first..stop).all(|number| is_covered(array, plan, number)) {
        return Ok(None);
    }
    let made: Vec<OnceLock<Option<Vec<u8>>>> = (first..stop).map(|_| OnceLock::new()).collect();
    let helpers = threads().min(made.len()).saturating_sub(1);
    each(made.len(), helpers, &mut || Ok(()), &|i| {
        let new = encode(array, plan, first + i, value, None)?;
        made[i].get_or_init(|| new);
        Ok(())
    })?;
    let keys = (first..stop).map(|number| array.key(&plan.coords(number)));
    Ok(Some(keys.zip(made.into_iter().map(|new| new.into_inner().flatten())).collect()))
}

fn is_covered(array: &Array, plan: &Plan, number: usize) -> bool {
    plan.get(number).is_ok_and(|(coords, part)| array.is_replaced(&coords, &part))
}

/// See `WritePlan::stage_covered`.
fn stage_covered(
    array: &Array,
    plan: &Plan,
    (first, stop): (usize, usize),
    value: Memory<'static>,
    files: &StagedFiles,
) -> Result<Option<Vec<StagedKey>>> {
    if !(first..stop).all(|number| is_covered(array, plan, number)) {
        return Ok(None);
    }
    let failed = OnceLock::new();
    let staged = files.write_all(stop - first, &|i, write| {
        stage(array, plan, first + i, value, write).unwrap_or_else(|error| {
            let _ = failed.set(error);
            false
        })
    });
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    let keys = (first..stop).map(|number| array.key(&plan.coords(number)));
    Ok(staged.map(|staged| keys.zip(staged).collect()))
}

/// Encode part `number`, and pass key and value to `write`, unless nothing is to be stored. Returns what `write` does.
fn stage(
    array: &Array,
    plan: &Plan,
    number: usize,
    value: Memory<'static>,
    write: &dyn Fn(&str, &[u8]) -> bool,
) -> Result<bool> {
    let (coords, part) = plan.get(number)?;
    let (chain, key) = (array.chain_at(&coords)?, array.key(&coords));
    if !chain.after.is_empty() || !matches!(chain.serializer, ArrayToBytes::Bytes { .. }) {
        return Ok(encode(array, plan, number, value, None)?.is_none_or(|new| write(&key, &new)));
    }
    let part = stored_order(&chain, part)?;
    let options = encode::WriteOptions { value, keep_empty: array.write_empty };
    let mut is_written = true;
    let merged = encode::with_merged(&chain, None, &part, options, |chunk| {
        is_written = write(&key, chunk);
        Ok(())
    });
    merged.map(|_| is_written).map_err(|error| error.at(&coords, &key))
}

/// Encode part `number` merged into `old` (`None`: fill value).
fn encode(
    array: &Array,
    plan: &Plan,
    number: usize,
    value: Memory<'static>,
    old: Option<&Object>,
) -> Result<Option<Vec<u8>>> {
    let (coords, part) = plan.get(number)?;
    let chain = array.chain_at(&coords)?;
    let part = stored_order(&chain, part)?;
    let options = encode::WriteOptions { value, keep_empty: array.write_empty || old.is_some() && array.keep_updated };
    let mut out = Vec::new();
    match merge(&chain, old.map(Source::whole), &part, options, &mut out) {
        Ok(any) => Ok(any.then_some(out)),
        Err(error) => Err(error.at(&coords, &array.key(&coords))),
    }
}

/// The bytes of a fetched value: borrowed where they are immutable, else copied.
fn owned_bytes(value: &Bound<'_, PyAny>) -> PyResult<OwnedBytes> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(OwnedBytes::Python(Arc::new(PyBackedBytes::from(bytes.clone()))));
    }
    match Exported::of(PyUntypedBuffer::get(value)?) {
        Some(bytes) => Ok(OwnedBytes::Exported(Arc::new(bytes))),
        None => {
            let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
            let bytes =
                bytes.cast_into::<PyBytes>().map_err(|_| PyValueError::new_err("a fetched value is not bytes"))?;
            Ok(OwnedBytes::Python(Arc::new(PyBackedBytes::from(bytes))))
        }
    }
}

fn buffers(values: &Bound<'_, PyAny>) -> PyResult<Vec<OwnedBytes>> {
    values.try_iter()?.map(|value| owned_bytes(&value?)).collect()
}
