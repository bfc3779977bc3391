//! Replacing and removing files: temporary files that are renamed, the locks of values, and empty directories.
//!
//! An update holds the lock file of the value (`Lock`) from before the read on; a write of the whole value does not. The
//! last step is a compare-and-swap, so that neither overwrites a value that it has not seen: see `LockedFile`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::durable::{make_directories, sync, sync_names, unknown};
use crate::error::{Error, Result};
#[cfg(target_os = "linux")]
use crate::file_system::kind_of;
use crate::pool::{process, release};
use crate::scratch;
use crate::store::{STALE, Version, is_missing, open_value, read_exact_at, version_at, write_all_at};

pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{suffix}"))
}

fn unique() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
    format!("{:x}-{number:x}-{time:x}", std::process::id())
}

/// Files from this many bytes on are cloned (reflink) where possible.
pub const LARGE: u64 = 1 << 20;
/// Files from this many bytes on are preallocated before they are written, and are freed on an idle thread.
pub const ROOM: u64 = 128 << 10;

#[cfg(target_os = "linux")]
pub fn preallocate(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, 0, len)?)
}

/// Whether the kernel copies into this file page by page, so that writes of many pages are quicker (ext4 cannot share them).
#[cfg(target_os = "linux")]
fn is_copied_by_pages(file: &File) -> bool {
    kind_of(file).is_ok_and(|kind| kind == Some("ext"))
}

#[cfg(target_os = "linux")]
fn reflink(target: &File, source: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_copied_by_pages(_file: &File) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub fn preallocate(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn reflink(_target: &File, _source: &File) -> bool {
    false
}

/// Bytes that are copied at a time: half of what a processor's own cache has at least.
const PIECE: usize = 256 << 10;

/// Retries for a directory that other processes keep removing.
const TRIES: usize = 100;

/// Whether an update detects a replacement of the value without the lock.
pub const REPLACING_IS_SEEN: bool = cfg!(unix);

/// The version that the value must still have (`None`: no value); no precondition when the outer option is empty.
pub type Precondition = Option<Option<Version>>;

fn stale() -> Error {
    Error::new(STALE, "the value was replaced in the meantime")
}

/// The file of a value under `flock`, from the check of its version to the rename or removal: a compare-and-swap. Where
/// there is no file, `place_new` creates the first one and fails when another writer was faster.
pub struct LockedFile {
    file: Option<File>,
    version: Version,
    is_file: bool,
}

impl LockedFile {
    /// `None`: there is no file. An error means that locking is not possible here. NFS locks only files open for writing.
    #[cfg(unix)]
    pub fn begin(path: &Path) -> io::Result<Option<LockedFile>> {
        loop {
            let file = match open_value(path, true).or_else(|_| open_value(path, false)) {
                Err(error) if is_missing(&error) => return Ok(None),
                file => file?,
            };
            while let Err(error) = file.lock() {
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            let metadata = file.metadata()?;
            let version = Version::of(&metadata);
            let held = LockedFile { file: Some(file), version, is_file: metadata.is_file() };
            if fs::metadata(path).is_ok_and(|there| Version::of(&there).same_file(&version)) {
                return Ok(Some(held));
            }
        }
    }

    /// Open files can be neither replaced nor removed there.
    #[cfg(not(unix))]
    pub fn begin(_path: &Path) -> io::Result<Option<LockedFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Unlock the file and take it out.
    #[cfg(not(target_os = "linux"))]
    pub fn take(&mut self) -> Option<File> {
        self.file.take().inspect(|file| drop(file.unlock()))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn has_version(&self, is_it: impl FnOnce(Version) -> bool) -> bool {
        self.is_file && is_it(self.version)
    }

    fn check(&self, if_match: Precondition) -> Result<()> {
        match if_match {
            Some(version) if version != self.is_file.then_some(self.version) => Err(stale()),
            _ => Ok(()),
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = file.unlock(); // not by closing alone: a process forked meanwhile has the same descriptor
            if self.version.size() >= ROOM {
                release(file);
            }
        }
    }
}

/// Rename to an unused name; "unsupported" where the system or the file system cannot.
#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(target_os = "linux"))]
fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Rename or link a file to an unused name, or fail with "already exists". `false`: not possible here.
pub fn place_new(from: &Path, to: &Path) -> io::Result<bool> {
    match rename_new(from, to) {
        Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {}
        done => return done.map(|()| true),
    }
    match fs::hard_link(from, to) {
        Ok(()) => {
            let _ = fs::remove_file(from); // the value is in place; a hidden file that cannot be removed does no harm
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => Ok(false),
    }
}

/// A store's directory, and whether changes in it are durable.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub root: &'a Path,
    /// The file in the array's directory that transactions mark while they change its chunks.
    pub mark: Option<&'a Path>,
    pub durable: bool,
    /// Set once the time of a file differs from the one it was set to.
    pub coarse: &'a AtomicBool,
}

/// Run `work`, and retry after making the directory of `path` while that is missing.
pub fn in_directory<T>(path: &Path, place: Place, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let make = |folder| make_directories(folder, place.root, place.durable, &process().synced);
    for _ in 0..TRIES {
        match work() {
            Err(error) if is_missing(&error) => match path.parent().map(make) {
                // "Already exists" is also the error for a directory that existed for a moment.
                Some(Err(error)) if !is_missing(&error) && error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(error);
                }
                _ => {}
            },
            done => return done,
        }
    }
    work()
}

/// A temporary file that becomes the value when finished, and is removed otherwise.
pub struct Replacement {
    path: Arc<Path>,
    temporary: PathBuf,
    file: File,
    done: AtomicBool,
}

impl Replacement {
    pub fn begin(path: &Arc<Path>, place: Place) -> Result<Replacement> {
        let temporary = beside(path, &format!("{}.tessarr-tmp", unique()));
        let file = in_directory(path, place, || OpenOptions::new().write(true).create_new(true).open(&temporary));
        match file {
            Ok(file) => Ok(Replacement { path: path.clone(), temporary, file, done: AtomicBool::new(false) }),
            Err(error) => {
                Err(Error::store(format!("cannot create a temporary file beside {}", path.display()), &error))
            }
        }
    }

    /// Rename the file to the value's name. With `if_match`, only if the value still has that version (`None`: no value):
    /// else the error is `STALE`. With the error `durability` the file was renamed.
    pub fn finish(&self, place: Place, if_match: Precondition) -> Result<()> {
        let failed = |error| self.failed(error);
        // The kernel's timestamps are as coarse as 4 ms, and inodes are reused: two values could have one version.
        let now = SystemTime::now();
        self.file.set_modified(now).map_err(failed)?;
        if !Version::of(&self.file.metadata().map_err(failed)?).has_time(now) {
            place.coarse.store(true, Ordering::Relaxed);
        }
        if place.durable {
            sync(&self.file).map_err(failed)?;
        }
        self.place(if_match)?;
        self.done.store(true, Ordering::Relaxed);
        if place.durable {
            sync_names(&self.path, place.root, &process().synced)
                .map_err(|error| unknown(&self.path, "the value is in place", &error))?;
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::store(format!("cannot replace {}", self.path.display()), &error)
    }

    fn place(&self, if_match: Precondition) -> Result<()> {
        // Each further round means that another writer replaced the value first.
        loop {
            // Most values are new.
            if !matches!(if_match, Some(Some(_))) {
                match place_new(&self.temporary, &self.path) {
                    Ok(true) => return Ok(()),
                    Ok(false) => break,
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(self.failed(error)),
                }
            }
            match LockedFile::begin(&self.path) {
                Ok(Some(held)) => {
                    held.check(if_match)?;
                    return fs::rename(&self.temporary, &self.path).map_err(|error| self.failed(error));
                }
                Ok(None) if matches!(if_match, Some(Some(_))) => return Err(stale()),
                // A dangling symbolic link: there is no file to lock, and the name is in use.
                Ok(None) if self.path.is_symlink() => break,
                Ok(None) => {}
                Err(_) => break,
            }
        }
        // Without `flock`, or if the file cannot be opened. A write between these two steps is lost.
        if if_match.is_some_and(|version| version != version_at(&self.path)) {
            return Err(stale());
        }
        fs::rename(&self.temporary, &self.path).map_err(|error| self.failed(error))
    }

    /// Write `bytes` at `offset`; several threads may do so at once.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all_at(&self.file, bytes, offset)
            .map_err(|error| Error::store(format!("cannot write {}", self.path.display()), &error))
    }

    /// Preallocate `len` bytes, which makes a large file faster to write and, on ext4, far faster to rename over another.
    /// The size stays; `trim` frees unused blocks.
    pub fn reserve(&self, len: u64) -> Result<()> {
        if len < ROOM {
            return Ok(());
        }
        match preallocate(&self.file, len) {
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                Err(Error::store(format!("cannot write {}", self.path.display()), &error))
            }
            _ => Ok(()),
        }
    }

    /// Truncate the file to `len`, the end of its bytes.
    pub fn trim(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|error| Error::store(format!("cannot write {}", self.path.display()), &error))
    }

    /// Clone all bytes of `source` (reflink), where the file system can; return whether it did.
    pub fn share(&self, source: &File) -> bool {
        reflink(&self.file, source)
    }

    /// Copy bytes `from..from + len` of `source` to `offset`, in the kernel where it can share them.
    pub fn copy_from(&self, source: &File, from: u64, len: u64, offset: u64) -> Result<()> {
        let failed = |error| Error::store(format!("cannot copy into {}", self.path.display()), &error);
        if is_copied_by_pages(&self.file) {
            let mut piece = scratch::take(PIECE)?;
            return copy_pieces((source, from), (&self.file, offset), len, &mut piece).map_err(failed);
        }
        let copied = (|| {
            let (mut source, mut target) = (source, &self.file);
            source.seek(SeekFrom::Start(from))?;
            target.seek(SeekFrom::Start(offset))?;
            let n = io::copy(&mut source.take(len), &mut target)?;
            if n == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })();
        copied.map_err(failed)
    }
}

/// Copy `len` bytes between places of two files, through `piece`, which stays in the processor's cache.
fn copy_pieces(source: (&File, u64), target: (&File, u64), len: u64, piece: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let n = piece.len().min((len - done) as usize);
        read_exact_at(source.0, &mut piece[..n], source.1 + done)?;
        write_all_at(target.0, &piece[..n], target.1 + done)?;
        done += n as u64;
    }
    Ok(())
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.done.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Remove a value and the directories below the root that become empty; a missing value is not an error. With `if_match`
/// only that version: else the error is `STALE`. With the error `durability` the value was removed.
pub fn remove(path: &Path, place: Place, if_match: Precondition) -> Result<()> {
    let held = LockedFile::begin(path);
    match &held {
        Ok(Some(held)) => held.check(if_match)?,
        Ok(None) if matches!(if_match, Some(Some(_))) => return Err(stale()),
        Ok(None) if if_match.is_some() => return Ok(()),
        Err(_) if if_match.is_some_and(|version| version != version_at(path)) => return Err(stale()),
        _ => {}
    }
    match fs::remove_file(path) {
        Ok(()) => prune(path, place.root),
        // Another process, which need not have synced the removal yet, removed the value in the meantime.
        Err(error) if is_missing(&error) && matches!(held, Ok(Some(_))) => {}
        Err(error) if is_missing(&error) => return Ok(()),
        Err(_) if path.is_dir() => return Ok(()),
        Err(error) => return Err(Error::store(format!("cannot remove {}", path.display()), &error)),
    }
    if place.durable {
        sync_names(path, place.root, &process().synced)
            .map_err(|error| unknown(path, "the value is removed", &error))?;
    }
    Ok(())
}

/// Remove empty directories between `root` and `path`.
pub fn prune(path: &Path, root: &Path) {
    for folder in path.ancestors().skip(1) {
        if folder == root || !folder.starts_with(root) || fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// The lock of one stored value, over threads and processes: `.{name}.tessarr-lock` in its directory, locked with
/// `flock`, and removed by its holder. A waiter that acquires the lock of a removed file retries.
pub struct Lock<'a> {
    path: PathBuf,
    place: Place<'a>,
    file: File,
}

/// The kind of the error for a lock file with a mark: Python settles the transaction, and retries the write.
pub const MARKED: &str = "marked";

/// Longest pause between two attempts to acquire a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Acquire the `flock` of a file. `wait` is called periodically while another holder has it; its error ends the waiting.
pub fn lock_exclusively(
    file: &File,
    wait: &mut dyn FnMut() -> Result<()>,
    failed: impl Fn(io::Error) -> Error,
) -> Result<()> {
    let mut pause = Duration::from_micros(100);
    // Not by blocking in the kernel: a helper thread could not be cancelled there.
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
    Ok(())
}

/// The file that transactions mark in the directory of each node whose values they change.
pub const NODE_MARK: &str = ".tessarr-values.tessarr-lock";

fn has_mark(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|at| at.len() > 0)
}

/// Whether a transaction marked a directory between `root` and the value at `path`.
pub fn is_marked_above(path: &Path, root: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(root))
        .any(|folder| has_mark(&folder.join(NODE_MARK)))
}

pub fn marked() -> Error {
    Error::new(MARKED, "a transaction that changes this value left a mark")
}

/// Release a lock file that is not empty, which stays with its mark: the error is `MARKED`.
pub fn refuse_marked(file: &File, size: u64) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    let _ = file.unlock();
    Err(marked())
}

impl<'a> Lock<'a> {
    /// `wait` is called periodically while another holder has the lock; its error ends the waiting. With the error `MARKED` a
    /// transaction left a mark in the lock file, which has to be settled first; the lock is not held then.
    pub fn hold(value: &Path, place: Place<'a>, wait: &mut dyn FnMut() -> Result<()>) -> Result<Lock<'a>> {
        let path = beside(value, "tessarr-lock");
        let failed = |error: io::Error| Error::store(format!("cannot lock {}", value.display()), &error);
        loop {
            let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let file = in_directory(&path, place, open).map_err(failed)?;
            lock_exclusively(&file, wait, failed)?;
            let held = Version::of(&file.metadata().map_err(failed)?);
            match fs::metadata(&path) {
                Ok(there) => {
                    if Version::of(&there).same_file(&held) {
                        refuse_marked(&file, held.size())?;
                        let lock = Lock { path, place, file };
                        // Marks are made before transactions look for holders of locks: one of the two finds the other.
                        return if place.mark.is_some_and(has_mark) { Err(marked()) } else { Ok(lock) };
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
        prune(&self.path, self.place.root);
    }
}
