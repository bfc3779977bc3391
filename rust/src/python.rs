//! The Python face of the engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PySlice, PyTuple};

use crate::array::{Array, Store};
use crate::cache;
use crate::collect::{EncodeJob, encode_part};
use crate::element;
use crate::encode::Writing;
use crate::error::{NativeError, Result};
use crate::part::{Ax, Part, Spread};
use crate::pool;
use crate::ranged::{self, Waves};
use crate::read::ReadJob;
use crate::region::Memory;
use crate::store::{Held, Object};
use crate::write::WriteJob;

/// A bound array. Immutable; safe to use from several threads.
#[pyclass(frozen, name = "Array", module = "tessarr._native")]
struct PyArray {
    array: Arc<Array>,
    /// For arrays that are not in local files: `fetch(keys) -> bytes-like or None per key`, `set`, `delete`, `update`.
    store: Option<Py<PyAny>>,
    /// An array of one element, into which single elements are read.
    scratch: Option<Mutex<Scratch>>,
    /// Shards of more decoded bytes than this are asked for in ranges (`fetch_ranges`); `None`: none is.
    ranged: Option<usize>,
}

struct Scratch {
    array: Py<PyAny>,
    buffer: PyUntypedBuffer,
}

/// Values fetched from a Python store per call.
const FETCH_BATCH: usize = 512;
/// And at most so much of them, decoded.
const BATCH_BYTES: usize = 64 << 20;

#[pymethods]
impl PyArray {
    #[new]
    #[pyo3(signature = (binding, store=None, scratch=None))]
    fn new(binding: &str, store: Option<Py<PyAny>>, scratch: Option<Bound<'_, PyAny>>) -> PyResult<PyArray> {
        let mut made = PyArray { array: Arc::new(Array::from_json(binding)?), store, scratch: None, ranged: None };
        let ranged = |store: &Py<PyAny>| Python::attach(|py| store.getattr(py, "ranged").ok()?.extract(py).ok());
        made.ranged = made.store.as_ref().and_then(ranged);
        if let Some(array) = scratch {
            let buffer = made.buffer(&array, true)?;
            made.scratch = Some(Mutex::new(Scratch { array: array.unbind(), buffer }));
        }
        Ok(made)
    }

    /// Fills `out` with the outer product of `dims`: per axis a slice (step >= 1) or an int64 array.
    fn read(&self, py: Python<'_>, dims: &Bound<'_, PyTuple>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = self.buffer(out, true)?;
        let part = self.outer(py, dims, &buffer)?;
        self.read_part(py, &part, &buffer)
    }

    /// The element at `index` as a scalar; `None`, having done nothing, when `index` is not one `int` inside the array
    /// per axis, or another thread is asking for one.
    fn element(&self, py: Python<'_>, index: &Bound<'_, PyTuple>) -> PyResult<Option<Py<PyAny>>> {
        let shape = &self.array.shape;
        if index.len() != shape.len() || shape.is_empty() {
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
            let axes = at.into_iter().map(|start| Ax::Range { start, step: 1, n: 1, out: 0, stride: 0 });
            self.read_part(py, &Part::Box(axes.collect()), &scratch.buffer)?;
        }
        scratch.array.bind(py).get_item(0).map(|scalar| Some(scalar.unbind()))
    }

    /// Fills the one-dimensional `out` with the points that the int64 arrays `coords` name.
    fn read_points(&self, py: Python<'_>, coords: &Bound<'_, PyTuple>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = self.buffer(out, true)?;
        let part = self.points(py, coords, &buffer)?;
        self.read_part(py, &part, &buffer)
    }

    /// Stores `value`, whose shape is that of the selection `dims`, in the array's local files.
    fn write(&self, py: Python<'_>, dims: &Bound<'_, PyTuple>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = self.buffer(value, false)?;
        let part = self.outer(py, dims, &buffer)?;
        self.write_part(py, &part, &buffer)
    }

    /// Stores the one-dimensional `value` at the points that the int64 arrays `coords` name.
    fn write_points(&self, py: Python<'_>, coords: &Bound<'_, PyTuple>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let buffer = self.buffer(value, false)?;
        let part = self.points(py, coords, &buffer)?;
        self.write_part(py, &part, &buffer)
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
        match (&self.array.store, &self.store) {
            (Store::Local(_), _) => Ok(py.detach(|| WriteJob::run(&self.array, part, value, selected, &mut poll()))?),
            (Store::Python, Some(store)) => self.write_to(py, store.bind(py), part, value),
            (Store::Python, None) => Err(PyValueError::new_err("this array was made without a store")),
        }
    }

    /// Writes to a store of Python: covered chunks in batches, the others one by one under the store's lock.
    fn write_to(&self, py: Python<'_>, store: &Bound<'_, PyAny>, part: &Part, value: Memory<'static>) -> PyResult<()> {
        let array = &self.array;
        let how = Writing { value, keep_empty: array.write_empty };
        let spread = Arc::new(py.detach(|| Spread::new(part, &array.cuts)));
        let nbytes = array.chain_at(&spread.get(0).0)?.nbytes.max(1);
        let many = (BATCH_BYTES / nbytes).clamp(1, FETCH_BATCH);
        let mut covered = Vec::with_capacity(many);
        for number in 0..spread.len() {
            let (coords, part) = spread.get(number);
            if part.covers(&array.inside(&coords)) {
                covered.push(number);
            } else {
                let alive = Arc::new(AtomicBool::new(true));
                let change = Change { array: array.clone(), spread: spread.clone(), number, how, alive: alive.clone() };
                let done = store.call_method1("update", (array.key(&coords), change));
                alive.store(false, Ordering::Release);
                done?;
            }
            if covered.len() == many || number + 1 == spread.len() {
                let numbers = std::mem::take(&mut covered);
                let made = py.detach(|| EncodeJob::run(array, &spread, how, numbers, &mut poll()))?;
                for (key, data) in made {
                    match data {
                        Some(data) => store.call_method1("set", (key, PyBytes::new(py, &data)))?,
                        None => store.call_method1("delete", (key,))?,
                    };
                }
            }
        }
        Ok(())
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

    fn outer(&self, py: Python<'_>, dims: &Bound<'_, PyTuple>, buffer: &PyUntypedBuffer) -> PyResult<Part> {
        let shape = &self.array.shape;
        // NumPy exports 0-d arrays without a shape, which PyO3 refuses: they come as one element.
        if dims.len() != shape.len() || buffer.dimensions() != shape.len().max(1) {
            return Err(PyValueError::new_err(format!("the array has {} dimensions", shape.len())));
        }
        let mut axes = Vec::with_capacity(shape.len());
        for (i, dim) in dims.iter().enumerate() {
            let (n, stride) = (shape[i], buffer.strides()[i]);
            let ax = if let Ok(slice) = dim.cast::<PySlice>() {
                let at = slice.indices(n as isize)?;
                if at.step < 1 {
                    return Err(PyValueError::new_err("slices need a positive step"));
                }
                let (start, len) = (at.start as usize, at.slicelength);
                Ax::Range { start, step: at.step as usize, n: len, out: 0, stride }
            } else {
                Ax::list(&positions(py, &dim, n)?, stride)
            };
            if ax.len() != buffer.shape()[i] {
                return Err(PyValueError::new_err(format!(
                    "axis {i} of the buffer has length {}, the selection {}",
                    buffer.shape()[i],
                    ax.len()
                )));
            }
            axes.push(ax);
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
        let mut at = vec![0; n * ndim];
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
        Ok(Part::Points { ndim, at, out: (0..n as isize).map(|i| i * stride).collect() })
    }

    fn read_part(&self, py: Python<'_>, part: &Part, buffer: &PyUntypedBuffer) -> PyResult<()> {
        let selected = part.len() * self.array.item;
        if selected == 0 {
            return Ok(());
        }
        // `buffer` lives until this function returns, and `ReadJob::run` leaves no thread behind.
        let out = Memory::of_buffer(buffer);
        let array = &self.array;
        match (&array.store, &self.store) {
            (Store::Local(_), _) => py.detach(|| {
                let spread = Arc::new(Spread::new(part, &array.cuts));
                let all = (0, spread.len());
                ReadJob::run(array, &spread, out, all, None, selected, &mut poll())
            })?,
            (Store::Python, Some(store)) => {
                let spread = Arc::new(py.detach(|| Spread::new(part, &array.cuts)));
                let total = spread.len();
                let nbytes = array.chain_at(&spread.get(0).0)?.nbytes.max(1);
                let ranged = match self.ranged {
                    Some(small) => ranged::at_once(array, &spread, small, BATCH_BYTES)?,
                    None => None,
                };
                let many = ranged.unwrap_or(BATCH_BYTES / nbytes).clamp(1, FETCH_BATCH);
                let mut first = 0;
                while first < total {
                    let last = (first + many).min(total);
                    if ranged.is_some() && self.read_ranges(py, store, &spread, out, (first, last))? {
                        first = last;
                        continue;
                    }
                    let fetched = self.fetch(py, store, &spread, (first, last))?;
                    let share = selected / total * (last - first);
                    py.detach(|| ReadJob::run(array, &spread, out, (first, last), Some(fetched), share, &mut poll()))?;
                    first = last;
                }
            }
            (Store::Python, None) => return Err(PyValueError::new_err("this array was made without a store")),
        }
        Ok(())
    }

    /// Reads parts of shards wave by wave; `false`, having done nothing, when whole values are better.
    fn read_ranges(
        &self,
        py: Python<'_>,
        store: &Py<PyAny>,
        spread: &Arc<Spread>,
        out: Memory<'static>,
        range: (usize, usize),
    ) -> PyResult<bool> {
        let Some(mut waves) =
            py.detach(|| Waves::start(&self.array, spread, out, range, self.ranged.unwrap_or(usize::MAX)))?
        else {
            return Ok(false);
        };
        loop {
            let asks = py.detach(|| waves.asks())?;
            if asks.is_empty() {
                return Ok(true);
            }
            let requests = asks.into_iter().map(|ask| (self.array.key(&spread.get(ask.number).0), ask.ranges));
            let requests = PyList::new(py, requests.collect::<Vec<_>>())?;
            let mut answers = Vec::with_capacity(requests.len());
            for value in store.bind(py).call_method1("fetch_ranges", (&requests,))?.try_iter()? {
                let value = value?;
                answers.push(if value.is_none() { None } else { Some(pieces(&value)?) });
            }
            if answers.len() != requests.len() {
                return Err(PyValueError::new_err("fetch_ranges returned another number of answers than of requests"));
            }
            py.detach(|| waves.answer(answers, &mut poll()))?;
        }
    }

    fn fetch(
        &self,
        py: Python<'_>,
        store: &Py<PyAny>,
        spread: &Spread,
        (first, last): (usize, usize),
    ) -> PyResult<Vec<Option<Object>>> {
        let keys = (first..last).map(|number| self.array.key(&spread.get(number).0));
        let keys = PyList::new(py, keys.collect::<Vec<_>>())?;
        let values = store.bind(py).call_method1("fetch", (keys,))?;
        let mut objects = Vec::with_capacity(last - first);
        for value in values.try_iter()? {
            objects.push(held(&value?)?.map(Object::Bytes));
        }
        if objects.len() == last - first {
            Ok(objects)
        } else {
            Err(PyValueError::new_err("fetch returned another number of values than it was asked for"))
        }
    }
}

/// What `Store.update` is given: old value → new value. Only called while `PyArray::write_to` holds the memory.
#[pyclass(frozen, module = "tessarr._native")]
struct Change {
    array: Arc<Array>,
    spread: Arc<Spread>,
    number: usize,
    how: Writing,
    /// Whether the value's memory is still held.
    alive: Arc<AtomicBool>,
}

#[pymethods]
impl Change {
    fn __call__<'py>(&self, py: Python<'py>, old: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if !self.alive.load(Ordering::Acquire) {
            return Err(PyValueError::new_err("a change was kept beyond the update that it was made for"));
        }
        let old = held(old)?.map(Object::Bytes);
        let made = py.detach(|| encode_part(&self.array, &self.spread, self.number, old.as_ref(), self.how))?;
        Ok(made.1.map(|data| PyBytes::new(py, &data)))
    }
}

/// The bytes of a fetched value: `bytes` are borrowed, any other buffer is copied; `None` is a missing key.
fn held(value: &Bound<'_, PyAny>) -> PyResult<Option<Held>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(Held::Python(Arc::new(PyBackedBytes::from(bytes.clone())))));
    }
    let buffer = PyUntypedBuffer::get(value)?;
    let view = Memory::of_buffer(&buffer);
    let bytes = buffer.is_c_contiguous().then(|| view.slice(0, buffer.len_bytes())).flatten();
    match bytes {
        Some(bytes) => Ok(Some(Held::Vec(Arc::new(bytes.to_vec())))),
        None => Err(PyValueError::new_err("a fetched value is not contiguous")),
    }
}

fn pieces(values: &Bound<'_, PyAny>) -> PyResult<Vec<Held>> {
    let piece = |value: PyResult<Bound<'_, PyAny>>| {
        held(&value?)?.ok_or_else(|| PyValueError::new_err("a part of a fetched value is missing"))
    };
    values.try_iter()?.map(piece).collect()
}

fn positions(py: Python<'_>, list: &Bound<'_, PyAny>, length: usize) -> PyResult<Vec<i64>> {
    let list = PyBuffer::<i64>::get(list)?.to_vec(py)?;
    if let Some(wrong) = list.iter().find(|&&at| at < 0 || at as usize >= length) {
        return Err(PyValueError::new_err(format!("index {wrong} is out of bounds for length {length}")));
    }
    Ok(list)
}

/// Looks for signals (Ctrl-C) every now and then; holds no lock while it does.
fn poll() -> impl FnMut() -> Result<()> {
    let mut last: Option<Instant> = None;
    move || {
        // The first look starts the clock: most requests are over by then.
        let Some(before) = last else {
            last = Some(Instant::now());
            return Ok(());
        };
        if before.elapsed() < Duration::from_millis(50) {
            return Ok(());
        }
        last = Some(Instant::now());
        Ok(Python::attach(|py| py.check_signals())?)
    }
}

/// Threads that work on one request, the caller included.
#[pyfunction]
fn threads() -> usize {
    pool::threads()
}

/// Sets the number of threads; 0: the processors that this process may use.
#[pyfunction]
fn set_threads(n: usize) {
    pool::set_threads(n);
}

/// Sets the size of the cache of decoded chunks in bytes; 0 switches it off.
#[pyfunction]
fn set_cache_bytes(n: usize) {
    cache::set_capacity(n);
    if n == 0 {
        pool::process().cache.clear();
    }
}

/// Forgets all cached chunks and shard indices.
#[pyfunction]
fn clear_cache() {
    pool::process().cache.clear();
}

/// What the cache holds and did: capacity, nbytes, entries, hits, misses, evictions.
#[pyfunction]
fn cache_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    use std::sync::atomic::Ordering::Relaxed;
    let cache = &pool::process().cache;
    let (nbytes, entries) = cache.held();
    let info = PyDict::new(py);
    info.set_item("capacity", cache::capacity())?;
    info.set_item("nbytes", nbytes)?;
    info.set_item("entries", entries)?;
    info.set_item("hits", cache.statistics.hits.load(Relaxed))?;
    info.set_item("misses", cache.statistics.misses.load(Relaxed))?;
    info.set_item("evictions", cache.statistics.evictions.load(Relaxed))?;
    Ok(info)
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
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add("DEFAULT_CACHE_BYTES", cache::DEFAULT_BYTES)?;
    module.add_function(wrap_pyfunction!(threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_cache_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(clear_cache, module)?)?;
    module.add_function(wrap_pyfunction!(cache_info, module)?)?;
    Ok(())
}
