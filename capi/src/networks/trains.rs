//! Tensor trains of functions of a caller, by cross interpolation.

use std::ffi::{c_char, c_int, c_void};

use serde::{Deserialize, Serialize};
use t4a_algebra::c64;
use t4a_linalg::LinalgScalar;
use t4a_networks::cross::{
    CrossOptions, CrossReport, Function, PivotSearch, Points, Status as CrossStatus, interpolate,
};
use t4a_tensor::{AnyTensor, Element};

use super::{read, written};
use crate::error::{Error, Failure, Status, enter};
use crate::op::list;
use crate::run::{check_process, hand_over};
use crate::tensor::Tensor;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Search {
    Rook,
    Full,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TrainOptions {
    tolerance: Option<f64>,
    max_bond: Option<usize>,
    max_sweeps: Option<usize>,
    search: Option<Search>,
    global_search: Option<usize>,
    initial_pivots: Vec<Vec<usize>>,
    seed: u64,
}

impl TrainOptions {
    fn options(&self) -> CrossOptions {
        let own = CrossOptions::new().initial_pivots(&self.initial_pivots).seed(self.seed);
        let own = self.tolerance.map_or(own.clone(), |x| own.tolerance(x));
        let own = self.max_bond.map_or(own.clone(), |n| own.max_bond(n));
        let own = self.max_sweeps.map_or(own.clone(), |n| own.max_sweeps(n));
        let own = self.global_search.map_or(own.clone(), |n| own.global_search(n));
        match self.search {
            Some(Search::Full) => own.search(PivotSearch::Full),
            _ => own,
        }
    }
}

#[derive(Serialize)]
struct TrainReport {
    status: &'static str,
    pivot_error: f64,
    global_error: f64,
    max_value: f64,
    evaluations: usize,
    sweeps: usize,
}

impl From<CrossReport> for TrainReport {
    fn from(report: CrossReport) -> Self {
        let CrossReport { pivot_error, global_error, max_value, evaluations, sweeps, .. } = report;
        let status = match report.status {
            CrossStatus::Converged => "converged",
            CrossStatus::MaxBond => "max_bond",
            CrossStatus::MaxSweeps => "max_sweeps",
            CrossStatus::Stopped => "stopped",
        };
        Self { status, pivot_error, global_error, max_value, evaluations, sweeps }
    }
}

/// Values at `count` points, whose indices follow each other point by point: so many `double`s, or pairs of them.
/// Anything but 0 is an error.
pub type Values = Option<unsafe extern "C" fn(*mut c_void, *const i64, usize, *mut f64) -> c_int>;

/// Numbers that a caller writes as `double`s.
trait Written: LinalgScalar + Element {
    const DOUBLES: usize;
    fn of(doubles: &[f64]) -> Self;
}

impl Written for f64 {
    const DOUBLES: usize = 1;
    fn of(doubles: &[f64]) -> Self {
        doubles[0]
    }
}

impl Written for c64 {
    const DOUBLES: usize = 2;
    fn of(doubles: &[f64]) -> Self {
        c64::new(doubles[0], doubles[1])
    }
}

/// # Safety
/// `f` may be called with `context`, and writes as many values as points.
unsafe fn train<T: Written>(
    sizes: &[usize],
    f: unsafe extern "C" fn(*mut c_void, *const i64, usize, *mut f64) -> c_int,
    context: *mut c_void,
    options: &CrossOptions,
) -> Result<Vec<AnyTensor>, Failure> {
    let values = |points: &Points<'_>| -> Result<Vec<T>, String> {
        let indices: Vec<i64> = points.as_slice().iter().map(|&i| i as i64).collect();
        let mut values = vec![0.0; points.len() * T::DOUBLES];
        // SAFETY: as the caller promises.
        match unsafe { f(context, indices.as_ptr(), points.len(), values.as_mut_ptr()) } {
            0 => Ok(values.chunks_exact(T::DOUBLES).map(T::of).collect()),
            code => Err(format!("it returned {code}")),
        }
    };
    let (train, report) = interpolate(Function::batched(sizes, values), options)?;
    let mut all = vec![written(&TrainReport::from(report))?];
    all.extend(train.into_cores().into_iter().map(AnyTensor::from));
    Ok(all)
}

/// A tensor train of a function by cross interpolation: the report, then a core `[left, size, right]` for each site.
///
/// # Safety
/// `sizes` is null or valid for `sites` numbers, `options` for `len` bytes; `values` may be called with `context`;
/// `out` is null or valid for `room` writes, `results` and `error` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_cross_interpolation(
    sizes: *const i64,
    sites: usize,
    is_complex: c_int,
    values: Values,
    context: *mut c_void,
    options: *const c_char,
    len: usize,
    out: *mut *const Tensor,
    room: usize,
    results: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    let run = || {
        check_process()?;
        // SAFETY: as the caller promises.
        let (given, options) = unsafe {
            let options: TrainOptions = read(options, len, "the options")?;
            (list(sizes, sites, "the sizes of sites")?, options.options())
        };
        let f = values.ok_or_else(|| Failure::null("the function"))?;
        let sizes: Option<Vec<usize>> = given.iter().map(|&n| usize::try_from(n).ok()).collect();
        let sizes = sizes.ok_or_else(|| {
            Failure::new(Status::Shape, format!("sites of the impossible sizes {given:?}"))
        })?;
        // SAFETY: as the caller promises.
        unsafe {
            let all = match is_complex {
                0 => train::<f64>(&sizes, f, context, &options),
                _ => train::<c64>(&sizes, f, context, &options),
            };
            hand_over(all?, out, room, results)
        }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, run) }
}
