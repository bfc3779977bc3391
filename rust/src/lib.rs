//! The native engine of tessarr: chunks between a store and NumPy memory, without the GIL.
//!
//! `tessarr.engine.native` describes a bound array once as JSON (`array`); every request is then one call.

// A selection or source of no length is never asked whether it is empty.
#![allow(clippy::len_without_is_empty)]

pub mod array;
mod cache;
pub mod chain;
pub mod codecs;
mod collect;
pub mod decode;
mod element;
pub mod encode;
pub mod error;
pub mod part;
mod pool;
mod python;
mod ranged;
mod read;
pub mod region;
mod replace;
mod scratch;
pub mod store;
mod write;

pub use python::_native;
