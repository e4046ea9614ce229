//! Oracles: dense matrices of operators by Kronecker products, with explicit Jordan–Wigner strings.

use t4a_algebra::c64;
use t4a_networks::sites::{Site, Sites};
use t4a_structured::Sector;
use t4a_tensor::Tensor;

/// A dense square matrix, row-major.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    pub(crate) n: usize,
    pub(crate) entries: Vec<c64>,
}

impl Dense {
    pub(crate) fn zeros(n: usize) -> Self {
        Self { n, entries: vec![c64::ZERO; n * n] }
    }

    pub(crate) fn identity(n: usize) -> Self {
        let mut out = Self::zeros(n);
        (0..n).for_each(|i| out.entries[i * n + i] = c64::ONE);
        out
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let n = self.n;
        let mut out = Self::zeros(n);
        for i in 0..n {
            for k in 0..n {
                let x = self.entries[i * n + k];
                if x != c64::ZERO {
                    for j in 0..n {
                        out.entries[i * n + j] += x * other.entries[k * n + j];
                    }
                }
            }
        }
        out
    }

    pub(crate) fn add(&mut self, c: c64, other: &Self) {
        self.entries.iter_mut().zip(&other.entries).for_each(|(a, b)| *a += c * b);
    }

    pub(crate) fn adjoint(&self) -> Self {
        let n = self.n;
        let entry = |k: usize| self.entries[k % n * n + k / n].conj();
        Self { n, entries: (0..n * n).map(entry).collect() }
    }

    pub(crate) fn kron(&self, other: &Self) -> Self {
        let (n, m) = (self.n, other.n);
        let mut out = Self::zeros(n * m);
        for i in 0..n * m {
            for j in 0..n * m {
                out.entries[i * n * m + j] =
                    self.entries[i / m * n + j / m] * other.entries[i % m * m + j % m];
            }
        }
        out
    }

    /// `exp(c H)` of a Hermitian matrix times a vector.
    #[allow(dead_code)]
    pub(crate) fn evolved(&self, c: c64, x: &[c64]) -> Vec<c64> {
        let n = self.n;
        let (values, vectors) = self.eigh();
        let part = |k: usize| -> c64 {
            (0..n).map(|i| vectors[i * n + k].conj() * x[i]).sum::<c64>() * (c * values[k]).exp()
        };
        let parts: Vec<c64> = (0..n).map(part).collect();
        (0..n).map(|i| (0..n).map(|k| vectors[i * n + k] * parts[k]).sum()).collect()
    }

    /// Eigenvalues ascending, eigenvectors as columns.
    pub(crate) fn eigh(&self) -> (Vec<f64>, Vec<c64>) {
        let a = Tensor::from_vec(self.entries.clone(), &[self.n, self.n]).unwrap();
        let found = t4a_linalg::eigh::eigh(&a).unwrap();
        (found.values.to_vec().unwrap(), found.vectors.to_vec().unwrap())
    }

    pub(crate) fn distance(&self, other: &[c64]) -> f64 {
        assert_eq!(self.entries.len(), other.len());
        self.entries.iter().zip(other).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
    }
}

/// The matrix of a named operator in the basis of the site.
pub(crate) fn local<S: Sector>(site: &Site<S>, name: &str) -> Dense {
    let free = site.conserve(|_| t4a_structured::Trivial).unwrap();
    let (re, im) = free.operator(name).unwrap().to_dense().unwrap();
    let numbers = |x: &t4a_diff::Eager| {
        use t4a_diff::Array;
        x.elements().unwrap().typed::<f64>().unwrap().to_vec().unwrap()
    };
    let (re, im) = (numbers(&re), im.as_ref().map(numbers));
    let entry = |k: usize| c64::new(re[k], im.as_ref().map_or(0.0, |im| im[k]));
    Dense { n: site.dim(), entries: (0..re.len()).map(entry).collect() }
}

/// One operator of a chain: with `F` on all sites before it if it is odd.
pub(crate) fn embedded<S: Sector>(sites: &Sites<S>, name: &str, at: usize) -> Dense {
    let odd = sites.get(at).unwrap().is_odd(name).unwrap();
    let mut out = Dense::identity(1);
    for (i, site) in sites.iter().enumerate() {
        let own = match i.cmp(&at) {
            std::cmp::Ordering::Less if odd => local(site, "F"),
            std::cmp::Ordering::Equal => local(site, name),
            _ => Dense::identity(site.dim()),
        };
        out = out.kron(&own);
    }
    out
}

/// A sum of products of operators.
pub(crate) fn dense_sum<S: Sector>(sites: &Sites<S>, terms: &[(c64, Vec<(&str, usize)>)]) -> Dense {
    let n = sites.iter().map(|site| site.dim()).product();
    let mut out = Dense::zeros(n);
    for (c, factors) in terms {
        let product = factors
            .iter()
            .fold(Dense::identity(n), |sum, (name, at)| sum.mul(&embedded(sites, name, *at)));
        out.add(*c, &product);
    }
    out
}
