//! Several threads at once.

use burn::backend::Autodiff;
use burn::nn::loss::{MseLoss, Reduction};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use burn_t4a::BurnT4a;

use crate::training::{batch, load, start};

type B = Autodiff<BurnT4a>;

fn gradients(start: &[u8], salt: usize) -> Vec<TensorData> {
    let model = load::<B>(start);
    let (x, y) = batch::<B>(salt);
    let loss = MseLoss::new().forward(model.forward(x), y, Reduction::Mean);
    let grads = GradientsParams::from_grads(loss.backward(), &model);
    assert_eq!(grads.len(), 4, "a gradient was lost");
    model_gradients(&model, grads)
}

fn model_gradients(model: &crate::training::Mlp<B>, grads: GradientsParams) -> Vec<TensorData> {
    use burn::module::{Module, ModuleVisitor, Param};
    struct Read<'a>(&'a GradientsParams, Vec<TensorData>);
    impl ModuleVisitor<B> for Read<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let grad = self.0.get::<BurnT4a, D>(param.id).expect("a gradient was lost");
            self.1.push(grad.into_data());
        }
    }
    let mut read = Read(&grads, Vec::new());
    model.visit(&mut read);
    read.1
}

#[test]
fn threads_that_train_at_once_lose_no_gradient() {
    let start = start();
    let want: Vec<_> = (0..4).map(|salt| gradients(&start, salt)).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            for (salt, want) in want.iter().enumerate() {
                let start = &start;
                scope.spawn(move || {
                    for _ in 0..50 {
                        assert_eq!(&gradients(start, salt), want);
                    }
                });
            }
        }
    });
}

#[test]
fn a_tensor_shared_by_threads_is_not_written() {
    let x = Tensor::<BurnT4a, 1>::ones([10_000], &Default::default());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let x = x.clone();
            scope.spawn(move || {
                for _ in 0..50 {
                    let y = (x.clone() + thread as f32).exp().neg().sum().into_scalar();
                    let want = -((1.0 + thread as f32).exp() * 10_000.0);
                    assert!((y - want).abs() <= 1e-4 * want.abs());
                }
            });
        }
    });
    assert!(x.into_data().iter::<f32>().all(|v| v == 1.0));
}
