//! First and second derivatives of every operation, and the table in the crate's documentation.

use t4a_diff::{Array, Dual, Eager, Operation, Reverse, Value};
use t4a_tensor::Tensor;

use super::*;
use crate::cholesky::CholeskyOp;
use crate::degeneracy::Degeneracy;
use crate::det::{DetOp, SlogdetOp};
use crate::eig::{EigOp, EigvalsOp};
use crate::eigh::{EighOp, EigvalshOp};
use crate::expm::ExpmOp;
use crate::hermitian::{Elementary, HermitianFunctionOp};
use crate::inverse::InvOp;
use crate::logm::LogmOp;
use crate::lstsq::{LstsqMinNormOp, LstsqOp};
use crate::lu::{LuFactorOp, Pivoting};
use crate::lyapunov::LyapunovPositiveOp;
use crate::operation::*;
use crate::pinv::PinvOp;
use crate::polar::{PolarOp, Side};
use crate::qr::{Columns, LqOp, QrOp, QrPivotedOp};
use crate::solve::SolveOp;
use crate::sqrtm::SqrtmOp;
use crate::svd::{LowRankOp, SvdFunctionOp, SvdOp, SvdvalsOp, Vectors};
use crate::sylvester::SylvesterOp;
use crate::testing::*;
use crate::triangular::{SolveTriangularOp, Triangle};

/// Every operation, with regular inputs.
fn cases<T: LinalgScalar>() -> Vec<(MatrixOp, Vec<Tensor<T>>)> {
    let degeneracy = Degeneracy::default();
    let square = || with_singular_values::<T>(1, &[2], 4, 4, &[2.5, 1.7, 1.0, 0.5]);
    let wide = || with_singular_values::<T>(2, &[2], 3, 5, &[2.0, 1.2, 0.5]);
    let tall = || with_singular_values::<T>(3, &[2], 5, 3, &[2.0, 1.2, 0.5]);
    let positive = || with_eigenvalues::<T>(4, &[2], &[0.6, 1.1, 1.9, 2.8]);
    let general = || {
        let a = Batched::new(&random::<T>(5, &[2, 4, 4])).scale(0.4);
        a.add(&a.identity(4).scale(1.5)).into_tensor().unwrap()
    };
    let rhs = || random::<T>(6, &[2, 4, 2]);
    let mut cases: Vec<(MatrixOp, Vec<Tensor<T>>)> = vec![
        (SvdvalsOp.into(), vec![wide()]),
        (LuFactorOp { pivoting: Pivoting::Partial }.into(), vec![random::<T>(7, &[2, 4, 3])]),
        (LuFactorOp { pivoting: Pivoting::Full }.into(), vec![random::<T>(7, &[2, 3, 4])]),
        (LqOp.into(), vec![wide()]),
        (LstsqOp.into(), vec![tall(), random::<T>(11, &[2, 5, 2])]),
        (LstsqOp.into(), vec![wide(), random::<T>(12, &[2, 3, 2])]),
        (LstsqMinNormOp { rtol: None }.into(), vec![tall(), random::<T>(11, &[2, 5, 2])]),
        (CholeskyOp.into(), vec![positive()]),
        (EighOp { degeneracy }.into(), vec![positive()]),
        (EigvalshOp.into(), vec![positive()]),
        (EigOp { degeneracy }.into(), vec![random::<T>(8, &[2, 4, 4])]),
        (EigvalsOp.into(), vec![random::<T>(8, &[2, 4, 4])]),
        (PolarOp { side: Side::Right }.into(), vec![tall()]),
        (PolarOp { side: Side::Left }.into(), vec![wide()]),
        (PolarOp { side: Side::Right }.into(), vec![wide()]),
        (PolarOp { side: Side::Left }.into(), vec![tall()]),
        (ExpmOp.into(), vec![random::<T>(9, &[2, 3, 3])]),
        (SqrtmOp.into(), vec![general()]),
        (LogmOp.into(), vec![general()]),
        (HermitianFunctionOp { function: Elementary::Ln }.into(), vec![positive()]),
        (SvdFunctionOp { function: Elementary::Pow(0.5) }.into(), vec![wide()]),
        (SvdFunctionOp { function: Elementary::Exp }.into(), vec![tall()]),
        (LowRankOp { rank: 2 }.into(), vec![tall()]),
        (LowRankOp { rank: 2 }.into(), vec![wide()]),
        (InvOp.into(), vec![square()]),
        (DetOp.into(), vec![square()]),
        (DetOp.into(), vec![with_singular_values::<T>(13, &[1], 4, 4, &[2.0, 1.0, 1.0, 0.0])]),
        (DetOp.into(), vec![with_singular_values::<T>(14, &[1], 4, 4, &[2.0, 0.5, 0.0, 0.0])]),
        (SlogdetOp.into(), vec![square()]),
        (SolveOp.into(), vec![square(), rhs()]),
        (LyapunovPositiveOp.into(), vec![positive(), random::<T>(10, &[2, 4, 4])]),
        (SylvesterOp.into(), vec![general(), positive(), random::<T>(10, &[2, 4, 4])]),
    ];
    for triangle in [Triangle::LOWER, Triangle::UPPER.adjoint(), Triangle::LOWER.unit().transpose()]
    {
        cases.push((SolveTriangularOp { triangle }.into(), vec![general(), rhs()]));
    }
    for a in [square(), wide(), tall()] {
        for vectors in [Vectors::Thin, Vectors::Full] {
            cases.push((SvdOp { vectors, degeneracy }.into(), vec![a.clone()]));
        }
        for columns in [Columns::Thin, Columns::Complete] {
            cases.push((QrOp { columns }.into(), vec![a.clone()]));
            cases.push((QrPivotedOp { columns }.into(), vec![a.clone()]));
        }
        cases.push((PinvOp { rtol: None }.into(), vec![a]));
    }
    cases
}

/// Fixed weights for a matrix of this shape.
fn weights<M: Matrices>(like: &M, m: usize, n: usize, seed: usize) -> M {
    // Powers of a few constants: different entries, equal on every implementor.
    let entry = |i: usize| 0.3 + ((7 * i + 3 * seed) % 11) as f64 / 10.0;
    let row = (0..n).map(|j| like.constant(1, 1, entry(j))).reduce(|a, b| a.append(&b));
    let column = (0..m).map(|i| like.constant(1, 1, entry(i + 5))).reduce(|a, b| a.stack(&b));
    match (row, column) {
        (Some(row), Some(column)) => column.mul(&row),
        _ => like.constant(m, n, 0.0),
    }
}

/// `Re⟨C, U Uᴴ⟩/2` over the complement of the leading vectors on each side, plus a function of the values.
fn full_svd_cotangents<M: Matrices>(u: &M, s: &M::Real, vh: &M) -> Vec<Option<Part<M>>> {
    let k = s.cols();
    // Only the complement: a function of the subspace.
    let rest = |u: &M| {
        let m = u.rows();
        let none = u.constant(m, k, 0.0);
        match m > k {
            true => none.append(&weights(u, m, m, 2).herm().matmul(&u.slice(0..m, k..m))),
            false => none,
        }
    };
    let s_cotangent = s.mul(s).mul(&weights(s, 1, k, 3));
    let (u_cotangent, v_cotangent) = (rest(u), rest(&vh.adjoint()));
    vec![
        Some(Part::Full(u_cotangent)),
        Some(Part::Real(s_cotangent)),
        Some(Part::Full(v_cotangent.adjoint())),
    ]
}

/// As `full_svd_cotangents`, with all of the thin part of `Q`, and `R`.
fn complete_qr_cotangents<M: Matrices>(q: &M, r: &M, k: usize) -> Vec<Option<Part<M>>> {
    let m = q.rows();
    let q_k = q.slice(0..m, 0..k);
    let thin = q_k.mul(&weights(q, m, k, 0));
    let q_cotangent = match m > k {
        true => thin.append(&weights(q, m, m, 2).herm().matmul(&q.slice(0..m, k..m))),
        false => thin,
    };
    let r_cotangent = r.mul(&weights(r, r.rows(), r.cols(), 1));
    vec![Some(Part::Full(q_cotangent)), Some(Part::Full(r_cotangent))]
}

/// Cotangents of a loss that is a function of the input: for operations with a gauge, `Re⟨C, U diag(w) Vᴴ⟩` and
/// similar, with `C` made of fixed weights.
fn cotangents<M: Matrices>(op: MatrixOp, parts: &[Part<M>]) -> Vec<Option<Part<M>>> {
    match op {
        MatrixOp::Svd(SvdOp { vectors, .. }) => {
            let (u, s, vh) = (parts[0].full(), parts[1].real(), parts[2].full());
            let k = s.cols();
            if vectors == Vectors::Full {
                return full_svd_cotangents(u, s, vh);
            }
            let w = weights(u, 1, k, 1);
            let c = weights(u, u.rows(), vh.cols(), 2);
            let u_cotangent = c.matmul(&vh.adjoint()).mul(&w);
            let vh_cotangent = u.mul(&w).adjoint().matmul(&c);
            let s_cotangent = s.mul(s).mul(&weights(s, 1, k, 3));
            vec![
                Some(Part::Full(u_cotangent)),
                Some(Part::Real(s_cotangent)),
                Some(Part::Full(vh_cotangent)),
            ]
        }
        MatrixOp::Qr(QrOp { columns: Columns::Complete })
        | MatrixOp::QrPivoted(QrPivotedOp { columns: Columns::Complete }) => {
            let (q, r) = (parts[0].full(), parts[1].full());
            complete_qr_cotangents(q, r, r.rows().min(r.cols()))
        }
        MatrixOp::Eigh(_) => {
            let (e, v) = (parts[0].real(), parts[1].full());
            let n = e.cols();
            let c = weights(v, n, n, 2).herm();
            let v_cotangent = c.matmul(v).mul(&weights(v, 1, n, 1));
            let e_cotangent = e.mul(e).mul(&weights(e, 1, n, 3));
            vec![Some(Part::Real(e_cotangent)), Some(Part::Full(v_cotangent))]
        }
        MatrixOp::Eig(_) => {
            let (l, v) = (parts[0].complex(), parts[1].complex());
            let n = l.cols();
            let c = weights(v, n, n, 2).herm();
            // Squared norm of columns weighted by a function of λ that is real for real matrices.
            let v_cotangent = c.matmul(v).mul(&M::Complex::from_re(&l.mul(&l.conj()).re()));
            let sizes = v.conj().mul(&c.matmul(v)).sum_rows().re();
            let l_cotangent = l.mul_real(&sizes);
            vec![Some(Part::Complex(l_cotangent)), Some(Part::Complex(v_cotangent))]
        }
        MatrixOp::Eigvals(_) => {
            // `Σ λ²/2` is independent of the order and of conjugate pairs.
            vec![Some(Part::Complex(parts[0].complex().conj()))]
        }
        _ => {
            let own = |(i, part): (usize, &Part<M>)| {
                Some(match part {
                    // The gradient of Σ w |x|²/2 depends on the result.
                    Part::Full(x) => Part::Full(x.mul(&weights(x, x.rows(), x.cols(), i))),
                    Part::Real(x) => Part::Real(x.mul(&weights(x, x.rows(), x.cols(), i))),
                    Part::Complex(x) => Part::Complex(x.mul(&weights(x, x.rows(), x.cols(), i))),
                })
            };
            parts.iter().enumerate().map(own).collect()
        }
    }
}

/// Gradient of the loss of [`cotangents`], by the generic rule.
fn gradient<A: Array, M: Over<A>>(op: MatrixOp, inputs: Vec<A>) -> Vec<A> {
    let recorded = Recorded::new(op, M::IS_COMPLEX, inputs).unwrap();
    let given = flat(op, cotangents::<M>(op, &recorded.parts()));
    recorded.vjp(&given, &[]).unwrap_or_else(|error| panic!("{op:?}: {error}"))
}

/// Gradient on the engine, as tensors.
fn gradient_at<T: Scalar>(op: MatrixOp, inputs: &[Tensor<T>]) -> Vec<Tensor<T>> {
    let arrays = inputs.iter().flat_map(eager).collect();
    tensors(gradient::<Eager, T::Matrix<Eager>>(op, arrays))
}

fn tensors<T: LinalgScalar>(arrays: Vec<Eager>) -> Vec<Tensor<T>> {
    let each = 1 + usize::from(T::IS_COMPLEX);
    arrays.chunks_exact(each).map(|pair| from_eager(pair.to_vec()).unwrap()).collect()
}

fn dot(a: &[Eager], b: &[Eager]) -> f64 {
    let one = |(a, b): (&Eager, &Eager)| -> f64 {
        let (a, b) = (t4a_diff::check::elements(a), t4a_diff::check::elements(b));
        a.iter().zip(&b).map(|(a, b)| a * b).sum()
    };
    a.iter().zip(b).map(one).sum()
}

/// `‖x‖`.
fn size(x: &Eager) -> f64 {
    dot(std::slice::from_ref(x), std::slice::from_ref(x)).sqrt()
}

/// ⟨x̄, J v⟩ = ⟨Jᵀ x̄, v⟩, and the rules on the engine agree with the generic ones.
fn transposed<T: Scalar>() {
    for (op, inputs) in cases::<T>() {
        let tangents: Vec<_> = inputs.iter().map(|x| random::<T>(77, x.shape())).collect();
        let arrays: Vec<Eager> = inputs.iter().flat_map(eager).collect();
        let recorded = Recorded::new(op, T::IS_COMPLEX, arrays).unwrap();
        let given = flat(op, cotangents::<T::Matrix<Eager>>(op, &recorded.parts()));
        let pulled = recorded.vjp(&given, &[]).unwrap();

        let wanted = vec![true; recorded.operands];
        let reverse =
            Reverse { kept: &recorded.kept, cotangents: &given, hidden: &[], wanted: &wanted };
        let fused = recorded.op.fused_vjp(&reverse).unwrap().into_iter().flatten().collect();
        for (own, portable) in tensors::<T>(fused).iter().zip(tensors(pulled.clone())) {
            assert_close(own, &portable, 1e-11);
        }

        let pairs = duals(&inputs, &tangents).into_iter().map(Value::Float).collect::<Vec<_>>();
        let moving = recorded.op.jvp(&pairs, &wanted).unwrap();
        let fused = recorded.op.fused_jvp(&pairs, &wanted).unwrap();
        let all = |out: t4a_diff::Outcome<Duals>| -> Vec<Eager> {
            out.results.into_iter().chain(out.hidden).map(Dual::into_tangent).collect()
        };
        let (moving, fused) = (all(moving), all(fused));
        assert_eq!(moving.len(), recorded.out.results.len() + recorded.out.hidden.len());
        for (own, portable) in fused.iter().zip(&moving) {
            let limit = size(portable).max(1.0);
            let off = size(&own.sub(portable));
            assert!(off <= 1e-11 * limit, "{op:?}: fused jvp");
        }

        let cotangents: Vec<Eager> = given
            .iter()
            .zip(&recorded.out.results)
            .map(|(cotangent, y)| cotangent.clone().unwrap_or_else(|| y.full(&y.shape(), 0.0)))
            .collect();
        let directions: Vec<Eager> = tangents.iter().flat_map(eager).collect();
        let (forward, reverse) = (dot(&cotangents, &moving), dot(&pulled, &directions));
        let size = dot(&pulled, &pulled).sqrt() * dot(&directions, &directions).sqrt();
        assert!((forward - reverse).abs() <= 1e-11 * size, "{op:?}: {forward} {reverse}");
    }
}

/// Derivative of the gradient by dual numbers, against finite differences of the gradient.
fn second_order<T: Scalar>() {
    for (op, inputs) in cases::<T>() {
        let tangents: Vec<_> = inputs.iter().map(|x| random::<T>(78, x.shape())).collect();
        let at = |h: f64| {
            let moved: Vec<_> = inputs.iter().zip(&tangents).map(|(x, v)| axpy(x, h, v)).collect();
            gradient_at(op, &moved)
        };
        let h = 1e-4;
        let (p1, m1, p2, m2) = (at(h), at(-h), at(2.0 * h), at(-2.0 * h));
        let moved = gradient::<Duals, T::Matrix<Duals>>(op, duals(&inputs, &tangents));
        let moved = tensors::<T>(moved.into_iter().map(Dual::into_tangent).collect());
        for (i, moved) in moved.into_iter().enumerate() {
            let near = axpy(&p1[i], -1.0, &m1[i]);
            let far = axpy(&p2[i], -1.0, &m2[i]);
            let zero = Tensor::zeros(near.shape()).unwrap();
            let slope = axpy(&axpy(&zero, 8.0 / (12.0 * h), &near), -1.0 / (12.0 * h), &far);
            let error = norm(&axpy(&moved, -1.0, &slope));
            let scale = norm(&slope).max(1e-3);
            assert!(error <= 1e-6 * scale, "{op:?} input {i}: off by {:e}", error / scale);
        }
    }
}

fn sizes<T: LinalgScalar>(inputs: &[Tensor<T>]) -> Vec<[usize; 2]> {
    inputs.iter().map(|x| [x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]]).collect()
}

/// Tangent of a tangent, against finite differences of the tangent.
fn forward_over_forward<T: Scalar>() {
    for (op, inputs) in cases::<T>() {
        let directions = |seed| -> Vec<Tensor<T>> {
            inputs.iter().map(|x| random::<T>(seed, x.shape())).collect()
        };
        let (v, w) = (directions(79), directions(80));
        let linalg = Linalg { op, complex: T::IS_COMPLEX };
        // dv perturbs v as well.
        let dv = directions(81);
        let tangent = |h: f64| -> Vec<Eager> {
            let at = |x: &[Tensor<T>], dx: &[Tensor<T>]| -> Vec<Tensor<T>> {
                x.iter().zip(dx).map(|(x, dx)| axpy(x, h, dx)).collect()
            };
            let pairs = duals(&at(&inputs, &w), &at(&v, &dv));
            let pairs: Vec<_> = pairs.into_iter().map(Value::Float).collect();
            let out = linalg.jvp(&pairs, &vec![false; pairs.len()]).unwrap();
            out.results.into_iter().map(Dual::into_tangent).collect()
        };
        let h = 1e-4;
        let (p1, m1, p2, m2) = (tangent(h), tangent(-h), tangent(2.0 * h), tangent(-2.0 * h));
        let twice: Vec<Value<Dual<Duals>>> = duals(&inputs, &w)
            .into_iter()
            .zip(duals(&v, &dv))
            .map(|(value, tangent)| Value::Float(Dual::new(value, tangent)))
            .collect();
        let out = Dual::<Duals>::apply(&linalg, &twice, &vec![false; twice.len()]).unwrap();
        // The vectors that the engine returns at shifted points may have other phases.
        let gauge = match op {
            MatrixOp::Svd(_) | MatrixOp::Eigh(_) | MatrixOp::Eig(_) => true,
            MatrixOp::Qr(QrOp { columns }) => columns == Columns::Complete,
            MatrixOp::QrPivoted(QrPivotedOp { columns }) => columns == Columns::Complete,
            _ => false,
        };
        let kinds = op.results().iter().zip(op.sizes(&sizes(&inputs)));
        let vectors =
            kinds.flat_map(|(kind, [m, _])| vec![gauge && m > 1; kind.arrays(T::IS_COMPLEX)]);
        for ((i, y), vectors) in out.results.into_iter().enumerate().zip(vectors) {
            if vectors {
                continue;
            }
            let got = y.into_tangent().into_tangent();
            let slope =
                p1[i].sub(&m1[i]).scale(8.0).sub(&p2[i].sub(&m2[i])).scale(1.0 / (12.0 * h));
            let (off, limit) = (size(&got.sub(&slope)), 1e-6 * size(&slope).max(1e-3));
            assert!(off <= limit, "{op:?} result {i}: off by {off:e}, allowed {limit:e}");
        }
    }
}

for_doubles! {
    the_vjp_of_every_operation_is_the_transposed_jvp => transposed;
    the_gradient_of_every_operation_has_a_derivative => second_order;
    the_tangent_of_every_operation_has_a_tangent => forward_over_forward;
}

#[test]
fn the_table_in_the_documentation_is_true() {
    let mut expected: Vec<(String, [bool; 4])> = Vec::new();
    for (op, _) in cases::<f64>() {
        // The two tests above ran all four columns for each of these.
        if !expected.iter().any(|(name, _)| name == op.name()) {
            expected.push((op.name().into(), [true; 4]));
        }
    }
    expected.sort();
    let mut found: Vec<(String, [bool; 4])> = include_str!("../lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let mark = |i: usize| cells[i] == "✓";
            (cells[0].trim_end_matches('`').to_string(), [mark(1), mark(2), mark(3), mark(4)])
        })
        .collect();
    found.sort();
    assert_eq!(found, expected);
}

/// Operations are cache keys: they compare and hash by value, floats by their bits.
#[test]
fn operations_are_values() {
    use std::collections::HashSet;
    let all: Vec<Linalg> = cases::<f64>()
        .into_iter()
        .flat_map(|(op, _)| [false, true].map(|complex| Linalg { op, complex }))
        .collect();
    let distinct: HashSet<Linalg> = all.iter().copied().collect();
    let printed: HashSet<String> = all.iter().map(|op| format!("{op:?}")).collect();
    assert_eq!(distinct.len(), printed.len());
    let pinv = |rtol| MatrixOp::from(PinvOp { rtol });
    assert_ne!(pinv(Some(0.0)), pinv(None));
    assert_ne!(pinv(Some(0.0)), pinv(Some(-0.0)));
    assert_eq!(pinv(Some(f64::NAN)), pinv(Some(f64::NAN)));
    let function = |function| MatrixOp::from(HermitianFunctionOp { function });
    assert_ne!(function(Elementary::Pow(0.5)), function(Elementary::Pow(2.0)));
}

/// Sizes of results are predicted, and errors of mismatching operands name them.
#[test]
fn results_are_what_they_are_said_to_be() {
    use t4a_diff::Meta;
    fn of<T: Scalar>() {
        for (op, inputs) in cases::<T>() {
            let arrays: Vec<Eager> = inputs.iter().flat_map(eager).collect();
            let metas: Vec<Meta> =
                arrays.iter().map(|x| Meta { shape: x.shape(), dtype: x.dtype() }).collect();
            let op = Linalg { op, complex: T::IS_COMPLEX };
            let said = op.results(&metas).unwrap();
            let inputs: Vec<_> = arrays.into_iter().map(Value::Float).collect();
            let out = op.forward(&inputs, &vec![false; inputs.len()]).unwrap();
            let found: Vec<Meta> =
                out.results.iter().map(|x| Meta { shape: x.shape(), dtype: x.dtype() }).collect();
            assert_eq!(said, found, "{op:?}");
            assert!(out.hidden.is_empty(), "{op:?}");
        }
    }
    of::<f64>();
    of::<t4a_algebra::c64>();
    let meta = |shape: &[usize], dtype| Meta { shape: shape.to_vec(), dtype };
    use t4a_tensor::DType::{F32, F64, I64};
    let solve = Linalg { op: SolveOp.into(), complex: false };
    let pair = Linalg { complex: true, ..solve };
    let a = meta(&[2, 3, 3], F64);
    for (op, inputs) in [
        (solve, vec![a.clone()]),
        (solve, vec![a.clone(), meta(&[2, 4, 1], F64)]),
        (solve, vec![a.clone(), meta(&[3, 3, 1], F64)]),
        (solve, vec![a.clone(), meta(&[2, 3, 1], F32)]),
        (solve, vec![meta(&[2, 2], I64), meta(&[2, 2], I64)]),
        (solve, vec![meta(&[3], F64), meta(&[3], F64)]),
        (solve, vec![meta(&[2, 3], F64), meta(&[2, 3], F64)]),
        (pair, vec![a.clone(), a.clone()]),
        (pair, vec![a.clone(), meta(&[2, 3, 4], F64), a.clone(), a.clone()]),
    ] {
        let error = op.results(&inputs).unwrap_err();
        assert!(error.to_string().contains("solve"), "{error}");
    }
}

/// Serialisation round trip.
#[cfg(feature = "serde")]
#[test]
fn operations_serialise() {
    for (op, _) in cases::<f64>() {
        for complex in [false, true] {
            let op = Linalg { op, complex };
            let text = serde_json::to_string(&op).unwrap();
            assert_eq!(serde_json::from_str::<Linalg>(&text).unwrap(), op, "{text}");
        }
    }
}
