//! Every fuzz target for a moment, under a plain mutator: errors are fine, panics and long work are not.
//!
//! The targets and their seeds are those of `fuzz/src/targets.rs`, which `make fuzz` runs under libFuzzer.
//! `FUZZ_TARGET=codecs FUZZ_SECONDS=60 FUZZ_SEED=1 cargo test --release --test fuzz -- --nocapture` runs one for longer.
//! A failure prints the target, its member, and the input in hexadecimal.

#[path = "../fuzz/src/targets.rs"]
#[allow(dead_code)] // the fuzzer asks for more
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

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

fn setting<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Executions and seconds of each member, in the order of their numbers.
fn tell(members: &[targets::Member], spent: &[(u64, Duration)]) {
    let pairs = members.iter().zip(spent);
    let told = pairs.map(|(member, (runs, time))| serde_json::json!([member.name, runs, time.as_secs_f64()]));
    println!("members: {}", told.collect::<serde_json::Value>());
}

/// Every member has its turn, and one that is slow no more time than others.
fn fuzz(name: &str, seconds: f64, number: u64) {
    let targets::Target { members } = targets::target(name).expect("a target");
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ number);
    let mut spent = vec![(0u64, Duration::ZERO); members.len()];
    let begin = Instant::now();
    let mut told = begin;
    while begin.elapsed() < Duration::from_secs_f64(seconds) || spent.iter().any(|(runs, _)| *runs == 0) {
        if told.elapsed() > Duration::from_secs(1) {
            tell(&members, &spent);
            told = Instant::now();
        }
        let turn = (0..members.len()).min_by_key(|&i| spent[i].1).expect("a member");
        let targets::Member { name: member, seeds, run } = &members[turn];
        for _ in 0..50 {
            let seed = &seeds[random.below(seeds.len())];
            let input = mutate(&mut random, seed);
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&input)));
            let hex = || input.iter().take(4096).map(|byte| format!("{byte:02x}")).collect::<String>();
            assert!(outcome.is_ok(), "{name} {member} panics on {}", hex());
            assert!(started.elapsed() < Duration::from_secs(5), "{name} {member} takes too long on {}", hex());
            spent[turn] = (spent[turn].0 + 1, spent[turn].1 + started.elapsed());
        }
    }
    tell(&members, &spent);
    let runs: u64 = spent.iter().map(|(runs, _)| runs).sum();
    println!("{name}: {runs} inputs in {:.1} s, seed {number}", begin.elapsed().as_secs_f64());
}

#[test]
fn every_target_survives_any_input() {
    let only: String = setting("FUZZ_TARGET", String::new());
    assert!(only.is_empty() || targets::target(&only).is_some(), "no target is called {only}");
    for name in targets::names().filter(|name| only.is_empty() || *name == only) {
        fuzz(name, setting("FUZZ_SECONDS", 1.2), setting("FUZZ_SEED", 1));
    }
}

#[test]
fn what_was_found_to_reach_other_code_is_decoded_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/fuzz");
    for name in targets::names() {
        let targets::Target { members } = targets::target(name).expect("a target");
        let mut kept = targets::kept(&folder, name);
        assert!(!kept.is_empty(), "inputs of {name} are kept in {}", folder.display());
        for member in &members {
            for input in kept.remove(&member.name).unwrap_or_default() {
                let outcome = catch_unwind(AssertUnwindSafe(|| (member.run)(&input)));
                assert!(outcome.is_ok(), "{name} {} panics on {input:02x?}", member.name);
            }
        }
        assert!(kept.is_empty(), "{name} has no members {:?}", kept.keys());
    }
}
