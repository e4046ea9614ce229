//! A float tensor with its tangent, and the few ways in which results get theirs.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, Shape, TensorMetadata};

use crate::real::Real;

/// A float tensor and its tangent; no tangent stands for zero and costs nothing.
///
/// The tangent has shape, dtype and device of the primal.
#[derive(Clone, Debug)]
pub struct JvpTensor<B: Backend> {
    /// The value.
    pub(crate) primal: FloatTensor<B>,
    /// How it moves.
    pub(crate) tangent: Option<FloatTensor<B>>,
}

impl<B: Backend> TensorMetadata for JvpTensor<B> {
    fn dtype(&self) -> DType {
        self.primal.dtype()
    }

    fn shape(&self) -> Shape {
        self.primal.shape()
    }

    fn rank(&self) -> usize {
        self.primal.rank()
    }
}

/// Zeros in shape, dtype and device of `x`.
pub(crate) fn zeros_like<B: Backend>(x: &FloatTensor<B>) -> FloatTensor<B> {
    B::float_zeros(x.shape(), &B::float_device(x), x.dtype().into())
}

/// `x` in this shape, to which it broadcasts.
pub(crate) fn expanded<B: Backend>(x: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    if x.shape() == shape { x } else { B::float_expand(x, shape) }
}

/// The sum of two tangents of which each may be zero.
pub(crate) fn sum<B: Backend>(
    a: Option<FloatTensor<B>>,
    b: Option<FloatTensor<B>>,
) -> Option<FloatTensor<B>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(B::float_add(a, b)),
        (a, b) => a.or(b),
    }
}

impl<B: Backend> JvpTensor<B> {
    /// A value that moves along `tangent`.
    ///
    /// # Panics
    /// Unless shapes and dtypes agree.
    #[track_caller]
    pub fn new(primal: FloatTensor<B>, tangent: FloatTensor<B>) -> Self {
        let [required, given] = [&primal, &tangent].map(|x| (x.shape(), x.dtype()));
        assert!(required == given, "jvp: a tangent is {given:?}, its primal is {required:?}");
        Self { primal, tangent: Some(tangent) }
    }

    /// A value that does not move.
    pub fn constant(primal: FloatTensor<B>) -> Self {
        Self { primal, tangent: None }
    }

    /// The value.
    pub fn primal(&self) -> &FloatTensor<B> {
        &self.primal
    }

    /// The tangent; `None` is zero.
    pub fn tangent(&self) -> Option<&FloatTensor<B>> {
        self.tangent.as_ref()
    }

    /// Both parts.
    pub fn into_parts(self) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
        (self.primal, self.tangent)
    }

    /// Whether there is a tangent.
    pub(crate) fn moves(&self) -> bool {
        self.tangent.is_some()
    }

    /// The linear map `f` of both parts.
    pub(crate) fn linear(self, f: impl Fn(FloatTensor<B>) -> FloatTensor<B>) -> Self {
        Self { tangent: self.tangent.map(&f), primal: f(self.primal) }
    }

    /// `f(x)`, whose tangent is `rule(ẋ, x, f(x))`.
    pub(crate) fn chain(
        self,
        f: impl FnOnce(FloatTensor<B>) -> FloatTensor<B>,
        rule: impl FnOnce(Real<B>, Real<B>, Real<B>) -> Real<B>,
    ) -> Self {
        let Some(tangent) = self.tangent else { return Self::constant(f(self.primal)) };
        let primal = f(self.primal.clone());
        let tangent = rule(Real(tangent), Real(self.primal), Real(primal.clone()));
        Self { primal, tangent: Some(tangent.0) }
    }

    /// A result whose tangent is the sum of those given, each of which may have to be repeated.
    pub(crate) fn joined(
        primal: FloatTensor<B>,
        a: Option<FloatTensor<B>>,
        b: Option<FloatTensor<B>>,
    ) -> Self {
        let tangent = sum::<B>(a, b).map(|t| expanded::<B>(t, primal.shape()));
        Self { primal, tangent }
    }

    /// `f(x, y)`, which is linear in both operands.
    pub(crate) fn bilinear(
        self,
        y: Self,
        f: impl Fn(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    ) -> Self {
        let left = self.tangent.map(|t| f(t, y.primal.clone()));
        let right = y.tangent.map(|t| f(self.primal.clone(), t));
        Self::joined(f(self.primal, y.primal), left, right)
    }

    /// `f(x, y)`, which is linear in the pair of operands.
    pub(crate) fn together(
        self,
        y: Self,
        f: impl Fn(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    ) -> Self {
        let tangent = match (self.tangent, y.tangent) {
            (None, None) => None,
            (a, b) => Some(f(
                a.unwrap_or_else(|| zeros_like::<B>(&self.primal)),
                b.unwrap_or_else(|| zeros_like::<B>(&y.primal)),
            )),
        };
        Self { primal: f(self.primal, y.primal), tangent }
    }

    /// `f(x, y) = x + g(y)` with a linear g.
    pub(crate) fn accumulated(
        self,
        y: Self,
        f: impl Fn(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    ) -> Self {
        if y.moves() {
            return self.together(y, f);
        }
        Self { primal: f(self.primal, y.primal), tangent: self.tangent }
    }
}
