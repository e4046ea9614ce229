//! Chains on Burn, from and to Burn tensors.

use burn_dispatch::Dispatch;
use burn_tensor::{Device, Gradients, Tensor};
use t4a_networks::{DenseCore, Mpo, Mps, Result};
use t4a_structured::{Sector, Trivial};

use crate::primitive::Floats;
use crate::structured::{GradedTensor, Structured};
#[cfg(feature = "module")]
use crate::structured::{Spec, Weights};

/// A state on Burn.
pub type BurnMps<S> = Mps<S, Floats<Dispatch>>;
/// An operator on Burn.
pub type BurnMpo<S> = Mpo<S, Floats<Dispatch>>;

/// Methods of chains on Burn beside their own.
pub trait BurnChain: Sized {
    /// The symmetry.
    type Sector: Sector;
    /// The chain on the engine.
    type Engine;

    /// A chain of the engine on a device, in its type.
    ///
    /// # Errors
    /// Those of the memory.
    fn from_engine(engine: &Self::Engine, device: &Device) -> Result<Self>;

    /// A leaf of the tape for each tensor.
    fn require_grad(&self) -> Self;

    /// Cut off from what it was computed from.
    fn detach(&self) -> Self;

    /// The gradients at leaves, as a chain of the same structure; a tensor without one counts as zero. None if no tensor
    /// has one.
    fn grad(&self, gradients: &Gradients) -> Option<Self>;

    /// Dense cores of a real chain, zeros included: `[l, d, r]` of a state, `[l, output, input, r]` of an operator.
    ///
    /// # Errors
    /// `Structured` for another rank and for complex tensors.
    fn to_tensors<const D: usize>(&self) -> Result<Vec<Tensor<D>>>;

    /// The tensors as parameters of a module, which they begin with.
    #[cfg(feature = "module")]
    fn to_weights(&self) -> Vec<Weights<Spec<Self::Sector>>>;

    /// The chain of parameters, on the tape.
    ///
    /// # Errors
    /// `Structured` after a record of other structures was loaded; those of chains.
    #[cfg(feature = "module")]
    fn from_weights(weights: &[Weights<Spec<Self::Sector>>]) -> Result<Self>;
}

/// Chains of dense Burn tensors, without a symmetry.
pub trait BurnCores<const D: usize>: Sized {
    /// The chain of these cores, on their tape.
    ///
    /// # Errors
    /// `Length` for none; `Chain` for cores that do not fit.
    fn from_tensors(cores: impl IntoIterator<Item = Tensor<D>>) -> Result<Self>;
}

/// Tensors of a chain fit each other.
fn accept<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| unreachable!("tensors of a chain: {error}"))
}

macro_rules! chains {
    ($($chain:ident $rank:literal)*) => {$(
        impl<S: Sector> BurnChain for $chain<S, Floats<Dispatch>> {
            type Sector = S;
            type Engine = $chain<S>;

            fn from_engine(engine: &$chain<S>, device: &Device) -> Result<Self> {
                let over = |x| <GradedTensor<S> as Structured>::from_engine(x, device);
                Self::new(engine.tensors().iter().map(over).collect::<Result<_, _>>()?)
            }
            fn require_grad(&self) -> Self {
                accept(Self::new(self.tensors().iter().map(|x| x.require_grad()).collect()))
            }
            fn detach(&self) -> Self {
                accept(Self::new(self.tensors().iter().map(|x| x.detach()).collect()))
            }
            fn grad(&self, gradients: &Gradients) -> Option<Self> {
                let all: Vec<_> = self.tensors().iter().map(|x| x.grad(gradients)).collect();
                if all.iter().all(Option::is_none) {
                    return None;
                }
                let zeros = |k: usize| self.tensors()[k].valid().scale(0.0);
                let all = all.into_iter().enumerate().map(|(k, x)| x.unwrap_or_else(|| zeros(k)));
                Some(accept($chain::new(all.collect())))
            }
            fn to_tensors<const D: usize>(&self) -> Result<Vec<Tensor<D>>> {
                Ok(self.tensors().iter().map(|x| x.to_tensor()).collect::<Result<_, _>>()?)
            }
            #[cfg(feature = "module")]
            fn to_weights(&self) -> Vec<Weights<Spec<S>>> {
                self.tensors().iter().map(Weights::new).collect()
            }
            #[cfg(feature = "module")]
            fn from_weights(weights: &[Weights<Spec<S>>]) -> Result<Self> {
                Self::new(weights.iter().map(|x| x.tensor()).collect::<Result<_, _>>()?)
            }
        }

        impl BurnCores<$rank> for $chain<Trivial, Floats<Dispatch>> {
            fn from_tensors(cores: impl IntoIterator<Item = Tensor<$rank>>) -> Result<Self> {
                Self::from_cores(cores.into_iter().map(|x| (Floats::<Dispatch>::from(x), None)))
            }
        }
    )*};
}

chains! { Mps 3 Mpo 4 }

/// `Σₖ cₖ Oₖ` with the elements of a tensor as numbers: a Hamiltonian of parameters on the tape.
///
/// # Errors
/// As [`Mpo::weighted`].
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_t4a_022_ext::networks::sites::{Sites, spin_half};
/// use burn_t4a_022_ext::networks::{BurnChain, BurnMps, Mps, Sum, weighted};
///
/// // ⟨Up Dn| w₀ Sᶻ₀ + w₁ Sᶻ₁ |Up Dn⟩ = (w₀ − w₁)/2
/// let sites = Sites::uniform(spin_half(), 2);
/// let operator = |site: usize| {
///     let mut sum = Sum::new(&sites);
///     sum.add(1.0, [("Sz", site)]);
///     sum.mpo()
/// };
/// let w = Tensor::<1>::from_data([3.0f64, 2.0], (&Device::flex().autodiff(), DType::F64)).require_grad();
/// let h = weighted(&[operator(0)?, operator(1)?], w.clone())?;
/// let state = BurnMps::from_engine(&Mps::product(&sites, ["Up", "Dn"])?, &Device::flex().autodiff())?;
/// let energy: Tensor<1> = state.energy(&h)?.tensor()?;
/// energy.to_data().assert_approx_eq::<f64>(&[0.5f64].into(), Default::default());
/// let gradient = w.grad(&energy.backward()).unwrap().into_data();
/// gradient.assert_approx_eq::<f64>(&[0.5f64, -0.5].into(), Default::default());
/// # Ok::<(), burn_t4a_022_ext::networks::NetworksError>(())
/// ```
pub fn weighted<S: Sector>(operators: &[Mpo<S>], weights: Tensor<1>) -> Result<BurnMpo<S>> {
    let weight = |k| Floats::<Dispatch>::from(weights.clone().narrow(0, k, 1));
    Mpo::weighted(operators, &(0..weights.dims()[0]).map(weight).collect::<Vec<_>>())
}

/// `y[n, :] = Πₖ (Σ_s φₖ[n, s] Aₖ[:, s, :])` of cores `[l, d, r]` and features `φₖ [n, d]`, one tensor per site: rows of norm
/// 1, and `[n, 1]` the logarithms of their norms. See [`t4a_networks::contract_features`].
///
/// # Errors
/// As there.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::networks::contract_features;
///
/// // Two sites and one bond of dimension 1: 1 · 3 and 2 · 4.
/// let core = |x: f32, y: f32| Tensor::<3>::from_floats([[[x], [y]]], &Device::flex());
/// let states = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &Device::flex());
/// let cores = [core(1.0, 2.0), core(3.0, 4.0)];
/// let (rows, ln_norm) = contract_features(&cores, &[states.clone(), states])?;
/// let y = rows * ln_norm.exp();
/// y.into_data().assert_approx_eq::<f32>(&[[3.0f32], [8.0]].into(), Default::default());
/// # Ok::<(), burn_t4a_022_ext::networks::NetworksError>(())
/// ```
pub fn contract_features(
    cores: &[Tensor<3>],
    features: &[Tensor<2>],
) -> Result<(Tensor<2>, Tensor<2>)> {
    let cores: Vec<DenseCore<Floats<Dispatch>>> =
        cores.iter().map(|x| (Floats::<Dispatch>::from(x.clone()), None)).collect();
    let features: Vec<_> = features.iter().map(|x| Floats::<Dispatch>::from(x.clone())).collect();
    let rows = t4a_networks::contract_features(&cores, &features)?;
    Ok((rows.re.tensor()?, rows.ln_norm.tensor()?))
}
