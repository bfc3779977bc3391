//! Stored values: local files, and bytes that were fetched.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::allocate;
use crate::error::{Error, Result};
use crate::region::Exported;
use crate::scratch::{self, Scratch};

/// The version of a file, which changes when the file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    device: u64,
    inode: u64,
    mtime_ns: u128,
    size: u64,
    coarse: bool,
}

/// File systems that round times (FAT, HFS+, ext3) give only multiples of this many nanoseconds.
const COARSE_NS: u128 = 10_000_000;
/// A file whose time differs by less from the time that was set has kept it; replacements of a value are further apart.
const MIN_REPLACEMENT_NS: u128 = 10_000;

impl Version {
    pub fn of(metadata: &Metadata) -> Version {
        #[cfg(unix)]
        let (device, inode) = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let (device, inode) = (0, 0);
        let mtime_ns =
            metadata.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_nanos());
        // Users may set any time of modification, but not the time of the last change.
        #[cfg(unix)]
        let changed_ns = std::os::unix::fs::MetadataExt::ctime_nsec(metadata) as u128;
        #[cfg(not(unix))]
        let changed_ns = mtime_ns;
        let coarse = mtime_ns.is_multiple_of(COARSE_NS) && changed_ns.is_multiple_of(COARSE_NS);
        Version { device, inode, mtime_ns, size: metadata.len(), coarse }
    }

    /// Whether the time is too coarse to distinguish this value from another with the same inode and size.
    pub fn is_coarse(&self) -> bool {
        self.coarse
    }

    /// Whether the file kept the time that was set.
    pub fn has_time(&self, set: SystemTime) -> bool {
        let set_ns = set.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        self.mtime_ns.abs_diff(set_ns) < MIN_REPLACEMENT_NS
    }

    /// Whether both are versions of one file.
    pub fn same_file(&self, other: &Version) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// The version as Python spells it (`tessarr.stores.local.file.version_of`).
    pub fn name(&self) -> String {
        format!("{:x}:{:x}:{:x}:{:x}", self.device, self.inode, self.mtime_ns, self.size)
    }

    /// Length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// A version as Python spells it without its device, whose number may be another one when the system was started again.
pub fn without_device(name: &str) -> &str {
    name.split_once(':').map_or("", |(_, version)| version)
}

#[cfg(unix)]
pub fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(unix)]
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[n..];
        offset += n as u64;
    }
    Ok(())
}

#[cfg(windows)]
pub fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                out = &mut out[n..];
                offset += n as u64;
            }
        }
    }
    Ok(())
}

/// Reference-counted bytes.
#[derive(Clone)]
pub enum OwnedBytes {
    Python(Arc<pyo3::pybacked::PyBackedBytes>),
    Exported(Arc<Exported>),
    Read(Arc<Vec<u8>>),
}

impl Deref for OwnedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            OwnedBytes::Python(bytes) => bytes,
            OwnedBytes::Exported(bytes) => bytes,
            OwnedBytes::Read(bytes) => bytes,
        }
    }
}

/// A value of a store.
pub enum Object {
    Local(Local),
    /// Bytes `offset..offset + len`, which lie inside, of an open file.
    Extent {
        local: Arc<Local>,
        offset: u64,
        len: u64,
    },
    Bytes(OwnedBytes),
}

/// A local file, opened on the first read, so that cached values need only a `stat`.
pub struct Local {
    pub path: Arc<Path>,
    pub version: Version,
    file: OnceLock<Arc<File>>,
}

/// Bytes of a value: borrowed from it, or read into a buffer of the thread.
pub enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Scratch(Scratch),
    /// The end of a buffer, from a position on.
    Sub(Scratch, usize),
}

impl<'a> Bytes<'a> {
    /// The part `start..start + len`, which lies inside.
    pub fn sub(self, start: usize, len: usize) -> Bytes<'a> {
        match self {
            Bytes::Borrowed(bytes) => Bytes::Borrowed(&bytes[start..start + len]),
            Bytes::Scratch(mut bytes) => {
                bytes.truncate(start + len);
                Bytes::Sub(bytes, start)
            }
            Bytes::Sub(mut bytes, before) => {
                bytes.truncate(before + start + len);
                Bytes::Sub(bytes, before + start)
            }
        }
    }
}

/// A stored value, or the part of one that is an inner chunk.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    Stored { object: &'a Object, offset: u64, len: usize },
    Read(&'a [u8]),
}

impl<'a> Source<'a> {
    /// All of `object`.
    pub fn whole(object: &'a Object) -> Source<'a> {
        Source::Stored { object, offset: 0, len: object.len() as usize }
    }

    pub fn len(&self) -> usize {
        match self {
            Source::Stored { len, .. } => *len,
            Source::Read(bytes) => bytes.len(),
        }
    }

    /// The part `start..start + len`, which lies inside.
    pub fn part(&self, start: usize, len: usize) -> Source<'a> {
        match *self {
            Source::Stored { object, offset, .. } => Source::Stored { object, offset: offset + start as u64, len },
            Source::Read(bytes) => Source::Read(&bytes[start..start + len]),
        }
    }

    pub fn read(&self) -> Result<Bytes<'a>> {
        match *self {
            Source::Stored { object, offset, len } => object.read(offset, len),
            Source::Read(bytes) => Ok(Bytes::Borrowed(bytes)),
        }
    }

    /// Fill `out`, which has the source's length.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        match *self {
            Source::Stored { object, offset, .. } => object.read_into(offset, out),
            Source::Read(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Whether reading a part costs a system call.
    pub fn is_file(&self) -> bool {
        matches!(self, Source::Stored { object: Object::Local(_) | Object::Extent { .. }, .. })
    }

    /// Origin of the value for the cache: file and offset. `None` also where its version may not be unique.
    pub fn origin(&self) -> Option<(&'a Local, u64)> {
        let origin = match *self {
            Source::Stored { object: Object::Local(local), offset, .. } => Some((local, offset)),
            Source::Stored { object: Object::Extent { local, offset: begin, .. }, offset, .. } => {
                Some((&**local, begin + offset))
            }
            Source::Stored { object: Object::Bytes(_), .. } | Source::Read(_) => None,
        };
        origin.filter(|(local, _)| !local.version.is_coarse())
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Scratch(bytes) => bytes,
            Bytes::Sub(bytes, start) => &bytes[*start..],
        }
    }
}

/// The kind of the error for a file that was replaced in the meantime.
pub const STALE: &str = "stale";

pub fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Open for reading, and for writing on request; never block on a named pipe.
pub fn open_value(path: &Path, write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
    options.open(path)
}

/// `O_NONBLOCK`, which has no effect on files.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NONBLOCK: i32 = 0x800;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const NONBLOCK: i32 = 0x4;

impl Local {
    /// `None` when there is no such file. With `lazy`, calls `stat` without opening the file.
    pub fn find(path: Arc<Path>, lazy: bool) -> Result<Option<Local>> {
        let cell = OnceLock::new();
        let metadata = if lazy {
            fs::metadata(&path)
        } else {
            open_value(&path, false).and_then(|file| {
                let metadata = file.metadata();
                let _ = cell.set(Arc::new(file));
                metadata
            })
        };
        match metadata {
            Ok(metadata) if !metadata.is_file() => Ok(None),
            Ok(metadata) => Ok(Some(Local { path, version: Version::of(&metadata), file: cell })),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(Error::store(format!("cannot open {}", path.display()), &error)),
        }
    }

    /// Open the file on the first call; the error is `STALE` if it is not the file found before.
    pub fn open(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let failed = |error: &io::Error| Error::store(format!("cannot open {}", self.path.display()), error);
        let file = match open_value(&self.path, false) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Err(Error::new(STALE, "the file was removed")),
            Err(error) => return Err(failed(&error)),
        };
        if Version::of(&file.metadata().map_err(|error| failed(&error))?) != self.version {
            return Err(Error::new(STALE, "the file was replaced"));
        }
        Ok(self.file.get_or_init(|| Arc::new(file)))
    }

    /// A shared handle of the file, if it is open.
    pub fn opened(&self) -> Option<Arc<File>> {
        self.file.get().cloned()
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        read_exact_at(self.open()?, out, offset).map_err(|error| {
            Error::store(format!("cannot read {} bytes at {offset} of {}", out.len(), self.path.display()), &error)
        })
    }
}

impl Object {
    pub fn len(&self) -> u64 {
        match self {
            Object::Local(local) => local.version.size,
            Object::Extent { len, .. } => *len,
            Object::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fill `out` from `offset` on; the range lies inside the value.
    pub fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if let Some((local, base)) = self.file() {
            return local.read_into(base + offset, out);
        }
        let bytes = self.borrow(offset, out.len())?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    /// `len` bytes from `offset` on.
    pub fn read(&self, offset: u64, len: usize) -> Result<Bytes<'_>> {
        if let Some((local, base)) = self.file() {
            let mut out = scratch::take(len)?;
            local.read_into(base + offset, &mut out)?;
            return Ok(Bytes::Scratch(out));
        }
        self.borrow(offset, len).map(Bytes::Borrowed)
    }

    fn borrow(&self, offset: u64, len: usize) -> Result<&[u8]> {
        let short = || Error::new("store", "a fetched value is shorter than the requested range");
        match self {
            Object::Local(_) | Object::Extent { .. } => Err(Error::new("internal", "a file cannot be borrowed")),
            Object::Bytes(bytes) => bytes.get(offset as usize..).and_then(|b| b.get(..len)).ok_or_else(short),
        }
    }

    /// The file that contains the value, and the offset of the value.
    fn file(&self) -> Option<(&Local, u64)> {
        match self {
            Object::Local(local) => Some((local, 0)),
            Object::Extent { local, offset, .. } => Some((local, *offset)),
            Object::Bytes(_) => None,
        }
    }

    pub fn local(&self) -> Option<&Local> {
        match self {
            Object::Local(local) => Some(local),
            _ => None,
        }
    }
}

/// What was found where a small file may be.
pub enum ReadResult {
    Value(Vec<u8>),
    /// No file, or not a regular one.
    Absent,
    /// Larger than requested, or unreadable.
    Other,
}

impl ReadResult {
    /// Read `file`, unless it has more than `most` bytes.
    pub fn of(file: &File, most: u64) -> ReadResult {
        let Ok(metadata) = file.metadata() else { return ReadResult::Other };
        if !metadata.is_file() {
            return ReadResult::Absent;
        }
        if metadata.len() > most {
            return ReadResult::Other;
        }
        let Ok(mut value) = allocate::zeros(metadata.len() as usize) else { return ReadResult::Other };
        read_exact_at(file, &mut value, 0).map_or(ReadResult::Other, |()| ReadResult::Value(value))
    }
}

/// Whether the times of a directory show that its file system rounds times.
pub fn has_coarse_times(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| Version::of(&metadata).is_coarse())
}

/// The present version at `path`; `None` when there is no file.
pub fn version_at(path: &Path) -> Option<Version> {
    fs::metadata(path).ok().filter(Metadata::is_file).map(|metadata| Version::of(&metadata))
}
