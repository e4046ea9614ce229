//! Check of the vectorisation of kernels in the generated assembly.
//!
//! ```sh
//! cargo rustc --release -p t4a-algebra --example kernels -- --emit asm -C codegen-units=1 -C symbol-mangling-version=v0
//! cargo run --release -p t4a-algebra --example kernels -- target/release/examples/kernels-*.s
//! ```
//!
//! Without arguments the program runs each kernel once. With a file of assembly, for x86-64 or AArch64, it finds the
//! most arithmetic-intensive innermost loop of each kernel, for every instruction set for which it was compiled. It
//! fails if the loop does not use registers of full width, or has more than one scalar operation per two vector
//! operations, or more than one move from or to the stack per four. This check also covers instruction sets that the
//! machine does not have. `.ci/kernels` runs both targets.

use std::hint::black_box;
use std::process::ExitCode;

use t4a_algebra::gemm::{MatMut, MatRef, Product};
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{MaxMin, MaxMul, MaxPlus, MinPlus, Numeric, Selective, math};

#[path = "kernels/assembly.rs"]
mod assembly;

use assembly::{Function, Machine};

/// A kernel: substrings of its symbol, and the minimum number of vector operations of its loop.
struct Kernel {
    name: &'static str,
    symbol: &'static [&'static str],
    least: usize,
}

/// Element types in symbols: `f` is `f32`, `d` is `f64`, `l` is `i32`.
const KERNELS: &[Kernel] = &[
    Kernel {
        name: "max-plus f32",
        symbol: &["Blocked", "MaxPlusf", "Sums", "Unchecked"],
        least: 16,
    },
    Kernel {
        name: "max-plus f64",
        symbol: &["Blocked", "MaxPlusd", "Sums", "Unchecked"],
        least: 16,
    },
    Kernel {
        name: "min-plus f32",
        symbol: &["Blocked", "MinPlusf", "Sums", "Unchecked"],
        least: 16,
    },
    Kernel {
        name: "max-times f32",
        symbol: &["Blocked", "MaxMulf", "Sums", "Unchecked"],
        least: 16,
    },
    Kernel { name: "max-min f32", symbol: &["Blocked", "MaxMinf", "Sums", "Unchecked"], least: 12 },
    Kernel {
        name: "max-plus f32 with argmax",
        symbol: &["Blocked", "MaxPlusf", "Argmax", "Unchecked"],
        least: 8,
    },
    Kernel {
        name: "max-plus f64 with argmax",
        symbol: &["Blocked", "MaxPlusd", "Argmax", "Unchecked"],
        least: 8,
    },
    Kernel {
        name: "max-plus f32 with checks",
        symbol: &["Blocked", "MaxPlusf", "Sums", "Plain"],
        least: 8,
    },
    Kernel {
        name: "max-plus f32 with both",
        symbol: &["Blocked", "MaxPlusf", "Argmax", "Plain"],
        least: 8,
    },
    Kernel {
        name: "max-plus i32 with argmax",
        symbol: &["Blocked", "MaxPlusl", "Argmax", "Unchecked"],
        least: 4,
    },
    Kernel { name: "exp f32", symbol: &["ExpF32"], least: 8 },
    Kernel { name: "exp f64", symbol: &["ExpF64"], least: 8 },
    Kernel { name: "tanh f32", symbol: &["TanhF32"], least: 8 },
    Kernel { name: "erf f32", symbol: &["ErfF32"], least: 8 },
    Kernel { name: "sigmoid f32", symbol: &["SigmoidF32"], least: 8 },
];

/// The product of two matrices, with and without its argmax.
fn product<S: Selective<T>, T: Numeric>() {
    let n = 8;
    let (a, b) = (black_box(vec![T::ONE; n * n]), black_box(vec![T::ONE; n * n]));
    let (mut c, mut arg) = (vec![T::ZERO; n * n], vec![0u32; n * n]);
    for argmax in [false, true] {
        let operands = (
            MatRef::row_major(&a, n, n).expect("n² elements"),
            MatRef::row_major(&b, n, n).expect("n² elements"),
            MatMut::row_major(&mut c, n, n).expect("n² elements"),
        );
        let mut product = Product::new(operands.0, operands.1, operands.2).expect("equal shapes");
        if argmax {
            let arg = MatMut::row_major(&mut arg, n, n).expect("n² elements");
            product.argmax(arg, 0).expect("equal shapes").run_argmax::<S>();
        } else {
            product.run::<S>();
        }
    }
    black_box((c, arg));
}

/// `map!(Name, f)`: a loop over an elementary function, as a type of that name.
macro_rules! map {
    ($name:ident, $t:ty, $f:path) => {{
        struct $name<'a>(&'a [$t], &'a mut [$t]);
        impl Loop for $name<'_> {
            type Output = ();
            #[inline(always)]
            fn run(self) {
                for (y, &x) in self.1.iter_mut().zip(self.0) {
                    *y = $f(x);
                }
            }
        }
        let (x, mut y) = (black_box(vec![0.5; 100]), vec![0.0; 100]);
        dispatch($name(&x, &mut y));
        black_box(y);
    }};
}

fn run() {
    product::<MaxPlus, f32>();
    product::<MaxPlus, f64>();
    product::<MinPlus, f32>();
    product::<MaxMul, f32>();
    product::<MaxMin, f32>();
    product::<MaxPlus, i32>();
    map!(ExpF32, f32, math::f32::exp);
    map!(ExpF64, f64, math::f64::exp);
    map!(TanhF32, f32, math::f32::tanh);
    map!(ErfF32, f32, math::f32::erf);
    map!(SigmoidF32, f32, math::f32::sigmoid);
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        run();
        return ExitCode::SUCCESS;
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let machine = Machine::of(&text);
    let functions = assembly::functions(&text);
    println!("{machine:?}: operations of the loop that computes most");
    println!("{:26} {:>9} {:>6} {:>7} {:>6}", "", "set", "wide", "scalar", "stack");
    let mut bad = 0;
    for kernel in KERNELS {
        let is_it = |f: &&Function<'_>| kernel.symbol.iter().all(|part| f.name.contains(part));
        let found: Vec<_> = functions.iter().filter(is_it).filter_map(|f| f.hot(machine)).collect();
        if found.is_empty() {
            println!("{:26} no symbol", kernel.name);
            bad += 1;
        }
        // Without fused multiply-add only correct results are required.
        for hot in found.into_iter().filter(|hot| hot.promised != "sse2") {
            let right = hot.wide >= kernel.least && hot.set == hot.promised;
            let good = right && 2 * hot.scalar <= hot.wide && 4 * hot.stack <= hot.wide;
            bad += usize::from(!good);
            println!(
                "{:26} {:>9} {:>6} {:>7} {:>6}{}",
                kernel.name,
                hot.set,
                hot.wide,
                hot.scalar,
                hot.stack,
                if good { "" } else { "  <-" }
            );
        }
    }
    if bad > 0 {
        println!("{bad} are not what they should be");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
