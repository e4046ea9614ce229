//! Random matrices with tied, nearly tied and zero values at many sizes: first and second derivatives through factors
//! are those of the function of the matrix, or errors.
//!
//! `every_case` runs 10⁴ of each kind:
//! `cargo test --release -p t4a-linalg -- --ignored every_case`. The test that always runs takes 100.

use t4a_algebra::Numeric;
use t4a_diff::Dual;
use t4a_tensor::Tensor;

use super::{Degeneracy, rounding};
use crate::eigh::{EighOp, eigh};
use crate::error::{LinalgError, Result};
use crate::operation::{Over, Part, PartKind};
use crate::scalar::{LinalgScalar, epsilon};
use crate::svd::{SvdOp, Vectors, svd};
use crate::table::MatrixOp;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

type M<T> = Batched<T>;

/// Odd functions, and one that is not, of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Identity,
    Cube,
    Exp,
}

impl Function {
    fn of<R: RealMatrices<Real = R>>(self, x: &R) -> R {
        match self {
            Function::Identity => x.clone(),
            Function::Cube => x.mul(x).mul(x),
            Function::Exp => x.exp(),
        }
    }

    fn slope<R: RealMatrices<Real = R>>(self, x: &R) -> R {
        match self {
            Function::Identity => x.scale(0.0).add(&x.constant(1, 1, 1.0)),
            Function::Cube => x.mul(x).scale(3.0),
            Function::Exp => x.exp(),
        }
    }

    /// `(f(x) − f(y))/(x − y)` without cancellation.
    fn quotient(self, x: f64, y: f64) -> f64 {
        match self {
            Function::Identity => 1.0,
            Function::Cube => x * x + x * y + y * y,
            Function::Exp if x == y => x.exp(),
            Function::Exp => y.exp() * (x - y).exp_m1() / (x - y),
        }
    }
}

/// The cotangents of the leading `p` triplets for `Re⟨C, Uₚ f(Sₚ) Vₚᴴ⟩`.
fn svd_cotangents<M: Matrices>(
    [u, vh, c]: [&M; 3],
    s: &M::Real,
    f: Function,
    p: usize,
) -> [Part<M>; 3] {
    let (u, vh) = (u.slice(0..u.rows(), 0..p), vh.slice(0..p, 0..vh.cols()));
    let s = s.slice(0..1, 0..p);
    let cv = c.matmul(&vh.adjoint());
    let values = f.slope(&s).mul(&u.adjoint().matmul(&cv).diagonal().re());
    [
        Part::Full(cv.mul_real(&f.of(&s))),
        Part::Real(values),
        Part::Full(u.mul_real(&f.of(&s)).adjoint().matmul(c)),
    ]
}

/// The cotangents of the eigendecomposition for `Re⟨C, V f(E) Vᴴ⟩` with a Hermitian `C`.
fn eigh_cotangents<M: Matrices>([v, c]: [&M; 2], e: &M::Real, f: Function) -> [Part<M>; 2] {
    let cv = c.matmul(v);
    let values = f.slope(e).mul(&v.adjoint().matmul(&cv).diagonal().re());
    [Part::Real(values), Part::Full(cv.mul_real(&f.of(e)).scale(2.0))]
}

/// The gradient of `Re⟨C, Uₚ f(Sₚ) Vₚᴴ⟩`, of the leading `p` triplets.
pub(super) fn through_svd<T: LinalgScalar>(
    a: &Tensor<T>,
    c: &Tensor<T>,
    f: Function,
    p: usize,
    degeneracy: Degeneracy,
) -> Result<Tensor<T>> {
    let (out, c) = (svd(a, Vectors::Thin)?, M::new(c));
    let given = svd_cotangents([&M::new(&out.u), &M::new(&out.vh), &c], &M::rows_of(&out.s), f, p);
    let op = SvdOp { vectors: Vectors::Thin, degeneracy };
    Ok(gradient(op, &[a], &given.map(Some))?.swap_remove(0))
}

/// The gradient of `Re⟨C, V f(E) Vᴴ⟩`.
pub(super) fn through_eigh<T: LinalgScalar>(
    a: &Tensor<T>,
    c: &Tensor<T>,
    f: Function,
    degeneracy: Degeneracy,
) -> Result<Tensor<T>> {
    let (out, c) = (eigh(a)?, M::new(c).herm());
    let given = eigh_cotangents([&M::new(&out.vectors), &c], &M::rows_of(&out.values), f);
    Ok(gradient(EighOp { degeneracy }, &[a], &given.map(Some))?.swap_remove(0))
}

/// The tangent of `U f(S) Vᴴ` along `X`.
fn along_svd<T: LinalgScalar>(a: &Tensor<T>, x: &Tensor<T>, f: Function) -> Result<Tensor<T>> {
    let op = SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT };
    let out = svd(a, Vectors::Thin)?;
    let (u, s, vh) = (M::new(&out.u), M::rows_of(&out.s), M::new(&out.vh));
    let moved = tangents(op, &[a], &[x])?;
    let (du, ds, dvh) = (moved[0].full(), moved[1].real(), moved[2].full());
    let sum = du.mul_real(&f.of(&s)).matmul(&vh);
    let sum = sum.add(&u.mul_real(&f.slope(&s).mul(ds)).matmul(&vh));
    sum.add(&u.mul_real(&f.of(&s)).matmul(dvh)).into_tensor()
}

/// The tangent of `V f(E) Vᴴ` along `X`.
fn along_eigh<T: LinalgScalar>(a: &Tensor<T>, x: &Tensor<T>, f: Function) -> Result<Tensor<T>> {
    let op = EighOp { degeneracy: Degeneracy::DEFAULT };
    let out = eigh(a)?;
    let (e, v) = (M::rows_of(&out.values), M::new(&out.vectors));
    let moved = tangents(op, &[a], &[x])?;
    let (de, dv) = (moved[0].real(), moved[1].full());
    let half = dv.mul_real(&f.of(&e)).matmul(&v.adjoint());
    let sum = half.add(&half.adjoint());
    sum.add(&v.mul_real(&f.slope(&e).mul(de)).matmul(&v.adjoint())).into_tensor()
}

/// The gradient of `Re⟨C, U f(S) Vᴴ⟩` or `Re⟨C, V f(E) Vᴴ⟩`, differentiated along `X`.
fn gradient_along<T: Scalar>(
    [a, c, x]: [&Tensor<T>; 3],
    f: Function,
    hermitian: bool,
) -> Result<Tensor<T>> {
    let degeneracy = Degeneracy::DEFAULT;
    let op: MatrixOp = match hermitian {
        true => EighOp { degeneracy }.into(),
        false => SvdOp { vectors: Vectors::Thin, degeneracy }.into(),
    };
    let inputs = duals(std::slice::from_ref(a), std::slice::from_ref(x));
    let recorded = Recorded::new(op, T::IS_COMPLEX, inputs)?;
    let parts = recorded.parts::<T::Matrix<Duals>>();
    let mut still = eager(c).into_iter().map(Dual::constant);
    let c = <T::Matrix<Duals> as Over<Duals>>::read(PartKind::Full, &mut still)?.into_full();
    let given: Vec<Part<T::Matrix<Duals>>> = match &parts[..] {
        [e, v] => eigh_cotangents([v.full(), &c.herm()], e.real(), f).into(),
        [u, s, vh] => {
            svd_cotangents([u.full(), vh.full(), &c], s.real(), f, s.real().cols()).into()
        }
        _ => unreachable!("factors are two or three"),
    };
    let given = flat(op, given.into_iter().map(Some).collect());
    let gradient = recorded.vjp(&given, &[])?;
    from_eager(gradient.into_iter().map(Dual::into_tangent).collect())
}

/// The gradient of `Re⟨C, f(A)⟩` differentiated along `X`, for `f(A) = A` and `A Aᴴ A`.
fn second_exact<T: LinalgScalar>([a, c, x]: [&M<T>; 3], f: Function) -> Option<M<T>> {
    let product = |x: &M<T>, y: &M<T>, z: &M<T>| x.matmul(&y.adjoint()).matmul(z);
    match f {
        Function::Identity => Some(c.scale(0.0)),
        Function::Cube => {
            let terms = [product(c, x, a), product(c, a, x), product(x, c, a)];
            let terms =
                terms.into_iter().chain([product(a, c, x), product(x, a, c), product(a, x, c)]);
            terms.reduce(|sum, term| sum.add(&term))
        }
        Function::Exp => None,
    }
}

/// `A = P diag(x) Qᴴ` in known frames.
struct Case<T: LinalgScalar> {
    a: M<T>,
    p: M<T>,
    q: M<T>,
    x: Vec<f64>,
    /// The smallest relative gap, to zero as well for singular values.
    least: f64,
    /// The smallest one that is not 0.
    gap: f64,
    largest: f64,
    scale: f64,
}

impl<T: LinalgScalar> Case<T> {
    fn new(seed: u64, hermitian: bool) -> Self {
        let mut numbers = Numbers::new(seed);
        let mut pick = |n: usize| ((numbers.next() + 1.0) / 2.0 * n as f64) as usize % n;
        let n = 2 + pick(4);
        let digits = if epsilon::<T>() < 1e-10 { 15 } else { 7 };
        // Steps from value to value: a gap, a small gap, or a tie.
        // Phases of complex vectors at zero are arbitrary: see the parent module.
        let zero = !hermitian && !T::IS_COMPLEX && pick(5) == 0;
        let mut x = vec![if zero { 0.0 } else { 0.5 }];
        let ties = pick(3) > 0;
        for i in 1..n {
            let step = match pick(if ties { 3 } else { 1 }) {
                0 => 0.3 + 0.1 * pick(9) as f64,
                1 => 10f64.powi(-(1 + pick(digits) as i32)),
                _ => 0.0,
            };
            x.push(x[i - 1] + step);
        }
        if !hermitian {
            x.reverse();
        } else if pick(2) == 0 {
            let shift = x[pick(n)];
            x.iter_mut().for_each(|x| *x -= shift);
        }
        let range = if epsilon::<T>() < 1e-10 { 80 } else { 12 };
        let exact = pick(4) == 0;
        let scale = 2f64.powi(if pick(2) == 0 { 0 } else { pick(2 * range) as i32 - range as i32 });
        let unit = M::new(&random::<T>(seed, &[n, n])).identity(n);
        let frame = |i: u64| match exact {
            true => unit.clone(),
            false => M::new(&isometry::<T>(seed + i, &[], n, n)),
        };
        let p = frame(1);
        let q = if hermitian { p.clone() } else { frame(2) };
        x.iter_mut().for_each(|x| *x *= scale);
        let largest = x.iter().fold(f64::MIN_POSITIVE, |a, x| a.max(x.abs()));
        let gaps = x.windows(2).map(|x| (x[1] - x[0]).abs() / largest);
        let gaps: Vec<f64> = gaps.chain((!hermitian).then(|| x[n - 1] / largest)).collect();
        let least = gaps.iter().copied().fold(1.0, f64::min);
        let gap = gaps.into_iter().filter(|&gap| gap > 0.0).fold(1.0, f64::min);
        let a = p.mul(&row(&p, &x)).matmul(&q.adjoint());
        let a = if hermitian { a.herm() } else { a };
        Self { a, p, q, x, least, gap, largest, scale }
    }

    /// `P [herm(PᴴCQ) ∘ Γ + skew(PᴴCQ) ∘ Σ] Qᴴ`: the derivative, which is its own transpose.
    fn exact(&self, c: &M<T>, f: Function, hermitian: bool) -> M<T> {
        let n = self.x.len();
        let table = |entry: &dyn Fn(f64, f64) -> f64| {
            let at = |i: usize| <T as Numeric>::from_f64(entry(self.x[i / n], self.x[i % n]));
            M::new(&Tensor::from_fn(&[n, n], at).unwrap())
        };
        let y = self.p.adjoint().matmul(c).matmul(&self.q);
        let even = y.herm().mul(&table(&|x, y| f.quotient(x, y)));
        let inner = match hermitian {
            true => even,
            // Of odd functions.
            false => even.add(&y.skew().mul(&table(&|x, y| f.quotient(x, -y)))),
        };
        self.p.matmul(&inner).matmul(&self.q.adjoint())
    }

    /// Cotangents and directions: any, without a diagonal in the frames, or one that keeps ties.
    fn direction(&self, seed: u64, f: Function) -> Tensor<T> {
        let n = self.x.len();
        let c = M::new(&random::<T>(seed + 5, &[n, n]));
        let values = self.x.iter().map(|&x| x / self.scale).collect::<Vec<_>>();
        // At zero a cotangent without a diagonal cannot be seen.
        let zeros = self.x.contains(&0.0) && f != Function::Exp;
        let c = if zeros { c.add(&self.p.matmul(&self.q.adjoint()).scale(2.0)) } else { c };
        let c = match seed % 4 {
            0 if !zeros => {
                let ones = c.constant(n, n, 1.0).sub(&c.identity(n));
                self.p.matmul(&c.mul(&ones)).matmul(&self.q.adjoint())
            }
            1 => self.p.mul(&row(&self.p, &values)).matmul(&self.q.adjoint()),
            _ => c,
        };
        c.into_tensor().unwrap()
    }
}

#[derive(Default, Debug)]
struct Counts {
    right: usize,
    refused: usize,
}

/// Second derivatives, off by `ε/g²` at a relative gap `g` down to `√ε`.
fn run_second<T: Scalar>(case: &Case<T>, seed: u64, hermitian: bool, counts: &mut Counts) {
    let n = case.x.len();
    let a = case.a.clone().into_tensor().unwrap();
    for f in [Function::Identity, Function::Cube] {
        let c = case.direction(seed, f);
        let x = random::<T>(seed + 6, &[n, n]);
        let [c, x] = [c, x].map(|x| match hermitian {
            true => M::new(&x).herm().into_tensor().unwrap(),
            false => x,
        });
        let what = || format!("second of {f:?}, seed {seed}, hermitian {hermitian}, {:?}", case.x);
        match gradient_along([&a, &c, &x], f, hermitian) {
            Ok(got) => {
                let exact = second_exact([&case.a, &M::new(&c), &M::new(&x)], f).unwrap();
                let degree = if f == Function::Cube { 1 } else { -1 };
                let size = norm(&c) * norm(&x) * case.largest.powi(degree);
                let off = norm(&axpy(&got, -1.0, &exact.into_tensor().unwrap())) / size;
                let gap = case.gap.max(epsilon::<T>().sqrt());
                let allowed = 200.0 * n as f64 * epsilon::<T>() / (gap * gap);
                assert!(off <= allowed, "{}: off by {off:e} of {allowed:e}", what());
                counts.right += 1;
            }
            Err(
                LinalgError::SplitTie { .. }
                | LinalgError::GaugeIllDefined { .. }
                | LinalgError::SecondOrderAtTie { .. },
            ) => {
                assert!(case.least <= 4.0 * epsilon::<T>().sqrt(), "{}: refused", what());
                counts.refused += 1;
            }
            Err(error) => panic!("{}: {error}", what()),
        }
    }
}

fn run<T: LinalgScalar>(seed: u64, hermitian: bool, counts: &mut Counts) {
    let case = Case::<T>::new(seed, hermitian);
    let functions = match (hermitian, case.scale == 1.0) {
        (true, true) => &[Function::Identity, Function::Cube, Function::Exp][..],
        _ => &[Function::Identity, Function::Cube],
    };
    let n = case.x.len();
    let a = case.a.clone().into_tensor().unwrap();
    for &f in functions {
        let c = case.direction(seed, f);
        let both = match hermitian {
            true => [through_eigh(&a, &c, f, Degeneracy::DEFAULT), along_eigh(&a, &c, f)],
            false => [through_svd(&a, &c, f, n, Degeneracy::DEFAULT), along_svd(&a, &c, f)],
        };
        let exact = case.exact(&M::new(&c), f, hermitian).into_tensor().unwrap();
        for (mode, result) in both.into_iter().enumerate() {
            let what =
                || format!("{f:?}, seed {seed}, hermitian {hermitian}, mode {mode}, {:?}", case.x);
            let size = norm(&exact);
            match result {
                Ok(got) => {
                    let off = norm(&axpy(&got, -1.0, &exact)) / size.max(f64::MIN_POSITIVE);
                    // Ties that are accepted have no error, gaps beyond have ε/g.
                    let tie = rounding(n) * epsilon::<T>();
                    // Cotangents of vectors are of the size of f.
                    let unit = if f == Function::Exp { case.largest.min(1.0) } else { 1.0 };
                    let gap = if case.gap < tie / 100.0 { 1.0 } else { case.gap.max(tie) };
                    let allowed = (100.0 * n as f64 * epsilon::<T>() / (unit * gap))
                        .max(2e4 * epsilon::<T>());
                    assert!(off <= allowed, "{}: off by {off:e} of {allowed:e}", what());
                    counts.right += 1;
                }
                Err(LinalgError::SplitTie { .. } | LinalgError::GaugeIllDefined { .. }) => {
                    let limit = 4.0 * rounding(n) * epsilon::<T>();
                    assert!(case.least <= limit, "{}: refused", what());
                    counts.refused += 1;
                }
                Err(error) => panic!("{}: {error}", what()),
            }
        }
    }
}

fn sweep<T: Scalar>(count: u64) {
    for hermitian in [false, true] {
        let [mut counts, mut second] = [Counts::default(), Counts::default()];
        for seed in 0..count {
            run::<T>(seed, hermitian, &mut counts);
            let case = Case::<T>::new(seed, hermitian);
            run_second(&case, seed, hermitian, &mut second);
        }
        println!("{}, hermitian {hermitian}: {counts:?}, {second:?}", std::any::type_name::<T>());
        for (counts, part) in [(counts, 4), (second, 8)] {
            let total = counts.right + counts.refused;
            assert!(counts.right > total / part && counts.refused > total / 8, "{counts:?}");
        }
    }
}

fn some_cases<T: Scalar>() {
    sweep::<T>(100);
}

for_all_dtypes! {
    derivatives_are_right_or_errors => some_cases;
}

#[test]
#[ignore = "10⁴ matrices of each kind: minutes in release"]
fn every_case() {
    sweep::<f64>(10_000);
    sweep::<f32>(10_000);
    sweep::<t4a_algebra::c64>(10_000);
    sweep::<t4a_algebra::c32>(10_000);
}
