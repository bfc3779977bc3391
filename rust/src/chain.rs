//! A codec chain bound to chunks of one shape.

use serde_json::Value;

use crate::cache::{self, CacheKey};
use crate::codecs::Codec;
use crate::error::{Error, Result};
use crate::part::{GridAxis, Plan, strides};

/// A byte swap between stored and memory order: `count` values of `unit` bytes at `offset` of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swap {
    pub offset: usize,
    pub unit: usize,
    pub count: usize,
}

#[derive(Debug)]
pub enum ArrayToBytes {
    Bytes { swap: Vec<Swap>, boolean: bool },
    Shard(Box<Shard>),
}

/// The physical order of inner chunks in a new shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// In files as threads finish them, otherwise lexicographic.
    Any,
    Lexicographic,
    Colexicographic,
    /// By the interleaved bits of the coordinates; those of the first axis are the lowest.
    Morton,
}

/// The sharding codec, bound.
#[derive(Debug)]
pub struct Shard {
    pub inner: Chain,
    /// Inner chunks per axis.
    pub grid: Vec<usize>,
    pub grid_axes: Vec<GridAxis>,
    index: Chain,
    pub index_nbytes: usize,
    pub at_start: bool,
    pub write_order: WriteOrder,
}

/// A chain for chunks of one shape.
#[derive(Debug)]
pub struct Chain {
    pub item: usize,
    pub fill: Vec<u8>,
    /// Shape as the array sees it.
    pub shape: Vec<usize>,
    /// Axis i as stored is axis `order[i]` of the chunk; `None` when they are the same.
    pub order: Option<Vec<usize>>,
    pub stored_shape: Vec<usize>,
    pub stored_strides: Vec<isize>,
    pub nbytes: usize,
    pub serializer: ArrayToBytes,
    /// bytes → bytes codecs in encoding order, each with the size of its input.
    pub after: Vec<(Codec, usize)>,
    /// Exact stored size, where it does not depend on the data.
    pub encoded_size: Option<usize>,
    /// The number of this chain's description (`cache::layout`).
    layout: u32,
}

fn unsupported(what: impl Into<String>) -> Error {
    Error::new("unsupported", what)
}

pub fn product(shape: &[usize], item: usize) -> Result<usize> {
    let n = shape.iter().try_fold(item, |n, &m| n.checked_mul(m)).filter(|&n| n <= isize::MAX as usize);
    n.ok_or_else(|| unsupported("a chunk is too large for memory"))
}

pub fn integers(json: &Value, what: &str) -> Result<Vec<usize>> {
    let list = json.as_array().ok_or_else(|| unsupported(format!("{what} is not a list")))?;
    let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
    let numbers: Option<Vec<usize>> = list.iter().map(number).collect();
    numbers.ok_or_else(|| unsupported(format!("{what} holds values other than non-negative integers")))
}

fn parse_swap(json: &Value, item: usize) -> Result<Vec<Swap>> {
    let Some(list) = json.as_array() else { return Ok(Vec::new()) };
    let mut swaps = Vec::new();
    for entry in list {
        let numbers = integers(entry, "swap")?;
        let &[offset, unit, count] = &numbers[..] else { return Err(unsupported("a swap is not three numbers")) };
        let end = unit.checked_mul(count).and_then(|n| n.checked_add(offset));
        if unit == 0 || end.is_none_or(|end| end > item) {
            return Err(unsupported("a swap lies outside the element"));
        }
        swaps.push(Swap { offset, unit, count });
    }
    Ok(swaps)
}

const MAX_DEPTH: usize = 16;

/// Chunks of fewer bytes are decoded and encoded at once.
const LARGE: usize = 1 << 20;

impl Chain {
    /// The first axis with several positions, and the bytes at each (a row), of a large chunk with many.
    pub fn rows(&self) -> Option<(usize, usize)> {
        let axis = self.stored_shape.iter().position(|&n| n > 1)?;
        let row = self.stored_strides[axis] as usize;
        (self.nbytes >= LARGE && row <= LARGE).then_some((axis, row))
    }

    /// Bind the chain that `codecs` (a JSON list of v3 codec objects) describes to chunks of `shape`.
    pub fn bind(codecs: &Value, shape: &[usize], item: usize, fill: &[u8]) -> Result<Chain> {
        let layout = cache::layout(format!("{item} {shape:?} {codecs}"));
        Chain::bind_at(codecs, shape, item, fill, (layout, 0))
    }

    fn bind_at(codecs: &Value, shape: &[usize], item: usize, fill: &[u8], at: (u32, usize)) -> Result<Chain> {
        let (layout, depth) = at;
        let list = codecs.as_array().ok_or_else(|| unsupported("the codecs are not a list"))?;
        if depth > MAX_DEPTH || list.len() > 64 || shape.len() > 64 {
            return Err(unsupported("the codec chain is too deep or too long"));
        }
        if item == 0 || fill.len() != item {
            return Err(unsupported("elements have no size, or the fill value has another"));
        }
        let nbytes = product(shape, item)?;
        let mut order: Vec<usize> = (0..shape.len()).collect();
        let mut serializer = None;
        let mut after = Vec::new();
        let mut size = None;
        for codec in list {
            let name = codec.get("name").and_then(Value::as_str).ok_or_else(|| unsupported("a codec has no name"))?;
            let configuration = codec.get("configuration").unwrap_or(&Value::Null);
            match (name, &serializer) {
                ("transpose", None) => {
                    let axes = integers(&configuration["order"], "order")?;
                    let mut sorted = axes.clone();
                    sorted.sort_unstable();
                    if sorted != (0..shape.len()).collect::<Vec<_>>() {
                        return Err(unsupported("the transpose order is not a permutation of the axes"));
                    }
                    order = axes.iter().map(|&axis| order[axis]).collect();
                }
                ("bytes", None) => {
                    let swap = parse_swap(&configuration["swap"], item)?;
                    let boolean = configuration["boolean"].as_bool().unwrap_or(false);
                    serializer = Some(ArrayToBytes::Bytes { swap, boolean });
                    size = Some(nbytes);
                }
                ("sharding_indexed", None) => {
                    let stored: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
                    serializer =
                        Some(ArrayToBytes::Shard(Box::new(Shard::bind(configuration, &stored, item, fill, at)?)));
                }
                (_, None) => return Err(unsupported(format!("the codec '{name}'"))),
                (_, Some(_)) => {
                    let codec = Codec::from_json(name, configuration)?
                        .ok_or_else(|| unsupported(format!("the codec '{name}'")))?;
                    let given = size.ok_or_else(|| {
                        unsupported(format!("the codec '{name}' after one whose output has no fixed size"))
                    });
                    // After a compressor, sizes are computed backwards only for codecs that keep or add to the size.
                    let given = match (given, after.last()) {
                        (Ok(n), _) => n,
                        (Err(error), None) => return Err(error),
                        (Err(_), Some(_)) => usize::MAX,
                    };
                    size = if given == usize::MAX { None } else { codec.encoded_size(given) };
                    after.push((codec, given));
                }
            }
        }
        let serializer = serializer.ok_or_else(|| unsupported("a chain without an array → bytes codec"))?;
        check_sizes(&after)?;
        let stored_shape: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let stored_strides = strides(&stored_shape, item);
        let order = (!order.is_sorted()).then_some(order);
        let (shape, fill) = (shape.to_vec(), fill.to_vec());
        let encoded_size = size;
        Ok(Chain {
            item,
            fill,
            shape,
            order,
            stored_shape,
            stored_strides,
            nbytes,
            serializer,
            after,
            encoded_size,
            layout,
        })
    }

    /// The cache key of the chunk at `offset` of a stored value.
    pub fn cache_key(&self, offset: u64) -> CacheKey {
        CacheKey { offset, layout: self.layout, index: false }
    }

    /// The cache key of the index of the shard at `offset` of a stored value.
    pub fn index_cache_key(&self, offset: u64) -> CacheKey {
        CacheKey { index: true, ..self.cache_key(offset) }
    }

    /// Whether chunks are stored without shard and bytes → bytes codecs.
    pub fn is_raw(&self) -> bool {
        matches!(&self.serializer, ArrayToBytes::Bytes { .. }) && self.after.is_empty()
    }

    /// Whether stored bytes equal the elements in memory.
    pub fn is_plain(&self) -> bool {
        matches!(&self.serializer, ArrayToBytes::Bytes { swap, boolean: false } if swap.is_empty())
    }
}

/// After a compressor, sizes are unknown; only checksums, which are located from the end, can be decoded there.
fn check_sizes(after: &[(Codec, usize)]) -> Result<()> {
    for (codec, size) in after {
        if *size == usize::MAX && !matches!(codec, Codec::Checksum(_)) {
            return Err(unsupported(format!("the codec '{}' after a compressor", codec.name())));
        }
    }
    Ok(())
}

impl Shard {
    fn bind(json: &Value, stored: &[usize], item: usize, fill: &[u8], at: (u32, usize)) -> Result<Shard> {
        let shape = integers(&json["chunk_shape"], "chunk_shape")?;
        let divides = shape.iter().zip(stored).all(|(&m, &n)| m > 0 && n % m == 0);
        if shape.len() != stored.len() || !divides {
            return Err(unsupported("an inner chunk shape that does not divide the shard shape"));
        }
        let grid: Vec<usize> = stored.iter().zip(&shape).map(|(n, m)| n / m).collect();
        let inside = (at.0, at.1 + 1);
        let inner = Chain::bind_at(&json["codecs"], &shape, item, fill, inside)?;
        let mut index_shape = grid.clone();
        index_shape.push(2);
        let index = Chain::bind_at(&json["index_codecs"], &index_shape, 8, &[0xff; 8], inside)?;
        let index_nbytes = index.encoded_size.ok_or_else(|| unsupported("index codecs without a fixed size"))?;
        let at_start = json["index_location"].as_str() == Some("start");
        let grid_axes = shape.iter().map(|&n| GridAxis::Regular(n)).collect();
        let write_order = match json["write_order"].as_str() {
            Some("lexicographic") => WriteOrder::Lexicographic,
            Some("colexicographic") => WriteOrder::Colexicographic,
            Some("morton") => WriteOrder::Morton,
            _ => WriteOrder::Any,
        };
        Ok(Shard { inner, grid, grid_axes, index, index_nbytes, at_start, write_order })
    }

    /// The chain of the index itself.
    pub fn index_chain(&self) -> &Chain {
        &self.index
    }

    /// The number of the inner chunk at `coords`.
    pub fn number(&self, coords: &[usize]) -> usize {
        coords.iter().zip(&self.grid).fold(0, |n, (&i, &m)| n * m + i)
    }

    /// The numbers of the parts of `plan`, in the order in which their inner chunks are written.
    pub fn in_write_order(&self, plan: &Plan) -> Vec<usize> {
        let mut order: Vec<usize> = (0..plan.len()).collect();
        match self.write_order {
            WriteOrder::Any | WriteOrder::Lexicographic => {}
            WriteOrder::Colexicographic => {
                order.sort_by_cached_key(|&number| plan.coords(number).into_iter().rev().collect::<Vec<_>>());
            }
            WriteOrder::Morton => order.sort_by_cached_key(|&number| self.morton(&plan.coords(number))),
        }
        order
    }

    fn morton(&self, coords: &[usize]) -> u128 {
        let (mut key, mut position) = (0, 0);
        for bit in 0..usize::BITS {
            for (&index, &n) in coords.iter().zip(&self.grid).filter(|&(_, &n)| (n - 1) >> bit != 0) {
                debug_assert!(index < n);
                key |= ((index >> bit & 1) as u128) << position;
                position += 1;
            }
        }
        key
    }
}
