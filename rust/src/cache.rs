//! Decoded chunks and shard indices of stored values that were read in part: one byte-capped LRU per process.
//!
//! An entry belongs to the name of a stored value (the path of a local file; else place and key) and to a `CacheKey` in
//! that value. A `Validator` (device, inode, mtime and size of a file; else a version tag) decides whether the entries of a
//! name are fresh: entries with another validator are dropped. Concurrent misses of one entry of a file decode once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;

use crate::error::Result;
use crate::store::Version;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Threads};

/// The cache key of a chunk or of a shard's index within a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub offset: u64,
    /// See `layout`: the metadata of an array may be replaced while its chunks stay.
    pub layout: u32,
    pub index: bool,
}

/// The validator of cached entries: they are fresh while the stored value has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validator {
    File(Version),
    Tag(Arc<str>),
}

impl From<Version> for Validator {
    fn from(version: Version) -> Validator {
        Validator::File(version)
    }
}

/// Return the number of a codec chain, by its description; equal descriptions have equal numbers.
pub fn layout(description: String) -> u32 {
    static KNOWN: std::sync::Mutex<BTreeMap<String, u32>> = std::sync::Mutex::new(BTreeMap::new());
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let fresh = || NEXT.fetch_add(1, Ordering::Relaxed);
    // Never blocks: in a forked child, a thread of the parent may hold the lock forever. A new number is always correct.
    let Ok(mut known) = KNOWN.try_lock() else { return fresh() };
    if known.len() >= 4096 {
        known.clear();
    }
    *known.entry(description).or_insert_with(fresh)
}

/// Capacity of the cache in bytes, unless the setting `cache.nbytes` gives another.
pub const DEFAULT_BYTES: usize = 128 << 20;

static CAPACITY: Threads = Threads::new(DEFAULT_BYTES);

/// Set the capacity in bytes of the caches of this process and its future children; 0 disables them.
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

struct CachedValue {
    validator: Validator,
    entries: HashMap<CacheKey, Entry>,
    /// Chunks of which a part was read once; the second read caches the whole chunk.
    touched: HashSet<CacheKey>,
}

#[derive(Default)]
struct Content {
    names: HashMap<Arc<OsStr>, CachedValue>,
    order: BTreeMap<u64, (Arc<OsStr>, CacheKey)>,
    flights: HashSet<(Arc<OsStr>, CacheKey)>,
    tick: u64,
    bytes: usize,
}

/// Counters of the cache.
#[derive(Default)]
pub struct Statistics {
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub evictions: AtomicU64,
}

#[derive(Default)]
pub struct Cache {
    content: Mutex<Content>,
    flight_done: Condvar,
    pub statistics: Statistics,
}

/// Memory that an entry takes in addition to its bytes (an estimate).
const OVERHEAD: usize = 160;

impl Content {
    fn invalidate(&mut self, name: &OsStr) {
        if let Some(cached) = self.names.remove(name) {
            for entry in cached.entries.values() {
                self.order.remove(&entry.tick);
                self.bytes -= entry.value.len() + OVERHEAD;
            }
        }
    }

    fn cached(&mut self, name: &OsStr, validator: &Validator) -> &mut CachedValue {
        if self.names.get(name).is_some_and(|cached| cached.validator != *validator) {
            self.invalidate(name);
        }
        self.names.entry(name.into()).or_insert_with(|| CachedValue {
            validator: validator.clone(),
            entries: HashMap::new(),
            touched: HashSet::new(),
        })
    }

    fn get(&mut self, name: &OsStr, cache_key: CacheKey, validator: Option<&Validator>) -> Option<Value> {
        let cached = self
            .names
            .get_mut(name)
            .filter(|cached| validator.is_none_or(|validator| cached.validator == *validator))?;
        let entry = cached.entries.get_mut(&cache_key)?;
        if entry.tick == self.tick {
            return Some(entry.value.clone()); // the most recently used one, as in a loop over the elements of a chunk
        }
        self.tick += 1;
        let tick = self.tick;
        let moved = self.order.remove(&entry.tick)?;
        self.order.insert(tick, moved);
        entry.tick = tick;
        Some(entry.value.clone())
    }

    fn insert(&mut self, name: &OsStr, cache_key: CacheKey, validator: &Validator, value: Value) -> u64 {
        let size = value.len() + OVERHEAD;
        let mut evicted = 0;
        while self.bytes + size > capacity() {
            let Some((_, (old, at))) = self.order.pop_first() else { return evicted };
            if let Some(cached) = self.names.get_mut(&*old) {
                if let Some(entry) = cached.entries.remove(&at) {
                    self.bytes -= entry.value.len() + OVERHEAD;
                    evicted += 1;
                }
                if cached.entries.is_empty() {
                    self.names.remove(&*old);
                }
            }
        }
        self.tick += 1;
        let tick = self.tick;
        let old = self.cached(name, validator).entries.insert(cache_key, Entry { value, tick });
        if let Some(old) = old {
            self.order.remove(&old.tick);
            self.bytes -= old.value.len() + OVERHEAD;
        }
        self.order.insert(tick, (name.into(), cache_key));
        self.bytes += size;
        evicted
    }
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the cache has an entry of `name`, so that checking the version may be enough.
    pub fn contains_name(&self, name: &OsStr) -> bool {
        capacity() > 0 && self.lock().names.contains_key(name)
    }

    pub fn get(&self, name: &OsStr, cache_key: CacheKey, validator: &Validator) -> Option<Value> {
        let found = self.peek(name, cache_key, validator);
        if found.is_some() {
            self.hit();
        }
        found
    }

    /// Look up an entry as `get` does, without counting a hit.
    pub fn peek(&self, name: &OsStr, cache_key: CacheKey, validator: &Validator) -> Option<Value> {
        self.lock().get(name, cache_key, Some(validator))
    }

    pub fn hit(&self) {
        self.statistics.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Return an entry, fresh or stale, with its validator.
    pub fn unvalidated(&self, name: &OsStr, cache_key: CacheKey) -> Option<(Value, Validator)> {
        let mut content = self.lock();
        let value = content.get(name, cache_key, None)?;
        Some((value, content.names.get(name)?.validator.clone()))
    }

    /// Whether this is the second lookup of the entry; records a limited number of first lookups.
    fn touched(&self, name: &OsStr, cache_key: CacheKey, validator: &Validator) -> bool {
        if capacity() == 0 {
            return false;
        }
        let mut content = self.lock();
        if content.names.len() > 100_000 {
            content.names.retain(|_, cached| !cached.entries.is_empty());
        }
        let touched = &mut content.cached(name, validator).touched;
        if touched.len() > 4096 {
            touched.clear();
        }
        !touched.insert(cache_key)
    }

    /// Add an entry after a miss.
    pub fn insert_after_miss(&self, name: &OsStr, cache_key: CacheKey, validator: &Validator, value: Value) {
        self.statistics.misses.fetch_add(1, Ordering::Relaxed);
        self.insert(name, cache_key, validator, value);
    }

    /// Add an entry, unless it is too large for the cache.
    pub fn insert(&self, name: &OsStr, cache_key: CacheKey, validator: &Validator, value: Value) {
        if fits(value.len()) {
            let evicted = self.lock().insert(name, cache_key, validator, value);
            self.statistics.evictions.fetch_add(evicted, Ordering::Relaxed);
        }
    }

    /// Return the entry; on a miss `make` computes it, and concurrent callers wait for the result (single flight).
    pub fn get_or_make(
        &self,
        name: &OsStr,
        cache_key: CacheKey,
        validator: &Validator,
        make: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Value> {
        let flight = (name.into(), cache_key);
        {
            let mut content = self.lock();
            loop {
                if let Some(value) = content.get(name, cache_key, Some(validator)) {
                    self.hit();
                    return Ok(value);
                }
                if content.flights.insert(flight.clone()) {
                    break;
                }
                content = self.flight_done.wait(content).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let _guard = FlightGuard { cache: self, flight: &flight };
        let value = Arc::new(make()?);
        self.insert_after_miss(name, cache_key, validator, value.clone());
        Ok(value)
    }

    /// As `get_or_make`, but a first read makes nothing: a program that reads each chunk in part once would fill the cache
    /// without hits. `None`: there is no entry, and that of `nbytes` is not to be made.
    pub fn get_or_make_again(
        &self,
        name: &OsStr,
        cache_key: CacheKey,
        validator: &Validator,
        nbytes: usize,
        make: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<Value>> {
        if let Some(value) = self.get(name, cache_key, validator) {
            return Ok(Some(value));
        }
        if !fits(nbytes) || !self.touched(name, cache_key, validator) {
            return Ok(None);
        }
        self.get_or_make(name, cache_key, validator, make).map(Some)
    }

    /// Drop the entries of a value.
    pub fn invalidate(&self, name: &OsStr) {
        self.lock().invalidate(name);
    }

    /// Drop all entries.
    pub fn clear(&self) {
        let mut content = self.lock();
        let flights = std::mem::take(&mut content.flights);
        *content = Content { flights, ..Content::default() };
    }

    /// Return the present bytes and entries.
    pub fn size(&self) -> (usize, usize) {
        let content = self.lock();
        (content.bytes, content.order.len())
    }
}

/// Whether a decoded chunk of that size may be cached.
pub fn fits(nbytes: usize) -> bool {
    nbytes <= capacity() / 4
}

struct FlightGuard<'a> {
    cache: &'a Cache,
    flight: &'a (Arc<OsStr>, CacheKey),
}

impl Drop for FlightGuard<'_> {
    fn drop(&mut self) {
        self.cache.lock().flights.remove(self.flight);
        self.cache.flight_done.notify_all();
    }
}
