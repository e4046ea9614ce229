//! Chains on tapes over the engine and over Flex: the text of the tests, which both lines of Burn share, is in
//! `face/ext/tests`.

/// Tensors of one backend.
macro_rules! on {
    ($name:ident, $Backend:ty) => {
        mod $name {
            pub(crate) use burn_t4a::ext;

            mod arrays;
            mod networks;

            type Tape = burn_autodiff::Autodiff<$Backend>;
            type Tensor<const D: usize> = burn_tensor::Tensor<Tape, D>;
            type BurnMps<S> = ext::networks::BurnMps<Tape, S>;
            type BurnMpo<S> = ext::networks::BurnMpo<Tape, S>;
            type Elements = ext::primitive::Floats<Tape>;

            fn numbers<B: burn_backend::Backend, const D: usize>(
                x: burn_tensor::Tensor<B, D>,
            ) -> Vec<f64> {
                x.into_data().iter::<f64>().collect()
            }

            fn device() -> burn_backend::tensor::Device<Tape> {
                Default::default()
            }
        }
    };
}

on!(plain, burn_t4a::BurnT4a);
on!(flex, burn_flex::Flex);
