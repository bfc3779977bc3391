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

pub mod store {
    /// No version of a file is needed: the scenarios use tags.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Version {}
}
