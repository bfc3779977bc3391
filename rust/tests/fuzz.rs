//! Mutated input for every decoder, the shard parser and the description of arrays: errors are fine, panics are not.
//!
//! `FUZZ_SECONDS=1800 cargo test --release --test fuzz` runs each target that long (default: a moment). Seeds are made
//! here: valid data of every codec, mutated by flips, cuts, insertions, copies and interesting integers. A failure
//! prints the target and the input in hexadecimal.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use _native::array::Array;
use _native::chain::{Chain, Middle};
use _native::codecs::{Codec, blosc, zstd_prefix};
use _native::decode;
use _native::encode::{Writing, merge};
use _native::part::{Ax, Part};
use _native::region::Memory;
use _native::store::{Held, Object, Source};
use serde_json::{Value, json};

/// Xorshift: the same inputs in every run that begins with the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

const INTERESTING: [u64; 12] = [0, 1, 15, 16, 17, 127, 255, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX];

fn mutate(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=random.below(4) {
        let n = data.len();
        let at = random.below(n);
        match random.below(7) {
            0 if n > 0 => data[at] ^= 1 << random.below(8),
            1 if n > 0 => data[at] = random.next() as u8,
            2 => data.truncate(at),
            3 => data.insert(at.min(n), random.next() as u8),
            4 if n > 0 => {
                let piece = data[at..(at + random.below(40)).min(n)].to_vec();
                let to = random.below(n);
                data.splice(to..to, piece);
            }
            5 if n > 8 => {
                let value = INTERESTING[random.below(INTERESTING.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)];
                // Headers and trailers hold the lengths.
                let at = [random.below(n - 8), random.below(24.min(n - 8)), n - 8 - random.below(24.min(n - 8))]
                    [random.below(3)];
                data[at..at + width].copy_from_slice(&value[..width]);
            }
            _ => data.extend_from_slice(&random.next().to_le_bytes()),
        }
    }
    data
}

fn budget() -> Duration {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    seconds.map_or(Duration::from_millis(300), Duration::from_secs_f64)
}

fn fuzz(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8])) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ name.len() as u64);
    let end = Instant::now() + budget();
    let mut runs = 0u64;
    while Instant::now() < end {
        for _ in 0..50 {
            let seed = &seeds[random.below(seeds.len())];
            let input = mutate(&mut random, seed);
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
            let hex: String = input.iter().take(4096).map(|byte| format!("{byte:02x}")).collect();
            assert!(outcome.is_ok(), "{name} panics on {hex}");
            assert!(started.elapsed() < Duration::from_secs(5), "{name} takes too long on {hex}");
            runs += 1;
        }
    }
    println!("{name}: {runs} inputs");
}

fn values() -> Vec<u8> {
    (0..4096u32).flat_map(|i| ((i / 7 % 90) as u16).to_le_bytes()).collect()
}

fn codecs() -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> =
        ["gzip", "zlib", "zstd", "lz4", "bz2", "crc32c", "crc32", "fletcher32", "shuffle"]
            .iter()
            .map(|name| ((*name).to_owned(), json!({"level": 1, "elementsize": 2})))
            .collect();
    for cname in ["lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd"] {
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
            for blocksize in [0, 1000] {
                let json =
                    json!({"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 2, "blocksize": blocksize});
                all.push(("blosc".into(), json));
            }
        }
    }
    all
}

#[test]
fn decoders_survive_any_input() {
    let data = values();
    for (name, configuration) in codecs() {
        let codec = Codec::from_json(&name, &configuration).unwrap().unwrap();
        let mut seed = Vec::new();
        codec.encode(&data, &mut seed).unwrap();
        let mut out = vec![0; data.len()];
        codec.decode_into(&seed, &mut out).unwrap();
        assert_eq!(out, data, "{name} {configuration}");
        fuzz(&format!("{name} {configuration}"), &[seed], |input| {
            let mut out = vec![0; data.len()];
            let _ = codec.decode_into(input, &mut out);
            match name.as_str() {
                "blosc" => drop(blosc::decode_part(input, data.len(), 1000, 3000)),
                "zstd" => drop(zstd_prefix(input, data.len(), 3000)),
                _ => {}
            }
        });
    }
}

fn shard_json(location: &str, inner: Value) -> Value {
    let little = json!({"name": "bytes"});
    json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [16, 16], "index_location": location,
        "codecs": [little, inner], "index_codecs": [little, {"name": "crc32c"}]}}])
}

#[test]
fn shards_survive_any_input() {
    for location in ["start", "end"] {
        for inner in [json!({"name": "crc32c"}), json!({"name": "zstd"}), json!({"name": "blosc"})] {
            // Without the checksum of the index, so that mutated indices get through to the parser as well.
            for checked in [true, false] {
                let mut json = shard_json(location, inner.clone());
                if !checked {
                    json[0]["configuration"]["index_codecs"] = json!([{"name": "bytes"}]);
                }
                let chain = Chain::bind(&json, &[64, 64], 2, &[0, 0]).unwrap();
                let part = everything(&[64, 64]);
                let data: &'static [u8] = values().leak();
                let how = Writing { value: Memory::of(data), keep_empty: false };
                let mut seed = Vec::new();
                assert!(merge(&chain, None, &part, &[64, 64], how, &mut seed).unwrap());
                fuzz(&format!("shard {location} {inner} {checked}"), &[seed], |input| {
                    read_and_update(&chain, input, how)
                });
            }
        }
    }
}

fn everything(shape: &[usize]) -> Part {
    let strides = _native::part::strides(shape, 2);
    let axes = shape.iter().zip(strides);
    Part::Box(axes.map(|(&n, stride)| Ax::Range { start: 0, step: 1, n, out: 0, stride }).collect())
}

fn read_and_update(chain: &Chain, input: &[u8], how: Writing) {
    let object = Object::Bytes(Held::Vec(Arc::new(input.to_vec())));
    let source = Source::whole(&object);
    let Middle::Shard(shard) = &chain.middle else { panic!("not a shard") };
    let Ok(index) = decode::read_index(shard, source) else { return };
    for i in 0..4 {
        for j in 0..4 {
            let Ok(Some((start, len))) = decode::entry(shard, &index, &[i, j], Some(input.len() as u64)) else {
                continue;
            };
            let mut out = vec![0u8; shard.inner.nbytes];
            let _ = decode::read_into(
                &shard.inner,
                source.part(start as usize, len),
                &everything(&[16, 16]),
                Memory::of_mut(&mut out),
            );
        }
    }
    let one = Part::Box(vec![
        Ax::Range { start: 5, step: 1, n: 9, out: 0, stride: 128 },
        Ax::Range { start: 3, step: 7, n: 5, out: 0, stride: 2 },
    ]);
    let _ = merge(chain, Some(source), &one, &[64, 64], how, &mut Vec::new());
}

#[test]
fn descriptions_survive_any_input() {
    let codecs: Vec<Value> = codecs().into_iter().map(|(n, c)| json!({"name": n, "configuration": c})).collect();
    let seeds: Vec<Vec<u8>> = [
        json!([{"name": "bytes", "configuration": {"swap": [[0, 2, 1]], "boolean": false}}, codecs[0]]),
        json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}, codecs[9], codecs[5]]),
        shard_json("start", codecs[2].clone()),
    ]
    .into_iter()
    .map(|chain| {
        json!({"shape": [100, 100], "axes": [{"size": 64}, {"offsets": [0, 64, 128]}], "item": 2, "fill": [0, 0],
            "key": {"prefix": "a/c/", "separator": "/", "empty": "a/c"}, "codecs": chain,
            "store": {"kind": "local", "root": "/nowhere"}})
        .to_string()
        .into_bytes()
    })
    .collect();
    assert!(seeds.iter().all(|seed| Array::from_json(std::str::from_utf8(seed).unwrap()).is_ok()));
    fuzz("description", &seeds, |input| {
        if let Ok(array) = Array::from_json(&String::from_utf8_lossy(input)) {
            let origin = vec![0; array.shape.len()];
            let _ = (array.key(&origin), array.chain_at(&origin));
        }
    });
}
