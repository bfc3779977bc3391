//! The files below one directory, which stays open, so that the kernel looks up the rest of each name only.

#[cfg(target_os = "linux")]
pub use linux::Folder;
#[cfg(not(target_os = "linux"))]
pub use portable::Folder;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;

    use rustix::fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, fstat, openat, openat2, renameat,
        renameat_with, statat, unlinkat,
    };
    use rustix::io::Errno;

    use crate::store::{ReadResult, is_missing};

    pub struct Folder(OwnedFd);

    impl Folder {
        /// `create` refuses links that lead out of the directory.
        pub const CHECKS_LINKS: bool = true;

        pub fn open(path: PathBuf) -> io::Result<Folder> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(Folder(openat(CWD, path, flags, Mode::empty())?))
        }

        /// Open a directory below; `follows`: also where a link leads out of this one.
        pub fn inside(&self, name: &str, follows: bool) -> io::Result<Folder> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(Folder(match follows {
                true => openat(&self.0, name, flags, Mode::empty())?,
                false => openat2(&self.0, name, flags, Mode::empty(), ResolveFlags::BENEATH)?,
            }))
        }

        /// Create a new file for writing.
        pub fn create(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            Ok(openat2(&self.0, name, flags, Mode::from_raw_mode(0o666), ResolveFlags::BENEATH)?.into())
        }

        pub fn remove(&self, name: &str) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, AtFlags::empty())?)
        }

        /// Read a file of at most `most` bytes. With `rare` it is probably missing: to look costs less than to open.
        pub fn read_small(&self, name: &str, most: u64, rare: bool) -> ReadResult {
            let is_absent = |error: Errno| is_missing(&error.into());
            if rare && statat(&self.0, name, AtFlags::empty()).is_err_and(is_absent) {
                return ReadResult::Absent;
            }
            // Without NONBLOCK, opening a named pipe would wait for a writer.
            match openat(&self.0, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
                Ok(file) => ReadResult::of(&File::from(file), most),
                Err(error) if is_absent(error) => ReadResult::Absent,
                Err(_) => ReadResult::Other,
            }
        }

        /// The version of the file, as Python spells it; `None`: there is no file.
        pub fn version(&self, name: &str) -> io::Result<Option<String>> {
            match statat(&self.0, name, AtFlags::empty()).map_err(io::Error::from) {
                Ok(there) => Ok(FileType::from_raw_mode(there.st_mode).is_file().then(|| version_of(&there))),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(error),
            }
        }

        /// Whether there is a file of a version, which is without the device.
        pub fn has_version(&self, name: &str, version: &str) -> io::Result<bool> {
            match statat(&self.0, name, AtFlags::empty()).map_err(io::Error::from) {
                Ok(there) => Ok(is_version(&there, version)),
                Err(error) if is_missing(&error) => Ok(false),
                Err(error) => Err(error),
            }
        }

        /// The hidden names, with their inodes; `None`: there are more names than `most`.
        pub fn hidden(&self, most: usize) -> io::Result<Option<HashMap<Vec<u8>, u64>>> {
            let mut found = HashMap::new();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = openat(&self.0, ".", flags, Mode::empty())?;
            for (number, entry) in Dir::new(folder)?.enumerate() {
                let entry = entry?;
                if number >= most {
                    return Ok(None);
                }
                let name = entry.file_name().to_bytes();
                if name.starts_with(b".") {
                    found.insert(name.to_vec(), entry.ino());
                }
            }
            Ok(Some(found))
        }

        /// Rename to an unused name.
        pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE)?)
        }

        /// Rename over the file `to`, if that has a version, which is without the device. Returns the old file, which takes
        /// time to close; `None`: it was not renamed. As `replace::LockedFile`.
        pub fn replace(&self, from: &str, to: &str, version: &str) -> io::Result<Option<File>> {
            let open = |mode| openat(&self.0, to, mode | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
            loop {
                let file = File::from(open(OFlags::RDWR).or_else(|_| open(OFlags::RDONLY))?);
                while let Err(error) = file.lock() {
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                let own = fstat(&file)?;
                let there = statat(&self.0, to, AtFlags::empty());
                let is_there = there.is_ok_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino));
                let is_it = is_there && is_version(&own, version);
                let renamed = match is_it {
                    true => renameat(&self.0, from, &self.0, to).map_err(io::Error::from),
                    false => Ok(()),
                };
                let _ = file.unlock(); // not by closing alone: a process forked meanwhile has the same descriptor
                if is_there {
                    return renamed.map(|()| is_it.then_some(file));
                }
            }
        }
    }

    /// As `Version::name` spells it.
    #[allow(clippy::unnecessary_cast)] // types differ from one architecture to another
    fn version_of(stat: &Stat) -> String {
        let ns = stat.st_mtime as i128 * 1_000_000_000 + stat.st_mtime_nsec as i128;
        format!("{:x}:{:x}:{:x}:{:x}", stat.st_dev, stat.st_ino, ns.max(0), stat.st_size)
    }

    /// Whether a file has a version without the device, as `version_of` spells it.
    #[allow(clippy::unnecessary_cast)]
    fn is_version(stat: &Stat, version: &str) -> bool {
        let ns = stat.st_mtime as i128 * 1_000_000_000 + stat.st_mtime_nsec as i128;
        let mut numbers = version.split(':').map(|number| i128::from_str_radix(number, 16).ok());
        let own = [stat.st_ino as i128, ns.max(0), stat.st_size as i128];
        FileType::from_raw_mode(stat.st_mode).is_file()
            && own.into_iter().all(|own| numbers.next() == Some(Some(own)))
            && numbers.next().is_none()
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::store::Version;

        fn with_folder(name: &str, work: impl FnOnce(&std::path::Path, Folder)) {
            let path = std::env::temp_dir().join(format!("tessarr-folder-{name}-{}", std::process::id()));
            std::fs::create_dir_all(path.join("a")).unwrap();
            work(&path, Folder::open(path.clone()).unwrap());
            std::fs::remove_dir_all(path).unwrap();
        }

        #[test]
        fn versions_are_spelled_alike() {
            with_folder("version", |path, folder| {
                std::fs::write(path.join("a/b"), b"value").unwrap();
                let expected = Version::of(&std::fs::metadata(path.join("a/b")).unwrap()).name();
                assert_eq!(folder.version("a/b").unwrap(), Some(expected.clone()));
                assert_eq!(folder.version("a").unwrap(), None);
                assert_eq!(folder.version("a/b/c").unwrap(), None);
                let own = expected.split_once(':').unwrap().1;
                assert!(folder.has_version("a/b", own).unwrap());
                let parts: Vec<_> = own.split(':').collect();
                let others =
                    [format!("{own}:0"), format!("1{own}"), format!("{own}1"), format!("{}:{}", parts[0], parts[1])];
                let later = format!("{}:1{}:{}", parts[0], parts[1], parts[2]);
                for other in others.iter().chain([&later, &expected, &String::new()]) {
                    assert!(!folder.has_version("a/b", other).unwrap(), "{other}");
                }
                assert!(!folder.has_version("a/c", own).unwrap());
                let above = std::fs::metadata(path.join("a")).unwrap();
                let above = Version::of(&above).name();
                assert!(!folder.has_version("a", above.split_once(':').unwrap().1).unwrap());
            });
        }

        #[test]
        fn no_file_is_created_outside() {
            with_folder("outside", |path, folder| {
                let outside = path.with_extension("outside");
                std::fs::create_dir_all(&outside).unwrap();
                std::os::unix::fs::symlink(&outside, path.join("a/link")).unwrap();
                assert!(folder.create("a/link/file").is_err());
                assert!(folder.create("../file").is_err());
                assert!(folder.create("a/file").is_ok());
                assert!(folder.inside("a/link", false).is_err());
                assert!(folder.inside("..", false).is_err());
                assert!(folder.inside("a/link", true).is_ok());
                assert!(folder.inside("a", false).unwrap().create("other").is_ok());
                assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
                std::fs::remove_dir_all(outside).unwrap();
            });
        }

        #[test]
        fn hidden_names_are_listed_with_their_inodes() {
            with_folder("hidden", |path, folder| {
                for name in ["a/.one", "a/.two", "a/other"] {
                    std::fs::write(path.join(name), b"value").unwrap();
                }
                let folder = folder.inside("a", false).unwrap();
                let found = folder.hidden(8).unwrap().unwrap();
                let version = folder.version(".one").unwrap().unwrap();
                assert_eq!(version.split(':').nth(1), Some(format!("{:x}", found[&b".one"[..]]).as_str()));
                assert!(found.contains_key(&b".two"[..]) && !found.contains_key(&b"other"[..]));
                assert!(folder.hidden(2).unwrap().is_none());
            });
        }

        #[test]
        fn a_file_is_renamed_only_to_an_unused_name() {
            with_folder("rename", |path, folder| {
                std::fs::write(path.join("a/old"), b"old").unwrap();
                std::fs::write(path.join("a/new"), b"new").unwrap();
                assert!(folder.rename_new("a/new", "a/old").is_err());
                assert!(folder.replace("a/new", "a/old", "1:2:3").unwrap().is_none());
                let version = folder.version("a/old").unwrap().unwrap();
                assert!(folder.replace("a/new", "a/old", version.split_once(':').unwrap().1).unwrap().is_some());
                assert_eq!(std::fs::read(path.join("a/old")).unwrap(), b"new");
                folder.rename_new("a/old", "a/first").unwrap();
                assert_eq!(folder.version("a/old").unwrap(), None);
            });
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::collections::HashMap;
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::path::PathBuf;

    use crate::replace::{LockedFile, place_new};
    use crate::store::{ReadResult, Version, is_missing, open_value, without_device};

    pub struct Folder(PathBuf);

    impl Folder {
        pub const CHECKS_LINKS: bool = false;

        pub fn open(path: PathBuf) -> io::Result<Folder> {
            Ok(Folder(path))
        }

        pub fn inside(&self, name: &str, _follows: bool) -> io::Result<Folder> {
            Ok(Folder(self.0.join(name)))
        }

        pub fn create(&self, name: &str) -> io::Result<File> {
            OpenOptions::new().write(true).create_new(true).open(self.0.join(name))
        }

        pub fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        pub fn read_small(&self, name: &str, most: u64, rare: bool) -> ReadResult {
            let path = self.0.join(if cfg!(windows) { name.replace('/', "\\") } else { name.into() });
            if rare && fs::metadata(&path).is_err_and(|error| is_missing(&error)) {
                return ReadResult::Absent;
            }
            match open_value(&path, false) {
                Ok(file) => ReadResult::of(&file, most),
                Err(error) if is_missing(&error) => ReadResult::Absent,
                Err(_) => ReadResult::Other,
            }
        }

        pub fn version(&self, name: &str) -> io::Result<Option<String>> {
            match fs::metadata(self.0.join(name)) {
                Ok(there) => Ok(there.is_file().then(|| Version::of(&there).name())),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(error),
            }
        }

        pub fn has_version(&self, name: &str, version: &str) -> io::Result<bool> {
            Ok(self.version(name)?.is_some_and(|there| without_device(&there) == version))
        }

        pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
            match place_new(&self.0.join(from), &self.0.join(to))? {
                true => Ok(()),
                false => Err(io::ErrorKind::Unsupported.into()),
            }
        }

        pub fn hidden(&self, _most: usize) -> io::Result<Option<HashMap<Vec<u8>, u64>>> {
            Ok(None)
        }

        pub fn replace(&self, from: &str, to: &str, version: &str) -> io::Result<Option<File>> {
            let (from, to) = (self.0.join(from), self.0.join(to));
            match LockedFile::begin(&to)? {
                Some(mut held) if held.has_version(|there| without_device(&there.name()) == version) => {
                    fs::rename(from, to)?;
                    Ok(held.take())
                }
                _ => Ok(None),
            }
        }
    }
}
