//! Minimisation of functions on trees of tensors: L-BFGS, and Newton's method with conjugate gradients.
//!
//! ```text
//! lbfgs      directions from recent steps and gradients; function and gradient on Autodiff<B>
//! newton_cg  directions from conjugate gradients on Hessian-vector products; on Autodiff<Jvp<B>>
//! ```
//!
//! Both use a line search for the strong Wolfe conditions. Nocedal and Wright, "Numerical Optimization", 2nd edition:
//! algorithms 7.4 and 7.5 for L-BFGS, 7.1 for Newton-CG, 3.5 and 3.6 for the line search. The scalars of the search are
//! read on the host.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::minimise::{Minimise, lbfgs};
//!
//! // Rosenbrock's function.
//! let f = |x: Tensor<_, 1>| {
//!     let (a, b) = (x.clone().narrow(0, 0, 1), x.narrow(0, 1, 1));
//!     (b - a.clone().powi_scalar(2)).powi_scalar(2) * 100.0 + (-a + 1.0).powi_scalar(2)
//! };
//! let x = Tensor::<BurnT4a, 1>::from_floats([-1.2, 1.0], &T4aDevice);
//! let found = lbfgs(f, x, &Minimise::default())?;
//! assert!(found.converged && found.value < 1e-6);
//! # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
//! ```
//!
//! Derivatives of a minimum with respect to parameters of the function are those of a root of its gradient: call
//! [`root`](burn_t4a::ext::scan::root) with the minimum as the initial value. Reverse passes do not nest in Burn 0.21: if the
//! gradient inside of `root` is taken by `grad`, the rule keeps a matrix, for at most 256 variables; in forward mode, or
//! written by hand, it may have any number of them.
//!
//! ```
//! use burn::backend::Autodiff;
//! use burn::tensor::{Tensor, backend::Backend};
//! use burn_t4a::ext::scan::{FixedPoint, root};
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::derivatives::jacfwd;
//! use burn_t4a_transforms::jvp::constant;
//! use burn_t4a_transforms::minimise::{Minimise, lbfgs};
//!
//! fn f<B: Backend>(a: Tensor<B, 1>, x: Tensor<B, 1>) -> Tensor<B, 1> {
//!     (x.clone().powi_scalar(4) * 0.25 + x.clone().powi_scalar(2) * 0.5 - a * x).sum()
//! }
//! type A = Autodiff<BurnT4a>;
//! let a = Tensor::<A, 1>::from_floats([2.0, 10.0], &T4aDevice).require_grad();
//! let fixed = a.clone().inner();
//! let found = lbfgs(|x| f(Tensor::from_inner(fixed.clone()), x), fixed.clone(), &Minimise::default())?;
//!
//! let slope = |a: Tensor<A, 1>, x: Tensor<A, 1>| {
//!     let a = constant(a).unwrap();
//!     jacfwd::<A, 1, 1, 2>(|x| f(a.clone(), x), x).unwrap().squeeze_dim::<1>(0)
//! };
//! let x = root(slope, a.clone(), Tensor::from_inner(found.x), &FixedPoint::default())?;
//! // The minimum is the root of x³ + x = a, whose derivative is 1/(3 x² + 1).
//! let gradient = a.grad(&x.sum().backward()).unwrap();
//! gradient.into_data().assert_approx_eq::<f32>(&[0.25f32, 1.0 / 13.0].into(), Default::default());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::VecDeque;

use burn_autodiff::Autodiff;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, Scalar, TensorMetadata, try_read_sync};
use burn_t4a::ext::tree::{Structure, Tree, build_floats, flatten_floats};
use burn_t4a_jvp::Jvp;
use burn_tensor::Tensor;

use crate::derivatives::{Result, Twice, hvp, value_and_grad};

/// Stopping criteria and settings of a minimisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minimise {
    /// Tolerance for the largest absolute element of the gradient, relative to the absolute value of the function where
    /// that exceeds 1.
    pub tolerance: f64,
    /// Maximum number of steps. Each step evaluates the function and its gradient at least once.
    pub steps: usize,
    /// Number of steps and gradient differences stored by L-BFGS.
    pub memory: usize,
}

impl Default for Minimise {
    /// Tolerance 10⁻⁵, which is attainable in `f32`, 200 steps, and 10 stored ones.
    fn default() -> Self {
        Self { tolerance: 1e-5, steps: 200, memory: 10 }
    }
}

/// Result of a minimisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum<P> {
    /// Final point.
    pub x: P,
    /// Function value at the final point.
    pub value: f64,
    /// Largest absolute element of the gradient at the final point.
    pub gradient: f64,
    /// Number of steps.
    pub steps: usize,
    /// Number of evaluations of the function and its gradient.
    pub evaluations: usize,
    /// True if the gradient is within the tolerance. Otherwise the maximum number of steps was reached, the line search
    /// found no lower point (at the limit of rounding, for example), or the function is not finite.
    pub converged: bool,
}

/// The float leaves of a tree as one vector.
#[derive(Clone)]
struct LeafVector<B: Backend>(Vec<FloatTensor<B>>);

fn read<B: Backend>(x: FloatTensor<B>) -> f64 {
    let data = try_read_sync(B::float_into_data(x)).and_then(std::result::Result::ok);
    data.and_then(|data| data.iter::<f64>().next()).unwrap_or(f64::NAN)
}

impl<B: Backend> LeafVector<B> {
    fn dot(&self, other: &Self) -> f64 {
        let product = |(x, y): (&FloatTensor<B>, &FloatTensor<B>)| match x.shape().num_elements() {
            0 => 0.0,
            _ => read::<B>(B::float_sum(B::float_mul(x.clone(), y.clone()))),
        };
        self.0.iter().zip(&other.0).map(product).sum()
    }

    /// `self + c other`.
    fn plus(&self, c: f64, other: &Self) -> Self {
        let one = |(x, y): (&FloatTensor<B>, &FloatTensor<B>)| {
            B::float_add(x.clone(), B::float_mul_scalar(y.clone(), Scalar::Float(c)))
        };
        Self(self.0.iter().zip(&other.0).map(one).collect())
    }

    fn scaled(&self, c: f64) -> Self {
        let one = |x: &FloatTensor<B>| B::float_mul_scalar(x.clone(), Scalar::Float(c));
        Self(self.0.iter().map(one).collect())
    }

    /// Largest absolute value; NaN if an element is NaN.
    fn largest(&self) -> f64 {
        let largest = |x: &FloatTensor<B>| match x.shape().num_elements() {
            0 => 0.0,
            _ => read::<B>(B::float_max(B::float_abs(x.clone()))),
        };
        let all = self.0.iter().map(largest);
        all.fold(0.0, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) })
    }
}

/// A point, its value and its gradient.
#[derive(Clone)]
struct Point<B: Backend> {
    x: LeafVector<B>,
    value: f64,
    gradient: LeafVector<B>,
}

/// A function with a counter of its evaluations.
struct Objective<F> {
    evaluate: F,
    evaluations: usize,
    /// Relative rounding error of a value.
    epsilon: f64,
}

impl<F> Objective<F> {
    fn at<B: Backend>(&mut self, x: LeafVector<B>) -> Result<Point<B>>
    where
        F: FnMut(&LeafVector<B>) -> Result<(f64, LeafVector<B>)>,
    {
        self.evaluations += 1;
        let (value, gradient) = (self.evaluate)(&x)?;
        Ok(Point { x, value, gradient })
    }
}

/// Sufficient decrease and curvature of the strong Wolfe conditions.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Maximum number of points of one line search.
const TRIES: usize = 25;

/// Line search for a point that satisfies the strong Wolfe conditions; otherwise the lowest point found, or `None` if
/// none is lower than the start. Where values differ by rounding errors only, slopes are compared: the approximate
/// Wolfe conditions of Hager and Zhang, SIAM Journal on Optimization 16 (2005).
fn search<B: Backend, F: FnMut(&LeafVector<B>) -> Result<(f64, LeafVector<B>)>>(
    objective: &mut Objective<F>,
    from: &Point<B>,
    direction: &LeafVector<B>,
    first: f64,
) -> Result<Option<Point<B>>> {
    let slope = from.gradient.dot(direction);
    if slope.is_nan() || slope >= 0.0 {
        return Ok(None);
    }
    // End points of the interval: step, value, slope.
    let (mut low, mut high): ([f64; 3], Option<[f64; 3]>) = ([0.0, from.value, slope], None);
    let (mut step, mut best): (f64, Option<Point<B>>) = (first, None);
    for _ in 0..TRIES {
        let point = objective.at(from.x.plus(step, direction))?;
        let (value, of) = (point.value, point.gradient.dot(direction));
        let finite = value.is_finite() && of.is_finite();
        if finite && value < best.as_ref().map_or(from.value, |best| best.value) {
            best = Some(point.clone());
        }
        let is_near = (value - from.value).abs() <= 4.0 * objective.epsilon * from.value.abs();
        let by_slope = is_near && of <= (2.0 * DECREASE - 1.0) * slope;
        let enough = by_slope || value <= from.value + DECREASE * step * slope;
        if !finite || !enough || value >= low[1] && low[0] > 0.0 && !by_slope {
            high = Some([step, value, of]);
        } else if of.abs() <= -CURVATURE * slope {
            return Ok(Some(point));
        } else {
            if of * (high.map_or(f64::INFINITY, |high| high[0]) - low[0]) >= 0.0 {
                high = Some(low);
            }
            low = [step, value, of];
        }
        step = match high {
            None => step * 2.0,
            Some(high) => between(low, high),
        };
    }
    Ok(best)
}

/// Minimum of the cubic interpolant of both end points, or the midpoint if that is too close to one of them.
fn between([a, fa, da]: [f64; 3], [b, fb, db]: [f64; 3]) -> f64 {
    let middle = (a + b) / 2.0;
    let first = da + db - 3.0 * (fa - fb) / (a - b);
    let root = (first * first - da * db).sqrt().copysign(b - a);
    let cubic = b - (b - a) * (db + root - first) / (db - da + 2.0 * root);
    let margin = 0.1 * (b - a).abs();
    let inside = cubic > a.min(b) + margin && cubic < a.max(b) - margin;
    if inside { cubic } else { middle }
}

/// Descent steps until the gradient is small. `direct` returns the direction at a point and the initial step along it;
/// `learn` receives the points before and after a step.
fn descend<B: Backend, P: Tree<B>, S>(
    structure: &Structure,
    x: LeafVector<B>,
    settings: &Minimise,
    evaluate: impl FnMut(&LeafVector<B>) -> Result<(f64, LeafVector<B>)>,
    mut state: S,
    direct: impl Fn(&mut S, &Point<B>) -> Result<(LeafVector<B>, f64)>,
    learn: impl Fn(&mut S, &Point<B>, &Point<B>),
) -> Result<Minimum<P>> {
    let epsilon = match x.0.first().map(TensorMetadata::dtype) {
        Some(DType::F64) => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    let mut objective = Objective { evaluate, evaluations: 0, epsilon };
    let mut point = objective.at(x)?;
    let (mut steps, mut gradient) = (0, point.gradient.largest());
    let small = |gradient: f64, value: f64| gradient <= settings.tolerance * value.abs().max(1.0);
    while !small(gradient, point.value) && steps < settings.steps && point.value.is_finite() {
        let (direction, first) = direct(&mut state, &point)?;
        let Some(next) = search(&mut objective, &point, &direction, first)? else { break };
        learn(&mut state, &point, &next);
        point = next;
        gradient = point.gradient.largest();
        steps += 1;
    }
    Ok(Minimum {
        x: build_floats(structure, point.x.0)?,
        value: point.value,
        gradient,
        steps,
        evaluations: objective.evaluations,
        converged: small(gradient, point.value),
    })
}

/// Initial step along the negative gradient, of length 1 at most.
fn first_step<B: Backend>(gradient: &LeafVector<B>) -> f64 {
    (1.0 / gradient.dot(gradient).sqrt()).min(1.0)
}

/// Local minimum of f near x by L-BFGS. Memory: two vectors of the size of x per stored step.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::minimise::{Minimise, lbfgs};
///
/// // Σ (x − 3)², far from its minimum.
/// let x = Tensor::<BurnT4a, 1>::zeros([4], &T4aDevice);
/// let found = lbfgs(|x: Tensor<_, 1>| (x - 3.0).powi_scalar(2).sum(), x, &Minimise::default())?;
/// assert!(found.converged && (found.x.min().into_scalar() - 3.0).abs() < 1e-4);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError`](crate::derivatives::DerivativeError) as for [`value_and_grad`], and for integers in x. Missing
/// convergence is not an error: see [`Minimum::converged`].
pub fn lbfgs<B: Backend, P: Tree<B>>(
    f: impl Fn(P::On<Autodiff<B>>) -> Tensor<Autodiff<B>, 1>,
    x: P,
    settings: &Minimise,
) -> Result<Minimum<P>> {
    let (structure, x) = flatten_floats(x)?;
    let evaluate = |x: &LeafVector<B>| {
        let tree: P = build_floats(&structure, x.0.clone())?;
        let (value, gradient) = value_and_grad(&f, tree)?;
        let gradient = flatten_floats::<B, P>(gradient)?.1;
        Ok((read::<B>(value.into_primitive().tensor()), LeafVector(gradient)))
    };
    type Pairs<B> = VecDeque<(LeafVector<B>, LeafVector<B>, f64)>;
    let direct = |pairs: &mut Pairs<B>, at: &Point<B>| {
        let Some((s, y, _)) = pairs.back() else {
            return Ok((at.gradient.scaled(-1.0), first_step(&at.gradient)));
        };
        let scale = s.dot(y) / y.dot(y);
        let (mut q, mut alphas) = (at.gradient.clone(), Vec::new());
        for (s, y, rho) in pairs.iter().rev() {
            let alpha = rho * s.dot(&q);
            q = q.plus(-alpha, y);
            alphas.push(alpha);
        }
        let mut r = q.scaled(scale);
        for ((s, y, rho), alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
            r = r.plus(alpha - rho * y.dot(&r), s);
        }
        Ok((r.scaled(-1.0), 1.0))
    };
    let memory = settings.memory;
    let learn = |pairs: &mut Pairs<B>, before: &Point<B>, after: &Point<B>| {
        let (s, y) = (after.x.plus(-1.0, &before.x), after.gradient.plus(-1.0, &before.gradient));
        let (sy, yy) = (s.dot(&y), y.dot(&y));
        // Pairs with a curvature below rounding errors carry no information.
        if memory > 0 && sy > f64::from(f32::EPSILON) * 1e-3 * yy.sqrt() * s.dot(&s).sqrt() {
            if pairs.len() == memory {
                pairs.pop_front();
            }
            pairs.push_back((s, y, 1.0 / sy));
        }
    };
    descend(&structure, LeafVector(x), settings, evaluate, VecDeque::new(), direct, learn)
}

/// Local minimum of f near x by Newton's method: directions by conjugate gradients on Hessian-vector products, up to a
/// residual that decreases with the gradient, or up to the first direction of negative curvature. It needs few steps,
/// each with several products, and memory for a few vectors of the size of x.
///
/// ```
/// use burn::tensor::{Tensor, backend::Backend};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::minimise::{Minimise, newton_cg};
///
/// fn f<B: Backend>(x: Tensor<B, 1>) -> Tensor<B, 1> {
///     (x.clone().powi_scalar(4) * 0.25 - x * 8.0).sum()
/// }
/// let x = Tensor::<BurnT4a, 1>::ones([4], &T4aDevice);
/// // The root of x³ = 8.
/// let found = newton_cg(f, f, x, &Minimise::default())?;
/// assert!(found.converged && (found.x.max().into_scalar() - 2.0).abs() < 1e-4);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// As [`lbfgs`].
pub fn newton_cg<B: Backend, P: Tree<B>>(
    f: impl Fn(Twice<B, P>) -> Tensor<Autodiff<Jvp<B>>, 1>,
    value: impl Fn(P::On<Autodiff<B>>) -> Tensor<Autodiff<B>, 1>,
    x: P,
    settings: &Minimise,
) -> Result<Minimum<P>> {
    let (structure, x) = flatten_floats(x)?;
    let tree = |x: &LeafVector<B>| -> Result<P> { Ok(build_floats(&structure, x.0.clone())?) };
    let evaluate = |x: &LeafVector<B>| {
        let (value, gradient) = value_and_grad(&value, tree(x)?)?;
        let gradient = flatten_floats::<B, P>(gradient)?.1;
        Ok((read::<B>(value.into_primitive().tensor()), LeafVector(gradient)))
    };
    let direct = |_: &mut (), at: &Point<B>| {
        let norm = at.gradient.dot(&at.gradient).sqrt();
        let enough = norm * norm.sqrt().min(0.5);
        let size: usize = at.x.0.iter().map(|x| x.shape().num_elements()).sum();
        let (mut z, mut r) = (at.gradient.scaled(0.0), at.gradient.clone());
        let mut d = r.scaled(-1.0);
        let mut rr = r.dot(&r);
        for k in 0..2 * size.max(1) {
            let (_, product) = hvp(&f, tree(&at.x)?, tree(&d)?)?;
            let product = LeafVector(flatten_floats::<B, P>(product)?.1);
            let curvature = d.dot(&product);
            if curvature.is_nan() || curvature <= 0.0 {
                let steepest = (at.gradient.scaled(-1.0), first_step(&at.gradient));
                return Ok(if k == 0 { steepest } else { (z, 1.0) });
            }
            let alpha = rr / curvature;
            (z, r) = (z.plus(alpha, &d), r.plus(alpha, &product));
            let next = r.dot(&r);
            if next.sqrt() <= enough {
                break;
            }
            d = r.scaled(-1.0).plus(next / rr, &d);
            rr = next;
        }
        Ok((z, 1.0))
    };
    descend(&structure, LeafVector(x), settings, evaluate, (), direct, |(), _, _| {})
}
