//! Memory and decoder state that a thread reuses, so that no chunk allocates or zeroes memory.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress, create_comp_flags_from_zip_params,
};

use crate::allocate;
use crate::error::Result;
use crate::region::Inflater;

/// Larger buffers are freed instead of being kept.
const KEEP_BYTES: usize = 8 << 20;
const KEEP_BUFFERS: usize = 6;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static ZSTD_DECODER: RefCell<zstd_safe::DCtx<'static>> = RefCell::new(zstd_safe::DCtx::create());
    static ZSTD_ENCODER: RefCell<zstd_safe::CCtx<'static>> = RefCell::new(zstd_safe::CCtx::create());
    static INFLATER: RefCell<Inflater> = RefCell::new(Inflater::create());
    static DEFLATER: RefCell<Option<(i32, libdeflater::Compressor)>> = const { RefCell::new(None) };
    /// A deflate compressor of level 1, without a container.
    static FAST_DEFLATER: RefCell<CompressorOxide> =
        RefCell::new(CompressorOxide::new(create_comp_flags_from_zip_params(1, 0, 0)));
}

/// A reused buffer of the thread; its initial contents are arbitrary.
pub struct Scratch {
    bytes: Vec<u8>,
    len: usize,
}

/// A buffer of `len` bytes with arbitrary contents.
pub fn take(len: usize) -> Result<Scratch> {
    let mut bytes = BUFFERS.with_borrow_mut(|kept| match kept.iter().position(|buffer| buffer.len() >= len) {
        Some(i) => kept.swap_remove(i),
        None => kept.pop().unwrap_or_default(),
    });
    if bytes.capacity() < len {
        drop(bytes); // its contents need not be copied
        bytes = allocate::zeros(len)?;
    } else if bytes.len() < len {
        bytes.resize(len, 0);
    }
    Ok(Scratch { bytes, len })
}

impl Scratch {
    /// Shorten the visible part.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Scratch {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() && bytes.len() <= KEEP_BYTES {
            // A thread that ends has no list of buffers any more.
            let _ = BUFFERS.try_with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.len() < KEEP_BUFFERS {
                    kept.push(bytes);
                }
            });
        }
    }
}

pub fn with_zstd_decoder<T>(work: impl FnOnce(&mut zstd_safe::DCtx<'static>) -> T) -> T {
    ZSTD_DECODER.with_borrow_mut(work)
}

pub fn with_zstd_encoder<T>(work: impl FnOnce(&mut zstd_safe::CCtx<'static>) -> T) -> T {
    ZSTD_ENCODER.with_borrow_mut(work)
}

pub fn with_inflater<T>(work: impl FnOnce(&mut Inflater) -> T) -> T {
    INFLATER.with_borrow_mut(work)
}

/// A deflate compressor of `level` (0-12); the last one used is kept.
pub fn with_deflater<T>(level: i32, work: impl FnOnce(&mut libdeflater::Compressor) -> T) -> T {
    DEFLATER.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(kept_level, _)| *kept_level != level) {
            let level_ = libdeflater::CompressionLvl::new(level).unwrap_or_default();
            *kept = Some((level, libdeflater::Compressor::new(level_)));
        }
        work(&mut kept.as_mut().expect("just made").1)
    })
}

/// Encode `data` as one deflate stream of level 1 by miniz_oxide. Returns its size; `None` where it does not fit in `out`.
pub fn deflate_fast(data: &[u8], out: &mut [u8]) -> Option<usize> {
    FAST_DEFLATER.with_borrow_mut(|deflater| {
        deflater.reset();
        let (status, _, made) = compress(deflater, data, out, TDEFLFlush::Finish);
        (status == TDEFLStatus::Done).then_some(made)
    })
}
