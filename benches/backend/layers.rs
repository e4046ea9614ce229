//! Matrix products, convolutions, pooling and attention, and derivatives.

use burn::backend::Autodiff;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::module::{attention, avg_pool2d, conv2d, max_pool2d};
use burn::tensor::ops::{AttentionModuleOptions, ConvOptions, ModuleOps};
use burn::tensor::{Tensor, TensorPrimitive, activation};
use burn_t4a::ext::nn;

use crate::rows::{Row, floats, row, whole};
use crate::training::fused_norm;

pub(crate) fn products(rows: &mut Vec<Row>) {
    for n in [4, 16, 64, 256, 512, 1024] {
        row!(rows, format!("matmul {n}"), 1e-4, |d| {
            let (a, b) = (floats::<B, 2>([n, n], &d), floats::<B, 2>([n, n], &d));
            move || a.clone().matmul(b.clone())
        });
    }
    row!(rows, "matmul 512 transposed", 1e-4, |d| {
        let (a, b) = (floats::<B, 2>([512, 512], &d), floats::<B, 2>([512, 512], &d).transpose());
        move || a.clone().matmul(b.clone())
    });
    row!(rows, "matmul 64×256×64 batch 32", 1e-4, |d| {
        let (a, b) = (floats::<B, 3>([32, 64, 256], &d), floats::<B, 3>([32, 256, 64], &d));
        move || a.clone().matmul(b.clone())
    });
    row!(rows, "Q·Kᵀ 4×8×256×64 strided", 1e-4, |d| {
        let heads = |x: Tensor<B, 3>| x.reshape([4, 256, 8, 64]).swap_dims(1, 2);
        let (q, k) =
            (heads(floats::<B, 3>([4, 256, 512], &d)), heads(floats::<B, 3>([4, 256, 512], &d)));
        move || q.clone().matmul(k.clone().swap_dims(2, 3))
    });
    row!(rows, "matrix × vector 1024", 1e-4, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1], &d));
        move || a.clone().matmul(b.clone())
    });
}

pub(crate) fn modules(rows: &mut Vec<Row>) {
    row!(rows, "conv2d 8×32×56×56 64 3×3", 1e-4, |d| {
        let (x, w) = (floats::<B, 4>([8, 32, 56, 56], &d), floats::<B, 4>([64, 32, 3, 3], &d));
        move || {
            conv2d(
                x.clone(),
                w.clone(),
                None::<Tensor<B, 1>>,
                ConvOptions::new([1, 1], [1, 1], [1, 1], 1),
            )
        }
    });
    row!(rows, "max pool 2×2 8×32×56×56", 0.0, |d| {
        let x = floats::<B, 4>([8, 32, 56, 56], &d);
        move || max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false)
    });
    row!(rows, "avg pool 2×2 8×32×56×56", 1e-5, |d| {
        let x = floats::<B, 4>([8, 32, 56, 56], &d);
        move || avg_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], true, false)
    });
    let depthwise = || ConvOptions::new([1, 1], [1, 1], [1, 1], 64);
    row!(rows, "depthwise conv 8×64×56×56 3×3", 1e-4, |d| {
        let (x, w) = (floats::<B, 4>([8, 64, 56, 56], &d), floats::<B, 4>([64, 1, 3, 3], &d));
        move || conv2d(x.clone(), w.clone(), None::<Tensor<B, 1>>, depthwise())
    });
    row!(rows, "conv2d 1×1 8×64×28×28", 1e-4, |d| {
        let (x, w) = (floats::<B, 4>([8, 64, 28, 28], &d), floats::<B, 4>([64, 64, 1, 1], &d));
        let options = || ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
        move || conv2d(x.clone(), w.clone(), None::<Tensor<B, 1>>, options())
    });
    row!(rows, "max pool 3×3 stride 2", 0.0, |d| {
        let x = floats::<B, 4>([8, 32, 56, 56], &d);
        move || max_pool2d(x.clone(), [3, 3], [2, 2], [1, 1], [1, 1], false)
    });
    row!(rows, "attention 4×8×128×64", 1e-4, |d| {
        let (q, k, v) = (
            floats::<B, 4>([4, 8, 128, 64], &d),
            floats::<B, 4>([4, 8, 128, 64], &d),
            floats::<B, 4>([4, 8, 128, 64], &d),
        );
        move || {
            attention(
                q.clone(),
                k.clone(),
                v.clone(),
                None,
                None,
                AttentionModuleOptions::default(),
            )
        }
    });
}

/// The gradient of `Σ y·g` by the leaves, the first of them read back.
fn pull<B: AutodiffBackend, const D: usize, const E: usize>(
    leaf: Tensor<B, D>,
    y: Tensor<B, E>,
    g: Tensor<B, E>,
) -> Tensor<B::InnerBackend, D> {
    let grads = (y * g).sum().backward();
    leaf.grad(&grads).expect("a leaf")
}

pub(crate) fn derivatives(rows: &mut Vec<Row>) {
    macro_rules! convolution {
        ($name:expr, $x:expr, $w:expr, $y:expr, $groups:expr) => {
            row!(rows, $name, 1e-4, |d| {
                type A = Autodiff<B>;
                let x = floats::<A, 4>($x, &d).require_grad();
                let w = floats::<A, 4>($w, &d).require_grad();
                let g = floats::<A, 4>($y, &d);
                let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], $groups);
                move || {
                    let y = conv2d(x.clone(), w.clone(), None::<Tensor<A, 1>>, options());
                    pull(w.clone(), y, g.clone())
                }
            });
        };
    }
    let (x, y) = ([8, 32, 28, 28], [8, 64, 28, 28]);
    convolution!("conv2d fwd+bwd 8×32×28×28 64 3×3", x, [64, 32, 3, 3], y, 1);
    convolution!("depthwise fwd+bwd 8×64×28×28 3×3", y, [64, 1, 3, 3], y, 64);
    macro_rules! adjoint {
        ($name:expr, $x:expr, $w:expr, $y:expr, $groups:expr, $of:ident) => {
            row!(rows, $name, 1e-4, |d| {
                let float = |x: Tensor<B, 4>| x.into_primitive().tensor();
                let x = float(floats::<B, 4>($x, &d));
                let w = float(floats::<B, 4>($w, &d));
                let g = float(floats::<B, 4>($y, &d));
                let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], $groups);
                move || {
                    let dx = B::$of(x.clone(), w.clone(), g.clone(), options());
                    Tensor::<B, 4>::from_primitive(TensorPrimitive::Float(dx))
                }
            });
        };
    }
    let (x, w, y) = ([8, 32, 56, 56], [64, 32, 3, 3], [8, 64, 56, 56]);
    adjoint!("conv2d 8×32×56×56 64 3×3: x", x, w, y, 1, conv2d_x_backward);
    adjoint!("conv2d 8×32×56×56 64 3×3: weight", x, w, y, 1, conv2d_weight_backward);
    let w = [64, 1, 3, 3];
    adjoint!("depthwise 8×64×56×56 3×3: x", y, w, y, 64, conv2d_x_backward);
    adjoint!("depthwise 8×64×56×56 3×3: weight", y, w, y, 64, conv2d_weight_backward);
    row!(rows, "max pool 2×2 fwd+bwd", 1e-5, |d| {
        type A = Autodiff<B>;
        let x = floats::<A, 4>([8, 32, 56, 56], &d).require_grad();
        let g = floats::<A, 4>([8, 32, 28, 28], &d);
        move || {
            let y = max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false);
            pull(x.clone(), y, g.clone())
        }
    });
    macro_rules! unary {
        ($name:expr, |$x:ident| $plain:expr, $fused:expr) => {
            row!(rows, $name, 1e-4, |d| {
                type A = Autodiff<B>;
                let x = floats::<A, 2>([1024, 1024], &d).require_grad();
                let g = floats::<A, 2>([1024, 1024], &d);
                move || {
                    let $x = x.clone();
                    pull(x.clone(), $plain, g.clone())
                }
            }, fused {
                type A = Autodiff<B>;
                let x = floats::<A, 2>([1024, 1024], &d).require_grad();
                let g = floats::<A, 2>([1024, 1024], &d);
                move || {
                    let $x = x.clone();
                    pull(x.clone(), $fused, g.clone())
                }
            });
        };
    }
    unary!("gelu fwd+bwd 1024²", |x| activation::gelu(x), activation::gelu(x));
    unary!("softmax fwd+bwd 1024²", |x| activation::softmax(x, 1), nn::softmax(x, 1));
    unary!("log softmax fwd+bwd 1024²", |x| activation::log_softmax(x, 1), nn::log_softmax(x, 1));
    row!(rows, "layer norm fwd+bwd 1024²", 1e-3, |d| {
        type A = Autodiff<B>;
        let norm = burn::nn::LayerNormConfig::new(1024).init::<A>(&d);
        let x = floats::<A, 2>([1024, 1024], &d).require_grad();
        // Not x itself: the derivative of ‖norm(x)‖² is 0.
        let g = floats::<A, 2>([1024, 1024], &d).exp();
        move || pull(x.clone(), norm.forward(x.clone()), g.clone())
    }, fused {
        type A = Autodiff<B>;
        let norm = burn::nn::LayerNormConfig::new(1024).init::<A>(&d);
        let x = floats::<A, 2>([1024, 1024], &d).require_grad();
        // Not x itself: the derivative of ‖norm(x)‖² is 0.
        let g = floats::<A, 2>([1024, 1024], &d).exp();
        move || pull(x.clone(), fused_norm(&norm, x.clone()), g.clone())
    });
    row!(rows, "attention fwd+bwd 4×8×128×64", 1e-4, |d| {
        type A = Autodiff<B>;
        let x = || floats::<A, 4>([4, 8, 128, 64], &d);
        let (q, g) = (x().require_grad(), x());
        move || {
            let options = AttentionModuleOptions::default();
            let (k, v) = (q.clone(), q.clone());
            pull(q.clone(), attention(q.clone(), k, v, None, None, options), g.clone())
        }
    }, fused {
        type A = Autodiff<B>;
        let x = || floats::<A, 4>([4, 8, 128, 64], &d);
        let (q, g) = (x().require_grad(), x());
        move || {
            let options = AttentionModuleOptions::default();
            let (k, v) = (q.clone(), q.clone());
            pull(q.clone(), nn::attention(q.clone(), k, v, None, None, options), g.clone())
        }
    });
    row!(rows, "cross-entropy fwd+bwd 1024×1000", 1e-4, |d| {
        type A = Autodiff<B>;
        let x = floats::<A, 2>([1024, 1000], &d).require_grad();
        let t = whole::<A, 1>([1024], 1000, &d);
        let loss = CrossEntropyLossConfig::new().init(&d);
        move || {
            let grads = loss.forward(x.clone(), t.clone()).backward();
            x.grad(&grads).expect("a leaf")
        }
    }, fused {
        type A = Autodiff<B>;
        let x = floats::<A, 2>([1024, 1000], &d).require_grad();
        let t = whole::<A, 1>([1024], 1000, &d);
        move || {
            let grads = nn::cross_entropy(x.clone(), t.clone()).backward();
            x.grad(&grads).expect("a leaf")
        }
    });
}
