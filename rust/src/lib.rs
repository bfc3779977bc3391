//! The native engine of tessarr: chunks between a store and NumPy memory, without the GIL.
//!
//! `tessarr.engine.native.engine` describes a bound array once as JSON (`array`); every request is then one call.

// `is_empty` of selections and sources is never needed.
#![allow(clippy::len_without_is_empty)]

mod allocate;
pub mod array;
mod cache;
pub mod chain;
mod chunk_job;
mod chunk_reads;
pub mod codecs;
#[cfg(target_os = "linux")]
mod create;
pub mod decode;
mod durable;
mod element;
pub mod encode;
pub mod error;
mod extents;
#[cfg(target_os = "linux")]
mod file_system;
mod folder;
pub mod keys;
mod last_chunk;
mod many_files;
mod numpy;
pub mod part;
mod pool;
mod python;
mod python_store;
mod read;
mod received;
pub mod region;
mod replace;
mod scratch;
mod shared;
mod signals;
mod staged_files;
mod steps;
pub mod store;
mod sync;
pub mod vlen;
mod write;

pub use python::_native;
