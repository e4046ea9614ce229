//! Sums of products against the naive triple loop: every element type, shape, layout and batch.

mod oracle;

use oracle::{Layout, Lcg, check_product};
use t4a_algebra::gemm::{
    Algorithm, BatchAxis, GemmError, Kernel, MatMut, MatRef, Parallelism, Product, Report,
};
use t4a_algebra::{Numeric, Semiring, Standard, bf16, c32, c64, f16};

const SHAPES: [(usize, usize, usize); 14] = [
    (0, 3, 2),
    (3, 0, 2),
    (3, 2, 0),
    (1, 1, 1),
    (4, 4, 4),
    (1, 40, 1),
    (37, 40, 1),
    (1, 40, 37),
    (37, 1, 40),
    (5, 7, 11),
    (6, 16, 16),
    (33, 31, 35),
    (13, 600, 17),
    (67, 129, 70),
];

/// Small integers of either sign: every sum is exact in every type, and 16-bit floats do not round in the oracle's
/// order either.
fn integer<T: Numeric>(rng: &mut Lcg) -> T {
    let range = if size_of::<T>() <= 2 { 1 } else { 3 };
    T::from_i64(rng.below(2 * range + 1) as i64 - range as i64)
}

macro_rules! element {
    ($($name:ident: $t:ty,)*) => {$(
        #[test]
        fn $name() {
            for shape in SHAPES {
                for layout in Layout::ALL {
                    check_product::<Standard, $t>(shape, layout, integer, PartialEq::eq);
                }
            }
        }
    )*};
}
element! {
    f32_sums: f32, f64_sums: f64, c32_sums: c32, c64_sums: c64, f16_sums: f16, bf16_sums: bf16,
    i8_sums: i8, i16_sums: i16, i32_sums: i32, i64_sums: i64,
    u8_sums: u8, u16_sums: u16, u32_sums: u32, u64_sums: u64,
}

#[test]
fn larger_than_every_block() {
    for shape in [(300, 700, 20), (9, 300, 2100)] {
        check_product::<Standard, i32>(shape, Layout::RowMajor, integer, PartialEq::eq);
    }
    for shape in [(259, 1030, 3), (3, 30, 515)] {
        check_product::<Standard, f16>(shape, Layout::RowMajor, integer, PartialEq::eq);
    }
}

#[test]
fn complex_products_keep_the_imaginary_part() {
    let close = |a: &c64, b: &c64| (a - b).norm() <= 1e-13 * (1.0 + b.norm());
    for shape in [(3, 5, 4), (40, 41, 42)] {
        for layout in Layout::ALL {
            check_product::<Standard, c64>(shape, layout, |r| c64::new(r.unit(), r.unit()), close);
        }
    }
}

#[test]
fn half_sums_are_rounded_once() {
    // 4096 ones and a half: in f16 arithmetic the sum would stagnate at 2048.
    let ones = vec![f16::ONE; 4096];
    let mut c = [f16::ZERO];
    Product::new(
        MatRef::row_major(&ones, 1, 4096).unwrap(),
        MatRef::row_major(&ones, 4096, 1).unwrap(),
        MatMut::row_major(&mut c, 1, 1).unwrap(),
    )
    .unwrap()
    .run::<Standard>();
    assert_eq!(c[0].to_f32(), 4096.0);
}

#[test]
fn threads_do_not_change_a_bit() {
    let mut rng = Lcg::new(7);
    for (m, k, n) in [
        (200, 700, 300),
        (1000, 900, 3),
        (2, 900, 2000),
        (97, 1300, 97),
        (128, 700, 128),
        (136, 1300, 130),
        (400, 900, 1),
    ] {
        let a: Vec<f32> = (0..m * k).map(|_| rng.unit() as f32).collect();
        let b: Vec<f32> = (0..k * n).map(|_| rng.unit() as f32).collect();
        for (rs, cs) in [(k as isize, 1), (1, m as isize)] {
            let run = |parallelism| {
                let mut c = vec![0.0f32; m * n];
                Product::new(
                    MatRef::strided(&a, 0, (m, k), (rs, cs)).unwrap(),
                    MatRef::row_major(&b, k, n).unwrap(),
                    MatMut::row_major(&mut c, m, n).unwrap(),
                )
                .unwrap()
                .parallelism(parallelism)
                .run::<Standard>();
                c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let seq = run(Parallelism::Seq);
            for threads in [0, 2, 3, 7] {
                assert!(run(Parallelism::Threads(threads)) == seq, "{m}×{k}×{n}, {threads}");
            }
        }
    }
}

/// B with contiguous columns whose distance is a multiple of 1 KiB or not, and the same for rows of A with the transpose
/// of C: the same bits, with parts of several lengths.
#[test]
fn distances_of_columns_do_not_change_a_bit() {
    fn check<T: Numeric>(value: impl Fn(&mut Lcg) -> T, (m, k, n): (usize, usize, usize)) {
        let mut rng = Lcg::new(3);
        let far = (k * size_of::<T>()).next_multiple_of(1024) / size_of::<T>();
        let a: Vec<T> = (0..m * k).map(|_| value(&mut rng)).collect();
        let b: Vec<T> = (0..k * n).map(|_| value(&mut rng)).collect();
        let product = |stride: usize, transposed: bool, parallelism| {
            let mut columns = vec![T::ZERO; (far + 1) * n];
            for j in 0..n {
                columns[j * stride..][..k].copy_from_slice(&b[j * k..][..k]);
            }
            let mut c = vec![T::ONE; m * n];
            let a = MatRef::row_major(&a, m, k).unwrap();
            let b = MatRef::strided(&columns, 0, (k, n), (1, stride as isize)).unwrap();
            if transposed {
                let c = MatMut::strided(&mut c, 0, (n, m), (1, n as isize)).unwrap();
                Product::new(b.transpose(), a.transpose(), c).unwrap().run::<Standard>();
            } else {
                let c = MatMut::row_major(&mut c, m, n).unwrap();
                let product = Product::new(a, b, c).unwrap().accumulate(true);
                product.parallelism(parallelism).run::<Standard>();
            }
            c
        };
        for transposed in [false, true] {
            let expected = product(far + 1, transposed, Parallelism::Seq);
            let found = product(far, transposed, Parallelism::Threads(3));
            assert!(expected == found, "{m}×{k}×{n} {}", std::any::type_name::<T>());
        }
    }
    for shape in [(2, 256, 8), (3, 30, 177), (2, 300, 513), (150, 1030, 531), (17, 520, 264)] {
        check(|r| r.unit() as f32, shape);
        check(Lcg::unit, shape);
        check(|r| c32::new(r.unit() as f32, r.unit() as f32), shape);
        check(|r| c64::new(r.unit(), r.unit()), shape);
    }
}

#[test]
fn batches_with_broadcast_and_permuted_axes() {
    let (m, k, n) = (5, 6, 7);
    let mut rng = Lcg::new(3);
    let a: Vec<i64> = (0..4 * m * k).map(|_| integer(&mut rng)).collect();
    let b: Vec<i64> = (0..3 * k * n).map(|_| integer(&mut rng)).collect();
    // Batch (3, 4): A varies along the second axis only, B along the first only, C has the layout (4, 3, m, n).
    let axes = [
        BatchAxis { size: 3, a: 0, b: (k * n) as isize, c: (m * n) as isize },
        BatchAxis { size: 4, a: (m * k) as isize, b: 0, c: (3 * m * n) as isize },
    ];
    for parallelism in [Parallelism::Seq, Parallelism::Threads(5)] {
        for accumulate in [false, true] {
            let mut c = vec![1i64; 12 * m * n];
            let product = Product::new(
                MatRef::row_major(&a, m, k).unwrap(),
                MatRef::row_major(&b, k, n).unwrap(),
                MatMut::row_major(&mut c, m, n).unwrap(),
            )
            .unwrap();
            // SAFETY: the strides enumerate exactly the three buffers.
            let product = unsafe { product.batch(&axes) };
            product.parallelism(parallelism).accumulate(accumulate).run::<Standard>();
            for (x, y) in (0..3).flat_map(|x| (0..4).map(move |y| (x, y))) {
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let sum: i64 =
                        (0..k).map(|l| a[(y * m + i) * k + l] * b[(x * k + l) * n + j]).sum();
                    let got = c[((y * 3 + x) * m + i) * n + j];
                    assert_eq!(got, sum + i64::from(accumulate));
                }
            }
        }
    }
}

#[test]
fn many_small_entries_on_threads() {
    let (entries, n) = (3000, 5);
    let mut rng = Lcg::new(5);
    let a: Vec<f64> = (0..entries * n * n).map(|_| integer(&mut rng)).collect();
    let axes = [BatchAxis { size: entries, a: 25, b: 25, c: 25 }];
    let mut c = vec![f64::NAN; entries * n * n];
    let product = Product::new(
        MatRef::row_major(&a, n, n).unwrap(),
        MatRef::row_major(&a, n, n).unwrap(),
        MatMut::row_major(&mut c, n, n).unwrap(),
    )
    .unwrap();
    // SAFETY: the strides enumerate exactly the buffers.
    unsafe { product.batch(&axes) }.parallelism(Parallelism::Threads(0)).run::<Standard>();
    for e in 0..entries {
        let a = &a[e * 25..][..25];
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let sum: f64 = (0..n).map(|l| a[i * n + l] * a[l * n + j]).sum();
            assert_eq!(c[e * 25 + i * n + j], sum);
        }
    }
}

#[test]
fn shapes_that_do_not_match_are_refused() {
    let data = [0.0f32; 64];
    let mut out = [0.0f32; 64];
    let a = MatRef::row_major(&data, 2, 3).unwrap();
    let b = MatRef::row_major(&data, 4, 5).unwrap();
    let c = MatMut::row_major(&mut out, 2, 5).unwrap();
    let error = Product::new(a, b, c).unwrap_err();
    assert_eq!(error, GemmError::Shape { m: 2, k: 3, k_b: 4, n: 5, m_c: 2, n_c: 5 });
    assert!(error.to_string().contains("A is 2×3, B is 4×5"));
}

/// (+, ×) with a custom matrix product, identified by its results.
#[derive(Clone, Copy)]
struct Sevens;

impl Semiring<f32> for Sevens {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    // SAFETY: every element of C is written, in the one product of the test.
    const GEMM: Kernel<f32> = unsafe { Kernel::new(sevens) };
    fn add(a: f32, b: f32) -> f32 {
        a + b
    }
    fn mul(a: f32, b: f32) -> f32 {
        a * b
    }
}

/// # Safety
/// C is a vector without a batch.
unsafe fn sevens(p: &Product<'_, f32>) -> Report {
    for i in 0..p.c().rows() {
        // SAFETY: index i is inside C.
        unsafe { p.c().as_mut_ptr().wrapping_offset(i as isize * p.c().row_stride()).write(7.0) }
    }
    Report::new(Algorithm::Custom)
}

#[test]
fn the_kernel_that_ran_is_reported() {
    let (a, b, mut c) = ([1.0f32; 6], [1.0f32; 3], [0.0f32; 2]);
    let mut product = Product::new(
        MatRef::row_major(&a, 2, 3).unwrap(),
        MatRef::row_major(&b, 3, 1).unwrap(),
        MatMut::row_major(&mut c, 2, 1).unwrap(),
    )
    .unwrap();
    assert_eq!(product.run::<Standard>(), Report::new(Algorithm::Small));
    assert_eq!(product.run::<Sevens>(), Report::new(Algorithm::Custom));
    assert_eq!(c, [7.0; 2]);
    let mut product = Product::new(
        MatRef::row_major(&a[..0], 0, 3).unwrap(),
        MatRef::row_major(&b, 3, 1).unwrap(),
        MatMut::row_major(&mut c[..0], 0, 1).unwrap(),
    )
    .unwrap();
    assert_eq!(product.run::<Sevens>(), Report::new(Algorithm::Nothing));
}
