//! The error type of the engine, and its conversion to Python.
//!
//! Python sees `tessarr._native.NativeError(kind, what, facts)`; `tessarr.engine.native.engine` turns it into the typed class
//! of `tessarr.errors` that has the same `kind`.

use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pyo3::create_exception!(_native, NativeError, PyException, "An error of the native engine: (kind, what, facts).");

/// The facts of an error; the names are those of `tessarr.errors.TessarrError`.
#[derive(Debug, Clone, Default)]
pub struct Fault {
    pub kind: &'static str,
    pub what: String,
    pub chunk: Option<Vec<u64>>,
    pub key: Option<String>,
    pub codec: Option<String>,
    pub expected: Option<String>,
    pub got: Option<String>,
    pub hint: Option<String>,
    pub errno: Option<i32>,
}

/// An error of the engine, or one that Python raised while the engine checked for signals.
#[derive(Debug)]
pub enum Error {
    Fault(Box<Fault>),
    Python(PyErr),
}

/// The kind of errors that are `MemoryError` in Python.
const MEMORY: &str = "memory";

pub type Result<T> = std::result::Result<T, Error>;

/// The kind of `Error::cancelled`, which never reaches Python.
const CANCELLED: &str = "cancelled";

impl Error {
    pub fn new(kind: &'static str, what: impl Into<String>) -> Error {
        Error::Fault(Box::new(Fault { kind, what: what.into(), ..Fault::default() }))
    }

    /// The request was cancelled, or another thread failed: that thread's error is the one to report.
    pub fn cancelled() -> Error {
        Error::new(CANCELLED, "the request was cancelled")
    }

    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Fault(fault) if fault.kind == CANCELLED)
    }

    /// A chunk that `codec` cannot decode or encode.
    pub fn codec(codec: &str, what: impl Into<String>) -> Error {
        Error::new("codec", what).with(|f| f.codec = Some(codec.into()))
    }

    /// A chunk that decodes to the wrong size.
    pub fn size(codec: &str, expected: usize, got: impl std::fmt::Display) -> Error {
        Error::codec(codec, "a chunk decodes to the wrong size")
            .expected(format!("{expected} bytes"))
            .got(format!("{got} bytes"))
    }

    pub fn memory(nbytes: usize) -> Error {
        Error::new(MEMORY, format!("there is not enough memory for {nbytes} bytes"))
    }

    pub fn store(what: impl Into<String>, error: &std::io::Error) -> Error {
        Error::new("store", what).got(error.to_string()).with(|f| f.errno = error.raw_os_error())
    }

    pub fn with(mut self, change: impl FnOnce(&mut Fault)) -> Error {
        if let Error::Fault(fault) = &mut self {
            change(fault);
        }
        self
    }

    pub fn expected(self, text: impl Into<String>) -> Error {
        self.with(|f| f.expected = Some(text.into()))
    }

    pub fn got(self, text: impl Into<String>) -> Error {
        self.with(|f| f.got = Some(text.into()))
    }

    pub fn hint(self, text: impl Into<String>) -> Error {
        self.with(|f| f.hint = Some(text.into()))
    }

    /// Add the location if it is unknown.
    pub fn at(self, chunk: &[usize], key: &str) -> Error {
        self.with(|f| {
            f.chunk.get_or_insert_with(|| chunk.iter().map(|&i| i as u64).collect());
            f.key.get_or_insert_with(|| key.to_owned());
        })
    }
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Error {
        Error::Python(error)
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let fault = match error {
            Error::Python(error) => return error,
            Error::Fault(fault) => *fault,
        };
        if fault.kind == MEMORY {
            let place = fault.chunk.map_or(String::new(), |chunk| format!(", at chunk {chunk:?}"));
            return PyMemoryError::new_err(fault.what + &place);
        }
        Python::attach(|py| {
            let facts = PyDict::new(py);
            let made = (|| {
                facts.set_item("chunk", fault.chunk)?;
                facts.set_item("key", fault.key)?;
                facts.set_item("codec", fault.codec)?;
                facts.set_item("expected", fault.expected)?;
                facts.set_item("got", fault.got)?;
                facts.set_item("hint", fault.hint)?;
                facts.set_item("errno", fault.errno)
            })();
            match made {
                Ok(()) => NativeError::new_err((fault.kind, fault.what, facts.unbind())),
                Err(error) => error,
            }
        })
    }
}
