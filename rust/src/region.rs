//! Moving elements between memory of any layout. With `numpy.rs` and `shared.rs`, the only file with `unsafe`.
//!
//! A `Memory` is a borrowed range of bytes: a NumPy array's buffer, or a slice. Every public function checks all offsets
//! against the range before it accesses memory; `Memory` documents the invariants that callers keep.

use std::alloc::{Layout, alloc_zeroed};
use std::marker::PhantomData;
use std::slice;

use pyo3::buffer::PyUntypedBuffer;

/// A range of bytes, addressed relative to an origin (the first element of an array, whose strides may be negative).
///
/// Invariants that callers keep: the bytes outlive `'a` (for a NumPy buffer: the caller holds the exported buffer until
/// no worker is left in the job that uses the memory), and concurrent writers write disjoint bytes (every element of
/// an output belongs to exactly one part of a plan).
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    origin: *mut u8,
    low: isize,
    high: isize,
    writable: bool,
    life: PhantomData<&'a [u8]>,
}

// SAFETY: a `Memory` is a plain address range; see the invariants above for what makes sharing it sound.
unsafe impl Send for Memory<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for Memory<'_> {}

impl<'a> Memory<'a> {
    /// The bytes of a slice, for reading.
    pub fn of(bytes: &'a [u8]) -> Memory<'a> {
        Memory {
            origin: bytes.as_ptr().cast_mut(),
            low: 0,
            high: bytes.len() as isize,
            writable: false,
            life: PhantomData,
        }
    }

    /// The bytes of a slice, for writing.
    pub fn of_mut(bytes: &'a mut [u8]) -> Memory<'a> {
        Memory { origin: bytes.as_mut_ptr(), low: 0, high: bytes.len() as isize, writable: true, life: PhantomData }
    }

    /// The elements of an exported buffer. The caller keeps `buffer` while the result is in use.
    pub fn of_buffer(buffer: &PyUntypedBuffer) -> Memory<'static> {
        let (mut low, mut high) = (0isize, buffer.item_size() as isize);
        for (&n, &stride) in buffer.shape().iter().zip(buffer.strides()) {
            if n == 0 {
                (low, high) = (0, 0);
                break;
            }
            let reach = (n as isize - 1) * stride;
            if reach < 0 { low += reach } else { high += reach }
        }
        Memory { origin: buffer.buf_ptr().cast(), low, high, writable: !buffer.readonly(), life: PhantomData }
    }

    fn holds(&self, start: isize, stop: isize) -> bool {
        start >= self.low && start <= stop && stop <= self.high
    }

    /// `len` bytes at `offset` for writing, when they all lie inside.
    #[allow(clippy::mut_from_ref)]
    pub fn slice_mut(&self, offset: isize, len: usize) -> Option<&'a mut [u8]> {
        if !self.writable || !self.holds(offset, offset.checked_add(len as isize)?) {
            return None;
        }
        // SAFETY: inside the memory (just checked), alive, and without other writers (invariants of `Memory`).
        Some(unsafe { slice::from_raw_parts_mut(self.origin.offset(offset), len) })
    }

    /// `len` bytes at `offset` for reading, when they all lie inside.
    pub fn slice(&self, offset: isize, len: usize) -> Option<&'a [u8]> {
        if !self.holds(offset, offset.checked_add(len as isize)?) {
            return None;
        }
        // SAFETY: inside the memory (just checked), alive, and not written while it is read (invariants of `Memory`).
        Some(unsafe { slice::from_raw_parts(self.origin.offset(offset), len) })
    }
}

/// Return `len` zero bytes; `None`: there is not enough memory. The kernel zeroes large memory when it is used.
pub fn zeros(len: usize) -> Option<Vec<u8>> {
    if len == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<u8>(len).ok()?;
    // SAFETY: the layout is not empty.
    let bytes = unsafe { alloc_zeroed(layout) };
    // SAFETY: the global allocator made `bytes` with the layout of a vector of that capacity, and all of them are initialized.
    (!bytes.is_null()).then(|| unsafe { Vec::from_raw_parts(bytes, len, len) })
}

/// Read-only memory of a Python object (such as a part of a larger response), held by its exported buffer.
pub struct Exported {
    buffer: PyUntypedBuffer,
}

impl Exported {
    /// `None` for memory that is not contiguous or is writable.
    pub fn of(buffer: PyUntypedBuffer) -> Option<Exported> {
        (buffer.readonly() && buffer.is_c_contiguous()).then_some(Exported { buffer })
    }
}

impl std::ops::Deref for Exported {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        if self.buffer.len_bytes() == 0 {
            return &[]; // its pointer may be null
        }
        // SAFETY: the buffer is contiguous (see `of`), and its exporter keeps the memory until it is released. It is
        // exported as read-only: a store does not write to a buffer that it returned (`Store.get`).
        unsafe { slice::from_raw_parts(self.buffer.buf_ptr().cast(), self.buffer.len_bytes()) }
    }
}

/// How an axis advances, in bytes.
#[derive(Clone, Debug)]
pub enum Steps {
    /// Element i is at i × this.
    Affine(isize),
    /// Element i is at the i-th entry.
    Table(Vec<isize>),
}

/// One axis of a copy.
#[derive(Clone, Debug)]
pub struct CopyAxis {
    pub n: usize,
    pub src: Steps,
    pub dst: Steps,
}

impl Steps {
    fn extent(&self, n: usize) -> (isize, isize) {
        match self {
            Steps::Affine(step) => {
                let reach = (n as isize - 1).checked_mul(*step).expect("extent overflows");
                (reach.min(0), reach.max(0))
            }
            Steps::Table(at) => {
                assert!(at.len() == n, "a table of steps has the wrong length");
                (at.iter().copied().min().unwrap_or(0), at.iter().copied().max().unwrap_or(0))
            }
        }
    }

    #[inline]
    fn at(&self, i: usize) -> isize {
        match self {
            Steps::Affine(step) => step * i as isize,
            Steps::Table(at) => at[i],
        }
    }

    fn rank(&self) -> isize {
        match self {
            Steps::Affine(step) => step.abs(),
            Steps::Table(_) => isize::MAX,
        }
    }
}

/// Copy elements of `item` bytes from `src` (first at `s0`) to `dst` (first at `d0`).
///
/// Panics, having written nothing, when an element lies outside either memory.
pub fn copy(src: Memory, mut s0: isize, dst: Memory, mut d0: isize, mut axes: Vec<CopyAxis>, item: usize) {
    if item == 0 || axes.iter().any(|axis| axis.n == 0) {
        return;
    }
    let (mut slo, mut shi, mut dlo, mut dhi) = (s0, s0, d0, d0);
    for axis in &axes {
        let (a, b) = axis.src.extent(axis.n);
        let (c, d) = axis.dst.extent(axis.n);
        (slo, shi, dlo, dhi) = (slo + a, shi + b, dlo + c, dhi + d);
    }
    let item_ = item as isize;
    assert!(dst.writable && src.holds(slo, shi + item_) && dst.holds(dlo, dhi + item_), "a copy leaves its memory");
    axes.retain(|axis| {
        if axis.n == 1 {
            s0 += axis.src.at(0);
            d0 += axis.dst.at(0);
        }
        axis.n != 1
    });
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.dst.rank()));
    merge(&mut axes);
    // SAFETY: every element of source and destination was shown above to lie inside its memory.
    unsafe { walk(&axes, src.origin.offset(s0), dst.origin.offset(d0), item) }
}

/// Merge neighbouring axes that are contiguous in both memories.
fn merge(axes: &mut Vec<CopyAxis>) {
    let mut i = axes.len();
    while i > 1 {
        i -= 1;
        let (outer, inner) = (&axes[i - 1], &axes[i]);
        if let (Steps::Affine(so), Steps::Affine(dd), Steps::Affine(si), Steps::Affine(di)) =
            (&outer.src, &outer.dst, &inner.src, &inner.dst)
            && *so == *si * inner.n as isize
            && *dd == *di * inner.n as isize
        {
            let (n, si, di) = (outer.n * inner.n, *si, *di);
            axes[i - 1] = CopyAxis { n, src: Steps::Affine(si), dst: Steps::Affine(di) };
            axes.remove(i);
        }
    }
}

/// SAFETY (for callers): every element that `axes` reach from `s` and `d` is inside valid memory.
unsafe fn walk(axes: &[CopyAxis], s: *const u8, d: *mut u8, item: usize) {
    match axes {
        // SAFETY: one element, valid by the contract.
        [] => unsafe { d.copy_from_nonoverlapping(s, item) },
        [axis] => {
            if let (Steps::Affine(ss), Steps::Affine(ds)) = (&axis.src, &axis.dst) {
                // SAFETY: by the contract of this function.
                unsafe { row(s, *ss, d, *ds, axis.n, item) }
            } else {
                for i in 0..axis.n {
                    // SAFETY: the offsets are elements of the axis.
                    unsafe { element(s.offset(axis.src.at(i)), d.offset(axis.dst.at(i)), item) }
                }
            }
        }
        [
            CopyAxis { n: n1, src: Steps::Affine(s1), dst: Steps::Affine(d1) },
            CopyAxis { n: n0, src: Steps::Affine(ss), dst: Steps::Affine(ds) },
        ] => {
            // SAFETY: by the contract of this function.
            unsafe { plane(s, d, (*n1, *s1, *d1), (*n0, *ss, *ds), item) }
        }
        [outer, rest @ ..] => {
            for i in 0..outer.n {
                // SAFETY: the offsets are elements of the axis.
                unsafe { walk(rest, s.offset(outer.src.at(i)), d.offset(outer.dst.at(i)), item) }
            }
        }
    }
}

const TILE: usize = 32;

type Line = (usize, isize, isize);

/// SAFETY (for callers): as for `walk`.
unsafe fn plane(s: *const u8, d: *mut u8, (n1, s1, d1): Line, (n0, s0, d0): Line, item: usize) {
    if s1.abs() >= s0.abs() || n1 < 4 || n0 < 4 {
        for i in 0..n1 as isize {
            // SAFETY: row i of the plane.
            unsafe { row(s.offset(i * s1), s0, d.offset(i * d1), d0, n0, item) }
        }
        return;
    }
    // A transposition: tiles keep the lines of both sides in the first-level cache.
    for i in (0..n1).step_by(TILE) {
        for j in (0..n0).step_by(TILE) {
            for k in i..(i + TILE).min(n1) {
                let (k, j_) = (k as isize, j as isize);
                // SAFETY: a part of row k of the plane.
                unsafe {
                    row(s.offset(k * s1 + j_ * s0), s0, d.offset(k * d1 + j_ * d0), d0, TILE.min(n0 - j), item);
                }
            }
        }
    }
}

/// SAFETY (for callers): as for `walk`.
#[inline]
unsafe fn row(s: *const u8, ss: isize, d: *mut u8, ds: isize, n: usize, item: usize) {
    let i = item as isize;
    // SAFETY: by the contract of this function; contiguous runs are n × item bytes long. Source and destination never overlap:
    // one of them is always engine memory or a separate array of the caller.
    unsafe {
        if ss == i && ds == i {
            d.copy_from_nonoverlapping(s, n * item);
            return;
        }
        match item {
            1 => typed::<u8>(s, ss, d, ds, n),
            2 => typed::<u16>(s, ss, d, ds, n),
            4 => typed::<u32>(s, ss, d, ds, n),
            8 => typed::<u64>(s, ss, d, ds, n),
            16 => typed::<u128>(s, ss, d, ds, n),
            _ => {
                for k in 0..n as isize {
                    d.offset(k * ds).copy_from_nonoverlapping(s.offset(k * ss), item);
                }
            }
        }
    }
}

/// SAFETY (for callers): as for `walk`, with elements of the size of `T`.
#[inline]
unsafe fn typed<T: Copy>(s: *const u8, ss: isize, d: *mut u8, ds: isize, n: usize) {
    let size = size_of::<T>() as isize;
    // SAFETY: n elements on both sides, any alignment.
    unsafe {
        if ss == 0 {
            let value = s.cast::<T>().read_unaligned();
            if ds == size {
                for k in 0..n {
                    d.cast::<T>().add(k).write_unaligned(value);
                }
            } else {
                for k in 0..n as isize {
                    d.offset(k * ds).cast::<T>().write_unaligned(value);
                }
            }
        } else {
            for k in 0..n as isize {
                d.offset(k * ds).cast::<T>().write_unaligned(s.offset(k * ss).cast::<T>().read_unaligned());
            }
        }
    }
}

/// SAFETY (for callers): `item` bytes are valid on both sides.
#[inline]
unsafe fn element(s: *const u8, d: *mut u8, item: usize) {
    // SAFETY: by the contract of this function.
    unsafe {
        match item {
            1 => d.write(s.read()),
            2 => d.cast::<u16>().write_unaligned(s.cast::<u16>().read_unaligned()),
            4 => d.cast::<u32>().write_unaligned(s.cast::<u32>().read_unaligned()),
            8 => d.cast::<u64>().write_unaligned(s.cast::<u64>().read_unaligned()),
            _ => d.copy_from_nonoverlapping(s, item),
        }
    }
}

/// Run `work`, compiled for AVX2 where the processor has it: for loops that the compiler vectorises. What `work` calls
/// must be inlined into it to take part.
#[inline]
pub fn wide_vectors<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
            work()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function is compiled for (just checked).
            return unsafe { with_avx2(work) };
        }
    }
    work()
}

/// A libdeflate decompressor that also returns how much input it used, unlike the safe crate.
pub struct Inflater(std::ptr::NonNull<libdeflate_sys::libdeflate_decompressor>);

/// The formats that `Inflater` reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wrapper {
    Gzip,
    Zlib,
}

impl Inflater {
    pub fn create() -> Inflater {
        // SAFETY: allocates; no preconditions.
        let made = unsafe { libdeflate_sys::libdeflate_alloc_decompressor() };
        Inflater(std::ptr::NonNull::new(made).expect("out of memory"))
    }

    /// Decode one stream at the start of `data` into the start of `out`; return the numbers of bytes read and written, or `None`.
    pub fn inflate(&mut self, wrapper: Wrapper, data: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
        let (mut used, mut made) = (0usize, 0usize);
        let decode = match wrapper {
            Wrapper::Gzip => libdeflate_sys::libdeflate_gzip_decompress_ex,
            Wrapper::Zlib => libdeflate_sys::libdeflate_zlib_decompress_ex,
        };
        // SAFETY: pointers and lengths come from slices; the decompressor is ours and not shared (&mut self).
        let result = unsafe {
            decode(
                self.0.as_ptr(),
                data.as_ptr().cast(),
                data.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &mut used,
                &mut made,
            )
        };
        (result == libdeflate_sys::libdeflate_result_LIBDEFLATE_SUCCESS).then_some((used, made))
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}
