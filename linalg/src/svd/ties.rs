//! Gradients at ties that rounding has split, against those of the exact factors.
//!
//! `every_seed` runs 10⁴ matrices for each size from 2 to 12 and type: `cargo test --release -p t4a-linalg --
//! --ignored every_seed`. The tests that always run use ten of each.

use t4a_algebra::Numeric;
use t4a_tensor::Tensor;

use super::tests::{SvdCotangent, svd_vjp};
use super::{Vectors, svd};
use crate::degeneracy::Degeneracy;
use crate::eigh::eigh;
use crate::eigh::tests::eigh_vjp;
use crate::scalar::{LinalgScalar, epsilon};
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices};

/// `Re⟨C, U f(S) Vᴴ⟩` has the gradient `P [herm(X) ∘ Γ + skew(X) ∘ Σ] Qᴴ`, `X = Pᴴ C Q`, with quotients of
/// differences and sums of `f` and of the values.
struct Frames<T: LinalgScalar> {
    p: Batched<T>,
    q: Batched<T>,
    values: Vec<f64>,
}

impl<T: LinalgScalar> Frames<T> {
    fn new(seed: u64, count: usize, values: Vec<f64>) -> Self {
        let n = values.len();
        let [p, q] = [0, 1].map(|i| Batched::new(&isometry::<T>(seed + 7 * i, &[count], n, n)));
        Self { p, q, values }
    }

    fn matrices(&self) -> Tensor<T> {
        self.p.mul(&row(&self.p, &self.values)).matmul(&self.q.adjoint()).into_tensor().unwrap()
    }

    fn gradient(&self, c: &Batched<T>, f: &[f64]) -> Batched<T> {
        let n = self.values.len();
        let table = |entry: &dyn Fn(usize, usize) -> f64| {
            let entries = (0..n * n).map(|at| <T as Numeric>::from_f64(entry(at / n, at % n)));
            Batched::new(&Tensor::from_vec(entries.collect(), &[1, n, n]).unwrap())
        };
        let s = &self.values;
        let differences = table(&|i, j| match s[i] == s[j] {
            true => 0.0,
            false => (f[i] - f[j]) / (s[i] - s[j]),
        });
        let sums = table(&|i, j| (f[i] + f[j]) / (s[i] + s[j]));
        let x = self.p.adjoint().matmul(c).matmul(&self.q);
        let inner = x.herm().mul(&differences).add(&x.skew().mul(&sums));
        self.p.matmul(&inner).matmul(&self.q.adjoint())
    }
}

/// Largest difference of two batches of matrices.
fn worst<T: LinalgScalar>(a: Tensor<T>, b: &Batched<T>) -> f64 {
    Batched::new(&a).sub(b).norms().unwrap().into_iter().fold(0.0, f64::max)
}

/// Through the SVD: with all vectors, and with the first `p`.
fn singular<T: LinalgScalar>(seed: u64, count: usize, values: Vec<f64>, p: usize) -> f64 {
    let n = values.len();
    let frames = Frames::<T>::new(seed, count, values);
    let c = Batched::new(&random::<T>(seed + 3, &[count, n, n]));
    let out = svd(&frames.matrices(), Vectors::Thin).unwrap();
    let (u, vh) = (Batched::new(&out.u).slice(0..n, 0..p), Batched::new(&out.vh).slice(0..p, 0..n));
    let cotangent = SvdCotangent {
        u: Some(c.matmul(&vh.adjoint()).into_tensor().unwrap()),
        s: None,
        vh: Some(u.adjoint().matmul(&c).into_tensor().unwrap()),
    };
    let got = svd_vjp(&out, &cotangent, &Degeneracy::SEPARABLE).unwrap();
    let f: Vec<f64> = (0..n).map(|i| if i < p { 1.0 } else { 0.0 }).collect();
    worst(got, &frames.gradient(&c, &f))
}

/// Through the eigendecomposition: the projector onto the last `p` vectors.
fn hermitian<T: LinalgScalar>(seed: u64, count: usize, values: Vec<f64>, p: usize) -> f64 {
    let n = values.len();
    let mut frames = Frames::<T>::new(seed, count, values);
    frames.q = frames.p.clone();
    let c = Batched::new(&random::<T>(seed + 3, &[count, n, n])).herm();
    let out = eigh(&frames.matrices()).unwrap();
    let v = Batched::new(&out.vectors);
    let last = v.slice(0..n, n - p..n);
    let cotangent = c.matmul(&last).scale(2.0);
    let cotangent = v.constant(n, n - p, 0.0).append(&cotangent).into_tensor().unwrap();
    let got = eigh_vjp(&out, None, Some(&cotangent), &Degeneracy::SEPARABLE).unwrap();
    let f: Vec<f64> = (0..n).map(|i| if i < p { 1.0 } else { 0.0 }).collect();
    worst(got, &frames.gradient(&c, &f))
}

fn sweep<T: LinalgScalar>(count: usize) {
    // Gaps are at least 1: only the rounding errors of a few products remain.
    let limit = 4000.0 * epsilon::<T>();
    for n in 2..=12 {
        let half = n / 2;
        let steps = |high: f64, low: f64| -> Vec<f64> {
            (0..n).map(|i| if i < half { high } else { low }).collect()
        };
        let mixed = (0..n).map(|i| if i < half { 3.0 + (half - i) as f64 } else { 2.0 });
        let mixed: Vec<f64> = mixed.collect();
        for first in (0..count).step_by(500) {
            let (seed, count) = ((100 * first + n) as u64, (count - first).min(500));
            let errors = [
                singular::<T>(seed, count, vec![2.0; n], n),
                singular::<T>(seed, count, mixed.clone(), n),
                singular::<T>(seed, count, steps(3.0, 1.0), half),
                hermitian::<T>(seed, count, steps(3.0, 1.0), half),
            ];
            assert!(errors.iter().all(|e| *e <= limit), "n = {n}, seed {seed}: {errors:?}");
        }
    }
}

fn some_seeds<T: LinalgScalar>() {
    sweep::<T>(10);
}

for_all_dtypes! {
    split_ties_are_ties => some_seeds;
}

#[test]
#[ignore = "10⁴ seeds for each size and type: a minute in release"]
fn every_seed() {
    sweep::<f64>(10_000);
    sweep::<f32>(10_000);
    sweep::<t4a_algebra::c64>(10_000);
    sweep::<t4a_algebra::c32>(10_000);
}
