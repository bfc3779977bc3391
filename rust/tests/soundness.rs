//! What is pure Rust, with every kind of memory layout and selection: for Miri, which finds undefined behaviour
//! (`make campaign NAME=sanitizers`); in a test run values are compared.
//!
//! Left out is what Miri cannot run: codecs in C (zstd, lz4, bzip2; libdeflate, with crc32 and adler32), files, Python.

use _native::chain::{Chain, product};
use _native::codecs::Codec;
use _native::decode::{self, ReadOptions};
use _native::encode::{WriteOptions, merge, stored_order};
use _native::part::{AxisSelection, GridAxis, Part, Plan, strides};
use _native::region::{CopyAxis, Memory, Steps, copy, zeros};
use _native::store::Source;
use _native::vlen;
use serde_json::{Value, json};

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 % 251) as u8).collect()
}

/// Copy a plane of elements between layouts; compare with a copy element by element.
#[test]
fn elements_are_copied_between_all_layouts() {
    let (rows, columns) = (5, 6);
    for item in [1, 2, 3, 4, 8, 16] {
        let step = item as isize;
        let source = numbered(rows * columns * item);
        let wide = columns as isize * step;
        let tall = rows as isize * step;
        let last = (columns as isize - 1) * step;
        let table = |steps: [isize; 6]| Steps::Table(steps.map(|i| i * step).to_vec());
        let layouts: [(Steps, Steps, isize); 5] = [
            (Steps::Affine(wide), Steps::Affine(step), 0),
            (Steps::Affine(step), Steps::Affine(tall), 0),
            (Steps::Affine(wide), Steps::Affine(-step), last),
            (Steps::Affine(wide), table([5, 0, 3, 1, 2, 4]), 0),
            (Steps::Table((0..rows as isize).rev().map(|i| i * wide).collect()), Steps::Affine(step), 0),
        ];
        for (dst_rows, dst_columns, d0) in layouts {
            let mut out = vec![0; source.len()];
            let axes = vec![
                CopyAxis { n: rows, src: Steps::Affine(wide), dst: dst_rows.clone() },
                CopyAxis { n: columns, src: Steps::Affine(step), dst: dst_columns.clone() },
            ];
            copy(Memory::of(&source), 0, Memory::of_mut(&mut out), d0, axes, item);
            for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                let from = (i * columns + j) * item;
                let to = (d0 + offset(&dst_rows, i) + offset(&dst_columns, j)) as usize;
                assert_eq!(out[to..to + item], source[from..from + item]);
            }
        }
    }
}

fn offset(steps: &Steps, i: usize) -> isize {
    match steps {
        Steps::Affine(step) => step * i as isize,
        Steps::Table(at) => at[i],
    }
}

/// One element that is repeated, as a fill value is.
#[test]
fn an_element_is_repeated() {
    for item in [1, 2, 3, 4, 8, 16] {
        let (source, mut out) = (numbered(item), vec![0; 4 * item]);
        let axes = vec![CopyAxis { n: 4, src: Steps::Affine(0), dst: Steps::Affine(item as isize) }];
        copy(Memory::of(&source), 0, Memory::of_mut(&mut out), 0, axes, item);
        assert_eq!(out, source.repeat(4));
    }
}

#[test]
#[should_panic(expected = "leaves its memory")]
fn a_copy_that_leaves_its_memory_is_refused() {
    let (source, mut out) = (numbered(8), vec![0; 8]);
    let axes = vec![CopyAxis { n: 9, src: Steps::Affine(1), dst: Steps::Affine(1) }];
    copy(Memory::of(&source), 0, Memory::of_mut(&mut out), 0, axes, 1);
}

#[test]
fn memory_is_lent_within_its_bounds() {
    let mut bytes = zeros(10).expect("memory");
    let memory = Memory::of_mut(&mut bytes);
    memory.slice_mut(2, 3).expect("inside").fill(7);
    assert_eq!(memory.slice(0, 6), Some(&[0, 0, 7, 7, 7, 0][..]));
    assert!(memory.slice(8, 3).is_none() && memory.slice(-1, 1).is_none() && memory.slice_mut(11, 0).is_none());
    assert!(zeros(0).is_some_and(|none| none.is_empty()));
}

fn sharding(chunk: [usize; 2], location: &str, codecs: &Value) -> Value {
    json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunk, "index_location": location, "codecs": codecs,
        "index_codecs": [{"name": "bytes"}, {"name": "crc32c"}]}}])
}

fn chains() -> Vec<Chain> {
    let bytes = json!([{"name": "bytes"}]);
    let turned = json!([
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "bytes", "configuration": {"swap": [[0, 2, 1]]}},
        {"name": "shuffle", "configuration": {"elementsize": 2}},
        {"name": "crc32c"}
    ]);
    let all = [
        bytes.clone(),
        turned.clone(),
        sharding([4, 3], "end", &bytes),
        sharding([4, 3], "start", &turned),
        sharding([4, 6], "end", &sharding([2, 3], "start", &bytes)),
    ];
    all.iter().map(|codecs| Chain::bind(codecs, &[12, 12], 2, &[0, 0]).expect("a chain")).collect()
}

fn everything() -> Part {
    let axes = strides(&[12, 12], 2);
    Part::Box(axes.iter().map(|&stride| AxisSelection::Range { start: 0, step: 1, n: 12, out: 0, stride }).collect())
}

/// A strided box, lists in any order, and points.
fn some() -> [Part; 3] {
    let list = |at: &[i64], stride| AxisSelection::list(at, stride).expect("memory");
    [
        Part::Box(vec![
            AxisSelection::Range { start: 1, step: 3, n: 4, out: 0, stride: 8 },
            AxisSelection::Range { start: 0, step: 4, n: 3, out: 0, stride: 2 },
        ]),
        Part::Box(vec![list(&[11, 0, 5], 8), list(&[3, 9, 2, 8], 2)]),
        Part::Points { ndim: 2, at: vec![0, 0, 11, 11, 5, 7], out: vec![0, 4, 2] },
    ]
}

/// The element of a chunk of 12 x 12 at each position that a part selects, with its place.
fn selected(part: &Part) -> Vec<(usize, usize)> {
    match part {
        Part::Box(axes) => (0..axes[0].len())
            .flat_map(|i| (0..axes[1].len()).map(move |j| (i, j)))
            .map(|(i, j)| {
                let ((row, down), (column, right)) = (axes[0].at(i), axes[1].at(j));
                (2 * (12 * row + column), (down + right) as usize)
            })
            .collect(),
        Part::Points { at, out, .. } => {
            at.chunks(2).zip(out).map(|(at, &out)| (2 * (12 * at[0] + at[1]), out as usize)).collect()
        }
    }
}

/// Memory that lives as long as the process, which reads and writes need: they hand it to threads.
fn room(bytes: Vec<u8>) -> Memory<'static> {
    Memory::of_mut(bytes.leak())
}

fn content(memory: Memory<'static>, len: usize) -> Vec<u8> {
    memory.slice(0, len).expect("its length").to_vec()
}

#[test]
fn chunks_and_shards_are_written_and_read_in_parts() {
    let (value, change) = (numbered(288), room(vec![9; 64]));
    let (whole, few) = (room(vec![0; 288]), room(vec![0; 64]));
    for chain in chains() {
        let mut stored = Vec::new();
        let how = WriteOptions { value: room(value.clone()), keep_empty: false };
        let ordered = stored_order(&chain, everything()).expect("an order");
        assert!(merge(&chain, None, &ordered, how, &mut stored).expect("a chunk"));
        for part in some() {
            let options = ReadOptions { out: few, keep: true };
            decode::read(&chain, Source::Read(&stored), &part, options).expect("a part");
            let out = content(few, 64);
            for (from, to) in selected(&part) {
                assert_eq!(out[to..to + 2], value[from..from + 2]);
            }
            let (old, mut merged) = (Some(Source::Read(&stored)), Vec::new());
            let how = WriteOptions { value: change, keep_empty: false };
            let ordered = stored_order(&chain, part.clone()).expect("an order");
            assert!(merge(&chain, old, &ordered, how, &mut merged).expect("a change"));
            let mut expected = value.clone();
            for (at, _) in selected(&part) {
                expected[at..at + 2].fill(9);
            }
            let options = ReadOptions { out: whole, keep: false };
            decode::read(&chain, Source::Read(&merged), &everything(), options).expect("the whole");
            assert_eq!(content(whole, 288), expected);
        }
        // What is cut short or changed is refused, or gives some values.
        for len in (0..stored.len()).step_by(17) {
            let options = ReadOptions { out: whole, keep: true };
            let _ = decode::read(&chain, Source::Read(&stored[..len]), &everything(), options);
            let mut damaged = stored.clone();
            damaged[len] ^= 0x55;
            let options = ReadOptions { out: few, keep: true };
            let _ = decode::read(&chain, Source::Read(&damaged), &some()[len % 3], options);
        }
    }
}

/// Each element of a selection is in one part of the plan.
#[test]
fn a_plan_has_every_element_once() {
    let axes = [GridAxis::Regular(5), GridAxis::Offsets(vec![0, 2, 9, 12].into())];
    for part in some() {
        let plan = Plan::new(&part, &axes).expect("a plan");
        let mut found: Vec<(usize, usize)> = (0..plan.len())
            .flat_map(|number| {
                let (coords, part) = plan.get(number).expect("room");
                let (row, column) = (axes[0].interval(coords[0]).0, axes[1].interval(coords[1]).0);
                let moved = 2 * (12 * row + column);
                selected(&part).into_iter().map(move |(from, to)| (from + moved, to)).collect::<Vec<_>>()
            })
            .collect();
        let mut expected = selected(&part);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
    assert_eq!(product(&[3, 4], 2).expect("a size"), 24);
}

/// Filters and codecs that are Rust alone.
#[test]
fn codecs_in_rust_decode_what_they_encode() {
    let all = [
        ("shuffle", json!({"elementsize": 4})),
        ("crc32c", json!({})),
        ("fletcher32", json!({})),
        ("jenkins_lookup3", json!({})),
        ("lzw", json!({})),
        ("pad", json!({"location": "start", "padding": [1, 2, 3]})),
        ("filter.delta", json!({"decoded": ">u4", "encoded": "<u4"})),
        ("filter.astype", json!({"decoded": "<u2", "encoded": "<i4"})),
        ("filter.packbits", json!({"width": 2, "first": 0, "last": 15, "nbits": 16, "padding_encoding": "first_byte"})),
        ("filter.swap", json!({"unit": 8})),
    ];
    for (name, configuration) in all {
        let codec = Codec::from_json(name, &configuration).ok().flatten().expect(name);
        let (data, mut stored) = (numbered(96), Vec::new());
        codec.encode(&data, &mut stored).expect(name);
        let mut out = vec![0; data.len()];
        codec.decode_into(&stored, &mut out).expect(name);
        assert_eq!(out, data, "{name}");
        for len in 0..stored.len().min(12) {
            let _ = codec.decode_into(&stored[..len], &mut out);
            let _ = codec.decode_into(&stored[len..], &mut out);
        }
    }
}

#[test]
fn elements_of_varying_length_are_found() {
    let item = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let chunk = [2u32.to_le_bytes().to_vec(), item("gene"), item("")].concat();
    let mut elements = vlen::Elements::new(&chunk, 2).expect("two elements");
    assert_eq!((elements.take(), elements.take()), (Some(&b"gene"[..]), Some(&b""[..])));
    for len in 0..chunk.len() {
        if let Some(mut elements) = vlen::Elements::new(&chunk[..len], 2) {
            while elements.take().is_some() {}
        }
    }
}
