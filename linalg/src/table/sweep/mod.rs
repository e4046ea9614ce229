//! Random matrices with tied, nearly tied and zero values at many sizes: matrix functions, solutions and their first
//! and second derivatives satisfy their defining equations, or are errors.
//!
//! The environment variable `T4A_LINALG_CASES` is the number of matrices of each kind and type, 12 by default; 10⁴
//! take ten minutes in release: `cargo test --release -p t4a-linalg sweep`.

mod equations;
mod jet;

use t4a_algebra::{Field, Numeric, Real, c64};
use t4a_diff::{Array, Dual, Value};
use t4a_tensor::Tensor;

use super::{Linalg, MatrixOp};
use crate::error::LinalgError;
use crate::expm::ExpmOp;
use crate::hermitian::{Elementary, HermitianFunctionOp};
use crate::logm::LogmOp;
use crate::lyapunov::LyapunovPositiveOp;
use crate::polar::{PolarOp, Side};
use crate::scalar::{LinalgScalar, epsilon};
use crate::sqrtm::SqrtmOp;
use crate::svd::{LowRankOp, SvdFunctionOp};
use crate::sylvester::SylvesterOp;
use crate::testing::*;

use equations::equations;
use jet::{Jet, Mat};

/// Kinds of cases.
#[derive(Clone, Copy, Debug)]
enum CaseKind {
    Expm,
    Sqrtm,
    Logm,
    Sylvester,
    Lyapunov,
    LyapunovPositive,
    Polar,
    SvdFunction(f64),
    LowRank,
    HermitianPower(f64),
    HermitianExp,
    HermitianLn,
}

const KINDS: [CaseKind; 20] = [
    CaseKind::Expm,
    CaseKind::Sqrtm,
    CaseKind::Logm,
    CaseKind::Sylvester,
    CaseKind::Lyapunov,
    CaseKind::LyapunovPositive,
    CaseKind::Polar,
    CaseKind::SvdFunction(1.0),
    CaseKind::SvdFunction(3.0),
    CaseKind::SvdFunction(5.0),
    CaseKind::SvdFunction(0.5),
    CaseKind::SvdFunction(0.0),
    CaseKind::SvdFunction(-1.0),
    CaseKind::LowRank,
    CaseKind::HermitianPower(3.0),
    CaseKind::HermitianPower(2.0),
    CaseKind::HermitianPower(-1.0),
    CaseKind::HermitianPower(0.5),
    CaseKind::HermitianExp,
    CaseKind::HermitianLn,
];

/// Random numbers and choices.
struct RandomDraw(Numbers);

impl RandomDraw {
    fn pick(&mut self, n: usize) -> usize {
        ((self.0.next() + 1.0) / 2.0 * n as f64) as usize % n
    }

    fn mat(&mut self, m: usize, n: usize, complex: bool) -> Mat {
        let x = (0..m * n).map(|_| {
            let im = if complex { self.0.next() } else { 0.0 };
            c64::new(self.0.next(), im)
        });
        Mat { m, n, x: x.collect() }
    }

    /// Orthonormal columns, by Gram–Schmidt applied twice.
    fn isometry(&mut self, m: usize, n: usize, complex: bool) -> Mat {
        let mut a = self.mat(m, n, complex);
        for j in 0..n {
            for _ in 0..2 {
                for k in 0..j {
                    let dot: c64 = (0..m).map(|i| a.at(i, k).conj() * a.at(i, j)).sum();
                    for i in 0..m {
                        let x = a.at(i, k);
                        a.x[i * n + j] -= dot * x;
                    }
                }
                let norm = (0..m).map(|i| a.at(i, j).norm_sqr()).sum::<f64>().sqrt();
                (0..m).for_each(|i| a.x[i * n + j] /= norm);
            }
        }
        a
    }

    /// Increasing numbers from `first` on, with ties and small gaps.
    fn values(&mut self, n: usize, first: f64, digits: usize) -> Vec<f64> {
        let ties = self.pick(4) > 0;
        let mut x = vec![first];
        for i in 1..n {
            let step = match self.pick(if ties { 3 } else { 1 }) {
                0 => 0.2 + 0.1 * self.pick(6) as f64,
                1 => 10f64.powi(-(1 + self.pick(digits) as i32)),
                _ => 0.0,
            };
            x.push(x[i - 1] + step);
        }
        x
    }

    fn hermitian(&mut self, n: usize, first: f64, digits: usize, complex: bool) -> Mat {
        let x = self.values(n, first, digits);
        let x: Vec<c64> = x.into_iter().map(|x| c64::new(x, 0.0)).collect();
        if self.pick(4) == 0 {
            return Mat::diagonal(&x);
        }
        let v = self.isometry(n, n, complex);
        v.times(&Mat::diagonal(&x)).times(&v.adjoint()).herm()
    }

    /// General matrix: tied, defective, triangular, normal with a pair near the negative axis, or scalar.
    fn general(&mut self, n: usize, digits: usize, complex: bool) -> Mat {
        let kind = self.pick(6);
        let x = self.values(n, 0.5, digits);
        let x: Vec<c64> = x.into_iter().map(|x| c64::new(x, 0.0)).collect();
        let upper = self.mat(n, n, complex);
        let above = |i: usize, j: usize| if j > i { upper.at(i, j) } else { c64::new(0.0, 0.0) };
        let triangle = Mat::diagonal(&x).plus(1.0, &Mat::from_fn(n, n, above));
        match kind {
            0 => triangle,
            1 => {
                let v = self.isometry(n, n, complex);
                v.times(&triangle).times(&v.adjoint())
            }
            2 => self.mat(n, n, complex),
            3 => {
                let angle = std::f64::consts::PI - 10f64.powi(-(self.pick(digits) as i32));
                let (sin, cos) = angle.sin_cos();
                let mut a = Mat::diagonal(&x);
                for (k, y) in [(0, cos), (1, -sin), (n, sin), (n + 1, cos)] {
                    a.x[k] = c64::new(y, 0.0);
                }
                a
            }
            4 => self.hermitian(n, 0.5, digits, complex),
            _ => Mat::unit(n).scaled(0.5 + self.pick(4) as f64),
        }
    }

    /// Matrix with singular values from `first` on, in decreasing order; and these values.
    fn with_singular_values(
        &mut self,
        [m, n]: [usize; 2],
        first: f64,
        digits: usize,
        complex: bool,
    ) -> (Mat, Vec<f64>) {
        let k = m.min(n);
        let mut x = self.values(k, first, digits);
        x.reverse();
        let middle: Vec<c64> = x.iter().map(|&x| c64::new(x, 0.0)).collect();
        let [u, v] = [m, n].map(|m| self.isometry(m, k, complex));
        (u.times(&Mat::diagonal(&middle)).times(&v.adjoint()), x)
    }
}

/// An operation with operands and two directions, and the underlying values.
struct SweepCase {
    op: MatrixOp,
    operands: Vec<Mat>,
    directions: [Vec<Mat>; 2],
    /// If the first `scaled` operands are multiplied by `scale`, the results are multiplied by `scale^degree`.
    scale: f64,
    scaled: usize,
    degree: f64,
    values: Vec<f64>,
    rank: usize,
}

impl SweepCase {
    fn new<T: LinalgScalar>(kind: CaseKind, seed: u64) -> Self {
        let (mut draw, complex) = (RandomDraw(Numbers::new(seed)), T::IS_COMPLEX);
        let double = epsilon::<T>() < 1e-10;
        let digits = if double { 15 } else { 7 };
        let n = 2 + draw.pick(3);
        let m = if draw.pick(2) == 0 { n } else { 2 + draw.pick(4) };
        let (mut values, mut rank) = (Vec::new(), 0);
        let hermitian = |draw: &mut RandomDraw| draw.hermitian(n, 0.5, digits, complex);
        let (operands, op, scaled, degree): (Vec<Mat>, MatrixOp, usize, f64) = match kind {
            CaseKind::Expm => {
                let size = 2f64.powi(draw.pick(12) as i32 - 9);
                let a = draw.general(n, digits, complex).scaled(size);
                (vec![a], ExpmOp.into(), 0, 0.0)
            }
            CaseKind::Sqrtm => (vec![draw.general(n, digits, complex)], SqrtmOp.into(), 1, 0.5),
            CaseKind::Logm => (vec![draw.general(n, digits, complex)], LogmOp.into(), 1, 0.0),
            CaseKind::Sylvester | CaseKind::Lyapunov => {
                let a = draw.general(n, digits, complex);
                let b = match kind {
                    CaseKind::Lyapunov => a.adjoint(),
                    _ => draw.general(m.min(3), digits, complex),
                };
                let c = draw.mat(n, b.n, complex);
                (vec![a, b, c], SylvesterOp.into(), 2, -1.0)
            }
            CaseKind::LyapunovPositive => {
                let (p, b) = (hermitian(&mut draw), draw.mat(n, n, complex));
                (vec![p, b], LyapunovPositiveOp.into(), 1, -1.0)
            }
            CaseKind::Polar => {
                let (a, _) = draw.with_singular_values([m.max(n), n], 0.4, digits, complex);
                (vec![a], PolarOp { side: Side::Right }.into(), 1, f64::NAN)
            }
            CaseKind::SvdFunction(p) => {
                let shape = if p == -1.0 { [n, n] } else { [m, n] };
                let small = |digit: usize| 10f64.powi(-(digit as i32));
                let first = match (p, draw.pick(3)) {
                    (1.0.., 0) => 0.0,
                    (1.0.., 1) => small(draw.pick(digits)),
                    // A root has no derivative at zero.
                    (0.5, 0) if draw.pick(4) == 0 => 0.0,
                    (0.5, 1) => small(draw.pick(digits / 3)),
                    _ => 0.4,
                };
                let (a, x) = draw.with_singular_values(shape, first, digits, complex);
                // Powers of small numbers over- or underflow.
                let a = if x[0] > 0.0 { a.scaled(1.0 / x[0]) } else { a };
                (vec![a], SvdFunctionOp { function: Elementary::Pow(p) }.into(), 1, p)
            }
            CaseKind::LowRank => {
                let first = if draw.pick(3) == 0 { 0.0 } else { 0.4 };
                let (a, x) = draw.with_singular_values([m, n], first, digits, complex);
                let largest = if x[0] > 0.0 { x[0] } else { 1.0 };
                let a = a.scaled(1.0 / largest);
                rank = 1 + draw.pick(x.len());
                values = x.into_iter().map(|x| x / largest).collect();
                (vec![a], LowRankOp { rank }.into(), 1, 1.0)
            }
            CaseKind::HermitianPower(p) => {
                let first = if p > 1.0 { -0.5 } else { 0.4 };
                let a = draw.hermitian(n, first, digits, complex);
                (vec![a], HermitianFunctionOp { function: Elementary::Pow(p) }.into(), 1, p)
            }
            CaseKind::HermitianExp => {
                let op = HermitianFunctionOp { function: Elementary::Exp };
                (vec![draw.hermitian(n, -0.5, digits, complex)], op.into(), 0, 0.0)
            }
            CaseKind::HermitianLn => {
                let op = HermitianFunctionOp { function: Elementary::Ln };
                (vec![hermitian(&mut draw)], op.into(), 1, 0.0)
            }
        };
        let directions = [0, 1].map(|_| {
            let mut all: Vec<Mat> = operands.iter().map(|x| draw.mat(x.m, x.n, complex)).collect();
            if matches!(kind, CaseKind::Lyapunov) {
                all[1] = all[0].adjoint();
            }
            all
        });
        let range = if double { 40 } else { 6 };
        let power = 2 * (draw.pick(2 * range) as i32 - range as i32);
        let scale = if scaled == 0 || draw.pick(2) == 0 { 1.0 } else { 2f64.powi(power) };
        // Elements rounded to the type.
        let rounded = |x: Mat| from_tensor(&tensor::<T>(&x));
        let operands = operands.into_iter().map(rounded).collect();
        let directions = directions.map(|x| x.into_iter().map(rounded).collect());
        Self { op, operands, directions, scale, scaled, degree, values, rank }
    }

    fn factor(&self, operand: usize) -> f64 {
        if operand < self.scaled { self.scale } else { 1.0 }
    }

    /// Operands as functions of the two parameters.
    fn inputs(&self) -> Vec<Jet> {
        let one = |i: usize| {
            let [a, b] = [0, 1].map(|j| self.directions[j][i].clone());
            let none = a.scaled(0.0);
            Jet::new([self.operands[i].clone(), a, b, none])
        };
        (0..self.operands.len()).map(one).collect()
    }

    /// A result at unit scale.
    fn unscaled(&self, kind: CaseKind, result: usize, jet: Jet) -> Jet {
        let degree = match kind {
            CaseKind::Polar => result as f64,
            _ => self.degree,
        };
        let mut jet = Jet::new(jet.scaled(self.scale.powf(-degree)).terms);
        if matches!(kind, CaseKind::Logm | CaseKind::HermitianLn) {
            let shift = Mat::unit(jet.terms[0].n);
            jet.terms[0] = jet.terms[0].plus(-self.scale.ln(), &shift);
        }
        jet
    }
}

fn tensor<T: LinalgScalar>(x: &Mat) -> Tensor<T> {
    let part = <T::R as Numeric>::from_f64;
    let entries = x.x.iter().map(|z| T::from_parts(part(z.re), part(z.im)));
    Tensor::from_vec(entries.collect(), &[x.m, x.n]).unwrap()
}

fn from_tensor<T: LinalgScalar>(x: &Tensor<T>) -> Mat {
    let entries = x.to_vec().unwrap();
    let entry = |z: &T| c64::new(Field::re(*z).to_f64(), Field::im(*z).to_f64());
    Mat { m: x.shape()[0], n: x.shape()[1], x: entries.iter().map(entry).collect() }
}

/// Results as functions of the two parameters, by forward mode twice.
fn forward<T: Scalar>(case: &SweepCase) -> Result<Vec<Jet>, LinalgError> {
    let arrays = |x: &[Mat]| -> Vec<_> {
        let scaled = x.iter().enumerate().map(|(i, x)| tensor::<T>(&x.scaled(case.factor(i))));
        scaled.flat_map(|x| eager(&x)).collect()
    };
    let [x, d1, d2] = [&case.operands, &case.directions[0], &case.directions[1]].map(|x| arrays(x));
    let twice = x.into_iter().zip(d1).zip(d2).map(|((x, d1), d2)| {
        let still = d1.scale(0.0);
        Value::Float(Dual::new(Dual::new(x, d2), Dual::new(d1, still)))
    });
    let twice: Vec<Value<Dual<Duals>>> = twice.collect();
    let op = Linalg { op: case.op, complex: T::IS_COMPLEX };
    let out = Dual::<Duals>::apply(&op, &twice, &vec![true; twice.len()])?;
    let each = 1 + usize::from(T::IS_COMPLEX);
    let read = |pair: &[Dual<Duals>]| -> Result<Jet, LinalgError> {
        let term = |f: &dyn Fn(&Dual<Duals>) -> t4a_diff::Eager| {
            from_eager::<T>(pair.iter().map(f).collect()).map(|x| from_tensor(&x))
        };
        Ok(Jet::new([
            term(&|x| x.value.value.clone())?,
            term(&|x| x.tangent.clone().map_or(x.value.value.scale(0.0), |t| t.value))?,
            term(&|x| x.value.clone().into_tangent())?,
            term(&|x| x.clone().into_tangent().into_tangent())?,
        ]))
    };
    out.results.chunks_exact(each).map(read).collect()
}

/// Gradient for the cotangents `w`, and its derivative along the second directions.
fn reverse<T: Scalar>(case: &SweepCase, w: &[Mat]) -> Result<[Vec<Mat>; 2], LinalgError> {
    let scaled = |x: &[Mat]| -> Vec<Tensor<T>> {
        x.iter().enumerate().map(|(i, x)| tensor::<T>(&x.scaled(case.factor(i)))).collect()
    };
    let inputs = duals(&scaled(&case.operands), &scaled(&case.directions[1]));
    let recorded = Recorded::new(case.op, T::IS_COMPLEX, inputs)?;
    let given: Vec<_> = w.iter().flat_map(|w| eager(&tensor::<T>(w))).collect();
    let given: Vec<_> = given.into_iter().map(|x| Some(Dual::constant(x))).collect();
    let gradient = recorded.vjp(&given, &[])?;
    let each = 1 + usize::from(T::IS_COMPLEX);
    let read = |part: &dyn Fn(&Duals) -> t4a_diff::Eager| {
        let pairs = gradient.chunks_exact(each);
        let one = |pair: &[Duals]| from_eager::<T>(pair.iter().map(part).collect());
        pairs.map(one).map(|x| x.map(|x| from_tensor(&x))).collect::<Result<Vec<_>, _>>()
    };
    Ok([read(&|x| x.value.clone())?, read(&|x| x.clone().into_tangent())?])
}

#[derive(Default, Debug)]
struct SweepCounts {
    right: usize,
    refused: usize,
    worst: f64,
}

fn refusal(error: &LinalgError) -> bool {
    matches!(
        error,
        LinalgError::SplitTie { .. }
            | LinalgError::SecondOrderAtTie { .. }
            | LinalgError::Singular { .. }
            | LinalgError::NegativeEigenvalue { .. }
            | LinalgError::CommonEigenvalue { .. }
            | LinalgError::RankDeficient { .. }
            | LinalgError::OutsideDomain { .. }
            | LinalgError::Overflow { .. }
    )
}

fn run<T: Scalar>(kind: CaseKind, seed: u64, counts: &mut SweepCounts) {
    let case = SweepCase::new::<T>(kind, seed);
    let what = || format!("{kind:?}, seed {seed}, {:?}, scale {:e}", case.operands, case.scale);
    let unit = epsilon::<T>();
    // Second derivatives through vectors at gaps above ε^(1/4) have errors of order √ε.
    let limit = match kind {
        CaseKind::SvdFunction(_) | CaseKind::LowRank | CaseKind::HermitianPower(_) => {
            40.0 * unit.sqrt()
        }
        CaseKind::HermitianExp | CaseKind::HermitianLn => 40.0 * unit.sqrt(),
        _ => 4e3 * unit,
    };
    let results = match forward::<T>(&case) {
        Ok(results) => results,
        Err(error) if refusal(&error) => return counts.refused += 1,
        Err(error) => panic!("{}: {error}", what()),
    };
    let plain: Vec<Jet> = results.clone();
    let results = results.into_iter().enumerate().map(|(i, jet)| case.unscaled(kind, i, jet));
    let results: Vec<Jet> = results.collect();
    let cut = match kind {
        // Each order divides by the gap between kept and dropped values, and so does the projector.
        CaseKind::LowRank if case.rank < case.values.len() => {
            case.values[case.rank - 1] - case.values[case.rank]
        }
        _ => 1.0,
    };
    for equation in equations(kind, &case.inputs(), &results, &case) {
        for (order, (left, size)) in equation.terms.iter().zip(equation.sizes).enumerate() {
            let orders = if order == 3 { 2 } else { order.min(1) };
            let off = left.norm() / size.max(f64::MIN_POSITIVE) * cut.powi(orders as i32 + 1);
            // The first order loses no digits.
            let limit = if order < 3 { limit.min(4e3 * unit) } else { limit };
            assert!(off <= limit, "{}: order {order} off by {off:e}", what());
            counts.worst = counts.worst.max(off / limit);
        }
    }
    let mut draw = RandomDraw(Numbers::new(seed + 7));
    let w = plain.iter().map(|y| draw.mat(y.terms[0].m, y.terms[0].n, T::IS_COMPLEX));
    let w: Vec<Mat> = w.map(|w| from_tensor(&tensor::<T>(&w))).collect();
    // Solutions of nearly singular equations have lost digits.
    let loss = match kind {
        CaseKind::Sylvester | CaseKind::Lyapunov => {
            let [a, b, c] = [0, 1, 2].map(|i| case.operands[i].norm());
            (results[0].terms[0].norm() * (a + b) / c).max(1.0)
        }
        _ => 1.0,
    };
    match reverse::<T>(&case, &w) {
        Ok(gradients) => {
            let mut first = 0.0;
            for ((gradient, order), loss) in gradients.iter().zip([1, 3]).zip([loss, loss * loss]) {
                let own = w.iter().zip(&plain).map(|(w, y)| (w, &y.terms[order]));
                let (mut left, mut size) = (0.0, 0.0);
                for (w, y) in own {
                    left += w.inner(y);
                    size += w.norm() * y.norm();
                }
                for (i, g) in gradient.iter().enumerate() {
                    let d = case.directions[0][i].scaled(case.factor(i));
                    left -= g.inner(&d);
                    size += g.norm() * d.norm();
                }
                if order == 1 {
                    first = size;
                } else if matches!(kind, CaseKind::SvdFunction(1.0)) {
                    // The second derivative is zero.
                    size = first;
                }
                let off = left.abs() / (size * loss).max(f64::MIN_POSITIVE);
                assert!(off <= limit, "{}: transpose of order {order} off by {off:e}", what());
                counts.worst = counts.worst.max(off / limit);
            }
            counts.right += 1;
        }
        Err(error) if refusal(&error) => counts.refused += 1,
        Err(error) => panic!("{}: {error}", what()),
    }
}

fn cases() -> u64 {
    std::env::var("T4A_LINALG_CASES").ok().and_then(|x| x.parse().ok()).unwrap_or(12)
}

fn sweep<T: Scalar>() {
    for kind in KINDS {
        let mut counts = SweepCounts::default();
        (0..cases()).for_each(|seed| run::<T>(kind, 1 + seed, &mut counts));
        println!("{kind:?} {}: {counts:?}", std::any::type_name::<T>());
        assert!(counts.right > counts.refused, "{kind:?}: {counts:?}");
    }
}

#[test]
fn real_functions_and_solutions_are_right_or_errors() {
    sweep::<f64>();
}

#[test]
fn complex_functions_and_solutions_are_right_or_errors() {
    sweep::<c64>();
}

#[test]
fn functions_and_solutions_in_single_precision_are_right_or_errors() {
    sweep::<f32>();
}

#[test]
fn complex_functions_and_solutions_in_single_precision_are_right_or_errors() {
    sweep::<t4a_algebra::c32>();
}
