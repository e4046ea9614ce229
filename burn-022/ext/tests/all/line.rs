//! Burn 0.22 by the names of tests that both lines share.

pub(crate) use burn_dispatch::backends::Flex as Engine;
pub(crate) use burn_t4a_022_ext as ext;

/// Calls a function for each strategy of checkpointing.
macro_rules! on_backends {
    ($f:ident) => {
        $f::<Engine, NoCheckpointing>();
        $f::<Engine, BalancedCheckpointing>();
    };
}

/// Tensors on a tape of Burn's choice.
pub(crate) mod plain {
    use burn_t4a_022_ext::einsum::{
        ArraySemiring, Expression, FloatCancellative, FloatSelective, IntSemiring, counting_einsum,
        int_einsum, k_best_einsum,
    };
    use burn_tensor::{Device, Int};

    pub(crate) use burn_t4a_022_ext as ext;
    pub(crate) use burn_t4a_022_ext::Complex;
    pub(crate) use burn_tensor::Tensor;

    pub(crate) fn device() -> Device {
        Device::flex().autodiff()
    }

    pub(crate) fn ints<S: IntSemiring, const D: usize, const R: usize>(
        expression: impl Expression,
        operands: Vec<Tensor<R, Int>>,
    ) -> ext::Result<Tensor<D, Int>> {
        int_einsum::<S, D>(expression, operands)
    }

    pub(crate) fn counting<S: ArraySemiring + FloatCancellative, const D: usize>(
        expression: impl Expression + Clone,
        operands: Vec<Tensor<1>>,
    ) -> ext::Result<(Tensor<D>, Tensor<D, Int>)> {
        counting_einsum::<S, D>(expression, operands)
    }

    pub(crate) fn k_best<S: FloatSelective, const K: usize, const D: usize>(
        expression: impl Expression,
        operands: Vec<Tensor<1>>,
    ) -> ext::Result<Tensor<D>> {
        k_best_einsum::<S, K, D>(expression, operands)
    }
}

/// The same with balanced checkpointing.
pub(crate) mod balanced {
    use burn_tensor::Device;

    pub(crate) use super::plain::{Tensor, ext};

    pub(crate) fn device() -> Device {
        Device::flex().autodiff().gradient_checkpointing()
    }
}
