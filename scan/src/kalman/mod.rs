//! The Kalman filter over a sequence as one operation.
//!
//! ```text
//! small      small matrices; what is predicted of covariances
//! forward    the engine's kernel
//! back       its adjoint
//! ```

mod back;
mod forward;
mod small;

use t4a_diff::{Array, Cotangents, Eager, Meta, OnBatch, Operation, Outcome, Reverse, Value};
use t4a_tensor::route::{Path, Reason, Route};
use t4a_tensor::{Result, TensorError};

use crate::operand;
use small::MOST;

/// `x⁻ = F x, P⁻ = F P Fᵀ + Q`, then `S = H P⁻ Hᵀ + R, K = P⁻ Hᵀ S⁻¹, v = y − H x⁻`,
/// `x = x⁻ + K v, P = P⁻ − K H P⁻`, `ℓ = −½ (vᵀ S⁻¹ v + ln |S| + m ln 2π)` for every observation.
///
/// Operands: `F: [d, d]`, `Q: [d, d]`, `H: [m, d]`, `R: [m, m]`, `y: [batch, n, m]`, `x₀: [d]`,
/// `P₀: [d, d]`; Q, R and P₀ are symmetric and S is positive definite. Results: means `[batch, n, d]`,
/// covariances `[n, d, d]` (they do not depend on observations), log-likelihoods `[batch, n]`. Where S is
/// not positive definite results are NaN from there on.
///
/// Cost: `O(d³)` per step for all sequences and `O(d² + d m)` per sequence, no allocation in a step. The engine's
/// kernel supports up to 8 states and 8 observed components, unrolled for small sizes; larger filters run the portable
/// definition with the route reason `op_unsupported`.
///
/// Reference: Kalman 1960; the rule is the filter's adjoint, as in Parellier et al. 2023 (arXiv
/// 2309.16259).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KalmanFilter;

/// The system: `F, Q, H, R`.
struct SystemArrays<A> {
    f: A,
    q: A,
    h: A,
    r: A,
}

/// Predicted state and covariance before the update with an observation.
struct Prediction<A> {
    x: A,
    p: A,
    /// `P⁻ Hᵀ`.
    g: A,
    /// `S⁻¹`.
    w: A,
    /// `ln |S|`, `[1, 1]`.
    log_det: A,
}

/// `S⁻¹` and `ln |S|` of a positive definite matrix, by Gauss–Jordan elimination.
fn inverse<A: Array>(s: &A) -> (A, A) {
    let m = s.shape()[0];
    let mut a = s.clone();
    let mut log_det = s.full(&[1, 1], 0.0);
    for k in 0..m {
        let unit = s.full(&[1, 1], 1.0).embed(0, k, 1, m);
        let pivot = a.narrow(0, k, 1).narrow(1, k, 1);
        // `a − (c − e)(r + e)ᵀ/p` with column c and row r is one elimination in place.
        let column = a.narrow(1, k, 1).sub(&unit).div(&pivot);
        let row = a.narrow(0, k, 1).add(&unit.transpose());
        a = a.sub(&column.matmul(&row));
        // A pivot that is not positive makes the whole result NaN through its logarithm.
        let log = pivot.ln();
        a = a.add(&log.sub(&log));
        log_det = log_det.add(&log);
    }
    (a, log_det)
}

impl<A: Array> SystemArrays<A> {
    /// The prediction of states `x: [batch, d]` with covariance p.
    fn predict(&self, x: &A, p: &A) -> Prediction<A> {
        let x = x.matmul(&self.f.transpose());
        let p = self.f.matmul(p).matmul(&self.f.transpose()).add(&self.q);
        let g = p.matmul(&self.h.transpose());
        let (w, log_det) = inverse(&self.h.matmul(&g).add(&self.r));
        Prediction { x, p, g, w, log_det }
    }

    fn innovation(&self, prediction: &Prediction<A>, y: &A) -> A {
        y.sub(&prediction.x.matmul(&self.h.transpose()))
    }
}

impl KalmanFilter {
    fn system<'a, A: Array + 'a>(operand: impl Fn(usize) -> &'a A) -> SystemArrays<A> {
        let all = |i| operand(i).clone();
        SystemArrays { f: all(0), q: all(1), h: all(2), r: all(3) }
    }

    /// Slice at step `t` of an axis, with the axis removed.
    fn at<A: Array>(x: &A, axis: usize, t: usize) -> A {
        let mut shape = x.shape();
        shape.remove(axis);
        x.narrow(axis, t, 1).reshape(&shape)
    }

    /// Stacks steps along a new axis.
    fn stack<A: Array>(steps: &[A], axis: usize) -> A {
        let widen = |x: &A| {
            let mut shape = x.shape();
            shape.insert(axis, 1);
            x.reshape(&shape)
        };
        A::cat(&steps.iter().map(widen).collect::<Vec<A>>(), axis)
    }

    /// True if the sizes exceed those of the kernel.
    fn is_large(d: usize, m: usize) -> bool {
        d > MOST || m > MOST
    }
}

impl Operation for KalmanFilter {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "kalman_filter"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([7, 3])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        operand::count(op, inputs, 7)?;
        operand::floats(op, inputs)?;
        let [f, _, h, _, y, ..] = inputs else { unreachable!("they are counted") };
        let &[d, _] = &f.shape[..] else {
            return Err(TensorError::shape(op, &f.shape, "F [d, d]"));
        };
        let &[m, _] = &h.shape[..] else {
            return Err(TensorError::shape(op, &h.shape, "H [m, d]"));
        };
        let &[batch, n, _] = &y.shape[..] else {
            return Err(TensorError::shape(op, &y.shape, "y [batch, n, m]"));
        };
        let wanted: [&[usize]; 7] =
            [&[d, d], &[d, d], &[m, d], &[m, m], &[batch, n, m], &[d], &[d, d]];
        for (x, wanted) in inputs.iter().zip(wanted) {
            if x.shape != wanted {
                let required = "F, Q, P₀ [d, d], H [m, d], R [m, m], y [batch, n, m], x₀ [d] (given, required)";
                return Err(TensorError::shapes(op, &x.shape, wanted, required));
            }
        }
        if d == 0 || m == 0 {
            return Err(TensorError::shape(
                op,
                &h.shape,
                "at least one state and one observed number",
            ));
        }
        let dtype = f.dtype;
        let shapes = [vec![batch, n, d], vec![n, d, d], vec![batch, n]];
        Ok(shapes.map(|shape| Meta { shape, dtype }).into())
    }

    /// Sequential definition from [`Array`] operations.
    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let operand = |i: usize| inputs[i].float();
        let (system, y) = (Self::system(operand), operand(4));
        let [batch, n, m] = y.shape()[..] else { unreachable!("shapes are checked before") };
        let d = system.f.shape()[0];
        if n == 0 {
            let empty = |shape: &[usize]| y.full(shape, 0.0);
            return Ok(Outcome::new(vec![
                empty(&[batch, 0, d]),
                empty(&[0, d, d]),
                empty(&[batch, 0]),
            ]));
        }
        let mut x = operand(5).reshape(&[1, d]).expand(&[batch, d]);
        let mut p = operand(6).clone();
        let mut all: [Vec<A>; 3] = Default::default();
        let constant = m as f64 * (2.0 * std::f64::consts::PI).ln();
        for t in 0..n {
            let prediction = system.predict(&x, &p);
            let v = system.innovation(&prediction, &Self::at(y, 1, t));
            let Prediction { x: before, p: p_before, g, w, log_det } = prediction;
            let e = v.matmul(&w.transpose());
            x = before.add(&e.matmul(&g.transpose()));
            p = p_before.sub(&g.matmul(&w).matmul(&g.transpose()));
            let square = v.mul(&e).sum(1);
            let likelihood = square.add(&log_det).shift(constant).scale(-0.5);
            all[0].push(x.clone());
            all[1].push(p.clone());
            all[2].push(likelihood.reshape(&[batch]));
        }
        let [x, p, l] = &all;
        Ok(Outcome::new(vec![Self::stack(x, 1), Self::stack(p, 0), Self::stack(l, 1)]))
    }

    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<Outcome<Eager>> {
        let operand = |i: usize| inputs[i].float();
        let h = operand(2).shape();
        if Self::is_large(h[1], h[0]) {
            let route = Route::fallback(self.name(), Path::LoopContiguous, Reason::OpUnsupported)?;
            let out = self.portable(inputs, tracked)?;
            let routed = |y: Eager| Ok(Eager::from(y.into_tensor()?.with_route(route)));
            return out.try_map(Ok, routed);
        }
        let system = Self::system(operand);
        Ok(Outcome::new(forward::forward(&system, operand(4), operand(5), operand(6))?))
    }

    /// A batch is an additional batch of sequences if the system is shared: covariances do not depend on observations.
    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let mut operands = vec![None; 7];
        operands[4] = Some(0);
        let shared = differ.iter().zip(&operands).all(|(differ, axis)| !differ || axis.is_some());
        shared.then(|| OnBatch::Joined { operands, results: vec![Some(0), None, Some(0)] })
    }

    /// With `e = S⁻¹ v`, `G = P⁻ Hᵀ`, `W = S⁻¹`:
    ///
    /// ```text
    /// ē = Gᵀ x̄                              v̄ = Wᵀ ē − ½ ℓ̄ (W + Wᵀ) v     x̄⁻ = x̄ − Hᵀ v̄
    /// W̄ = ē vᵀ − ½ ℓ̄ v vᵀ − Gᵀ P̄ G          S̄ = −Wᵀ W̄ Wᵀ − ½ ℓ̄ Wᵀ
    /// Ḡ = x̄ eᵀ − P̄ G Wᵀ − P̄ᵀ G W + Hᵀ S̄     P̄⁻ = P̄ + Ḡ H
    /// ```
    ///
    /// Symmetry is not assumed, so that the rule is differentiable in any direction.
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let kept = reverse.kept;
        let (system, y) = (Self::system(|i| kept.float(i)), kept.float(4));
        let [batch, n, m] = y.shape()[..] else { unreachable!("shapes are checked before") };
        let SystemArrays { f, h, .. } = &system;
        let d = f.shape()[0];
        let zeros = |shape: &[usize]| y.full(shape, 0.0);
        let (mut of_x, mut of_p) = (zeros(&[batch, d]), zeros(&[d, d]));
        let (mut of_f, mut of_q) = (zeros(&[d, d]), zeros(&[d, d]));
        let (mut of_h, mut of_r) = (zeros(&[m, d]), zeros(&[m, m]));
        let mut of_y = Vec::with_capacity(n);
        let x0 = kept.float(5).reshape(&[1, d]).expand(&[batch, d]);
        let given = |result: usize, axis: usize, t: usize| {
            reverse.cotangents[result].as_ref().map(|g| Self::at(g, axis, t))
        };
        for t in (0..n).rev() {
            let (x_before, p_before) = match t {
                0 => (x0.clone(), kept.float(6).clone()),
                _ => (Self::at(kept.result(0), 1, t - 1), Self::at(kept.result(1), 0, t - 1)),
            };
            let prediction = system.predict(&x_before, &p_before);
            let v = system.innovation(&prediction, &Self::at(y, 1, t));
            let Prediction { x, p, g, w, .. } = &prediction;
            let e = v.matmul(&w.transpose());
            of_x = given(0, 1, t).map_or_else(|| of_x.clone(), |g| g.add(&of_x));
            of_p = given(1, 0, t).map_or_else(|| of_p.clone(), |g| g.add(&of_p));
            let of_l = given(2, 1, t).unwrap_or_else(|| zeros(&[batch])).reshape(&[batch, 1]);

            let of_e = of_x.matmul(g);
            let symmetric = e.add(&v.matmul(w)).scale(0.5);
            let of_v = of_e.matmul(w).sub(&symmetric.mul(&of_l));
            let of_w = of_e.sub(&v.mul(&of_l).scale(0.5)).transpose().matmul(&v);
            let of_w = of_w.sub(&g.transpose().matmul(&of_p).matmul(g));
            let half = w.transpose().mul(&of_l.sum(0).scale(0.5));
            let of_s = w.transpose().matmul(&of_w).matmul(&w.transpose()).neg().sub(&half);
            let left = of_p.matmul(g).matmul(&w.transpose());
            let right = of_p.transpose().matmul(g).matmul(w);
            let of_g = of_x.transpose().matmul(&e).sub(&left).sub(&right);
            let of_g = of_g.add(&h.transpose().matmul(&of_s));
            of_p = of_p.add(&of_g.matmul(h));
            of_r = of_r.add(&of_s);
            of_h = of_h.add(&of_s.matmul(&g.transpose())).add(&of_g.transpose().matmul(p));
            of_h = of_h.sub(&of_v.transpose().matmul(x));
            of_x = of_x.sub(&of_v.matmul(h));
            of_y.push(of_v);

            of_q = of_q.add(&of_p);
            let half = of_p.matmul(f).matmul(&p_before.transpose());
            let other = of_p.transpose().matmul(f).matmul(&p_before);
            of_f = of_f.add(&half).add(&other).add(&of_x.transpose().matmul(&x_before));
            of_p = f.transpose().matmul(&of_p).matmul(f);
            of_x = of_x.matmul(f);
        }
        of_y.reverse();
        let of_y = if n == 0 { zeros(&[batch, 0, m]) } else { Self::stack(&of_y, 1) };
        let of_x = of_x.sum(0).reshape(&[d]);
        Ok([of_f, of_q, of_h, of_r, of_y, of_x, of_p].map(Some).into())
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let kept = reverse.kept;
        let h = kept.float(2).shape();
        if Self::is_large(h[1], h[0]) {
            Route::fallback(self.name(), Path::LoopContiguous, Reason::OpUnsupported)?;
            return self.vjp(reverse);
        }
        let system = Self::system(|i| kept.float(i));
        back::back(
            &system,
            &[4, 5, 6].map(|i| kept.float(i)),
            [0, 1].map(|i| kept.result(i)),
            reverse.cotangents,
            reverse.wanted,
        )
    }
}
