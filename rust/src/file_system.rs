//! The local file system of a directory: its kind, and syncing all of it.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Kinds by their number (`statfs`). `tessarr.stores.local.sync` says what each is used for.
const LOCAL: [(u32, &str); 7] = [
    (0xEF53, "ext"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0xF2F5_2010, "f2fs"),
    (0x2FC1_2FC1, "zfs"),
    (0x0102_1994, "tmpfs"),
    (0x794C_7630, "overlay"),
];

/// The kind of the file system of an open file or directory. `None`: a network file system, or an unknown one.
pub fn kind_of(file: &File) -> io::Result<Option<&'static str>> {
    let number = rustix::fs::fstatfs(file)?.f_type as u32;
    Ok(LOCAL.iter().find(|(local, _)| *local == number).map(|(_, name)| *name))
}

/// The file system of an open directory.
#[pyclass(frozen)]
pub struct FileSystem {
    directory: File,
    /// See `kind_of`.
    #[pyo3(get)]
    kind: Option<&'static str>,
}

#[pymethods]
impl FileSystem {
    #[new]
    fn open(path: PathBuf) -> PyResult<FileSystem> {
        let directory = File::open(path)?;
        let kind = kind_of(&directory)?;
        Ok(FileSystem { directory, kind })
    }

    /// Sync all of it (`syncfs`). From Linux 5.8 on, errors since the directory was opened are reported.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| rustix::fs::syncfs(&self.directory)).map_err(std::io::Error::from)?)
    }
}
