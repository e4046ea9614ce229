//! Linear layer with a weight of low rank.

use burn_core as burn;
use burn_core::module::{Initializer, Module, Param};
use burn_core::tensor::Tensor;
use burn_core::tensor::backend::Backend;

use crate::ext::linalg::{LinalgError, Svd, Truncation, svd_truncated};
use crate::ext::operation::Operations;

/// `y = x A B + bias` with `A` of shape `[input, rank]` and `B` of shape `[rank, output]`.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::Tensor;
/// use burn_t4a::models::LowRankLinear;
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// type B = BurnT4a;
/// // A weight of rank 1 has two vectors as parameters.
/// let weight = Tensor::<B, 2>::from_floats([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], &T4aDevice);
/// let layer = LowRankLinear::<B>::from_weight(weight.clone(), None, 1)?;
/// assert_eq!(layer.num_params(), 2 + 3);
/// let x = Tensor::<B, 2>::from_floats([[1.0, 0.0], [1.0, -1.0]], &T4aDevice);
/// let error = (layer.forward(x.clone()) - x.matmul(weight)).abs().max().into_scalar();
/// assert!(error < 1e-5);
/// # Ok::<(), burn_t4a::ext::linalg::LinalgError>(())
/// ```
#[derive(Module, Debug)]
pub struct LowRankLinear<B: Backend> {
    /// `A`, shape `[input, rank]`.
    pub down: Param<Tensor<B, 2>>,
    /// `B`, shape `[rank, output]`.
    pub up: Param<Tensor<B, 2>>,
    /// Bias, shape `[output]`.
    pub bias: Option<Param<Tensor<B, 1>>>,
}

impl<B: Backend> LowRankLinear<B> {
    /// Random factors: for independent elements of x with variance 1, `x A B` has variance about 1. The bias is 0.
    pub fn new(input: usize, output: usize, rank: usize, device: &B::Device) -> Self {
        let normal =
            |size: usize| Initializer::Normal { mean: 0.0, std: 1.0 / (size.max(1) as f64).sqrt() };
        Self {
            down: normal(input).init([input, rank], device),
            up: normal(rank).init([rank, output], device),
            bias: Some(Initializer::Zeros.init([output], device)),
        }
    }

    /// Maps `[…, input]` to `[…, output]`, for `D ≥ 2`. Cost: `rank (input + output)` multiply-adds per row.
    pub fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        let y = x.matmul(self.down.val().unsqueeze()).matmul(self.up.val().unsqueeze());
        match &self.bias {
            Some(bias) => y + bias.val().unsqueeze(),
            None => y,
        }
    }
}

impl<B: Operations> LowRankLinear<B> {
    /// Initialises the layer with the best approximation of a weight `[input, output]` with at most this rank.
    ///
    /// # Errors
    /// As [`svd_truncated`]; a rank of 0 is an error.
    pub fn from_weight(
        weight: Tensor<B, 2>,
        bias: Option<Tensor<B, 1>>,
        rank: usize,
    ) -> Result<Self, LinalgError> {
        let Svd { u, s, vh } = svd_truncated(weight, &Truncation::new().max_dim(rank))?.kept;
        // The singular values are split between both factors, so that both are of the same scale in training.
        let root: Tensor<B, 1> = s.sqrt();
        let up = root.clone().unsqueeze_dim::<2>(1) * vh;
        Ok(Self {
            down: Param::from_tensor((u * root.unsqueeze::<2>()).detach()),
            up: Param::from_tensor(up.detach()),
            bias: bias.map(|bias| Param::from_tensor(bias.detach())),
        })
    }
}
