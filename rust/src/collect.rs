//! Encoding for stores that Python writes: chunks are encoded in parallel and handed over as bytes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::array::Array;
use crate::encode::{Writing, merge, stored_order};
use crate::error::{Error, Result};
use crate::part::Spread;
use crate::pool::{Gate, Job, process, threads};
use crate::store::{Object, Source};

/// A key and its new value; `None` when nothing but fill is left.
pub type Stored = (String, Option<Vec<u8>>);

pub struct EncodeJob {
    array: Arc<Array>,
    spread: Arc<Spread>,
    how: Writing,
    numbers: Vec<usize>,
    next: AtomicUsize,
    stopped: AtomicBool,
    done: Mutex<(Vec<Stored>, Option<Error>)>,
    gate: Gate,
}

/// The encoded chunk of part `number` laid over `old`.
pub fn encode_part(
    array: &Array,
    spread: &Spread,
    number: usize,
    old: Option<&Object>,
    how: Writing,
) -> Result<Stored> {
    let (coords, part) = spread.get(number);
    let chain = array.chain_at(&coords)?;
    let key = array.key(&coords);
    let (part, inside) = stored_order(&chain, part, &array.inside(&coords));
    let mut out = Vec::new();
    match merge(&chain, old.map(Source::whole), &part, &inside, how, &mut out) {
        Ok(any) => Ok((key, any.then_some(out))),
        Err(error) => Err(error.at(&coords.iter().map(|&i| i as u64).collect::<Vec<_>>(), &key)),
    }
}

impl EncodeJob {
    /// Encodes the parts `numbers`, each of which covers its chunk.
    pub fn run(
        array: &Arc<Array>,
        spread: &Arc<Spread>,
        how: Writing,
        numbers: Vec<usize>,
        poll: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<Stored>> {
        let helpers = threads().min(numbers.len()).saturating_sub(1);
        let job = Arc::new(EncodeJob {
            array: array.clone(),
            spread: spread.clone(),
            how,
            numbers,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            done: Mutex::default(),
            gate: Gate::default(),
        });
        process().run(job.clone(), helpers, poll);
        let mut done = job.done.lock().unwrap_or_else(PoisonError::into_inner);
        match done.1.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut done.0)),
        }
    }

    fn steps(&self, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        while !self.stopped.load(Ordering::Relaxed) {
            let Some(&number) = self.numbers.get(self.next.fetch_add(1, Ordering::Relaxed)) else { break };
            let made = encode_part(&self.array, &self.spread, number, None, self.how)?;
            self.done.lock().unwrap_or_else(PoisonError::into_inner).0.push(made);
            poll()?;
        }
        Ok(())
    }
}

impl Job for EncodeJob {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn work(&self, poll: &mut dyn FnMut() -> Result<()>) {
        if let Err(error) = self.steps(poll) {
            self.stop(error);
        }
    }

    fn stop(&self, error: Error) {
        self.stopped.store(true, Ordering::Relaxed);
        self.done.lock().unwrap_or_else(PoisonError::into_inner).1.get_or_insert(error);
    }
}
