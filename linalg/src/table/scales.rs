//! Scaled matrices: results and gradients of homogeneous operations are those near norm 1, scaled.

use t4a_tensor::Tensor;

use super::*;
use crate::cholesky::CholeskyOp;
use crate::degeneracy::Degeneracy;
use crate::eig::EigOp;
use crate::eigh::{EighOp, EigvalshOp};
use crate::hermitian::{Elementary, HermitianFunctionOp};
use crate::inverse::InvOp;
use crate::lstsq::{LstsqMinNormOp, LstsqOp};
use crate::lyapunov::LyapunovPositiveOp;
use crate::operation::*;
use crate::pinv::PinvOp;
use crate::polar::{PolarOp, Side};
use crate::qr::{Columns, LqOp, QrOp, QrPivotedOp};
use crate::scalar::{LinalgScalar, epsilon};
use crate::solve::SolveOp;
use crate::sqrtm::SqrtmOp;
use crate::svd::{SvdOp, SvdvalsOp, Vectors};
use crate::testing::*;
use crate::triangular::{SolveTriangularOp, Triangle};
use crate::vocabulary::Batched;

/// An operation, its inputs, and the degree of homogeneity of each result in each input.
struct ScaledCase<T: LinalgScalar> {
    op: MatrixOp,
    inputs: Vec<Tensor<T>>,
    degrees: &'static [[f64; 2]],
}

fn cases<T: LinalgScalar>() -> Vec<ScaledCase<T>> {
    let degeneracy = Degeneracy::default();
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
    let mut add = |op: MatrixOp, inputs: &[Tensor<T>], degrees: &'static [[f64; 2]]| {
        cases.push(ScaledCase { op, inputs: inputs.to_vec(), degrees });
    };
    for a in [square(), wide(), tall()] {
        let m = a.shape()[1];
        let pair = [a, rhs(m)];
        let a = &pair[..1];
        add(SvdOp { vectors: Vectors::Thin, degeneracy }.into(), a, &[SAME, LINEAR, SAME]);
        add(SvdOp { vectors: Vectors::Full, degeneracy }.into(), a, &[SAME, LINEAR, SAME]);
        add(SvdvalsOp.into(), a, &[LINEAR]);
        add(QrOp { columns: Columns::Thin }.into(), a, &[SAME, LINEAR]);
        add(QrPivotedOp { columns: Columns::Thin }.into(), a, &[SAME, LINEAR]);
        add(LqOp.into(), a, &[LINEAR, SAME]);
        add(PinvOp { rtol: None }.into(), a, &[INVERSE]);
        add(LstsqOp.into(), &pair, &[SOLUTION]);
        add(LstsqMinNormOp { rtol: None }.into(), &pair, &[SOLUTION]);
    }
    add(CholeskyOp.into(), &[positive()], &[ROOT]);
    add(EighOp { degeneracy }.into(), &[positive()], &[LINEAR, SAME]);
    add(EigvalshOp.into(), &[positive()], &[LINEAR]);
    add(EigOp { degeneracy }.into(), &[general()], &[LINEAR, SAME]);
    add(PolarOp { side: Side::Right }.into(), &[tall()], &[SAME, LINEAR]);
    add(PolarOp { side: Side::Left }.into(), &[wide()], &[SAME, LINEAR]);
    add(SqrtmOp.into(), &[general()], &[ROOT]);
    add(HermitianFunctionOp { function: Elementary::Pow(0.5) }.into(), &[positive()], &[ROOT]);
    add(InvOp.into(), &[general()], &[INVERSE]);
    add(SolveOp.into(), &[general(), rhs(4)], &[SOLUTION]);
    add(LyapunovPositiveOp.into(), &[positive(), random::<T>(10, &[2, 4, 4])], &[SOLUTION]);
    for triangle in [Triangle::LOWER, Triangle::UPPER.adjoint()] {
        add(SolveTriangularOp { triangle }.into(), &[general(), rhs(4)], &[SOLUTION]);
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
        let larger = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
        let norm = |x: &M| x.norms().unwrap().into_iter().fold(0.0, larger);
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
    for ScaledCase { op, inputs, degrees } in cases::<T>() {
        let near = op.forward(&inputs.iter().collect::<Vec<_>>(), true).unwrap();
        // One input is scaled at a time.
        for (which, e) in (0..inputs.len()).flat_map(|i| [(i, far), (i, -far)]) {
            let mut moved = inputs.clone();
            moved[which] = scaled(&inputs[which], e);
            let name = format!("{op:?}, input {which}, 2^{e}");
            let out = op.forward(&moved.iter().collect::<Vec<_>>(), true);
            let out = out.unwrap_or_else(|error| panic!("{name}: {error}"));
            for ((got, want), degree) in out.results.iter().zip(&near.results).zip(degrees) {
                close(&name, &part(got, -degree[which] * e), want, limit);
            }
            // A cotangent of degree −d; none for vectors, whose gauge must not change.
            let gradient = |inputs: &[Tensor<T>], out: &Outcome<Batched<T>>, e: f64| {
                let with_gauge =
                    matches!(op, MatrixOp::Svd(_) | MatrixOp::Eigh(_) | MatrixOp::Eig(_));
                let cotangent =
                    |(cotangent, degree): (&Part<Batched<T>>, &[f64; 2])| match cotangent {
                        Part::Full(_) | Part::Complex(_) if with_gauge => None,
                        _ => Some(part(cotangent, -degree[which] * e)),
                    };
                let cotangents: Vec<_> = near.results.iter().zip(degrees).map(cotangent).collect();
                let inputs: Vec<_> = inputs.iter().map(Batched::new).collect();
                let all = op.pullback(&inputs, out, &cotangents, &[]);
                all.unwrap_or_else(|error| panic!("{name} vjp: {error}"))
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
