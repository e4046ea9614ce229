//! The operations on primitives: a portable default each, the engine's for `BurnT4a`, a node of
//! the tape for `Autodiff`.

use std::convert::Infallible;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::AttentionModuleOptions;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{Backend, Scalar, Shape, TensorMetadata};
use burn_flex::Flex;

use crate::boundary::accept;
use crate::ext::tape;
use crate::v0_21::{BurnT4a, T4aTensor, scores, wrap};

/// Cotangents of queries, keys and values, and of the bias if it was asked for.
pub type AttentionCotangents<B> = ([FloatTensor<B>; 3], Option<FloatTensor<B>>);

/// Fused operations and their vector–Jacobian products, on primitives.
///
/// Defaults are compositions of Burn's operations, so `impl NnOps for MyBackend {}` is all that
/// another backend needs. Under `Autodiff<B>` each forward method is one node whose rule is the
/// vjp of `B`; the vjps themselves stay compositions there, so they can be differentiated again.
pub trait NnOps: Backend {
    /// `eˣ / Σ eˣ` along `dim`.
    fn nn_softmax(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        Self::softmax(x, dim)
    }

    /// `y·(ȳ − Σ y·ȳ)`.
    fn nn_softmax_vjp(
        y: FloatTensor<Self>,
        dy: FloatTensor<Self>,
        dim: usize,
    ) -> FloatTensor<Self> {
        let mean = Self::float_sum_dim(Self::float_mul(y.clone(), dy.clone()), dim);
        Self::float_mul(y, Self::float_sub(dy, mean))
    }

    /// `x − ln Σ eˣ` along `dim`.
    fn nn_log_softmax(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        Self::log_softmax(x, dim)
    }

    /// `ȳ − e^y·Σ ȳ`.
    fn nn_log_softmax_vjp(
        y: FloatTensor<Self>,
        dy: FloatTensor<Self>,
        dim: usize,
    ) -> FloatTensor<Self> {
        let sum = Self::float_sum_dim(dy.clone(), dim);
        Self::float_sub(dy, Self::float_mul(Self::float_exp(y), sum))
    }

    /// `γ·(x − μ)/√(σ² + ε) + β` along the last axis.
    fn nn_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: Option<FloatTensor<Self>>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        Self::layer_norm(x, gamma, beta, epsilon)
    }

    /// Cotangents of x, γ and β.
    fn nn_layer_norm_vjp(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        epsilon: f64,
        dy: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 3] {
        let last = x.shape().num_dims() - 1;
        let mean = Self::float_mean_dim(x.clone(), last);
        let (hat, r) = normalised::<Self>(Self::float_sub(x, mean), epsilon);
        let g = Self::float_mul(dy.clone(), along_last::<Self>(gamma, last + 1));
        let mean = Self::float_mean_dim(g.clone(), last);
        let dx = norm_x_vjp::<Self>(Self::float_sub(g.clone(), mean), g, hat.clone(), r);
        let dgamma = per_column::<Self>(Self::float_mul(dy.clone(), hat));
        [dx, dgamma, per_column::<Self>(dy)]
    }

    /// `γ·x/√(mean(x²) + ε)` along the last axis.
    fn nn_rms_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let rank = x.shape().num_dims();
        let (hat, _) = normalised::<Self>(x, epsilon);
        Self::float_mul(hat, along_last::<Self>(gamma, rank))
    }

    /// Cotangents of x and γ.
    fn nn_rms_norm_vjp(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        epsilon: f64,
        dy: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 2] {
        let rank = x.shape().num_dims();
        let (hat, r) = normalised::<Self>(x, epsilon);
        let g = Self::float_mul(dy.clone(), along_last::<Self>(gamma, rank));
        let dx = norm_x_vjp::<Self>(g.clone(), g, hat.clone(), r);
        [dx, per_column::<Self>(Self::float_mul(dy, hat))]
    }

    /// `softmax(scores)·V`.
    fn nn_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: Option<BoolTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        Self::attention(query, key, value, mask, bias, options)
    }

    /// Cotangents of the operands; that of the bias if `with_bias`.
    fn nn_attention_vjp(
        operands: [FloatTensor<Self>; 3],
        mask: Option<BoolTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        options: AttentionModuleOptions,
        dy: FloatTensor<Self>,
        with_bias: bool,
    ) -> AttentionCotangents<Self> {
        attention_vjp::<Self>(operands, mask, bias, options, dy, with_bias)
    }

    /// `ln Σ eˣ − x[target]` of every row.
    fn nn_cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        let rows = targets.shape()[0];
        let targets = Self::int_reshape(targets, Shape::new([rows, 1]));
        let picked = Self::float_gather(1, Self::log_softmax(logits, 1), targets);
        Self::float_neg(Self::float_reshape(picked, Shape::new([rows])))
    }

    /// `ȳ·(softmax(x) − δ)` of every row, from the losses and their cotangents.
    fn nn_cross_entropy_vjp(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        _losses: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let rows = targets.shape()[0];
        let column = Shape::new([rows, 1]);
        let targets = Self::int_reshape(targets, column.clone());
        let dy = Self::float_reshape(dy, column);
        let p = Self::float_mul(Self::softmax(logits, 1), dy.clone());
        Self::float_scatter_add(1, p, targets, Self::float_neg(dy))
    }
}

/// `c·r` and `r = 1/√(mean(c²) + ε)` along the last axis.
fn normalised<B: Backend>(c: FloatTensor<B>, epsilon: f64) -> (FloatTensor<B>, FloatTensor<B>) {
    let last = c.shape().num_dims() - 1;
    let square = B::float_mean_dim(B::float_mul(c.clone(), c.clone()), last);
    let r = B::float_recip(B::float_sqrt(B::float_add_scalar(square, Scalar::Float(epsilon))));
    (B::float_mul(c, r.clone()), r)
}

/// `r·(g′ − x̂·mean(g·x̂))` along the last axis.
fn norm_x_vjp<B: Backend>(
    centred: FloatTensor<B>,
    g: FloatTensor<B>,
    hat: FloatTensor<B>,
    r: FloatTensor<B>,
) -> FloatTensor<B> {
    let last = g.shape().num_dims() - 1;
    let mean = B::float_mean_dim(B::float_mul(g, hat.clone()), last);
    B::float_mul(B::float_sub(centred, B::float_mul(hat, mean)), r)
}

/// `[d]` as the last of `rank` axes.
fn along_last<B: Backend>(x: FloatTensor<B>, rank: usize) -> FloatTensor<B> {
    let mut shape = vec![1; rank];
    shape[rank - 1] = x.shape()[0];
    B::float_reshape(x, Shape::from(shape))
}

/// The sum over all axes but the last.
fn per_column<B: Backend>(mut x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let rank = shape.num_dims();
    for axis in 0..rank - 1 {
        x = B::float_sum_dim(x, axis);
    }
    B::float_reshape(x, Shape::new([shape[rank - 1]]))
}

/// The sum over the axes along which `shape` was broadcast.
fn sum_to<B: Backend>(mut x: FloatTensor<B>, shape: &Shape) -> FloatTensor<B> {
    for axis in 0..shape.num_dims() {
        if shape[axis] == 1 && x.shape()[axis] != 1 {
            x = B::float_sum_dim(x, axis);
        }
    }
    x
}

fn attention_vjp<B: Backend>(
    [q, k, v]: [FloatTensor<B>; 3],
    mask: Option<BoolTensor<B>>,
    bias: Option<FloatTensor<B>>,
    options: AttentionModuleOptions,
    dy: FloatTensor<B>,
    with_bias: bool,
) -> AttentionCotangents<B> {
    let infinity = Scalar::Float(f64::NEG_INFINITY);
    let (queries, keys, d) = (q.shape()[2], k.shape()[2], q.shape()[3]);
    let scale = Scalar::Float(options.scale.unwrap_or(1.0 / (d as f64).sqrt()));
    let transposed = |x: FloatTensor<B>| B::float_swap_dims(x, 2, 3);
    let scores = B::float_mul_scalar(B::float_matmul(q.clone(), transposed(k.clone())), scale);
    // 1 − tanh², the derivative of the cap.
    let (mut s, slope) = match options.softcap {
        None => (scores, None),
        Some(cap) => {
            let t = B::float_tanh(B::float_div_scalar(scores, Scalar::Float(cap)));
            let square = B::float_mul(t.clone(), t.clone());
            let slope = B::float_add_scalar(B::float_neg(square), Scalar::Float(1.0));
            (B::float_mul_scalar(t, Scalar::Float(cap)), Some(slope))
        }
    };
    let shape = s.shape();
    if let Some(mask) = mask {
        s = B::float_mask_fill(s, B::bool_expand(mask, shape.clone()), infinity);
    }
    if options.is_causal {
        let hidden = causal::<B>(queries, keys, &B::float_device(&s), &shape);
        s = B::float_mask_fill(s, hidden, infinity);
    }
    let bias_shape = bias.as_ref().map(|bias| bias.shape());
    if let Some(bias) = bias {
        s = B::float_add(s, bias);
    }
    // Rows that are hidden altogether have P = 0.
    let top = B::float_max_dim(s.clone(), 3);
    let dtype = burn_backend::get_device_settings::<B>(&B::float_device(&s)).bool_dtype;
    let hidden = B::float_equal_elem(top.clone(), infinity, dtype);
    let top = B::float_mask_fill(top, hidden.clone(), Scalar::Float(0.0));
    let e = B::float_exp(B::float_sub(s, top));
    let sum = B::float_mask_fill(B::float_sum_dim(e.clone(), 3), hidden, Scalar::Float(1.0));
    let p = B::float_div(e, sum);

    let dv = B::float_matmul(transposed(p.clone()), dy.clone());
    let dp = B::float_matmul(dy, transposed(v));
    let mean = B::float_sum_dim(B::float_mul(p.clone(), dp.clone()), 3);
    let ds = B::float_mul(p, B::float_sub(dp, mean));
    let dbias = bias_shape.filter(|_| with_bias).map(|shape| sum_to::<B>(ds.clone(), &shape));
    let ds = slope.map_or(ds.clone(), |slope| B::float_mul(ds, slope));
    let ds = B::float_mul_scalar(ds, scale);
    let dq = B::float_matmul(ds.clone(), k);
    let dk = B::float_matmul(transposed(ds), q);
    ([dq, dk, dv], dbias)
}

/// Whether key j lies after query i, counted from the last of both.
fn causal<B: Backend>(
    queries: usize,
    keys: usize,
    device: &burn_backend::tensor::Device<B>,
    shape: &Shape,
) -> BoolTensor<B> {
    let settings = burn_backend::get_device_settings::<B>(device);
    let range = |n: usize, at: [usize; 4]| {
        let range = B::int_arange(0..n as i64, device, settings.int_dtype);
        B::int_reshape(range, Shape::new(at))
    };
    let last = Scalar::Int(keys as i64 - queries as i64);
    let last = B::int_add_scalar(range(queries, [1, 1, queries, 1]), last);
    let full = |x| B::int_expand(x, shape.clone());
    B::int_greater(full(range(keys, [1, 1, 1, keys])), full(last), settings.bool_dtype)
}

impl NnOps for Flex {}

impl NnOps for BurnT4a {
    fn nn_softmax_vjp(y: T4aTensor, dy: T4aTensor, dim: usize) -> T4aTensor {
        y.then(|y| y.softmax_vjp(dy.any(), dim))
    }

    fn nn_log_softmax_vjp(y: T4aTensor, dy: T4aTensor, dim: usize) -> T4aTensor {
        y.then(|y| y.log_softmax_vjp(dy.any(), dim))
    }

    fn nn_layer_norm_vjp(
        x: T4aTensor,
        gamma: T4aTensor,
        epsilon: f64,
        dy: T4aTensor,
    ) -> [T4aTensor; 3] {
        accept(x.any().layer_norm_vjp(gamma.any(), epsilon, dy.any())).map(|x| wrap(Ok(x)))
    }

    fn nn_rms_norm(x: T4aTensor, gamma: T4aTensor, epsilon: f64) -> T4aTensor {
        x.then(|x| x.rms_norm(gamma.any(), epsilon))
    }

    fn nn_rms_norm_vjp(
        x: T4aTensor,
        gamma: T4aTensor,
        epsilon: f64,
        dy: T4aTensor,
    ) -> [T4aTensor; 2] {
        accept(x.any().rms_norm_vjp(gamma.any(), epsilon, dy.any())).map(|x| wrap(Ok(x)))
    }

    fn nn_attention_vjp(
        [query, key, value]: [T4aTensor; 3],
        mask: Option<T4aTensor>,
        bias: Option<T4aTensor>,
        options: AttentionModuleOptions,
        dy: T4aTensor,
        with_bias: bool,
    ) -> AttentionCotangents<Self> {
        let options = scores(options);
        let (mask, bias) = (mask.as_ref().map(T4aTensor::any), bias.as_ref().map(T4aTensor::any));
        let others = [key.any(), value.any(), dy.any()];
        let vjp = query.any().attention_vjp(others, mask, bias, &options, with_bias);
        let (operands, bias) = accept(vjp);
        (operands.map(|x| wrap(Ok(x))), bias.map(|x| wrap(Ok(x))))
    }

    fn nn_cross_entropy(logits: T4aTensor, targets: T4aTensor) -> T4aTensor {
        logits.then(|x| x.cross_entropy(targets.any()))
    }

    fn nn_cross_entropy_vjp(
        logits: T4aTensor,
        targets: T4aTensor,
        losses: T4aTensor,
        dy: T4aTensor,
    ) -> T4aTensor {
        logits.then(|x| x.cross_entropy_vjp(targets.any(), losses.any(), dy.any()))
    }
}

fn certain<T>(result: Result<T, Infallible>) -> T {
    result.unwrap_or_else(|never| match never {})
}

impl<B: NnOps, C: CheckpointStrategy> NnOps for Autodiff<B, C> {
    fn nn_softmax(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        let forward = |[x]: [FloatTensor<B>; 1], _| {
            let y = B::nn_softmax(x, dim);
            Ok((y.clone(), y))
        };
        certain(tape::record::<B, C, _, _, _>([x], forward, move |y, dy, _| {
            [Some(B::nn_softmax_vjp(y, dy, dim))]
        }))
    }

    fn nn_log_softmax(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        let forward = |[x]: [FloatTensor<B>; 1], _| {
            let y = B::nn_log_softmax(x, dim);
            Ok((y.clone(), y))
        };
        let vjp = move |y, dy, _| [Some(B::nn_log_softmax_vjp(y, dy, dim))];
        certain(tape::record::<B, C, _, _, _>([x], forward, vjp))
    }

    fn nn_layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: Option<FloatTensor<Self>>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let vjp = move |(x, gamma), dy| B::nn_layer_norm_vjp(x, gamma, epsilon, dy).map(Some);
        certain(match beta {
            Some(beta) => {
                let forward = |[x, gamma, beta]: [FloatTensor<B>; 3], _| {
                    let y = B::nn_layer_norm(x.clone(), gamma.clone(), Some(beta), epsilon);
                    Ok((y, (x, gamma)))
                };
                tape::record::<B, C, _, _, _>([x, gamma, beta], forward, move |kept, dy, _| {
                    vjp(kept, dy)
                })
            }
            None => {
                let forward = |[x, gamma]: [FloatTensor<B>; 2], _| {
                    Ok((B::nn_layer_norm(x.clone(), gamma.clone(), None, epsilon), (x, gamma)))
                };
                tape::record::<B, C, _, _, _>([x, gamma], forward, move |kept, dy, _| {
                    let [x, gamma, _] = vjp(kept, dy);
                    [x, gamma]
                })
            }
        })
    }

    fn nn_rms_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let forward = |[x, gamma]: [FloatTensor<B>; 2], _| {
            Ok((B::nn_rms_norm(x.clone(), gamma.clone(), epsilon), (x, gamma)))
        };
        certain(tape::record::<B, C, _, _, _>([x, gamma], forward, move |(x, gamma), dy, _| {
            B::nn_rms_norm_vjp(x, gamma, epsilon, dy).map(Some)
        }))
    }

    fn nn_attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: Option<BoolTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        certain(match bias {
            Some(bias) => {
                let hidden = mask.clone();
                let forward = |[q, k, v, bias]: [FloatTensor<B>; 4], _| {
                    let kept = ([q.clone(), k.clone(), v.clone()], bias.clone());
                    Ok((B::nn_attention(q, k, v, hidden, Some(bias), options), kept))
                };
                let inputs = [query, key, value, bias];
                tape::record::<B, C, _, _, _>(inputs, forward, move |(kept, bias), dy, wanted| {
                    let bias = Some(bias);
                    let ([q, k, v], bias) =
                        B::nn_attention_vjp(kept, mask, bias, options, dy, wanted[3]);
                    [Some(q), Some(k), Some(v), bias]
                })
            }
            None => {
                let hidden = mask.clone();
                let forward = |[q, k, v]: [FloatTensor<B>; 3], _| {
                    let kept = [q.clone(), k.clone(), v.clone()];
                    Ok((B::nn_attention(q, k, v, hidden, None, options), kept))
                };
                tape::record::<B, C, _, _, _>([query, key, value], forward, move |kept, dy, _| {
                    B::nn_attention_vjp(kept, mask, None, options, dy, false).0.map(Some)
                })
            }
        })
    }

    fn nn_cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        let classes = targets.clone();
        let forward = |[x]: [FloatTensor<B>; 1], _| {
            let y = B::nn_cross_entropy(x.clone(), classes);
            Ok((y.clone(), (x, y)))
        };
        certain(tape::record::<B, C, _, _, _>([logits], forward, move |(x, y), dy, _| {
            [Some(B::nn_cross_entropy_vjp(x, targets, y, dy))]
        }))
    }
}
