//! The tensor-train layer, and its comparison with the equivalent dense matrix.

use burn::backend::Autodiff;
use burn::module::{Module, Param};
use burn::tensor::backend::Backend;
use burn::tensor::{Distribution, Tensor, Tolerance};
use burn_t4a::ext::einsum::einsum;
use burn_t4a::ext::operation::Operations;
use burn_t4a::{BurnT4a, T4aDevice};

use crate::Result;

/// `y = x W + bias` for W a tensor train: `[n, 64]` to `[n, 256]`.
#[derive(Module, Debug)]
pub struct TensorTrain<B: Backend> {
    first: Param<Tensor<B, 3>>,
    middle: Param<Tensor<B, 4>>,
    last: Param<Tensor<B, 3>>,
    bias: Param<Tensor<B, 1>>,
}

impl<B: Backend> TensorTrain<B> {
    pub fn new(rank: usize, device: &B::Device) -> Self {
        // An element of W is a sum of rank² products of three; its variance is 2/64 (He initialisation).
        let deviation = (2.0 / (64.0 * (rank * rank) as f64)).powf(1.0 / 6.0);
        let normal = Distribution::Normal(0.0, deviation);
        Self {
            first: Param::from_tensor(Tensor::random([4, 4, rank], normal, device)),
            middle: Param::from_tensor(Tensor::random([rank, 4, 8, rank], normal, device)),
            last: Param::from_tensor(Tensor::random([rank, 4, 8], normal, device)),
            bias: Param::from_tensor(Tensor::zeros([256], device)),
        }
    }
}

impl<B: Operations> TensorTrain<B> {
    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let n = x.dims()[0];
        let x = x.reshape([n, 4, 4, 4]);
        let cores = (x, self.first.val(), self.middle.val(), self.last.val());
        let y: Tensor<B, 4> = match einsum("nabc,air,rbjs,sck->nijk", cores) {
            Ok(y) => y,
            Err(error) => panic!("{error}"),
        };
        y.reshape([n, 256]) + self.bias.val().unsqueeze()
    }

    /// The equivalent dense matrix W.
    fn matrix(&self) -> Result<Tensor<B, 2>> {
        let cores = (self.first.val(), self.middle.val(), self.last.val());
        let w: Tensor<B, 6> = einsum("air,rbjs,sck->abcijk", cores)?;
        Ok(w.reshape([64, 256]))
    }
}

/// Outputs and gradients equal those of a product with W.
pub fn check_against_the_matrix() -> Result<()> {
    type AD = Autodiff<BurnT4a>;
    let layer = TensorTrain::<AD>::new(5, &T4aDevice);
    let x = Tensor::<AD, 2>::random([3, 64], Distribution::Default, &T4aDevice).require_grad();
    let (y, dense) = (layer.forward(x.clone()), x.clone().matmul(layer.matrix()?));
    y.clone()
        .into_data()
        .assert_approx_eq::<f32>(&dense.clone().into_data(), Tolerance::rel_abs(1e-3, 1e-3));
    let (ours, theirs) = (y.powi_scalar(2).sum().backward(), dense.powi_scalar(2).sum().backward());
    let pairs = [
        (x.grad(&ours).map(Tensor::into_data), x.grad(&theirs).map(Tensor::into_data)),
        (
            layer.middle.val().grad(&ours).map(Tensor::into_data),
            layer.middle.val().grad(&theirs).map(Tensor::into_data),
        ),
    ];
    for (ours, theirs) in pairs {
        let (ours, theirs) = (ours.ok_or("no gradient")?, theirs.ok_or("no gradient")?);
        ours.assert_approx_eq::<f32>(&theirs, Tolerance::rel_abs(1e-3, 1e-3));
    }
    Ok(())
}
