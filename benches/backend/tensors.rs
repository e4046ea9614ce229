//! Elementwise operations, reductions and movement of data.

use burn::tensor::{Distribution, Tensor, activation, s};

use crate::rows::{M, Row, floats, row, whole};

pub(crate) fn elementwise(rows: &mut Vec<Row>) {
    row!(rows, "add 4×4 by a row", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([4, 4], &d), floats::<B, 2>([1, 4], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "exp 4×4", 1e-5, |d| {
        let a = floats::<B, 2>([4, 4], &d);
        move || a.clone().exp()
    });
    row!(rows, "sum 4×4", 1e-5, |d| {
        let a = floats::<B, 2>([4, 4], &d);
        move || a.clone().sum_dim(1)
    });
    row!(rows, "sin 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sin()
    });
    row!(rows, "log 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).abs() + 0.1;
        move || a.clone().log()
    });
    row!(rows, "powf 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).abs() + 0.1;
        let b = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().powf(b.clone())
    });
    row!(rows, "int add 1024²", 0.0, 2 * M, |d| {
        let a = whole::<B, 2>([1024, 1024], 1000, &d);
        move || a.clone() + a.clone()
    });
    row!(rows, "bool and 1024²", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).greater_elem(0.0);
        let b = a.clone().flip([0]);
        move || a.clone().bool_and(b.clone()).int()
    });
    row!(rows, "add 4×4", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([4, 4], &d), floats::<B, 2>([4, 4], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024²", 1e-6, 3 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024² transposed", 1e-6, 3 * M, |d| {
        let (a, b) =
            (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d).transpose());
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024² by a row", 1e-6, 2 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1, 1024], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024² by a column", 1e-6, 2 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "mul 1024² by a row", 1e-6, 2 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1, 1024], &d));
        move || a.clone() * b.clone()
    });
    row!(rows, "mul 1024² by a column", 1e-6, 2 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1], &d));
        move || a.clone() * b.clone()
    });
    row!(rows, "mul scalar 1024²", 1e-6, 2 * M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone() * 1.5
    });
    row!(rows, "compare 1024²", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d).flip([0]));
        move || a.clone().greater(b.clone())
    });
    row!(rows, "exp 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().exp()
    });
    row!(rows, "tanh 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().tanh()
    });
    row!(rows, "gelu 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::gelu(a.clone())
    });
    row!(rows, "relu 1024²", 1e-6, 2 * M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::relu(a.clone())
    });
    row!(rows, "sigmoid 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::sigmoid(a.clone())
    });
    row!(rows, "mask fill 1024²", 1e-6, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        let m = a.clone().flip([1]).greater_elem(0.0);
        move || a.clone().mask_fill(m.clone(), 0.5)
    });
}

pub(crate) fn reductions(rows: &mut Vec<Row>) {
    row!(rows, "softmax 1024² rows", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::softmax(a.clone(), 1)
    });
    row!(rows, "softmax 1024² columns", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::softmax(a.clone(), 0)
    });
    row!(rows, "layer norm 1024²", 1e-4, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        let norm = burn::nn::LayerNormConfig::new(1024).init::<B>(&d);
        move || norm.forward(a.clone())
    });
    row!(rows, "sum 1024²", 1e-3, M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).abs();
        move || a.clone().sum()
    });
    row!(rows, "sum 1024² rows", 1e-4, M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sum_dim(1)
    });
    row!(rows, "sum 1024² columns", 1e-4, M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sum_dim(0)
    });
    row!(rows, "sum 32×512×4096 first axis", 1e-4, 64 * M + M, |d| {
        let a = floats::<B, 3>([32, 512, 4096], &d);
        move || a.clone().sum_dim(0)
    });
    row!(rows, "sum 262144×4 rows", 1e-5, |d| {
        let a = floats::<B, 2>([262_144, 4], &d);
        move || a.clone().sum_dim(1)
    });
    row!(rows, "log softmax 1024² rows", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::log_softmax(a.clone(), 1)
    });
    row!(rows, "mean 64×128×128 middle", 1e-4, M, |d| {
        let a = floats::<B, 3>([64, 128, 128], &d);
        move || a.clone().mean_dim(1)
    });
    row!(rows, "max 1024² rows", 1e-6, M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().max_dim(1)
    });
    row!(rows, "argmax 1024² rows", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().argmax(1)
    });
    row!(rows, "argmax 1024² columns", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().argmax(0)
    });
    row!(rows, "cumsum 1024² rows", 1e-3, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().cumsum(1)
    });
    row!(rows, "cumsum 1024² columns", 1e-3, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().cumsum(0)
    });
}

pub(crate) fn movement(rows: &mut Vec<Row>) {
    row!(rows, "permute copy 64×128×128", 0.0, 2 * M, |d| {
        let a = floats::<B, 3>([64, 128, 128], &d);
        move || a.clone().permute([2, 0, 1]).reshape([128 * 64 * 128])
    });
    row!(rows, "reverse 6 axes of 10", 0.0, 2 * M, |d| {
        let a = floats::<B, 6>([10, 10, 10, 10, 10, 10], &d);
        move || a.clone().permute([5, 4, 3, 2, 1, 0]).reshape([1_000_000])
    });
    row!(rows, "transpose copy 1024²", 0.0, 2 * M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().transpose().reshape([1024 * 1024])
    });
    row!(rows, "cat 4 × 512×256", 0.0, |d| {
        let a = floats::<B, 2>([512, 256], &d);
        move || Tensor::cat(vec![a.clone(), a.clone(), a.clone(), a.clone()], 1)
    });
    row!(rows, "repeat 256×256 8 times", 0.0, |d| {
        let a = floats::<B, 2>([256, 256], &d);
        move || a.clone().repeat_dim(0, 8)
    });
    row!(rows, "slice assign 1024²", 0.0, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([512, 512], &d));
        move || a.clone().slice_assign(s![0..512, 512..1024], b.clone())
    });
    row!(rows, "select 4096 rows of 256", 0.0, |d| {
        let a = floats::<B, 2>([4096, 256], &d);
        let i = whole::<B, 1>([4096], 4096, &d);
        move || a.clone().select(0, i.clone())
    });
    row!(rows, "gather 1024²", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        let i = whole::<B, 2>([1024, 1024], 1024, &d);
        move || a.clone().gather(1, i.clone())
    });
    row!(rows, "gather 1024² along columns", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        let i = whole::<B, 2>([1024, 1024], 1024, &d);
        move || a.clone().gather(0, i.clone())
    });
    for axis in [0, 1] {
        row!(rows, format!("select bool 1024² axis {axis}"), 0.0, |d| {
            let a = floats::<B, 2>([1024, 1024], &d).greater_elem(0.0);
            let i = whole::<B, 1>([1024], 1024, &d);
            move || a.clone().select(axis, i.clone())
        });
    }
    row!(rows, "embedding 1000×256 8×512", 0.0, |d| {
        let w = floats::<B, 2>([1000, 256], &d);
        let i = whole::<B, 2>([8, 512], 1000, &d);
        move || burn::tensor::module::embedding(w.clone(), i.clone())
    });
    row!(rows, "sort 1024² rows", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sort(1)
    });
    row!(rows, "argsort 256×1024", 0.0, |d| {
        let a = floats::<B, 2>([256, 1024], &d);
        move || a.clone().argsort(1)
    });
}

/// Rows whose results are random: their means are compared.
pub(crate) fn random(rows: &mut Vec<Row>) {
    row!(rows, "normal numbers 1024²", f64::INFINITY, |d| {
        move || Tensor::<B, 2>::random([1024, 1024], Distribution::Normal(0.0, 1.0), &d)
    });
    row!(rows, "uniform numbers 1024²", f64::INFINITY, |d| {
        move || Tensor::<B, 2>::random([1024, 1024], Distribution::Default, &d)
    });
}
