//! Run single codecs of the engine, for the codec classes in Python.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::allocate;
use crate::codecs::Codec;
use crate::error::{Error, Result};

fn codec(name: &str, configuration: &str) -> Result<Codec> {
    let unsupported = |what: String| Error::new("unsupported", what);
    let json: Value = serde_json::from_str(configuration).map_err(|error| unsupported(error.to_string()))?;
    Codec::from_json(name, &json)?.ok_or_else(|| unsupported(format!("the codec '{name}'")))
}

/// Encode `data` with the codec `name`; the configuration is JSON, as in the engine's description.
#[pyfunction]
pub fn encode_step<'py>(
    py: Python<'py>,
    name: &str,
    configuration: &str,
    data: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let codec = codec(name, configuration)?;
    let encoded = py.detach(|| {
        let mut out = Vec::new();
        codec.encode(data, &mut out).map(|()| out)
    })?;
    allocate::bytes(py, &encoded)
}

/// Decode `data` to `nbytes` bytes.
#[pyfunction]
pub fn decode_step<'py>(
    py: Python<'py>,
    name: &str,
    configuration: &str,
    data: &[u8],
    nbytes: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let codec = codec(name, configuration)?;
    codec.check_plausible(data, nbytes)?;
    PyBytes::new_with(py, nbytes, |out| Ok(py.detach(|| codec.decode_into(data, out))?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(encode_step, module)?)?;
    module.add_function(wrap_pyfunction!(decode_step, module)?)
}
