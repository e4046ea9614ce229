//! Linear layer with a weight of low rank.

use burn_core as burn;
use burn_core::module::{Module, Param};
use burn_tensor::{Device, Distribution, Tensor};

use crate::linalg::{LinalgError, Svd, Truncation, svd_truncated};

/// `y = x A B + bias` with `A` of shape `[input, rank]` and `B` of shape `[rank, output]`.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::models::LowRankLinear;
///
/// let device = Device::flex();
/// // A weight of rank 1 has two vectors as parameters.
/// let weight = Tensor::<2>::from_floats([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], &device);
/// let layer = LowRankLinear::from_weight(weight.clone(), None, 1)?;
/// assert_eq!(layer.num_params(), 2 + 3);
/// let x = Tensor::<2>::from_floats([[1.0, 0.0], [1.0, -1.0]], &device);
/// let error = (layer.forward(x.clone()) - x.matmul(weight)).abs().max().into_scalar::<f32>();
/// assert!(error < 1e-5);
/// # Ok::<(), burn_t4a_022_ext::linalg::LinalgError>(())
/// ```
#[derive(Module, Debug)]
pub struct LowRankLinear {
    /// `A`, shape `[input, rank]`.
    pub down: Param<Tensor<2>>,
    /// `B`, shape `[rank, output]`.
    pub up: Param<Tensor<2>>,
    /// Bias, shape `[output]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl LowRankLinear {
    /// Random factors: for independent elements of x with variance 1, `x A B` has variance about 1. The bias is 0.
    pub fn new(input: usize, output: usize, rank: usize, device: &Device) -> Self {
        let factor = |shape: [usize; 2]| {
            let normal = Distribution::Normal(0.0, 1.0 / (shape[0].max(1) as f64).sqrt());
            Param::from_tensor(Tensor::random(shape, normal, device))
        };
        Self {
            down: factor([input, rank]),
            up: factor([rank, output]),
            bias: Some(Param::from_tensor(Tensor::zeros([output], device))),
        }
    }

    /// Maps `[…, input]` to `[…, output]`, for `D ≥ 2`. Cost: `rank (input + output)` multiply-adds per row.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let y = x.matmul(self.down.val().unsqueeze()).matmul(self.up.val().unsqueeze());
        match &self.bias {
            Some(bias) => y + bias.val().unsqueeze(),
            None => y,
        }
    }

    /// Initialises the layer with the best approximation of a weight `[input, output]` with at most this rank.
    ///
    /// # Errors
    /// As [`svd_truncated`]; a rank of 0 is an error.
    pub fn from_weight(
        weight: Tensor<2>,
        bias: Option<Tensor<1>>,
        rank: usize,
    ) -> Result<Self, LinalgError> {
        let Svd { u, s, vh } = svd_truncated(weight, &Truncation::new().max_dim(rank))?.kept;
        // The singular values are split between both factors, so that both are of the same scale in training.
        let root: Tensor<1> = s.sqrt();
        let up = root.clone().unsqueeze_dim::<2>(1) * vh;
        Ok(Self {
            down: Param::from_tensor((u * root.unsqueeze::<2>()).detach()),
            up: Param::from_tensor(up.detach()),
            bias: bias.map(|bias| Param::from_tensor(bias.detach())),
        })
    }
}
