//! First and second derivatives of every operation, and the table in the crate's documentation.

use t4a_tensor::Tensor;

use super::*;
use crate::scalar::LinalgScalar;
use crate::testing::*;
use crate::vocabulary::Batched;

/// Every operation, with regular inputs.
fn cases<T: LinalgScalar>() -> Vec<(Op, Vec<Tensor<T>>)> {
    let policy = Degeneracy::default();
    let square = || with_singular_values::<T>(1, &[2], 4, 4, &[2.5, 1.7, 1.0, 0.5]);
    let wide = || with_singular_values::<T>(2, &[2], 3, 5, &[2.0, 1.2, 0.5]);
    let tall = || with_singular_values::<T>(3, &[2], 5, 3, &[2.0, 1.2, 0.5]);
    let positive = || with_eigenvalues::<T>(4, &[2], &[0.6, 1.1, 1.9, 2.8]);
    let general = || {
        let a = Batched::new(&random::<T>(5, &[2, 4, 4])).scale(0.4);
        a.add(&a.identity(4).scale(1.5)).into_tensor().unwrap()
    };
    let rhs = || random::<T>(6, &[2, 4, 2]);
    let mut cases = vec![
        (Op::SvdVals, vec![wide()]),
        (Op::LuFactor(Pivoting::Partial), vec![random::<T>(7, &[2, 4, 3])]),
        (Op::LuFactor(Pivoting::Full), vec![random::<T>(7, &[2, 3, 4])]),
        (Op::Lq, vec![wide()]),
        (Op::Lstsq, vec![tall(), random::<T>(11, &[2, 5, 2])]),
        (Op::Lstsq, vec![wide(), random::<T>(12, &[2, 3, 2])]),
        (Op::LstsqMinNorm(None), vec![tall(), random::<T>(11, &[2, 5, 2])]),
        (Op::Cholesky, vec![positive()]),
        (Op::Eigh(policy), vec![positive()]),
        (Op::EigvalsH, vec![positive()]),
        (Op::Eig(policy), vec![random::<T>(8, &[2, 4, 4])]),
        (Op::EigVals, vec![random::<T>(8, &[2, 4, 4])]),
        (Op::Polar(Side::Right), vec![tall()]),
        (Op::Polar(Side::Left), vec![wide()]),
        (Op::Polar(Side::Right), vec![wide()]),
        (Op::Polar(Side::Left), vec![tall()]),
        (Op::Expm, vec![random::<T>(9, &[2, 3, 3])]),
        (Op::Sqrtm, vec![general()]),
        (Op::Logm, vec![general()]),
        (Op::Hermitian(Elementary::Ln), vec![positive()]),
        (Op::SvdFunction(Elementary::Pow(0.5)), vec![wide()]),
        (Op::SvdFunction(Elementary::Exp), vec![tall()]),
        (Op::Inv, vec![square()]),
        (Op::Det, vec![square()]),
        (Op::Det, vec![with_singular_values::<T>(13, &[1], 4, 4, &[2.0, 1.0, 1.0, 0.0])]),
        (Op::Det, vec![with_singular_values::<T>(14, &[1], 4, 4, &[2.0, 0.5, 0.0, 0.0])]),
        (Op::Slogdet, vec![square()]),
        (Op::Solve, vec![square(), rhs()]),
        (Op::Lyapunov, vec![positive(), random::<T>(10, &[2, 4, 4])]),
    ];
    for triangle in [Triangle::LOWER, Triangle::UPPER.adjoint(), Triangle::LOWER.unit().transpose()]
    {
        cases.push((Op::SolveTriangular(triangle), vec![general(), rhs()]));
    }
    for a in [square(), wide(), tall()] {
        for vectors in [Vectors::Thin, Vectors::Full] {
            cases.push((Op::Svd(vectors, policy), vec![a.clone()]));
        }
        for columns in [Columns::Thin, Columns::Complete] {
            cases.push((Op::Qr(columns), vec![a.clone()]));
            cases.push((Op::QrPivoted(columns), vec![a.clone()]));
        }
        cases.push((Op::Pinv(None), vec![a]));
    }
    cases
}

/// Fixed weights for a matrix of this shape.
fn weights<M: Matrices>(like: &M, m: usize, n: usize, seed: usize) -> M {
    // Powers of a few constants: different entries, the same on every implementor.
    let entry = |i: usize| 0.3 + ((7 * i + 3 * seed) % 11) as f64 / 10.0;
    let row = (0..n).map(|j| like.constant(1, 1, entry(j))).reduce(|a, b| a.append(&b));
    let column = (0..m).map(|i| like.constant(1, 1, entry(i + 5))).reduce(|a, b| a.stack(&b));
    match (row, column) {
        (Some(row), Some(column)) => column.mul(&row),
        _ => like.constant(m, n, 0.0),
    }
}

/// `Re⟨C, U Uᴴ⟩/2` over the complement of the leading vectors on each side, and the values.
fn full_svd_cotangents<M: Matrices>(u: &M, s: &M::Real, vh: &M) -> Vec<Option<Part<M>>> {
    let k = s.cols();
    // Nothing of the leading vectors, all of the rest: a function of the subspace.
    let rest = |u: &M| {
        let m = u.rows();
        let none = u.constant(m, k, 0.0);
        match m > k {
            true => none.append(&weights(u, m, m, 2).herm().matmul(&u.slice(0..m, k..m))),
            false => none,
        }
    };
    let s_bar = s.mul(s).mul(&weights(s, 1, k, 3));
    let (u_bar, v_bar) = (rest(u), rest(&vh.adjoint()));
    vec![Some(Part::Full(u_bar)), Some(Part::Real(s_bar)), Some(Part::Full(v_bar.adjoint()))]
}

/// As for `full_svd_cotangents`, with all of the thin part of `Q` and `R`.
fn complete_qr_cotangents<M: Matrices>(q: &M, r: &M, k: usize) -> Vec<Option<Part<M>>> {
    let m = q.rows();
    let q_k = q.slice(0..m, 0..k);
    let thin = q_k.mul(&weights(q, m, k, 0));
    let q_bar = match m > k {
        true => thin.append(&weights(q, m, m, 2).herm().matmul(&q.slice(0..m, k..m))),
        false => thin,
    };
    let r_bar = r.mul(&weights(r, r.rows(), r.cols(), 1));
    vec![Some(Part::Full(q_bar)), Some(Part::Full(r_bar))]
}

/// Cotangents of a loss that is a function of the input: for operations with a gauge,
/// `Re⟨C, U diag(w) Vᴴ⟩` and the like, with `C` made of fixed weights.
fn cotangents<M: Matrices>(op: Op, parts: &[Part<M>]) -> Vec<Option<Part<M>>> {
    match op {
        Op::Svd(vectors, _) => {
            let (u, s, vh) = (parts[0].full(), parts[1].real(), parts[2].full());
            let k = s.cols();
            if vectors == Vectors::Full {
                return full_svd_cotangents(u, s, vh);
            }
            let w = weights(u, 1, k, 1);
            let c = weights(u, u.rows(), vh.cols(), 2);
            let u_bar = c.matmul(&vh.adjoint()).mul(&w);
            let vh_bar = u.mul(&w).adjoint().matmul(&c);
            let s_bar = s.mul(s).mul(&weights(s, 1, k, 3));
            vec![Some(Part::Full(u_bar)), Some(Part::Real(s_bar)), Some(Part::Full(vh_bar))]
        }
        Op::Qr(Columns::Complete) | Op::QrPivoted(Columns::Complete) => {
            let (q, r) = (parts[0].full(), parts[1].full());
            complete_qr_cotangents(q, r, r.rows().min(r.cols()))
        }
        Op::Eigh(_) => {
            let (e, v) = (parts[0].real(), parts[1].full());
            let n = e.cols();
            let c = weights(v, n, n, 2).herm();
            let v_bar = c.matmul(v).mul(&weights(v, 1, n, 1));
            let e_bar = e.mul(e).mul(&weights(e, 1, n, 3));
            vec![Some(Part::Real(e_bar)), Some(Part::Full(v_bar))]
        }
        Op::Eig(_) => {
            let (l, v) = (parts[0].complex(), parts[1].complex());
            let n = l.cols();
            let c = weights(v, n, n, 2).herm();
            // Σ |..|² of columns weighted by a function of λ that is real for real matrices.
            let v_bar = c.matmul(v).mul(&M::Complex::from_re(&l.mul(&l.conj()).re()));
            let sizes = v.conj().mul(&c.matmul(v)).sum_rows().re();
            let l_bar = l.mul_real(&sizes);
            vec![Some(Part::Complex(l_bar)), Some(Part::Complex(v_bar))]
        }
        Op::EigVals => {
            // `Σ λ²/2`: the order and conjugate pairs do not matter.
            vec![Some(Part::Complex(parts[0].complex().conj()))]
        }
        _ => {
            let own = |(i, part): (usize, &Part<M>)| {
                Some(match part {
                    // The gradient of Σ w |x|²/2 moves with the result.
                    Part::Full(x) => Part::Full(x.mul(&weights(x, x.rows(), x.cols(), i))),
                    Part::Real(x) => Part::Real(x.mul(&weights(x, x.rows(), x.cols(), i))),
                    Part::Complex(x) => Part::Complex(x.mul(&weights(x, x.rows(), x.cols(), i))),
                })
            };
            parts.iter().enumerate().map(own).collect()
        }
    }
}

type Engine<T> = Batched<T>;

fn run<T: LinalgScalar>(op: Op, inputs: &[Tensor<T>]) -> Outcome<Engine<T>> {
    op.forward(&inputs.iter().collect::<Vec<_>>(), true).unwrap()
}

fn batched<T: LinalgScalar>(inputs: &[Tensor<T>]) -> Vec<Engine<T>> {
    inputs.iter().map(Batched::new).collect()
}

/// The gradient of the loss behind [`cotangents`].
fn gradient<T: LinalgScalar>(op: Op, inputs: &[Tensor<T>]) -> Vec<Tensor<T>> {
    let out = run(op, inputs);
    let bars = cotangents(op, &out.parts);
    let bars = op.vjp(&batched(inputs), &out, &bars).unwrap();
    bars.into_iter().map(|b| b.into_tensor().unwrap()).collect()
}

/// A result as tensor of the inputs' type with its cotangent: `Re⟨bar, moved⟩`.
fn pairing<T: LinalgScalar>(bar: &Part<Engine<T>>, moved: &Part<Engine<T>>) -> f64 {
    fn tensors<U: LinalgScalar>(a: &Engine<U>, b: &Engine<U>) -> f64 {
        inner(&a.clone().into_tensor().unwrap(), &b.clone().into_tensor().unwrap())
    }
    match (bar, moved) {
        (Part::Full(a), Part::Full(b)) => tensors(a, b),
        (Part::Real(a), Part::Real(b)) => tensors(a, b),
        (Part::Complex(a), Part::Complex(b)) => tensors(a, b),
        _ => unreachable!(),
    }
}

fn transposed<T: LinalgScalar>() {
    for (op, inputs) in cases::<T>() {
        let out = run(op, &inputs);
        let bars = cotangents(op, &out.parts);
        let tangents: Vec<_> = inputs.iter().map(|x| random::<T>(77, x.shape())).collect();
        let moved = op.jvp(&batched(&inputs), &out, &batched(&tangents)).unwrap();
        let forward: f64 = bars.iter().flatten().zip(&moved).map(|(b, m)| pairing(b, m)).sum();
        let pulled = gradient(op, &inputs);
        let reverse: f64 = pulled.iter().zip(&tangents).map(|(g, v)| inner(g, v)).sum();
        let size: f64 = pulled.iter().zip(&tangents).map(|(g, v)| norm(g) * norm(v)).sum();
        assert!((forward - reverse).abs() <= 1e-11 * size, "{op:?}: {forward} {reverse}");
    }
}

/// The gradient, moved by duals, against differences of the gradient.
fn second_order<T: LinalgScalar>() {
    for (op, inputs) in cases::<T>() {
        let tangents: Vec<_> = inputs.iter().map(|x| random::<T>(78, x.shape())).collect();
        let at = |h: f64| {
            let moved: Vec<_> = inputs.iter().zip(&tangents).map(|(x, v)| axpy(x, h, v)).collect();
            gradient(op, &moved)
        };
        let h = 1e-4;
        let (p1, m1, p2, m2) = (at(h), at(-h), at(2.0 * h), at(-2.0 * h));

        let out = run(op, &inputs);
        let (x, v) = (batched(&inputs), batched(&tangents));
        let lift = |op: Op, parts: &[Part<Engine<T>>]| -> Vec<Part<Dual<Engine<T>>>> {
            let own = Outcome { parts: parts.to_vec(), ..out.clone() };
            let moved = op.jvp(&x[..op.arity()], &own, &v[..op.arity()]).unwrap();
            parts.iter().zip(&moved).map(|(p, t)| Part::dual(p, t)).collect()
        };
        let dual = Outcome {
            parts: lift(op, &out.parts),
            saved: out.saved.as_ref().map(|(op, parts)| (*op, lift(*op, parts))),
            rows: out.rows.clone(),
            cols: out.cols.clone(),
        };
        let bars = cotangents(op, &dual.parts);
        let duals: Vec<_> =
            x.iter().zip(&v).map(|(x, v)| Dual::new(x.clone(), v.clone())).collect();
        let moved = op.vjp(&duals, &dual, &bars).unwrap();
        for (i, moved) in moved.into_iter().enumerate() {
            let near = axpy(&p1[i], -1.0, &m1[i]);
            let far = axpy(&p2[i], -1.0, &m2[i]);
            let zero = Tensor::zeros(near.shape()).unwrap();
            let slope = axpy(&axpy(&zero, 8.0 / (12.0 * h), &near), -1.0 / (12.0 * h), &far);
            let moved = moved.into_tangent().into_tensor().unwrap();
            let error = norm(&axpy(&moved, -1.0, &slope));
            let scale = norm(&slope).max(1e-3);
            assert!(error <= 1e-6 * scale, "{op:?} input {i}: off by {:e}", error / scale);
        }
    }
}

for_doubles! {
    the_vjp_of_every_operation_is_the_transposed_jvp => transposed;
    the_gradient_of_every_operation_has_a_derivative => second_order;
}

/// Rows of the table for functions that are not an [`Op`]; naming them proves that they exist.
fn other_rows() -> Vec<(&'static str, [bool; 4])> {
    use crate::{lu, qr, solve, svd};
    type T = f64;
    let _ = (svd::svd_truncated::<T>, svd::svd_vjp::<T>, svd::svd_jvp::<T>);
    let _ = (qr::ql::<T>, qr::ql_vjp::<T>, qr::ql_jvp::<T>);
    let _ = (qr::rq::<T>, qr::rq_vjp::<T>, qr::rq_jvp::<T>);
    let _ = (lu::lu::<T>, lu::lu_vjp::<T>, lu::lu_jvp::<T>);
    let _ = (solve::lu_solve::<T>, solve::lu_solve_vjp::<T>, solve::lu_solve_jvp::<T>);
    let first = [true, true, true, false];
    vec![("svd_truncated", first), ("ql", first), ("rq", first), ("lu", first), ("lu_solve", first)]
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
    expected.extend(other_rows().into_iter().map(|(name, marks)| (name.into(), marks)));
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
