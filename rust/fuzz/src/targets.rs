//! What is fuzzed: every decoder, the shard parser, chunks of whole chains, and the description of arrays.
//!
//! A target is one line of `TARGETS`: its name and what makes its seeds and its function. A codec that only needs its
//! seeds decoded is `("name", decoder)`. Seeds are made by our own encoders. `src/main.rs` runs targets under
//! libFuzzer, `tests/fuzz.rs` under a plain mutator in every test run.

use std::sync::Arc;

use _native::array::Array;
use _native::chain::{Chain, Middle};
use _native::codecs::{Codec, blosc, zstd_prefix};
use _native::decode::{self, Reading};
use _native::encode::{Writing, merge};
use _native::part::{Ax, Part, strides};
use _native::region::Memory;
use _native::store::{Held, Object, Source};
use serde_json::{Value, json};

type Seeds = Vec<Vec<u8>>;
type Run = Box<dyn Fn(&[u8]) + Send + Sync>;
type Make = fn(&str) -> (Seeds, Run);

pub struct Target {
    pub seeds: Seeds,
    pub run: Run,
}

/// By risk: code that parses offsets and lengths from the data first.
const TARGETS: &[(&str, Make)] = &[
    ("shard", shard),
    ("blosc-blosclz", blosc_frame),
    ("blosc-lz4", blosc_frame),
    ("blosc-zstd", blosc_frame),
    ("blosc-snappy", blosc_frame),
    ("blosc-zlib", blosc_frame),
    ("chunk", chunk),
    ("zstd", decoder),
    ("lz4", decoder),
    ("gzip", decoder),
    ("zlib", decoder),
    ("bz2", decoder),
    ("filters", filters),
    ("description", description),
    ("shuffle", decoder),
    ("fletcher32", decoder),
    ("crc32c", decoder),
    ("crc32", decoder),
    ("adler32", decoder),
    ("jenkins_lookup3", decoder),
];

pub fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(name, _)| *name)
}

pub fn target(wanted: &str) -> Option<Target> {
    let (name, make) = TARGETS.iter().find(|(name, _)| *name == wanted)?;
    let (seeds, run) = make(name);
    Some(Target { seeds, run })
}

// -- what seeds are made of ------------------------------------------------------------------------------------------

/// Values that compress, values that do not, and one value; of few and of many bytes.
fn samples() -> Vec<Vec<u8>> {
    let steps = |n: u32| (0..n).flat_map(|i| ((i / 7 % 90) as u16).to_le_bytes()).collect::<Vec<u8>>();
    let noise = |n: u32| (0..n).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<u8>>();
    vec![steps(4096), steps(24), noise(300), noise(8), vec![0; 6000], Vec::new()]
}

/// Two bytes that tell the decoded size, then the data: so that the size varies too.
fn sized(n: usize, data: &[u8]) -> Vec<u8> {
    [&(n as u16).to_le_bytes()[..], data].concat()
}

fn split(input: &[u8]) -> Option<(usize, &[u8])> {
    let (head, data) = input.split_first_chunk::<2>()?;
    Some((usize::from(u16::from_le_bytes(*head)), data))
}

fn encoded(codec: &Codec) -> Seeds {
    let seed = |data: Vec<u8>| {
        let mut seed = Vec::new();
        codec.encode(&data, &mut seed).expect("samples can be encoded");
        let mut out = vec![0; data.len()];
        codec.decode_into(&seed, &mut out).expect("what was encoded can be decoded");
        assert_eq!(out, data, "{codec:?}");
        sized(data.len(), &seed)
    };
    samples().into_iter().map(seed).collect()
}

fn made(name: &str, configuration: Value) -> Codec {
    Codec::from_json(name, &configuration).ok().flatten().expect("a codec")
}

// -- decoders --------------------------------------------------------------------------------------------------------

/// A codec of one stream.
fn decoder(name: &str) -> (Seeds, Run) {
    let codec = made(name, json!({"level": 1, "elementsize": 2, "checksum": true}));
    let mut seeds = encoded(&codec);
    if name == "zstd" {
        seeds.extend(encoded(&made(name, json!({"level": 3}))));
    }
    let is_zstd = name == "zstd";
    let run = move |input: &[u8]| {
        let Some((n, data)) = split(input) else { return };
        let mut out = vec![0; n];
        let whole = codec.decode_into(data, &mut out).is_ok();
        if is_zstd && n > 0 {
            let prefix = zstd_prefix(data, n, n / 2);
            assert!(!whole || prefix.is_ok_and(|some| some[..] == out[..n / 2]), "a prefix is not that of the whole");
        }
    };
    (seeds, Box::new(run))
}

/// Blosc frames with the codec in the target's name.
fn blosc_frame(name: &str) -> (Seeds, Run) {
    let cname = name.trim_start_matches("blosc-");
    let mut seeds = Vec::new();
    for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
        for (typesize, blocksize) in [(2, 0), (8, 1000), (1, 256), (3, 4096)] {
            let options =
                json!({"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": blocksize});
            seeds.extend(encoded(&made("blosc", options)));
        }
    }
    let run = |input: &[u8]| {
        let Some((n, data)) = split(input) else { return };
        let mut out = vec![0; n];
        let whole = blosc::decode(data, &mut out).is_ok();
        let (start, stop) = (n / 3, n / 3 * 2);
        let part = blosc::decode_part(data, n, start, stop);
        if whole && stop > start {
            let (begin, part) = part.expect("a part of a valid frame");
            assert!(part[start - begin..stop - begin] == out[start..stop], "a part is not that of the whole");
        }
    };
    (seeds, Box::new(run))
}

/// Filters over numbers: the first byte chooses one, the rest is taken for what it decodes and for what it encodes.
fn filters(_: &str) -> (Seeds, Run) {
    let float = |value: f64| json!({"float": value.to_bits()});
    let scaling = |decoded: &str, encoded: &str| {
        json!({"decoded": decoded, "encoded": encoded, "scale": float(10.0), "offset": float(0.5),
            "float_scale": float(10.0), "float_offset": float(0.5)})
    };
    let cast = |decoded: &str, encoded: &str, rounding: &str, outside: Option<&str>| {
        json!({"decoded": decoded, "encoded": encoded, "rounding": rounding, "out_of_range": outside,
            "encode": [], "decode": []})
    };
    let packing = |width: u32, first: u32, last: u32, padding: &str| {
        json!({"width": width, "first": first, "last": last, "nbits": 8 * width, "signed": true,
            "padding_encoding": padding})
    };
    let whole = json!({"decoded": "<i4", "scale": {"bits": 3}, "offset": {"bits": 5}});
    let wide = json!({"decoded": ">i8", "scale": {"bits": u64::MAX}, "offset": {"bits": 1u64 << 63}});
    let all: Vec<Codec> = [
        ("filter.delta", json!({"decoded": "<i2", "encoded": "<i2"})),
        ("filter.delta", json!({"decoded": ">u4", "encoded": "<i8"})),
        ("filter.delta", json!({"decoded": "<f4", "encoded": ">f4"})),
        ("filter.fixedscaleoffset", scaling("<f8", "<i2")),
        ("filter.fixedscaleoffset", scaling("<f4", "|u1")),
        ("filter.fixedscaleoffset", scaling(">i8", "<f4")),
        ("filter.quantize", json!({"decoded": "<f4", "encoded": "<f8", "scale": float(128.0)})),
        ("filter.astype", json!({"decoded": "<f8", "encoded": "<f2"})),
        ("filter.astype", json!({"decoded": "<f4", "encoded": ">u8"})),
        ("filter.scale_offset", whole),
        ("filter.scale_offset", wide),
        ("filter.cast_value", cast("<f8", "|i1", "nearest-even", Some("clamp"))),
        ("filter.cast_value", cast("<i8", "<u4", "towards-zero", Some("wrap"))),
        ("filter.cast_value", cast("<f4", "<i8", "nearest-away", None)),
        ("filter.bitround", json!({"size": 2, "mantissa": 10, "drop": 3})),
        ("filter.bitround_integer", json!({"decoded": "<i8", "keepbits": 3})),
        ("filter.packbits", json!({})),
        ("filter.packbits", packing(8, 3, 63, "first_byte")),
        ("filter.packbits", packing(2, 0, 10, "last_byte")),
        ("filter.swap", json!({"unit": 8})),
    ]
    .into_iter()
    .map(|(name, configuration)| made(name, configuration))
    .collect();
    let mut seeds = Vec::new();
    for number in 0..all.len() {
        seeds.extend(samples().into_iter().map(|data| [&[number as u8][..], &sized(data.len(), &data)].concat()));
    }
    let run = move |input: &[u8]| {
        let Some((&number, input)) = input.split_first() else { return };
        let Some((n, data)) = split(input) else { return };
        let codec = &all[usize::from(number) % all.len()];
        let _ = codec.decode_into(data, &mut vec![0; n]);
        let mut made = Vec::new();
        if codec.encode(data, &mut made).is_ok() {
            assert_eq!(Some(made.len()), codec.encoded_size(data.len()), "{codec:?}");
            let _ = codec.decode_into(&made, &mut vec![0; data.len()]);
        }
    };
    (seeds, Box::new(run))
}

// -- chunks and shards -----------------------------------------------------------------------------------------------

fn everything(shape: &[usize]) -> Part {
    let strides = strides(shape, 2);
    let axes = shape.iter().zip(strides);
    Part::Box(axes.map(|(&n, stride)| Ax::Range { start: 0, step: 1, n, out: 0, stride }).collect())
}

/// Some of a chunk whose sides are 9 at least: a strided box, lists, or points. The output has room for 64 elements.
fn some(which: u8, ndim: usize) -> Part {
    match which % 3 {
        0 => {
            Part::Box((0..ndim).map(|i| Ax::Range { start: i, step: 2, n: 3, out: 0, stride: 2 << (2 * i) }).collect())
        }
        1 => Part::Box((0..ndim).map(|i| Ax::list(&[8, 0, 0, 5], 2 << (2 * i))).collect()),
        _ => {
            Part::Points { ndim, at: (0..5 * ndim).map(|i| i * 7 % 9).collect(), out: (0..5).map(|i| 2 * i).collect() }
        }
    }
}

/// Memory that lives as long as the process; whoever makes it holds it, or it counts as a leak.
fn room(data: Vec<u8>) -> Memory<'static> {
    Memory::of_mut(data.leak())
}

/// Reads all and some of a chunk, and merges into it.
fn read_and_update(chain: &Chain, input: &[u8], which: u8, (all, few): (Memory<'static>, Memory<'static>)) {
    let object = Object::Bytes(Held::Vec(Arc::new(input.to_vec())));
    let source = Source::whole(&object);
    let part = some(which, chain.shape.len());
    let whole = decode::read(chain, source, &everything(&chain.shape), Reading { out: all, keep: false });
    let _ = decode::read(chain, source, &part, Reading { out: few, keep: true });
    let mut merged = Vec::new();
    let how = Writing { value: few, keep_empty: which & 64 > 0 };
    let stored = merge(chain, Some(source), &part, &chain.shape, how, &mut merged);
    if whole.is_ok() && matches!(stored, Ok(true)) {
        // What is made of a readable chunk is readable.
        let object = Object::Bytes(Held::Vec(Arc::new(merged)));
        let how = Reading { out: all, keep: false };
        assert!(decode::read(chain, Source::whole(&object), &everything(&chain.shape), how).is_ok(), "merged badly");
    }
}

/// A target over several chains: the first byte chooses the chain, the second what is read.
fn chains(all: Vec<Chain>) -> (Seeds, Run) {
    let mut seeds = Vec::new();
    let mut rooms = Vec::new();
    for (number, chain) in all.iter().enumerate() {
        let value = room(samples()[0].iter().copied().cycle().take(chain.nbytes).collect());
        for which in 0..3 {
            let how = Writing { value, keep_empty: false };
            let mut seed = vec![number as u8, which];
            assert!(merge(chain, None, &everything(&chain.shape), &chain.shape, how, &mut seed).expect("a chunk"));
            seeds.push(seed);
        }
        rooms.push((value, room(vec![7; 128])));
    }
    let run = move |input: &[u8]| {
        let [number, which, data @ ..] = input else { return };
        let number = usize::from(*number) % all.len();
        read_and_update(&all[number], data, *which, rooms[number]);
    };
    (seeds, Box::new(run))
}

fn bound(codecs: &Value, shape: &[usize]) -> Chain {
    Chain::bind(codecs, shape, 2, &[0, 0]).expect("a chain")
}

fn sharding(chunk: &[usize], location: &str, codecs: Value, index: Value) -> Value {
    json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunk, "index_location": location, "codecs": codecs, "index_codecs": index}}])
}

/// Shards with the index at both ends, with and without its checksum (so that changed indices reach the parser as
/// well), with inner chunks of fixed and of any size, and shards in shards.
fn shard(_: &str) -> (Seeds, Run) {
    let mut all = Vec::new();
    for location in ["start", "end"] {
        for index in [json!([{"name": "bytes"}]), json!([{"name": "bytes"}, {"name": "crc32c"}])] {
            for inner in [json!([{"name": "bytes"}]), json!([{"name": "bytes"}, {"name": "zstd"}])] {
                all.push(bound(&sharding(&[4, 4], location, inner.clone(), index.clone()), &[16, 16]));
                let inside = sharding(&[3, 3], location, inner, index.clone());
                all.push(bound(&sharding(&[6, 6], location, inside, index.clone()), &[12, 12]));
            }
        }
    }
    chains(all)
}

/// Chunks that went through several codecs, transposed and byte-swapped; large enough to be decoded in part.
fn chunk(_: &str) -> (Seeds, Run) {
    let swapped = json!({"name": "bytes", "configuration": {"swap": [[0, 2, 1]]}});
    let turned = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 4096}});
    let named = |name: &str| json!({"name": name, "configuration": {"elementsize": 2}});
    let delta = json!({"name": "filter.delta", "configuration": {"decoded": ">i2", "encoded": "<i2"}});
    let all = [
        (json!([turned, swapped, blosc]), [256, 256]),
        (json!([swapped, blosc, named("crc32c")]), [256, 256]),
        (json!([swapped, named("zstd")]), [256, 256]),
        (json!([turned, swapped, named("zstd"), named("adler32")]), [20, 30]),
        (json!([swapped, named("shuffle"), named("zlib"), named("crc32")]), [20, 30]),
        (json!([turned, swapped]), [9, 11]),
        (json!([turned, swapped, delta, named("zlib")]), [20, 30]),
    ];
    chains(all.into_iter().map(|(codecs, shape)| bound(&codecs, &shape)).collect())
}

// -- the description of arrays ---------------------------------------------------------------------------------------

fn description(_: &str) -> (Seeds, Run) {
    let named = |name: &str| json!({"name": name, "configuration": {"level": 1, "elementsize": 2}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "zstd", "clevel": 5, "shuffle": "bitshuffle", "typesize": 2, "blocksize": 0}});
    let seeds: Seeds = [
        json!([{"name": "bytes", "configuration": {"swap": [[0, 2, 1]], "boolean": false}}, named("gzip")]),
        json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}, blosc, named("crc32c")]),
        sharding(&[16, 16], "start", json!([{"name": "bytes"}, named("lz4")]), json!([{"name": "bytes"}])),
        json!([{"name": "bytes"}, {"name": "filter.cast_value", "configuration": {"decoded": "<i2", "encoded": "<f4",
            "rounding": "nearest-even", "encode": [{"key": 7, "value": [0, 0, 0, 0]}], "decode": []}}]),
        json!([{"name": "bytes"}, {"name": "filter.packbits", "configuration": {"width": 2, "last": 3, "nbits": 16}}]),
    ]
    .into_iter()
    .map(|codecs| {
        json!({"shape": [100, 100], "axes": [{"size": 64}, {"offsets": [0, 64, 128]}], "item": 2, "fill": [0, 0],
            "key": {"prefix": "a/c/", "separator": "/", "empty": "a/c"}, "codecs": codecs,
            "store": {"kind": "local", "root": "/nowhere"}})
        .to_string()
        .into_bytes()
    })
    .collect();
    assert!(seeds.iter().all(|seed| Array::from_json(&String::from_utf8_lossy(seed)).is_ok()));
    let run = |input: &[u8]| {
        if let Ok(array) = Array::from_json(&String::from_utf8_lossy(input)) {
            let origin = vec![0; array.shape.len()];
            let _ = (array.key(&origin), array.inside(&origin));
            let Ok(chain) = array.chain_at(&origin) else { return };
            if let Middle::Shard(shard) = &chain.middle {
                let _ = shard.number(&vec![0; shard.grid.len()]);
            }
        }
    };
    (seeds, Box::new(run))
}
