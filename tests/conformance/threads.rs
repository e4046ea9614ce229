//! Use from several threads at once.

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

/// User-defined Rayon pools: their workers must not execute tasks of each other while the engine waits.
mod foreign_pools {
    use super::*;
    use burn::tensor::Distribution;
    use rayon::prelude::*;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn backward_passes_in_a_par_iter_end() {
        // Burn holds a lock while it executes a graph.
        let device = Default::default();
        let graphs: Vec<_> = (0..8)
            .map(|_| {
                let a = Tensor::<B, 2>::random([1200, 1200], Distribution::Default, &device);
                let a = a.require_grad();
                (a.clone(), a.matmul(Tensor::ones([1200, 64], &device)).exp().mean())
            })
            .collect();
        let (send, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            pool(3).install(|| {
                graphs.par_iter().for_each(|(a, y)| {
                    let grads = y.backward();
                    assert!(a.grad(&grads).is_some());
                });
            });
            send.send(()).unwrap();
        });
        let minutes = std::time::Duration::from_secs(300);
        done.recv_timeout(minutes).expect("the passes wait for each other");
    }

    #[test]
    fn operations_in_a_par_iter_are_not_nested() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let x = Tensor::<BurnT4a, 2>::ones([1100, 1100], &Default::default());
        pool(2).install(|| {
            (0..40).into_par_iter().for_each(|i| {
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                let y = (x.clone() * i as f32 * 0.01).exp().mean().into_scalar();
                assert!((y - (i as f32 * 0.01).exp()).abs() < 1e-3 * y);
                inside.fetch_sub(1, Ordering::SeqCst);
            });
        });
        // At most as many at a time as the pool has workers: each allocates its own scratch memory.
        assert!(most.into_inner() <= 2);
    }

    #[test]
    fn large_factorisations_in_a_par_iter_end() {
        use burn_t4a::ext::linalg::qr;
        let device = Default::default();
        pool(2).install(|| {
            (0..6).into_par_iter().for_each(|_| {
                let a = Tensor::<BurnT4a, 2>::random([200, 200], Distribution::Default, &device);
                let qr = qr(a.clone()).unwrap();
                let error = (qr.q.matmul(qr.r) - a).abs().max().into_scalar();
                assert!(error < 1e-4, "{error}");
            });
        });
    }
}
