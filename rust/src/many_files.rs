//! Many documents read in one call.

use std::path::Path;
use std::sync::OnceLock;

use crate::error::Result;
use crate::folder::Folder;
use crate::pool::{each, threads};
use crate::signals::poll;
use crate::store::{ReadResult, is_missing};

/// So many files are read by one thread before it takes more.
const BATCH: usize = 32;

/// Whether the value of `key` is in the file of that name below the root. Python decides about others: malformed keys, and a few
/// that are well-formed.
pub fn is_plain_key(key: &str) -> bool {
    key.split('/').all(is_plain)
}

/// As `is_plain_key` in `tessarr/stores/path.py`.
fn is_plain(name: &str) -> bool {
    let visible = name.strip_prefix('.').unwrap_or(name);
    !visible.is_empty()
        && !visible.starts_with('.')
        && !visible.contains('\0')
        && (cfg!(unix) || is_plain_anywhere(name))
}

/// Whether Windows, too, takes the name for that of a file, and for no other name.
fn is_plain_anywhere(name: &str) -> bool {
    let start = name.get(..3).unwrap_or("").to_ascii_uppercase();
    let may_be_device = ["CON", "PRN", "AUX", "NUL", "COM", "LPT"].contains(&&*start);
    let is_simple = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    is_simple && !may_be_device && !name.ends_with('.')
}

/// Read the values of `keys` below `root`, files of at most `most` bytes each, many of them on idle threads too; `None` is not
/// read. Documents of older formats and journals are missing as a rule.
pub fn read<K: AsRef<str> + Sync>(root: &Path, keys: &[Option<K>], most: u64) -> Result<Vec<ReadResult>> {
    let folder = Folder::open(root.into());
    let read_one = |key: &Option<K>| match (key.as_ref().map(K::as_ref), &folder) {
        (Some(key), Ok(folder)) => {
            let name = key.rsplit('/').next().unwrap_or(key);
            folder.read_small(key, most, name.starts_with('.') || name == "meta")
        }
        (Some(_), Err(error)) if is_missing(error) => ReadResult::Absent,
        _ => ReadResult::Other,
    };
    let batches = keys.len().div_ceil(BATCH);
    if batches < 3 {
        return Ok(keys.iter().map(read_one).collect());
    }
    let found: Vec<OnceLock<Vec<ReadResult>>> = (0..batches).map(|_| OnceLock::new()).collect();
    each(batches, threads().min(batches) - 1, &mut poll(), &|i| {
        let batch = &keys[i * BATCH..keys.len().min((i + 1) * BATCH)];
        found[i].get_or_init(|| batch.iter().map(read_one).collect());
        Ok(())
    })?;
    Ok(found.into_iter().filter_map(OnceLock::into_inner).flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_name_files_are_plain() {
        for key in ["zarr.json", "group/.zattrs", "a/c/0/1", "b..c/array-1"] {
            assert!(is_plain_key(key), "{key}");
        }
        for key in ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "...", "..a", "nul\0"] {
            assert!(!is_plain_key(key), "{key}");
        }
    }

    #[test]
    fn names_that_windows_changes_are_not_plain_there() {
        for name in ["con", "NUL.txt", "COM1", "a.", "a:b", "a ", "a\\b", "\u{e9}"] {
            assert!(!is_plain_anywhere(name), "{name}");
        }
        for name in ["zarr.json", ".zarray", "temperature", "c", "0"] {
            assert!(is_plain_anywhere(name), "{name}");
        }
    }
}
