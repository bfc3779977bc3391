//! A bound array, made once from the JSON description of `tessarr.engine.native.describe`.
//!
//! ```json
//! {"shape": [100, 100], "axes": [{"size": 64}, {"offsets": [0, 10, 100]}], "item": 2, "fill": [0, 0],
//!  "key": ["a/c/", {"axis": 0}, "/", {"axis": 1, "width": 0, "group": 0}], "codecs": [{"name": "bytes"}],
//!  "store": {"kind": "local", "root": "/data", "path": "a"}, "write_empty_chunks": false, "read_missing": true,
//!  "durable": false}
//! ```

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::chain::{Chain, integers};
use crate::error::{Error, Result};
use crate::keys::KeyTemplate;
use crate::last_chunk::LastChunk;
use crate::part::{GridAxis, Part};
use crate::replace::NODE_MARK;
use crate::store::{Local, has_coarse_times};

pub enum Store {
    Local(PathBuf),
    /// Python sends the requests.
    Python(PythonStore),
}

/// How to request values from a store that Python serves.
#[derive(Clone, Debug)]
pub struct PythonStore {
    /// Largest gap, in bytes, between ranges that are coalesced.
    pub gap: u64,
    /// A request costs a round trip.
    pub remote: bool,
    /// Scope of the keys in the cache; `None`: nothing is cached.
    pub place: Option<String>,
}

impl PythonStore {
    pub const IN_PROCESS: PythonStore = PythonStore { gap: 4 << 10, remote: false, place: None };

    /// The name under which the cache keeps the value of `key`.
    pub fn name(&self, key: &str) -> Option<OsString> {
        Some(format!("{}\0{key}", self.place.as_ref()?).into())
    }

    fn from_json(json: &Value) -> PythonStore {
        PythonStore {
            gap: json["gap"].as_u64().unwrap_or(PythonStore::IN_PROCESS.gap),
            remote: json["remote"].as_bool().unwrap_or(false),
            place: json["place"].as_str().map(str::to_owned),
        }
    }
}

pub struct Array {
    pub shape: Vec<usize>,
    pub grid_axes: Vec<GridAxis>,
    pub item: usize,
    pub fill: Vec<u8>,
    pub store: Store,
    pub write_empty: bool,
    /// An update never removes a value: that could remove the value of a concurrent writer.
    pub keep_updated: bool,
    /// Replace chunks that the end of the array cuts, whatever lies beyond it.
    pub replace_cut: bool,
    pub read_missing: bool,
    pub durable: bool,
    /// File times are too coarse to detect that a value was replaced.
    pub coarse: AtomicBool,
    /// The file that transactions mark while they change chunks of the array.
    pub mark: PathBuf,
    key: KeyTemplate,
    codecs: Value,
    /// The chain of all chunks, if they have one shape.
    uniform: Option<Arc<Chain>>,
    chains: Mutex<HashMap<Vec<usize>, Arc<Chain>>>,
    /// The chunk of the element that was read last.
    pub last: Mutex<Option<Arc<LastChunk>>>,
    /// The file of extents that was opened last.
    pub last_file: Mutex<Option<Arc<Local>>>,
}

fn unsupported(what: impl Into<String>) -> Error {
    Error::new("unsupported", what)
}

fn text(json: &Value, name: &str) -> Result<String> {
    let found = json[name].as_str().map(str::to_owned);
    found.ok_or_else(|| unsupported(format!("the binding has no text {name:?}")))
}

fn parse_axis(json: &Value) -> Result<GridAxis> {
    if let Some(size) = json["size"].as_u64() {
        return match usize::try_from(size) {
            Ok(size) if size > 0 => Ok(GridAxis::Regular(size)),
            _ => Err(unsupported("a chunk length out of range")),
        };
    }
    let offsets = integers(&json["offsets"], "offsets")?;
    if offsets.first() != Some(&0) || !offsets.is_sorted() {
        return Err(unsupported("chunk offsets that do not rise from 0"));
    }
    Ok(GridAxis::Offsets(Arc::new(offsets)))
}

impl Array {
    pub fn from_json(text_: &str) -> Result<Array> {
        let json: Value = serde_json::from_str(text_).map_err(|error| unsupported(format!("the binding: {error}")))?;
        let shape = integers(&json["shape"], "shape")?;
        let axes = json["axes"].as_array().ok_or_else(|| unsupported("the binding has no axes"))?;
        let grid_axes = axes.iter().map(parse_axis).collect::<Result<Vec<_>>>()?;
        if grid_axes.len() != shape.len() {
            return Err(unsupported("the grid has another number of axes than the array"));
        }
        for (axis, &n) in grid_axes.iter().zip(&shape) {
            if let GridAxis::Offsets(at) = axis
                && at.last().is_none_or(|&end| end < n)
            {
                return Err(unsupported("the grid does not cover the array"));
            }
        }
        let fill = integers(&json["fill"], "fill")?.into_iter().map(|byte| byte as u8).collect::<Vec<_>>();
        let item = json["item"].as_u64().map_or(0, |n| n as usize);
        let store = match json["store"]["kind"].as_str() {
            Some("local") => Store::Local(PathBuf::from(text(&json["store"], "root")?)),
            Some("python") => Store::Python(PythonStore::from_json(&json["store"])),
            _ => return Err(unsupported("a store of an unknown kind")),
        };
        let key = KeyTemplate::from_json(&json["key"], shape.len())?;
        let mark = match &store {
            Store::Local(root) => root.join(text(&json["store"], "path")?).join(NODE_MARK),
            Store::Python(_) => PathBuf::new(),
        };
        let coarse = matches!(&store, Store::Local(root) if has_coarse_times(root));
        let flag = |name: &str, default| json[name].as_bool().unwrap_or(default);
        let mut array = Array {
            shape,
            grid_axes,
            item,
            fill,
            store,
            write_empty: flag("write_empty_chunks", false),
            keep_updated: flag("keep_updated_chunks", false),
            replace_cut: flag("replace_cut_chunks", false),
            read_missing: flag("read_missing", true),
            durable: flag("durable", false),
            coarse: AtomicBool::new(coarse),
            mark,
            key,
            codecs: json["codecs"].clone(),
            uniform: None,
            chains: Mutex::default(),
            last: Mutex::default(),
            last_file: Mutex::default(),
        };
        // Bind now, so that an unsupported chain is refused when the array is opened.
        let first = array.chunk_shape(&vec![0; array.shape.len()]);
        let chain = array.chain(&first)?;
        if array.grid_axes.iter().all(|axis| matches!(axis, GridAxis::Regular(_))) {
            array.uniform = Some(chain);
        }
        Ok(array)
    }

    pub fn chunk_shape(&self, coords: &[usize]) -> Vec<usize> {
        self.grid_axes
            .iter()
            .zip(coords)
            .map(|(axis, &i)| match axis {
                GridAxis::Offsets(at) if at.len() < 2 => 1,
                axis => axis.interval(i).1,
            })
            .collect()
    }

    /// The chain of the chunk at `coords`.
    pub fn chain_at(&self, coords: &[usize]) -> Result<Arc<Chain>> {
        match &self.uniform {
            Some(chain) => Ok(chain.clone()),
            None => self.chain(&self.chunk_shape(coords)),
        }
    }

    fn chain(&self, shape: &[usize]) -> Result<Arc<Chain>> {
        // Never blocks: in a forked child, a thread of the parent may hold the lock forever.
        if let Ok(chains) = self.chains.try_lock()
            && let Some(chain) = chains.get(shape)
        {
            return Ok(chain.clone());
        }
        let chain = Arc::new(Chain::bind(&self.codecs, shape, self.item, &self.fill)?);
        if let Ok(mut chains) = self.chains.try_lock() {
            chains.insert(shape.to_vec(), chain.clone());
        }
        Ok(chain)
    }

    /// The store key of the chunk at `coords`.
    pub fn key(&self, coords: &[usize]) -> String {
        self.key.spell(coords)
    }

    /// The file of a key, for local stores.
    pub fn path(&self, key: &str) -> Option<Arc<Path>> {
        match &self.store {
            Store::Local(root) => Some(root.join(key).into()),
            Store::Python(_) => None,
        }
    }

    /// Return the lengths of the part of the chunk at `coords` that lies inside the array.
    pub fn inside(&self, coords: &[usize]) -> Vec<usize> {
        let intervals = self.grid_axes.iter().zip(coords).map(|(axis, &i)| axis.interval(i));
        intervals.zip(&self.shape).map(|((start, size), &n)| size.min(n.saturating_sub(start))).collect()
    }

    /// Whether `part`, all that is written of the chunk at `coords`, replaces the chunk.
    pub fn is_replaced(&self, coords: &[usize], part: &Part) -> bool {
        let lengths: Vec<_> = self.grid_axes.iter().zip(coords).map(|(axis, &i)| axis.interval(i).1).collect();
        part.covers(&lengths) || self.replace_cut && part.covers(&self.inside(coords))
    }
}
