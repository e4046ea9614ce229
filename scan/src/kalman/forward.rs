//! The filter on engine tensors.
//!
//! Covariances do not depend on observations: they are computed first, once for all sequences, with the gain, `S⁻¹` and
//! `ln |S|` of every step; means and likelihoods follow, with sequences distributed over threads.

use t4a_algebra::Float;
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_diff::{Array, Eager};
use t4a_tensor::{Result, Tensor};

use super::SystemArrays;
use super::small::{
    SmallMatrix, SystemMatrices, SystemSlices, add, add_vector, load, load_vector, product, sized,
    store,
};
use crate::operand::{computed_in, elements, narrow, wide};

struct Covariances<'a, T> {
    given: SystemSlices<'a, T>,
    p0: &'a [T],
    p: &'a mut [T],
    gains: &'a mut [T],
    w: &'a mut [T],
    /// m pivots for each step; |S| is their product.
    pivots: &'a mut [T],
    /// `ln |S|`.
    log_det: &'a mut [T],
}

impl<T: Float> Loop for Covariances<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        sized!(self.given, self.steps());
    }
}

impl<T: Float> Covariances<'_, T> {
    #[inline(always)]
    fn steps<const D: usize, const M: usize>(self) {
        let filter = SystemMatrices::<T, D, M>::new(&self.given);
        let (d, m) = filter.sizes();
        let mut now: SmallMatrix<T, D, D> = load(self.p0, [d, d]);
        let outs = self.p.chunks_exact_mut(d * d).zip(self.gains.chunks_exact_mut(d * m));
        let small = self.w.chunks_exact_mut(m * m).zip(self.pivots.chunks_exact_mut(m));
        for ((p, k), (w, pivots)) in outs.zip(small) {
            let predicted = filter.predict(&now);
            let g = &predicted.g;
            let gain: SmallMatrix<T, D, M> =
                product([d, m, m], |i, l, j| (g[i][l], predicted.w[l][j]));
            now = predicted.p;
            add(&mut now, [d, m, d], |i, l, j| (gain[i][l].neg(), g[j][l]));
            store(&now, p, [d, d]);
            store(&gain, k, [d, m]);
            store(&predicted.w, w, [m, m]);
            pivots.copy_from_slice(&predicted.pivots[..m]);
        }
        // A vectorised logarithm. The sum of logarithms is finite even if the product of the pivots overflows or
        // underflows.
        for pivot in self.pivots.iter_mut() {
            *pivot = pivot.ln();
        }
        for (sum, logs) in self.log_det.iter_mut().zip(self.pivots.chunks_exact(m)) {
            *sum = logs.iter().fold(T::ZERO, |sum, &log| sum.add(log));
        }
    }
}

/// Means and likelihoods of a sequence.
struct Means<'a, 'o, T> {
    given: SystemSlices<'a, T>,
    x0: &'a [T],
    y: &'a [T],
    /// K, `S⁻¹`, `ln |S|` of all steps.
    steps: [&'a [T]; 3],
    x: &'o mut [T],
    l: &'o mut [T],
}

impl<T: Float> Loop for Means<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        sized!(self.given, self.steps());
    }
}

impl<T: Float> Means<'_, '_, T> {
    #[inline(always)]
    fn steps<const D: usize, const M: usize>(self) {
        let filter = SystemMatrices::<T, D, M>::new(&self.given);
        let (d, m) = filter.sizes();
        let mut now: [T; D] = load_vector(self.x0, d);
        let [gains, w, log_det] = self.steps;
        let steps = gains.chunks_exact(d * m).zip(w.chunks_exact(m * m)).zip(log_det);
        let outs = self.x.chunks_exact_mut(d).zip(self.l).zip(self.y.chunks_exact(m));
        let constant = T::from_f64(m as f64 * (2.0 * std::f64::consts::PI).ln());
        let half = T::from_f64(-0.5);
        for (((k, w), &log_det), ((x, l), y)) in steps.zip(outs) {
            let (before, v) = filter.innovation(&now, y);
            let (k, w): (SmallMatrix<T, D, M>, SmallMatrix<T, M, M>) =
                (load(k, [d, m]), load(w, [m, m]));
            now = before;
            add_vector(&mut now, [d, m], |i, l| (k[i][l], v[l]));
            x.copy_from_slice(&now[..d]);
            let mut square = T::ZERO;
            for i in 0..m {
                for j in 0..m {
                    square = w[i][j].mul(v[i]).mul_add(v[j], square);
                }
            }
            *l = square.add(log_det).add(constant).mul(half);
        }
    }
}

/// Means, covariances and log-likelihoods.
pub(super) fn forward(
    s: &SystemArrays<Eager>,
    y: &Eager,
    x0: &Eager,
    p0: &Eager,
) -> Result<Vec<Eager>> {
    let shape = y.shape();
    let (batch, n, m) = (shape[0], shape[1], shape[2]);
    let (d, dtype) = (s.f.shape()[0], y.dtype());
    let shapes: [&[usize]; 3] = [&[batch, n, d], &[n, d, d], &[batch, n]];
    computed_in!("kalman_filter", dtype, T => {
        let [f, q, h, r, y, x0, p0] = wide::<T, 7>([&s.f, &s.q, &s.h, &s.r, y, x0, p0])?;
        let given =
            SystemSlices { f: elements(&f), q: elements(&q), h: elements(&h), r: elements(&r), n, d, m };
        let mut out: Vec<Tensor<T>> =
            shapes.iter().map(|shape| Tensor::zeros(shape)).collect::<Result<_>>()?;
        let mut steps: Vec<Tensor<T>> = [n * d * m, n * m * m, n, n * m]
            .iter()
            .map(|&len| Tensor::zeros(&[len]))
            .collect::<Result<_>>()?;
        if n > 0 {
            let [gains, w, log_det, pivots] = &mut steps[..] else { unreachable!("four of them") };
            dispatch(Covariances {
                given,
                p0: elements(&p0),
                p: out[1].as_mut_slice()?,
                gains: gains.as_mut_slice()?,
                w: w.as_mut_slice()?,
                pivots: pivots.as_mut_slice()?,
                log_det: log_det.as_mut_slice()?,
            });
            let steps = [&steps[0], &steps[1], &steps[2]].map(elements);
            let (y, x0) = (elements(&y), elements(&x0));
            let [x, _, l] = &mut out[..] else { unreachable!("three of them") };
            let x = x.as_mut_slice()?.chunks_exact_mut(n * d);
            let mut sequences: Vec<_> = x.zip(l.as_mut_slice()?.chunks_exact_mut(n)).collect();
            let parallel = parallel::worthwhile(batch * n, 4 * d * (d + m));
            parallel::for_each_mut(&mut sequences, parallel, |i, (x, l)| {
                let y = &y[i * n * m..][..n * m];
                dispatch(Means { given, x0, y, steps, x, l });
            });
        }
        out.into_iter()
            .zip(shapes)
            .map(|(x, shape)| Ok(narrow(x, shape, dtype)?.into()))
            .collect()
    })
}
