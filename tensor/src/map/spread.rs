//! One repeated element as a slice, for kernels of three operands.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use t4a_algebra::Scalar;

use crate::loops::contiguous::Run;
use crate::loops::stage::StagingBuffer;
use crate::loops::written;

/// Bytes of scratch in which a repeated element is materialised.
const SPREAD_BYTES: usize = 8192;

/// Number of materialised elements: at least one for every element size.
pub(super) const fn spread<T>() -> usize {
    let most = SPREAD_BYTES / size_of::<T>();
    if most < 256 { most } else { 256 }
}

/// A run as a slice, with a repeated element written out.
pub(super) struct SpreadRun<T> {
    scratch: StagingBuffer<SPREAD_BYTES>,
    filled: bool,
    element: PhantomData<T>,
}

impl<T: Scalar> SpreadRun<T> {
    #[inline]
    pub(super) fn new() -> Self {
        const { t4a_algebra::scalar::assert_storable::<T>() };
        Self { scratch: StagingBuffer::new(), filled: false, element: PhantomData }
    }

    /// `len ≤ spread::<T>()` elements of the run.
    #[inline]
    pub(super) fn slice<'a>(&'a mut self, run: Run<'a, T>, from: usize, len: usize) -> &'a [T] {
        match run {
            Run::Each(x) => &x[from..from + len],
            Run::Repeat(x) => {
                let first = self.scratch.as_mut_ptr().cast::<MaybeUninit<T>>();
                // SAFETY: the scratch has room for the elements, aligned for all types; they are initialised.
                unsafe {
                    let all = std::slice::from_raw_parts_mut(first, spread::<T>());
                    if !std::mem::replace(&mut self.filled, true) {
                        all.fill(MaybeUninit::new(x));
                    }
                    &written(all)[..len]
                }
            }
        }
    }
}
