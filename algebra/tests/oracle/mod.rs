//! The naive triple loop as oracle, and the layouts of its operands.
#![allow(dead_code)]

use t4a_algebra::gemm::{MatMut, MatRef, NO_ARGMAX, Parallelism, Product};
use t4a_algebra::{Scalar, Selective, Semiring};

/// Deterministic random numbers (Knuth's MMIX generator).
pub(crate) struct Lcg(u64);

impl Lcg {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 16
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Uniform in [−1, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() & 0xffff_ffff) as f64 / 2f64.powi(31) - 1.0
    }
}

/// Memory layout of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Layout {
    RowMajor,
    ColMajor,
    /// Negative strides on both axes.
    Flipped,
    /// Row-major with gaps on both axes.
    Sliced,
    /// One row, repeated (operands only).
    Repeated,
}

impl Layout {
    pub(crate) const ALL: [Self; 5] =
        [Self::RowMajor, Self::ColMajor, Self::Flipped, Self::Sliced, Self::Repeated];

    /// Strides, offset of element (0, 0), and number of elements in memory.
    pub(crate) fn place(self, rows: usize, cols: usize) -> ((isize, isize), usize, usize) {
        let (r, c) = (rows as isize, cols as isize);
        let all = rows * cols;
        match self {
            Self::RowMajor => ((c, 1), 0, all),
            Self::ColMajor => ((1, r), 0, all),
            Self::Flipped => ((-c, -1), all.saturating_sub(1), all),
            Self::Sliced => ((2 * (3 * c + 1), 3), 1, 2 * (3 * cols + 1) * rows + 1),
            Self::Repeated => ((0, 1), 0, cols),
        }
    }
}

/// A matrix in some layout, with an accessor independent of the library.
pub(crate) struct Sample<T> {
    pub(crate) data: Vec<T>,
    pub(crate) strides: (isize, isize),
    pub(crate) offset: usize,
    pub(crate) shape: (usize, usize),
}

impl<T: Scalar> Sample<T> {
    pub(crate) fn new(
        rows: usize,
        cols: usize,
        layout: Layout,
        mut element: impl FnMut() -> T,
    ) -> Self {
        let (strides, offset, len) = layout.place(rows, cols);
        let data = (0..len).map(|_| element()).collect();
        Self { data, strides, offset, shape: (rows, cols) }
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> T {
        let at = self.offset as isize + i as isize * self.strides.0 + j as isize * self.strides.1;
        self.data[at as usize]
    }

    pub(crate) fn view(&self) -> MatRef<'_, T> {
        MatRef::strided(&self.data, self.offset, self.shape, self.strides).unwrap()
    }

    pub(crate) fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::strided(&mut self.data, self.offset, self.shape, self.strides).unwrap()
    }
}

/// Compares `S`'s product with the triple loop, overwriting and accumulating, on one thread and several, with A and C
/// in `layout` and B in the same or another.
pub(crate) fn check_product<S: Semiring<T>, T: Scalar>(
    (m, k, n): (usize, usize, usize),
    layout: Layout,
    element: impl Fn(&mut Lcg) -> T,
    same: impl Fn(&T, &T) -> bool,
) {
    let mut rng = Lcg::new((m * 1000 + k * 100 + n) as u64);
    let layout_b = if m % 2 == 0 { layout } else { Layout::ColMajor };
    let layout_c = if layout == Layout::Repeated { Layout::RowMajor } else { layout };
    let a = Sample::new(m, k, layout, || element(&mut rng));
    let b = Sample::new(k, n, layout_b, || element(&mut rng));
    let before: Vec<T> = (0..layout_c.place(m, n).2).map(|_| element(&mut rng)).collect();
    let term = |i: usize, j: usize, l: usize| S::mul(a.at(i, l), b.at(l, j));
    let sum = |i, j| (0..k).fold(S::ZERO, |sum, l| S::add(sum, term(i, j, l)));
    let sums: Vec<T> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
    for accumulate in [false, true] {
        for parallelism in [Parallelism::Seq, Parallelism::Threads(3)] {
            let mut at = before.iter();
            let mut c = Sample::new(m, n, layout_c, || *at.next().unwrap());
            let old = Sample { data: c.data.clone(), ..c };
            Product::new(a.view(), b.view(), c.view_mut())
                .unwrap()
                .accumulate(accumulate)
                .parallelism(parallelism)
                .run::<S>();
            for i in 0..m {
                for j in 0..n {
                    let sum = sums[i * n + j];
                    let sum = if accumulate { S::add(old.at(i, j), sum) } else { sum };
                    let got = c.at(i, j);
                    assert!(
                        same(&got, &sum),
                        "{m}×{k}×{n} {layout:?} accumulate={accumulate} {parallelism:?}: \
                         ({i}, {j}) is {got:?}, expected {sum:?}"
                    );
                }
            }
            // Gaps between elements of C are not written.
            let mut touched = vec![false; c.data.len()];
            for i in 0..m {
                for j in 0..n {
                    let (r, s) = c.strides;
                    touched[(c.offset as isize + i as isize * r + j as isize * s) as usize] = true;
                }
            }
            for (at, touched) in touched.into_iter().enumerate() {
                assert!(touched || same(&c.data[at], &old.data[at]), "gap {at} was written");
            }
        }
    }
}

/// Compares the argmax over `S` with the triple loop: the smallest k that attains the sum, none if the sum is zero;
/// overwriting, and merging two halves of k.
pub(crate) fn check_winners<S: Selective<T>, T: Scalar>(
    (m, k, n): (usize, usize, usize),
    layout: Layout,
    element: impl Fn(&mut Lcg) -> T,
    same: impl Fn(&T, &T) -> bool,
) {
    let mut rng = Lcg::new((m * 1000 + k * 100 + n) as u64);
    let layout_c = if layout == Layout::Repeated { Layout::ColMajor } else { layout };
    let a = Sample::new(m, k, layout, || element(&mut rng));
    let b = Sample::new(k, n, Layout::ALL[n % 5], || element(&mut rng));
    let best = |i: usize, j: usize| {
        let (mut sum, mut winner) = (S::ZERO, NO_ARGMAX);
        for l in 0..k {
            let term = S::mul(a.at(i, l), b.at(l, j));
            if S::better(term, sum) {
                (sum, winner) = (term, 1000 + l as u32);
            }
        }
        (sum, winner)
    };
    let best: Vec<(T, u32)> = (0..m * n).map(|at| best(at / n, at % n)).collect();
    for (cut, parallelism) in [(k, Parallelism::Seq), (k / 2, Parallelism::Threads(3))] {
        let mut c = Sample::new(m, n, layout_c, || S::ONE);
        let mut arg = Sample::new(m, n, layout_c, || 12345u32);
        for (from, to) in [(0, cut), (cut, k)] {
            if from == to && from > 0 {
                continue;
            }
            let (da, db) = (from as isize * a.strides.1, from as isize * b.strides.0);
            let at = |x: &Sample<T>, by: isize| (x.offset as isize + by) as usize;
            Product::new(
                MatRef::strided(&a.data, at(&a, da), (m, to - from), a.strides).unwrap(),
                MatRef::strided(&b.data, at(&b, db), (to - from, n), b.strides).unwrap(),
                c.view_mut(),
            )
            .unwrap()
            .accumulate(from > 0)
            .parallelism(parallelism)
            .argmax(arg.view_mut(), 1000 + from)
            .unwrap()
            .run_argmax::<S>();
        }
        for i in 0..m {
            for j in 0..n {
                let (sum, winner) = best[i * n + j];
                let got = (c.at(i, j), arg.at(i, j));
                assert!(
                    same(&got.0, &sum) && got.1 == winner,
                    "{m}×{k}×{n} {layout:?} cut at {cut}: ({i}, {j}) is {got:?}, expected {:?}",
                    (sum, winner)
                );
            }
        }
    }
}
