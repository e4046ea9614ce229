//! Nested transformations: all pairs, and chains of three and four, of x³, sin, a reduction, a product, a product
//! of complex numbers, scans and singular values, against formulas.
//!
//! A function f of a row of numbers is reduced to the scalar Σ f, which every transformation maps to a scalar:
//! `jvp` to the derivative along ones, `grad` to the sum of the gradient, `vmap` to the mean over a batch of equal
//! examples, `compile` to the same value. So a chain is the derivative whose order is the number of derivatives in
//! the chain. At x·1, g(x) = Σ f(x·1) is a function of one number with a known formula.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::Complex;
use burn_t4a::ext::einsum::complex_einsum;
use burn_t4a::ext::linalg::svdvals;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::{
    CheckpointOptions, Memory, Options, Saveable, ScanBackend, checkpoint_with, scan,
};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::grad;
use burn_t4a_transforms::jvp::{Jvp, jvp};
use burn_t4a_transforms::vmap::{Vmap, vmap};

type B = BurnT4a;

/// A function on any backend, from a row of numbers to one number.
trait Function: Copy + Send + Sync + 'static {
    fn on<A: Operations + ScanBackend>(self, x: Tensor<A, 1>) -> Tensor<A, 1>;
}

macro_rules! functions {
    ($($name:ident |$x:ident: $a:ident| $of:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl Function for $name {
            fn on<$a: Operations + ScanBackend>(self, $x: Tensor<$a, 1>) -> Tensor<$a, 1> {
                $of
            }
        }
    )*};
}

functions! {
    Cube |x: A| x.powi_scalar(3).sum();
    Sine |x: A| x.sin().sum();
    Mean |x: A| (x.clone().mean() * x.clone().max_dim(0) * x).sum();
    Product |x: A| {
        let x: Tensor<A, 2> = x.unsqueeze();
        x.clone().transpose().matmul(x.clone()).matmul(x.transpose()).sum()
    };
    KeptProduct |x: A| {
        let options = CheckpointOptions::default().save(Saveable::Products);
        checkpoint_with(|x| Product.on::<A>(x), x, &options).unwrap()
    };
    ComplexProduct |x: A| {
        let z = Complex::new(x.clone(), x.clone() * x).unwrap();
        let square: Complex<A, 2> = complex_einsum("i,j->ij", (&z, &z)).unwrap();
        let product: Complex<A, 1> = complex_einsum("i,ij,j->i", (&z, &square, &z)).unwrap();
        product.re().sum() + product.im().sum()
    };
    Scan |x: A| {
        let step = |(a,): (Tensor<A, 1>,), c: Tensor<A, 1>, (): ()| (c * a, ());
        let options = Options::default().length(3).memory(Memory::StoreAll);
        let (y, ()) = scan(step, (x.clone(),), x.clone() * x.clone(), (), &options).unwrap();
        y.sum() * 0.1
    };
    Running |x: A| {
        // A carry that is constant at first, with consts, xs and ys.
        let step = |(a,): (Tensor<A, 1>,), c: Tensor<A, 1>, x: Tensor<A, 1>| {
            let c = c * x;
            (c.clone(), c * a.narrow(0, 1, 1))
        };
        let one = Tensor::<A, 1>::ones([1], (&A::Device::default(), DType::F64));
        let options = Options::default().memory(Memory::default()).reverse(true);
        let (y, ys): (Tensor<A, 1>, Tensor<A, 2>) =
            scan(step, (x.clone(),), one, x, &options).unwrap();
        y + ys.narrow(0, 1, 1).reshape([1])
    };
    Values |x: A| {
        // x₀ times an orthogonal matrix, both singular values of which are x₀.
        let turn = TensorData::from([[0.6f64, -0.8], [0.8, 0.6]]);
        let turn = Tensor::<A, 2>::from_data(turn, (&A::Device::default(), DType::F64));
        let x: Tensor<A, 2> = x.powi_scalar(2).mean().unsqueeze();
        svdvals(turn * x).unwrap().sum()
    };
}

macro_rules! apply {
    // Innermost level: the function itself.
    ($f:ident, $a:ty, $x:expr;) => { $f.on::<$a>($x) };
    ($f:ident, $a:ty, $x:expr; grad $($rest:ident)*) => {
        grad(|x: Tensor<Autodiff<$a>, 1>| apply!($f, Autodiff<$a>, x; $($rest)*), $x).unwrap().sum()
    };
    ($f:ident, $a:ty, $x:expr; jvp $($rest:ident)*) => {{
        let x: Tensor<$a, 1> = $x;
        let ones = x.ones_like();
        let (_, y): (Tensor<$a, 1>, Tensor<$a, 1>) =
            jvp(|x: Tensor<Jvp<$a>, 1>| apply!($f, Jvp<$a>, x; $($rest)*), x, ones).unwrap();
        y
    }};
    ($f:ident, $a:ty, $x:expr; vmap $($rest:ident)*) => {{
        let x: Tensor<$a, 2> = Tensor::<$a, 1>::unsqueeze::<2>($x).repeat_dim(0, 2);
        let all = vmap(|x: Tensor<Vmap<$a>, 1>| apply!($f, Vmap<$a>, x; $($rest)*));
        let y: Tensor<$a, 2> = all.call(x).unwrap();
        y.sum() * 0.5
    }};
    ($f:ident, $a:ty, $x:expr; compile $($rest:ident)*) => {{
        let x: Tensor<$a, 1> = $x;
        let g = compile(|x: Tensor<Traced<$a>, 1>| apply!($f, Traced<$a>, x; $($rest)*)).fullgraph();
        // The first call records, the second replays.
        g.call(x.clone()).unwrap();
        g.call(x).unwrap()
    }};
}

/// Compares the value of a chain at three equal numbers `x` with the derivative of its order by the formula.
fn check(name: &str, got: Tensor<B, 1>, derivatives: [f64; 5], order: usize) {
    let got: f64 = got.into_data().iter::<f64>().sum();
    let want = derivatives[order];
    assert!((got - want).abs() < 1e-9 * (1.0 + want.abs()), "{name}: {got}, by the formula {want}");
}

const AT: f64 = 0.7;

fn row() -> Tensor<B, 1> {
    Tensor::from_data(TensorData::from([AT; 3]), (&T4aDevice, DType::F64))
}

/// `c xⁿ` and its derivatives at x.
fn power(c: f64, n: u32) -> [f64; 5] {
    let falling = |k: u32| (0..k).map(|i| f64::from(n) - f64::from(i)).product::<f64>();
    [0, 1, 2, 3, 4].map(|k| if k > n { 0.0 } else { c * falling(k) * AT.powi(n as i32 - k as i32) })
}

fn sine() -> [f64; 5] {
    let (s, c) = AT.sin_cos();
    [s, c, -s, -c, s].map(|x| 3.0 * x)
}

macro_rules! chains {
    ($f:expr, $formula:expr; $([$($t:ident)*] $order:literal;)*) => {$(
        let f = $f;
        check(stringify!($f $($t)*), apply!(f, B, row(); $($t)*), $formula, $order);
    )*};
}

/// All chains of length one and two, and some of three and four, for cheap functions.
macro_rules! all_chains {
    ($f:expr, $formula:expr) => {
        chains! {
            $f, $formula;
            [] 0;
            [grad] 1;
            [jvp] 1;
            [vmap] 0;
            [compile] 0;
            [grad grad] 2;
            [grad jvp] 2;
            [grad vmap] 1;
            [grad compile] 1;
            [jvp grad] 2;
            [jvp jvp] 2;
            [jvp vmap] 1;
            [jvp compile] 1;
            [vmap grad] 1;
            [vmap jvp] 1;
            [vmap vmap] 0;
            [vmap compile] 0;
            [compile grad] 1;
            [compile jvp] 1;
            [compile vmap] 0;
            [compile compile] 0;
            [grad vmap compile] 1;
            [compile grad jvp] 2;
            [vmap jvp jvp] 2;
            [compile vmap grad] 1;
            [jvp compile grad] 2;
            [vmap compile jvp] 1;
            [grad grad grad] 3;
            [jvp vmap grad] 2;
            [compile grad vmap jvp] 2;
            [vmap compile jvp grad] 2;
            [jvp vmap compile jvp] 2;
            [grad compile vmap grad] 2;
        }
    };
}

#[test]
fn chains_of_powers() {
    all_chains!(Cube, power(3.0, 3));
}

#[test]
fn chains_of_sines() {
    all_chains!(Sine, sine());
}

/// x̄ · max x · Σ x = 3 x³ for equal numbers, along ones.
#[test]
fn chains_of_reductions() {
    chains! {
        Mean, power(3.0, 3);
        [grad vmap] 1;
        [compile grad] 1;
        [vmap jvp] 1;
        [jvp compile] 1;
        [grad jvp] 2;
        [compile vmap grad] 1;
        [jvp vmap compile jvp] 2;
    }
}

/// Σᵢ xᵢ Σⱼ xⱼ², the sum of the outer product times x: 9 x³ for three equal numbers.
#[test]
fn chains_of_products() {
    chains! {
        Product, power(9.0, 3);
        [grad vmap] 1;
        [compile grad] 1;
        [vmap jvp] 1;
        [jvp compile] 1;
        [grad jvp] 2;
        [compile vmap grad] 1;
        [jvp vmap compile jvp] 2;
    }
}

/// The same in a checkpoint that keeps results of products.
#[test]
fn chains_of_kept_products() {
    all_chains!(KeptProduct, power(9.0, 3));
}

/// Real and imaginary part of 9 (x + i x²)⁴.
#[test]
fn chains_of_complex_products() {
    let terms = [power(9.0, 4), power(36.0, 5), power(-54.0, 6), power(-36.0, 7), power(9.0, 8)];
    let sum = [0, 1, 2, 3, 4].map(|k| terms.iter().map(|term| term[k]).sum());
    chains! {
        ComplexProduct, sum;
        [] 0;
        [grad vmap] 1;
        [compile grad] 1;
        [vmap jvp] 1;
        [jvp compile] 1;
        [grad grad] 2;
        [grad jvp] 2;
        [jvp vmap grad] 2;
        [compile vmap grad] 1;
        [jvp vmap compile jvp] 2;
    }
}

/// Σ x⁵ / 10.
#[test]
fn chains_of_scans() {
    chains! {
        Scan, power(0.3, 5);
        [grad vmap] 1;
        [compile grad] 1;
        [vmap jvp] 1;
        [jvp compile] 1;
        [compile jvp] 1;
    }
}

/// Twice x³: the product of all elements, and that of a pair times one of them.
#[test]
fn chains_of_running_products() {
    chains! {
        Running, power(2.0, 3);
        [] 0;
        [grad vmap] 1;
        [compile grad] 1;
        [vmap jvp] 1;
        [jvp compile] 1;
        [jvp jvp] 2;
        [jvp grad] 2;
        [compile vmap] 0;
        [compile jvp] 1;
        [compile vmap grad] 1;
        [compile vmap jvp] 1;
        [compile jvp vmap] 1;
        [compile jvp jvp] 2;
        [compile jvp grad] 2;
        [compile vmap vmap] 0;
        [jvp vmap compile jvp] 2;
        [vmap compile jvp grad] 2;
        [compile vmap jvp grad] 2;
    }
}

/// Two singular values, both equal to the mean of x².
#[test]
fn chains_of_singular_values() {
    chains! {
        Values, power(2.0, 2);
        [grad vmap] 1;
        [compile grad] 1;
        [jvp compile] 1;
    }
}
