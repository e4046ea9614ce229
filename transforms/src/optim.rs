//! Optimisers as functions of trees: parameters, gradients and the state of the optimiser go in, new ones come out.
//!
//! Burn's optimisers keep their state in a table and count steps on the host, so a compiled function would record them
//! with the count of one step. Here the whole state is a tree of tensors, an argument and a result of the step, so that a
//! training step is one compiled function for all steps, and runs under `vmap` for an ensemble. The update formulas are
//! those of Burn 0.21: [`Sgd`] as `SgdConfig`, [`Adam`] as `AdamConfig`, or `AdamWConfig` with [`Adam::decoupled`].
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::compile::{Traced, compile};
//! use burn_t4a_transforms::derivatives::grad;
//! use burn_t4a_transforms::optim::{Adam, AdamState};
//!
//! type T = Traced<BurnT4a>;
//! type State<B> = AdamState<B, Tensor<B, 1>>;
//!
//! let adam = Adam::default();
//! let step = compile(|(x, state): (Tensor<T, 1>, State<T>)| {
//!     let gradient = grad(|x: Tensor<_, 1>| (x - 1.0).powi_scalar(2).sum(), x.clone()).unwrap();
//!     adam.step(0.1, x, gradient, state).unwrap()
//! });
//! let mut x = Tensor::<BurnT4a, 1>::zeros([3], &T4aDevice);
//! let mut state = adam.init(&x)?;
//! for _ in 0..200 {
//!     (x, state) = step.call((x, state))?;
//! }
//! assert!((x - 1.0).abs().max().into_scalar() < 1e-2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, FloatDType, Scalar, Shape, TensorMetadata};
use burn_t4a::ext::tree::{Structure, Tree, TreeError, build_floats, flatten_floats};
use burn_tensor::{Tensor, TensorPrimitive};
use t4a_algebra::message::{differing, first, short};
use thiserror::Error;

/// Leaf of a tree with another shape or dtype than the parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherLeaf {
    /// Path in the tree, such as `.0.1`.
    pub path: String,
    /// Shape and dtype of the parameter.
    pub parameter: (Shape, DType),
    /// Shape and dtype of the leaf.
    pub given: (Shape, DType),
}

fn list(leaves: &[OtherLeaf]) -> String {
    first(leaves, "; ", |OtherLeaf { path, parameter: (x, dtype), given: (y, given) }| {
        format!("leaf {path} is {y:?} {given:?}, the parameter {x:?} {dtype:?}")
    })
}

/// Error of a step of an optimiser.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptimError {
    /// A tree with integers or booleans, or of another type than required.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Parameters, gradients and state do not have the same structure.
    #[error(
        "optimiser: the structure of {tree} is {given}, that of the parameters {required}",
        given = differing(.given, .required), required = differing(.required, .given)
    )]
    Structure {
        /// `gradients`, `velocities`, `first moments` or `second moments`.
        tree: &'static str,
        /// Structure of the parameters.
        required: String,
        /// Structure of the tree.
        given: String,
    },
    /// Leaves do not have the shape and the dtype of their parameters.
    #[error("optimiser: {tree} do not fit the parameters: {}", list(leaves))]
    Leaves {
        /// `gradients`, `velocities`, `first moments` or `second moments`.
        tree: &'static str,
        /// Every such leaf.
        leaves: Vec<OtherLeaf>,
    },
    /// The learning rate is a tensor with several elements.
    #[error("optimiser: the learning rate has {count} elements, one is required")]
    Rate {
        /// Number of elements.
        count: usize,
    },
    /// The norm that gradients are clipped to is not positive.
    #[error("clip_by_global_norm: a positive norm is required, given {norm}", norm = short(.norm))]
    Norm {
        /// The given norm as text.
        norm: String,
    },
}

type Result<T> = std::result::Result<T, OptimError>;

/// Learning rate: a number, or a tensor of one element, which may be computed from the number of the step in a compiled
/// function.
#[derive(Clone, Debug)]
pub enum Rate<B: Backend> {
    /// The same rate at every call of a compiled function.
    Number(f64),
    /// An argument or intermediate result.
    Tensor(Tensor<B, 1>),
}

impl<B: Backend> From<f64> for Rate<B> {
    fn from(rate: f64) -> Self {
        Self::Number(rate)
    }
}

impl<B: Backend> From<Tensor<B, 1>> for Rate<B> {
    fn from(rate: Tensor<B, 1>) -> Self {
        Self::Tensor(rate)
    }
}

impl<B: Backend> Rate<B> {
    fn check(self) -> Result<Self> {
        match &self {
            Self::Tensor(x) if x.dims() != [1] => Err(OptimError::Rate { count: x.dims()[0] }),
            _ => Ok(self),
        }
    }

    /// The product of the rate and a tensor.
    fn times(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        match self {
            Self::Number(rate) => scaled::<B>(x, *rate),
            Self::Tensor(rate) => {
                let rate = like::<B>(rate.clone(), &x);
                B::float_mul(x, rate)
            }
        }
    }
}

/// A tensor of one element in the dtype and with the rank of `x`.
fn like<B: Backend>(scalar: Tensor<B, 1>, x: &FloatTensor<B>) -> FloatTensor<B> {
    let scalar = scalar.into_primitive().tensor();
    let ones = Shape::from(vec![1; x.shape().num_dims()]);
    let cast = match scalar.dtype() == x.dtype() {
        true => scalar,
        false => B::float_cast(scalar, FloatDType::from(x.dtype())),
    };
    B::float_reshape(cast, ones)
}

fn scaled<B: Backend>(x: FloatTensor<B>, c: f64) -> FloatTensor<B> {
    B::float_mul_scalar(x, Scalar::Float(c))
}

/// `a x + b y`.
fn combined<B: Backend>(a: f64, x: FloatTensor<B>, b: f64, y: FloatTensor<B>) -> FloatTensor<B> {
    B::float_add(scaled::<B>(x, a), scaled::<B>(y, b))
}

/// Parameters as a list of float tensors, checked against the other trees of a step.
struct FloatLeaves<B: Backend> {
    structure: Structure,
    tensors: Vec<FloatTensor<B>>,
}

impl<B: Backend> FloatLeaves<B> {
    fn of<P: Tree<B>>(parameters: P) -> Result<Self> {
        let (structure, tensors) = flatten_floats(parameters)?;
        Ok(Self { structure, tensors })
    }

    /// The leaves of another tree, which must have the structure, shapes and dtypes of the parameters.
    fn matching<P: Tree<B>>(&self, tree: &'static str, other: P) -> Result<Vec<FloatTensor<B>>> {
        let (structure, others) = flatten_floats(other)?;
        if structure != self.structure {
            let [required, given] = [&self.structure, &structure].map(Structure::to_string);
            return Err(OptimError::Structure { tree, required, given });
        }
        let of = |x: &FloatTensor<B>| (x.shape(), x.dtype());
        let pairs = structure.paths().into_iter().zip(self.tensors.iter().zip(&others));
        let differ = pairs.filter(|(_, (x, y))| of(x) != of(y));
        let leaves: Vec<OtherLeaf> = differ
            .map(|(path, (x, y))| OtherLeaf { path, parameter: of(x), given: of(y) })
            .collect();
        if !leaves.is_empty() {
            return Err(OptimError::Leaves { tree, leaves });
        }
        Ok(others)
    }

    fn tree<P: Tree<B>>(&self, tensors: Vec<FloatTensor<B>>) -> Result<P> {
        Ok(build_floats(&self.structure, tensors)?)
    }

    fn zeros<P: Tree<B>>(&self) -> Result<P> {
        let zeros = |x: &FloatTensor<B>| {
            B::float_zeros(x.shape(), &B::float_device(x), FloatDType::from(x.dtype()))
        };
        self.tree(self.tensors.iter().map(zeros).collect())
    }
}

/// Gradient descent with momentum: Sutskever, Martens, Dahl, Hinton, "On the importance of initialization and momentum in
/// deep learning", ICML 2013.
///
/// ```text
/// v ← momentum v + (1 − dampening) g      v = g at the first step
/// x ← x − rate v                          x − rate (g + momentum v) with `nesterov`
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sgd {
    /// Factor of the velocity.
    pub momentum: f64,
    /// Reduction of the gradients that are added to the velocity after the first step.
    pub dampening: f64,
    /// Uses the velocity of the next step (Nesterov).
    pub nesterov: bool,
    /// Factor of the parameters that are added to the gradients (L2 penalty).
    pub penalty: f64,
}

/// State of [`Sgd`].
#[derive(Clone, Debug, Tree)]
pub struct SgdState<B: Backend, P> {
    /// Exponentially weighted sum of gradients.
    pub velocity: P,
    /// 1 after the first step, 0 before.
    pub started: Tensor<B, 1>,
}

impl Sgd {
    /// State before the first step.
    ///
    /// # Errors
    /// [`OptimError::Tree`] if a leaf holds integers or booleans.
    pub fn init<B: Backend, P: Tree<B> + Clone>(&self, parameters: &P) -> Result<SgdState<B, P>> {
        let leaves = FloatLeaves::of(parameters.clone())?;
        Ok(SgdState { velocity: leaves.zeros()?, started: counter(&leaves, 0.0) })
    }

    /// New parameters and new state.
    ///
    /// # Errors
    /// [`OptimError`] if gradients or state do not fit the parameters, or the rate has several elements.
    pub fn step<B: Backend, P: Tree<B>>(
        &self,
        rate: impl Into<Rate<B>>,
        parameters: P,
        gradients: P,
        state: SgdState<B, P>,
    ) -> Result<(P, SgdState<B, P>)> {
        let (rate, leaves) = (rate.into().check()?, FloatLeaves::of(parameters)?);
        let gradients = leaves.matching("gradients", gradients)?;
        let velocity = leaves.matching("velocities", state.velocity)?;
        // 1 at the first step, later 1 − dampening.
        let share = state.started.clone().mul_scalar(-self.dampening).add_scalar(1.0);
        let mut next = (Vec::new(), Vec::new());
        for ((x, g), v) in leaves.tensors.iter().zip(gradients).zip(velocity) {
            let g = penalised::<B>(self.penalty, x, g);
            let share = like(share.clone(), &g);
            let added = B::float_mul(g.clone(), share);
            let v = B::float_add(scaled::<B>(v, self.momentum), added);
            let direction = match self.nesterov {
                true => combined::<B>(1.0, g, self.momentum, v.clone()),
                false => v.clone(),
            };
            next.0.push(B::float_sub(x.clone(), rate.times(direction)));
            next.1.push(v);
        }
        let started = state.started.zeros_like().add_scalar(1.0);
        Ok((leaves.tree(next.0)?, SgdState { velocity: leaves.tree(next.1)?, started }))
    }
}

/// Adam: Kingma and Ba, ICLR 2015, arXiv:1412.6980; with [`Adam::decoupled`] AdamW: Loshchilov and Hutter, ICLR 2019,
/// arXiv:1711.05101.
///
/// ```text
/// m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²
/// x ← x − rate (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decay rates β₁ and β₂ of both moments.
    pub betas: [f64; 2],
    /// Addition to the root of the second moment.
    pub epsilon: f64,
    /// Weight decay: factor of the parameters that are added to the gradients, or that are subtracted from the parameters
    /// if it is decoupled.
    pub decay: f64,
    /// True if weight decay does not pass through the moments: x ← (1 − rate decay) x before the step.
    pub decoupled: bool,
}

impl Default for Adam {
    /// The values of Burn's `AdamConfig`: β = (0.9, 0.999), ε = 10⁻⁵, no weight decay.
    fn default() -> Self {
        Self { betas: [0.9, 0.999], epsilon: 1e-5, decay: 0.0, decoupled: false }
    }
}

/// State of [`Adam`].
#[derive(Clone, Debug, Tree)]
pub struct AdamState<B: Backend, P> {
    /// Exponentially weighted mean of gradients.
    pub first: P,
    /// Exponentially weighted mean of squared gradients.
    pub second: P,
    /// β₁ᵗ and β₂ᵗ after t steps.
    pub powers: [Tensor<B, 1>; 2],
}

impl Adam {
    /// State before the first step: two copies of the parameters filled with zeros.
    ///
    /// # Errors
    /// [`OptimError::Tree`] if a leaf holds integers or booleans.
    pub fn init<B: Backend, P: Tree<B> + Clone>(&self, parameters: &P) -> Result<AdamState<B, P>> {
        let leaves = FloatLeaves::of(parameters.clone())?;
        let (first, second) = (leaves.zeros()?, leaves.zeros()?);
        Ok(AdamState { first, second, powers: [(); 2].map(|()| counter(&leaves, 1.0)) })
    }

    /// New parameters and new state.
    ///
    /// # Errors
    /// [`OptimError`] if gradients or state do not fit the parameters, or the rate has several elements.
    pub fn step<B: Backend, P: Tree<B>>(
        &self,
        rate: impl Into<Rate<B>>,
        parameters: P,
        gradients: P,
        state: AdamState<B, P>,
    ) -> Result<(P, AdamState<B, P>)> {
        let (rate, leaves) = (rate.into().check()?, FloatLeaves::of(parameters)?);
        let gradients = leaves.matching("gradients", gradients)?;
        let first = leaves.matching("first moments", state.first)?;
        let second = leaves.matching("second moments", state.second)?;
        let [beta1, beta2] = self.betas;
        let [power1, power2] = state.powers;
        let powers = [power1.mul_scalar(beta1), power2.mul_scalar(beta2)];
        // Both corrections as factors of one scalar each: m √(1 − β₂ᵗ) / (1 − β₁ᵗ) and ε √(1 − β₂ᵗ).
        let [correction1, correction2] = powers.clone().map(|power| -power + 1.0);
        let root = correction2.sqrt();
        let (factor, epsilon) = (root.clone() / correction1, root * self.epsilon);
        let mut next = (Vec::new(), Vec::new(), Vec::new());
        for (((x, g), m), v) in leaves.tensors.iter().zip(gradients).zip(first).zip(second) {
            let g = if self.decoupled { g } else { penalised::<B>(self.decay, x, g) };
            let m = combined::<B>(beta1, m, 1.0 - beta1, g.clone());
            let v = combined::<B>(beta2, v, 1.0 - beta2, B::float_mul(g.clone(), g));
            let scale = B::float_add(B::float_sqrt(v.clone()), like(epsilon.clone(), x));
            let direction = B::float_div(B::float_mul(m.clone(), like(factor.clone(), x)), scale);
            let x = match self.decoupled && self.decay != 0.0 {
                true => B::float_sub(x.clone(), rate.times(scaled::<B>(x.clone(), self.decay))),
                false => x.clone(),
            };
            next.0.push(B::float_sub(x, rate.times(direction)));
            next.1.push(m);
            next.2.push(v);
        }
        let state = AdamState { first: leaves.tree(next.1)?, second: leaves.tree(next.2)?, powers };
        Ok((leaves.tree(next.0)?, state))
    }
}

/// Gradients scaled so that their norm over all leaves is `norm` at most.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::optim::clip_by_global_norm;
///
/// // The norm over both leaves is 5.
/// let of = |x: f32| Tensor::<BurnT4a, 1>::from_floats([x], &T4aDevice);
/// let (a, b) = clip_by_global_norm((of(3.0), of(4.0)), 1.0)?;
/// assert!((a.into_scalar() - 0.6).abs() < 1e-6 && (b.into_scalar() - 0.8).abs() < 1e-6);
/// # Ok::<(), burn_t4a_transforms::optim::OptimError>(())
/// ```
///
/// # Errors
/// [`OptimError::Tree`] if a leaf holds integers or booleans, [`OptimError::Norm`] unless the norm is positive.
pub fn clip_by_global_norm<B: Backend, P: Tree<B>>(gradients: P, norm: f64) -> Result<P> {
    if norm.is_nan() || norm <= 0.0 {
        return Err(OptimError::Norm { norm: norm.to_string() });
    }
    let leaves = FloatLeaves::<B>::of(gradients)?;
    let square = |x: &FloatTensor<B>| {
        let sum = B::float_sum(B::float_mul(x.clone(), x.clone()));
        Tensor::<B, 1>::from_primitive(TensorPrimitive::Float(B::float_reshape(sum, [1].into())))
    };
    let squares = leaves.tensors.iter().map(square).map(|x| x.cast(scalar_dtype(&leaves)));
    let Some(total) = squares.reduce(|x, y| x + y) else { return leaves.tree(Vec::new()) };
    // A norm below the limit gives the factor 1.
    let factor = total.sqrt().clamp_min(norm).recip() * norm;
    let scaled = leaves.tensors.iter().map(|x| B::float_mul(x.clone(), like(factor.clone(), x)));
    leaves.tree(scaled.collect())
}

/// `g + penalty x`.
fn penalised<B: Backend>(penalty: f64, x: &FloatTensor<B>, g: FloatTensor<B>) -> FloatTensor<B> {
    if penalty == 0.0 { g } else { combined::<B>(penalty, x.clone(), 1.0, g) }
}

/// The dtype of scalars of a state: `f64` if a parameter has it, otherwise `f32`.
fn scalar_dtype<B: Backend>(leaves: &FloatLeaves<B>) -> FloatDType {
    let wide = leaves.tensors.iter().any(|x| x.dtype() == DType::F64);
    if wide { FloatDType::F64 } else { FloatDType::F32 }
}

fn counter<B: Backend>(leaves: &FloatLeaves<B>, value: f64) -> Tensor<B, 1> {
    let device = leaves.tensors.first().map(B::float_device).unwrap_or_default();
    let x = B::float_full([1].into(), Scalar::Float(value), &device, scalar_dtype(leaves));
    Tensor::from_primitive(TensorPrimitive::Float(x))
}
