//! The matrix-product-state layer: one site per row of the image.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::structured::{Direction, Leg, Result, Spec, Structured, Weights, Z2};

/// Number of features of each parity.
pub const EVEN: usize = 10;
const ODD: usize = 10;

/// Row k maps the state s to `s + Σ sₗ φₚ Aₗₚᵣ`, where φ consists of 1 and the pixels of the row, as sums and
/// differences of mirror images.
#[derive(Module, Debug)]
pub struct Rows<B: Backend> {
    sites: Vec<Weights<B, Spec<Z2>>>,
    /// Even part of the initial state.
    first: Param<Tensor<B, 1>>,
}

impl<B: Operations> Rows<B> {
    pub fn new(device: &B::Device) -> Result<Self> {
        let leg =
            |even, odd, direction| Leg::new([(Z2::new(0), even), (Z2::new(1), odd)], direction);
        let legs = vec![
            leg(EVEN, ODD, Direction::Out)?,
            leg(5, 4, Direction::Out)?,
            leg(EVEN, ODD, Direction::In)?,
        ];
        let spec = Spec::new(legs, Z2::new(0), 2)?;
        let site = |_| Weights::normal(&spec, device);
        let first = Param::from_tensor(Tensor::ones([EVEN], device));
        Ok(Self { sites: (0..8).map(site).collect::<Result<_>>()?, first })
    }

    pub fn features(&self) -> usize {
        EVEN + ODD
    }

    /// Images `[n, 1, 8, 8]` to features `[n, even and odd]`.
    pub fn forward(&self, images: Tensor<B, 4>) -> Result<Tensor<B, 2>> {
        let [n, ..] = images.dims();
        let device = images.device();
        let left = images.clone().narrow(3, 0, 4);
        let right = images.narrow(3, 4, 4).flip([3]);
        let one = Tensor::ones([n, 1, 8, 1], &device);
        let pixels =
            Tensor::cat(vec![one, (left.clone() + right.clone()) * 0.5, (left - right) * 0.5], 3);
        let odd = Tensor::zeros([n, ODD], &device);
        let even = self.first.val().unsqueeze::<2>().expand([n, EVEN]);
        let mut state = Tensor::cat(vec![even, odd], 1);
        for (k, site) in self.sites.iter().enumerate() {
            let row: Tensor<B, 2> = pixels.clone().narrow(2, k, 1).reshape([n, 9]);
            let site: Tensor<B, 3> = site.tensor()?.to_tensor()?;
            let [l, p, r] = site.dims();
            let site: Tensor<B, 2> = site.reshape([l * p, r]);
            let pairs = state.clone().unsqueeze_dim::<3>(2) * row.unsqueeze_dim::<3>(1);
            let step = pairs.reshape([n, l * p]).matmul(site);
            state = state + step * 0.5;
        }
        Ok(state)
    }
}
