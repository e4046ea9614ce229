//! The steps of the Kalman filter on engine tensors.
//!
//! Covariances do not depend on observations: they run first, once for all sequences, and leave the gain,
//! `S⁻¹` and `|S|` of every step; means and likelihoods of a sequence follow, each sequence on its own
//! thread. Backwards it is the other way round. Sizes that are known when the loops are compiled keep
//! small matrices in registers.

use t4a_algebra::Float;
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_diff::{Array, Eager};
use t4a_tensor::{Result, Tensor};

use crate::kalman::System;
use crate::operand::{computed_in, elements, narrow, wide};

/// Most states and most observed numbers.
pub(crate) const MOST: usize = 8;

/// A matrix of at most `MOST × MOST` elements, row-major with the columns that it has.
type Small<T> = [T; MOST * MOST];

/// `C ← C + s A B` with `A: m×k`, `B: k×n`, either of them transposed.
#[inline(always)]
fn add_product<T: Float, const TA: bool, const TB: bool>(
    c: &mut [T],
    s: T,
    a: &[T],
    b: &[T],
    [m, k, n]: [usize; 3],
) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = T::ZERO;
            for l in 0..k {
                let a = if TA { a[l * m + i] } else { a[i * k + l] };
                let b = if TB { b[j * k + l] } else { b[l * n + j] };
                sum = a.mul_add(b, sum);
            }
            c[i * n + j] = sum.mul_add(s, c[i * n + j]);
        }
    }
}

#[inline(always)]
fn zeros<T: Float>() -> Small<T> {
    [T::ZERO; MOST * MOST]
}

/// The product alone.
#[inline(always)]
fn product<T: Float, const TA: bool, const TB: bool>(
    a: &[T],
    b: &[T],
    sizes: [usize; 3],
) -> Small<T> {
    let mut c = zeros();
    add_product::<T, TA, TB>(&mut c, T::ONE, a, b, sizes);
    c
}

/// `S⁻¹` in the place of S, and |S|; NaN where S is not positive definite.
#[inline(always)]
fn invert<T: Float>(a: &mut Small<T>, m: usize) -> T {
    let mut det = T::ONE;
    for k in 0..m {
        let pivot = a[k * m + k];
        let pivot = if pivot > T::ZERO { pivot } else { T::NAN };
        det = det.mul(pivot);
        let scale = pivot.recip();
        for i in 0..m {
            if i == k {
                continue;
            }
            let factor = a[i * m + k].mul(scale);
            for j in 0..m {
                if j != k {
                    a[i * m + j] = factor.neg().mul_add(a[k * m + j], a[i * m + j]);
                }
            }
            a[i * m + k] = factor.neg();
        }
        for j in 0..m {
            a[k * m + j] = if j == k { scale } else { a[k * m + j].mul(scale) };
        }
    }
    det
}

/// The system and sizes of a filter on elements of one type.
#[derive(Clone, Copy)]
struct Filter<'a, T> {
    f: &'a [T],
    q: &'a [T],
    h: &'a [T],
    r: &'a [T],
    n: usize,
    d: usize,
    m: usize,
}

/// What is predicted of covariances.
struct Predicted<T> {
    /// `P⁻`.
    p: Small<T>,
    /// `P⁻ Hᵀ`.
    g: Small<T>,
    /// `S⁻¹`.
    w: Small<T>,
    det: T,
}

impl<T: Float> Filter<'_, T> {
    #[inline(always)]
    fn predict(&self, p: &[T]) -> Predicted<T> {
        let (d, m) = (self.d, self.m);
        let fp = product::<T, false, false>(self.f, p, [d, d, d]);
        let mut p = zeros();
        p[..d * d].copy_from_slice(&self.q[..d * d]);
        add_product::<T, false, true>(&mut p, T::ONE, &fp, self.f, [d, d, d]);
        let g = product::<T, false, true>(&p, self.h, [d, d, m]);
        let mut w = zeros();
        w[..m * m].copy_from_slice(&self.r[..m * m]);
        add_product::<T, false, false>(&mut w, T::ONE, self.h, &g, [m, d, m]);
        let det = invert(&mut w, m);
        Predicted { p, g, w, det }
    }

    /// Covariances of all steps; `K`, `S⁻¹` and |S| of all steps.
    #[inline(always)]
    fn covariances(&self, p0: &[T], p: &mut [T], gains: &mut [T], w: &mut [T], det: &mut [T]) {
        let (d, m) = (self.d, self.m);
        let mut now = zeros();
        now[..d * d].copy_from_slice(&p0[..d * d]);
        let outs = p.chunks_exact_mut(d * d).zip(gains.chunks_exact_mut(d * m));
        for ((p, k), (w, det)) in outs.zip(w.chunks_exact_mut(m * m).zip(det)) {
            let predicted = self.predict(&now);
            let gain = product::<T, false, false>(&predicted.g, &predicted.w, [d, m, m]);
            now = predicted.p;
            add_product::<T, false, true>(&mut now, T::ONE.neg(), &gain, &predicted.g, [d, m, d]);
            p.copy_from_slice(&now[..d * d]);
            k.copy_from_slice(&gain[..d * m]);
            w.copy_from_slice(&predicted.w[..m * m]);
            *det = predicted.det;
        }
    }

    /// Means and likelihoods of a sequence.
    #[inline(always)]
    fn means(&self, x0: &[T], y: &[T], [gains, w, det]: [&[T]; 3], x: &mut [T], l: &mut [T]) {
        let (d, m) = (self.d, self.m);
        let mut now = [T::ZERO; MOST];
        now[..d].copy_from_slice(&x0[..d]);
        let steps = gains.chunks_exact(d * m).zip(w.chunks_exact(m * m)).zip(det);
        let outs = x.chunks_exact_mut(d).zip(l.iter_mut()).zip(y.chunks_exact(m));
        let constant = T::from_f64(m as f64 * (2.0 * std::f64::consts::PI).ln());
        let half = T::from_f64(-0.5);
        for (((k, w), &det), ((x, l), y)) in steps.zip(outs) {
            let mut before = [T::ZERO; MOST];
            add_product::<T, false, false>(&mut before, T::ONE, self.f, &now, [d, d, 1]);
            let mut v = [T::ZERO; MOST];
            v[..m].copy_from_slice(y);
            add_product::<T, false, false>(&mut v, T::ONE.neg(), self.h, &before, [m, d, 1]);
            now = before;
            add_product::<T, false, false>(&mut now, T::ONE, k, &v, [d, m, 1]);
            x.copy_from_slice(&now[..d]);
            let mut square = T::ZERO;
            for i in 0..m {
                for j in 0..m {
                    square = w[i * m + j].mul(v[i]).mul_add(v[j], square);
                }
            }
            *l = square.add(det.ln()).add(constant).mul(half);
        }
    }
}

/// Calls a method with sizes that the compiler knows, where they are common.
macro_rules! sized {
    ($filter:expr, $f:ident => $body:expr) => {{
        let given = $filter;
        match (given.d, given.m) {
            (1, 1) => {
                let $f = Filter { d: 1, m: 1, ..given };
                $body
            }
            (2, 1) => {
                let $f = Filter { d: 2, m: 1, ..given };
                $body
            }
            (4, 2) => {
                let $f = Filter { d: 4, m: 2, ..given };
                $body
            }
            _ => {
                let $f = given;
                $body
            }
        }
    }};
}

struct Covariances<'a, T> {
    filter: Filter<'a, T>,
    p0: &'a [T],
    p: &'a mut [T],
    gains: &'a mut [T],
    w: &'a mut [T],
    det: &'a mut [T],
}

impl<T: Float> Loop for Covariances<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { filter, p0, p, gains, w, det } = self;
        sized!(filter, filter => filter.covariances(p0, p, gains, w, det));
    }
}

struct Means<'a, 'o, T> {
    filter: Filter<'a, T>,
    x0: &'a [T],
    y: &'a [T],
    steps: [&'a [T]; 3],
    x: &'o mut [T],
    l: &'o mut [T],
}

impl<T: Float> Loop for Means<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { filter, x0, y, steps, x, l } = self;
        sized!(filter, filter => filter.means(x0, y, steps, x, l));
    }
}

/// Means, covariances and log-likelihoods.
pub(crate) fn forward(s: &System<Eager>, y: &Eager, x0: &Eager, p0: &Eager) -> Result<Vec<Eager>> {
    let shape = y.shape();
    let (batch, n, m) = (shape[0], shape[1], shape[2]);
    let (d, dtype) = (s.f.shape()[0], y.dtype());
    let shapes: [&[usize]; 3] = [&[batch, n, d], &[n, d, d], &[batch, n]];
    computed_in!("kalman_filter", dtype, T => {
        let [f, q, h, r, y, x0, p0] = wide::<T, 7>([&s.f, &s.q, &s.h, &s.r, y, x0, p0])?;
        let filter =
            Filter { f: elements(&f), q: elements(&q), h: elements(&h), r: elements(&r), n, d, m };
        let mut out: Vec<Tensor<T>> =
            shapes.iter().map(|shape| Tensor::zeros(shape)).collect::<Result<_>>()?;
        let mut steps: Vec<Tensor<T>> = [n * d * m, n * m * m, n]
            .iter()
            .map(|&len| Tensor::zeros(&[len]))
            .collect::<Result<_>>()?;
        if n > 0 {
            let [gains, w, det] = &mut steps[..] else { unreachable!("three of them") };
            dispatch(Covariances {
                filter,
                p0: elements(&p0),
                p: out[1].as_mut_slice()?,
                gains: gains.as_mut_slice()?,
                w: w.as_mut_slice()?,
                det: det.as_mut_slice()?,
            });
            let steps = [&steps[0], &steps[1], &steps[2]].map(elements);
            let (y, x0) = (elements(&y), elements(&x0));
            let [x, _, l] = &mut out[..] else { unreachable!("three of them") };
            let x = x.as_mut_slice()?.chunks_exact_mut(n * d);
            let mut sequences: Vec<_> = x.zip(l.as_mut_slice()?.chunks_exact_mut(n)).collect();
            let parallel = parallel::worthwhile(batch * n, 4 * d * (d + m));
            parallel::for_each_mut(&mut sequences, parallel, |i, (x, l)| {
                let y = &y[i * n * m..][..n * m];
                dispatch(Means { filter, x0, y, steps, x, l });
            });
        }
        out.into_iter()
            .zip(shapes)
            .map(|(x, shape)| Ok(narrow(x, shape, dtype)?.into()))
            .collect()
    })
}

/// Of every step, summed over sequences: `Σ x̄ eᵀ` (d×m), `W̄` (m×m), `Σ ℓ̄`.
struct Sums<T> {
    g: Vec<T>,
    w: Vec<T>,
    l: Vec<T>,
}

struct Backward<'a, 'o, T> {
    filter: Filter<'a, T>,
    batch: usize,
    /// y, x₀, P₀.
    given: [&'a [T]; 3],
    /// Means and covariances.
    kept: [&'a [T]; 2],
    cotangents: [Option<&'a [T]>; 3],
    /// F, Q, H, R, y, x₀, P₀.
    out: [&'o mut [T]; 7],
}

impl<T: Float> Loop for Backward<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let given = self;
        sized!(given.filter, filter => Backward { filter, ..given }.steps());
    }
}

impl<T: Float> Backward<'_, '_, T> {
    #[inline(always)]
    fn steps(self) {
        let Filter { n, d, m, .. } = self.filter;
        let zero = |len| vec![T::ZERO; len];
        let mut sums = Sums { g: zero(n * d * m), w: zero(n * m * m), l: zero(n) };
        let Self { filter, batch, given: [y, x0, p0], kept: [x, covariances], cotangents, out } =
            self;
        let [of_f, of_q, of_h, of_r, of_y, of_x0, of_p0] = out;
        // P⁻, G and W of all steps, once more.
        let mut steps = [zero(n * d * d), zero(n * d * m), zero(n * m * m)];
        for t in 0..n {
            let before = if t == 0 { p0 } else { &covariances[(t - 1) * d * d..][..d * d] };
            let predicted = filter.predict(before);
            steps[0][t * d * d..][..d * d].copy_from_slice(&predicted.p[..d * d]);
            steps[1][t * d * m..][..d * m].copy_from_slice(&predicted.g[..d * m]);
            steps[2][t * m * m..][..m * m].copy_from_slice(&predicted.w[..m * m]);
        }
        let [p_before, gains, inverses] = &steps;
        let g_and_w = |t: usize| (&gains[t * d * m..][..d * m], &inverses[t * m * m..][..m * m]);
        for b in 0..batch {
            let row = |width: usize, t: usize| (b * n + t) * width;
            let mut of_x = [T::ZERO; MOST];
            for t in (0..n).rev() {
                let before = if t == 0 { x0 } else { &x[row(d, t - 1)..][..d] };
                let (g, w) = g_and_w(t);
                let mut x_before = [T::ZERO; MOST];
                add_product::<T, false, false>(&mut x_before, T::ONE, filter.f, before, [d, d, 1]);
                let mut v = [T::ZERO; MOST];
                v[..m].copy_from_slice(&y[row(m, t)..][..m]);
                add_product::<T, false, false>(
                    &mut v,
                    T::ONE.neg(),
                    filter.h,
                    &x_before,
                    [m, d, 1],
                );
                let mut e = [T::ZERO; MOST];
                add_product::<T, false, false>(&mut e, T::ONE, w, &v, [m, m, 1]);
                if let Some(of) = cotangents[0] {
                    for i in 0..d {
                        of_x[i] = of_x[i].add(of[row(d, t) + i]);
                    }
                }
                let of_l = cotangents[2].map_or(T::ZERO, |of| of[row(1, t)]);
                let mut of_e = [T::ZERO; MOST];
                add_product::<T, true, false>(&mut of_e, T::ONE, g, &of_x, [m, d, 1]);
                let mut of_v = [T::ZERO; MOST];
                add_product::<T, true, false>(&mut of_v, T::ONE, w, &of_e, [m, m, 1]);
                let half = of_l.mul(T::from_f64(-0.5));
                let mut other = [T::ZERO; MOST];
                add_product::<T, true, false>(&mut other, T::ONE, w, &v, [m, m, 1]);
                for i in 0..m {
                    of_v[i] = half.mul_add(e[i].add(other[i]), of_v[i]);
                }
                let of_w = &mut sums.w[t * m * m..][..m * m];
                for i in 0..m {
                    let left = half.mul_add(v[i], of_e[i]);
                    for j in 0..m {
                        of_w[i * m + j] = left.mul_add(v[j], of_w[i * m + j]);
                    }
                }
                let of_g = &mut sums.g[t * d * m..][..d * m];
                add_product::<T, false, false>(of_g, T::ONE, &of_x, &e, [d, 1, m]);
                sums.l[t] = sums.l[t].add(of_l);
                add_product::<T, false, false>(of_h, T::ONE.neg(), &of_v, &x_before, [m, 1, d]);
                add_product::<T, true, false>(&mut of_x, T::ONE.neg(), filter.h, &of_v, [d, m, 1]);
                of_y[row(m, t)..][..m].copy_from_slice(&of_v[..m]);
                add_product::<T, false, false>(of_f, T::ONE, &of_x, before, [d, 1, d]);
                let mut next = [T::ZERO; MOST];
                add_product::<T, true, false>(&mut next, T::ONE, filter.f, &of_x, [d, d, 1]);
                of_x = next;
            }
            for i in 0..d {
                of_x0[i] = of_x0[i].add(of_x[i]);
            }
        }
        let mut of_p = zeros::<T>();
        for t in (0..n).rev() {
            let before = if t == 0 { p0 } else { &covariances[(t - 1) * d * d..][..d * d] };
            let (g, w) = g_and_w(t);
            let p = &p_before[t * d * d..][..d * d];
            if let Some(of) = cotangents[1] {
                for i in 0..d * d {
                    of_p[i] = of_p[i].add(of[t * d * d + i]);
                }
            }
            let minus = T::ONE.neg();
            let mut of_w = zeros();
            of_w[..m * m].copy_from_slice(&sums.w[t * m * m..][..m * m]);
            let pg = product::<T, false, false>(&of_p, g, [d, d, m]);
            add_product::<T, true, false>(&mut of_w, minus, g, &pg, [m, d, m]);
            // S̄ = −Wᵀ W̄ Wᵀ − ½ ℓ̄ Wᵀ.
            let left = product::<T, true, false>(w, &of_w, [m, m, m]);
            let mut of_s = zeros();
            add_product::<T, false, true>(&mut of_s, minus, &left, w, [m, m, m]);
            let half = sums.l[t].mul(T::from_f64(-0.5));
            for i in 0..m {
                for j in 0..m {
                    of_s[i * m + j] = half.mul_add(w[j * m + i], of_s[i * m + j]);
                }
            }
            // Ḡ.
            let ptg = product::<T, true, false>(&of_p, g, [d, d, m]);
            let mut of_g = zeros();
            of_g[..d * m].copy_from_slice(&sums.g[t * d * m..][..d * m]);
            add_product::<T, false, true>(&mut of_g, minus, &pg, w, [d, m, m]);
            add_product::<T, false, false>(&mut of_g, minus, &ptg, w, [d, m, m]);
            add_product::<T, true, false>(&mut of_g, T::ONE, filter.h, &of_s, [d, m, m]);
            add_product::<T, false, false>(&mut of_p, T::ONE, &of_g, filter.h, [d, m, d]);
            for (sum, of_s) in of_r.iter_mut().zip(&of_s) {
                *sum = sum.add(*of_s);
            }
            add_product::<T, false, true>(of_h, T::ONE, &of_s, g, [m, m, d]);
            add_product::<T, true, false>(of_h, T::ONE, &of_g, p, [m, d, d]);
            // The prediction.
            for (sum, of_p) in of_q.iter_mut().zip(&of_p) {
                *sum = sum.add(*of_p);
            }
            let pf = product::<T, false, false>(&of_p, filter.f, [d, d, d]);
            let ptf = product::<T, true, false>(&of_p, filter.f, [d, d, d]);
            add_product::<T, false, true>(of_f, T::ONE, &pf, before, [d, d, d]);
            add_product::<T, false, false>(of_f, T::ONE, &ptf, before, [d, d, d]);
            of_p = product::<T, true, false>(filter.f, &pf, [d, d, d]);
        }
        of_p0.copy_from_slice(&of_p[..d * d]);
    }
}

/// Cotangents of all operands: of F, Q, H, R, y, x₀, P₀.
pub(crate) fn back(
    s: &System<Eager>,
    given: &[&Eager; 3],
    kept: [&Eager; 2],
    cotangents: &[Option<Eager>],
) -> Result<Vec<Eager>> {
    let shape = given[0].shape();
    let (batch, n, m) = (shape[0], shape[1], shape[2]);
    let (d, dtype) = (s.f.shape()[0], s.f.dtype());
    let shapes: [&[usize]; 7] = [&[d, d], &[d, d], &[m, d], &[m, m], &shape, &[d], &[d, d]];
    computed_in!("kalman_filter", dtype, T => {
        let [f, q, h, r, y, x0, p0, x, p] = wide::<T, 9>([
            &s.f, &s.q, &s.h, &s.r, given[0], given[1], given[2], kept[0], kept[1],
        ])?;
        let of: Vec<Option<[Tensor<T>; 1]>> = cotangents
            .iter()
            .map(|g| g.as_ref().map(|g| wide([g])).transpose())
            .collect::<Result<_>>()?;
        let mut out: Vec<Tensor<T>> =
            shapes.iter().map(|shape| Tensor::zeros(shape)).collect::<Result<_>>()?;
        let slices = out.iter_mut().map(Tensor::as_mut_slice).collect::<Result<Vec<_>>>()?;
        let cotangent = |i: usize| match of.get(i) {
            Some(Some([g])) => Some(elements(g)),
            _ => None,
        };
        dispatch(Backward {
            filter: Filter {
                f: elements(&f), q: elements(&q), h: elements(&h), r: elements(&r), n, d, m,
            },
            batch,
            given: [elements(&y), elements(&x0), elements(&p0)],
            kept: [elements(&x), elements(&p)],
            cotangents: [cotangent(0), cotangent(1), cotangent(2)],
            out: slices.try_into().unwrap_or_else(|_| unreachable!("seven of them")),
        });
        out.into_iter()
            .zip(shapes)
            .map(|(x, shape)| Ok(narrow(x, shape, dtype)?.into()))
            .collect()
    })
}
