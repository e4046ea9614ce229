//! Global settings: precision of products and the route policy, from which the table in `gpu/OPERATIONS.md` is
//! written. These tests change settings of the whole process, so [`settings`] starts another one for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use burn::tensor::backend::Backend;
use burn::tensor::{Bool, DType, Int, Tensor};
use burn_t4a::ext::Complex;
use burn_t4a::ext::cube::{Precision, set_precision};
use burn_t4a::ext::einsum::{
    LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, bool_einsum, complex_einsum,
    counting_einsum, einsum, int_einsum, k_best_einsum, semiring_einsum,
};
use burn_t4a::ext::linalg::{self, Triangle};
use burn_t4a::ext::nn;
use burn_t4a::ext::scan::fused::{
    Running, complex_linear_recurrence, cumulative, linear_recurrence,
};
use burn_t4a::ext::structured::{self, Direction, FluxOn, GradedTensor, Leg, Spec, Structured, U1};
use burn_t4a::route::{Policy, set_policy};

use super::Card;

#[test]
fn settings() {
    let mut tests = Command::new(std::env::current_exe().unwrap());
    let output = tests.args(["settings::", "--ignored"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("2 passed"), "{text}");
}

#[test]
#[ignore = "in the process of `settings`"]
fn full_until_it_is_set() {
    let n = 64;
    let x: Vec<f32> = (0..n * n).map(|i| (i * 7919 % 101) as f32 / 101.0 - 0.5).collect();
    let exact = |i: usize| -> f64 {
        let (row, column) = (i / n, i % n);
        (0..n).map(|k| f64::from(x[row * n + k]) * f64::from(x[k * n + column])).sum()
    };
    let scale = (0..n * n).map(|i| exact(i).abs()).fold(0.0, f64::max);
    let error = || {
        let a = Tensor::<Card, 1>::from_floats(&x[..], &Default::default()).reshape([n, n]);
        let c: Tensor<Card, 2> = einsum("ij,jk->ik", [&a, &a]).unwrap();
        let c = c.into_data().to_vec::<f32>().unwrap();
        let error = |(i, &c): (usize, &f32)| (f64::from(c) - exact(i)).abs();
        c.iter().enumerate().map(error).fold(0.0, f64::max) / scale
    };
    assert!(error() < 1e-6);
    set_precision(Precision::Tf32);
    assert!(error() < 2e-3);
    set_precision(Precision::Full);
    assert!(error() < 1e-6);
}

type Matrix = Tensor<Card, 2>;
type Call = fn(Matrix) -> Result<(), String>;

/// Converts an error to its text.
fn done<T, E: ToString>(result: Result<T, E>) -> Result<(), String> {
    result.map(|_| ()).map_err(|error| error.to_string())
}

/// Layers have the signatures of Burn's, so they panic on errors.
fn layer<T>(f: impl FnOnce() -> T) -> Result<(), String> {
    let panicked = |text: Box<dyn std::any::Any + Send>| {
        text.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    catch_unwind(AssertUnwindSafe(f)).map(|_| ()).map_err(panicked)
}

fn complex(x: &Matrix) -> Complex<Card, 2> {
    Complex::new(x.clone(), x.clone()).unwrap()
}

/// Blocks of 3×3 and 2×2.
fn graded(x: &Matrix) -> GradedTensor<Card, U1> {
    let leg = Leg::new([(U1(0), 3), (U1(1), 2)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    Structured::from_flat(&spec, x.clone().reshape([64]).narrow(0, 0, 13)).unwrap()
}

/// A symmetric positive definite matrix larger than all kernels.
fn large(x: &Matrix) -> Matrix {
    Tensor::<Card, 2>::eye(100, &x.device()).cast(x.dtype())
}

const ROWS: &[(&str, Call)] = &[
    ("`einsum`, two operands and more", |x| done(einsum::<_, 2>("ij,jk->ik", [&x, &x]))),
    ("`einsum`, one operand", |x| done(einsum::<_, 1>("ij->i", [&x]))),
    ("`complex_einsum`", |x| {
        let z = complex(&x);
        done(complex_einsum::<_, 2>("ij,jk->ik", [&z, &z]))
    }),
    ("`semiring_einsum`, (max, +)", |x| {
        done(semiring_einsum::<MaxPlus, _, 2>("ij,jk->ik", [&x, &x]))
    }),
    ("`semiring_einsum`, (min, +)", |x| {
        done(semiring_einsum::<MinPlus, _, 2>("ij,jk->ik", [&x, &x]))
    }),
    ("`semiring_einsum`, (max, ×)", |x| {
        done(semiring_einsum::<MaxMul, _, 2>("ij,jk->ik", [&x, &x]))
    }),
    ("`semiring_einsum`, (min, ×)", |x| {
        done(semiring_einsum::<MinMul, _, 2>("ij,jk->ik", [&x, &x]))
    }),
    ("`semiring_einsum`, (max, min)", |x| {
        done(semiring_einsum::<MaxMin, _, 2>("ij,jk->ik", [&x, &x]))
    }),
    ("`semiring_einsum`, log-sum-exp", |x| {
        done(semiring_einsum::<LogSumExp, _, 2>("ij,jk->ik", [&x, &x]))
    }),
    ("`bool_einsum`", |x| {
        let flags: Tensor<Card, 2, Bool> = x.greater_elem(0.0);
        done(bool_einsum::<_, 2>("ij,jk->ik", [&flags, &flags]))
    }),
    ("`int_einsum`", |x| {
        let x: Tensor<Card, 2, Int> = x.int();
        done(int_einsum::<MaxPlus, _, 2>("ij,jk->ik", [&x, &x]))
    }),
    ("`counting_einsum`", |x| done(counting_einsum::<MaxPlus, _, 2>("ij,jk->ik", [&x, &x]))),
    ("`k_best_einsum`, K ≤ 8", |x| {
        done(k_best_einsum::<MaxPlus, 2, _, 3>("ij,jk->ik", [&x, &x]))?;
        done(k_best_einsum::<MaxPlus, 8, _, 3>("ij,jk->ik", [&x, &x]))
    }),
    ("`k_best_einsum`, larger", |x| done(k_best_einsum::<MaxPlus, 9, _, 3>("ij,jk->ik", [&x, &x]))),
    ("`linear_recurrence`", |x| done(linear_recurrence(x.clone(), x, None, 0, false))),
    ("`complex_linear_recurrence`", |x| {
        done(complex_linear_recurrence(complex(&x), complex(&x), None, 0, false))
    }),
    ("`cumulative`, sums", |x| done(cumulative(Running::Sum, x, 0, false))),
    ("`cumulative`, products", |x| done(cumulative(Running::Product, x, 0, false))),
    ("`cumulative`, extrema", |x| {
        done(cumulative(Running::Max, x.clone(), 0, false))?;
        done(cumulative(Running::Min, x, 0, true))
    }),
    ("`cumulative`, log-sum-exp", |x| done(cumulative(Running::LogSumExp, x, 0, false))),
    ("`cholesky`, n ≤ 64", |x| done(linalg::cholesky(x))),
    ("`cholesky`, larger", |x| done(linalg::cholesky(large(&x)))),
    ("`qr`, `lu`, both sizes ≤ 64", |x| {
        done(linalg::qr(x.clone()))?;
        done(linalg::lu(x))
    }),
    ("`solve`, `solve_triangular`, n ≤ 64", |x| {
        done(linalg::solve::<_, _, Matrix>(x.clone(), x.clone()))?;
        done(linalg::solve_triangular::<_, _, Matrix>(x.clone(), x, Triangle::LOWER))
    }),
    ("`eigh`, `eigvalsh`, n ≤ 32", |x| {
        done(linalg::eigh(x.clone()))?;
        done(linalg::eigvalsh(x))
    }),
    ("`svd`, `svdvals`, both sizes ≤ 32", |x| {
        done(linalg::svd(x.clone()))?;
        done(linalg::svdvals(x))
    }),
    ("`svd`, larger", |x| done(linalg::svd(large(&x)))),
    ("`expm`, `eig`, `pinv` and others of `linalg`", |x| done(linalg::expm(x))),
    ("complex matrices", |x| done(linalg::qr(complex(&x)))),
    ("`structured`: contractions, permutations", |x| {
        let x = graded(&x);
        done(structured::einsum("ij,jk->ik", &[&x, &x]))?;
        done(x.permute(&[1, 0], 1))
    }),
    ("`structured`: contractions of complex tensors", |x| {
        let z = graded(&x).times_i();
        done(structured::einsum("ij,jk->ik", &[&z, &z]))
    }),
    ("`structured`: inner products, norms", |x| {
        let x = graded(&x);
        done(x.inner(&x))?;
        done(x.norm())
    }),
    ("`structured`: factorisations, blocks of sizes as above", |x| {
        done(graded(&x).svd(1, FluxOn::Left))
    }),
    ("`nn::softmax`, `nn::log_softmax`", |x| {
        layer(|| nn::softmax(x.clone(), 1))?;
        layer(|| nn::log_softmax(x, 1))
    }),
    ("`nn::rms_norm`, `nn::layer_norm`", |x| {
        let gamma = Tensor::<Card, 1>::ones([8], &x.device()).cast(x.dtype());
        layer(|| nn::rms_norm(x.clone(), gamma.clone(), 1e-5))?;
        layer(|| nn::layer_norm(x, gamma, None, 1e-5))
    }),
];

/// Route of a call, found by the route policy.
fn route(call: Call, dtype: DType) -> &'static str {
    let x = Tensor::<Card, 2>::eye(8, &Default::default()).cast(dtype);
    match call(x) {
        Ok(()) => "kernel",
        Err(text) if text.contains("portable") => "portable",
        Err(text) if text.contains("host_data") => "host",
        Err(_) => "refused",
    }
}

#[test]
#[ignore = "in the process of `settings`"]
fn table_of_operations() {
    set_policy(Policy::RejectFallback);
    std::panic::set_hook(Box::new(|_| {}));
    let rows: Vec<String> = ROWS
        .iter()
        .map(|(name, call)| {
            let [single, half] = [DType::F32, DType::F16].map(|dtype| route(*call, dtype));
            format!("| {name} | {single} | {half} |\n")
        })
        .collect();
    let _ = std::panic::take_hook();
    set_policy(Policy::Allow);
    // Software Vulkan may crash if the process ends while it computes.
    <Card as Backend>::sync(&Default::default()).unwrap();
    let table = format!("| operation | f32 | f16 |\n|---|---|---|\n{}", rows.concat());
    // The document is about `Wgpu`.
    if cfg!(feature = "cuda") {
        return println!("{table}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../OPERATIONS.md");
    let text = std::fs::read_to_string(path).unwrap();
    let start = text.find("| operation |").unwrap();
    let updated = format!("{}{table}", &text[..start]);
    if std::env::var_os("T4A_UPDATE_DOCUMENTS").is_some() {
        std::fs::write(path, updated).unwrap();
    } else {
        assert_eq!(text, updated, "T4A_UPDATE_DOCUMENTS=1 writes the table");
    }
}
