//! Many files in one call: documents that are read, and steps of a transaction (`tessarr.stores.local.transactions.many`).

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::{Error, Result};
use crate::pool::{each, threads};
use crate::replace::{LockedFile, ROOM, place_new, preallocate};
use crate::signals::poll;
use crate::store::{ReadResult, Version, is_missing, read_small, write_all_at};

/// So few files are not worth waking a thread for.
const FEW: usize = 16;

/// So many files are read by one thread before it takes more.
const BATCH: usize = 32;

/// Read files of at most `most` bytes each, many of them on idle threads too. Those with hidden names, which are documents of
/// older formats and journals, are missing as a rule.
pub fn read(paths: Vec<PathBuf>, most: u64) -> Result<Vec<ReadResult>> {
    let read_one = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        read_small(path.as_path().into(), most, is_hidden)
    };
    let batches = paths.len().div_ceil(BATCH);
    if batches < 3 {
        return Ok(paths.iter().map(read_one).collect());
    }
    let found: Vec<OnceLock<Vec<ReadResult>>> = (0..batches).map(|_| OnceLock::new()).collect();
    each(batches, threads().min(batches) - 1, &mut poll(), &|i| {
        let batch = &paths[i * BATCH..paths.len().min((i + 1) * BATCH)];
        found[i].get_or_init(|| batch.iter().map(read_one).collect());
        Ok(())
    })?;
    Ok(found.into_iter().filter_map(OnceLock::into_inner).flatten().collect())
}

/// Write new files: their versions. `None`: none was written, because a directory is missing, or a call failed.
#[pyfunction]
fn write_new_files(py: Python<'_>, files: Vec<(PathBuf, PyBackedBytes)>) -> Option<Vec<String>> {
    py.detach(|| {
        // `None`: the file was made, and could not be written.
        let made: Vec<OnceLock<Option<String>>> = files.iter().map(|_| OnceLock::new()).collect();
        let written = in_parallel(files.len(), &|i| {
            let (path, value) = &files[i];
            let Ok(file) = OpenOptions::new().write(true).create_new(true).open(path) else { return false };
            made[i].get_or_init(|| write(&file, value).ok()).is_some()
        });
        if !written {
            for ((path, _), _) in files.iter().zip(&made).filter(|(_, made)| made.get().is_some()) {
                let _ = fs::remove_file(path);
            }
            return None;
        }
        made.into_iter().map(|version| version.into_inner().flatten()).collect()
    })
}

/// Call `work` for items `0..total`, on idle threads too, until one returns `false`. Returns whether all returned `true`.
fn in_parallel(total: usize, work: &(dyn Fn(usize) -> bool + Sync)) -> bool {
    let done = |i| if work(i) { Ok(()) } else { Err(Error::cancelled()) };
    if total < FEW {
        (0..total).all(work)
    } else {
        each(total, threads().min(total) - 1, &mut || Ok(()), &done).is_ok()
    }
}

fn write(file: &File, value: &[u8]) -> io::Result<String> {
    if value.len() as u64 >= ROOM {
        let _ = preallocate(file, value.len() as u64);
    }
    write_all_at(file, value, 0)?;
    // As `Replacement::finish` does.
    file.set_modified(SystemTime::now())?;
    Ok(Version::of(&file.metadata()?).name())
}

/// Return the versions of files; `None` for a path without a file.
#[pyfunction]
fn file_versions(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<Option<String>>> {
    let version = |path: PathBuf| match fs::metadata(path) {
        Ok(there) => Ok(there.is_file().then(|| Version::of(&there).name())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    };
    Ok(py.detach(|| paths.into_iter().map(version).collect::<io::Result<_>>())?)
}

/// Rename staged files over values, in any order: (staged file, value, its version, version of the staged file), versions
/// without the device. Returns whether all were renamed, which another version or a failure prevents.
#[pyfunction]
fn place_staged(py: Python<'_>, steps: Vec<(PathBuf, PathBuf, Option<String>, String)>) -> bool {
    py.detach(|| {
        in_parallel(steps.len(), &|i| {
            let (staged, path, old, new) = &steps[i];
            place(staged, path, old.as_deref(), new)
        })
    })
}

fn place(staged: &Path, path: &Path, old: Option<&str>, new: &str) -> bool {
    let is_new = |there: Metadata| there.is_file() && without_device(&Version::of(&there).name()) == new;
    if !fs::symlink_metadata(staged).is_ok_and(is_new) {
        return false;
    }
    let Some(old) = old else { return matches!(place_new(staged, path), Ok(true)) };
    match LockedFile::begin(path) {
        Ok(Some(held)) => {
            held.has_version(|version| without_device(&version.name()) == old) && fs::rename(staged, path).is_ok()
        }
        _ => false,
    }
}

fn without_device(name: &str) -> &str {
    name.split_once(':').map_or("", |(_, version)| version)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(write_new_files, module)?)?;
    module.add_function(wrap_pyfunction!(file_versions, module)?)?;
    module.add_function(wrap_pyfunction!(place_staged, module)?)?;
    Ok(())
}
