//! Ask Python for signals while Rust works: all that Rust asks of Python by itself.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::Result;

/// Check for signals (Ctrl-C) periodically, without holding a lock.
pub fn poll() -> impl FnMut() -> Result<()> {
    let mut last: Option<Instant> = None;
    move || {
        // The first call starts the clock: most requests end before the second.
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
