//! The adjoint of the filter on engine tensors.
//!
//! ```text
//! predictions   P⁻, G, W of all steps, from the covariances that were kept: steps are independent
//! means         from the last step to the first, a few sequences at a time: cotangents of x, y, F, H, and
//!               of G, W and ln |S| of every step, summed over sequences
//! covariances   from the last step to the first: the rest
//! ```
//!
//! Groups of sequences are distributed over threads. Groups depend only on the number of sequences, so that no sum
//! depends on the number of threads.

use t4a_algebra::Float;
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_diff::{Array, Eager};
use t4a_tensor::{Result, Tensor};

use super::SystemArrays;
use super::small::{
    SmallMatrix, SystemMatrices, SystemSlices, add, add_vector, load, load_vector, product, sized,
    store, store_sum, zeros,
};
use crate::operand::{computed_in, elements, narrow, wide};

/// Maximum number of groups of sequences.
const GROUPS: usize = 8;

fn zero<T: Float>(len: usize) -> Vec<T> {
    vec![T::ZERO; len]
}

/// P⁻, G and W of all steps.
struct Predictions<'a, T> {
    given: SystemSlices<'a, T>,
    p0: &'a [T],
    covariances: &'a [T],
    out: [&'a mut [T]; 3],
}

impl<T: Float> Loop for Predictions<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        sized!(self.given, self.steps());
    }
}

impl<T: Float> Predictions<'_, T> {
    #[inline(always)]
    fn steps<const D: usize, const M: usize>(self) {
        let filter = SystemMatrices::<T, D, M>::new(&self.given);
        let (d, m) = filter.sizes();
        let [p, g, w] = self.out;
        let before = std::iter::once(self.p0).chain(self.covariances.chunks_exact(d * d));
        let outs = p.chunks_exact_mut(d * d).zip(g.chunks_exact_mut(d * m));
        for (((p, g), w), before) in outs.zip(w.chunks_exact_mut(m * m)).zip(before) {
            let predicted = filter.predict(&load(before, [d, d]));
            store(&predicted.p, p, [d, d]);
            store(&predicted.g, g, [d, m]);
            store(&predicted.w, w, [m, m]);
        }
    }
}

/// Inputs of a group of sequences, and sums over them.
struct SequenceGroup<'o, T> {
    y: &'o [T],
    x: &'o [T],
    of_x: Option<&'o [T]>,
    of_l: Option<&'o [T]>,
    of_y: &'o mut [T],
    sums: SystemCotangents<T>,
}

/// Cotangents summed over sequences: of G, W and `ln |S|` of every step, of F, H and x₀.
struct SystemCotangents<T> {
    g: Vec<T>,
    w: Vec<T>,
    log_det: Vec<T>,
    f: Vec<T>,
    h: Vec<T>,
    x0: Vec<T>,
}

impl<T: Float> SystemCotangents<T> {
    fn new(&SystemSlices { n, d, m, .. }: &SystemSlices<'_, T>) -> Self {
        Self {
            g: zero(n * d * m),
            w: zero(n * m * m),
            log_det: zero(n),
            f: zero(d * d),
            h: zero(m * d),
            x0: zero(d),
        }
    }

    /// Sum of two groups.
    fn add(mut self, other: Self) -> Self {
        let Self { g, w, log_det, f, h, x0 } = other;
        let own =
            [&mut self.g, &mut self.w, &mut self.log_det, &mut self.f, &mut self.h, &mut self.x0];
        for (own, other) in own.into_iter().zip([g, w, log_det, f, h, x0]) {
            own.iter_mut().zip(other).for_each(|(a, b)| *a = a.add(b));
        }
        self
    }
}

/// Reverse pass of the means of a group, from the last step to the first.
struct MeansVjp<'a, 'g, 'o, T> {
    given: SystemSlices<'a, T>,
    x0: &'a [T],
    /// G and W of all steps.
    steps: [&'a [T]; 2],
    /// False if only the cotangents of y and x₀ are computed.
    of_system: bool,
    group: &'g mut SequenceGroup<'o, T>,
}

impl<T: Float> Loop for MeansVjp<'_, '_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        sized!(self.given, self.steps());
    }
}

impl<T: Float> MeansVjp<'_, '_, '_, T> {
    #[inline(always)]
    fn steps<const D: usize, const M: usize>(self) {
        let filter = SystemMatrices::<T, D, M>::new(&self.given);
        let ((d, m), n) = (filter.sizes(), self.given.n);
        let SequenceGroup { y, x, of_x: given_x, of_l, of_y, sums } = self.group;
        let ([gains, inverses], of_system) = (self.steps, self.of_system);
        let (f, h) = (&filter.f, &filter.h);
        let (mut of_f, mut of_h) = (zeros::<T, D, D>(), zeros::<T, M, D>());
        for b in 0..x.len() / (n * d) {
            let mut of_x = [T::ZERO; D];
            for t in (0..n).rev() {
                let row = b * n + t;
                let before: [T; D] =
                    load_vector(if t == 0 { self.x0 } else { &x[(row - 1) * d..] }, d);
                let g: SmallMatrix<T, D, M> = load(&gains[t * d * m..], [d, m]);
                let w: SmallMatrix<T, M, M> = load(&inverses[t * m * m..], [m, m]);
                let (x_before, v) = filter.innovation(&before, &y[row * m..]);
                let (mut e, mut other) = ([T::ZERO; M], [T::ZERO; M]);
                add_vector(&mut e, [m, m], |i, l| (w[i][l], v[l]));
                add_vector(&mut other, [m, m], |i, l| (w[l][i], v[l]));
                if let Some(of) = given_x {
                    let of: [T; D] = load_vector(&of[row * d..], d);
                    for i in 0..d {
                        of_x[i] = of_x[i].add(of[i]);
                    }
                }
                let of_l = of_l.map_or(T::ZERO, |of| of[row]);
                let half = of_l.mul(T::from_f64(-0.5));
                let mut of_e = [T::ZERO; M];
                add_vector(&mut of_e, [m, d], |i, l| (g[l][i], of_x[l]));
                let mut of_v = [T::ZERO; M];
                for i in 0..m {
                    of_v[i] = half.mul(e[i].add(other[i]));
                }
                add_vector(&mut of_v, [m, m], |i, l| (w[l][i], of_e[l]));
                // Contributions summed over sequences.
                if of_system {
                    let mut of_g: SmallMatrix<T, D, M> = load(&sums.g[t * d * m..], [d, m]);
                    add(&mut of_g, [d, 1, m], |i, _, j| (of_x[i], e[j]));
                    store(&of_g, &mut sums.g[t * d * m..], [d, m]);
                    let mut of_w: SmallMatrix<T, M, M> = load(&sums.w[t * m * m..], [m, m]);
                    add(&mut of_w, [m, 1, m], |i, _, j| (half.mul_add(v[i], of_e[i]), v[j]));
                    store(&of_w, &mut sums.w[t * m * m..], [m, m]);
                    sums.log_det[t] = sums.log_det[t].add(half);
                    add(&mut of_h, [m, 1, d], |i, _, j| (of_v[i].neg(), x_before[j]));
                }
                // Reverse of the innovation and of the prediction.
                of_y[row * m..][..m].copy_from_slice(&of_v[..m]);
                add_vector(&mut of_x, [d, m], |i, l| (h[l][i].neg(), of_v[l]));
                if of_system {
                    add(&mut of_f, [d, 1, d], |i, _, j| (of_x[i], before[j]));
                }
                let mut next = [T::ZERO; D];
                add_vector(&mut next, [d, d], |i, l| (f[l][i], of_x[l]));
                of_x = next;
            }
            for i in 0..d {
                sums.x0[i] = sums.x0[i].add(of_x[i]);
            }
        }
        store_sum(&of_f, &mut sums.f, [d, d]);
        store_sum(&of_h, &mut sums.h, [m, d]);
    }
}

/// Reverse pass of the covariances, from the last step to the first.
struct CovariancesVjp<'a, 'o, T> {
    given: SystemSlices<'a, T>,
    p0: &'a [T],
    covariances: &'a [T],
    /// P⁻, G and W of all steps.
    steps: [&'a [T]; 3],
    of_p: Option<&'a [T]>,
    sums: &'a SystemCotangents<T>,
    /// Cotangents of F, Q, H, R, P₀.
    out: [&'o mut [T]; 5],
}

impl<T: Float> Loop for CovariancesVjp<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        sized!(self.given, self.steps());
    }
}

impl<T: Float> CovariancesVjp<'_, '_, T> {
    #[inline(always)]
    fn steps<const D: usize, const M: usize>(self) {
        let filter = SystemMatrices::<T, D, M>::new(&self.given);
        let ((d, m), n) = (filter.sizes(), self.given.n);
        let Self { p0, covariances, steps: [p, g, w], of_p: given_p, sums, out, .. } = self;
        let (f, h) = (&filter.f, &filter.h);
        let (mut of_f, mut of_q) = (zeros::<T, D, D>(), zeros::<T, D, D>());
        let (mut of_h, mut of_r) = (zeros::<T, M, D>(), zeros::<T, M, M>());
        let mut of_p = zeros::<T, D, D>();
        for t in (0..n).rev() {
            let before = if t == 0 { p0 } else { &covariances[(t - 1) * d * d..] };
            let before: SmallMatrix<T, D, D> = load(before, [d, d]);
            let p: SmallMatrix<T, D, D> = load(&p[t * d * d..], [d, d]);
            let g: SmallMatrix<T, D, M> = load(&g[t * d * m..], [d, m]);
            let w: SmallMatrix<T, M, M> = load(&w[t * m * m..], [m, m]);
            if let Some(of) = given_p {
                let of: SmallMatrix<T, D, D> = load(&of[t * d * d..], [d, d]);
                for i in 0..d {
                    for j in 0..d {
                        of_p[i][j] = of_p[i][j].add(of[i][j]);
                    }
                }
            }
            let pg: SmallMatrix<T, D, M> = product([d, d, m], |i, l, j| (of_p[i][l], g[l][j]));
            let ptg: SmallMatrix<T, D, M> = product([d, d, m], |i, l, j| (of_p[l][i], g[l][j]));
            // W̄ and S̄ = −Wᵀ W̄ Wᵀ − ½ ℓ̄ Wᵀ.
            let mut of_w: SmallMatrix<T, M, M> = load(&sums.w[t * m * m..], [m, m]);
            add(&mut of_w, [m, d, m], |i, l, j| (g[l][i].neg(), pg[l][j]));
            let left: SmallMatrix<T, M, M> =
                product([m, m, m], |i, l, j| (w[l][i].neg(), of_w[l][j]));
            let mut of_s = zeros::<T, M, M>();
            for i in 0..m {
                for j in 0..m {
                    of_s[i][j] = sums.log_det[t].mul(w[j][i]);
                }
            }
            add(&mut of_s, [m, m, m], |i, l, j| (left[i][l], w[j][l]));
            // Ḡ.
            let mut of_g: SmallMatrix<T, D, M> = load(&sums.g[t * d * m..], [d, m]);
            add(&mut of_g, [d, m, m], |i, l, j| (pg[i][l].neg(), w[j][l]));
            add(&mut of_g, [d, m, m], |i, l, j| (ptg[i][l].neg(), w[l][j]));
            add(&mut of_g, [d, m, m], |i, l, j| (h[l][i], of_s[l][j]));
            add(&mut of_p, [d, m, d], |i, l, j| (of_g[i][l], h[l][j]));
            add(&mut of_h, [m, m, d], |i, l, j| (of_s[i][l], g[j][l]));
            add(&mut of_h, [m, d, d], |i, l, j| (of_g[l][i], p[l][j]));
            // Reverse of the prediction.
            for i in 0..m {
                for j in 0..m {
                    of_r[i][j] = of_r[i][j].add(of_s[i][j]);
                }
            }
            for i in 0..d {
                for j in 0..d {
                    of_q[i][j] = of_q[i][j].add(of_p[i][j]);
                }
            }
            let pf: SmallMatrix<T, D, D> = product([d, d, d], |i, l, j| (of_p[i][l], f[l][j]));
            let ptf: SmallMatrix<T, D, D> = product([d, d, d], |i, l, j| (of_p[l][i], f[l][j]));
            add(&mut of_f, [d, d, d], |i, l, j| (pf[i][l], before[j][l]));
            add(&mut of_f, [d, d, d], |i, l, j| (ptf[i][l], before[l][j]));
            of_p = product([d, d, d], |i, l, j| (f[l][i], pf[l][j]));
        }
        let [out_f, out_q, out_h, out_r, out_p0] = out;
        out_f.copy_from_slice(&sums.f);
        out_h.copy_from_slice(&sums.h);
        store_sum(&of_f, out_f, [d, d]);
        store_sum(&of_h, out_h, [m, d]);
        store(&of_q, out_q, [d, d]);
        store(&of_r, out_r, [m, m]);
        store(&of_p, out_p0, [d, d]);
    }
}

/// Cotangents of the operands that want one, of F, Q, H, R, y, x₀, P₀.
pub(super) fn back(
    s: &SystemArrays<Eager>,
    given: &[&Eager; 3],
    kept: [&Eager; 2],
    cotangents: &[Option<Eager>],
    wanted: &[bool],
) -> Result<Vec<Option<Eager>>> {
    let shape = given[0].shape();
    let (batch, n, m) = (shape[0], shape[1], shape[2]);
    let (d, dtype) = (s.f.shape()[0], s.f.dtype());
    // y and x₀ do not depend on the covariances' cotangents.
    let of_system = wanted.iter().enumerate().any(|(i, wanted)| *wanted && !matches!(i, 4 | 5));
    let shapes: [&[usize]; 7] = [&[d, d], &[d, d], &[m, d], &[m, m], &shape, &[d], &[d, d]];
    computed_in!("kalman_filter", dtype, T => {
        let [f, q, h, r, y, x0, p0, x, p] = wide::<T, 9>([
            &s.f, &s.q, &s.h, &s.r, given[0], given[1], given[2], kept[0], kept[1],
        ])?;
        let given =
            SystemSlices { f: elements(&f), q: elements(&q), h: elements(&h), r: elements(&r), n, d, m };
        let [y, x0, p0, x, covariances] = [&y, &x0, &p0, &x, &p].map(elements);
        let of: Vec<Option<[Tensor<T>; 1]>> = cotangents
            .iter()
            .map(|g| g.as_ref().map(|g| wide([g])).transpose())
            .collect::<Result<_>>()?;
        let cotangent = |i: usize| match of.get(i) {
            Some(Some([g])) => Some(elements(g)),
            _ => None,
        };
        let mut out: Vec<Tensor<T>> =
            shapes.iter().map(|shape| Tensor::zeros(shape)).collect::<Result<_>>()?;
        let slices = out.iter_mut().map(Tensor::as_mut_slice).collect::<Result<Vec<_>>>()?;
        let [of_f, of_q, of_h, of_r, of_y, of_x0, of_p0]: [&mut [T]; 7] =
            slices.try_into().unwrap_or_else(|_| unreachable!("seven of them"));

        let mut steps = [n * d * d, n * d * m, n * m * m].map(zero::<T>);
        let [before, gains, inverses] = &mut steps;
        dispatch(Predictions { given, p0, covariances, out: [before, gains, inverses] });
        let steps = steps.each_ref().map(Vec::as_slice);

        let size = batch.div_ceil(GROUPS);
        let mut groups: Vec<SequenceGroup<'_, T>> = Vec::new();
        if batch * n > 0 {
            for (i, of_y) in of_y.chunks_mut(size * n * m).enumerate() {
                let rows = of_y.len() / m;
                let first = i * size * n;
                let part = |width: usize| first * width..(first + rows) * width;
                groups.push(SequenceGroup {
                    y: &y[part(m)],
                    x: &x[part(d)],
                    of_x: cotangent(0).map(|g| &g[part(d)]),
                    of_l: cotangent(2).map(|g| &g[part(1)]),
                    of_y,
                    sums: SystemCotangents::new(&given),
                });
            }
        }
        let parallel = parallel::worthwhile(batch * n, 8 * d * (d + m));
        parallel::for_each_mut(&mut groups, parallel, |_, group| {
            dispatch(MeansVjp { given, x0, steps: [steps[1], steps[2]], of_system, group });
        });
        let sums = groups.into_iter().map(|group| group.sums).reduce(SystemCotangents::add);
        let sums = sums.unwrap_or_else(|| SystemCotangents::new(&given));
        of_x0.copy_from_slice(&sums.x0);
        if of_system {
            let of = [of_f, of_q, of_h, of_r, of_p0];
            let of_p = cotangent(1);
            dispatch(CovariancesVjp { given, p0, covariances, steps, of_p, sums: &sums, out: of });
        }
        let all = out.into_iter().zip(shapes).zip(wanted);
        all.map(|((x, shape), wanted)| match wanted {
            true => Ok(Some(narrow(x, shape, dtype)?.into())),
            false => Ok(None),
        })
        .collect()
    })
}
