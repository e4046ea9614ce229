//! Names of Burn 0.21 for tests that several versions of Burn share.

pub(crate) use burn_t4a::BurnT4a as Engine;
pub(crate) use burn_t4a::ext;

/// Calls a function for each backend and checkpointing strategy.
macro_rules! on_backends {
    ($f:ident) => {
        $f::<Engine, NoCheckpointing>();
        $f::<Engine, BalancedCheckpointing>();
        $f::<burn_flex::Flex, NoCheckpointing>();
        $f::<burn_flex::Flex, BalancedCheckpointing>();
    };
}

/// Tensors of one backend.
macro_rules! tensors {
    ($name:ident, $Tape:ty) => {
        #[allow(dead_code, unused_imports)]
        pub(crate) mod $name {
            use burn_autodiff::Autodiff;
            use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
            use burn_backend::Backend;
            use burn_backend::tensor::Device;
            use burn_flex::Flex;
            use burn_t4a::BurnT4a;
            use burn_t4a::ext::einsum::{
                ArraySemiring, Expression, FloatCancellative, FloatSelective, IntSemiring, Operand,
                Operands, counting_einsum, int_einsum, k_best_einsum, semiring_einsum,
            };
            use burn_t4a::ext::operation::{self, Value};
            use burn_t4a::ext::primitive::{Bools, Indices};
            use burn_tensor::{Bool, Float, Int};

            pub(crate) use burn_t4a::ext;
            pub(crate) use burn_t4a::models::ScoredTags;

            pub(crate) type Tape = $Tape;
            pub(crate) type Tensor<const D: usize, K = Float> = burn_tensor::Tensor<Tape, D, K>;
            pub(crate) type Complex<const D: usize> = ext::Complex<Tape, D>;

            pub(crate) type LinearChain = burn_t4a::models::LinearChain<Tape>;
            pub(crate) type GaussianProcess = burn_t4a::models::GaussianProcess<Tape>;
            #[cfg(feature = "module")]
            pub(crate) type Crf = burn_t4a::models::Crf<Tape>;
            #[cfg(feature = "module")]
            pub(crate) use burn_t4a::models::CrfConfig;
            #[cfg(feature = "module")]
            pub(crate) type LowRankLinear = burn_t4a::models::LowRankLinear<Tape>;
            #[cfg(feature = "module")]
            pub(crate) type Parameters = burn_t4a::ext::module::Parameters<Tape>;

            pub(crate) fn numbers<B: Backend, const D: usize>(
                x: burn_tensor::Tensor<B, D>,
            ) -> Vec<f64> {
                x.into_data().iter::<f64>().collect()
            }

            pub(crate) fn device() -> Device<Tape> {
                Default::default()
            }

            pub(crate) fn integers<const D: usize>(x: Tensor<D, Int>) -> operation::Operand<Tape> {
                Value::Integers(Indices(x.into_primitive()))
            }

            pub(crate) fn flags<const D: usize>(x: Tensor<D, Bool>) -> operation::Operand<Tape> {
                Value::Flags(Bools(x.into_primitive()))
            }

            pub(crate) fn semiring<S: ArraySemiring, const D: usize>(
                expression: impl Expression,
                operands: impl Operands<Operand<Tape>>,
            ) -> ext::Result<Tensor<D>> {
                semiring_einsum::<S, Tape, D>(expression, operands)
            }

            pub(crate) fn ints<S: IntSemiring, const D: usize, const R: usize>(
                expression: impl Expression,
                operands: Vec<Tensor<R, Int>>,
            ) -> ext::Result<Tensor<D, Int>> {
                int_einsum::<S, Tape, D>(expression, operands)
            }

            pub(crate) fn counting<
                S: ArraySemiring + FloatCancellative,
                const D: usize,
                const R: usize,
            >(
                expression: impl Expression + Clone,
                operands: Vec<Tensor<R>>,
            ) -> ext::Result<(Tensor<D>, Tensor<D, Int>)> {
                counting_einsum::<S, Tape, D>(expression, operands)
            }

            pub(crate) fn k_best<
                S: FloatSelective,
                const K: usize,
                const D: usize,
                const R: usize,
            >(
                expression: impl Expression,
                operands: Vec<Tensor<R>>,
            ) -> ext::Result<Tensor<D>> {
                k_best_einsum::<S, K, Tape, D>(expression, operands)
            }
        }
    };
}

tensors!(plain, Autodiff<BurnT4a>);
tensors!(balanced, Autodiff<BurnT4a, BalancedCheckpointing>);
tensors!(flex, Autodiff<Flex>);
tensors!(twice, Autodiff<Autodiff<BurnT4a>>);
tensors!(twice_flex, Autodiff<Autodiff<Flex>>);
tensors!(eager, BurnT4a);
tensors!(eager_flex, Flex);
