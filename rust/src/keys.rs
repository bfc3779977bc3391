//! Chunk keys: text, and slots for the coords of a chunk, as in `tessarr.keys.base`.
//!
//! ```json
//! ["a/c/", {"axis": 0}, "/", {"axis": 1, "width": 4, "group": 0}]
//! ```

use std::fmt::Write;

use serde_json::Value;

use crate::error::{Error, Result};

#[derive(Debug)]
enum Part {
    Text(String),
    /// The index of `axis`, padded with zeros to at least `width` digits.
    Index {
        axis: usize,
        width: usize,
    },
    /// The index of `axis` in path segments of `group` digits, after the number of segments minus one.
    Groups {
        axis: usize,
        group: usize,
    },
}

#[derive(Debug)]
pub struct KeyTemplate {
    parts: Vec<Part>,
    /// Bytes to allocate for a key.
    capacity: usize,
}

const MAX_WIDTH: u64 = 99;

impl KeyTemplate {
    /// Parse the template for arrays of `ndim` axes.
    pub fn from_json(json: &Value, ndim: usize) -> Result<KeyTemplate> {
        let unsupported = || Error::new("unsupported", "a chunk key that is not text and slots");
        let list = json.as_array().ok_or_else(unsupported)?;
        let parts = list.iter().map(|part| Part::from_json(part, ndim)).collect::<Option<Vec<_>>>();
        let parts = parts.ok_or_else(unsupported)?;
        let size = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Index { width, .. } => 8.max(*width),
            Part::Groups { .. } => 16,
        };
        let capacity = parts.iter().map(size).sum();
        Ok(KeyTemplate { parts, capacity })
    }

    /// The key of the chunk at `coords`.
    pub fn spell(&self, coords: &[usize]) -> String {
        let mut key = String::with_capacity(self.capacity);
        for part in &self.parts {
            match part {
                Part::Text(text) => key.push_str(text),
                Part::Index { axis, width: 0 } => {
                    let _ = write!(key, "{}", coords[*axis]);
                }
                Part::Index { axis, width } => {
                    let _ = write!(key, "{:0width$}", coords[*axis]);
                }
                Part::Groups { axis, group } => groups(&mut key, coords[*axis], *group),
            }
        }
        key
    }
}

impl Part {
    fn from_json(json: &Value, ndim: usize) -> Option<Part> {
        if let Some(text) = json.as_str() {
            return Some(Part::Text(text.to_owned()));
        }
        let small = |name: &str| match json.get(name) {
            None => Some(0),
            Some(value) => value.as_u64().filter(|&n| n <= MAX_WIDTH).map(|n| n as usize),
        };
        let axis = json.get("axis")?.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|&n| n < ndim)?;
        Some(match (small("width")?, small("group")?) {
            (width, 0) => Part::Index { axis, width },
            (_, group) => Part::Groups { axis, group },
        })
    }
}

fn groups(key: &mut String, index: usize, group: usize) {
    let digits = index.to_string();
    let count = digits.len().div_ceil(group);
    let _ = write!(key, "{}", count - 1);
    for (at, digit) in format!("{digits:0>width$}", width = count * group).char_indices() {
        if at % group == 0 {
            key.push('/');
        }
        key.push(digit);
    }
}
