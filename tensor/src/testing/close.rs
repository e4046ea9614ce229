//! Tolerances.

use t4a_algebra::{Field, Float, Real, Scalar};

use crate::dtypes;
use crate::scalars::*;

/// Distance of two elements, and the magnitude relative to which it is measured.
pub trait Close: Scalar {
    /// Unit roundoff; 0 for exact types.
    const ROUNDOFF: f64;
    /// `|a − b|`; 0 for two NaN, ∞ for one.
    fn distance(a: Self, b: Self) -> f64;
    /// `|a|`.
    fn size(a: Self) -> f64;
}

fn real_distance(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0.0,
        (false, false) if a == b => 0.0,
        (false, false) => (a - b).abs(),
        _ => f64::INFINITY,
    }
}

macro_rules! close {
    ({ $t:ident, $roundoff:expr, $v:ident => $wide:expr } $($tag:ident $element:ident,)*) => {$(
        impl Close for $element {
            const ROUNDOFF: f64 = {
                #[allow(dead_code)]
                type $t = $element;
                $roundoff
            };
            fn distance(a: Self, b: Self) -> f64 {
                real_distance({ let $v = a; $wide }, { let $v = b; $wide })
            }
            fn size(a: Self) -> f64 {
                let $v = a;
                ($wide as f64).abs()
            }
        }
    )*};
}

dtypes!(float => [close] { T, 1.0 / (1u64 << <T as Float>::DIGITS) as f64, v => Real::to_f64(v) });
dtypes!(int => [close] { T, 0.0, v => v as f64 });
dtypes!([truth] => [close] { T, 0.0, v => f64::from(u8::from(v)) });

macro_rules! close_complex {
    ({} $($tag:ident $t:ident,)*) => {$(
        impl Close for $t {
            const ROUNDOFF: f64 = <<$t as Field>::Real as Close>::ROUNDOFF;
            fn distance(a: Self, b: Self) -> f64 {
                Close::distance(a.re, b.re).max(Close::distance(a.im, b.im))
            }
            fn size(a: Self) -> f64 {
                Close::size(a.re).max(Close::size(a.im))
            }
        }
    )*};
}
dtypes!([complex] => [close_complex] {});

/// The error that `steps` roundings may add up to, relative to the result.
pub fn tolerance<T: Close>(steps: usize) -> f64 {
    T::ROUNDOFF * steps as f64
}

/// Asserts `|gotᵢ − wantᵢ| ≤ tolerance · max(|wantᵢ|, 1)` for every element.
///
/// # Panics
/// Otherwise, with the first element that differs.
#[track_caller]
pub fn assert_close<T: Close>(got: &[T], want: &[T], tolerance: f64, context: &str) {
    assert_eq!(got.len(), want.len(), "{context}: element counts");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let allowed = tolerance * T::size(w).max(1.0);
        assert!(
            g == w || T::distance(g, w) <= allowed,
            "{context}: element {i} is {g:?}, expected {w:?} within {allowed:e}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_close_to_nan_only() {
        assert_eq!(f32::distance(f32::NAN, f32::NAN), 0.0);
        assert_eq!(f32::distance(1.0, f32::NAN), f64::INFINITY);
        assert_eq!(f64::distance(f64::INFINITY, f64::INFINITY), 0.0);
        assert_close(&[1.0f32 + 1e-7], &[1.0], tolerance::<f32>(2), "one");
    }

    #[test]
    #[should_panic(expected = "element 1 is 2.5")]
    fn a_distant_element_is_named() {
        assert_close(&[1.0f64, 2.5], &[1.0, 2.0], 1e-3, "two");
    }
}
