//! Hessian–vector products of symmetric functions of values, against those of the same functions
//! as polynomials of the matrix, and against known numbers.

use t4a_diff::Kept;
use t4a_diff::{Array, Dual, Eager, Operation, Reverse, Value};
use t4a_tensor::Tensor;

use super::*;
use crate::eigh::EigvalshOp;
use crate::operation::Over;
use crate::scalar::epsilon;
use crate::svd::SvdvalsOp;
use crate::table::MatrixOp;
use crate::testing::*;
use crate::vocabulary::{Batched, RealMatrix};

impl Spectrum {
    fn values(self) -> MatrixOp {
        match self {
            Spectrum::Singular => SvdvalsOp.into(),
            Spectrum::Hermitian => EigvalshOp.into(),
        }
    }
}

/// Symmetric functions whose gradient is known without a decomposition.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// `Σ s²`
    Square,
    /// `Σ s⁴`
    Quartic,
    /// `(Σ s²)²`
    SquareOfSum,
    /// `Σ e³`
    Cube,
    /// `Σ ln e`
    LogDet,
}

impl Loss {
    fn slopes<R: RealMatrices<Real = R>>(self, s: &R) -> R {
        match self {
            Loss::Square => s.scale(2.0),
            Loss::Quartic => s.mul(s).mul(s).scale(4.0),
            Loss::SquareOfSum => s.mul(&s.mul(s).transpose().sum_rows()).scale(4.0),
            Loss::Cube => s.mul(s).scale(3.0),
            Loss::LogDet => s.recip(),
        }
    }

    fn gradient<M: Matrices>(self, a: &M) -> M {
        match self {
            Loss::Square => a.scale(2.0),
            Loss::Quartic => a.matmul(&a.adjoint()).matmul(a).scale(4.0),
            Loss::SquareOfSum => a.mul_real(&sum_of_squares(a)).scale(4.0),
            Loss::Cube => a.matmul(a).scale(3.0),
            Loss::LogDet => a.solve(&a.identity(a.rows())),
        }
    }
}

/// Slopes with tangents.
type Slopes = RealMatrix<Duals>;

/// Forward over reverse: the gradient by the rule of the operation, on dual numbers.
fn forward_over_reverse<T: Scalar>(
    a: &Tensor<T>,
    v: &Tensor<T>,
    of: Spectrum,
    loss: impl Fn(&Slopes) -> Slopes,
) -> Result<Tensor<T>> {
    let inputs = duals(std::slice::from_ref(a), std::slice::from_ref(v));
    let recorded = Recorded::new(of.values(), T::IS_COMPLEX, inputs)?;
    let slopes = loss(&RealMatrix::new(recorded.out.results[0].clone())).into_array()?;
    let gradient = recorded.vjp(&[Some(slopes)], &[])?;
    from_eager(gradient.into_iter().map(Dual::into_tangent).collect())
}

/// A direction, and the slopes of a loss.
type LossTerm<'a, T> = (&'a Tensor<T>, &'a dyn Fn(&Slopes) -> Slopes);

fn add(sum: Option<Vec<Eager>>, terms: Vec<Eager>) -> Option<Vec<Eager>> {
    Some(match sum {
        Some(sum) => sum.iter().zip(&terms).map(|(x, y)| x.add(y)).collect(),
        None => terms,
    })
}

/// Reverse over reverse: emulates the messages between the nodes of a tape, for a sum of terms `⟨∇φ, X⟩` of the same
/// values.
fn reverse_over_reverse<T: Scalar>(
    a: &Tensor<T>,
    terms: &[LossTerm<'_, T>],
    of: Spectrum,
) -> Result<Tensor<T>> {
    let recorded = Recorded::new(of.values(), T::IS_COMPLEX, eager(a))?;
    let s = recorded.out.results[0].clone();
    let each = 1 + usize::from(T::IS_COMPLEX);
    let mut factors = Vec::new();
    let saved = &mut recorded.out.hidden[each + 1..].iter().cloned();
    let read = |kind, arrays: &mut dyn Iterator<Item = Eager>| {
        <T::Matrix<Eager> as Over<Eager>>::read(kind, &mut { arrays }).unwrap()
    };
    use crate::operation::PartKind::{Full, Real};
    let parts: Vec<Part<T::Matrix<Eager>>> = match of {
        Spectrum::Singular => [Full, Real, Full].map(|kind| read(kind, saved)).into(),
        Spectrum::Hermitian => [Real, Full].map(|kind| read(kind, saved)).into(),
    };
    let found = match of {
        Spectrum::Singular => Factors::singular(parts[0].full(), parts[1].real(), parts[2].full()),
        Spectrum::Hermitian => Factors::hermitian(parts[0].real(), parts[1].full()),
    };
    for part in found.detached() {
        <T::Matrix<Eager> as Over<Eager>>::write(part, &mut factors)?;
    }
    let (mut h, mut message) = (None, None);
    for (x, loss) in terms {
        let on = |s: Duals| loss(&RealMatrix::new(s)).into_array();
        let c = on(Dual::constant(s.clone()))?.value;
        let carrier = recorded.out.hidden[..each + 1].iter().cloned();
        let inputs: Vec<Value<Eager>> =
            carrier.chain([c]).chain(factors.clone()).map(Value::Float).collect();
        let op = SpectralOperation { op: Spectral::Gradient(of), complex: T::IS_COMPLEX };
        let wanted = vec![true; inputs.len()];
        let out = op.forward(&inputs, &wanted)?;
        let kept = Kept::new(op.keep(&wanted), &inputs, &out);
        let cotangents: Vec<_> = eager(*x).into_iter().map(Some).collect();
        let reverse =
            Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &wanted };
        let mut all = op.vjp(&reverse)?.into_iter().flatten();
        message = add(message, all.by_ref().take(each + 1).collect());
        // The tape of `φ′`: its Hessian is symmetric.
        let w = all.next().expect("the cotangent of the slopes");
        h = add(h, vec![on(Dual::new(s.clone(), w))?.into_tangent()]);
    }
    let cotangents: Vec<_> = h.unwrap().into_iter().map(Some).collect();
    let mut hidden: Vec<_> = message.unwrap().into_iter().map(Some).collect();
    hidden.resize(recorded.out.hidden.len(), None);
    from_eager(recorded.vjp(&cotangents, &hidden)?)
}

fn exact<T: Scalar>(a: &Tensor<T>, v: &Tensor<T>, loss: Loss) -> Tensor<T> {
    let inputs = duals(std::slice::from_ref(a), std::slice::from_ref(v));
    let part = T::Matrix::read(crate::operation::PartKind::Full, &mut inputs.into_iter()).unwrap();
    let mut out = Vec::new();
    T::Matrix::write(Part::Full(loss.gradient(part.full())), &mut out).unwrap();
    from_eager(out.into_iter().map(Dual::into_tangent).collect()).unwrap()
}

fn check<T: Scalar>(a: &Tensor<T>, v: &Tensor<T>, of: Spectrum, loss: Loss) {
    let slopes = |s: &Slopes| loss.slopes(s);
    let want = exact(a, v, loss);
    let limit = 500.0 * tight::<T>(10);
    assert_close(&forward_over_reverse(a, v, of, slopes).unwrap(), &want, limit);
    assert_close(&reverse_over_reverse(a, &[(v, &slopes)], of).unwrap(), &want, limit);
}

/// Arbitrary ties, including zero, for matrices of any shape; a batch with two different tie structures.
fn singular_values<T: Scalar>() {
    let spectra: [[f64; 4]; 8] = [
        [2.0, 1.5, 1.0, 0.5],
        [2.0, 2.0, 1.0, 0.5],
        [2.0, 1.0, 1.0, 1.0],
        [2.0, 2.0, 1.0, 1.0],
        [1.0, 1.0, 1.0, 1.0],
        [2.0, 1.0, 1.0, 0.0],
        [1.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ];
    for (m, n) in [(4, 4), (6, 4), (4, 5)] {
        for (seed, pair) in spectra.windows(2).enumerate() {
            let [a, b] = [0, 1].map(|i| {
                with_singular_values::<T>(seed as u64, &[1], m, n, &pair[i]).to_vec().unwrap()
            });
            let a = Tensor::from_vec([a, b].concat(), &[2, m, n]).unwrap();
            let v = random::<T>(50 + seed as u64, &[2, m, n]);
            for loss in [Loss::Square, Loss::Quartic, Loss::SquareOfSum] {
                check(&a, &v, Spectrum::Singular, loss);
            }
        }
    }
}

fn eigenvalues<T: Scalar>() {
    let spectra: [[f64; 4]; 5] = [
        [0.5, 1.0, 1.5, 2.0],
        [0.5, 1.0, 1.0, 2.0],
        [1.0, 1.0, 1.0, 2.0],
        [1.0, 1.0, 2.0, 2.0],
        [1.0, 1.0, 1.0, 1.0],
    ];
    for (seed, pair) in spectra.windows(2).enumerate() {
        let [a, b] =
            [0, 1].map(|i| with_eigenvalues::<T>(seed as u64, &[1], &pair[i]).to_vec().unwrap());
        let a = Tensor::from_vec([a, b].concat(), &[2, 4, 4]).unwrap();
        let v =
            Batched::new(&random::<T>(60 + seed as u64, &[2, 4, 4])).herm().into_tensor().unwrap();
        for loss in [Loss::Square, Loss::Cube, Loss::LogDet] {
            check(&a, &v, Spectrum::Hermitian, loss);
        }
    }
}

/// The unit matrix along `[[0, 1], [1, 0]]`.
fn numbers<T: Scalar>() {
    let matrix = |entries: [f64; 4]| {
        let entries = entries.map(<T as t4a_algebra::Numeric>::from_f64);
        Tensor::from_vec(entries.to_vec(), &[2, 2]).unwrap()
    };
    let (unit, v) = (matrix([1.0, 0.0, 0.0, 1.0]), matrix([0.0, 1.0, 1.0, 0.0]));
    let cases = [
        (Spectrum::Singular, Loss::Square, [0.0, 2.0, 2.0, 0.0]),
        (Spectrum::Hermitian, Loss::LogDet, [0.0, -1.0, -1.0, 0.0]),
    ];
    for (of, loss, want) in cases {
        let slopes = |s: &Slopes| loss.slopes(s);
        let got = forward_over_reverse(&unit, &v, of, slopes).unwrap();
        assert_close(&got, &matrix(want), tight::<T>(2));
        let got = reverse_over_reverse(&unit, &[(&v, &slopes)], of).unwrap();
        assert_close(&got, &matrix(want), tight::<T>(2));
    }
}

/// Tangents of tied values are those along `A + t dA` for `t > 0`, in their order.
fn one_sided<T: Scalar>() {
    let t = epsilon::<T>().sqrt();
    let along = |op: MatrixOp, a: &Tensor<T>, v: &Tensor<T>| {
        let out = op.forward(&[a], true).unwrap();
        let got =
            op.jvp(&[Batched::new(a)], &out, &[Some(Batched::new(v))]).unwrap()[0].real().clone();
        let moved = op.forward(&[&axpy(a, t, v)], false).unwrap().results[0].real().clone();
        let slope = moved.sub(out.results[0].real()).scale(1.0 / t);
        assert_close(&got.into_tensor().unwrap(), &slope.into_tensor().unwrap(), 100.0 * t);
    };
    for values in [[2.0, 2.0, 1.0, 1.0], [2.0, 1.0, 1.0, 1.0], [2.0, 1.0, 0.0, 0.0]] {
        for (m, n) in [(5, 4), (4, 5)] {
            let a = with_singular_values::<T>(3, &[2], m, n, &values);
            along(SvdvalsOp.into(), &a, &random::<T>(4, &[2, m, n]));
        }
        let a = with_eigenvalues::<T>(5, &[2], &values);
        let v = Batched::new(&random::<T>(6, &[2, 4, 4])).herm().into_tensor().unwrap();
        along(EigvalshOp.into(), &a, &v);
    }
}

/// The largest value, and weights by position, have different slopes at tied values; the nuclear norm has a kink at
/// zero. A matrix with a zero direction does not fail.
fn not_smooth<T: Scalar>() {
    fn place<R: RealMatrices<Real = R>>(s: &R) -> R {
        s.constant(1, 1, 1.0).append(&s.constant(1, s.cols() - 1, 2.0)).mul(s)
    }
    let refused = |result: Result<Tensor<T>>, op: &str| match result {
        Err(LinalgError::SecondOrderAtTie { op: at, batch: 1 }) => assert_eq!(at, op),
        other => panic!("{other:?}"),
    };
    let regular = with_eigenvalues::<T>(1, &[1], &[0.5, 1.0, 2.0]).to_vec().unwrap();
    let tied = with_eigenvalues::<T>(2, &[1], &[1.0, 1.0, 1.0]).to_vec().unwrap();
    let a = Tensor::from_vec([regular.clone(), tied].concat(), &[2, 3, 3]).unwrap();
    let v = Batched::new(&random::<T>(7, &[2, 3, 3])).herm().into_tensor().unwrap();
    for (of, op) in [(Spectrum::Singular, "svdvals"), (Spectrum::Hermitian, "eigvalsh")] {
        refused(forward_over_reverse(&a, &v, of, place), op);
        refused(reverse_over_reverse(&a, &[(&v, &place)], of), op);
        let still = [v.to_vec().unwrap()[..9].to_vec(), vec![T::ZERO; 9]].concat();
        let still = Tensor::from_vec(still, &[2, 3, 3]).unwrap();
        assert!(forward_over_reverse(&a, &still, of, place).is_ok());
        assert!(reverse_over_reverse(&a, &[(&still, &place)], of).is_ok());
    }
    let zero = Tensor::from_vec([regular, vec![T::ZERO; 9]].concat(), &[2, 3, 3]).unwrap();
    let nuclear = |s: &Slopes| s.constant(1, 3, 1.0);
    refused(forward_over_reverse(&zero, &v, Spectrum::Singular, nuclear), "svdvals");
    refused(reverse_over_reverse(&zero, &[(&v, &nuclear)], Spectrum::Singular), "svdvals");
}

/// Two losses of the same values: the same direction, one direction each, and directions that cannot be separated.
fn several<T: Scalar>() {
    let a = with_singular_values::<T>(8, &[], 4, 3, &[1.5, 1.5, 1.5]);
    let (v, w) = (random::<T>(9, &[4, 3]), random::<T>(10, &[4, 3]));
    let square = |s: &Slopes| Loss::Square.slopes(s);
    let quartic = |s: &Slopes| Loss::Quartic.slopes(s);
    let both = reverse_over_reverse(&a, &[(&v, &square), (&v, &quartic)], Spectrum::Singular);
    let want = axpy(&exact(&a, &v, Loss::Square), 1.0, &exact(&a, &v, Loss::Quartic));
    assert_close(&both.unwrap(), &want, 500.0 * tight::<T>(10));
    let mixed = reverse_over_reverse(&a, &[(&v, &square), (&w, &quartic)], Spectrum::Singular);
    assert!(matches!(mixed, Err(LinalgError::SecondOrderAtTie { batch: 0, .. })), "{mixed:?}");
}

for_all_dtypes! {
    second_derivatives_at_the_unit_matrix => numbers;
    second_derivatives_of_singular_values_at_ties => singular_values;
    second_derivatives_of_eigenvalues_at_ties => eigenvalues;
    tangents_of_tied_values => one_sided;
    losses_without_a_second_derivative_are_reported => not_smooth;
    messages_of_several_losses => several;
}

/// Entries of 2^±900: squares over- and underflow.
#[test]
fn at_the_ends_of_the_range() {
    for c in [2f64.powi(900), 2f64.powi(-900)] {
        let a = Tensor::from_vec(vec![c, 0.0, 0.0, c], &[2, 2]).unwrap();
        let v = Tensor::from_vec(vec![0.0, c, c, 0.0], &[2, 2]).unwrap();
        let slopes = |s: &Slopes| Loss::Square.slopes(s);
        let got = reverse_over_reverse(&a, &[(&v, &slopes)], Spectrum::Singular).unwrap();
        let want = [0.0, 2.0 * c, 2.0 * c, 0.0];
        for (got, want) in got.to_vec().unwrap().iter().zip(want) {
            assert!((got - want).abs() <= 1e-14 * c, "{got} {want}");
        }
    }
}
