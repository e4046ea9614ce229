//! Cached plans of Fourier transforms, keyed by length. A separate crate, because the butterflies of `rustfft` are
//! numerous and generic: they are compiled here once per float type, and not again with `t4a-tensor`. Users call
//! `t4a_tensor::fft`.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use realfft::RealFftPlanner;
pub use realfft::{ComplexToReal, FftError, RealToComplex};
pub use rustfft::num_complex::Complex;
pub use rustfft::{Fft, FftDirection};
use rustfft::{FftNum, FftPlanner};
use t4a_algebra::Float;

/// Maximum number of cached lengths; the cache is cleared when it is full.
const KEPT: usize = 64;

/// Float types with transforms.
pub trait Transform: Float + FftNum {
    /// Plan of the transform of `n` reals.
    #[doc(hidden)]
    fn forward(n: usize) -> Arc<dyn RealToComplex<Self>>;
    /// Plan of the inverse transform.
    #[doc(hidden)]
    fn inverse(n: usize) -> Arc<dyn ComplexToReal<Self>>;
    /// Plan of the transform of `n` complex numbers.
    #[doc(hidden)]
    fn complex(n: usize, direction: FftDirection) -> Arc<dyn Fft<Self>>;
}

/// The plans of an element type, with tables of their length.
struct Plans<T: FftNum> {
    real: RealFftPlanner<T>,
    complex: FftPlanner<T>,
    lengths: BTreeSet<usize>,
}

impl<T: FftNum> Plans<T> {
    fn new() -> Self {
        Self { real: RealFftPlanner::new(), complex: FftPlanner::new(), lengths: BTreeSet::new() }
    }

    /// Before a plan of this length is made or found.
    fn of(&mut self, n: usize) -> &mut Self {
        if self.lengths.insert(n) && self.lengths.len() > KEPT {
            *self = Self::new();
            self.lengths.insert(n);
        }
        self
    }
}

macro_rules! transforms {
    ($($t:ident: $plans:ident),*) => {$(
        static $plans: LazyLock<Mutex<Plans<$t>>> = LazyLock::new(|| Mutex::new(Plans::new()));

        // A panic while planning leaves the plans that there were.
        impl Transform for $t {
            fn forward(n: usize) -> Arc<dyn RealToComplex<$t>> {
                let mut plans = $plans.lock().unwrap_or_else(PoisonError::into_inner);
                plans.of(n).real.plan_fft_forward(n)
            }
            fn inverse(n: usize) -> Arc<dyn ComplexToReal<$t>> {
                let mut plans = $plans.lock().unwrap_or_else(PoisonError::into_inner);
                plans.of(n).real.plan_fft_inverse(n)
            }
            fn complex(n: usize, direction: FftDirection) -> Arc<dyn Fft<$t>> {
                let mut plans = $plans.lock().unwrap_or_else(PoisonError::into_inner);
                plans.of(n).complex.plan_fft(n, direction)
            }
        }
    )*};
}
transforms!(f32: PLANS_F32, f64: PLANS_F64);
