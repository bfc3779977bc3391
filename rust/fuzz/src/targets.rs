//! What is fuzzed: every decoder, the shard parser, chunks of whole chains, and the description of arrays.
//!
//! A target has members, each a decoder or a chain of them; the first byte of an input chooses the member. Seeds are
//! made by our own encoders. A codec that only needs its seeds decoded is one name in `codecs`. `src/main.rs` runs
//! targets under libFuzzer, `tests/fuzz.rs` under a plain mutator in every test run.

use _native::array::Array;
use _native::chain::{ArrayToBytes, Chain};
use _native::codecs::{Codec, blosc, zstd_prefix};
use _native::decode::{self, ReadOptions};
use _native::encode::{WriteOptions, merge};
use _native::part::{AxisSelection, Part, strides};
use _native::region::Memory;
use _native::store::Source;
use _native::vlen;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub type Seeds = Vec<Vec<u8>>;
type Make = fn() -> Vec<Member>;
type Run = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Seeds and inputs are without the byte that chooses.
pub struct Member {
    pub name: String,
    pub seeds: Seeds,
    pub run: Run,
}

pub struct Target {
    pub members: Vec<Member>,
}

impl Target {
    /// The number of the member that an input is for.
    pub fn number(&self, input: &[u8]) -> Option<usize> {
        Some(usize::from(*input.first()?) % self.members.len())
    }
}

const TARGETS: &[(&str, Make)] =
    &[("codecs", codecs), ("blosc", blosc_frames), ("chunk", chunk), ("shard", shard), ("description", description)];

pub fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(name, _)| *name)
}

pub fn target(wanted: &str) -> Option<Target> {
    let (_, make) = TARGETS.iter().find(|(name, _)| *name == wanted)?;
    Some(Target { members: make() })
}

/// The inputs that are kept of a target (`tests/fixtures/fuzz`), by member, without the byte that chooses it.
pub fn kept(folder: &Path, name: &str) -> BTreeMap<String, Seeds> {
    let Ok(text) = fs::read_to_string(folder.join(format!("native-{name}.json"))) else { return BTreeMap::new() };
    let all: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).expect("members with lists of texts");
    all.into_iter().map(|(member, inputs)| (member, inputs.iter().map(|text| bytes(text)).collect())).collect()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let pairs = hexadecimal.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("hexadecimal digits")).collect()
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

fn codecs() -> Vec<Member> {
    let streams = ["zstd", "lz4", "gzip", "zlib", "bz2", "shuffle"];
    let checksums = ["fletcher32", "crc32c", "crc32", "adler32", "jenkins_lookup3"];
    let extensions = extensions().into_iter().enumerate().map(|(number, (name, configuration, size))| {
        stream(format!("{name}-{number}"), made(name, configuration), size)
    });
    streams
        .into_iter()
        .chain(checksums)
        .map(decoder)
        .chain(filters())
        .chain([vlen_elements()])
        .chain(extensions)
        .collect()
}

/// Codecs of the registry's extensions.
fn extensions() -> Vec<(&'static str, Value, Option<usize>)> {
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let zfp = |element: &str, size: usize, mode: Value| {
        let mut configuration = json!({"element": element, "shape": [4, 8]});
        configuration.as_object_mut().unwrap().extend(mode.as_object().unwrap().clone());
        ("zfp", configuration, Some(32 * size))
    };
    vec![
        zfp("u1", 1, json!({"mode": "reversible"})),
        zfp("f4", 4, json!({"mode": "reversible"})),
        zfp("f8", 8, json!({"mode": "fixed_precision", "precision": 20})),
        zfp("i8", 8, json!({"mode": "expert", "minbits": 1, "maxbits": 4000, "maxprec": 64, "minexp": -1075})),
        ("n5_default", json!({"shape": [4, 4], "item": 2, "fill": [0, 0], "codecs": []}), Some(32)),
        ("n5_default", json!({"shape": [4, 4], "item": 2, "fill": [0, 0], "codecs": [gzip]}), Some(32)),
        ("conditional", json!({"codecs": [gzip, {"name": "crc32c"}], "header_bytes": 1}), None),
        ("lz4java", json!({}), None),
        ("lzw", json!({}), None),
        ("pad", json!({"location": "start", "padding": [1, 2, 3]}), None),
    ]
}

/// A codec that is given any size to decode to; it encodes chunks of `size` bytes only, where that is stated.
fn stream(name: String, codec: Codec, size: Option<usize>) -> Member {
    let one = |n: usize| {
        let mut seed = Vec::new();
        codec.encode(&(0..n).map(|i| (i % 7) as u8).collect::<Vec<u8>>(), &mut seed).expect("a chunk can be encoded");
        vec![sized(n, &seed)]
    };
    let seeds = size.map_or_else(|| encoded(&codec), one);
    let run = move |input: &[u8]| {
        let Some((n, data)) = split(input) else { return };
        if codec.check_plausible(data, n).is_ok() {
            let _ = codec.decode_into(data, &mut vec![0; n]);
        }
    };
    Member { name, seeds, run: Box::new(run) }
}

/// A codec of one stream.
fn decoder(name: &str) -> Member {
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
    Member { name: name.into(), seeds, run: Box::new(run) }
}

/// A chunk of elements of varying length, after the number that is expected.
fn vlen_elements() -> Member {
    let stored = |items: &[&str]| {
        let item = |item: &&str| [&(item.len() as u32).to_le_bytes()[..], item.as_bytes()].concat();
        let chunk = [(items.len() as u32).to_le_bytes().to_vec(), items.iter().flat_map(item).collect()].concat();
        sized(items.len(), &chunk)
    };
    let long = "long ".repeat(60);
    let seeds =
        vec![stored(&["gene", "", "čeština"]), stored(&["a\0", "日本", &long]), stored(&["x"; 40]), stored(&[])];
    let run = |input: &[u8]| {
        let Some((n, chunk)) = split(input) else { return };
        let Some(mut elements) = vlen::Elements::new(chunk, n) else { return };
        let found: Vec<&[u8]> = std::iter::from_fn(|| elements.take()).take(n).collect();
        let size = 4 + found.iter().map(|item| item.len() + 4).sum::<usize>();
        assert!(size <= chunk.len(), "elements reach past the end");
        if found.len() == n && elements.is_empty() {
            let head = |n: usize| (n as u32).to_le_bytes();
            let again = found.iter().flat_map(|item| [&head(item.len()), *item].concat());
            assert!(head(n).into_iter().chain(again).eq(chunk.iter().copied()), "another chunk has these elements");
        }
    };
    Member { name: "vlen".into(), seeds, run: Box::new(run) }
}

fn blosc_frames() -> Vec<Member> {
    ["blosclz", "lz4", "zstd", "snappy", "zlib"].into_iter().map(blosc_frame).collect()
}

fn blosc_frame(cname: &str) -> Member {
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
    Member { name: cname.into(), seeds, run: Box::new(run) }
}

/// Filters over numbers: the input is taken for what they decode and for what they encode.
fn filters() -> Vec<Member> {
    let packing = |width: u32, first: u32, last: u32, padding: &str| {
        json!({"width": width, "first": first, "last": last, "nbits": 8 * width, "signed": true,
            "padding_encoding": padding})
    };
    let all = [
        ("filter.delta", json!({"decoded": "<i2", "encoded": "<i2"})),
        ("filter.delta", json!({"decoded": ">u4", "encoded": "<i8"})),
        ("filter.delta", json!({"decoded": "<f4", "encoded": ">f4"})),
        ("filter.quantize", json!({"decoded": "<f4", "encoded": ">f4", "scale_bits": 128f64.to_bits()})),
        ("filter.quantize", json!({"decoded": ">f8", "encoded": ">f8", "scale_bits": 0.25f64.to_bits()})),
        ("filter.astype", json!({"decoded": "<i8", "encoded": "|u1"})),
        ("filter.astype", json!({"decoded": ">u2", "encoded": "<i4"})),
        ("filter.bitround", json!({"size": 2, "mantissa": 10, "drop": 3})),
        ("filter.bitround_integer", json!({"decoded": "<i8", "keepbits": 3})),
        ("filter.packbits", json!({})),
        ("filter.packbits", packing(8, 3, 63, "first_byte")),
        ("filter.packbits", packing(2, 0, 10, "last_byte")),
        ("filter.swap", json!({"unit": 8})),
    ];
    all.into_iter().enumerate().map(|(number, (name, configuration))| filter(number, name, &configuration)).collect()
}

fn filter(number: usize, name: &str, configuration: &Value) -> Member {
    let codec = made(name, configuration.clone());
    let run = move |input: &[u8]| {
        let Some((n, data)) = split(input) else { return };
        let _ = codec.decode_into(data, &mut vec![0; n]);
        let mut made = Vec::new();
        if codec.encode(data, &mut made).is_ok() {
            assert_eq!(Some(made.len()), codec.encoded_size(data.len()), "{codec:?}");
            let _ = codec.decode_into(&made, &mut vec![0; data.len()]);
        }
    };
    let seeds = samples().iter().map(|data| sized(data.len(), data)).collect();
    Member { name: format!("{name}-{number}"), seeds, run: Box::new(run) }
}

// -- chunks and shards -----------------------------------------------------------------------------------------------

fn everything(shape: &[usize]) -> Part {
    let strides = strides(shape, 2);
    let axes = shape.iter().zip(strides);
    Part::Box(axes.map(|(&n, stride)| AxisSelection::Range { start: 0, step: 1, n, out: 0, stride }).collect())
}

/// Some of a chunk whose sides are 9 at least: a strided box, lists, or points. The output has room for 64 elements.
fn some(which: u8, ndim: usize) -> Part {
    match which % 3 {
        0 => Part::Box(
            (0..ndim).map(|i| AxisSelection::Range { start: i, step: 2, n: 3, out: 0, stride: 2 << (2 * i) }).collect(),
        ),
        1 => Part::Box((0..ndim).map(|i| AxisSelection::list(&[8, 0, 0, 5], 2 << (2 * i)).expect("memory")).collect()),
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
    let source = Source::Read(input);
    let part = some(which, chain.shape.len());
    let whole = decode::read(chain, source, &everything(&chain.shape), ReadOptions { out: all, keep: false });
    let _ = decode::read(chain, source, &part, ReadOptions { out: few, keep: true });
    let mut merged = Vec::new();
    let how = WriteOptions { value: few, keep_empty: which & 64 > 0 };
    let stored = merge(chain, Some(source), &part, how, &mut merged);
    if whole.is_ok() && matches!(stored, Ok(true)) {
        // What is made of a readable chunk is readable.
        let how = ReadOptions { out: all, keep: false };
        assert!(decode::read(chain, Source::Read(&merged), &everything(&chain.shape), how).is_ok(), "merged badly");
    }
}

/// A chain: the first byte tells what is read.
fn member(name: String, chain: Chain) -> Member {
    let value = room(samples()[0].iter().copied().cycle().take(chain.nbytes).collect());
    let rooms = (value, room(vec![7; 128]));
    let seed = |which| {
        let how = WriteOptions { value, keep_empty: false };
        let mut seed = vec![which];
        assert!(merge(&chain, None, &everything(&chain.shape), how, &mut seed).expect("a chunk"));
        seed
    };
    let seeds = (0..3).map(seed).collect();
    let run = move |input: &[u8]| {
        if let [which, data @ ..] = input {
            read_and_update(&chain, data, *which, rooms);
        }
    };
    Member { name, seeds, run: Box::new(run) }
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
fn shard() -> Vec<Member> {
    let mut all = Vec::new();
    for location in ["start", "end"] {
        for (check, index) in
            [("unchecked", json!([{"name": "bytes"}])), ("checked", json!([{"name": "bytes"}, {"name": "crc32c"}]))]
        {
            for (size, inner) in
                [("fixed", json!([{"name": "bytes"}])), ("any-size", json!([{"name": "bytes"}, {"name": "zstd"}]))]
            {
                let flat = sharding(&[4, 4], location, inner.clone(), index.clone());
                all.push(member(format!("{location}-{check}-{size}"), bound(&flat, &[16, 16])));
                let inside = sharding(&[3, 3], location, inner, index.clone());
                let nested = sharding(&[6, 6], location, inside, index.clone());
                all.push(member(format!("{location}-{check}-{size}-nested"), bound(&nested, &[12, 12])));
            }
        }
    }
    all
}

/// Chunks that went through several codecs, transposed and byte-swapped; large enough to be decoded in part.
fn chunk() -> Vec<Member> {
    let swapped = json!({"name": "bytes", "configuration": {"swap": [[0, 2, 1]]}});
    let turned = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 4096}});
    let named = |name: &str| json!({"name": name, "configuration": {"elementsize": 2}});
    let delta = json!({"name": "filter.delta", "configuration": {"decoded": ">i2", "encoded": "<i2"}});
    let all = [
        ("turned-swapped-blosc", json!([turned, swapped, blosc]), [256, 256]),
        ("swapped-blosc-crc32c", json!([swapped, blosc, named("crc32c")]), [256, 256]),
        ("swapped-zstd", json!([swapped, named("zstd")]), [256, 256]),
        ("turned-swapped-zstd-adler32", json!([turned, swapped, named("zstd"), named("adler32")]), [20, 30]),
        ("swapped-shuffle-zlib-crc32", json!([swapped, named("shuffle"), named("zlib"), named("crc32")]), [20, 30]),
        ("turned-swapped", json!([turned, swapped]), [9, 11]),
        ("turned-swapped-delta-zlib", json!([turned, swapped, delta, named("zlib")]), [20, 30]),
    ];
    all.into_iter().map(|(name, codecs, shape)| member(name.into(), bound(&codecs, &shape))).collect()
}

// -- the description of arrays ---------------------------------------------------------------------------------------

fn description() -> Vec<Member> {
    let named = |name: &str| json!({"name": name, "configuration": {"level": 1, "elementsize": 2}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "zstd", "clevel": 5, "shuffle": "bitshuffle", "typesize": 2, "blocksize": 0}});
    let seeds: Seeds = [
        json!([{"name": "bytes", "configuration": {"swap": [[0, 2, 1]], "boolean": false}}, named("gzip")]),
        json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}, blosc, named("crc32c")]),
        sharding(&[16, 16], "start", json!([{"name": "bytes"}, named("lz4")]), json!([{"name": "bytes"}])),
        json!([{"name": "bytes"}, {"name": "filter.delta", "configuration": {"decoded": "<i2", "encoded": ">i4"}}]),
        json!([{"name": "bytes"}, {"name": "filter.quantize",
            "configuration": {"decoded": "<f4", "encoded": "<f4", "scale_bits": 4_620_693_217_682_128_896u64}}]),
        json!([{"name": "bytes"}, {"name": "filter.packbits", "configuration": {"width": 2, "last": 3, "nbits": 16}}]),
    ]
    .into_iter()
    .map(|codecs| {
        json!({"shape": [100, 100], "axes": [{"size": 64}, {"offsets": [0, 64, 128]}], "item": 2, "fill": [0, 0],
            "key": ["a/c/", {"axis": 0}, "/", {"axis": 1, "width": 3}], "codecs": codecs,
            "store": {"kind": "local", "root": "/nowhere", "path": "a"}})
        .to_string()
        .into_bytes()
    })
    .collect();
    for seed in &seeds {
        Array::from_json(&String::from_utf8_lossy(seed)).map(drop).expect("a description");
    }
    let run = |input: &[u8]| {
        if let Ok(array) = Array::from_json(&String::from_utf8_lossy(input)) {
            let origin = vec![0; array.shape.len()];
            let _ = (array.key(&origin), array.inside(&origin));
            let Ok(chain) = array.chain_at(&origin) else { return };
            if let ArrayToBytes::Shard(shard) = &chain.serializer {
                let _ = shard.number(&vec![0; shard.grid.len()]);
            }
        }
    };
    vec![Member { name: "description".into(), seeds, run: Box::new(run) }]
}
