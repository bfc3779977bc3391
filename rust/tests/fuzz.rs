//! Every fuzz target for a moment, under a plain mutator: errors are fine, panics and long work are not.
//!
//! The targets and their seeds are those of `fuzz/src/targets.rs`, which `make fuzz` runs under libFuzzer.
//! `FUZZ_TARGET=zstd FUZZ_SECONDS=60 FUZZ_SEED=1 cargo test --release --test fuzz -- --nocapture` runs one for longer.
//! A failure prints the target and the input in hexadecimal.

#[path = "../fuzz/src/targets.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
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

fn fuzz(name: &str, seconds: f64, number: u64) {
    let targets::Target { seeds, run } = targets::target(name).expect("a target");
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ number);
    let begin = Instant::now();
    let mut runs = 0u64;
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        for _ in 0..50 {
            let seed = &seeds[random.below(seeds.len())];
            let input = mutate(&mut random, seed);
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&input)));
            let hex = || input.iter().take(4096).map(|byte| format!("{byte:02x}")).collect::<String>();
            assert!(outcome.is_ok(), "{name} panics on {}", hex());
            assert!(started.elapsed() < Duration::from_secs(5), "{name} takes too long on {}", hex());
            runs += 1;
        }
    }
    println!("{name}: {runs} inputs in {:.1} s, seed {number}", begin.elapsed().as_secs_f64());
}

#[test]
fn every_target_survives_any_input() {
    let only: String = setting("FUZZ_TARGET", String::new());
    assert!(only.is_empty() || targets::target(&only).is_some(), "no target is called {only}");
    for name in targets::names().filter(|name| only.is_empty() || *name == only) {
        fuzz(name, setting("FUZZ_SECONDS", 0.3), setting("FUZZ_SEED", 1));
    }
}
