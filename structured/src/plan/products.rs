//! Matrix products of parts of two flat buffers into parts of a third: `C[c] = Σ A[a] B[b]` over the terms `(a, b,
//! c)`.
//!
//! Contractions by coupled sectors have one term per C, block-sparse contractions several. The adjoints have the same
//! form: `Ā = C̄ Bᵀ`, `B̄ = Aᵀ C̄`.

use serde::{Deserialize, Serialize};
use t4a_diff::array::{BlockProducts, BlockSum, BlockTerm, FlatMatrix};

use crate::error::{Result, StructuredError};

/// Contiguous matrix in a flat buffer: row-major, or the transpose of a row-major matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MatrixView {
    /// Offset of the first element.
    pub offset: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// True for column-major storage.
    pub transposed: bool,
}

impl MatrixView {
    /// Transpose, a view of the same elements.
    pub fn transpose(self) -> Self {
        let Self { offset, rows, cols, transposed } = self;
        Self { offset, rows: cols, cols: rows, transposed: !transposed }
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.rows * self.cols
    }

    /// True if there is no element.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn flat(self) -> FlatMatrix {
        let strides = if self.transposed { [1, self.rows] } else { [self.cols, 1] };
        FlatMatrix { offset: self.offset, strides }
    }

    fn lies_in(self, len: usize) -> bool {
        let end = self.rows.checked_mul(self.cols).and_then(|n| n.checked_add(self.offset));
        end.is_some_and(|end| end <= len)
    }
}

/// Matrix products: the matrices of the three buffers and the terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "ProductsData", into = "ProductsData")]
pub struct Products {
    lens: [usize; 3],
    a: Vec<MatrixView>,
    b: Vec<MatrixView>,
    c: Vec<MatrixView>,
    /// Terms sorted by C; those of one C are in summation order.
    terms: Vec<[u32; 3]>,
    /// One group per C; groups with the most multiply-adds first.
    groups: Vec<TermGroup>,
}

/// The terms of one C: first term and one past the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TermGroup {
    pub(crate) c: u32,
    pub(crate) terms: (u32, u32),
    pub(crate) steps: usize,
}

#[derive(Serialize, Deserialize)]
struct ProductsData {
    lens: [usize; 3],
    a: Vec<MatrixView>,
    b: Vec<MatrixView>,
    c: Vec<MatrixView>,
    terms: Vec<[u32; 3]>,
}

impl From<Products> for ProductsData {
    fn from(Products { lens, a, b, c, terms, .. }: Products) -> Self {
        Self { lens, a, b, c, terms }
    }
}

impl TryFrom<ProductsData> for Products {
    type Error = StructuredError;

    fn try_from(ProductsData { lens, a, b, c, terms }: ProductsData) -> Result<Self> {
        Self::new(lens, a, b, c, terms)
    }
}

impl Products {
    /// Products in buffers of these lengths; each buffer consists of its consecutive matrices.
    ///
    /// # Errors
    /// `Corrupt` for matrices with other offsets, and for terms whose matrices do not match.
    pub fn new(
        lens: [usize; 3],
        a: Vec<MatrixView>,
        b: Vec<MatrixView>,
        c: Vec<MatrixView>,
        mut terms: Vec<[u32; 3]>,
    ) -> Result<Self> {
        let corrupt = |what| Err(StructuredError::Corrupt { what });
        for (views, len) in [&a, &b, &c].into_iter().zip(lens) {
            if !views.iter().all(|view| view.lies_in(len)) {
                return corrupt("a matrix outside of its buffer");
            }
            let mut next = 0;
            for view in views {
                if view.offset != next {
                    return corrupt("matrices that do not lie one behind the other");
                }
                next += view.len();
            }
            if next != len {
                return corrupt("a buffer longer than its matrices");
            }
        }
        for &[i, j, l] in &terms {
            let views = (a.get(i as usize), b.get(j as usize), c.get(l as usize));
            let (Some(a), Some(b), Some(c)) = views else {
                return corrupt("a term of matrices that are not there");
            };
            if a.cols != b.rows || a.rows != c.rows || b.cols != c.cols {
                return corrupt("a product of matrices that do not fit");
            }
        }
        terms.sort_unstable_by_key(|&[a, b, c]| (c, a, b));
        Ok(Self::grouped(lens, a, b, c, terms))
    }

    /// Numbers of elements of the three buffers.
    pub fn lens(&self) -> [usize; 3] {
        self.lens
    }

    /// Matrices of the three buffers.
    pub fn views(&self) -> [&[MatrixView]; 3] {
        [&self.a, &self.b, &self.c]
    }

    /// Terms sorted by C.
    pub fn terms(&self) -> &[[u32; 3]] {
        &self.terms
    }

    /// Groups of terms that are sorted by C.
    fn grouped(
        lens: [usize; 3],
        a: Vec<MatrixView>,
        b: Vec<MatrixView>,
        c: Vec<MatrixView>,
        terms: Vec<[u32; 3]>,
    ) -> Self {
        let mut first = 0;
        let group = |l: usize| {
            let own = terms[first..].iter().take_while(|term| term[2] as usize == l);
            let steps = own.clone().map(|&[i, j, _]| a[i as usize].len() * b[j as usize].cols);
            let (steps, end) = (steps.sum(), first + own.count());
            let group = TermGroup { c: l as u32, terms: (first as u32, end as u32), steps };
            first = end;
            group
        };
        let mut groups: Vec<TermGroup> = (0..c.len()).map(group).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.steps));
        Self { lens, a, b, c, terms, groups }
    }

    /// One group per C; groups with the most multiply-adds first.
    pub(crate) fn groups(&self) -> &[TermGroup] {
        &self.groups
    }

    /// Terms of one C.
    pub(crate) fn terms_of(&self, group: &TermGroup) -> &[[u32; 3]] {
        &self.terms[group.terms.0 as usize..group.terms.1 as usize]
    }

    /// These products as a description for devices; the matrices with the most multiply-adds come first.
    pub(crate) fn blocks(&self) -> BlockProducts {
        let sum = |group: &TermGroup| {
            let to = self.c[group.c as usize];
            let term = |&[a, b, _]: &[u32; 3]| {
                let (a, b) = (self.a[a as usize], self.b[b as usize]);
                BlockTerm { factors: [a.flat(), b.flat()], steps: a.cols }
            };
            let terms = self.terms_of(group).iter().map(term).collect();
            BlockSum { to: to.flat(), sizes: [to.rows, to.cols], terms }
        };
        let sums = self.groups.iter().map(sum).collect();
        BlockProducts { len: self.lens[2], sums, tables: Default::default() }
    }

    /// Number of multiply-adds.
    pub fn steps(&self) -> usize {
        self.groups.iter().map(|group| group.steps).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        let views = self.a.len() + self.b.len() + self.c.len();
        views * size_of::<MatrixView>() + size_of_val(&self.terms[..])
    }

    /// Products for the cotangent of operand `i`: `Ā = C̄ Bᵀ` of `(C̄, B)`, or `B̄ = Aᵀ C̄` of `(A, C̄)`.
    pub(crate) fn cotangent(&self, i: usize) -> Self {
        let transposed = |views: &[MatrixView]| views.iter().map(|view| view.transpose()).collect();
        let [la, lb, lc] = self.lens;
        let terms = self.terms.iter();
        let (lens, a, b, c, mut terms): (_, _, _, _, Vec<_>) = match i {
            0 => {
                let terms = terms.map(|&[a, b, c]| [c, b, a]).collect();
                ([lc, lb, la], self.c.clone(), transposed(&self.b), self.a.clone(), terms)
            }
            _ => {
                let terms = terms.map(|&[a, b, c]| [a, c, b]).collect();
                ([la, lc, lb], transposed(&self.a), self.c.clone(), self.b.clone(), terms)
            }
        };
        terms.sort_unstable_by_key(|&[a, b, c]| (c, a, b));
        Self::grouped(lens, a, b, c, terms)
    }
}
