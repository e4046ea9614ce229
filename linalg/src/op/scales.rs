//! Matrices far from 1: results and gradients of homogeneous operations are those near 1, scaled.

use t4a_tensor::Tensor;

use super::*;
use crate::scalar::{LinalgScalar, epsilon};
use crate::testing::*;
use crate::vocabulary::Batched;

/// An operation, its inputs, and the degree of each result in each input.
struct Case<T: LinalgScalar> {
    op: Op,
    inputs: Vec<Tensor<T>>,
    degrees: &'static [[f64; 2]],
}

fn cases<T: LinalgScalar>() -> Vec<Case<T>> {
    let policy = Degeneracy::default();
    let square = || with_singular_values::<T>(1, &[2], 4, 4, &[2.5, 1.7, 1.0, 0.5]);
    let wide = || with_singular_values::<T>(2, &[2], 3, 5, &[2.0, 1.2, 0.5]);
    let tall = || with_singular_values::<T>(3, &[2], 5, 3, &[2.0, 1.2, 0.5]);
    let positive = || with_eigenvalues::<T>(4, &[2], &[0.6, 1.1, 1.9, 2.8]);
    let general = || {
        let a = Batched::new(&random::<T>(5, &[2, 4, 4])).scale(0.4);
        a.add(&a.identity(4).scale(1.5)).into_tensor().unwrap()
    };
    let rhs = |m| random::<T>(6, &[2, m, 2]);
    const SAME: [f64; 2] = [0.0, 0.0];
    const LINEAR: [f64; 2] = [1.0, 0.0];
    const ROOT: [f64; 2] = [0.5, 0.0];
    const INVERSE: [f64; 2] = [-1.0, 0.0];
    const SOLUTION: [f64; 2] = [-1.0, 1.0];
    let mut cases = Vec::new();
    let mut add = |op, inputs: &[Tensor<T>], degrees: &'static [[f64; 2]]| {
        cases.push(Case { op, inputs: inputs.to_vec(), degrees });
    };
    for a in [square(), wide(), tall()] {
        let m = a.shape()[1];
        let pair = [a, rhs(m)];
        let a = &pair[..1];
        add(Op::Svd(Vectors::Thin, policy), a, &[SAME, LINEAR, SAME]);
        add(Op::Svd(Vectors::Full, policy), a, &[SAME, LINEAR, SAME]);
        add(Op::SvdVals, a, &[LINEAR]);
        add(Op::Qr(Columns::Thin), a, &[SAME, LINEAR]);
        add(Op::QrPivoted(Columns::Thin), a, &[SAME, LINEAR]);
        add(Op::Lq, a, &[LINEAR, SAME]);
        add(Op::Pinv(None), a, &[INVERSE]);
        add(Op::Lstsq, &pair, &[SOLUTION]);
        add(Op::LstsqMinNorm(None), &pair, &[SOLUTION]);
    }
    add(Op::Cholesky, &[positive()], &[ROOT]);
    add(Op::Eigh(policy), &[positive()], &[LINEAR, SAME]);
    add(Op::EigvalsH, &[positive()], &[LINEAR]);
    add(Op::Eig(policy), &[general()], &[LINEAR, SAME]);
    add(Op::Polar(Side::Right), &[tall()], &[SAME, LINEAR]);
    add(Op::Polar(Side::Left), &[wide()], &[SAME, LINEAR]);
    add(Op::Sqrtm, &[general()], &[ROOT]);
    add(Op::Hermitian(Elementary::Pow(0.5)), &[positive()], &[ROOT]);
    add(Op::Inv, &[general()], &[INVERSE]);
    add(Op::Solve, &[general(), rhs(4)], &[SOLUTION]);
    add(Op::Lyapunov, &[positive(), random::<T>(10, &[2, 4, 4])], &[SOLUTION]);
    for triangle in [Triangle::LOWER, Triangle::UPPER.adjoint()] {
        add(Op::SolveTriangular(triangle), &[general(), rhs(4)], &[SOLUTION]);
    }
    cases
}

fn scaled<T: LinalgScalar>(t: &Tensor<T>, e: f64) -> Tensor<T> {
    Batched::new(t).scale(2f64.powf(e)).into_tensor().unwrap()
}

/// A result as a tensor, times `2ᵉ`.
fn part<T: LinalgScalar>(part: &Part<Batched<T>>, e: f64) -> Part<Batched<T>> {
    let c = 2f64.powf(e);
    match part {
        Part::Full(x) => Part::Full(x.scale(c)),
        Part::Real(x) => Part::Real(x.scale(c)),
        Part::Complex(x) => Part::Complex(x.scale(c)),
    }
}

#[track_caller]
fn close<T: LinalgScalar>(name: &str, a: &Part<Batched<T>>, b: &Part<Batched<T>>, limit: f64) {
    fn norms<M: Matrices>(a: &M, b: &M) -> (f64, f64) {
        let norm = |x: &M| x.norms().unwrap().into_iter().fold(0.0, f64::max);
        (norm(&a.sub(b)), norm(b))
    }
    let (off, size) = match (a, b) {
        (Part::Full(a), Part::Full(b)) => norms(a, b),
        (Part::Real(a), Part::Real(b)) => norms(a, b),
        (Part::Complex(a), Part::Complex(b)) => norms(a, b),
        _ => unreachable!("results of one operation"),
    };
    assert!(off <= limit * size, "{name}: off by {off:e} of {size:e}");
}

fn homogeneous<T: LinalgScalar>() {
    let far = if epsilon::<T>() < 1e-10 { 900.0 } else { 100.0 };
    let limit = tight::<T>(40);
    for Case { op, inputs, degrees } in cases::<T>() {
        let near = op.forward(&inputs.iter().collect::<Vec<_>>(), true).unwrap();
        // One input is moved at a time.
        for (which, e) in (0..inputs.len()).flat_map(|i| [(i, far), (i, -far)]) {
            let mut moved = inputs.clone();
            moved[which] = scaled(&inputs[which], e);
            let name = format!("{op:?}, input {which}, 2^{e}");
            let out = op.forward(&moved.iter().collect::<Vec<_>>(), true);
            let out = out.unwrap_or_else(|error| panic!("{name}: {error}"));
            for ((got, want), degree) in out.parts.iter().zip(&near.parts).zip(degrees) {
                close(&name, &part(got, -degree[which] * e), want, limit);
            }
            // A cotangent of the degree −d, of vectors none: they have a gauge to keep.
            let gradient = |inputs: &[Tensor<T>], out: &Outcome<Batched<T>>, e: f64| {
                let with_gauge = matches!(op, Op::Svd(..) | Op::Eigh(_) | Op::Eig(_));
                let bar = |(bar, degree): (&Part<Batched<T>>, &[f64; 2])| match bar {
                    Part::Full(_) | Part::Complex(_) if with_gauge => None,
                    _ => Some(part(bar, -degree[which] * e)),
                };
                let bars: Vec<_> = near.parts.iter().zip(degrees).map(bar).collect();
                let inputs: Vec<_> = inputs.iter().map(Batched::new).collect();
                op.vjp(&inputs, out, &bars).unwrap()
            };
            let (got, want) = (gradient(&moved, &out, e), gradient(&inputs, &near, 0.0));
            for (i, (got, want)) in got.into_iter().zip(want).enumerate() {
                let e = if i == which { e } else { 0.0 };
                close(
                    &format!("{name} vjp {i}"),
                    &part(&Part::Full(got), e),
                    &Part::Full(want),
                    limit,
                );
            }
        }
    }
}

for_all_dtypes! {
    far_from_one_results_are_those_near_one => homogeneous;
}
