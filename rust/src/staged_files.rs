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

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::allocate;
use crate::error::Error;
use crate::folder::Folder;
use crate::pool::{each, release, threads};
use crate::replace::{ROOM, preallocate};
use crate::store::{Version, is_missing, without_device, write_all_at};

/// So few files are not worth waking a thread for, and are one item of work.
const FEW: usize = 16;
/// So many replaced files are kept open.
const KEPT_OPEN: usize = 256;
/// The most bytes of a name that hidden names hold whole (`NAME_BYTES` in `tessarr.stores.local.lock`).
const NAME_BYTES: usize = 180;
/// What hidden names of lock files end with.
const LOCK: &str = ".tessarr-lock";

/// The files that the transaction `id` stages for keys below the directory `root`.
#[pyclass(frozen, module = "tessarr._native")]
pub struct StagedFiles {
    root: Arc<Folder>,
    /// What hidden names of staged files end with.
    suffix: String,
    /// Files that were replaced: they are freed with this object, on an idle thread.
    replaced: Mutex<Vec<File>>,
}

/// What there was for keys when they were compared.
#[pyclass(frozen, module = "tessarr._native")]
pub struct ComparedFiles {
    keys: Vec<(String, Option<String>)>,
    versions: Vec<Option<String>>,
    /// The keys that have a lock file.
    #[pyo3(get)]
    locked: Vec<String>,
    /// The keys whose staged file has another version, or is missing.
    #[pyo3(get)]
    changed: Vec<String>,
}

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
        Ok(StagedFiles::of(Folder::open(root)?, &identifier))
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

    /// Compare keys (key, version of its staged file without the device; `None`: nothing is staged), of which the first `locks`
    /// may have a lock file. `None`: a name is too long. The lock file of a key is looked for before its version.
    fn compare(
        &self,
        py: Python<'_>,
        keys: Vec<(String, Option<String>)>,
        locks: usize,
    ) -> PyResult<Option<ComparedFiles>> {
        if keys.iter().any(|(key, _)| split(key).1.len() > NAME_BYTES) {
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
        Ok(Some(ComparedFiles { keys, versions, locked, changed }))
    }

    /// Rename the staged files of the keys `first..stop` over their values, in any order. Returns whether all were renamed,
    /// which another version than the compared one, or a failure, prevents.
    fn place(&self, py: Python<'_>, compared: &Bound<'_, ComparedFiles>, first: usize, stop: usize) -> PyResult<bool> {
        let compared = compared.get();
        if first > stop || stop > compared.keys.len() {
            return Err(PyIndexError::new_err("no such keys"));
        }
        Ok(py.detach(|| {
            in_parallel((stop - first).div_ceil(FEW), &|block| {
                let (folders, mut replaced) = (self.folders(true), Vec::new());
                let begin = first + block * FEW;
                let all = (begin..stop.min(begin + FEW)).all(|i| {
                    let old = compared.versions[i].as_deref().map(without_device);
                    self.place_one(&folders, &mut replaced, &compared.keys[i].0, old).unwrap_or(false)
                });
                let mut kept = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < KEPT_OPEN {
                    kept.append(&mut replaced);
                }
                all
            })
        }))
    }
}

#[pymethods]
impl ComparedFiles {
    /// The version of the value of a key; `None`: there is none.
    fn version(&self, number: usize) -> PyResult<Option<&str>> {
        Ok(self.versions.get(number).ok_or_else(|| PyIndexError::new_err("no such key"))?.as_deref())
    }

    /// The lines of a journal that has the first `total` keys (`tessarr.stores.local.transactions.journal`).
    fn lines<'py>(&self, py: Python<'py>, total: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut text = Vec::with_capacity(total * 128);
        for ((key, staged), version) in self.keys.iter().zip(&self.versions).take(total) {
            let old = version.as_deref().map(without_device);
            for (member, value) in [("{\"key\":", Some(&**key)), (",\"old\":", old), (",\"new\":", staged.as_deref())] {
                text.extend_from_slice(member.as_bytes());
                serde_json::to_writer(&mut text, &value).map_err(io::Error::from)?;
            }
            text.extend_from_slice(b"}\n");
        }
        allocate::bytes(py, &text)
    }
}

impl StagedFiles {
    fn of(root: Folder, identifier: &str) -> StagedFiles {
        let suffix = format!(".{identifier}.tessarr-tmp");
        StagedFiles { root: Arc::new(root), suffix, replaced: Mutex::default() }
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
            let Ok(place) = folders.of(key) else { return false };
            let Some(name) = place.hidden(key, &self.suffix) else { return false };
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
        let (path, name) = split(key);
        let listed = listed.get(path);
        let is_locked = match (looks_for_lock.then(|| place.hidden(key, LOCK)).flatten(), listed) {
            (None, _) => false,
            (Some(_), Some(listed)) => listed.contains_key(format!(".{name}{LOCK}").as_bytes()),
            (Some(lock), None) => place.folder.version(&lock)?.is_some(),
        };
        let version = place.folder.version(place.path(key))?;
        let is_changed = match (staged, place.hidden(key, &self.suffix)) {
            (Some(staged), Some(hidden)) => {
                let inode = listed.and_then(|listed| listed.get(format!(".{name}{}", self.suffix).as_bytes()));
                // No process writes to a staged file again, so that the same inode is the same version.
                inode.map(|inode| format!("{inode:x}")).as_deref() != staged.split(':').next()
                    && !place.folder.has_version(&hidden, staged)?
            }
            (staged, _) => staged.is_some(),
        };
        Ok(Compared { version, is_locked, is_changed })
    }

    fn place_one(&self, folders: &Folders, replaced: &mut Vec<File>, key: &str, old: Option<&str>) -> io::Result<bool> {
        let place = folders.of(key)?;
        let Some(staged) = place.hidden(key, &self.suffix) else { return Ok(false) };
        let name = place.path(key);
        let Some(old) = old else { return place.folder.rename_new(&staged, name).map(|()| true) };
        let file = place.folder.replace(&staged, name, old)?;
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

/// An open directory that a key is in or below.
struct Beside {
    folder: Arc<Folder>,
    /// Whether the directory is that of the key, and not the root.
    is_own: bool,
}

impl Beside {
    /// The path of the value of the key from the directory.
    fn path<'k>(&self, key: &'k str) -> &'k str {
        if self.is_own { split(key).1 } else { key }
    }

    /// The path of a hidden file beside the value; `None`: its name is too long to be made here.
    fn hidden(&self, key: &str, suffix: &str) -> Option<String> {
        let name = split(key).1;
        let path = if self.is_own { "" } else { &key[..key.len() - name.len()] };
        (name.len() <= NAME_BYTES).then(|| [path, ".", name, suffix].concat())
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
    fn of(&self, key: &str) -> io::Result<Beside> {
        let path = split(key).0;
        let (last, open) = &mut *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if path.is_empty() || last != path {
            path.clone_into(last);
            *open = None;
            return Ok(Beside { folder: self.root.clone(), is_own: false });
        }
        let folder = match open {
            Some(folder) => folder.clone(),
            None => open.insert(self.open(path)?).clone(),
        };
        Ok(Beside { folder, is_own: true })
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ComparedFiles>()?;
    module.add_class::<StagedFiles>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_beside_their_key() {
        assert_eq!(split("a/c/0"), ("a/c", "0"));
        assert_eq!(split("zarr.json"), ("", "zarr.json"));
        let root = Arc::new(Folder::open(std::env::temp_dir()).unwrap());
        let (above, beside) = (Beside { folder: root.clone(), is_own: false }, Beside { folder: root, is_own: true });
        assert_eq!((above.path("a/c/0"), beside.path("a/c/0")), ("a/c/0", "0"));
        assert_eq!(above.hidden("a/c/0", ".x").as_deref(), Some("a/c/.0.x"));
        assert_eq!(beside.hidden("a/c/0", ".x").as_deref(), Some(".0.x"));
        assert_eq!(above.hidden("zarr.json", ".x").as_deref(), Some(".zarr.json.x"));
        assert_eq!(beside.hidden(&"n".repeat(NAME_BYTES + 1), ".x"), None);
    }

    #[test]
    fn a_failure_leaves_no_file() {
        let root = std::env::temp_dir().join(format!("tessarr-staged-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a")).unwrap();
        let files = StagedFiles::of(Folder::open(root.clone()).unwrap(), "0123456789ab");
        let keys = ["a/0", "a/1", "missing/2"];
        assert!(files.write_all(3, &|i, write| write(keys[i], b"value")).is_none());
        assert_eq!(std::fs::read_dir(root.join("a")).unwrap().count(), 0);
        let staged = files.write_all(2, &|i, write| i == 1 || write(keys[i], b"value")).unwrap();
        assert_eq!(
            staged.iter().map(|file| file.as_ref().map(|(_, nbytes)| *nbytes)).collect::<Vec<_>>(),
            [Some(5), None]
        );
        assert!(files.write_all(2, &|i, write| write(keys[1 - i], b"other")).is_none(), "there is a file");
        let folders = files.folders(true);
        let name = folders.of("a/0").unwrap().hidden("a/0", &files.suffix).unwrap();
        assert_eq!(std::fs::read(root.join(name)).unwrap(), b"value");
        assert!(files.place_one(&folders, &mut vec![], "a/0", Some("1:2:3")).is_err(), "there is no value");
        assert!(files.place_one(&folders, &mut vec![], "a/0", None).unwrap());
        assert_eq!(std::fs::read_dir(root.join("a")).unwrap().count(), 1);
        std::fs::remove_dir_all(root).unwrap();
    }
}
