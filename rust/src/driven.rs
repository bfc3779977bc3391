//! Stores that Python serves. Those behind a network are driven by Python, which hands over what came as it comes
//! (`Reading`, `Waves`, `Writing`); near ones are called from here (`read_near`, `write_near`).

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

use crate::array::Array;
use crate::encode::{self, merge, stored_order};
use crate::error::{Error, Result};
use crate::leaves::Request;
use crate::part::{Part, Plan};
use crate::pool;
use crate::python::poll;
use crate::region::{Exported, Memory};
use crate::store::{Object, OwnedBytes, Source};
use crate::waves::{self, Answer, Range};

/// A request with the caller's memory.
pub struct Begun {
    pub array: Arc<Array>,
    pub plan: Arc<Plan>,
    pub buffer: PyUntypedBuffer,
}

/// A selection that is being read: its parts, one per chunk, are read in any number of `Waves`.
#[pyclass(frozen, module = "tessarr._native")]
pub struct Reading(pub Begun);

#[pymethods]
impl Reading {
    fn __len__(&self) -> usize {
        self.0.plan.len()
    }

    /// Decoded bytes that are fetched for a part; the first stands for all.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(if self.0.plan.len() == 0 { 0 } else { waves::part_nbytes(&self.0.array, &self.0.plan)? })
    }

    /// Begins to read parts `first..stop`. Shards of at most `small` decoded bytes are fetched whole.
    fn start(slf: &Bound<'_, Self>, first: usize, stop: usize, small: usize) -> PyResult<Waves> {
        let Begun { array, plan, buffer } = &slf.get().0;
        if first > stop || stop > plan.len() {
            return Err(PyIndexError::new_err("no such parts"));
        }
        // `Waves` keeps `slf`, and with it the buffer.
        let request = Request { array: array.clone(), plan: plan.clone(), out: Memory::of_buffer(buffer) };
        let waves = slf.py().detach(|| waves::Waves::start(request, (first, stop), small))?;
        Ok(Waves { waves: Mutex::new(waves), _reading: slf.clone().unbind() })
    }
}

/// See `crate::waves`.
#[pyclass(frozen, module = "tessarr._native")]
pub struct Waves {
    waves: Mutex<waves::Waves>,
    _reading: Py<Reading>,
}

type Asked = (usize, String, Option<Vec<Range>>);
type Given<'py> = (usize, Option<Bound<'py, PyAny>>, Option<String>);

impl Waves {
    fn with<T>(&self, work: impl FnOnce(&mut waves::Waves) -> Result<T>) -> PyResult<T> {
        let taken = self.waves.try_lock();
        let mut waves = taken.map_err(|_| PyRuntimeError::new_err("waves belong to one thread at a time"))?;
        Ok(work(&mut waves)?)
    }
}

#[pymethods]
impl Waves {
    /// What to fetch now: (id, key, ranges or `None` for the whole value).
    fn asks(&self, py: Python<'_>) -> PyResult<Vec<Asked>> {
        let asks = py.detach(|| self.with(waves::Waves::asks))?;
        Ok(asks.into_iter().map(|ask| (ask.id, ask.key, ask.ranges)).collect())
    }

    /// Takes what came: (id, a buffer per range or `None` for a missing key, version or `None`).
    fn answer(&self, py: Python<'_>, answers: Vec<Given<'_>>) -> PyResult<()> {
        let taken = answers.into_iter().map(|(id, parts, version)| {
            let parts = parts.map(|parts| buffers(&parts)).transpose()?;
            Ok(Answer { id, parts, version: version.map(Arc::from) })
        });
        let answers = taken.collect::<PyResult<Vec<_>>>()?;
        py.detach(|| self.with(|waves| waves.answer(answers, &mut poll())))
    }
}

/// A selection that is being written, chunk by chunk.
#[pyclass(frozen, module = "tessarr._native")]
pub struct Writing(pub Begun);

#[pymethods]
impl Writing {
    fn __len__(&self) -> usize {
        self.0.plan.len()
    }

    /// Of part `number`: the chunk's index in the grid, its key, and whether it is covered.
    fn part<'py>(&self, py: Python<'py>, number: usize) -> PyResult<(Bound<'py, PyTuple>, String, bool)> {
        let Begun { array, plan, .. } = &self.0;
        if number >= plan.len() {
            return Err(PyIndexError::new_err("no such part"));
        }
        let (coords, part) = plan.get(number);
        Ok((PyTuple::new(py, &coords)?, array.key(&coords), part.covers(&array.inside(&coords))))
    }

    /// The encoded chunk of part `number` laid over `old` (`None`: fill value); `None` when there is nothing to store.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        old: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Begun { array, plan, buffer } = &self.0;
        if number >= plan.len() {
            return Err(PyIndexError::new_err("no such part"));
        }
        // `self` holds the buffer while this runs.
        changed(py, array, plan, number, Memory::of_buffer(buffer), old)
    }
}

fn changed<'py>(
    py: Python<'py>,
    array: &Array,
    plan: &Plan,
    number: usize,
    value: Memory<'static>,
    old: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let old = if old.is_none() { None } else { Some(Object::Bytes(held(old)?)) };
    let new = py.detach(|| encode(array, plan, number, value, old.as_ref()))?;
    Ok(new.map(|bytes| PyBytes::new(py, &bytes)))
}

/// The encoded chunk of part `number` laid over `old` (`None`: fill value).
fn encode(
    array: &Array,
    plan: &Plan,
    number: usize,
    value: Memory<'static>,
    old: Option<&Object>,
) -> Result<Option<Vec<u8>>> {
    let (coords, part) = plan.get(number);
    let chain = array.chain_at(&coords)?;
    let (part, inside) = stored_order(&chain, part, &array.inside(&coords));
    let how = encode::Writing { value, keep_empty: array.write_empty || old.is_some() && array.keep_updated };
    let mut out = Vec::new();
    match merge(&chain, old.map(Source::whole), &part, &inside, how, &mut out) {
        Ok(any) => Ok(any.then_some(out)),
        Err(error) => Err(error.at(&coords, &array.key(&coords))),
    }
}

/// Values asked of a near store at once,
const MOST_VALUES: usize = 512;
/// and at most so much of them, decoded.
const MOST_BYTES: usize = 64 << 20;

/// Parts that go together.
fn at_once(nbytes: usize) -> usize {
    (MOST_BYTES / nbytes.max(1)).clamp(1, MOST_VALUES)
}

/// Reads `part` from `store`, of which shards of at most `whole` decoded bytes are fetched whole:
/// `fetch([(key, ranges or None)]) -> [a buffer per range, or None]`.
pub fn read_near(
    py: Python<'_>,
    array: &Arc<Array>,
    store: &Bound<'_, PyAny>,
    part: &Part,
    out: Memory<'static>,
    whole: usize,
) -> PyResult<()> {
    let plan = Arc::new(py.detach(|| Plan::new(part, &array.grid_axes)));
    let many = at_once(waves::part_nbytes(array, &plan)?);
    for first in (0..plan.len()).step_by(many) {
        let request = Request { array: array.clone(), plan: plan.clone(), out };
        let range = (first, (first + many).min(plan.len()));
        let mut waves = py.detach(|| waves::Waves::start(request, range, whole))?;
        loop {
            let asks = waves.asks()?;
            if asks.is_empty() {
                break;
            }
            let (ids, requests): (Vec<_>, Vec<_>) = asks.into_iter().map(|ask| (ask.id, (ask.key, ask.ranges))).unzip();
            let values = store.call_method1(intern!(py, "fetch"), (requests,))?;
            let values = values.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            if values.len() != ids.len() {
                let error = Error::new("store", "fetch returned another number of values than it was asked for");
                return Err(error.expected(ids.len().to_string()).got(values.len().to_string()).into());
            }
            let answers = ids.into_iter().zip(values).map(|(id, value)| {
                let parts = if value.is_none() { None } else { Some(buffers(&value)?) };
                Ok(Answer { id, parts, version: None })
            });
            let answers = answers.collect::<PyResult<Vec<_>>>()?;
            py.detach(|| waves.answer(answers, &mut poll()))?;
        }
    }
    Ok(())
}

/// Writes to `store`: covered chunks in batches, the others one by one under its lock (`update`).
pub fn write_near(
    py: Python<'_>,
    array: &Arc<Array>,
    store: &Bound<'_, PyAny>,
    part: &Part,
    value: Memory<'static>,
) -> PyResult<()> {
    let plan = Arc::new(py.detach(|| Plan::new(part, &array.grid_axes)));
    let many = at_once(array.chain_at(&plan.get(0).0)?.nbytes);
    let mut covered = Vec::with_capacity(many);
    for number in 0..plan.len() {
        let (coords, part) = plan.get(number);
        if part.covers(&array.inside(&coords)) {
            covered.push(number);
        } else {
            let alive = Arc::new(RwLock::new(true));
            let change = Change { array: array.clone(), plan: plan.clone(), number, value, alive: alive.clone() };
            let done = store.call_method1(intern!(py, "update"), (array.key(&coords), change));
            // Waits for a thread that is still at it, whatever became of the update.
            py.detach(|| *alive.write().unwrap_or_else(PoisonError::into_inner) = false);
            done?;
        }
        if covered.len() == many || number + 1 == plan.len() {
            for (number, data) in encode_all(py, array, &plan, &covered, value)? {
                let key = array.key(&plan.get(number).0);
                store.call_method1(intern!(py, "put"), (key, data.map(|data| PyBytes::new(py, &data))))?;
            }
            covered.clear();
        }
    }
    Ok(())
}

/// The encoded chunks of parts that cover them.
fn encode_all(
    py: Python<'_>,
    array: &Array,
    plan: &Plan,
    numbers: &[usize],
    value: Memory<'static>,
) -> PyResult<Vec<(usize, Option<Vec<u8>>)>> {
    let encoded = Mutex::new(Vec::with_capacity(numbers.len()));
    let helpers = pool::threads().min(numbers.len()).saturating_sub(1);
    py.detach(|| {
        pool::each(numbers.len(), helpers, &mut poll(), &|i| {
            let new = encode(array, plan, numbers[i], value, None)?;
            encoded.lock().unwrap_or_else(PoisonError::into_inner).push((numbers[i], new));
            Ok(())
        })
    })?;
    Ok(encoded.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What `Store.update` is given: old value → new value. Only called while `write_near` holds the memory.
#[pyclass(frozen, module = "tessarr._native")]
struct Change {
    array: Arc<Array>,
    plan: Arc<Plan>,
    number: usize,
    value: Memory<'static>,
    /// Whether the value's memory is still held; it is as long as a reader holds this.
    alive: Arc<RwLock<bool>>,
}

#[pymethods]
impl Change {
    fn __call__<'py>(&self, py: Python<'py>, old: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let alive = self.alive.try_read().ok();
        if !alive.as_deref().is_some_and(|alive| *alive) {
            return Err(PyValueError::new_err("a change was kept beyond the update that it was made for"));
        }
        changed(py, &self.array, &self.plan, self.number, self.value, old)
    }
}

/// The bytes of a fetched value: borrowed where nobody can write them, else copied.
fn held(value: &Bound<'_, PyAny>) -> PyResult<OwnedBytes> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(OwnedBytes::Python(Arc::new(PyBackedBytes::from(bytes.clone()))));
    }
    match Exported::of(PyUntypedBuffer::get(value)?) {
        Some(bytes) => Ok(OwnedBytes::Exported(Arc::new(bytes))),
        None => {
            let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
            let bytes =
                bytes.cast_into::<PyBytes>().map_err(|_| PyValueError::new_err("a fetched value is no bytes"))?;
            Ok(OwnedBytes::Python(Arc::new(PyBackedBytes::from(bytes))))
        }
    }
}

fn buffers(values: &Bound<'_, PyAny>) -> PyResult<Vec<OwnedBytes>> {
    values.try_iter()?.map(|value| held(&value?)).collect()
}
