//! Deterministic elements.

use crate::any::{FromNumber, Number};
use crate::dtype::{DType, Element};

/// A stream of 64-bit numbers from a seed (SplitMix64; Steele, Lea, Flood 2014).
#[derive(Clone, Copy, Debug)]
pub struct Mix(pub u64);

impl Mix {
    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n > 0`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A real number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (0.5f64).powi(53)
    }
}

/// The `i`-th test element: a multiple of ¼ in [−8, 8) for floats, so that a few operations are
/// exact in every float type; an integer in [−8, 8) or [0, 16); both truth values.
pub fn value<T: Element + FromNumber>(i: usize) -> T {
    let bits = Mix(i as u64).next() >> 32;
    Number::to(match T::DTYPE {
        DType::Bool => Number::Bool(bits & 1 == 1),
        d if d.is_int() && d >= DType::U64 => Number::UInt(bits & 15),
        d if d.is_int() => Number::Int((bits & 15) as i64 - 8),
        _ => Number::Float((bits & 63) as f64 * 0.25 - 8.0),
    })
}
