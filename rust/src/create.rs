//! Creating a value where there is none: its lock file is written, and renamed to the value's name.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, openat, renameat_with, statat, unlinkat};

use crate::error::{Error, Result};
use crate::replace::{Place, beside, in_directory, is_marked_above, lock_exclusively, marked, prune, refuse_marked};
use crate::store::{Version, write_all_at};

/// Create a value, unless there is one. With `probe` nothing is written where names that differ in case only are one name.
/// After an error nothing was created.
pub fn create(
    path: &Path,
    place: Place,
    probe: bool,
    value: &[u8],
    wait: &mut dyn FnMut() -> Result<()>,
) -> Result<bool> {
    let held = Held::begin(path, place, wait)?;
    if held.status(held.name(), AtFlags::empty()).is_ok_and(|there| FileType::from_raw_mode(there.st_mode).is_file()) {
        return Ok(false);
    }
    if probe && held.status(&held.lock.to_ascii_uppercase(), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Err(Error::new("case-blind", "the file system ignores the case of names"));
    }
    held.become_value(value).map_err(|error| held.failed(error))?;
    Ok(true)
}

/// The lock file of a value, while it is held. All names are looked up in one open directory: after that is renamed or
/// replaced, no lock file of another process is renamed.
struct Held<'a> {
    path: &'a Path,
    place: Place<'a>,
    folder: OwnedFd,
    lock: Vec<u8>,
    file: File,
    renamed: std::cell::Cell<bool>,
}

impl<'a> Held<'a> {
    fn begin(path: &'a Path, place: Place<'a>, wait: &mut dyn FnMut() -> Result<()>) -> Result<Held<'a>> {
        let lock = beside(path, "tessarr-lock").file_name().unwrap_or_default().as_bytes().to_vec();
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let open = || {
            let folder = openat(CWD, path.parent().unwrap_or(path), directory, Mode::empty())?;
            let file = File::from(openat(&folder, &*lock, flags, Mode::from_raw_mode(0o666))?);
            Ok((folder, file))
        };
        let failed = |error: io::Error| Error::store(format!("cannot lock {}", path.display()), &error);
        loop {
            let (folder, file) = in_directory(path, place, open).map_err(failed)?;
            lock_exclusively(&file, wait, failed)?;
            let own = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
            let there = statat(&folder, &*lock, AtFlags::empty());
            if there.is_ok_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)) {
                refuse_marked(&file, own.st_size as u64)?;
                let held = Held { path, place, folder, lock, file, renamed: false.into() };
                return if is_marked_above(path, place.root) { Err(marked()) } else { Ok(held) };
            }
        }
    }

    fn name(&self) -> &[u8] {
        self.path.file_name().unwrap_or_default().as_bytes()
    }

    fn status(&self, name: &[u8], flags: AtFlags) -> rustix::io::Result<Stat> {
        statat(&self.folder, name, flags)
    }

    fn become_value(&self, value: &[u8]) -> io::Result<()> {
        write_all_at(&self.file, value, 0)?;
        // As `Replacement::finish` does.
        let now = SystemTime::now();
        self.file.set_modified(now)?;
        if !Version::of(&self.file.metadata()?).has_time(now) {
            self.place.coarse.store(true, Ordering::Relaxed);
        }
        renameat_with(&self.folder, &*self.lock, &self.folder, self.name(), RenameFlags::NOREPLACE)?;
        self.renamed.set(true);
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::store(format!("cannot create {}", self.path.display()), &error)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.renamed.get() {
            let _ = self.file.unlock();
            return;
        }
        let _ = self.file.set_len(0); // what is in a lock file is a mark
        let _ = unlinkat(&self.folder, &*self.lock, AtFlags::empty());
        let _ = self.file.unlock(); // not by closing alone: a process forked meanwhile has the same descriptor
        prune(self.path, self.place.root);
    }
}
