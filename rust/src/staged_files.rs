//! The staged files of a transaction, each beside the value that it becomes: written, compared and renamed many at a time
//! (`tessarr.stores.local.transactions.many`).
//!
//! Names are looked up from open directories: the root, or where several names in succession are in one directory, that. What
//! cannot be done here is left to Python, which does it file by file and says why it fails.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::Error;
use crate::folder::Folder;
use crate::pool::{each, release, threads};
use crate::replace::{ROOM, preallocate};
use crate::store::{Version, is_missing, write_all_at};

/// So few files are not worth waking a thread for, and are one item of work.
const FEW: usize = 16;
/// So many replaced files are kept open.
const KEPT_OPEN: usize = 256;
/// The most bytes of a name that hidden names hold whole (`NAME_BYTES` in `tessarr.stores.local.lock`).
const NAME_BYTES: usize = 180;

/// The files that the transaction `id` stages for keys below the directory `root`.
#[pyclass(frozen, module = "tessarr._native")]
pub struct StagedFiles {
    root: Arc<Folder>,
    id: String,
    /// Files that were replaced: they are freed with this object, on an idle thread.
    replaced: Mutex<Vec<File>>,
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
        Ok(StagedFiles { root: Arc::new(Folder::open(root)?), id: identifier, replaced: Mutex::default() })
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
        let found: Vec<OnceLock<io::Result<Vec<Compared>>>> = keys.chunks(FEW).map(|_| OnceLock::new()).collect();
        py.detach(|| {
            let listed = self.folders(true).listed(keys.iter().map(|(key, _)| key.as_str()));
            in_parallel(found.len(), &|block| {
                let folders = self.folders(true);
                let first = block * FEW;
                let compare = |(i, (key, staged)): (usize, &(String, Option<String>))| {
                    self.compare_one(&folders, &listed, key, staged.as_deref(), first + i < locks)
                };
                let block_keys = &keys[first..keys.len().min(first + FEW)];
                found[block].get_or_init(|| block_keys.iter().enumerate().map(compare).collect()).is_ok()
            })
        });
        let found = found.into_iter().filter_map(OnceLock::into_inner); // all of them, unless one is an error
        let (mut versions, mut locked, mut changed) = (Vec::with_capacity(keys.len()), Vec::new(), Vec::new());
        for (found, (key, _)) in found.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().zip(&keys) {
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
            in_parallel(steps.len().div_ceil(FEW), &|block| {
                let (folders, mut replaced) = (self.folders(true), Vec::new());
                let steps = &steps[block * FEW..steps.len().min((block + 1) * FEW)];
                let place = |(key, old): &(String, Option<String>)| {
                    self.place_one(&folders, &mut replaced, key, old.as_deref()).unwrap_or(false)
                };
                let all = steps.iter().all(place);
                let mut kept = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < KEPT_OPEN {
                    kept.append(&mut replaced);
                }
                all
            })
        })
    }
}

impl StagedFiles {
    /// The name of the staged file of a key, in its directory; `None`: too long.
    fn name(&self, key: &str) -> Option<String> {
        hidden(split(key).1, &format!("{}.tessarr-tmp", self.id))
    }

    fn folders(&self, follows: bool) -> Folders {
        Folders { root: self.root.clone(), follows, last: Mutex::default() }
    }

    /// Call `make` for `0..total`, on idle threads too; it may pass a key and a value to its second argument, which writes the
    /// file. Returns what was written for each, or `None`, and then nothing is left, once a call of `make` returned `false`.
    pub fn write_all(
        &self,
        total: usize,
        make: &(dyn Fn(usize, &WriteFile<'_>) -> bool + Sync),
    ) -> Option<Vec<Option<Staged>>> {
        let made: Vec<OnceLock<Made>> = (0..total).map(|_| OnceLock::new()).collect();
        let folders = self.folders(false);
        let write = |i: usize, key: &str, value: &[u8]| {
            let Some(name) = self.name(key) else { return false };
            let Ok(place) = folders.of(key) else { return false };
            let name = place.path(&name);
            let Ok(file) = place.folder.create(&name) else { return false };
            made[i]
                .get_or_init(|| Made { folder: place.folder, name, staged: write(&file, value).ok() })
                .staged
                .is_some()
        };
        let one = |i| make(i, &|key: &str, value: &[u8]| write(i, key, value));
        let all = if total < FEW { (0..total).all(one) } else { in_parallel(total, &one) };
        if all {
            return Some(made.into_iter().map(|file| file.into_inner().and_then(|made| made.staged)).collect());
        }
        for made in made.into_iter().filter_map(OnceLock::into_inner) {
            let _ = made.folder.remove(&made.name);
        }
        None
    }

    fn compare_one(
        &self,
        folders: &Folders,
        listed: &HashMap<&str, Hidden>,
        key: &str,
        staged: Option<&str>,
        looks_for_lock: bool,
    ) -> io::Result<Compared> {
        let place = match folders.of(key) {
            Err(error) if is_missing(&error) => {
                return Ok(Compared { version: None, is_locked: false, is_changed: staged.is_some() });
            }
            place => place?,
        };
        let version_of = |name: &str| place.folder.version(&place.path(name));
        let (path, name) = split(key);
        let listed = listed.get(path);
        let is_locked = match (looks_for_lock.then(|| hidden(name, "tessarr-lock")).flatten(), listed) {
            (None, _) => false,
            (Some(lock), Some(listed)) => listed.contains_key(lock.as_bytes()),
            (Some(lock), None) => version_of(&lock)?.is_some(),
        };
        let version = version_of(name)?;
        let is_changed = match (staged, self.name(key)) {
            (Some(staged), Some(name)) => {
                let inode = listed.and_then(|listed| listed.get(name.as_bytes())).map(|inode| format!("{inode:x}"));
                // No process writes to a staged file again, so that the same inode is the same version.
                inode.as_deref() != staged.split(':').next()
                    && version_of(&name)?.as_deref().map(without_device) != Some(staged)
            }
            (staged, _) => staged.is_some(),
        };
        Ok(Compared { version, is_locked, is_changed })
    }

    fn place_one(&self, folders: &Folders, replaced: &mut Vec<File>, key: &str, old: Option<&str>) -> io::Result<bool> {
        let Some(staged) = self.name(key) else { return Ok(false) };
        let place = folders.of(key)?;
        let (staged, name) = (place.path(&staged), place.path(split(key).1));
        let Some(old) = old else { return place.folder.rename_new(&staged, &name).map(|()| true) };
        let file = place.folder.replace(&staged, &name, |version| without_device(version) == old)?;
        let is_replaced = file.is_some();
        replaced.extend(file);
        Ok(is_replaced)
    }
}

impl Drop for StagedFiles {
    fn drop(&mut self) {
        let replaced = std::mem::take(self.replaced.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !replaced.is_empty() {
            release(replaced);
        }
    }
}

/// A file that was made.
struct Made {
    folder: Arc<Folder>,
    name: String,
    /// `None`: it could not be written.
    staged: Option<Staged>,
}

/// Hidden names in a directory, with their inodes.
type Hidden = HashMap<Vec<u8>, u64>;

/// The directory that was used last: it is opened when it is used for the second time.
struct Folders {
    root: Arc<Folder>,
    follows: bool,
    last: Mutex<(String, Option<Arc<Folder>>)>,
}

/// A place for names: an open directory, and where it is not that of the key, the path from there with a separator at its end.
struct Beside<'k> {
    folder: Arc<Folder>,
    path: &'k str,
}

impl Beside<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }
}

impl Folders {
    /// The hidden names in the directories of `keys`, where these are many of all names.
    fn listed<'k>(&self, keys: impl Iterator<Item = &'k str>) -> HashMap<&'k str, Hidden> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for key in keys {
            *counts.entry(split(key).0).or_default() += 1;
        }
        let many = counts.into_iter().filter(|(_, count)| *count >= FEW);
        let open = |path: &str| if path.is_empty() { Ok(self.root.clone()) } else { self.open(path) };
        many.filter_map(|(path, count)| Some((path, open(path).ok()?.hidden(4 * count).ok()??))).collect()
    }

    fn open(&self, path: &str) -> io::Result<Arc<Folder>> {
        Ok(Arc::new(self.root.inside(path, self.follows)?))
    }

    /// Where the key is, and names beside it.
    fn of<'k>(&self, key: &'k str) -> io::Result<Beside<'k>> {
        let path = split(key).0;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if path.is_empty() || last.0 != path {
            *last = (path.to_owned(), None);
            return Ok(Beside { folder: self.root.clone(), path: &key[..key.len() - split(key).1.len()] });
        }
        if last.1.is_none() {
            last.1 = Some(self.open(path)?);
        }
        Ok(Beside { folder: last.1.clone().unwrap_or_else(|| self.root.clone()), path: "" })
    }
}

/// Call `work` for items `0..total`, on idle threads too, until one returns `false`. Returns whether all returned `true`.
fn in_parallel(total: usize, work: &(dyn Fn(usize) -> bool + Sync)) -> bool {
    let done = |i| if work(i) { Ok(()) } else { Err(Error::cancelled()) };
    if total < 2 { (0..total).all(work) } else { each(total, threads().min(total) - 1, &mut || Ok(()), &done).is_ok() }
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

/// The directory of a key, and its name in it.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}

/// The hidden name beside a name; `None`: too long to be made here.
fn hidden(name: &str, suffix: &str) -> Option<String> {
    (name.len() <= NAME_BYTES).then(|| format!(".{name}.{suffix}"))
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
        assert_eq!(split("a/c/0"), ("a/c", "0"));
        assert_eq!(split("zarr.json"), ("", "zarr.json"));
        assert_eq!(hidden("0", "x").as_deref(), Some(".0.x"));
        assert_eq!(hidden(&"n".repeat(NAME_BYTES + 1), "x"), None);
    }

    #[test]
    fn a_failure_leaves_no_file() {
        let root = std::env::temp_dir().join(format!("tessarr-staged-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a")).unwrap();
        let files = StagedFiles {
            root: Arc::new(Folder::open(root.clone()).unwrap()),
            id: "0123456789ab".into(),
            replaced: Mutex::default(),
        };
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
        assert_eq!(std::fs::read(root.join("a").join(name)).unwrap(), b"value");
        let folders = files.folders(true);
        assert!(files.place_one(&folders, &mut vec![], "a/0", Some("1:2:3")).is_err(), "there is no value");
        assert!(files.place_one(&folders, &mut vec![], "a/0", None).unwrap());
        assert_eq!(std::fs::read_dir(root.join("a")).unwrap().count(), 1);
        std::fs::remove_dir_all(root).unwrap();
    }
}
