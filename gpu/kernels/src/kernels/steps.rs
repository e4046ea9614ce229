//! Steps of scans and their composition.
//!
//! A step is a pair (p, q), and pairs compose:
//!
//! ```text
//!                 step      composition of (p, q) and a later (p′, q′)         state
//! recurrence      (a, b)    (p p′, p′ q + q′)                                  q
//! sums            (1, b)    (1, q + q′)                                        q
//! extrema         (1, b)    (1, max(q, q′))                                    q
//! log-sum-exp     (b, 1)    (m, q e^(p − m) + q′ e^(p′ − m)), m = max(p, p′)   p + ln q
//! ```
//!
//! Arrays of p and q have one number, or the real and the imaginary part of a complex one.

use cubecl::prelude::*;

use super::is_nan;
use super::log_sum::part;

/// Composition of the steps of a scan.
#[cube]
pub(crate) trait ScanSteps: 'static + Send + Sync {
    /// Replaces (p, q) by its composition with a later step; `composed` marks a later step that is a composition.
    fn compose<F: Float>(
        p: &mut Array<F>,
        q: &mut Array<F>,
        later: &Array<F>,
        x: &Array<F>,
        low: F,
        #[comptime] composed: bool,
    );
    /// A part of the state.
    fn state<F: Float>(p: &Array<F>, q: &Array<F>, low: F, #[comptime] part: usize) -> F;
}

/// The larger number, or NaN.
#[cube]
fn greater<F: Float>(x: F, y: F) -> F {
    select(y > x || is_nan::<F>(y), y, x)
}

/// `h ← a h + b`.
pub(crate) struct AffineSteps;
#[cube]
impl ScanSteps for AffineSteps {
    fn compose<F: Float>(
        p: &mut Array<F>,
        q: &mut Array<F>,
        later: &Array<F>,
        x: &Array<F>,
        _low: F,
        #[comptime] composed: bool,
    ) {
        let a = later[0];
        let h = q[0];
        let mut term = a * h;
        if comptime!(composed) {
            // The product of many factors may overflow, and a state of 0 is still 0.
            term = select(h == F::new(0.0) && !is_nan::<F>(a), h, term);
        }
        q[0] = term + x[0];
        p[0] = p[0] * a;
    }
    fn state<F: Float>(_p: &Array<F>, q: &Array<F>, _low: F, #[comptime] part: usize) -> F {
        q[part]
    }
}

/// `h ← a h + b` of complex numbers.
pub(crate) struct ComplexSteps;
#[cube]
impl ScanSteps for ComplexSteps {
    fn compose<F: Float>(
        p: &mut Array<F>,
        q: &mut Array<F>,
        later: &Array<F>,
        x: &Array<F>,
        _low: F,
        #[comptime] composed: bool,
    ) {
        let a = later[0];
        let ia = later[1];
        let h = q[0];
        let ih = q[1];
        let mut re = a * h - ia * ih;
        let mut im = a * ih + ia * h;
        if comptime!(composed) {
            let none = h == F::new(0.0) && ih == F::new(0.0);
            let zero = none && !is_nan::<F>(a) && !is_nan::<F>(ia);
            re = select(zero, h, re);
            im = select(zero, ih, im);
        }
        q[0] = re + x[0];
        q[1] = im + x[1];
        let re = a * p[0] - ia * p[1];
        p[1] = a * p[1] + ia * p[0];
        p[0] = re;
    }
    fn state<F: Float>(_p: &Array<F>, q: &Array<F>, _low: F, #[comptime] part: usize) -> F {
        q[part]
    }
}

pub(crate) struct SumSteps;
#[cube]
impl ScanSteps for SumSteps {
    fn compose<F: Float>(
        _p: &mut Array<F>,
        q: &mut Array<F>,
        _later: &Array<F>,
        x: &Array<F>,
        _low: F,
        #[comptime] _composed: bool,
    ) {
        q[0] = q[0] + x[0];
    }
    fn state<F: Float>(_p: &Array<F>, q: &Array<F>, _low: F, #[comptime] part: usize) -> F {
        q[part]
    }
}

pub(crate) struct MaximumSteps;
#[cube]
impl ScanSteps for MaximumSteps {
    fn compose<F: Float>(
        _p: &mut Array<F>,
        q: &mut Array<F>,
        _later: &Array<F>,
        x: &Array<F>,
        _low: F,
        #[comptime] _composed: bool,
    ) {
        q[0] = greater::<F>(q[0], x[0]);
    }
    fn state<F: Float>(_p: &Array<F>, q: &Array<F>, _low: F, #[comptime] part: usize) -> F {
        q[part]
    }
}

pub(crate) struct MinimumSteps;
#[cube]
impl ScanSteps for MinimumSteps {
    fn compose<F: Float>(
        _p: &mut Array<F>,
        q: &mut Array<F>,
        _later: &Array<F>,
        x: &Array<F>,
        _low: F,
        #[comptime] _composed: bool,
    ) {
        q[0] = select(x[0] < q[0] || is_nan::<F>(x[0]), x[0], q[0]);
    }
    fn state<F: Float>(_p: &Array<F>, q: &Array<F>, _low: F, #[comptime] part: usize) -> F {
        q[part]
    }
}

pub(crate) struct LogSumSteps;
#[cube]
impl ScanSteps for LogSumSteps {
    fn compose<F: Float>(
        p: &mut Array<F>,
        q: &mut Array<F>,
        later: &Array<F>,
        x: &Array<F>,
        low: F,
        #[comptime] _composed: bool,
    ) {
        let most = greater::<F>(p[0], later[0]);
        q[0] = q[0] * part::<F>(p[0], most, low) + x[0] * part::<F>(later[0], most, low);
        p[0] = most;
    }
    fn state<F: Float>(p: &Array<F>, q: &Array<F>, low: F, #[comptime] part: usize) -> F {
        let infinite = p[part] == low || p[part] == F::new(0.0) - low;
        select(infinite, p[part], q[part].ln() + p[part])
    }
}
