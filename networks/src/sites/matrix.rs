//! Square complex matrices of one site, row-major.

use t4a_algebra::c64;

/// An operator of a site, `[out, in]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LocalMatrix {
    pub(crate) n: usize,
    pub(crate) entries: Vec<c64>,
}

impl LocalMatrix {
    pub(crate) fn zeros(n: usize) -> Self {
        Self { n, entries: vec![c64::ZERO; n * n] }
    }

    pub(crate) fn identity(n: usize) -> Self {
        Self::diagonal(&vec![c64::ONE; n])
    }

    pub(crate) fn diagonal(values: &[c64]) -> Self {
        let mut out = Self::zeros(values.len());
        for (i, &value) in values.iter().enumerate() {
            out.entries[i * values.len() + i] = value;
        }
        out
    }

    pub(crate) fn at(&self, row: usize, col: usize) -> c64 {
        self.entries[row * self.n + col]
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.n);
        for (i, k, x) in self.nonzeros() {
            for j in 0..self.n {
                out.entries[i * self.n + j] += x * other.at(k, j);
            }
        }
        out
    }

    pub(crate) fn scale(&self, c: c64) -> Self {
        Self { n: self.n, entries: self.entries.iter().map(|x| x * c).collect() }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let entries = self.entries.iter().zip(&other.entries).map(|(a, b)| a + b).collect();
        Self { n: self.n, entries }
    }

    pub(crate) fn adjoint(&self) -> Self {
        let mut out = Self::zeros(self.n);
        for (i, j, x) in self.nonzeros() {
            out.entries[j * self.n + i] = x.conj();
        }
        out
    }

    /// Row, column and value of the entries that are not zero.
    pub(crate) fn nonzeros(&self) -> impl Iterator<Item = (usize, usize, c64)> + '_ {
        let n = self.n;
        let all = self.entries.iter().enumerate();
        all.filter(|(_, x)| **x != c64::ZERO).map(move |(k, &x)| (k / n, k % n, x))
    }

    /// The same operator after its basis states are reordered: state `k` is state `order[k]` of this one.
    pub(crate) fn reordered(&self, order: &[usize]) -> Self {
        let mut out = Self::zeros(self.n);
        for (i, &row) in order.iter().enumerate() {
            for (j, &col) in order.iter().enumerate() {
                out.entries[i * self.n + j] = self.at(row, col);
            }
        }
        out
    }

    /// The largest modulus of an entry.
    pub(crate) fn largest(&self) -> f64 {
        self.entries.iter().map(|x| x.norm()).fold(0.0, f64::max)
    }
}
