//! libFuzzer over one target, named by `FUZZ_TARGET`; writes the target's seeds to the folder `FUZZ_SEEDS` first.
//!
//! Errors are fine. A panic, an access that AddressSanitizer refuses, a leak, an input that takes long or much memory
//! ends the run, and libFuzzer saves the input.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

mod targets;

static CHOSEN: OnceLock<targets::Target> = OnceLock::new();

fn choose() {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(target) = targets::target(&name) else {
        eprintln!("FUZZ_TARGET must be one of: {}", targets::names().collect::<Vec<_>>().join(" "));
        std::process::exit(2);
    };
    if let Ok(folder) = std::env::var("FUZZ_SEEDS") {
        for (number, seed) in target.seeds.iter().enumerate() {
            std::fs::write(std::path::Path::new(&folder).join(format!("seed-{number:03}")), seed).expect("seeds");
        }
    }
    let _ = CHOSEN.set(target);
}

fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        (target.run)(data);
    }
});
