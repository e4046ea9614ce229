//! A float tensor with its tangent, and common forms of derivative rules.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, Shape, TensorMetadata};

use crate::real::InnerFloat;

/// A float tensor and its tangent; a missing tangent represents zero, without cost.
///
/// The tangent has the shape, dtype and device of the primal.
///
/// ```
/// use burn::tensor::{Tensor, TensorPrimitive};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::jvp::{Jvp, JvpTensor};
///
/// let primitive = |x: [f32; 1]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice).into_primitive().tensor();
/// let x = JvpTensor::<BurnT4a>::new(primitive([2.0]), primitive([1.0]));
/// // The derivative of x³ is 3 x².
/// let y = Tensor::<Jvp<BurnT4a>, 1>::from_primitive(TensorPrimitive::Float(x)).powi_scalar(3);
/// let (_, dy) = y.into_primitive().tensor().into_parts();
/// let tensor = |x| Tensor::<BurnT4a, 1>::from_primitive(TensorPrimitive::Float(x));
/// tensor(dy.unwrap()).into_data().assert_eq(&[12.0f32].into(), false);
/// let constant = JvpTensor::<BurnT4a>::constant(primitive([2.0]));
/// assert!(constant.tangent().is_none());
/// tensor(constant.primal().clone()).into_data().assert_eq(&[2.0f32].into(), false);
/// ```
#[derive(Clone, Debug)]
pub struct JvpTensor<B: Backend> {
    /// Primal value.
    pub(crate) primal: FloatTensor<B>,
    /// Tangent; `None` represents zero.
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

/// Zeros with the shape, dtype and device of `x`.
pub(crate) fn zeros_like<B: Backend>(x: &FloatTensor<B>) -> FloatTensor<B> {
    B::float_zeros(x.shape(), &B::float_device(x), x.dtype().into())
}

/// `x`, broadcast to this shape.
pub(crate) fn expanded<B: Backend>(x: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    if x.shape() == shape { x } else { B::float_expand(x, shape) }
}

/// Sum of two tangents; `None` represents zero.
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
    /// A value with the given tangent.
    ///
    /// # Panics
    /// If shapes or dtypes differ.
    #[track_caller]
    pub fn new(primal: FloatTensor<B>, tangent: FloatTensor<B>) -> Self {
        let [required, given] = [&primal, &tangent].map(|x| (x.shape(), x.dtype()));
        assert!(required == given, "jvp: a tangent is {given:?}, its primal is {required:?}");
        Self { primal, tangent: Some(tangent) }
    }

    /// A value with zero tangent.
    pub fn constant(primal: FloatTensor<B>) -> Self {
        Self { primal, tangent: None }
    }

    /// Primal value.
    pub fn primal(&self) -> &FloatTensor<B> {
        &self.primal
    }

    /// Tangent; `None` represents zero.
    pub fn tangent(&self) -> Option<&FloatTensor<B>> {
        self.tangent.as_ref()
    }

    /// Splits into primal and tangent.
    pub fn into_parts(self) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
        (self.primal, self.tangent)
    }

    /// True if there is a tangent.
    pub(crate) fn moves(&self) -> bool {
        self.tangent.is_some()
    }

    /// Applies a linear map to primal and tangent.
    pub(crate) fn linear(self, f: impl Fn(FloatTensor<B>) -> FloatTensor<B>) -> Self {
        Self { tangent: self.tangent.map(&f), primal: f(self.primal) }
    }

    /// `f(x)`, whose tangent is `rule(ẋ, x, f(x))`.
    pub(crate) fn chain(
        self,
        f: impl FnOnce(FloatTensor<B>) -> FloatTensor<B>,
        rule: impl FnOnce(InnerFloat<B>, InnerFloat<B>, InnerFloat<B>) -> InnerFloat<B>,
    ) -> Self {
        let Some(tangent) = self.tangent else { return Self::constant(f(self.primal)) };
        let primal = f(self.primal.clone());
        let tangent =
            rule(InnerFloat(tangent), InnerFloat(self.primal), InnerFloat(primal.clone()));
        Self { primal, tangent: Some(tangent.0) }
    }

    /// A result whose tangent is the sum of the given ones, each broadcast to the result.
    pub(crate) fn joined(
        primal: FloatTensor<B>,
        a: Option<FloatTensor<B>>,
        b: Option<FloatTensor<B>>,
    ) -> Self {
        let tangent = sum::<B>(a, b).map(|t| expanded::<B>(t, primal.shape()));
        Self { primal, tangent }
    }

    /// `f(x, y)`, bilinear in x and y.
    pub(crate) fn bilinear(
        self,
        y: Self,
        f: impl Fn(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    ) -> Self {
        let left = self.tangent.map(|t| f(t, y.primal.clone()));
        let right = y.tangent.map(|t| f(self.primal.clone(), t));
        Self::joined(f(self.primal, y.primal), left, right)
    }

    /// `f(x, y)`, linear in the pair (x, y).
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
