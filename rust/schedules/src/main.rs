//! Threads of the pool, of chunk jobs and of the cache in random orders: `tessarr-schedules SCENARIO SEED SCHEDULES`.
//!
//! The modules are those of the engine; only `sync` is another one. Every scenario asserts what its work comes to, and ends
//! in every schedule: Shuttle ends the program where all threads wait. Even seeds choose threads at random, odd ones by
//! priorities that change at few places (PCT), and half of them let no wait time out, so that each notification must come.

use parts::{durable, error, store};

#[allow(dead_code)]
#[path = "../../src/cache.rs"]
mod cache;
#[allow(dead_code)]
#[path = "../../src/chunk_job.rs"]
mod chunk_job;
#[allow(dead_code)]
mod parts;
#[allow(dead_code)]
#[path = "../../src/pool.rs"]
mod pool;
mod scenarios;
#[path = "../../src/shared.rs"]
mod shared;
#[cfg(feature = "shuttle")]
mod sync;
#[cfg(not(feature = "shuttle"))]
#[path = "../../src/sync.rs"]
mod sync;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, seed, schedules] = &arguments[..] else {
        for (name, _) in scenarios::ALL {
            println!("{name}");
        }
        return;
    };
    let (_, scenario) = scenarios::ALL
        .iter()
        .chain([&scenarios::DEFECT])
        .find(|(known, _)| known == name)
        .expect("a scenario of the list");
    let seed: u64 = seed.parse().expect("a number");
    let schedules: usize = schedules.parse().expect("a number");
    run(scenario, seed, schedules);
    println!("{name}: {schedules} schedules");
}

#[cfg(feature = "shuttle")]
fn run(scenario: &'static fn(), seed: u64, schedules: usize) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    use shuttle::{Config, Runner};

    let run = move || {
        sync::set_times_out(seed / 2 % 2 == 1);
        pool::after_fork();
        pool::set_threads(3);
        scenario();
    };
    let mut config = Config::new();
    config.stack_size = 0x20000;
    if seed % 2 == 0 {
        Runner::new(RandomScheduler::new_from_seed(seed, schedules), config).run(run);
    } else {
        Runner::new(PctScheduler::new_from_seed(seed, 1 + (seed / 4 % 4) as usize, schedules), config).run(run);
    }
}

/// Threads of the system, in the order that it gives them.
#[cfg(not(feature = "shuttle"))]
fn run(scenario: &'static fn(), _: u64, schedules: usize) {
    pool::set_threads(3);
    for _ in 0..schedules {
        scenario();
    }
}
