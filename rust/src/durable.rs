//! Durable changes: sync content and names of files to the disk before a call returns.
//!
//! System calls: `fsync` on Linux and other Unix systems, `F_FULLFSYNC` on macOS, `FlushFileBuffers` on Windows, where names
//! are left to the journal of NTFS. A failed sync is never retried: the kernel marks the pages that it could not write as
//! clean, so a second sync would report success.
//!
//! The Python engine does the same (`src/tessarr/stores/local/sync.py`).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::error::Error;

/// Sync the content of a file, or the names in a directory.
pub fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        #[cfg(target_vendor = "apple")]
        Err(error) if is_no_full_sync(&error) => Ok(rustix::fs::fsync(file)?),
        done => done,
    }
}

/// Whether the file system, such as a network one, does not support `F_FULLFSYNC`. Nothing was synced then.
#[cfg(target_vendor = "apple")]
fn is_no_full_sync(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::INVAL, Errno::NOTSUP, Errno::NOTTY].iter().any(|no| error.raw_os_error() == Some(no.raw_os_error()))
}

/// Return the error for a change that was made and may not survive a power cut.
pub fn unknown(path: &Path, done: &str, error: &io::Error) -> Error {
    Error::new("durability", format!("{done}, but its directory could not be synced: {}", path.display()))
        .got(error.to_string())
        .hint("The change is visible now; whether it survives a power cut is unknown. Check the disk before writing again")
        .with(|f| f.errno = error.raw_os_error())
}

/// Make the name `path`, or its removal, durable: sync its directory, or the next above that still exists; then
/// every directory above whose own name was not synced by this process, up to `root`. The process that created those may not
/// have synced them yet. `known`: those that it did.
#[cfg(unix)]
pub fn sync_names(path: &Path, root: &Path, known: &Synced) -> io::Result<()> {
    let mut synced = Vec::new();
    for folder in path.ancestors().skip(1) {
        let directory = match File::open(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder != root => continue,
            opened => opened?,
        };
        sync(&directory)?;
        let identity = Identity::of(&directory);
        if folder == root || identity.is_some_and(|identity| known.has(folder, identity)) {
            break;
        }
        synced.extend(identity.map(|identity| (folder, identity)));
    }
    synced.into_iter().for_each(|(folder, identity)| known.add(folder, identity));
    Ok(())
}

#[cfg(not(unix))]
pub fn sync_names(_path: &Path, _root: &Path, _known: &Synced) -> io::Result<()> {
    Ok(())
}

/// Create a directory and those above it. With `durable` the names of `root` and of what is above it, where they are
/// created here, are synced; `sync_names` syncs those below, with the value that they are created for.
pub fn make_directories(folder: &Path, root: &Path, durable: bool, known: &Synced) -> io::Result<()> {
    if !durable || cfg!(not(unix)) {
        return fs::create_dir_all(folder);
    }
    let made: Vec<&Path> = folder.ancestors().take_while(|above| !above.is_dir()).collect();
    known.forget(&made);
    fs::create_dir_all(folder)?;
    for above in made.iter().filter(|made| root.starts_with(made)).filter_map(|made| made.parent()) {
        sync(&File::open(above)?)?;
    }
    Ok(())
}

/// The identity of a directory, which a later one of the same name and inode does not share. (A directory made again within
/// a tick of the kernel's clock could: see `Synced::forget`.)
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    born: SystemTime,
}

#[cfg(unix)]
impl Identity {
    /// `None` where the file system has no creation times.
    fn of(directory: &File) -> Option<Identity> {
        use std::os::unix::fs::MetadataExt;
        let metadata = directory.metadata().ok()?;
        Some(Identity { device: metadata.dev(), inode: metadata.ino(), born: metadata.created().ok()? })
    }
}

/// Directories whose names a process synced.
#[derive(Default)]
pub struct Synced(Mutex<HashMap<PathBuf, Identity>>);

/// With more directories than this the table is cleared, and directories are synced again.
const MANY: usize = 1 << 14;

impl Synced {
    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Identity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call this before making directories.
    fn forget(&self, folders: &[&Path]) {
        let mut known = self.lock();
        for &folder in folders {
            known.remove(folder);
        }
    }
}

#[cfg(unix)]
impl Synced {
    fn has(&self, folder: &Path, identity: Identity) -> bool {
        self.lock().get(folder) == Some(&identity)
    }

    fn add(&self, folder: &Path, identity: Identity) {
        let mut known = self.lock();
        if known.len() >= MANY {
            known.clear();
        }
        known.insert(folder.to_owned(), identity);
    }
}
