//! Random matrices, identities, and the common check of derivative rules.

use t4a_algebra::{Field, Numeric, Real};
use t4a_tensor::Tensor;

use t4a_diff::{Array, Dual, Eager, Kept, Operation, Outcome, Reverse, Value};

use crate::error::Result;
use crate::operation::{Over, Part, PartKind};
use crate::qr::{Columns, qr};
use crate::scalar::{LinalgScalar, epsilon};
use crate::table::{Linalg, MatrixOp};
use crate::vocabulary::{Batched, ComplexMatrix, Matrices, RealMatrix};

/// Element type with its matrix type over arrays.
pub(crate) trait Scalar: LinalgScalar {
    type Matrix<A: Array>: Over<A, Real = RealMatrix<A>, Complex = ComplexMatrix<A>>;
}

impl Scalar for f32 {
    type Matrix<A: Array> = RealMatrix<A>;
}
impl Scalar for f64 {
    type Matrix<A: Array> = RealMatrix<A>;
}
impl Scalar for t4a_algebra::c32 {
    type Matrix<A: Array> = ComplexMatrix<A>;
}
impl Scalar for t4a_algebra::c64 {
    type Matrix<A: Array> = ComplexMatrix<A>;
}

pub(crate) type Duals = Dual<Eager>;

/// Engine arrays of a tensor.
pub(crate) fn eager<T: LinalgScalar>(x: &Tensor<T>) -> Vec<Eager> {
    let mut arrays = Vec::new();
    Batched::write(Part::Full(Batched::new(x)), &mut arrays).unwrap();
    arrays
}

/// Tensor of engine arrays.
pub(crate) fn from_eager<T: LinalgScalar>(arrays: Vec<Eager>) -> Result<Tensor<T>> {
    let part = <Batched<T> as Over<Eager>>::read(PartKind::Full, &mut arrays.into_iter())?;
    part.into_full().into_tensor()
}

/// Arrays of several tensors with tangents, as dual numbers.
pub(crate) fn duals<T: LinalgScalar>(x: &[Tensor<T>], dx: &[Tensor<T>]) -> Vec<Duals> {
    let pairs = x.iter().flat_map(eager).zip(dx.iter().flat_map(eager));
    pairs.map(|(x, dx)| Dual::new(x, dx)).collect()
}

/// Recorded operation: saved data and results.
pub(crate) struct Recorded<A: Array> {
    pub(crate) op: Linalg,
    pub(crate) kept: Kept<A>,
    pub(crate) out: Outcome<A>,
    pub(crate) operands: usize,
}

impl<A: Array> Recorded<A> {
    pub(crate) fn new(op: impl Into<MatrixOp>, complex: bool, inputs: Vec<A>) -> Result<Self> {
        let op = Linalg { op: op.into(), complex };
        let operands = inputs.len();
        let inputs: Vec<Value<A>> = inputs.into_iter().map(Value::Float).collect();
        let tracked = vec![true; operands];
        let out = A::apply(&op, &inputs, &tracked)?;
        let kept = Kept::new(op.keep(&tracked), &inputs, &out);
        Ok(Self { op, kept, out, operands })
    }

    pub(crate) fn parts<M: Over<A>>(&self) -> Vec<Part<M>> {
        let mut arrays = self.out.results.iter().cloned();
        let kinds = self.op.op.results().iter();
        kinds.map(|&kind| M::read(kind, &mut arrays).unwrap()).collect()
    }

    /// Cotangents of the operands, by the generic rule.
    pub(crate) fn vjp(&self, cotangents: &[Option<A>], hidden: &[Option<A>]) -> Result<Vec<A>> {
        let wanted = vec![true; self.operands];
        let all =
            self.op.vjp(&Reverse { kept: &self.kept, cotangents, hidden, wanted: &wanted })?;
        Ok(all.into_iter().map(|x| x.expect("each operand has one")).collect())
    }
}

/// Arrays of cotangents.
pub(crate) fn flat<A: Array, M: Over<A>>(
    op: MatrixOp,
    parts: Vec<Option<Part<M>>>,
) -> Vec<Option<A>> {
    let mut all = Vec::new();
    for (part, kind) in parts.into_iter().zip(op.results()) {
        let mut own = Vec::new();
        match part {
            Some(part) => M::write(part, &mut own).unwrap(),
            None => {
                all.extend(vec![None; kind.arrays(M::IS_COMPLEX)]);
            }
        }
        all.extend(own.into_iter().map(Some));
    }
    all
}

/// Runs a generic test function for all four element types.
macro_rules! for_all_dtypes {
    ($($name:ident => $function:ident;)*) => {$(
        #[test]
        fn $name() {
            $function::<f64>();
            $function::<t4a_algebra::c64>();
            $function::<f32>();
            $function::<t4a_algebra::c32>();
        }
    )*};
}
pub(crate) use for_all_dtypes;

/// Runs a generic test function in double precision.
macro_rules! for_doubles {
    ($($name:ident => $function:ident;)*) => {$(
        #[test]
        fn $name() {
            $function::<f64>();
            $function::<t4a_algebra::c64>();
        }
    )*};
}
pub(crate) use for_doubles;

/// Deterministic pseudo-random numbers in (−1, 1).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
    }

    pub(crate) fn next(&mut self) -> f64 {
        // xorshift64*: G. Marsaglia 2003, S. Vigna 2016.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        bits as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn scalar<T: LinalgScalar>(&mut self) -> T {
        let (re, im) = (self.next(), self.next());
        T::from_parts(<T::R as Numeric>::from_f64(re), <T::R as Numeric>::from_f64(im))
    }
}

/// A tensor of random numbers with parts in (−1, 1).
pub(crate) fn random<T: LinalgScalar>(seed: u64, shape: &[usize]) -> Tensor<T> {
    let mut numbers = Numbers::new(seed);
    Tensor::from_fn(shape, |_| numbers.scalar()).unwrap()
}

/// A random isometry `[…, m, k]`, `m ≥ k`.
pub(crate) fn isometry<T: LinalgScalar>(
    seed: u64,
    batch: &[usize],
    m: usize,
    k: usize,
) -> Tensor<T> {
    let shape: Vec<usize> = batch.iter().copied().chain([m, k]).collect();
    qr(&random::<T>(seed, &shape), Columns::Thin).unwrap().q
}

/// A row with these entries for each matrix of the batch.
pub(crate) fn row<T: LinalgScalar>(like: &Batched<T>, values: &[f64]) -> Batched<T> {
    let ones = like.constant(1, values.len(), 1.0).into_tensor().unwrap();
    let values = values.iter().map(|&v| <T as Numeric>::from_f64(v)).collect();
    let values = Tensor::from_vec(values, &[1, values_len(&ones)]).unwrap();
    Batched::new(&ones).mul(&Batched::new(&values))
}

/// A row of numbers of modulus 1: signs, or phases.
pub(crate) fn unit_row<T: LinalgScalar>(n: usize) -> Batched<T> {
    let unit = (0..n).map(|i| {
        let (im, re) = (0.7 * i as f64).sin_cos();
        let (re, im) = if T::IS_COMPLEX { (re, im) } else { (re.signum(), 0.0) };
        T::from_parts(<T::R as Numeric>::from_f64(re), <T::R as Numeric>::from_f64(im))
    });
    Batched::new(&Tensor::from_vec(unit.collect(), &[1, n]).unwrap())
}

fn values_len<T: LinalgScalar>(t: &Tensor<T>) -> usize {
    t.shape()[t.rank() - 1]
}

/// `m × n` matrices with the given singular values.
pub(crate) fn with_singular_values<T: LinalgScalar>(
    seed: u64,
    batch: &[usize],
    m: usize,
    n: usize,
    values: &[f64],
) -> Tensor<T> {
    let k = values.len();
    let u = Batched::new(&isometry::<T>(seed, batch, m, k));
    let v = Batched::new(&isometry::<T>(seed + 1, batch, n, k));
    u.mul(&row(&u, values)).matmul(&v.adjoint()).into_tensor().unwrap()
}

/// Hermitian matrices with the given eigenvalues.
pub(crate) fn with_eigenvalues<T: LinalgScalar>(
    seed: u64,
    batch: &[usize],
    values: &[f64],
) -> Tensor<T> {
    let v = Batched::new(&isometry::<T>(seed, batch, values.len(), values.len()));
    v.mul(&row(&v, values)).matmul(&v.adjoint()).herm().into_tensor().unwrap()
}

/// `‖x‖_F`.
pub(crate) fn norm<T: LinalgScalar>(x: &Tensor<T>) -> f64 {
    x.to_vec().unwrap().iter().map(|v| v.abs_sq().to_f64()).sum::<f64>().sqrt()
}

/// `a + c b`.
pub(crate) fn axpy<T: LinalgScalar>(a: &Tensor<T>, c: f64, b: &Tensor<T>) -> Tensor<T> {
    assert_eq!(a.shape(), b.shape());
    let c = <T as Numeric>::from_f64(c);
    let (a_data, b_data) = (a.to_vec().unwrap(), b.to_vec().unwrap());
    let sum = a_data.iter().zip(&b_data).map(|(&x, &y)| Numeric::add(x, Numeric::mul(c, y)));
    Tensor::from_vec(sum.collect(), a.shape()).unwrap()
}

/// `Re⟨a, b⟩`.
pub(crate) fn inner<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    let (a, b) = (a.to_vec().unwrap(), b.to_vec().unwrap());
    let product = |(&x, &y): (&T, &T)| Field::re(Numeric::mul(Field::conj(x), y)).to_f64();
    a.iter().zip(&b).map(product).sum()
}

/// Asserts that the minimum of relative and absolute difference is below a limit.
#[track_caller]
pub(crate) fn assert_close<T: LinalgScalar>(got: &Tensor<T>, want: &Tensor<T>, limit: f64) {
    let difference = norm(&axpy(got, -1.0, want));
    let scale = norm(want).max(1.0);
    assert!(
        difference <= limit * scale,
        "differ by {difference:e}, allowed {:e}\n{got:?}\n{want:?}",
        limit * scale
    );
}

/// `50 · n · eps`, the bound for identities.
pub(crate) fn tight<T: LinalgScalar>(n: usize) -> f64 {
    50.0 * n.max(1) as f64 * epsilon::<T>()
}

/// Asserts that `‖Qᴴ Q − I‖` is small.
#[track_caller]
pub(crate) fn assert_isometry<T: LinalgScalar>(q: &Tensor<T>) {
    let q = Batched::new(q);
    let product = q.adjoint().matmul(&q).into_tensor().unwrap();
    let unit = q.identity(q.cols()).into_tensor().unwrap();
    assert_close(&product, &unit, tight::<T>(q.rows()));
}

/// `A B` for tensors.
pub(crate) fn mm<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Tensor<T> {
    Batched::new(a).matmul(&Batched::new(b)).into_tensor().unwrap()
}

/// `A diag(s) B`.
pub(crate) fn sandwich<T: LinalgScalar>(
    a: &Tensor<T>,
    s: &Tensor<T::R>,
    b: &Tensor<T>,
) -> Tensor<T> {
    let scaled = Batched::new(a).mul_real(&Batched::rows_of(s));
    scaled.matmul(&Batched::new(b)).into_tensor().unwrap()
}

/// Checks the derivative rules of `f` at `inputs`: the JVP against central differences of fourth
/// order (double precision only), and `Re⟨w, J v⟩ = Re⟨Jᵀ w, v⟩` for random `v`, `w`.
///
/// `f` must be a function of its inputs without gauge freedom.
#[track_caller]
pub(crate) fn check_rules<T: LinalgScalar>(
    inputs: &[Tensor<T>],
    f: impl Fn(&[Tensor<T>]) -> Vec<Tensor<T>>,
    jvp: impl Fn(&[Tensor<T>], &[Tensor<T>]) -> Vec<Tensor<T>>,
    vjp: impl Fn(&[Tensor<T>], &[Tensor<T>]) -> Vec<Tensor<T>>,
) {
    let double = epsilon::<T>() < 1e-10;
    let tangents: Vec<_> =
        inputs.iter().enumerate().map(|(i, x)| random::<T>(900 + i as u64, x.shape())).collect();
    let moved = jvp(inputs, &tangents);
    if double {
        let at = |h: f64| {
            let shifted: Vec<_> =
                inputs.iter().zip(&tangents).map(|(x, v)| axpy(x, h, v)).collect();
            f(&shifted)
        };
        let h = 1e-4;
        let (p1, m1, p2, m2) = (at(h), at(-h), at(2.0 * h), at(-2.0 * h));
        for i in 0..moved.len() {
            let near = axpy(&p1[i], -1.0, &m1[i]);
            let far = axpy(&p2[i], -1.0, &m2[i]);
            let zero = Tensor::zeros(near.shape()).unwrap();
            let slope = axpy(&axpy(&zero, 8.0 / (12.0 * h), &near), -1.0 / (12.0 * h), &far);
            let error = norm(&axpy(&moved[i], -1.0, &slope));
            let scale = norm(&slope).max(1e-3);
            assert!(error <= 1e-6 * scale, "output {i}: jvp off by {:e}", error / scale);
        }
    }
    let cotangents: Vec<_> =
        moved.iter().enumerate().map(|(i, y)| random::<T>(800 + i as u64, y.shape())).collect();
    let pulled = vjp(inputs, &cotangents);
    let forward: f64 = cotangents.iter().zip(&moved).map(|(w, jv)| inner(w, jv)).sum();
    let reverse: f64 = pulled.iter().zip(&tangents).map(|(jw, v)| inner(jw, v)).sum();
    let size: f64 = cotangents.iter().zip(&moved).map(|(w, jv)| norm(w) * norm(jv)).sum();
    let limit = if double { 1e-11 } else { 1e-4 };
    assert!(
        (forward - reverse).abs() <= limit * size,
        "⟨w, Jv⟩ = {forward:e} but ⟨Jᵀw, v⟩ = {reverse:e}, size {size:e}"
    );
}

/// Cotangents of the operands by [`pullback`](crate::table::pullback).
pub(crate) fn gradient<T: LinalgScalar>(
    op: impl Into<MatrixOp>,
    operands: &[&Tensor<T>],
    cotangents: &[Option<Part<Batched<T>>>],
) -> Result<Vec<Tensor<T>>> {
    let op = op.into();
    let out = op.forward(operands, true)?;
    let operands: Vec<Batched<T>> = operands.iter().map(|x| Batched::new(x)).collect();
    let all = op.pullback(&operands, &out, cotangents, &[])?;
    all.into_iter().map(Batched::into_tensor).collect()
}

/// Tangents of the results by [`pushforward`](crate::table::pushforward).
pub(crate) fn tangents<T: LinalgScalar>(
    op: impl Into<MatrixOp>,
    operands: &[&Tensor<T>],
    along: &[&Tensor<T>],
) -> Result<Vec<Part<Batched<T>>>> {
    let op = op.into();
    let out = op.forward(operands, true)?;
    let operands: Vec<Batched<T>> = operands.iter().map(|x| Batched::new(x)).collect();
    let along: Vec<_> = along.iter().map(|x| Some(Batched::new(x))).collect();
    let mut parts = op.pushforward(&operands, &out, &along, false)?.0;
    parts.truncate(op.results().len());
    Ok(parts)
}

/// Parts as tensors of the operands' type.
pub(crate) fn tensors_of<T: LinalgScalar>(parts: Vec<Part<Batched<T>>>) -> Vec<Tensor<T>> {
    let one = |part: Part<Batched<T>>| match part {
        Part::Full(x) => x,
        Part::Real(x) => Batched::from_re(&x),
        Part::Complex(x) => Batched::from_complex(&x),
    };
    parts.into_iter().map(|part| one(part).into_tensor().unwrap()).collect()
}

/// [`check_rules`] for an operation whose results have no gauge.
#[track_caller]
pub(crate) fn check_operation<T: LinalgScalar>(op: impl Into<MatrixOp>, inputs: &[Tensor<T>]) {
    let op = op.into();
    fn all<T>(x: &[Tensor<T>]) -> Vec<&Tensor<T>> {
        x.iter().collect()
    }
    check_rules(
        inputs,
        |x| tensors_of(op.forward(&all(x), false).unwrap().results),
        |x, v| tensors_of(tangents(op, &all(x), &all(v)).unwrap()),
        |x, w| {
            let kinds = op.results().iter().zip(w);
            let given = kinds.map(|(kind, w)| match (kind, Batched::new(w)) {
                (PartKind::Real, w) => Some(Part::Real(w.re())),
                (PartKind::Complex, w) => Some(Part::Complex(w.to_complex())),
                (PartKind::Full, w) => Some(Part::Full(w)),
            });
            gradient(op, &all(x), &given.collect::<Vec<_>>()).unwrap()
        },
    );
}
