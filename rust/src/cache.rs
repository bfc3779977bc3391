//! Decoded chunks and shard indices of local files that were read in part: one byte-capped LRU per process.
//!
//! An entry is (path, offset in the file) and holds for one version of the file (device, inode, mtime, size); another
//! version of the path drops all that is kept of it. Concurrent misses of one entry decode once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::store::Version;

/// The offset under which a file's shard index is kept.
pub const INDEX: u64 = u64::MAX;
/// Bytes that the cache holds unless told otherwise.
pub const DEFAULT_BYTES: usize = 128 << 20;

static CAPACITY: AtomicUsize = AtomicUsize::new(DEFAULT_BYTES);

/// How many bytes caches may hold, in this process and its future children; 0 switches them off.
pub fn set_capacity(bytes: usize) {
    CAPACITY.store(bytes, Ordering::Relaxed);
}

pub fn capacity() -> usize {
    CAPACITY.load(Ordering::Relaxed)
}

type Value = Arc<Vec<u8>>;

struct Entry {
    value: Value,
    tick: u64,
}

struct File {
    version: Version,
    entries: HashMap<u64, Entry>,
    /// Offsets read in part once; the second time the whole chunk is kept.
    touched: HashSet<u64>,
}

#[derive(Default)]
struct State {
    files: HashMap<Arc<OsStr>, File>,
    order: BTreeMap<u64, (Arc<OsStr>, u64)>,
    flights: HashSet<(Arc<OsStr>, u64)>,
    tick: u64,
    bytes: usize,
}

/// What the cache did so far.
#[derive(Default)]
pub struct Statistics {
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub evictions: AtomicU64,
}

#[derive(Default)]
pub struct Cache {
    state: Mutex<State>,
    landed: Condvar,
    pub statistics: Statistics,
}

/// Room an entry takes beside its bytes.
const OVERHEAD: usize = 160;

impl State {
    fn drop_file(&mut self, path: &OsStr) {
        if let Some(file) = self.files.remove(path) {
            for entry in file.entries.values() {
                self.order.remove(&entry.tick);
                self.bytes -= entry.value.len() + OVERHEAD;
            }
        }
    }

    fn file(&mut self, path: &OsStr, version: Version) -> &mut File {
        if self.files.get(path).is_some_and(|file| file.version != version) {
            self.drop_file(path);
        }
        self.files.entry(path.into()).or_insert_with(|| File {
            version,
            entries: HashMap::new(),
            touched: HashSet::new(),
        })
    }

    fn get(&mut self, path: &OsStr, offset: u64, version: Version) -> Option<Value> {
        let file = self.files.get_mut(path).filter(|file| file.version == version)?;
        let entry = file.entries.get_mut(&offset)?;
        if entry.tick == self.tick {
            return Some(entry.value.clone()); // the one used last, as in a loop over the elements of a chunk
        }
        self.tick += 1;
        let tick = self.tick;
        let moved = self.order.remove(&entry.tick)?;
        self.order.insert(tick, moved);
        entry.tick = tick;
        Some(entry.value.clone())
    }

    fn insert(&mut self, path: &OsStr, offset: u64, version: Version, value: Value) -> u64 {
        let size = value.len() + OVERHEAD;
        let mut evicted = 0;
        while self.bytes + size > capacity() {
            let Some((_, (old, at))) = self.order.pop_first() else { return evicted };
            if let Some(file) = self.files.get_mut(&*old) {
                if let Some(entry) = file.entries.remove(&at) {
                    self.bytes -= entry.value.len() + OVERHEAD;
                    evicted += 1;
                }
                if file.entries.is_empty() {
                    self.files.remove(&*old);
                }
            }
        }
        self.tick += 1;
        let tick = self.tick;
        let file = self.file(path, version);
        let before = file.entries.insert(offset, Entry { value, tick });
        if let Some(before) = before {
            self.order.remove(&before.tick);
            self.bytes -= before.value.len() + OVERHEAD;
        }
        self.order.insert(tick, (path.into(), offset));
        self.bytes += size;
        evicted
    }
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything of `path` is kept, so that looking at the file may be enough.
    pub fn knows(&self, path: &Path) -> bool {
        capacity() > 0 && self.lock().files.contains_key(path.as_os_str())
    }

    pub fn get(&self, path: &Path, offset: u64, version: Version) -> Option<Value> {
        let path = path.as_os_str();
        let found = self.lock().get(path, offset, version);
        if found.is_some() {
            self.statistics.hits.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Whether this is the second time that the entry is asked about; small memory of first times.
    pub fn touched(&self, path: &Path, offset: u64, version: Version) -> bool {
        let path = path.as_os_str();
        if capacity() == 0 {
            return false;
        }
        let mut state = self.lock();
        if state.files.len() > 100_000 {
            state.files.retain(|_, file| !file.entries.is_empty());
        }
        let touched = &mut state.file(path, version).touched;
        if touched.len() > 4096 {
            touched.clear();
        }
        !touched.insert(offset)
    }

    /// The entry, made by `make` when it is not there; concurrent callers wait for the one that makes it.
    pub fn get_or_make(
        &self,
        path: &Path,
        offset: u64,
        version: Version,
        make: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Value> {
        let path = path.as_os_str();
        let flight = (path.into(), offset);
        {
            let mut state = self.lock();
            loop {
                if let Some(value) = state.get(path, offset, version) {
                    self.statistics.hits.fetch_add(1, Ordering::Relaxed);
                    return Ok(value);
                }
                if state.flights.insert(flight.clone()) {
                    break;
                }
                state = self.landed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let _landing = Landing { cache: self, flight: &flight };
        self.statistics.misses.fetch_add(1, Ordering::Relaxed);
        let value = Arc::new(make()?);
        if value.len() <= capacity() / 4 {
            let evicted = self.lock().insert(path, offset, version, value.clone());
            self.statistics.evictions.fetch_add(evicted, Ordering::Relaxed);
        }
        Ok(value)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut state = self.lock();
        let flights = std::mem::take(&mut state.flights);
        *state = State { flights, ..State::default() };
    }

    /// Bytes and entries held now.
    pub fn held(&self) -> (usize, usize) {
        let state = self.lock();
        (state.bytes, state.order.len())
    }
}

struct Landing<'a> {
    cache: &'a Cache,
    flight: &'a (Arc<OsStr>, u64),
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.cache.lock().flights.remove(self.flight);
        self.cache.landed.notify_all();
    }
}
