//! A matrix product state as a layer of a neural net.

use burn_core as burn;
use burn_core::module::{Module, Param};
use burn_core::tensor::backend::Backend;
use burn_core::tensor::{Distribution, Tensor};
use t4a_networks::{NetworksError, Result};

use super::contract_features;
use crate::ext::operation::Operations;

/// Features of a sequence of sites to a vector: the product of the matrices `Σ_s φ[n, k, s] Aₖ[:, s, :]`, scaled to
/// norm `√outputs`.
#[derive(Module, Debug)]
pub struct MpsLayer<B: Backend> {
    /// Cores `[l, features, r]`, one for each site.
    pub cores: Vec<Param<Tensor<B, 3>>>,
}

impl<B: Operations> MpsLayer<B> {
    /// Cores of bond dimension `outputs`: identities for feature 0, normal numbers of deviation `noise` for the others.
    ///
    /// With a feature 0 that is 1, such as a constant, long sequences neither vanish nor explode at first.
    ///
    /// # Errors
    /// `Argument` for a size of 0.
    pub fn new(
        sites: usize,
        features: usize,
        outputs: usize,
        noise: f64,
        device: &B::Device,
    ) -> Result<Self> {
        if sites.min(features).min(outputs) == 0 {
            let (op, name, given) = ("mps layer", "a size", "0".into());
            return Err(NetworksError::Argument { op, name, given, required: "at least 1" });
        }
        let core = |site: usize| {
            let unit: Tensor<B, 3> = Tensor::<B, 2>::eye(outputs, device).unsqueeze_dim(1);
            let mut parts = vec![unit];
            if features > 1 {
                let normal = Distribution::Normal(0.0, noise);
                parts.push(Tensor::random([outputs, features - 1, outputs], normal, device));
            }
            let core = Tensor::cat(parts, 1);
            Param::from_tensor(if site == 0 { core.sum_dim(0) } else { core })
        };
        Ok(Self { cores: (0..sites).map(core).collect() })
    }

    /// Features `[n, sites, features]` to `[n, outputs]`.
    ///
    /// # Errors
    /// `Length`, `Chain` for other numbers of sites and features.
    pub fn forward(&self, features: Tensor<B, 3>) -> Result<Tensor<B, 2>> {
        let [n, sites, d] = features.dims();
        let cores: Vec<_> = self.cores.iter().map(Param::val).collect();
        let outputs = cores.last().map_or(1, |core| core.dims()[2]);
        let of_site = |k| features.clone().narrow(1, k, 1).reshape([n, d]);
        let (rows, _) = contract_features(&cores, &(0..sites).map(of_site).collect::<Vec<_>>())?;
        Ok(rows * (outputs as f64).sqrt())
    }
}
