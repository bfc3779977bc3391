//! Values that are byte ranges of local files: members of an archive, chunks of a file of another format.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use crate::allocate;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::store::{Local, Object, OwnedBytes};

/// The kind of the error for a value that is not where it was located; Python then reads it through its store.
pub const MOVED: &str = "moved";

fn moved(what: &str) -> Error {
    Error::new(MOVED, what)
}

/// A file that contains values, opened once, so that all values are of one version of it.
pub struct ExtentFile {
    path: Arc<Path>,
    /// The version that the file must have (`Version::name`), where it is known.
    version: Option<String>,
    local: OnceLock<Arc<Local>>,
}

/// Bytes of a file.
pub struct Extent {
    /// The number of the file in `Extents`.
    pub file: usize,
    pub offset: u64,
    /// `None`: to the end of the file.
    pub nbytes: Option<u64>,
}

/// A value: the concatenation of its extents.
pub struct LocatedValue {
    pub extents: Vec<Extent>,
    /// Checked when the whole value is read.
    pub crc32: Option<u32>,
}

/// The values of all chunks of a plan.
pub struct Extents {
    files: Vec<ExtentFile>,
    /// By the number of the part; `None`: the chunk is missing.
    values: Vec<Option<LocatedValue>>,
    /// Shards with at most this many decoded bytes are read whole.
    pub whole_below: usize,
}

impl ExtentFile {
    pub fn new(path: PathBuf, version: Option<String>) -> ExtentFile {
        ExtentFile { path: path.into(), version, local: OnceLock::new() }
    }

    /// Open the file on the first call; `last` is the file that an earlier request opened.
    fn open(&self, last: &Mutex<Option<Arc<Local>>>) -> Result<&Arc<Local>> {
        if let Some(local) = self.local.get() {
            return Ok(local);
        }
        if let Some(version) = &self.version {
            // Never blocks: in a forked child, a thread of the parent may hold the lock forever.
            let found = last.try_lock().ok().and_then(|last| last.clone());
            if let Some(local) = found.filter(|last| last.path == self.path && last.version.name() == *version) {
                return Ok(self.local.get_or_init(|| local));
            }
        }
        let local = Local::find(self.path.clone(), false)?.ok_or_else(|| moved("the file is missing"))?;
        if self.version.as_ref().is_some_and(|version| *version != local.version.name()) {
            return Err(moved("the file has another version"));
        }
        let local = Arc::new(local);
        if self.version.is_some()
            && let Ok(mut last) = last.try_lock()
        {
            *last = Some(local.clone());
        }
        // Of two threads that opened the file, one keeps its handle.
        Ok(self.local.get_or_init(|| local))
    }
}

impl Extents {
    pub fn new(files: Vec<ExtentFile>, values: Vec<Option<LocatedValue>>, whole_below: usize) -> Extents {
        Extents { files, values, whole_below }
    }

    /// The value of part `number`; `None`: the chunk is missing. With `whole`, its checksum is verified.
    pub fn value(&self, array: &Array, number: usize, whole: bool) -> Result<Option<Object>> {
        let located = self.values.get(number).ok_or_else(|| Error::new("internal", "a part was not located"))?;
        let Some(LocatedValue { extents, crc32 }) = located else { return Ok(None) };
        let crc32 = crc32.filter(|_| whole);
        if let ([extent], None) = (&extents[..], crc32) {
            return self.find(array, extent).map(Some);
        }
        let mut bytes = Vec::new();
        for extent in extents {
            let part = self.find(array, extent)?;
            let start = bytes.len();
            allocate::extend(&mut bytes, part.len() as usize)?;
            part.read_into(0, &mut bytes[start..])?;
        }
        if crc32.is_some_and(|crc32| libdeflater::crc32(&bytes) != crc32) {
            return Err(moved("the value has another checksum"));
        }
        Ok(Some(Object::Bytes(OwnedBytes::Read(Arc::new(bytes)))))
    }

    /// The file and the offset of the value of part `number`, if it is one extent of a file whose version tells it from others.
    pub fn versioned(&self, array: &Array, number: usize) -> Result<Option<(&Local, u64)>> {
        let Some(Some(LocatedValue { extents, .. })) = self.values.get(number) else { return Ok(None) };
        let [extent] = &extents[..] else { return Ok(None) };
        let Some(file) = self.files.get(extent.file).filter(|file| file.version.is_some()) else { return Ok(None) };
        let local = file.open(&array.last_file)?;
        Ok((!local.version.is_coarse()).then_some((&**local, extent.offset)))
    }

    fn find(&self, array: &Array, extent: &Extent) -> Result<Object> {
        let file = self.files.get(extent.file).ok_or_else(|| Error::new("internal", "no such file of extents"))?;
        let (local, offset) = (file.open(&array.last_file)?, extent.offset);
        let left = local.version.size().checked_sub(offset).ok_or_else(|| moved("the file is too short"))?;
        let len = extent.nbytes.unwrap_or(left);
        if len > left {
            return Err(moved("the file is too short"));
        }
        Ok(Object::Extent { local: local.clone(), offset, len })
    }
}
