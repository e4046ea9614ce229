//! Burn 0.21 by the names of tests that both lines share.

pub(crate) use burn_t4a::BurnT4a as Engine;
pub(crate) use burn_t4a::ext;

/// Calls a function for each backend and strategy of checkpointing.
macro_rules! on_backends {
    ($f:ident) => {
        $f::<Engine, NoCheckpointing>();
        $f::<Engine, BalancedCheckpointing>();
        $f::<burn_flex::Flex, NoCheckpointing>();
        $f::<burn_flex::Flex, BalancedCheckpointing>();
    };
}

/// Tensors on a tape over one backend.
macro_rules! tensors {
    ($name:ident, $B:ty, $C:ident) => {
        #[allow(dead_code)]
        pub(crate) mod $name {
            use burn_autodiff::Autodiff;
            use burn_autodiff::checkpoint::strategy::$C;
            use burn_backend::tensor::Device;
            use burn_t4a::ext::einsum::{
                ArraySemiring, Expression, FloatCancellative, FloatSelective, IntSemiring,
                counting_einsum, int_einsum, k_best_einsum,
            };
            use burn_tensor::{Float, Int};

            pub(crate) use burn_t4a::ext;

            pub(crate) type Tape = Autodiff<$B, $C>;
            pub(crate) type Tensor<const D: usize, K = Float> = burn_tensor::Tensor<Tape, D, K>;
            pub(crate) type Complex<const D: usize> = ext::Complex<Tape, D>;

            pub(crate) fn device() -> Device<Tape> {
                Default::default()
            }

            pub(crate) fn ints<S: IntSemiring, const D: usize, const R: usize>(
                expression: impl Expression,
                operands: Vec<Tensor<R, Int>>,
            ) -> ext::Result<Tensor<D, Int>> {
                int_einsum::<S, Tape, D>(expression, operands)
            }

            pub(crate) fn counting<S: ArraySemiring + FloatCancellative, const D: usize>(
                expression: impl Expression + Clone,
                operands: Vec<Tensor<1>>,
            ) -> ext::Result<(Tensor<D>, Tensor<D, Int>)> {
                counting_einsum::<S, Tape, D>(expression, operands)
            }

            pub(crate) fn k_best<S: FloatSelective, const K: usize, const D: usize>(
                expression: impl Expression,
                operands: Vec<Tensor<1>>,
            ) -> ext::Result<Tensor<D>> {
                k_best_einsum::<S, K, Tape, D>(expression, operands)
            }
        }
    };
}

tensors!(plain, burn_t4a::BurnT4a, NoCheckpointing);
tensors!(balanced, burn_t4a::BurnT4a, BalancedCheckpointing);
tensors!(flex, burn_flex::Flex, NoCheckpointing);
