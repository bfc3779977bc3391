//! Work that several threads share while the thread that owns it waits.

use crate::error::Result;

type Work<'a> = dyn Fn(usize) -> Result<()> + Sync + 'a;

/// Work on numbered items that borrows from the stack of the thread that shares the work with others.
pub struct Shared {
    work: *const Work<'static>,
}

// SAFETY: the work behind the pointer is `Sync`; see `run` for its lifetime.
unsafe impl Send for Shared {}
// SAFETY: as for Send.
unsafe impl Sync for Shared {}

impl Shared {
    /// The caller keeps `work` until no thread calls `run` any more, by waiting for the gate of the job that holds it.
    pub fn new<'a>(work: &'a Work<'a>) -> Shared {
        // SAFETY: only the lifetime changes, which a raw pointer does not guarantee.
        Shared { work: unsafe { std::mem::transmute::<*const Work<'a>, *const Work<'static>>(work) } }
    }

    /// Run the work on item `number`.
    pub fn run(&self, number: usize) -> Result<()> {
        // SAFETY: only called from inside the job's gate, so the thread that owns the work still waits (see `new`).
        unsafe { (*self.work)(number) }
    }
}
