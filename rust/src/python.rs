//! The Python bindings of the engine.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PySlice, PyString, PyTuple};

use crate::allocate;
use crate::array::{Array, Store};
use crate::cache;
#[cfg(target_os = "linux")]
use crate::create::create;
use crate::element;
use crate::error::{Error, NativeError};
use crate::many_files;
use crate::part::{AxisSelection, Part, Plan};
use crate::pool;
use crate::python_store::{Planned, ReadPlan, WritePlan};
use crate::read;
use crate::region::Memory;
use crate::replace;
use crate::signals::poll;
use crate::staged_files;
use crate::steps;
use crate::store::ReadResult;
use crate::vlen;
use crate::write;

/// A bound array. Immutable; safe to use from several threads.
#[pyclass(frozen, name = "Array", module = "tessarr._native")]
struct PyArray {
    array: Arc<Array>,
    /// An array of one element, into which single elements are read.
    scratch: Option<Mutex<Scratch>>,
}

struct Scratch {
    array: Py<PyAny>,
    buffer: PyUntypedBuffer,
}

#[pymethods]
impl PyArray {
    #[new]
    #[pyo3(signature = (binding, scratch=None))]
    fn new(binding: &str, scratch: Option<Bound<'_, PyAny>>) -> PyResult<PyArray> {
        let mut made = PyArray { array: Arc::new(Array::from_json(binding)?), scratch: None };
        if let Some(array) = scratch {
            let buffer = made.buffer(&array, true)?;
            made.scratch = Some(Mutex::new(Scratch { array: array.unbind(), buffer }));
        }
        Ok(made)
    }

    /// Fill `out` with the selection `at`: the outer product of a slice (step >= 1) or an int64 array per axis, or with
    /// `points` int64 arrays that together name points, for a one-dimensional `out`.
    fn read(&self, py: Python<'_>, at: &Bound<'_, PyTuple>, points: bool, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = self.buffer(out, true)?;
        let part = self.part(py, at, points, &buffer)?;
        self.read_part(py, &part, &buffer)
    }

    /// Plan a `read` from a store that Python serves.
    fn plan_read(
        &self,
        py: Python<'_>,
        at: &Bound<'_, PyTuple>,
        points: bool,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<ReadPlan> {
        Ok(ReadPlan(self.planned(py, at, points, self.buffer(out, true)?)?))
    }

    /// The element at `index` as a scalar; `None`, having done nothing, when `index` is not one `int` inside the array
    /// per axis, or another thread is reading one, or Python serves the store.
    fn element(&self, py: Python<'_>, index: &Bound<'_, PyTuple>) -> PyResult<Option<Py<PyAny>>> {
        let shape = &self.array.shape;
        if matches!(self.array.store, Store::Python(_)) || index.len() != shape.len() || shape.is_empty() {
            return Ok(None);
        }
        let mut at = Vec::with_capacity(shape.len());
        for (item, &n) in index.iter_borrowed().zip(shape) {
            let position = if item.is_exact_instance_of::<PyInt>() { item.extract::<i64>().ok() } else { None };
            let position = position.map(|i| if i < 0 { i.saturating_add(n as i64) } else { i });
            match position.filter(|&i| i >= 0 && (i as u64) < n as u64) {
                Some(position) => at.push(position as usize),
                None => return Ok(None),
            }
        }
        let Some(Ok(scratch)) = self.scratch.as_ref().map(Mutex::try_lock) else { return Ok(None) };
        // As in `read_part`: the buffer outlives every use of this.
        let memory = Memory::of_buffer(&scratch.buffer);
        if !py.detach(|| element::find(&self.array, &at, memory)) {
            let axes = at.into_iter().map(|start| AxisSelection::Range { start, step: 1, n: 1, out: 0, stride: 0 });
            self.read_part(py, &Part::Box(axes.collect()), &scratch.buffer)?;
        }
        scratch.array.bind(py).get_item(0).map(|scalar| Some(scalar.unbind()))
    }

    /// Store `value`, whose shape is that of the selection `at`, in the array; see `read`.
    fn write(&self, py: Python<'_>, at: &Bound<'_, PyTuple>, points: bool, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = self.buffer(value, false)?;
        let part = self.part(py, at, points, &buffer)?;
        self.write_part(py, &part, &buffer)
    }

    /// Plan a `write` to a store that Python serves.
    fn plan_write(
        &self,
        py: Python<'_>,
        at: &Bound<'_, PyTuple>,
        points: bool,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<WritePlan> {
        Ok(WritePlan(self.planned(py, at, points, self.buffer(value, false)?)?))
    }

    /// Drop the cached data of the value of `key`, which was written.
    fn forget(&self, py: Python<'_>, key: &str) {
        if let Store::Python(store) = &self.array.store
            && let Some(name) = store.name(key)
        {
            py.detach(|| pool::process().cache.invalidate(&name));
        }
    }
}

impl PyArray {
    fn write_part(&self, py: Python<'_>, part: &Part, buffer: &PyUntypedBuffer) -> PyResult<()> {
        let selected = part.len() * self.array.item;
        if selected == 0 {
            return Ok(());
        }
        // As in `read_part`: the buffer outlives every use of this.
        let value = Memory::of_buffer(buffer);
        Ok(py.detach(|| write::write(&self.array, part, value, selected, &mut poll()))?)
    }

    fn buffer(&self, object: &Bound<'_, PyAny>, writable: bool) -> PyResult<PyUntypedBuffer> {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.item_size() != self.array.item {
            return Err(PyValueError::new_err(format!(
                "elements of {} bytes expected, got {}",
                self.array.item,
                buffer.item_size()
            )));
        }
        if writable && buffer.readonly() {
            return Err(PyValueError::new_err("the output array is read-only"));
        }
        Ok(buffer)
    }

    fn part(&self, py: Python<'_>, at: &Bound<'_, PyTuple>, points: bool, buffer: &PyUntypedBuffer) -> PyResult<Part> {
        if points { self.points(py, at, buffer) } else { self.outer(py, at, buffer) }
    }

    fn outer(&self, py: Python<'_>, dims: &Bound<'_, PyTuple>, buffer: &PyUntypedBuffer) -> PyResult<Part> {
        let shape = &self.array.shape;
        // NumPy exports 0-d arrays without a shape, which PyO3 refuses: they are passed as one element.
        if dims.len() != shape.len() || buffer.dimensions() != shape.len().max(1) {
            return Err(PyValueError::new_err(format!("the array has {} dimensions", shape.len())));
        }
        let mut axes = Vec::with_capacity(shape.len());
        for (i, dim) in dims.iter().enumerate() {
            let (n, stride) = (shape[i], buffer.strides()[i]);
            let axis = if let Ok(slice) = dim.cast::<PySlice>() {
                let at = slice.indices(n as isize)?;
                if at.step < 1 {
                    return Err(PyValueError::new_err("slices need a positive step"));
                }
                let (start, len) = (at.start as usize, at.slicelength);
                AxisSelection::Range { start, step: at.step as usize, n: len, out: 0, stride }
            } else {
                AxisSelection::list(&positions(py, &dim, n)?, stride)?
            };
            if axis.len() != buffer.shape()[i] {
                return Err(PyValueError::new_err(format!(
                    "axis {i} of the buffer has length {}, the selection {}",
                    buffer.shape()[i],
                    axis.len()
                )));
            }
            axes.push(axis);
        }
        Ok(Part::Box(axes))
    }

    fn points(&self, py: Python<'_>, coords: &Bound<'_, PyTuple>, buffer: &PyUntypedBuffer) -> PyResult<Part> {
        let shape = &self.array.shape;
        let ndim = shape.len();
        if coords.len() != ndim || ndim == 0 || buffer.dimensions() != 1 {
            return Err(PyValueError::new_err(format!("{ndim} coordinate arrays and a 1-d buffer expected")));
        }
        let n = buffer.shape()[0];
        let mut at = allocate::repeated(n * ndim, 0)?;
        for (axis, list) in coords.iter().enumerate() {
            let list = positions(py, &list, shape[axis])?;
            if list.len() != n {
                return Err(PyValueError::new_err("coordinate arrays and buffer differ in length"));
            }
            for (point, position) in list.into_iter().enumerate() {
                at[point * ndim + axis] = position as usize;
            }
        }
        let stride = buffer.strides()[0];
        let out = allocate::collected((0..n).map(|i| i as isize * stride))?;
        Ok(Part::Points { ndim, at, out })
    }

    /// See `tessarr.engine.base.ReadPlan` and `WritePlan`.
    fn planned(
        &self,
        py: Python<'_>,
        at: &Bound<'_, PyTuple>,
        points: bool,
        buffer: PyUntypedBuffer,
    ) -> PyResult<Planned> {
        let part = self.part(py, at, points, &buffer)?;
        let plan = Arc::new(py.detach(|| Plan::new(&part, &self.array.grid_axes))?);
        Ok(Planned { array: self.array.clone(), plan, selected: part.len() * self.array.item, buffer })
    }

    fn read_part(&self, py: Python<'_>, part: &Part, buffer: &PyUntypedBuffer) -> PyResult<()> {
        let selected = part.len() * self.array.item;
        if selected == 0 {
            return Ok(());
        }
        // `buffer` lives until this function returns, and no thread uses it after `read::read`.
        let out = Memory::of_buffer(buffer);
        let array = &self.array;
        Ok(py.detach(|| {
            let plan = Arc::new(Plan::new(part, &array.grid_axes)?);
            read::read(array, plan, None, out, selected, &mut poll())
        })?)
    }
}

fn positions(py: Python<'_>, list: &Bound<'_, PyAny>, length: usize) -> PyResult<Vec<i64>> {
    let buffer = PyBuffer::<i64>::get(list)?;
    let mut list = allocate::repeated(buffer.item_count(), 0)?;
    buffer.copy_to_slice(py, &mut list)?;
    if let Some(wrong) = list.iter().find(|&&at| at < 0 || at as usize >= length) {
        return Err(PyValueError::new_err(format!("index {wrong} is out of bounds for length {length}")));
    }
    Ok(list)
}

/// Threads that work on one request, the caller included.
#[pyfunction]
fn threads() -> usize {
    pool::threads()
}

/// Set the number of threads; 0: the processors that this process may use.
#[pyfunction]
fn set_threads(n: usize) {
    pool::set_threads(n);
}

/// Set the size of the cache of decoded chunks in bytes; 0 disables it.
#[pyfunction]
fn set_cache_bytes(n: usize) {
    cache::set_capacity(n);
    if n == 0 {
        pool::process().cache.clear();
    }
}

/// Drop all cached chunks and shard indices.
#[pyfunction]
fn clear_cache() {
    pool::process().cache.clear();
}

/// State and counters of the cache: capacity, nbytes, entries, hits, misses, evictions.
#[pyfunction]
fn cache_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    use std::sync::atomic::Ordering::Relaxed;
    let cache = &pool::process().cache;
    let (nbytes, entries) = cache.size();
    let info = PyDict::new(py);
    info.set_item("capacity", cache::capacity())?;
    info.set_item("nbytes", nbytes)?;
    info.set_item("entries", entries)?;
    info.set_item("hits", cache.statistics.hits.load(Relaxed))?;
    info.set_item("misses", cache.statistics.misses.load(Relaxed))?;
    info.set_item("evictions", cache.statistics.evictions.load(Relaxed))?;
    Ok(info)
}

/// Read the whole values of requests (`Fetch`) below `root`, files of at most `most` bytes each. Each answer is that of Python's
/// `fetch`, or `False` for a request that Python must carry out itself.
#[pyfunction]
fn read_values<'py>(
    py: Python<'py>,
    root: PathBuf,
    requests: Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>,
    most: u64,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let key = |(key, ranges): (Bound<'py, PyString>, Bound<'py, PyAny>)| {
        PyBackedStr::try_from(key).ok().filter(|key| ranges.is_none() && many_files::is_plain_key(key))
    };
    let keys: Vec<_> = requests.into_iter().map(key).collect();
    let found = py.detach(|| many_files::read(&root, &keys, most))?;
    let unread = || PyBool::new(py, false).to_owned().into_any();
    let answer = |read: ReadResult| match read {
        ReadResult::Value(value) => match allocate::bytes(py, &value) {
            Ok(value) => Ok(PyList::new(py, [value])?.into_any()),
            Err(_) => Ok(unread()),
        },
        ReadResult::Absent => Ok(py.None().into_bound(py)),
        ReadResult::Other => Ok(unread()),
    };
    found.into_iter().map(answer).collect()
}

/// Create a value of a local store: whether it was created, and whether the file system kept the time of the file. `None`:
/// nothing was done, and Python has to do it itself, which says why.
#[cfg(target_os = "linux")]
#[pyfunction]
fn create_file(
    py: Python<'_>,
    path: PathBuf,
    root: PathBuf,
    value: PyBackedBytes,
    probe: bool,
) -> PyResult<Option<(bool, bool)>> {
    let coarse = AtomicBool::new(false);
    let place = replace::Place { root: &root, mark: None, durable: false, coarse: &coarse };
    match py.detach(|| create(&path, place, probe, &value, &mut poll())) {
        Ok(created) => Ok(Some((created, !coarse.load(Ordering::Relaxed)))),
        Err(Error::Fault(_)) => Ok(None),
        Err(signal) => Err(signal.into()),
    }
}

/// Run by Python in every forked child.
#[pyfunction]
fn _after_fork() {
    pool::after_fork();
}

#[pymodule(gil_used = false)]
pub fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let os = module.py().import("os")?;
    if let Ok(register) = os.getattr("register_at_fork") {
        let arguments = PyDict::new(module.py());
        arguments.set_item("after_in_child", wrap_pyfunction!(_after_fork, module)?)?;
        register.call((), Some(&arguments))?;
    }
    module.add_class::<PyArray>()?;
    module.add_class::<ReadPlan>()?;
    module.add_class::<WritePlan>()?;
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add("DEFAULT_CACHE_BYTES", cache::DEFAULT_BYTES)?;
    module.add_function(wrap_pyfunction!(threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_cache_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(clear_cache, module)?)?;
    module.add_function(wrap_pyfunction!(cache_info, module)?)?;
    module.add_function(wrap_pyfunction!(read_values, module)?)?;
    #[cfg(target_os = "linux")]
    module.add_class::<crate::file_system::FileSystem>()?;
    #[cfg(target_os = "linux")]
    module.add_function(wrap_pyfunction!(create_file, module)?)?;
    staged_files::register(module)?;
    vlen::register(module)?;
    steps::register(module)?;
    Ok(())
}
