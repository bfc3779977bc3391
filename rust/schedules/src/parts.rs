//! The parts of the engine that the modules under test name, and no more of them: the engine itself takes a minute to build.

pub mod durable {
    /// Nothing is synced here.
    #[derive(Default)]
    pub struct Synced;
}

pub mod error {
    #[derive(Debug)]
    pub struct Fault {
        pub what: String,
        cancelled: bool,
    }

    #[derive(Debug)]
    pub enum Error {
        Fault(Box<Fault>),
    }

    pub type Result<T> = std::result::Result<T, Error>;

    impl Error {
        pub fn new(_: &'static str, what: impl Into<String>) -> Error {
            Error::Fault(Box::new(Fault { what: what.into(), cancelled: false }))
        }

        pub fn cancelled() -> Error {
            Error::Fault(Box::new(Fault { what: "the request was cancelled".into(), cancelled: true }))
        }

        pub fn is_cancelled(&self) -> bool {
            let Error::Fault(fault) = self;
            fault.cancelled
        }
    }
}

pub mod region {
    use super::error::Result;

    type Work<'a> = dyn Fn(usize) -> Result<()> + Sync + 'a;

    /// As in the engine: work that borrows from the stack of the thread that shares it with others.
    pub struct Shared(*const Work<'static>);

    // SAFETY: the work behind the pointer is `Sync`; see `run` for its lifetime.
    unsafe impl Send for Shared {}
    // SAFETY: as for Send.
    unsafe impl Sync for Shared {}

    impl Shared {
        pub fn new<'a>(work: &'a Work<'a>) -> Shared {
            // SAFETY: only the lifetime changes, which a raw pointer does not guarantee.
            Shared(unsafe { std::mem::transmute::<*const Work<'a>, *const Work<'static>>(work) })
        }

        pub fn run(&self, number: usize) -> Result<()> {
            // SAFETY: only called from inside the job's gate, so the thread that owns the work still waits.
            unsafe { (*self.0)(number) }
        }
    }
}

pub mod store {
    /// No version of a file is needed: the scenarios use tags.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Version {}
}
