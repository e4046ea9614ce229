//! Times of the fused operations of neural networks and of their derivatives, in microseconds.
//!
//! `cargo bench -p t4a-tensor --bench nn [-- filter]`; `T4A_NUM_THREADS=1` for one thread.

use std::hint::black_box;
use std::time::Instant;

use t4a_algebra::Standard;
use t4a_tensor::loops::parallel;
use t4a_tensor::nn::attention::{AttentionOptions, attention, attention_vjp};
use t4a_tensor::nn::conv::{ConvOptions, conv, conv_weight, conv_x};
use t4a_tensor::nn::cross_entropy::{cross_entropy, cross_entropy_vjp};
use t4a_tensor::nn::norm::{layer_norm, layer_norm_vjp, rms_norm};
use t4a_tensor::nn::pool::{
    PoolOptions, max_pool, max_pool_vjp, max_pool_with_indices, mean_pool, mean_pool_vjp,
};
use t4a_tensor::nn::softmax::{log_softmax, log_softmax_vjp, softmax, softmax_vjp};
use t4a_tensor::random::{Generator, uniform, uniform_int};
use t4a_tensor::{Result, Tensor};

struct Bench {
    filter: Option<String>,
    generator: Generator,
}

impl Bench {
    /// Prints the best time of several runs.
    fn row<R>(&self, name: &str, mut f: impl FnMut() -> Result<R>) {
        if self.filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            return;
        }
        let start = Instant::now();
        let (mut best, mut runs) = (f64::INFINITY, 0);
        while runs < 10 || (start.elapsed().as_secs_f64() < 0.25 && runs < 10_000) {
            let start = Instant::now();
            black_box(f()).expect("operands that fit");
            best = best.min(start.elapsed().as_secs_f64());
            runs += 1;
        }
        println!("{name:<44} {:>10.2}", best * 1e6);
    }

    fn random(&self, shape: &[usize]) -> Tensor<f32> {
        uniform(&self.generator, shape, -1.0, 1.0).expect("a tensor that fits")
    }

    fn lanes(&self) {
        for (rows, cols) in [(1024, 1024), (65536, 10), (128, 64)] {
            let (x, dy) = (self.random(&[rows, cols]), self.random(&[rows, cols]));
            for axis in [1, 0] {
                let name = |op: &str| format!("{op} {rows}×{cols} axis {axis}");
                self.row(&name("softmax"), || softmax(&x, axis));
                self.row(&name("log softmax"), || log_softmax(&x, axis));
                self.row(&name("softmax vjp"), || softmax_vjp(&x, &dy, axis));
                self.row(&name("log softmax vjp"), || log_softmax_vjp(&x, &dy, axis));
            }
            let (gamma, beta) = (self.random(&[cols]), self.random(&[cols]));
            let name = |op: &str| format!("{op} {rows}×{cols}");
            self.row(&name("layer norm"), || layer_norm(&x, &gamma, Some(&beta), 1e-5));
            self.row(&name("rms norm"), || rms_norm(&x, &gamma, 1e-5));
            self.row(&name("layer norm vjp"), || layer_norm_vjp(&x, &gamma, 1e-5, &dy));
            let t = uniform_int(&self.generator, &[rows], 0, cols as i64).expect("targets");
            let y = self.random(&[rows]);
            self.row(&name("cross-entropy"), || cross_entropy(&x, &t));
            self.row(&name("cross-entropy vjp"), || cross_entropy_vjp(&x, &t, &y, &y));
        }
    }

    fn attention(&self) {
        for (shape, causal) in [([4, 8, 128, 64], false), ([2, 8, 1024, 64], true)] {
            let [q, k, v, dy] = [0; 4].map(|_| self.random(&shape));
            let [b, h, n, _] = shape;
            let mask = Tensor::from_fn(&[b, 1, 1, n], |i| i % 7 == 0).expect("a mask");
            let bias = self.random(&[1, h, n, n]);
            let options = AttentionOptions { causal, ..Default::default() };
            let name = |op: &str| format!("attention{op} {b}×{h}×{n}");
            self.row(&name(""), || attention(&q, &k, &v, None, None, &options));
            let with = (Some(&mask), Some(&bias));
            self.row(&name(" masked"), || attention(&q, &k, &v, with.0, with.1, &options));
            self.row(&name(" vjp"), || {
                attention_vjp([&q, &k, &v], None, None, &options, &dy, false)
            });
        }
    }

    fn conv(&self) {
        let rows = [
            ("conv 3×3", [8, 32, 56, 56], [64, 32, 3, 3], 1, 1, 1),
            ("conv 3×3 stride 2", [8, 32, 56, 56], [64, 32, 3, 3], 2, 1, 1),
            ("conv 1×1", [8, 64, 28, 28], [64, 64, 1, 1], 1, 0, 1),
            ("conv 3×3 small", [2, 8, 14, 14], [8, 8, 3, 3], 1, 1, 1),
            ("conv 3×3 planes 8×8", [128, 8, 8, 8], [16, 8, 3, 3], 1, 1, 1),
            ("conv 3×3 planes 8×8 first", [128, 1, 8, 8], [8, 1, 3, 3], 1, 1, 1),
            ("conv 3×3 planes 8×8 per example", [1, 1024, 8, 8], [2048, 8, 3, 3], 1, 1, 128),
            ("conv 3×3 planes 8×8 first per example", [1, 128, 8, 8], [1024, 1, 3, 3], 1, 1, 128),
            ("conv 3×3 planes 4×4", [128, 16, 4, 4], [32, 16, 3, 3], 1, 1, 1),
            ("conv 3×3 planes 16×16", [32, 16, 16, 16], [16, 16, 3, 3], 1, 1, 1),
            ("conv 3×3 planes 8×8 wide", [16, 64, 8, 8], [64, 64, 3, 3], 1, 1, 1),
            ("conv 3×3 planes 28×28", [16, 8, 28, 28], [16, 8, 3, 3], 1, 1, 1),
            ("depthwise 3×3", [8, 64, 56, 56], [64, 1, 3, 3], 1, 1, 64),
            ("depthwise 3×3 stride 2", [8, 64, 56, 56], [64, 1, 3, 3], 2, 1, 64),
            ("depthwise 7×7", [4, 64, 28, 28], [64, 1, 7, 7], 1, 3, 64),
        ];
        for (name, x, w, stride, padding, groups) in rows {
            let mut options = ConvOptions::new(2);
            options.stride.fill(stride);
            options = options.padded(&[padding, padding]);
            options.groups = groups;
            let (x, w) = (self.random(&x), self.random(&w));
            let bias = self.random(&[w.shape()[0]]);
            let dy = conv(&x, &w, None, &options).expect("operands that fit");
            self.row(name, || conv(&x, &w, Some(&bias), &options));
            self.row(&format!("{name}: x"), || conv_x(x.shape(), &w, &dy, &options));
            self.row(&format!("{name}: weight"), || conv_weight(&x, w.shape(), &dy, &options));
        }
    }

    /// Cotangents of a weight matrix for every example.
    fn outer(&self) {
        for (m, n) in [(1024, 10), (128, 128), (64, 16)] {
            let (x, dy) = (self.random(&[128, m, 1]), self.random(&[128, 1, n]));
            let name = format!("128 outer products {m}×{n}");
            self.row(&name, || t4a_tensor::matmul::matmul::<Standard, f32>(&x, &dy));
        }
    }

    fn pool(&self) {
        let three = PoolOptions { stride: [2; 2], padding: [1; 2], ..PoolOptions::new([3; 2]) };
        let rows = [
            ("2×2", [8, 32, 56, 56], PoolOptions::new([2; 2])),
            ("3×3 stride 2", [8, 32, 56, 56], three),
            ("2×2 small", [64, 64, 4, 4], PoolOptions::new([2; 2])),
        ];
        for (name, shape, options) in rows {
            let x = self.random(&shape);
            let (dy, at) = max_pool_with_indices(&x, &options).expect("windows that fit");
            self.row(&format!("max pool {name}"), || max_pool(&x, &options));
            self.row(&format!("max pool {name} indices"), || max_pool_with_indices(&x, &options));
            self.row(&format!("max pool {name} vjp"), || max_pool_vjp(&shape, &dy, &at));
            self.row(&format!("mean pool {name}"), || mean_pool(&x, &options, true));
            self.row(&format!("mean pool {name} vjp"), || {
                mean_pool_vjp(&shape, &dy, &options, true)
            });
        }
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    println!("f32, µs, {} threads", parallel::threads());
    let bench = Bench { filter, generator: Generator::new(1) };
    bench.lanes();
    bench.attention();
    bench.conv();
    bench.outer();
    bench.pool();
}
