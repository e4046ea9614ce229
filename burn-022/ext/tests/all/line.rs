//! Names of Burn 0.22 for tests that several versions of Burn share.

pub(crate) use burn_dispatch::backends::Flex as Engine;
pub(crate) use burn_t4a_022_ext as ext;

/// Calls a function for each checkpointing strategy.
macro_rules! on_backends {
    ($f:ident) => {
        $f::<Engine, NoCheckpointing>();
        $f::<Engine, BalancedCheckpointing>();
    };
}

/// Tensors on a tape of Burn's `Dispatch`.
pub(crate) mod plain {
    use burn_t4a_022_ext::einsum::{
        ArraySemiring, Expression, FloatCancellative, FloatSelective, IntSemiring, Operand,
        Operands, counting_einsum, int_einsum, k_best_einsum, semiring_einsum,
    };
    use burn_tensor::{Device, Int};

    pub(crate) use burn_t4a_022_ext as ext;
    pub(crate) use burn_t4a_022_ext::Complex;
    pub(crate) use burn_t4a_022_ext::models::{
        Crf, CrfConfig, GaussianProcess, LinearChain, LowRankLinear, ScoredTags,
    };
    pub(crate) use burn_t4a_022_ext::module::Parameters;
    #[cfg(feature = "networks")]
    pub(crate) use burn_t4a_022_ext::networks::{BurnMpo, BurnMps};
    pub(crate) use burn_t4a_022_ext::operation::{flags, integers};
    pub(crate) use burn_tensor::Tensor;

    #[cfg(feature = "networks")]
    pub(crate) type Elements = burn_t4a_022_ext::primitive::Floats<burn_dispatch::Dispatch>;

    pub(crate) fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
        x.into_data().iter::<f64>().collect()
    }

    pub(crate) fn device() -> Device {
        Device::flex().autodiff()
    }

    pub(crate) fn semiring<S: ArraySemiring, const D: usize>(
        expression: impl Expression,
        operands: impl Operands<Operand>,
    ) -> ext::Result<Tensor<D>> {
        semiring_einsum::<S, D>(expression, operands)
    }

    pub(crate) fn ints<S: IntSemiring, const D: usize, const R: usize>(
        expression: impl Expression,
        operands: Vec<Tensor<R, Int>>,
    ) -> ext::Result<Tensor<D, Int>> {
        int_einsum::<S, D>(expression, operands)
    }

    pub(crate) fn counting<S: ArraySemiring + FloatCancellative, const D: usize, const R: usize>(
        expression: impl Expression + Clone,
        operands: Vec<Tensor<R>>,
    ) -> ext::Result<(Tensor<D>, Tensor<D, Int>)> {
        counting_einsum::<S, D>(expression, operands)
    }

    pub(crate) fn k_best<S: FloatSelective, const K: usize, const D: usize, const R: usize>(
        expression: impl Expression,
        operands: Vec<Tensor<R>>,
    ) -> ext::Result<Tensor<D>> {
        k_best_einsum::<S, K, D>(expression, operands)
    }
}

/// The same on another device.
macro_rules! elsewhere {
    ($name:ident, $device:expr) => {
        #[allow(unused_imports)]
        pub(crate) mod $name {
            use burn_tensor::Device;

            pub(crate) use super::plain::{
                LinearChain, ScoredTags, Tensor, counting, ext, flags, integers, ints, k_best,
                numbers, semiring,
            };

            #[allow(deprecated)]
            pub(crate) fn device() -> Device {
                $device
            }
        }
    };
}

elsewhere!(balanced, Device::flex().autodiff().gradient_checkpointing());
elsewhere!(eager, Device::flex());
#[cfg(feature = "ndarray")]
elsewhere!(ndarray, Device::ndarray().autodiff());
#[cfg(feature = "ndarray")]
elsewhere!(eager_ndarray, Device::ndarray());
