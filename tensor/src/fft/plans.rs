//! Plans of transforms, kept for the next tensor of the same length.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use t4a_algebra::Float;

/// Most lengths that are kept; then one begins anew.
const KEPT: usize = 64;

/// Floats of which there are transforms.
pub trait Transform: Float + FftNum {
    #[doc(hidden)]
    fn plans() -> MutexGuard<'static, Plans<Self>>;
}

/// The plans of an element type. They hold tables of their length.
pub struct Plans<T: FftNum> {
    real: RealFftPlanner<T>,
    complex: FftPlanner<T>,
    lengths: BTreeSet<usize>,
}

impl<T: FftNum> Plans<T> {
    fn new() -> Self {
        Self { real: RealFftPlanner::new(), complex: FftPlanner::new(), lengths: BTreeSet::new() }
    }

    fn keep(&mut self, n: usize) {
        if self.lengths.insert(n) && self.lengths.len() > KEPT {
            *self = Self::new();
            self.lengths.insert(n);
        }
    }

    pub(super) fn forward(&mut self, n: usize) -> Arc<dyn RealToComplex<T>> {
        self.keep(n);
        self.real.plan_fft_forward(n)
    }

    pub(super) fn inverse(&mut self, n: usize) -> Arc<dyn ComplexToReal<T>> {
        self.keep(n);
        self.real.plan_fft_inverse(n)
    }

    pub(super) fn complex(&mut self, n: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
        self.keep(n);
        self.complex.plan_fft(n, direction)
    }
}

macro_rules! transforms {
    ($($t:ty),*) => {$(
        impl Transform for $t {
            fn plans() -> MutexGuard<'static, Plans<$t>> {
                static PLANS: LazyLock<Mutex<Plans<$t>>> =
                    LazyLock::new(|| Mutex::new(Plans::new()));
                // A panic while planning leaves the plans that there were.
                PLANS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
            }
        }
    )*};
}
transforms!(f32, f64);
