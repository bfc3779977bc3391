//! Many documents read in one call.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::error::Result;
use crate::pool::{each, threads};
use crate::signals::poll;
use crate::store::{ReadResult, read_small};

/// So many files are read by one thread before it takes more.
const BATCH: usize = 32;

/// Read files of at most `most` bytes each, many of them on idle threads too. Those with hidden names, which are documents of
/// older formats and journals, are missing as a rule.
pub fn read(paths: Vec<PathBuf>, most: u64) -> Result<Vec<ReadResult>> {
    let read_one = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        read_small(path.as_path().into(), most, is_hidden)
    };
    let batches = paths.len().div_ceil(BATCH);
    if batches < 3 {
        return Ok(paths.iter().map(read_one).collect());
    }
    let found: Vec<OnceLock<Vec<ReadResult>>> = (0..batches).map(|_| OnceLock::new()).collect();
    each(batches, threads().min(batches) - 1, &mut poll(), &|i| {
        let batch = &paths[i * BATCH..paths.len().min((i + 1) * BATCH)];
        found[i].get_or_init(|| batch.iter().map(read_one).collect());
        Ok(())
    })?;
    Ok(found.into_iter().filter_map(OnceLock::into_inner).flatten().collect())
}
