//! Steps of a transaction for many files in one call (`tessarr.stores.local.transactions.many`).

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::replace::{LockedFile, ROOM, place_new, preallocate};
use crate::store::{Version, is_missing, write_all_at};

/// Write new files: their versions. `None`: none was written, because a directory is missing, or a call failed.
#[pyfunction]
fn write_new_files(py: Python<'_>, files: Vec<(PathBuf, PyBackedBytes)>) -> Option<Vec<String>> {
    py.detach(|| {
        let mut versions = Vec::with_capacity(files.len());
        for (path, value) in &files {
            let file = OpenOptions::new().write(true).create_new(true).open(path);
            let is_new = file.is_ok();
            match file.and_then(|file| write(&file, value)) {
                Ok(version) => versions.push(version),
                Err(_) => {
                    for (path, _) in &files[..versions.len() + usize::from(is_new)] {
                        let _ = fs::remove_file(path);
                    }
                    return None;
                }
            }
        }
        Some(versions)
    })
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

/// Rename staged files over values: (staged file, value, its version, version of the staged file), versions without the device.
/// Returns how many were renamed, before the first that another version or a failure prevented.
#[pyfunction]
fn place_staged(py: Python<'_>, steps: Vec<(PathBuf, PathBuf, Option<String>, String)>) -> usize {
    let place = |(staged, path, old, new): &(PathBuf, PathBuf, Option<String>, String)| {
        place(staged, path, old.as_deref(), new)
    };
    py.detach(|| steps.iter().take_while(|step| place(step)).count())
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
