//! What the threads do.

use std::ffi::OsStr;
use std::ops::Range;

use crate::cache::{Cache, CacheKey, Validator};
use crate::chunk_job::{ChunkJob, ChunkWork};
use crate::error::{Error, Result};
use crate::pool::{Poll, each, locked, release, share, spare_threads};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, thread};

pub const ALL: &[(&str, fn())] = &[
    ("items", items),
    ("items-in-items", items_in_items),
    ("item-fails", item_fails),
    ("item-panics", item_panics),
    ("cancelled", cancelled),
    ("released", released),
    ("chunks", chunks),
    ("chunk-fails", chunk_fails),
    ("one-makes", one_makes),
    ("maker-fails", maker_fails),
    ("cache", cache),
];

/// A defect that must be found: see `never_notified`.
pub const DEFECT: (&str, fn()) = ("never-notified", never_notified);

/// How often each of `N` things was done.
struct Done<const N: usize>([AtomicUsize; N]);

impl<const N: usize> Done<N> {
    fn new() -> Done<N> {
        Done(std::array::from_fn(|_| AtomicUsize::new(0)))
    }

    fn add(&self, number: usize) {
        self.0[number].fetch_add(1, Ordering::SeqCst);
    }

    fn counts(&self) -> [usize; N] {
        std::array::from_fn(|number| self.0[number].load(Ordering::SeqCst))
    }
}

fn told(error: &Error) -> &str {
    let Error::Fault(fault) = error;
    &fault.what
}

/// Two requests at once; each item is processed once, and nothing of it after the request has returned.
fn items() {
    let requests = [(); 2].map(|()| {
        thread::spawn(|| {
            let done = Done::<3>::new();
            each(3, 2, &mut || Ok(()), &|item| {
                done.add(item);
                Ok(())
            })
            .expect("no item fails");
            assert_eq!(done.counts(), [1; 3]);
        })
    });
    for request in requests {
        request.join().expect("a request");
    }
}

/// Items that share their own items, as blocks of a chunk are shared.
fn items_in_items() {
    let done = Done::<6>::new();
    each(2, 1, &mut || Ok(()), &|item| {
        share(3, spare_threads().max(1), &|inner| {
            done.add(3 * item + inner);
            Ok(())
        })
    })
    .expect("no item fails");
    assert_eq!(done.counts(), [1; 6]);
}

/// The error of an item is that of the request, and of no other one.
fn item_fails() {
    let other = thread::spawn(|| each(2, 1, &mut || Ok(()), &|_| Ok(())).expect("another request"));
    let failed = each(3, 2, &mut || Ok(()), &|item| if item == 1 { Err(Error::new("codec", "one")) } else { Ok(()) });
    assert_eq!(told(&failed.expect_err("an item fails")), "one");
    other.join().expect("another request");
}

fn item_panics() {
    let failed = each(3, 2, &mut || Ok(()), &|item| {
        if item == 1 {
            std::panic::resume_unwind(Box::new("one"));
        }
        Ok(())
    });
    assert_eq!(told(&failed.expect_err("an item panics")), "the native engine failed: one");
}

/// A signal ends the request.
fn cancelled() {
    let looks = AtomicUsize::new(0);
    let mut poll = || {
        if looks.fetch_add(1, Ordering::SeqCst) == 0 { Err(Error::new("interrupted", "a signal")) } else { Ok(()) }
    };
    let ended = each(4, 2, &mut poll, &|_| Ok(()));
    if looks.load(Ordering::SeqCst) > 0 {
        assert_eq!(told(&ended.expect_err("a signal")), "a signal");
    } else {
        ended.expect("other threads did all of it");
    }
}

struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A value that is released is dropped once at most, and no request waits for it.
fn released() {
    let drops = Arc::new(AtomicUsize::new(0));
    release(Dropped(drops.clone()));
    items_in_items();
    assert!(drops.load(Ordering::SeqCst) <= 1);
}

/// Two chunks: a shard with three inner chunks, and one without.
struct Reading {
    inner: Done<3>,
    whole: Done<1>,
    fails: bool,
}

impl ChunkWork for Arc<Reading> {
    type Shard = ();

    fn chunk(&self, job: &ChunkJob<Self>, number: usize, poll: Poll) -> Result<()> {
        if number == 0 {
            job.share((), 3, 1, poll)?.wait()?;
            assert_eq!(self.inner.counts(), [1; 3], "an inner chunk is missing");
        } else {
            self.whole.add(0);
        }
        Ok(())
    }

    fn batch(&self, (): &(), range: Range<usize>) -> Result<()> {
        if self.fails && range.start == 1 {
            return Err(Error::new("codec", "inner"));
        }
        range.for_each(|number| self.inner.add(number));
        Ok(())
    }
}

fn read(fails: bool) -> (Arc<Reading>, Result<()>) {
    let reading = Arc::new(Reading { inner: Done::new(), whole: Done::new(), fails });
    let ended = ChunkJob::run(reading.clone(), 2, 2, &mut || Ok(()));
    (reading, ended)
}

fn chunks() {
    let (reading, ended) = read(false);
    ended.expect("no chunk fails");
    assert_eq!((reading.inner.counts(), reading.whole.counts()), ([1; 3], [1]));
}

fn chunk_fails() {
    let (_, ended) = read(true);
    assert_eq!(told(&ended.expect_err("an inner chunk fails")), "inner");
}

const KEY: CacheKey = CacheKey { offset: 0, layout: 0, index: false };

fn tag(text: &str) -> Validator {
    Validator::Tag(text.into())
}

/// Those who miss one entry at once decode it once.
fn one_makes() {
    let cache = Arc::new(Cache::default());
    let made = Arc::new(AtomicUsize::new(0));
    let readers = [(); 3].map(|()| {
        let (cache, made) = (cache.clone(), made.clone());
        thread::spawn(move || {
            let make = || {
                made.fetch_add(1, Ordering::SeqCst);
                Ok(vec![7])
            };
            assert_eq!(*cache.get_or_make(OsStr::new("a"), KEY, &tag("1"), make).expect("a value"), [7]);
        })
    });
    for reader in readers {
        reader.join().expect("a reader");
    }
    assert_eq!(made.load(Ordering::SeqCst), 1);
    assert_eq!(cache.statistics.hits.load(Ordering::SeqCst), 2);
}

/// Where the one who decodes fails, or panics, another one decodes.
fn maker_fails() {
    let cache = Arc::new(Cache::default());
    let tries = Arc::new(AtomicUsize::new(0));
    let readers = [(); 3].map(|()| {
        let (cache, tries) = (cache.clone(), tries.clone());
        thread::spawn(move || {
            let make = || match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Error::new("codec", "damaged")),
                1 => std::panic::resume_unwind(Box::new("a defect")),
                _ => Ok(vec![7]),
            };
            let work = || cache.get_or_make(OsStr::new("a"), KEY, &tag("1"), make).map(|value| value.to_vec());
            matches!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)), Ok(Ok(_)))
        })
    });
    let found = readers.map(|reader| reader.join().expect("a reader"));
    assert_eq!(found.into_iter().filter(|&found| found).count(), 1);
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

/// Entries of two versions, inserted, read, dropped: nobody is given bytes of the other version, and the sizes add up.
fn cache() {
    let cache = Arc::new(Cache::default());
    let newest = Arc::new(Mutex::new(1u8));
    let clients = [1u8, 2].map(|version| {
        let (cache, newest) = (cache.clone(), newest.clone());
        thread::spawn(move || {
            let (name, validator) = (OsStr::new("a"), tag(&version.to_string()));
            for offset in 0..2 {
                let key = CacheKey { offset, ..KEY };
                let value = cache.get_or_make(name, key, &validator, || Ok(vec![version; 9])).expect("a value");
                assert_eq!(*value, [version; 9]);
                if let Some(value) = cache.get(name, key, &validator) {
                    assert_eq!(*value, [version; 9]);
                }
            }
            *locked(&newest) = version;
            if version == 1 {
                cache.invalidate(name)
            } else {
                cache.clear()
            }
            if let Some((value, Validator::Tag(found))) = cache.unvalidated(name, KEY) {
                assert_eq!(*found, *value[0].to_string());
            }
        })
    });
    for client in clients {
        client.join().expect("a client");
    }
    let (bytes, entries) = cache.size();
    assert_eq!(bytes, entries * (9 + 160));
}

/// One thread looks, then waits without looking again; the other one may notify between the two.
fn never_notified() {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let other = thread::spawn({
        let shared = shared.clone();
        move || {
            *locked(&shared.0) = true;
            shared.1.notify_all();
        }
    });
    if !*locked(&shared.0) {
        drop(shared.1.wait(locked(&shared.0)));
    }
    other.join().expect("the other thread");
}
