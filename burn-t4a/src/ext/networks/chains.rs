//! Chains on a backend, from and to Burn tensors.

use burn_backend::AutodiffBackend;
use burn_tensor::Tensor;
use t4a_networks::{DenseCore, Mpo, Mps, Result};
use t4a_structured::{Sector, Trivial};

use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;
use crate::ext::structured::{GradedTensor, Structured};
#[cfg(feature = "module")]
use crate::ext::structured::{Spec, Weights};

/// A state on a backend.
pub type BurnMps<B, S> = Mps<S, Floats<B>>;
/// An operator on a backend.
pub type BurnMpo<B, S> = Mpo<S, Floats<B>>;

/// Methods of chains on a backend beside their own.
pub trait BurnChain<B: Operations>: Sized {
    /// The symmetry.
    type Sector: Sector;
    /// The chain on the engine.
    type Engine;
    /// The chain on another backend.
    type On<C: Operations>;

    /// A chain of the engine on a device, in its type.
    ///
    /// # Errors
    /// Those of the memory.
    fn from_engine(engine: &Self::Engine, device: &B::Device) -> Result<Self>;

    /// A leaf of the tape for each tensor.
    fn require_grad(&self) -> Self;

    /// Cut off from what it was computed from.
    fn detach(&self) -> Self;

    /// The gradients at leaves, as a chain of the same structure; a tensor without one counts as zero. None if no tensor
    /// has one.
    fn grad(&self, gradients: &B::Gradients) -> Option<Self::On<B::InnerBackend>>
    where
        B: AutodiffBackend,
        B::InnerBackend: Operations;

    /// Dense cores of a real chain, zeros included: `[l, d, r]` of a state, `[l, output, input, r]` of an operator.
    ///
    /// # Errors
    /// `Structured` for another rank and for complex tensors.
    fn to_tensors<const D: usize>(&self) -> Result<Vec<Tensor<B, D>>>;

    /// The tensors as parameters of a module, which they begin with.
    #[cfg(feature = "module")]
    fn to_weights(&self) -> Vec<Weights<B, Spec<Self::Sector>>>;

    /// The chain of parameters, on the tape.
    ///
    /// # Errors
    /// `Structured` after a record of other structures was loaded; those of chains.
    #[cfg(feature = "module")]
    fn from_weights(weights: &[Weights<B, Spec<Self::Sector>>]) -> Result<Self>;
}

/// Chains of dense Burn tensors, without a symmetry.
pub trait BurnCores<B: Operations, const D: usize>: Sized {
    /// The chain of these cores, on their tape.
    ///
    /// # Errors
    /// `Length` for none; `Chain` for cores that do not fit.
    fn from_tensors(cores: impl IntoIterator<Item = Tensor<B, D>>) -> Result<Self>;
}

/// Tensors of a chain fit each other.
fn accept<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| unreachable!("tensors of a chain: {error}"))
}

macro_rules! chains {
    ($($chain:ident $rank:literal)*) => {$(
        impl<B: Operations, S: Sector> BurnChain<B> for $chain<S, Floats<B>> {
            type Sector = S;
            type Engine = $chain<S>;
            type On<C: Operations> = $chain<S, Floats<C>>;

            fn from_engine(engine: &$chain<S>, device: &B::Device) -> Result<Self> {
                let over = |x| <GradedTensor<B, S> as Structured<B>>::from_engine(x, device);
                Self::new(engine.tensors().iter().map(over).collect::<Result<_, _>>()?)
            }
            fn require_grad(&self) -> Self {
                accept(Self::new(self.tensors().iter().map(|x| x.require_grad()).collect()))
            }
            fn detach(&self) -> Self {
                accept(Self::new(self.tensors().iter().map(|x| x.detach()).collect()))
            }
            fn grad(&self, gradients: &B::Gradients) -> Option<Self::On<B::InnerBackend>>
            where
                B: AutodiffBackend,
                B::InnerBackend: Operations,
            {
                let all: Vec<_> = self.tensors().iter().map(|x| x.grad(gradients)).collect();
                if all.iter().all(Option::is_none) {
                    return None;
                }
                let zeros = |k: usize| self.tensors()[k].valid().scale(0.0);
                let all = all.into_iter().enumerate().map(|(k, x)| x.unwrap_or_else(|| zeros(k)));
                Some(accept($chain::new(all.collect())))
            }
            fn to_tensors<const D: usize>(&self) -> Result<Vec<Tensor<B, D>>> {
                Ok(self.tensors().iter().map(|x| x.to_tensor()).collect::<Result<_, _>>()?)
            }
            #[cfg(feature = "module")]
            fn to_weights(&self) -> Vec<Weights<B, Spec<S>>> {
                self.tensors().iter().map(Weights::new).collect()
            }
            #[cfg(feature = "module")]
            fn from_weights(weights: &[Weights<B, Spec<S>>]) -> Result<Self> {
                Self::new(weights.iter().map(|x| x.tensor()).collect::<Result<_, _>>()?)
            }
        }

        impl<B: Operations> BurnCores<B, $rank> for $chain<Trivial, Floats<B>> {
            fn from_tensors(cores: impl IntoIterator<Item = Tensor<B, $rank>>) -> Result<Self> {
                Self::from_cores(cores.into_iter().map(|x| (Floats::from(x), None)))
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
/// use burn::backend::Autodiff;
/// use burn::tensor::{DType, Tensor};
/// use burn_t4a::ext::networks::sites::{Sites, spin_half};
/// use burn_t4a::ext::networks::{BurnChain, BurnMps, Mps, Sum, weighted};
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// type B = Autodiff<BurnT4a>;
/// // ⟨Up Dn| w₀ Sᶻ₀ + w₁ Sᶻ₁ |Up Dn⟩ = (w₀ − w₁)/2
/// let sites = Sites::uniform(spin_half(), 2);
/// let operator = |site: usize| {
///     let mut sum = Sum::new(&sites);
///     sum.add(1.0, [("Sz", site)]);
///     sum.mpo()
/// };
/// let w = Tensor::<B, 1>::from_data([3.0f64, 2.0], (&T4aDevice, DType::F64)).require_grad();
/// let h = weighted(&[operator(0)?, operator(1)?], w.clone())?;
/// let state = BurnMps::from_engine(&Mps::product(&sites, ["Up", "Dn"])?, &T4aDevice)?;
/// let energy: Tensor<B, 1> = state.energy(&h)?.tensor()?;
/// energy.to_data().assert_approx_eq::<f64>(&[0.5f64].into(), Default::default());
/// let gradient = w.grad(&energy.backward()).unwrap().into_data();
/// gradient.assert_approx_eq::<f64>(&[0.5f64, -0.5].into(), Default::default());
/// # Ok::<(), burn_t4a::ext::networks::NetworksError>(())
/// ```
pub fn weighted<B: Operations, S: Sector>(
    operators: &[Mpo<S>],
    weights: Tensor<B, 1>,
) -> Result<BurnMpo<B, S>> {
    let weight = |k| Floats::from(weights.clone().narrow(0, k, 1));
    Mpo::weighted(operators, &(0..weights.dims()[0]).map(weight).collect::<Vec<_>>())
}

/// `y[n, :] = Πₖ (Σ_s φₖ[n, s] Aₖ[:, s, :])` of cores `[l, d, r]` and features `φₖ [n, d]`, one tensor per site: rows of norm
/// 1, and `[n, 1]` the logarithms of their norms. See [`t4a_networks::contract_features`].
///
/// # Errors
/// As there.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::networks::contract_features;
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// // Two sites and one bond of dimension 1: 1 · 3 and 2 · 4.
/// let core = |x: f32, y: f32| Tensor::<BurnT4a, 3>::from_floats([[[x], [y]]], &T4aDevice);
/// let states = Tensor::<BurnT4a, 2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &T4aDevice);
/// let cores = [core(1.0, 2.0), core(3.0, 4.0)];
/// let (rows, ln_norm) = contract_features(&cores, &[states.clone(), states])?;
/// let y = rows * ln_norm.exp();
/// y.into_data().assert_approx_eq::<f32>(&[[3.0f32], [8.0]].into(), Default::default());
/// # Ok::<(), burn_t4a::ext::networks::NetworksError>(())
/// ```
pub fn contract_features<B: Operations>(
    cores: &[Tensor<B, 3>],
    features: &[Tensor<B, 2>],
) -> Result<(Tensor<B, 2>, Tensor<B, 2>)> {
    let cores: Vec<DenseCore<Floats<B>>> =
        cores.iter().map(|x| (Floats::from(x.clone()), None)).collect();
    let features: Vec<_> = features.iter().map(|x| Floats::from(x.clone())).collect();
    let rows = t4a_networks::contract_features(&cores, &features)?;
    Ok((rows.re.tensor()?, rows.ln_norm.tensor()?))
}
