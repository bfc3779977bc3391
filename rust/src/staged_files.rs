//! The staged files of a transaction, each beside the value that it becomes: written, compared and renamed many at a time
//! (`tessarr.stores.local.transactions.many`).
//!
//! Names are looked up from one open directory, the root. What cannot be done here is left to Python, which does it file by
//! file and says why it fails.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::Error;
use crate::folder::Folder;
use crate::pool::{each, threads};
use crate::replace::{ROOM, preallocate};
use crate::store::{Version, write_all_at};

/// So few files are not worth waking a thread for.
const FEW: usize = 16;
/// The most bytes of a name that hidden names hold whole (`NAME_BYTES` in `tessarr.stores.local.lock`).
const NAME_BYTES: usize = 180;

/// The files that the transaction `id` stages for keys below the directory `root`.
#[pyclass(frozen, module = "tessarr._native")]
pub struct StagedFiles {
    root: Folder,
    id: String,
}

/// Versions of values, keys that are locked, and keys whose staged file has changed.
type Comparison = (Vec<Option<String>>, Vec<String>, Vec<String>);

/// A key, and its staged file if it has one.
pub type StagedKey = (String, Option<Staged>);

/// Writes the file of a key.
type WriteFile<'a> = dyn Fn(&str, &[u8]) -> bool + 'a;

/// What is there for a key; see `StagedFiles::compare`.
struct Compared {
    version: Option<String>,
    is_locked: bool,
    is_changed: bool,
}

/// A staged file: its version, without the device, and its bytes.
pub type Staged = (String, u64);

#[pymethods]
impl StagedFiles {
    #[new]
    fn new(root: PathBuf, identifier: String) -> PyResult<StagedFiles> {
        Ok(StagedFiles { root: Folder::open(root)?, id: identifier })
    }

    /// Whether `write` refuses links that lead out of the root.
    #[classattr]
    const CHECKS_LINKS: bool = Folder::CHECKS_LINKS;

    /// Write files for keys: their versions, without the device. `None`: none was written, because a directory is missing, a
    /// link leads out of the root, a file is there, or a call failed.
    fn write(&self, py: Python<'_>, values: Vec<(String, PyBackedBytes)>) -> Option<Vec<String>> {
        let staged = py.detach(|| self.write_all(values.len(), &|i, write| write(&values[i].0, &values[i].1)))?;
        staged.into_iter().map(|file| file.map(|(version, _)| version)).collect()
    }

    /// Compare keys (key, version of its staged file without the device; `None`: nothing is staged): the versions of the values
    /// (`None`: no value), which of the first `locks` keys have a lock file, and which staged files have another version, or are
    /// missing. `None` for all: a name is too long. The lock file of a key is looked for before its version.
    fn compare(
        &self,
        py: Python<'_>,
        keys: Vec<(String, Option<String>)>,
        locks: usize,
    ) -> PyResult<Option<Comparison>> {
        if keys.iter().any(|(key, _)| self.name(key).is_none()) {
            return Ok(None);
        }
        let found: Vec<OnceLock<io::Result<Compared>>> = keys.iter().map(|_| OnceLock::new()).collect();
        py.detach(|| {
            in_parallel(keys.len(), &|i| {
                let (key, staged) = &keys[i];
                found[i].get_or_init(|| self.compare_one(key, staged.as_deref(), i < locks)).is_ok()
            })
        });
        let found = found.into_iter().filter_map(OnceLock::into_inner); // all of them, unless one is an error
        let (mut versions, mut locked, mut changed) = (Vec::with_capacity(keys.len()), Vec::new(), Vec::new());
        for (found, (key, _)) in found.collect::<io::Result<Vec<_>>>()?.into_iter().zip(&keys) {
            versions.push(found.version);
            locked.extend(found.is_locked.then(|| key.clone()));
            changed.extend(found.is_changed.then(|| key.clone()));
        }
        Ok(Some((versions, locked, changed)))
    }

    /// Rename the staged files of keys over their values, in any order: (key, version of its value without the device). Returns
    /// whether all were renamed, which another version or a failure prevents.
    fn place(&self, py: Python<'_>, steps: Vec<(String, Option<String>)>) -> bool {
        py.detach(|| {
            in_parallel(steps.len(), &|i| {
                let (key, old) = &steps[i];
                self.name(key).is_some_and(|staged| self.place_one(&staged, key, old.as_deref()))
            })
        })
    }
}

impl StagedFiles {
    /// The name of the staged file of a key; `None`: too long.
    fn name(&self, key: &str) -> Option<String> {
        beside(key, &format!("{}.tessarr-tmp", self.id))
    }

    /// Call `make` for `0..total`, on idle threads too; it may pass a key and a value to its second argument, which writes the
    /// file. Returns what was written for each, or `None`, and then nothing is left, once a call of `make` returned `false`.
    pub fn write_all(
        &self,
        total: usize,
        make: &(dyn Fn(usize, &WriteFile<'_>) -> bool + Sync),
    ) -> Option<Vec<Option<Staged>>> {
        // The name, and `None` for a file that was made and could not be written.
        let made: Vec<OnceLock<(String, Option<Staged>)>> = (0..total).map(|_| OnceLock::new()).collect();
        let write = |i: usize, key: &str, value: &[u8]| {
            let Some(name) = self.name(key) else { return false };
            let Ok(file) = self.root.create(&name) else { return false };
            made[i].get_or_init(|| (name, write(&file, value).ok())).1.is_some()
        };
        if in_parallel(total, &|i| make(i, &|key, value| write(i, key, value))) {
            return Some(made.into_iter().map(|file| file.into_inner().and_then(|(_, staged)| staged)).collect());
        }
        for (name, _) in made.into_iter().filter_map(OnceLock::into_inner) {
            let _ = self.root.remove(&name);
        }
        None
    }

    fn compare_one(&self, key: &str, staged: Option<&str>, looks_for_lock: bool) -> io::Result<Compared> {
        let version_beside = |suffix: &str| beside(key, suffix).map_or(Ok(None), |name| self.root.version(&name));
        let is_locked = looks_for_lock && version_beside("tessarr-lock")?.is_some();
        let version = self.root.version(key)?;
        let is_changed = match staged {
            None => false,
            Some(staged) => {
                let found = version_beside(&format!("{}.tessarr-tmp", self.id))?;
                found.as_deref().map(without_device) != Some(staged)
            }
        };
        Ok(Compared { version, is_locked, is_changed })
    }

    fn place_one(&self, staged: &str, key: &str, old: Option<&str>) -> bool {
        let Some(old) = old else { return self.root.rename_new(staged, key).is_ok() };
        matches!(self.root.replace(staged, key, |version| without_device(version) == old), Ok(true))
    }
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

fn write(file: &File, value: &[u8]) -> io::Result<Staged> {
    if value.len() as u64 >= ROOM {
        let _ = preallocate(file, value.len() as u64);
    }
    write_all_at(file, value, 0)?;
    // As `Replacement::finish` does.
    file.set_modified(SystemTime::now())?;
    let version = Version::of(&file.metadata()?);
    Ok((without_device(&version.name()).to_owned(), version.size()))
}

/// The hidden name beside a key; `None`: too long to be made here.
fn beside(key: &str, suffix: &str) -> Option<String> {
    let (folder, name) = key.rsplit_once('/').map_or(("", key), |(folder, name)| (folder, name));
    let separator = if folder.is_empty() { "" } else { "/" };
    (name.len() <= NAME_BYTES).then(|| format!("{folder}{separator}.{name}.{suffix}"))
}

fn without_device(name: &str) -> &str {
    name.split_once(':').map_or("", |(_, version)| version)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StagedFiles>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_beside_their_key() {
        assert_eq!(beside("a/c/0", "x").as_deref(), Some("a/c/.0.x"));
        assert_eq!(beside("zarr.json", "x").as_deref(), Some(".zarr.json.x"));
        assert_eq!(beside(&format!("a/{}", "n".repeat(NAME_BYTES + 1)), "x"), None);
    }

    #[test]
    fn a_failure_leaves_no_file() {
        let root = std::env::temp_dir().join(format!("tessarr-staged-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a")).unwrap();
        let files = StagedFiles { root: Folder::open(root.clone()).unwrap(), id: "0123456789ab".into() };
        let keys = ["a/0", "a/1", "missing/2"];
        assert!(files.write_all(3, &|i, write| write(keys[i], b"value")).is_none());
        assert_eq!(std::fs::read_dir(root.join("a")).unwrap().count(), 0);
        let staged = files.write_all(2, &|i, write| i == 1 || write(keys[i], b"value")).unwrap();
        assert_eq!(
            staged.iter().map(|file| file.as_ref().map(|(_, nbytes)| *nbytes)).collect::<Vec<_>>(),
            [Some(5), None]
        );
        assert!(files.write_all(2, &|i, write| write(keys[1 - i], b"other")).is_none(), "there is a file");
        let name = files.name("a/0").unwrap();
        assert_eq!(std::fs::read(root.join(name)).unwrap(), b"value");
        assert!(!files.place_one(&files.name("a/0").unwrap(), "a/0", Some("1:2:3")), "there is no value");
        assert!(files.place_one(&files.name("a/0").unwrap(), "a/0", None));
        assert_eq!(std::fs::read_dir(root.join("a")).unwrap().count(), 1);
        std::fs::remove_dir_all(root).unwrap();
    }
}
