//! Stored values: local files, and bytes that were fetched.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::scratch::{self, Scratch};

/// What changes whenever a file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    device: u64,
    inode: u64,
    mtime_ns: u128,
    size: u64,
}

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
        Version { device, inode, mtime_ns, size: metadata.len() }
    }

    /// Length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[n..];
        offset += n as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
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

/// Bytes that somebody owns.
#[derive(Clone)]
pub enum Held {
    Python(Arc<pyo3::pybacked::PyBackedBytes>),
    Vec(Arc<Vec<u8>>),
}

impl Deref for Held {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Held::Python(bytes) => bytes,
            Held::Vec(bytes) => bytes,
        }
    }
}

/// A value of a store.
pub enum Object {
    Local(Local),
    Bytes(Held),
    /// Some ranges of a remote value, sorted by where they begin.
    Pieces(Vec<(u64, Held)>),
}

/// A local file; opened when first read, so that cached values need no more than a `stat`.
pub struct Local {
    pub path: Arc<Path>,
    pub version: Version,
    file: OnceLock<Arc<File>>,
}

/// Bytes of a value: borrowed from it, or read into a buffer of the thread.
pub enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Scratch(Scratch),
    /// Part of a buffer, which was shortened to where it ends.
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
    /// All of `object`, whose size is known.
    pub fn whole(object: &'a Object) -> Source<'a> {
        Source::Stored { object, offset: 0, len: object.len().unwrap_or(0) as usize }
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

    /// Fills `out`, which has the source's length.
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
        matches!(self, Source::Stored { object: Object::Local(_), .. })
    }

    /// Where the value comes from, for the cache: file and offset.
    pub fn origin(&self) -> Option<(&'a Local, u64)> {
        match *self {
            Source::Stored { object: Object::Local(local), offset, .. } => Some((local, offset)),
            _ => None,
        }
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

/// The file was replaced between two looks at it.
pub const STALE: &str = "stale";

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens for reading; never waits for a writer when the name is a pipe.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
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
    /// `None` when there is no such file. With `lazy`, the file is looked at but not opened.
    pub fn find(path: Arc<Path>, lazy: bool) -> Result<Option<Local>> {
        let cell = OnceLock::new();
        let metadata = if lazy {
            fs::metadata(&path)
        } else {
            open_file(&path).and_then(|file| {
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

    /// Opens the file unless that was done; a file that is not the one found before is the error `STALE`.
    pub fn open(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let failed = |error: &io::Error| Error::store(format!("cannot open {}", self.path.display()), error);
        let file = match open_file(&self.path) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Err(Error::new(STALE, "the file vanished")),
            Err(error) => return Err(failed(&error)),
        };
        if Version::of(&file.metadata().map_err(|error| failed(&error))?) != self.version {
            return Err(Error::new(STALE, "the file was replaced"));
        }
        Ok(self.file.get_or_init(|| Arc::new(file)))
    }

    /// The file, when it is open, to be kept open beyond this.
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
    pub fn len(&self) -> Option<u64> {
        match self {
            Object::Local(local) => Some(local.version.size),
            Object::Bytes(bytes) => Some(bytes.len() as u64),
            Object::Pieces(_) => None,
        }
    }

    /// Fills `out` from `offset` on; the range lies inside the value.
    pub fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if let Object::Local(local) = self {
            return local.read_into(offset, out);
        }
        let bytes = self.borrow(offset, out.len())?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    /// `len` bytes from `offset` on.
    pub fn read(&self, offset: u64, len: usize) -> Result<Bytes<'_>> {
        if let Object::Local(local) = self {
            let mut out = scratch::take(len);
            local.read_into(offset, &mut out)?;
            return Ok(Bytes::Scratch(out));
        }
        self.borrow(offset, len).map(Bytes::Borrowed)
    }

    fn borrow(&self, offset: u64, len: usize) -> Result<&[u8]> {
        let short = || Error::new("store", "a fetched value is shorter than was asked for");
        match self {
            Object::Local(_) => Err(Error::new("internal", "a file cannot be borrowed")),
            Object::Bytes(bytes) => bytes.get(offset as usize..).and_then(|b| b.get(..len)).ok_or_else(short),
            Object::Pieces(pieces) => {
                let i = pieces.partition_point(|piece| piece.0 <= offset).checked_sub(1).ok_or_else(short)?;
                let (start, bytes) = &pieces[i];
                bytes.get((offset - start) as usize..).and_then(|b| b.get(..len)).ok_or_else(short)
            }
        }
    }

    pub fn local(&self) -> Option<&Local> {
        match self {
            Object::Local(local) => Some(local),
            _ => None,
        }
    }
}

// -- writing ---------------------------------------------------------------------------------------------------------

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{suffix}"))
}

fn unique() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
    format!("{:x}-{number:x}-{time:x}", std::process::id())
}

/// How often a directory that other processes keep removing is made again.
const TRIES: usize = 100;

/// Runs `work`, and again after making the directory of `path` as long as that is missing.
fn in_directory<T>(path: &Path, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..TRIES {
        match work() {
            Err(error) if is_missing(&error) => match path.parent().map(fs::create_dir_all) {
                Some(Err(error)) if !is_missing(&error) => return Err(error),
                _ => {}
            },
            done => return done,
        }
    }
    work()
}

/// What is at `path` now; `None` when there is no file.
pub fn version_at(path: &Path) -> Option<Version> {
    fs::metadata(path).ok().filter(Metadata::is_file).map(|metadata| Version::of(&metadata))
}

/// A temporary file that becomes the value when finished and is removed when not.
pub struct Replacement {
    path: Arc<Path>,
    temporary: PathBuf,
    file: File,
    done: AtomicBool,
}

impl Replacement {
    pub fn begin(path: &Arc<Path>) -> Result<Replacement> {
        let temporary = beside(path, &format!("{}.tessarr-tmp", unique()));
        let file = in_directory(path, || OpenOptions::new().write(true).create_new(true).open(&temporary));
        match file {
            Ok(file) => Ok(Replacement { path: path.clone(), temporary, file, done: AtomicBool::new(false) }),
            Err(error) => Err(Error::store(format!("cannot write beside {}", path.display()), &error)),
        }
    }

    /// Puts the file in the value's place. With `over`, only when that version (`None`: nothing) is still there: else
    /// the error is `STALE`.
    pub fn finish(&self, durable: bool, over: Option<Option<Version>>) -> Result<()> {
        let failed = |error: io::Error| Error::store(format!("cannot replace {}", self.path.display()), &error);
        // The kernel's own stamp is as coarse as 4 ms, and inodes are used again: two values could have one version.
        self.file.set_modified(SystemTime::now()).map_err(failed)?;
        if durable {
            self.file.sync_all().map_err(failed)?;
        }
        if over.is_some_and(|over| over != version_at(&self.path)) {
            return Err(Error::new(STALE, "the value was replaced meanwhile"));
        }
        fs::rename(&self.temporary, &self.path).map_err(failed)?;
        self.done.store(true, Ordering::Relaxed);
        #[cfg(unix)]
        if durable && let Some(parent) = self.path.parent() {
            File::open(parent).and_then(|directory| directory.sync_all()).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`; several threads may do so at once.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all_at(&self.file, bytes, offset)
            .map_err(|error| Error::store(format!("cannot write {}", self.path.display()), &error))
    }

    /// Copies bytes `from..from + len` of `source` to `offset`, in the kernel where it can.
    pub fn copy_from(&self, source: &File, from: u64, len: u64, offset: u64) -> Result<()> {
        let copied = (|| {
            let (mut source, mut target) = (source, &self.file);
            source.seek(SeekFrom::Start(from))?;
            target.seek(SeekFrom::Start(offset))?;
            let n = io::copy(&mut source.take(len), &mut target)?;
            if n == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })();
        copied.map_err(|error| Error::store(format!("cannot copy into {}", self.path.display()), &error))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.done.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Removes a value and the directories below `root` that are empty then; a missing value is no error.
pub fn remove(path: &Path, root: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Ok(()) => prune(path, root),
        Err(error) if is_missing(&error) => {}
        Err(_) if path.is_dir() => {}
        Err(error) => return Err(Error::store(format!("cannot remove {}", path.display()), &error)),
    }
    Ok(())
}

/// Removes the directories on the way from `root` to `path` that are empty.
pub fn prune(path: &Path, root: &Path) {
    for folder in path.ancestors().skip(1) {
        if folder == root || !folder.starts_with(root) || fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// The lock of one stored value, over threads and processes: `.{name}.tessarr-lock` in its directory, locked with
/// `flock`, removed by its holder. A waiter that gets the lock of a removed file tries again.
pub struct Lock<'a> {
    path: PathBuf,
    root: &'a Path,
    file: File,
}

/// The longest time between two looks at a lock that another has.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

impl<'a> Lock<'a> {
    /// `wait` is called now and then while another has the lock, and ends the waiting with its error.
    pub fn hold(value: &Path, root: &'a Path, wait: &mut dyn FnMut() -> Result<()>) -> Result<Lock<'a>> {
        let path = beside(value, "tessarr-lock");
        let failed = |error: io::Error| Error::store(format!("cannot lock {}", value.display()), &error);
        loop {
            let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let file = in_directory(&path, open).map_err(failed)?;
            let mut pause = Duration::from_micros(100);
            // Not by waiting in the kernel: a thread that helps would not learn there that its caller was interrupted.
            while let Err(error) = file.try_lock() {
                match error {
                    TryLockError::WouldBlock => {}
                    TryLockError::Error(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    TryLockError::Error(error) => return Err(failed(error)),
                }
                wait()?;
                thread::sleep(pause);
                pause = LOCK_PAUSE.min(2 * pause);
            }
            let held = Version::of(&file.metadata().map_err(failed)?);
            match fs::metadata(&path) {
                Ok(there) => {
                    let there = Version::of(&there);
                    if (there.device, there.inode) == (held.device, held.inode) {
                        return Ok(Lock { path, root, file });
                    }
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // while it is held
        let _ = self.file.unlock(); // not by closing alone: a process forked meanwhile has the same descriptor
        prune(&self.path, self.root);
    }
}
