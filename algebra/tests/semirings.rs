//! Every semiring: its laws on samples with ties and extremes, its matrix products and argmax against the triple loop.

mod oracle;

use oracle::{Layout, Lcg, check_product, check_winners};
use t4a_algebra::gemm::{GemmError, Kernel, MatMut, MatRef, NO_ARGMAX, Parallelism, Product};
use t4a_algebra::{
    Boolean, Cancellative, Counted, Counting, Extended, Float, KBest, LogSumExp, MaxMin, MaxMul,
    MaxPlus, MinMul, MinPlus, Numeric, Real, Selective, Semiring, Standard, UncheckedSemiring,
    bf16, f16, laws,
};

const SHAPES: [(usize, usize, usize); 13] = [
    (0, 3, 2),
    (3, 0, 2),
    (1, 1, 1),
    (4, 4, 4),
    (1, 40, 1),
    (37, 40, 1),
    (1, 40, 37),
    (5, 7, 11),
    (33, 31, 35),
    (7, 300, 9),
    (13, 600, 17),
    (67, 129, 70),
    (20, 300, 150),
];

/// Bitwise equality, with all NaN equal.
fn same<T: Real>(a: &T, b: &T) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// Small numbers with many ties, and sometimes the semiring's zero.
fn ties<S: Semiring<T>, T: Real>(low: i64) -> impl Fn(&mut Lcg) -> T {
    move |rng| match rng.below(5) {
        0 => S::ZERO,
        _ => T::from_i64(low + rng.below(6) as i64),
    }
}

/// Values that need the checked tile: ∞ of both signs, NaN, extremes.
fn wild<T: Extended>(low: i64) -> impl Fn(&mut Lcg) -> T {
    move |rng| match rng.below(9) {
        0 => T::HIGHEST,
        1 if low < 0 => T::LOWEST,
        2 => T::from_f64(f64::NAN),
        3 => T::from_f64(if size_of::<T>() == 2 { 30000.0 } else { 2e9 }),
        _ => T::from_i64(low + rng.below(6) as i64),
    }
}

macro_rules! products {
    ($($name:ident: $s:ident, $low:expr, [$($t:ty),*];)*) => {$(
        #[test]
        fn $name() {
            $(
                for (i, shape) in SHAPES.into_iter().enumerate() {
                    for layout in Layout::ALL {
                        let tied = ties::<$s, $t>($low);
                        check_product::<$s, $t>(shape, layout, &tied, same);
                        check_winners::<$s, $t>(shape, layout, &tied, same);
                    }
                    let wild = wild::<$t>($low);
                    check_product::<$s, $t>(shape, Layout::ALL[i % 5], &wild, same);
                    check_winners::<$s, $t>(shape, Layout::ALL[i % 5], &wild, same);
                }
            )*
        }
    )*};
}
products! {
    max_plus_products: MaxPlus, -3, [f32, f64, f16, i8, i32];
    min_plus_products: MinPlus, -3, [f32, i16, i64];
    min_plus_products_of_unsigned: MinPlus, 0, [u8, u32];
    max_mul_products: MaxMul, 0, [f64, i32];
    min_mul_products: MinMul, 0, [f64, f16, i32, u8];
    max_min_products: MaxMin, 0, [f32, u8];
    min_max_products_of_somebody_else: MinMax, 0, [f32, f16, i32];
}

/// On elements that fit, unchecked results equal those of the semiring bit by bit.
fn unchecked_laws<S: UncheckedSemiring<T>, T: Extended>(low: i64) {
    let small = [low, 0, 1, 2, 5].map(T::from_i64);
    let wide = [T::LOWEST, T::HIGHEST, T::from_f64(f64::NAN), T::from_f64(1e4), S::ZERO, S::ONE];
    laws::unchecked::<S, T>(&[small.as_slice(), &wide].concat(), same).unwrap();
}

#[test]
fn arithmetic_without_checks_is_that_of_the_semiring() {
    unchecked_laws::<MaxPlus, f32>(-3);
    unchecked_laws::<MaxPlus, f64>(-3);
    unchecked_laws::<MaxPlus, i8>(-3);
    unchecked_laws::<MinPlus, i32>(-3);
    unchecked_laws::<MinPlus, u16>(0);
    unchecked_laws::<MaxMul, f64>(0);
    unchecked_laws::<MaxMul, u8>(0);
    unchecked_laws::<MinMul, f64>(0);
    unchecked_laws::<MinMul, bf16>(0);
    unchecked_laws::<MinMul, u8>(0);
    unchecked_laws::<MaxMin, f32>(-3);
    unchecked_laws::<MaxMin, i64>(-3);
}

/// User-defined (min, max), with the kernels of the tropical semirings of this crate.
#[derive(Clone, Copy, Debug)]
struct MinMax;

impl<T: Extended> Semiring<T> for MinMax {
    const ZERO: T = T::HIGHEST;
    const ONE: T = T::LOWEST;
    const GEMM: Kernel<T> = Kernel::unchecked::<Self>();
    fn add(a: T, b: T) -> T {
        a.min(b)
    }
    fn mul(a: T, b: T) -> T {
        a.max(b)
    }
}

impl<T: Extended> Selective<T> for MinMax {
    const GEMM_ARGMAX: Kernel<T, true> = Kernel::unchecked_argmax::<Self>();
    fn better(a: T, b: T) -> bool {
        a.wins_min(b)
    }
}

impl<T: Extended> UncheckedSemiring<T> for MinMax {
    fn fits(x: T) -> bool {
        !x.is_nan()
    }
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc {
        if a > b { a } else { b }
    }
    fn unchecked_better(a: T::Acc, b: T::Acc) -> bool {
        a < b
    }
}

#[test]
fn a_semiring_that_confuses_its_elements_is_caught() {
    /// A semiring whose zero does not annihilate.
    #[derive(Clone, Copy, Debug)]
    struct Leaky;
    impl Semiring<i32> for Leaky {
        const ZERO: i32 = i32::MIN;
        const ONE: i32 = 0;
        fn add(a: i32, b: i32) -> i32 {
            Real::max(a, b)
        }
        fn mul(a: i32, b: i32) -> i32 {
            a.plus_low(b)
        }
    }
    impl Selective<i32> for Leaky {
        fn better(a: i32, b: i32) -> bool {
            a > b
        }
    }
    impl UncheckedSemiring<i32> for Leaky {
        fn fits(_: i32) -> bool {
            true
        }
        fn unchecked_mul(a: i32, b: i32) -> i32 {
            a.wrapping_add(b)
        }
    }
    let broken = laws::unchecked::<Leaky, i32>(&[i32::MIN, 1], PartialEq::eq).unwrap_err();
    assert_eq!(broken.law, "0 ⊕ (a ⊗ b)");
}

#[test]
fn boolean_products() {
    for shape in SHAPES {
        for layout in Layout::ALL {
            let rare = |rng: &mut Lcg| rng.below(4) == 0;
            check_product::<Boolean, bool>(shape, layout, rare, PartialEq::eq);
            check_winners::<Boolean, bool>(shape, layout, rare, PartialEq::eq);
        }
    }
}

#[test]
fn counts_and_lists() {
    type Best = Counting<MinPlus>;
    type Three = KBest<3>;
    for shape in SHAPES {
        let counted = |rng: &mut Lcg| Best::of(rng.below(4) as i32, rng.below(3));
        check_product::<Best, Counted<i32>>(shape, Layout::Sliced, counted, PartialEq::eq);
        let list = |rng: &mut Lcg| Three::of((0..3).map(|_| rng.below(9) as f32 - 4.0));
        check_product::<Three, [f32; 3]>(shape, Layout::ColMajor, list, PartialEq::eq);
    }
}

/// Sums of logarithms over the whole range of the type, including −∞.
#[test]
fn log_sum_exp_products() {
    fn check<T: Float>(ulps: f64, spreads: &[f64]) {
        for &spread in spreads {
            for (i, shape) in SHAPES.into_iter().enumerate() {
                let element = move |rng: &mut Lcg| match rng.below(4) {
                    0 => T::NEG_INFINITY,
                    _ => T::from_f64(spread * rng.unit()),
                };
                let tolerance = ulps * T::EPSILON.to_f64() * (1.0 + spread);
                let close =
                    move |a: &T, b: &T| same(a, b) || (a.to_f64() - b.to_f64()).abs() <= tolerance;
                check_product::<LogSumExp, T>(shape, Layout::ALL[i % 5], element, close);
            }
        }
    }
    // The oracle adds term by term in T, which loses more digits than the product.
    check::<f64>(100.0, &[1.0, 30.0, 700.0, 1e5]);
    check::<f32>(100.0, &[1.0, 30.0, 700.0, 1e4]);
    check::<f16>(100.0, &[1.0, 30.0]);
    for shape in SHAPES {
        check_product::<LogSumExp, f64>(shape, Layout::RowMajor, wild(-3), |a, b| {
            same(a, b) || (a - b).abs() <= 1e-13 * (1.0 + b.abs())
        });
    }
}

/// Large entries of rows paired with small ones of columns: every product of exponentials underflows.
#[test]
fn log_sum_exp_survives_misaligned_maxima() {
    let (n, far) = (9, 5000.0);
    let a: Vec<f64> = (0..n * 2).map(|i| if i % 2 == 0 { 0.0 } else { -far }).collect();
    let b: Vec<f64> = (0..2 * n).map(|i| if i < n { -far } else { 0.0 }).collect();
    let mut c = vec![0.0; n * n];
    Product::new(
        MatRef::row_major(&a, n, 2).unwrap(),
        MatRef::row_major(&b, 2, n).unwrap(),
        MatMut::row_major(&mut c, n, n).unwrap(),
    )
    .unwrap()
    .run::<LogSumExp>();
    for c in c {
        assert!((c - (2f64.ln() - far)).abs() < 1e-11, "{c}");
    }
}

/// exp of the result equals the ordinary product of exponentials to the last digits: the error is that of `f64`
/// addition.
#[test]
fn log_sum_exp_is_accurate() {
    let (m, k, n) = (40, 1300, 50);
    let mut rng = Lcg::new(11);
    let a: Vec<f64> = (0..m * k).map(|_| 3.0 * rng.unit()).collect();
    let b: Vec<f64> = (0..k * n).map(|_| 3.0 * rng.unit()).collect();
    let exp = |x: &[f64]| -> Vec<f64> { x.iter().map(|x| x.exp()).collect() };
    let (mut log, mut plain) = (vec![0.0; m * n], vec![0.0; m * n]);
    let (exp_a, exp_b) = (exp(&a), exp(&b));
    let view = |x, rows, cols| MatRef::row_major(x, rows, cols).unwrap();
    Product::new(view(&a, m, k), view(&b, k, n), MatMut::row_major(&mut log, m, n).unwrap())
        .unwrap()
        .run::<LogSumExp>();
    Product::new(
        view(&exp_a, m, k),
        view(&exp_b, k, n),
        MatMut::row_major(&mut plain, m, n).unwrap(),
    )
    .unwrap()
    .run::<Standard>();
    for (log, plain) in log.into_iter().zip(plain) {
        assert!((log - plain.ln()).abs() < 4e-15 * log.abs(), "{log} {}", plain.ln());
    }
}

#[test]
fn laws_of_selective_semirings() {
    fn check<S: Selective<T>, T: Real>(elements: &[T]) {
        laws::semiring::<S, T>(elements, same).unwrap();
        laws::selective::<S, T>(elements, same).unwrap();
    }
    let inf = f64::INFINITY;
    // Sums of these are exact, so that both sides of a law are computed without rounding.
    let floats = [-inf, -2.5, -0.0, 0.0, 0.25, 1.0, 3.0, 16.0, inf];
    check::<MaxPlus, f64>(&floats);
    check::<MinPlus, f64>(&floats);
    check::<MaxMin, f64>(&floats);
    check::<MaxMul, f64>(&floats[3..]);
    check::<MinMul, f64>(&floats[3..]);
    let floats = floats.map(|x| f16::from_f64(x / 4.0));
    check::<MaxPlus, f16>(&floats);
    check::<MaxMul, f16>(&floats[3..]);
    check::<MinMul, f16>(&floats[3..]);
    // Sums stay in range, because saturation is not associative: (MAX ⊗ MAX) ⊗ −MAX.
    check::<MaxPlus, i8>(&[i8::MIN, -40, -1, 0, 1, 7, 40]);
    check::<MinPlus, i8>(&[-40, -1, 0, 1, 7, 40, i8::MAX]);
    check::<MinPlus, u32>(&[0, 1, 5, 1 << 30, u32::MAX]);
    check::<MaxMul, u8>(&[0, 1, 2, 5]);
    check::<MinMul, u8>(&[0, 1, 2, 5, u8::MAX]);
    check::<MaxMin, i64>(&[i64::MIN, -1, 0, 5, i64::MAX]);
    laws::semiring::<Boolean, bool>(&[false, true], PartialEq::eq).unwrap();
    laws::selective::<Boolean, bool>(&[false, true], PartialEq::eq).unwrap();
}

#[test]
fn laws_of_composed_semirings() {
    let counted = |(value, count): (i32, u64)| Counted::new(value, count);
    let elements = [(i32::MIN, 0), (0, 1), (0, 3), (1, 2), (-4, 5), (1, u64::MAX), (1, 1 << 40)];
    laws::semiring::<Counting, _>(&elements.map(counted), PartialEq::eq).unwrap();
    let elements = [(i32::MAX, 0), (0, 1), (3, 2), (3, 7)];
    laws::semiring::<Counting<MinPlus>, _>(&elements.map(counted), PartialEq::eq).unwrap();
    let elements =
        [f64::NEG_INFINITY, 0.0, 1.5, 2.0, f64::INFINITY].map(|x| Counting::<MaxPlus>::of(x, 2));
    laws::semiring::<Counting, _>(&elements, PartialEq::eq).unwrap();
    let elements = [0.0, 0.5, 1.0, 2.0, f64::INFINITY].map(|x| Counting::<MaxMul>::of(x, 3));
    laws::semiring::<Counting<MaxMul>, _>(&elements, PartialEq::eq).unwrap();
    let elements = [0.0, 0.5, 1.0, 2.0, f64::INFINITY].map(|x| Counting::<MinMul>::of(x, 3));
    laws::semiring::<Counting<MinMul>, _>(&elements, PartialEq::eq).unwrap();
    let elements = [(false, 0), (true, 1), (true, 5)].map(|(x, n)| Counted::new(x, n));
    laws::semiring::<Counting<Boolean>, _>(&elements, PartialEq::eq).unwrap();
    type Best = KBest<3>;
    let lists: [&[i64]; 6] = [&[], &[0], &[5, 5, 5], &[3, 1, 0], &[-1, -7], &[9, 0, 0]];
    let lists = lists.map(|list| Best::of(list.iter().copied()));
    laws::semiring::<Best, _>(&lists, PartialEq::eq).unwrap();
    let close = |a: &f64, b: &f64| a == b || (a - b).abs() <= 1e-12 * (1.0 + a.abs());
    let inf = f64::INFINITY;
    let logs = [-inf, -800.0, -1.0, 0.0, 0.3, 2.0, 900.0, inf];
    laws::semiring::<LogSumExp, f64>(&logs, close).unwrap();
    laws::semiring::<Standard, i32>(&[0, 1, -3, 7, i32::MAX], PartialEq::eq).unwrap();
}

#[test]
fn laws_of_cancellative_semirings() {
    let inf = f64::INFINITY;
    let floats = [-inf, -2.5, 0.0, 0.25, 1.0, 16.0, inf, f64::NAN];
    laws::cancellative::<MaxPlus, f64>(&floats).unwrap();
    laws::cancellative::<MinPlus, f64>(&floats).unwrap();
    laws::cancellative::<MaxMul, f64>(&floats[2..]).unwrap();
    laws::cancellative::<MinMul, f64>(&floats[2..]).unwrap();
    laws::cancellative::<MaxPlus, i8>(&[i8::MIN, -40, 0, 1, 40, i8::MAX]).unwrap();
    laws::cancellative::<MinPlus, u8>(&[0, 1, 40, 80, u8::MAX]).unwrap();
    laws::cancellative::<MaxMul, u8>(&[0, 1, 2, 5, 255]).unwrap();
    laws::cancellative::<MinMul, u8>(&[0, 1, 2, 5, 255]).unwrap();
    laws::cancellative::<Boolean, bool>(&[false, true]).unwrap();

    /// (max, min), which is not cancellative.
    #[derive(Clone, Copy)]
    struct Narrow;
    impl Semiring<i32> for Narrow {
        const ZERO: i32 = i32::MIN;
        const ONE: i32 = i32::MAX;
        fn add(a: i32, b: i32) -> i32 {
            MaxMin::add(a, b)
        }
        fn mul(a: i32, b: i32) -> i32 {
            MaxMin::mul(a, b)
        }
    }
    impl Selective<i32> for Narrow {
        fn better(a: i32, b: i32) -> bool {
            a > b
        }
    }
    impl Cancellative<i32> for Narrow {
        fn cancels(x: i32) -> bool {
            x > i32::MIN
        }
    }
    let broken = laws::cancellative::<Narrow, i32>(&[0, 1, 2]).unwrap_err();
    assert_eq!(broken.law, "a better than b: a ⊗ x better than b ⊗ x");
}

/// The law checks detect each kind of broken semiring.
#[test]
fn broken_laws_are_named() {
    /// (max, +) with a finite zero, and a ⊕ that keeps the first of two.
    #[derive(Clone, Copy)]
    struct Finite;
    impl Semiring<f64> for Finite {
        const ZERO: f64 = -1e3;
        const ONE: f64 = 0.0;
        fn add(a: f64, b: f64) -> f64 {
            a.max(b)
        }
        fn mul(a: f64, b: f64) -> f64 {
            a + b
        }
    }
    let broken = laws::semiring::<Finite, f64>(&[0.0, 5.0], PartialEq::eq).unwrap_err();
    assert_eq!((broken.law, broken.elements), ("a ⊗ 0 = 0", vec![5.0]));
    let broken = laws::semiring::<MaxMul, i32>(&[-1, 1, 2], PartialEq::eq).unwrap_err();
    assert_eq!((broken.law, broken.elements), ("a ⊕ 0 = a", vec![-1]));
    let broken = laws::semiring::<MaxPlus, i8>(&[100, -100], PartialEq::eq).unwrap_err();
    assert!(broken.to_string().contains("a ⊗ (b ⊗ c)"));

    #[derive(Clone, Copy)]
    struct Reversed;
    impl Semiring<i32> for Reversed {
        const ZERO: i32 = i32::MIN;
        const ONE: i32 = 0;
        fn add(a: i32, b: i32) -> i32 {
            Real::max(a, b)
        }
        fn mul(a: i32, b: i32) -> i32 {
            MaxPlus::mul(a, b)
        }
    }
    impl Selective<i32> for Reversed {
        fn better(a: i32, b: i32) -> bool {
            a < b
        }
    }
    let broken = laws::selective::<Reversed, i32>(&[1, 2], PartialEq::eq).unwrap_err();
    assert_eq!(broken.law, "0 is better than no a");
}

/// Chunks of steps and panels of chunks have other boundaries for every element type.
#[test]
fn winners_lie_in_any_run_of_any_panel() {
    fn check<T: Extended>()
    where
        MinPlus: Selective<T>,
    {
        let (k, n) = (5000, 21);
        for at in [0, 1, 15, 16, 17, 500, 1023, 1024, 1040, 2047, 2048, 4079, 4080, 4096, 4998] {
            // The smallest term is at `at`, and again later; all terms before tie at a larger value.
            let best = |l: usize| l == at || (l > at && l.is_multiple_of(7));
            let a: Vec<T> = (0..2 * k).map(|i| T::from_i64(2 - i64::from(best(i % k)))).collect();
            let b = vec![T::from_i64(3); k * n];
            let (mut c, mut arg) = (vec![T::ZERO; 2 * n], vec![0; 2 * n]);
            Product::new(
                MatRef::row_major(&a, 2, k).unwrap(),
                MatRef::row_major(&b, k, n).unwrap(),
                MatMut::row_major(&mut c, 2, n).unwrap(),
            )
            .unwrap()
            .argmax(MatMut::row_major(&mut arg, 2, n).unwrap(), 0)
            .unwrap()
            .run_argmax::<MinPlus>();
            assert!(c.iter().all(|&c| c == T::from_i64(4)));
            assert_eq!(arg, vec![at as u32; 2 * n]);
        }
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<i8>();
    check::<u16>();
    check::<i64>();
}

/// A NaN among the terms makes the sum NaN at any position, and is its argmax.
#[test]
fn nan_propagates_from_every_place() {
    fn check<S: Selective<f32>>() {
        for (k, at) in [(1, 0), (9, 0), (9, 4), (9, 8), (700, 5), (700, 699)] {
            let mut a = vec![1.0f32; k];
            a[at] = f32::NAN;
            let b = vec![2.0f32; k * 20];
            let (mut c, mut arg) = (vec![0.0f32; 20], vec![0; 20]);
            Product::new(
                MatRef::row_major(&a, 1, k).unwrap(),
                MatRef::row_major(&b, k, 20).unwrap(),
                MatMut::row_major(&mut c, 1, 20).unwrap(),
            )
            .unwrap()
            .argmax(MatMut::row_major(&mut arg, 1, 20).unwrap(), 0)
            .unwrap()
            .run_argmax::<S>();
            assert!(c.iter().all(|c| c.is_nan()) && arg.iter().all(|&arg| arg == at as u32));
        }
    }
    check::<MaxPlus>();
    check::<MinPlus>();
    check::<MaxMul>();
    check::<MinMul>();
    check::<MaxMin>();
}

/// Bits of sums and argmax over `S` are the same for any number of threads.
fn check_threads<S: Selective<T>, T: Real>(
    (m, k, n): (usize, usize, usize),
    a: &[T],
    b: &[T],
    log: impl Fn(Product<'_, T>),
) {
    let run = |parallelism| {
        let (mut sums, mut best) = (vec![T::ZERO; m * n], vec![T::ZERO; m * n]);
        let mut arg = vec![0; m * n];
        let product = |c| {
            let (a, b) = (MatRef::row_major(a, m, k), MatRef::row_major(b, k, n));
            Product::new(a.unwrap(), b.unwrap(), MatMut::row_major(c, m, n).unwrap())
                .unwrap()
                .parallelism(parallelism)
        };
        log(product(&mut sums));
        let arg_view = MatMut::row_major(&mut arg, m, n).unwrap();
        product(&mut best).argmax(arg_view, 0).unwrap().run_argmax::<S>();
        let bits = |x: Vec<T>| x.into_iter().map(|x| x.to_f64().to_bits()).collect::<Vec<_>>();
        (bits(sums), bits(best), arg)
    };
    let seq = run(Parallelism::Seq);
    for threads in [2, 3, 8] {
        assert!(run(Parallelism::Threads(threads)) == seq, "{m}×{k}×{n}, {threads}");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let mut rng = Lcg::new(7);
    for (m, k, n) in [
        (400, 700, 300),
        (1000, 600, 3),
        (2, 900, 2000),
        (257, 600, 257),
        // Remainders of a few columns.
        (64, 256, 392),
        (60, 213, 391),
        (512, 64, 64),
    ] {
        for scale in [1.0, 300.0] {
            let mut random =
                |n: usize| -> Vec<f64> { (0..n).map(|_| scale * rng.unit()).collect() };
            let (mut a, b) = (random(m * k), random(k * n));
            let check = |a: &[f64]| {
                check_threads::<MaxPlus, f64>((m, k, n), a, &b, |mut p| {
                    p.run::<LogSumExp>();
                });
            };
            check(&a);
            // A single infinite element must not change other elements.
            a[m * k / 3] = f64::INFINITY;
            check(&a);
            a[m * k / 2] = f64::NAN;
            check(&a);
        }
    }
    for (m, k, n) in [(296, 1000, 552), (300, 600, 570), (257, 300, 513), (90, 400, 600)] {
        let narrow = |n: usize| (0..n).map(|i| f16::from_f64((i as f64 * 0.7).sin()));
        let (mut a, b): (Vec<f16>, Vec<f16>) = (narrow(m * k).collect(), narrow(k * n).collect());
        for _ in 0..2 {
            check_threads::<MaxPlus, f16>((m, k, n), &a, &b, |mut p| {
                p.run::<Standard>();
            });
            a[m * k / 2] = f16::INFINITY;
        }
    }
}

/// One NaN or +∞ leaves all elements of other rows and columns bit-identical.
#[test]
fn what_is_no_number_stays_in_its_row_and_column() {
    let mut rng = Lcg::new(9);
    for (m, k, n) in [(20, 30, 17), (5, 1100, 9), (3, 520, 400)] {
        let mut random = |n: usize| -> Vec<f64> { (0..n).map(|_| 20.0 * rng.unit()).collect() };
        let (a, b) = (random(m * k), random(k * n));
        let run = |a: &[f64], b: &[f64]| {
            let mut c = vec![0.0; m * n];
            let (a, b) = (MatRef::row_major(a, m, k), MatRef::row_major(b, k, n));
            let c_view = MatMut::row_major(&mut c, m, n).unwrap();
            Product::new(a.unwrap(), b.unwrap(), c_view).unwrap().run::<LogSumExp>();
            c
        };
        let want = run(&a, &b);
        let none = f64::NEG_INFINITY;
        for bad in [f64::NAN, f64::INFINITY, none] {
            let (row, col) = (m - 1, n / 2);
            let (mut x, mut y) = (a.clone(), b.clone());
            x[row * k + k - 1] = bad;
            y[3 * n + col] = bad;
            // A row and a column without terms.
            x[..k].fill(none);
            (0..k).for_each(|p| y[p * n] = none);
            for (at, (&got, &was)) in run(&x, &y).iter().zip(&want).enumerate() {
                let (i, j) = (at / n, at % n);
                let terms =
                    (0..k).map(|p| <LogSumExp as Semiring<f64>>::mul(x[i * k + p], y[p * n + j]));
                let exact = terms.fold(none, <LogSumExp as Semiring<f64>>::add);
                let near = (got - exact).abs() <= 1e-12 * exact.abs().max(1.0);
                assert!(
                    got == exact || (got.is_nan() && exact.is_nan()) || near,
                    "{i} {j}: {got} {exact}"
                );
                let touched = i == row || j == col || i == 0 || j == 0;
                assert!(touched || got == was, "{m}×{k}×{n}, {bad} at {i} {j}: {got} {was}");
            }
        }
    }
}

#[test]
fn places_for_winners_are_checked() {
    let data = [1.0f32; 12];
    let (mut c, mut arg) = ([0.0f32; 6], [0u32; 12]);
    let mut product = || {
        let (a, b) = (MatRef::row_major(&data, 2, 4), MatRef::row_major(&data, 4, 3));
        // SAFETY: at most one product uses it at a time.
        let c = unsafe { MatMut::from_raw_parts(c.as_mut_ptr(), (2, 3), (3, 1)) };
        Product::new(a.unwrap(), b.unwrap(), c).unwrap()
    };
    let wrong = MatMut::row_major(&mut arg, 3, 2).unwrap();
    assert!(matches!(product().argmax(wrong, 0), Err(GemmError::Argmax { rows: 2, .. })));
    let wrong = MatMut::strided(&mut arg, 0, (2, 3), (6, 2)).unwrap();
    assert!(matches!(product().argmax(wrong, 0), Err(GemmError::Argmax { .. })));
    let right = MatMut::row_major(&mut arg, 2, 3).unwrap();
    let first = NO_ARGMAX as usize - 3;
    let error = product().argmax(right, first).unwrap_err();
    assert_eq!(error, GemmError::IndexRange { k: 4, first });
}

#[test]
fn the_neutral_elements_are_extremes_not_large_numbers() {
    assert_eq!(<MaxPlus as Semiring<f32>>::ZERO, f32::NEG_INFINITY);
    assert_eq!(<MinPlus as Semiring<bf16>>::ZERO, bf16::INFINITY);
    assert_eq!(<MaxPlus as Semiring<i16>>::ZERO, i16::MIN);
    assert_eq!(<MaxMin as Semiring<u8>>::ONE, u8::MAX);
    assert_eq!(<MaxMul as Semiring<f64>>::ZERO, 0.0);
    assert_eq!(<MinMul as Semiring<f32>>::mul(0.0, f32::INFINITY), f32::INFINITY);
    assert_eq!(<MinMul as Semiring<u8>>::mul(0, u8::MAX), u8::MAX);
    assert!(!<MaxMul as Semiring<f64>>::contains(-1.0));
    assert!(MaxMul::contains(<f32 as Numeric>::ONE));
}
