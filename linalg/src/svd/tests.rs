use t4a_algebra::{Numeric, Real, c32, c64};

use super::*;
use crate::degeneracy::Degeneracy;
use crate::error::LinalgError;
use crate::operation::{Outcome, Part};
use crate::scalar::epsilon;
use crate::table::MatrixOp;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices};

const SHAPES: [&[usize]; 11] = [
    &[4, 4],
    &[6, 3],
    &[3, 6],
    &[1, 1],
    &[5, 1],
    &[1, 4],
    &[3, 2, 4, 3],
    &[9, 5, 5],
    &[70, 66],
    &[80, 4],
    &[2, 3, 64],
];

fn identities<T: LinalgScalar>() {
    for shape in SHAPES {
        let a = random::<T>(1, shape);
        let n = shape[shape.len() - 1].max(shape[shape.len() - 2]);
        for vectors in [Vectors::Thin, Vectors::Full] {
            let Svd { u, s, vh } = svd(&a, vectors).unwrap();
            assert_isometry(&u);
            assert_isometry(&Batched::new(&vh).adjoint().into_tensor().unwrap());
            let k = s.shape()[s.rank() - 1];
            let thin_u = u.slice_axis(u.rank() - 1, 0, k, 1).unwrap();
            let thin_vh = vh.slice_axis(vh.rank() - 2, 0, k, 1).unwrap();
            assert_close(&sandwich(&thin_u, &s, &thin_vh), &a, tight::<T>(n));
            for row in s.to_vec().unwrap().chunks(k) {
                assert!(row.windows(2).all(|w| w[0] >= w[1]));
                assert!(row.iter().all(|&s| s >= <T::R as Numeric>::ZERO));
            }
            assert_close(&svdvals(&a).unwrap(), &s, tight::<T>(n));
        }
    }
}

/// Cotangents of the factors of [`Svd`]; `None` is zero.
pub(super) struct SvdCotangent<T: LinalgScalar> {
    pub(super) u: Option<Tensor<T>>,
    pub(super) s: Option<Tensor<T::R>>,
    pub(super) vh: Option<Tensor<T>>,
}

fn operand<T: LinalgScalar>(svd: &Svd<T>) -> (SvdOp, Batched<T>, Outcome<Batched<T>>) {
    let (u, s, vh) = (Batched::new(&svd.u), Batched::rows_of(&svd.s), Batched::new(&svd.vh));
    let like = u.constant(u.rows(), vh.cols(), 0.0);
    let out = Outcome::new(vec![Part::Full(u), Part::Real(s), Part::Full(vh)]);
    (SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT }, like, out)
}

/// Applies the rule to given factors.
pub(super) fn svd_vjp<T: LinalgScalar>(
    svd: &Svd<T>,
    given: &SvdCotangent<T>,
    degeneracy: &Degeneracy,
) -> Result<Tensor<T>> {
    let (op, a, out) = operand(svd);
    let given = [
        given.u.as_ref().map(|u| Part::Full(Batched::new(u))),
        given.s.as_ref().map(|s| Part::Real(Batched::rows_of(s))),
        given.vh.as_ref().map(|vh| Part::Full(Batched::new(vh))),
    ];
    let op = MatrixOp::from(SvdOp { degeneracy: *degeneracy, ..op });
    op.pullback(&[a], &out, &given, &[])?.swap_remove(0).into_tensor()
}

fn svd_jvp<T: LinalgScalar>(
    svd: &Svd<T>,
    da: &Tensor<T>,
    degeneracy: &Degeneracy,
) -> Result<Svd<T>> {
    let (op, a, out) = operand(svd);
    let op = MatrixOp::from(SvdOp { degeneracy: *degeneracy, ..op });
    let parts = op.pushforward(&[a], &out, &[Some(Batched::new(da))], false)?.0;
    Ok(Svd {
        u: parts[0].full().clone().into_tensor()?,
        s: parts[1].real().clone().into_vectors()?,
        vh: parts[2].full().clone().into_tensor()?,
    })
}

/// Gauge-invariant functions of the decomposition: products such as `U f(S) Vᴴ`, and the singular values.
struct Invariants {
    vectors: Vectors,
    truncation: Option<usize>,
    degeneracy: Degeneracy,
}

impl Invariants {
    fn kept<T: LinalgScalar>(
        &self,
        svd: &Svd<T>,
    ) -> (Batched<T>, Batched<T::R>, Batched<T>, usize) {
        let (u, s, vh) = (Batched::new(&svd.u), Batched::rows_of(&svd.s), Batched::new(&svd.vh));
        let k = s.cols();
        let p = self.truncation.unwrap_or(k);
        let (left, right) = match self.truncation {
            Some(p) => (p, p),
            None => (u.cols(), vh.rows()),
        };
        let (m, n) = (u.rows(), vh.cols());
        (u.slice(0..m, 0..left), s.slice(0..1, 0..p), vh.slice(0..right, 0..n), p)
    }

    /// Weights of the products below, different for all columns.
    fn weights<T: LinalgScalar>(&self, u: &Batched<T>, p: usize) -> Batched<T> {
        row(u, &(0..p).map(|i| 1.0 + 0.5 * i as f64).collect::<Vec<_>>())
    }

    fn f<T: LinalgScalar>(&self, a: &Tensor<T>) -> Vec<Tensor<T>> {
        let (u, s, vh, p) = self.kept(&svd(a, self.vectors).unwrap());
        let w = self.weights(&u, p);
        let (u_p, vh_p) = (u.slice(0..u.rows(), 0..p), vh.slice(0..p, 0..vh.cols()));
        let product = u_p.mul(&w).matmul(&vh_p);
        let left = u_p.mul(&w).matmul(&u_p.adjoint());
        let span = u.matmul(&u.adjoint());
        [product, left, span, Batched::from_re(&s)].map(|x| x.into_tensor().unwrap()).to_vec()
    }

    fn jvp<T: LinalgScalar>(&self, a: &Tensor<T>, da: &Tensor<T>) -> Vec<Tensor<T>> {
        let svd = svd(a, self.vectors).unwrap();
        let (u, _, vh, p) = self.kept(&svd);
        let (du, ds, dvh, _) = self.kept(&svd_jvp(&svd, da, &self.degeneracy).unwrap());
        let w = self.weights(&u, p);
        let part = |x: &Batched<T>| x.slice(0..x.rows(), 0..p);
        let (u_p, du_p) = (part(&u), part(&du));
        let (vh_p, dvh_p) = (vh.slice(0..p, 0..vh.cols()), dvh.slice(0..p, 0..vh.cols()));
        let product = du_p.mul(&w).matmul(&vh_p).add(&u_p.mul(&w).matmul(&dvh_p));
        let half = du_p.mul(&w).matmul(&u_p.adjoint());
        let span = du.matmul(&u.adjoint());
        [product, half.add(&half.adjoint()), span.add(&span.adjoint()), Batched::from_re(&ds)]
            .map(|x| x.into_tensor().unwrap())
            .to_vec()
    }

    fn vjp<T: LinalgScalar>(&self, a: &Tensor<T>, cotangents: &[Tensor<T>]) -> Tensor<T> {
        let svd = svd(a, self.vectors).unwrap();
        let (u, _, vh, p) = self.kept(&svd);
        let w = self.weights(&u, p);
        let cotangent = |i: usize| Batched::new(&cotangents[i]);
        let (u_p, vh_p) = (u.slice(0..u.rows(), 0..p), vh.slice(0..p, 0..vh.cols()));
        let mut u_cotangent = cotangent(0).matmul(&vh_p.adjoint()).mul(&w);
        u_cotangent =
            u_cotangent.add(&cotangent(1).add(&cotangent(1).adjoint()).matmul(&u_p).mul(&w));
        if u.cols() > p {
            u_cotangent = u_cotangent.append(&u.constant(u.rows(), u.cols() - p, 0.0));
        }
        u_cotangent = u_cotangent.add(&cotangent(2).add(&cotangent(2).adjoint()).matmul(&u));
        let mut vh_cotangent = u_p.mul(&w).adjoint().matmul(&cotangent(0));
        if vh.rows() > p {
            vh_cotangent = vh_cotangent.stack(&vh.constant(vh.rows() - p, vh.cols(), 0.0));
        }
        let cotangent = SvdCotangent {
            u: Some(u_cotangent.into_tensor().unwrap()),
            s: Some(cotangent(3).re().into_vectors().unwrap()),
            vh: Some(vh_cotangent.into_tensor().unwrap()),
        };
        svd_vjp(&svd, &cotangent, &self.degeneracy).unwrap()
    }

    #[track_caller]
    fn check<T: LinalgScalar>(&self, a: &Tensor<T>) {
        check_rules(
            std::slice::from_ref(a),
            |x| self.f(&x[0]),
            |x, v| self.jvp(&x[0], &v[0]),
            |x, w| vec![self.vjp(&x[0], w)],
        );
    }
}

const THIN: Invariants = Invariants {
    vectors: Vectors::Thin,
    truncation: None,
    degeneracy: Degeneracy {
        tolerance: None,
        broadening: None,
        check_gauge: true,
        separable: false,
    },
};

const VALUES: [f64; 4] = [3.0, 2.2, 1.3, 0.6];

fn derivatives<T: LinalgScalar>() {
    for (m, n) in [(4, 4), (7, 4), (4, 6)] {
        let a = with_singular_values::<T>(5, &[2], m, n, &VALUES);
        THIN.check(&a);
        Invariants { vectors: Vectors::Full, ..THIN }.check(&a);
        for p in [1, 3] {
            Invariants { truncation: Some(p), ..THIN }.check(&a);
        }
    }
}

for_all_dtypes! {
    factors_reproduce_the_matrix => identities;
    rules_agree_with_differences => derivatives;
    truncation_keeps_what_it_says => truncation;
    values_have_a_derivative_at_ties => ties_in_values;
    tied_and_zero_values_have_subgradients => subgradients;
    dependent_columns_leave_zeros => zeros;
}

/// The gradient of one of several tied values, and of one that is 0, is `u vᴴ` for a pair of unit vectors of their
/// subspaces; that of the sum of values has no singular value above 1.
fn subgradients<T: LinalgScalar>() {
    let vector = |values: &[f64]| {
        let values = values.iter().map(|&x| <T::R as Numeric>::from_f64(x)).collect();
        Tensor::<T::R>::from_vec(values, &[3]).unwrap()
    };
    for values in [[1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]] {
        let a = with_singular_values::<T>(3, &[], 4, 3, &values);
        let along = |weights: [f64; 3]| {
            let given = Part::Real(Batched::rows_of(&vector(&weights)));
            gradient(SvdvalsOp, &[&a], &[Some(given)]).unwrap().swap_remove(0)
        };
        for (i, value) in values.into_iter().enumerate() {
            let g = along([0, 1, 2].map(|k| f64::from(u8::from(k == i))));
            assert_close(&svdvals(&g).unwrap(), &vector(&[1.0, 0.0, 0.0]), tight::<T>(4));
            assert!((inner(&g, &a) - value).abs() < tight::<T>(4), "{values:?}");
        }
        let sum = along([1.0; 3]);
        let largest = svdvals(&sum).unwrap().to_vec().unwrap()[0].to_f64();
        assert!(largest < 1.0 + tight::<T>(4), "{values:?}");
        assert!((inner(&sum, &a) - values.iter().sum::<f64>()).abs() < tight::<T>(4));
    }
}

fn truncation<T: LinalgScalar>() {
    let a = with_singular_values::<T>(3, &[2], 6, 5, &[2.0, 1.0, 1.0, 1.0, 1e-3]);
    let dims = |t: Truncation| {
        let out = svd_truncated(&a, &t).unwrap();
        let p = out.kept.s.shape()[1];
        let rest = axpy(&sandwich(&out.kept.u, &out.kept.s, &out.kept.vh), -1.0, &a);
        let errors = out.error.to_vec().unwrap();
        let want = errors.iter().map(|e| Real::to_f64(*e).powi(2)).sum::<f64>().sqrt();
        assert!((norm(&rest) - want).abs() < tight::<T>(6), "{} {want}", norm(&rest));
        p
    };
    use t4a_algebra::Real;
    assert_eq!(dims(Truncation::new()), 5);
    // An exact tie is split at the limit.
    assert_eq!(dims(Truncation::new().max_dim(2)), 2);
    assert_eq!(dims(Truncation::new().max_dim(3)), 3);
    assert_eq!(dims(Truncation::new().cutoff(0.5)), 4);
    assert_eq!(dims(Truncation::new().relative_cutoff(0.6)), 1);
    assert_eq!(dims(Truncation::new().relative_cutoff(0.6).min_dim(3)), 3);
    assert_eq!(dims(Truncation::new().discarded_weight(1.1)), 3);
    assert_eq!(dims(Truncation::new().relative_discarded_weight(2.1 / 7.0)), 2);
    assert_eq!(dims(Truncation::new().discarded_weight(1e-5).max_dim(9)), 4);
}

fn ties_in_values<T: LinalgScalar>() {
    let a = with_singular_values::<T>(3, &[], 5, 4, &[2.0, 1.0, 1.0, 0.5]);
    // Σ s² = ‖A‖² has the gradient 2 A, also at ties.
    let svd = svd(&a, Vectors::Thin).unwrap();
    let cotangent = SvdCotangent {
        u: None,
        s: Some(Batched::rows_of(&svd.s).scale(2.0).into_vectors().unwrap()),
        vh: None,
    };
    let got = svd_vjp(&svd, &cotangent, &Degeneracy::default()).unwrap();
    assert_close(&got, &axpy(&a, 1.0, &a), tight::<T>(5));
}

/// Kept and discarded vectors with a tie on either side: the projector onto the kept ones and the product `Uₚ Vₚᴴ`
/// are functions of `A`.
fn truncated_at_ties<T: LinalgScalar>() {
    let parts = |svd: &Svd<T>| {
        let (u, vh) = (Batched::new(&svd.u), Batched::new(&svd.vh));
        (u.slice(0..u.rows(), 0..3), vh.slice(0..3, 0..vh.cols()))
    };
    let policy = Degeneracy::SEPARABLE;
    check_rules(
        &[with_singular_values::<T>(51, &[2], 6, 5, &[3.0, 2.0, 2.0, 0.7, 0.7])],
        |x| {
            let (u, vh) = parts(&svd(&x[0], Vectors::Thin).unwrap());
            [u.matmul(&u.adjoint()), u.matmul(&vh)].map(|x| x.into_tensor().unwrap()).to_vec()
        },
        |x, v| {
            let svd = svd(&x[0], Vectors::Thin).unwrap();
            let (u, vh) = parts(&svd);
            let (du, dvh) = parts(&svd_jvp(&svd, &v[0], &policy).unwrap());
            let half = du.matmul(&u.adjoint());
            let product = du.matmul(&vh).add(&u.matmul(&dvh));
            [half.add(&half.adjoint()), product].map(|x| x.into_tensor().unwrap()).to_vec()
        },
        |x, w| {
            let svd = svd(&x[0], Vectors::Thin).unwrap();
            let (u, vh) = parts(&svd);
            let (c, d) = (Batched::new(&w[0]), Batched::new(&w[1]));
            let u_cotangent = c.add(&c.adjoint()).matmul(&u).add(&d.matmul(&vh.adjoint()));
            let cotangent = SvdCotangent {
                u: Some(u_cotangent.into_tensor().unwrap()),
                s: None,
                vh: Some(u.adjoint().matmul(&d).into_tensor().unwrap()),
            };
            vec![svd_vjp(&svd, &cotangent, &policy).unwrap()]
        },
    );
}

/// `L = Re⟨C, U Vᴴ⟩` is a function of `A`, also at ties: its gradient is that of the unitary polar factor, computed
/// here from `P Ω + Ω P` in the eigenbasis of `P`.
fn degenerate_block<T: LinalgScalar>() {
    let values = [3.0, 2.0, 2.0, 1.0, 0.5];
    let a = with_singular_values::<T>(11, &[2], 5, 5, &values);
    let c = Batched::new(&random::<T>(12, &[2, 5, 5]));
    let svd = svd(&a, Vectors::Thin).unwrap();
    let (u, vh) = (Batched::new(&svd.u), Batched::new(&svd.vh));
    let cotangent = SvdCotangent {
        u: Some(c.matmul(&vh.adjoint()).into_tensor().unwrap()),
        s: None,
        vh: Some(u.adjoint().matmul(&c).into_tensor().unwrap()),
    };
    let exact = {
        let x = u.adjoint().matmul(&c).matmul(&vh.adjoint());
        let s = Batched::<T::R>::rows_of(&svd.s);
        let sums = crate::vocabulary::RealMatrices::recip(&s.add(&s.transpose()));
        u.matmul(&x.skew().scale(2.0).mul_real(&sums)).matmul(&vh).into_tensor().unwrap()
    };
    let got = svd_vjp(&svd, &cotangent, &Degeneracy::SEPARABLE).unwrap();
    assert_close(&got, &exact, 1e-12);
    // Broadening has an error of several percent, as documented.
    let broadened = Degeneracy { broadening: Some(1e-12), ..Degeneracy::default() };
    let classic = svd_vjp(&svd, &cotangent, &broadened).unwrap();
    assert!(norm(&axpy(&classic, -1.0, &exact)).is_finite());
}

for_doubles! {
    truncation_beside_ties_is_exact => truncated_at_ties;
    a_degenerate_block_is_exact => degenerate_block;
    losses_that_depend_on_the_basis_are_reported => gauge;
    rank_deficient_matrices_have_finite_gradients => rank_deficient;
    gradients_do_not_depend_on_phases => phases;
}

fn gauge<T: LinalgScalar>() {
    let at =
        |values: &[f64]| svd(&with_singular_values::<T>(21, &[2], 5, 4, values), Vectors::Thin);
    let cotangent =
        |svd: &Svd<T>| SvdCotangent { u: Some(random::<T>(22, svd.u.shape())), s: None, vh: None };
    let tied = at(&[2.0, 1.0, 1.0, 0.5]).unwrap();
    let error = svd_vjp(&tied, &cotangent(&tied), &Degeneracy::default()).unwrap_err();
    assert!(matches!(error, LinalgError::GaugeIllDefined { op: "svd_vjp", batch: 0, .. }));
    let silent = Degeneracy { check_gauge: false, ..Degeneracy::default() };
    let got = svd_vjp(&tied, &cotangent(&tied), &silent).unwrap();
    assert!(norm(&got).is_finite());
    // Without ties a loss of U alone depends on the phases of complex vectors only.
    let apart = at(&VALUES).unwrap();
    let result = svd_vjp(&apart, &cotangent(&apart), &Degeneracy::default());
    assert_eq!(result.is_err(), T::IS_COMPLEX);
}

fn rank_deficient<T: LinalgScalar>() {
    // Rank 2 of 4: the loss ‖U S Vᴴ‖² through all three factors has the gradient 2 A.
    let a = with_singular_values::<T>(31, &[], 5, 4, &[2.0, 1.0, 0.0, 0.0]);
    let svd = svd(&a, Vectors::Thin).unwrap();
    let (u, s, vh) = (Batched::new(&svd.u), Batched::rows_of(&svd.s), Batched::new(&svd.vh));
    let a_cotangent = Batched::new(&a).scale(2.0);
    let cotangent = SvdCotangent {
        u: Some(a_cotangent.matmul(&vh.adjoint()).mul_real(&s).into_tensor().unwrap()),
        s: Some(
            u.adjoint()
                .matmul(&a_cotangent)
                .matmul(&vh.adjoint())
                .diagonal()
                .re()
                .into_vectors()
                .unwrap(),
        ),
        vh: Some(u.mul_real(&s).adjoint().matmul(&a_cotangent).into_tensor().unwrap()),
    };
    let got = svd_vjp(&svd, &cotangent, &Degeneracy::default()).unwrap();
    assert_close(&got, &a_cotangent.into_tensor().unwrap(), 1e-12);
}

fn phases<T: LinalgScalar>() {
    let a = with_singular_values::<T>(41, &[], 4, 4, &VALUES);
    let svd = svd(&a, Vectors::Thin).unwrap();
    let (u, vh) = (Batched::new(&svd.u), Batched::new(&svd.vh));
    let c = Batched::new(&random::<T>(42, &[4, 4]));
    let gradient = |u: &Batched<T>, vh: &Batched<T>| {
        let w = row(u, &[1.0, 2.0, -1.0, 0.5]);
        let rotated = Svd {
            u: u.clone().into_tensor().unwrap(),
            s: svd.s.clone(),
            vh: vh.clone().into_tensor().unwrap(),
        };
        let cotangent = SvdCotangent {
            u: Some(c.matmul(&vh.adjoint()).mul(&w).into_tensor().unwrap()),
            s: None,
            vh: Some(u.mul(&w).adjoint().matmul(&c).into_tensor().unwrap()),
        };
        svd_vjp(&rotated, &cotangent, &Degeneracy::default()).unwrap()
    };
    let phase = unit_row::<T>(4);
    let rotated = gradient(&u.mul(&phase), &phase.conj().transpose().mul(&vh));
    assert_close(&rotated, &gradient(&u, &vh), 1e-12);
}

/// Zero singular values are computed as a few ε, not as large as the columns that faer's QR factorisation drops (220
/// ε for 48 × 24, 600 ε for 24 × 6).
fn zeros<T: LinalgScalar>() {
    for (m, n) in [(12, 6), (24, 6), (6, 40), (120, 6), (48, 24)] {
        let k = Ord::min(m, n);
        let values: Vec<f64> = (0..k).map(|i| if i < k / 2 { 2.0 } else { 0.0 }).collect();
        let a = with_singular_values::<T>(3, &[50], m, n, &values);
        for s in svdvals(&a).unwrap().to_vec().unwrap().chunks(k) {
            let zero = Real::to_f64(s[k / 2]) / epsilon::<T>();
            assert!(zero <= 16.0, "{m} × {n}: {zero:.0} ε");
        }
    }
}

/// Both ends of the range: squares that underflow, subnormal numbers, and values that overflow.
#[test]
fn values_at_the_ends_of_the_range() {
    let of = |x: [f32; 4]| Tensor::from_vec(x.to_vec(), &[2, 2]).unwrap();
    let s = svdvals(&of([3e-25, 1e-25, 1e-25, 2e-25])).unwrap().to_vec().unwrap();
    let root = 5f64.sqrt();
    assert!((s[0] as f64 / (0.5e-25 * (5.0 + root)) - 1.0).abs() < 1e-6, "{s:?}");
    assert!((s[1] as f64 / (0.5e-25 * (5.0 - root)) - 1.0).abs() < 1e-6, "{s:?}");
    let tiny = f32::from_bits(1);
    let s = svdvals(&of([4.0 * tiny, 0.0, 0.0, -3.0 * tiny])).unwrap().to_vec().unwrap();
    assert_eq!(s, [4.0 * tiny, 3.0 * tiny]);
    let s = svdvals(&of([1e38, 1e38, 1e38, -1e38])).unwrap().to_vec().unwrap();
    assert!(s.iter().all(|s| (s / 1e38 - 2f32.sqrt()).abs() < 1e-6), "{s:?}");
    // 3e38 · √2 · 2 exceeds the range of f32.
    let large = of([3e38, 3e38, 3e38, 3e38]);
    assert_eq!(
        svd(&large, Vectors::Thin).unwrap_err(),
        LinalgError::Overflow { op: "svd", batch: 0 }
    );
    let e = crate::eigh::eigvalsh(&large).unwrap_err();
    assert_eq!(e, LinalgError::Overflow { op: "eigvalsh", batch: 0 });
    let e = crate::eig::eigvals(&large).unwrap_err();
    assert_eq!(e, LinalgError::Overflow { op: "eigvals", batch: 0 });
    let e = crate::qr::qr(&large, crate::qr::Columns::Thin).unwrap_err();
    assert_eq!(e, LinalgError::Overflow { op: "qr", batch: 0 });
}

/// Matrix with singular values 5, 4, 3, 2, 2, 2, 2, 1 up to rounding, for which faer's iteration stagnates.
#[test]
fn ties_converge() {
    let bits = include!("tests/stalled.in");
    let a = Tensor::from_vec(bits.map(f64::from_bits).to_vec(), &[8, 8]).unwrap();
    let Svd { u, s, vh } = svd(&a, Vectors::Thin).unwrap();
    assert_close(&sandwich(&u, &s, &vh), &a, tight::<f64>(8));
    assert_close(&svdvals(&a).unwrap(), &s, tight::<f64>(8));
    for x in [&u, &vh] {
        assert_isometry(x);
    }
}

#[test]
fn one_bad_matrix_does_not_spoil_the_others() {
    let mut data = random::<f64>(1, &[3, 2, 2]).to_vec().unwrap();
    data[5] = f64::NAN;
    let a = Tensor::from_vec(data, &[3, 2, 2]).unwrap();
    let (out, info) = svd_ex(&a, Vectors::Thin).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, crate::error::NON_FINITE, 0]);
    let s = out.s.to_vec().unwrap();
    assert!(s[0].is_finite() && s[2].is_nan() && s[5].is_finite());
    let error = svd(&a, Vectors::Thin).unwrap_err();
    assert_eq!(error, LinalgError::NonFinite { op: "svd", batch: 1 });
    assert!(svdvals(&a).is_err());
}

#[test]
fn bad_input_is_an_error() {
    let v = random::<c32>(1, &[3]);
    assert!(matches!(svd(&v, Vectors::Thin), Err(LinalgError::NotMatrix { .. })));
    let a = random::<c64>(1, &[3, 3]);
    assert!(svd_truncated(&a, &Truncation::new().cutoff(-1.0)).is_err());
    assert!(svd_truncated(&a, &Truncation::new().cutoff(f64::NAN)).is_err());
    assert!(svd_truncated(&a, &Truncation::new().min_dim(3).max_dim(2)).is_err());
    let nothing = svd_truncated(&a, &Truncation::new().max_dim(0)).unwrap_err().to_string();
    assert!(nothing.contains("max_dim 0"), "{nothing}");
}

#[test]
fn empty_matrices_and_batches_are_fine() {
    for shape in [[0, 3, 3], [2, 0, 3], [2, 3, 0], [2, 0, 0]] {
        let a = Tensor::<f64>::zeros(&shape).unwrap();
        for vectors in [Vectors::Thin, Vectors::Full] {
            let out = svd(&a, vectors).unwrap();
            assert_eq!(out.s.shape(), [shape[0], shape[1].min(shape[2])]);
            assert_isometry(&out.u);
            let cotangent =
                SvdCotangent { u: Some(out.u.clone()), s: Some(out.s.clone()), vh: None };
            let a_cotangent = svd_vjp(&out, &cotangent, &Degeneracy::default()).unwrap();
            assert_eq!(a_cotangent.shape(), shape);
        }
    }
}

#[test]
fn strided_input_is_read_where_it_lies() {
    let a = random::<f64>(7, &[4, 6, 5]);
    let view = a.permute(&[1, 2, 0]).unwrap().flip(&[1]).unwrap().slice_axis(2, 3, 2, -2).unwrap();
    let copy = Tensor::from_vec(view.to_vec().unwrap(), view.shape()).unwrap();
    assert_close(&svdvals(&view).unwrap(), &svdvals(&copy).unwrap(), 1e-14);
    let expanded = random::<f64>(8, &[1, 3, 1]).expand(&[4, 3, 2]).unwrap();
    assert_eq!(svdvals(&expanded).unwrap().shape(), [4, 2]);
}

#[test]
fn weights_may_be_of_any_size() {
    let values = [1.0, 0.5, 1e-7, 0.0];
    for scale in [1e160, 1e-170, 1e300, 1e-300] {
        let s = values.map(|x| x * scale);
        let rank = |t: Truncation| t.rank(&s);
        assert_eq!(rank(Truncation::new().relative_discarded_weight(1e-10)), 2, "{scale:e}");
        assert_eq!(rank(Truncation::new().relative_discarded_weight(0.3)), 1, "{scale:e}");
        // Squares of 1e160 exceed any weight, those of 1e-170 none.
        let want = if scale > 1.0 { 3 } else { 0 };
        assert_eq!(rank(Truncation::new().discarded_weight(1e-30)), want, "{scale:e}");
        let a = Tensor::from_vec(vec![s[0], 0.0, 0.0, s[1]], &[2, 2]).unwrap();
        let error = svd_truncated(&a, &Truncation::new().max_dim(1)).unwrap().error;
        assert!((error.to_vec().unwrap()[0] / s[1] - 1.0).abs() < 1e-14, "{scale:e}");
    }
    assert_eq!(Truncation::new().relative_discarded_weight(0.5).rank(&[0.0, 0.0]), 2);
}

/// A copy of a matrix with repeated elements would exceed every memory.
#[test]
fn a_matrix_too_large_is_an_error() {
    let a = Tensor::full(&[], 1.0).unwrap().expand(&[1 << 12, 1 << 36]).unwrap();
    let error = svdvals(&a).unwrap_err().to_string();
    assert!(error.contains("out of memory"), "{error}");
}
