//! Elements that NumPy keeps behind pointers: text (`StringDType`) and Python objects. `region.rs` and `shared.rs` have `unsafe` too.
//!
//! Text is read and written through NumPy's table of C functions, which NumPy documents and keeps since 2.0. An array of texts owns
//! an allocator with a lock; a `Locked` holds it, and every pointer that NumPy returns is valid until it is released. A thread
//! that waits for the lock, or holds it, must not have the GIL: who has the lock may be waiting for the GIL.

use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::error::Error;

/// The binary interface of NumPy 2, and its first version with the functions for text.
const ABI: c_uint = 0x0200_0000;
const FEATURES: c_uint = 0x12;

/// Bytes from which on memory of its own is quicker for a text.
const LONG: usize = 512;

/// A text as NumPy hands it out.
#[repr(C)]
struct StaticString {
    size: usize,
    bytes: *const u8,
}

type Version = unsafe extern "C" fn() -> c_uint;
type Load = unsafe extern "C" fn(*mut c_void, *const c_void, *mut StaticString) -> c_int;
type Pack = unsafe extern "C" fn(*mut c_void, *mut c_void, *const u8, usize) -> c_int;
type Acquire = unsafe extern "C" fn(*const c_void) -> *mut c_void;
type Release = unsafe extern "C" fn(*mut c_void);

/// NumPy's functions for text, and the types that an array must have exactly.
struct Api {
    load: Load,
    pack: Pack,
    acquire: Acquire,
    release: Release,
    array_type: Py<PyType>,
    text_type: Py<PyType>,
}

static API: PyOnceLock<Option<Api>> = PyOnceLock::new();

/// `None`: a NumPy of another binary interface.
fn api(py: Python<'_>) -> PyResult<Option<&Api>> {
    API.get_or_try_init(py, || Api::find(py)).map(Option::as_ref)
}

impl Api {
    fn find(py: Python<'_>) -> PyResult<Option<Api>> {
        let numpy = py.import("numpy")?;
        let capsule = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?;
        // SAFETY: the call raises for what is not a capsule without a name; NumPy keeps its table for the life of the process.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), ptr::null()) }.cast::<*const c_void>();
        if table.is_null() {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: every version of NumPy has these two functions, and their places in the table never change.
        let (abi, features) = unsafe {
            let version = |place| std::mem::transmute::<*const c_void, Version>(*table.add(place));
            (version(0)(), version(211)())
        };
        if abi != ABI || features < FEATURES {
            return Ok(None);
        }
        let array_type = numpy.getattr("ndarray")?.cast_into()?.unbind();
        let text_type = numpy.getattr("dtypes")?.getattr("StringDType")?.cast_into()?.unbind();
        // SAFETY: the places and signatures of `NpyString_load`, `…_pack`, `…_acquire_allocator` and `…_release_allocator` in
        // NumPy's header `__multiarray_api.h`, which has them since the versions compared above.
        Ok(Some(unsafe {
            Api {
                load: std::mem::transmute::<*const c_void, Load>(*table.add(313)),
                pack: std::mem::transmute::<*const c_void, Pack>(*table.add(314)),
                acquire: std::mem::transmute::<*const c_void, Acquire>(*table.add(316)),
                release: std::mem::transmute::<*const c_void, Release>(*table.add(318)),
                array_type,
                text_type,
            }
        }))
    }
}

/// Where the elements of a one-dimensional array are.
#[derive(Clone, Copy)]
struct Place {
    first: *mut u8,
    stride: isize,
    count: usize,
    writable: bool,
}

impl Place {
    /// `None`: not a one-dimensional `ndarray`, or its elements are not aligned as pointers are.
    fn of(array: &Bound<'_, PyAny>, api: &Api) -> PyResult<Option<Place>> {
        if !array.get_type().is(&api.array_type) {
            return Ok(None);
        }
        let interface = array.getattr("__array_interface__")?.cast_into::<PyDict>()?;
        let member = |name: &str| interface.as_any().get_item(name);
        let Ok((count,)) = member("shape")?.extract::<(usize,)>() else { return Ok(None) };
        let (address, read_only) = member("data")?.extract::<(usize, bool)>()?;
        let (stride,) = array.getattr("strides")?.extract::<(isize,)>()?;
        let aligned = |n: usize| n.is_multiple_of(align_of::<*const u8>());
        if !aligned(address) || !aligned(stride.unsigned_abs()) {
            return Ok(None);
        }
        let first = ptr::with_exposed_provenance_mut(address);
        Ok(Some(Place { first, stride, count, writable: !read_only }))
    }

    /// The address of an element. Panics for one that the array does not have.
    fn at(&self, number: usize) -> *mut u8 {
        assert!(number < self.count, "an array has no such element");
        self.first.wrapping_offset(number as isize * self.stride)
    }
}

/// A one-dimensional array of `StringDType`, which `'a` keeps from being freed.
pub struct Texts<'a> {
    place: Place,
    descr: *const c_void,
    api: &'a Api,
    life: PhantomData<&'a Py<PyAny>>,
}

// SAFETY: elements and allocator are only accessed through `Locked`, which holds the lock that NumPy has for this.
unsafe impl Send for Texts<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for Texts<'_> {}

impl<'a> Texts<'a> {
    /// `None`: another array, or a NumPy of another binary interface.
    pub fn of(array: &'a Bound<'_, PyAny>) -> PyResult<Option<Texts<'a>>> {
        let Some(api) = api(array.py())? else { return Ok(None) };
        let Some(place) = Place::of(array, api)? else { return Ok(None) };
        let descr = array.getattr("dtype")?;
        // The array owns `descr`; an array never gets another one of this type.
        let is_text = descr.get_type().is(&api.text_type);
        Ok(is_text.then_some(Texts { place, descr: descr.as_ptr().cast(), api, life: PhantomData }))
    }

    pub fn count(&self) -> usize {
        self.place.count
    }

    pub fn is_writable(&self) -> bool {
        self.place.writable
    }

    /// Wait for the lock. The caller has no GIL (`Python::detach`), and returns the lock before it takes the GIL.
    pub fn lock(&self) -> Locked<'_> {
        // SAFETY: `descr` is a descriptor of `StringDType` (see `of`), kept by the array.
        Locked { allocator: unsafe { (self.api.acquire)(self.descr) }, texts: self }
    }
}

/// The texts of an array, while no other thread can access them.
pub struct Locked<'a> {
    allocator: *mut c_void,
    texts: &'a Texts<'a>,
}

impl Locked<'_> {
    /// The bytes of an element; `None`: it is missing (`na_object`). Panics for one that the array does not have.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let mut found = StaticString { size: 0, bytes: ptr::null() };
        // SAFETY: the element is inside the array, whose allocator is locked.
        let status = unsafe { (self.texts.api.load)(self.allocator, self.texts.place.at(number).cast(), &mut found) };
        match (status, found.size) {
            (0, 0) => Some(&[]), // its pointer may be null
            // SAFETY: valid until an element is written or the lock is released, which needs another borrow.
            (0, size) => Some(unsafe { slice::from_raw_parts(found.bytes, size) }),
            _ => None,
        }
    }

    /// Replace an element; whether there was memory for it. Panics for one that the array does not have, or may not be written.
    #[inline]
    #[must_use]
    pub fn set(&mut self, number: usize, text: &str) -> bool {
        assert!(self.texts.place.writable, "the array is read-only");
        let place = self.texts.place.at(number).cast();
        // SAFETY: the element is inside the array, whose allocator is locked; NumPy copies the text.
        let pack = |text: &str| unsafe { (self.texts.api.pack)(self.allocator, place, text.as_ptr(), text.len()) } == 0;
        // NumPy appends texts to one piece of memory, which it moves and zeroes as it grows; but a text that replaces another has
        // memory of its own.
        (text.len() < LONG || pack("-")) && pack(text)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: acquired in `Texts::lock`, released once.
        unsafe { (self.texts.api.release)(self.allocator) }
    }
}

/// A one-dimensional array of Python objects.
///
/// As in NumPy itself, nothing but the GIL keeps two threads from using one element at a time.
pub struct Objects<'a, 'py> {
    place: Place,
    py: Python<'py>,
    life: PhantomData<&'a Py<PyAny>>,
}

impl<'a, 'py> Objects<'a, 'py> {
    /// `None`: another array, or a NumPy of another binary interface.
    pub fn of(array: &'a Bound<'py, PyAny>) -> PyResult<Option<Objects<'a, 'py>>> {
        let py = array.py();
        let Some(api) = api(py)? else { return Ok(None) };
        let Some(place) = Place::of(array, api)? else { return Ok(None) };
        let is_object = array.getattr("dtype")?.getattr("char")?.extract::<char>()? == 'O';
        Ok(is_object.then_some(Objects { place, py, life: PhantomData }))
    }

    pub fn count(&self) -> usize {
        self.place.count
    }

    pub fn is_writable(&self) -> bool {
        self.place.writable
    }

    /// An element; `None`: NumPy has not set it yet, which means Python's ``None``.
    #[inline]
    pub fn get(&self, number: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: an element of an array of objects is a reference that the array owns, or null.
        unsafe { Bound::from_borrowed_ptr_or_opt(self.py, *self.place.at(number).cast::<*mut ffi::PyObject>()) }
    }

    /// Replace an element. Panics for one that the array does not have, or may not be written.
    #[inline]
    pub fn set(&self, number: usize, item: Bound<'py, PyAny>) {
        assert!(self.place.writable, "the array is read-only");
        let place = self.place.at(number).cast::<*mut ffi::PyObject>();
        // SAFETY: as for `get`. The array owns the new reference before the old one is dropped, which may run any code.
        drop(unsafe { Bound::from_owned_ptr_or_opt(self.py, place.replace(item.into_ptr())) });
    }
}

/// A `bytes` that is being filled from its start.
pub struct NewBytes<'py> {
    bytes: Bound<'py, PyBytes>,
    at: Filling,
}

/// The part of a `NewBytes` that threads without the GIL fill.
pub struct Filling {
    next: NonNull<u8>,
    left: usize,
}

// SAFETY: memory that no other object knows yet; `NewBytes` hands it out to one borrower at a time, and outlives the borrow.
unsafe impl Send for Filling {}

impl<'py> NewBytes<'py> {
    /// Raises `MemoryError`.
    pub fn of(py: Python<'py>, len: usize) -> PyResult<NewBytes<'py>> {
        let size = isize::try_from(len).map_err(|_| Error::memory(len))?;
        // SAFETY: without a source, Python makes a new object whose content is not initialized; `finish` hands it out only once
        // every byte was written.
        let bytes = unsafe {
            let made = ffi::PyBytes_FromStringAndSize(ptr::null(), size);
            Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyBytes>()
        };
        // SAFETY: an exact `bytes`, whose memory is never null.
        let next = unsafe { NonNull::new_unchecked(ffi::PyBytes_AsString(bytes.as_ptr()).cast()) };
        Ok(NewBytes { bytes, at: Filling { next, left: len } })
    }

    pub fn filling(&mut self) -> &mut Filling {
        &mut self.at
    }

    /// `None`: it is not full.
    pub fn finish(self) -> Option<Bound<'py, PyBytes>> {
        (self.at.left == 0).then_some(self.bytes)
    }
}

impl Filling {
    /// Append `content`, if there is room for it.
    #[inline]
    #[must_use]
    pub fn push(&mut self, content: &[u8]) -> bool {
        let Some(left) = self.left.checked_sub(content.len()) else { return false };
        // SAFETY: `left` bytes follow `next`; they overlap no borrowed memory, since only this object knows them. An object of
        // length 0 and an object of one byte are shared by Python, but `left` is 0, and one-byte objects are only made with content.
        unsafe {
            self.next.copy_from_nonoverlapping(NonNull::from(content).cast(), content.len());
            self.next = self.next.add(content.len());
        }
        self.left = left;
        true
    }
}

/// Make a `bytes`.
#[inline]
pub fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: pointer and length come from a slice, whose length fits; the result is a new reference, or null with an error.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(content.as_ptr().cast(), content.len() as isize);
        Bound::from_owned_ptr_or_err(py, made)
    }
}
