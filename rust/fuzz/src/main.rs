//! libFuzzer over one target, named by `FUZZ_TARGET`; writes the target's seeds to the folder `FUZZ_SEEDS` first, and the
//! inputs that are kept of it in the folder `FUZZ_KEPT`.
//!
//! Errors are fine. A panic, an access that AddressSanitizer refuses, a leak, an input that takes long or much memory
//! ends the run, and libFuzzer saves the input. About every second a line `members: [["zstd", 1234, 0.5], …]` tells
//! executions and seconds of each member, in the order of the numbers that choose them.
//!
//! Members share the time: some inputs are made of a seed of whichever had least, and so are those that would be for a
//! member that had much more than its share.
#![no_main]

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use serde_json::{Value, json};

mod targets;

struct Fuzzed {
    target: targets::Target,
    spent: Vec<(u64, Duration)>,
    told: Instant,
}

static FUZZED: Mutex<Option<Fuzzed>> = Mutex::new(None);
/// How many times its share of the time a member may have.
const MOST: u32 = 4;
/// A paused process may seem to work for hours.
const LONGEST: Duration = Duration::from_secs(1);

impl Fuzzed {
    fn run(&mut self, input: &[u8]) {
        let Some(number) = self.target.number(input) else { return };
        let begin = Instant::now();
        (self.target.members[number].run)(&input[1..]);
        let (runs, time) = &mut self.spent[number];
        (*runs, *time) = (*runs + 1, *time + begin.elapsed().min(LONGEST));
        if self.told.elapsed() > LONGEST {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let pairs = self.target.members.iter().zip(&self.spent);
        let all = pairs.map(|(member, (runs, time))| json!([member.name, runs, time.as_secs_f64()]));
        eprintln!("members: {}", all.collect::<Value>());
        self.told = Instant::now();
    }

    fn greedy(&self, number: usize) -> bool {
        let all: Duration = self.spent.iter().map(|(_, time)| *time).sum();
        self.spent[number].1 > all / self.spent.len() as u32 * MOST + LONGEST
    }

    /// A seed of the member that had the least time.
    fn seed(&self, random: usize) -> Vec<u8> {
        let number = (0..self.spent.len()).min_by_key(|&i| self.spent[i].1).unwrap_or(0);
        let seeds = &self.target.members[number].seeds;
        [&[number as u8], &seeds[random % seeds.len()][..]].concat()
    }
}

fn choose() {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(mut target) = targets::target(&name) else {
        eprintln!("FUZZ_TARGET must be one of: {}", targets::names().collect::<Vec<_>>().join(" "));
        std::process::exit(2);
    };
    let mut kept =
        std::env::var("FUZZ_KEPT").map(|folder| targets::kept(Path::new(&folder), &name)).unwrap_or_default();
    for member in &mut target.members {
        member.seeds.extend(kept.remove(&member.name).unwrap_or_default());
    }
    if let Ok(folder) = std::env::var("FUZZ_SEEDS") {
        for (number, member) in target.members.iter().enumerate() {
            for (i, seed) in member.seeds.iter().enumerate() {
                let file = Path::new(&folder).join(format!("seed-{}-{i:02}", member.name));
                std::fs::write(file, [&[number as u8], &seed[..]].concat()).expect("seeds");
            }
        }
    }
    let spent = vec![Default::default(); target.members.len()];
    let mut fuzzed = Fuzzed { target, spent, told: Instant::now() };
    fuzzed.tell();
    *FUZZED.lock().expect("a lock") = Some(fuzzed);
}

fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(fuzzed) = &mut *FUZZED.lock().expect("a lock") {
        fuzzed.run(data);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, random: u32| {
    let mut size = size;
    if let Some(fuzzed) = &*FUZZED.lock().expect("a lock") {
        let number = fuzzed.target.number(&data[..size]);
        if random.is_multiple_of(8) || number.is_none_or(|number| fuzzed.greedy(number)) {
            let seed = fuzzed.seed(random as usize / 8);
            size = seed.len().min(max_size);
            data[..size].copy_from_slice(&seed[..size]);
        }
    }
    // What chooses the member stays.
    1 + fuzzer_mutate(&mut data[1..], size - 1, max_size - 1)
});
