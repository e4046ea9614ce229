//! Dense tensor trains: `F(s₁, …, s_n) = A₁(s₁) A₂(s₂) ⋯ A_n(s_n)`, a product of matrices.
//!
//! ```text
//! core k     [bond k − 1, site k, bond k], row-major; bonds 0 and n have size 1
//! operator   [bond k − 1, output k, input k, bond k]
//! ```
//!
//! | task | |
//! |---|---|
//! | from and to dense arrays | [`TensorTrain::from_dense`], [`TensorTrain::to_dense`] |
//! | values | [`TensorTrain::eval`], [`TensorTrain::eval_many`], [`Evaluator`] |
//! | sums and integrals | [`TensorTrain::sum`], [`TensorTrain::weighted_sum`], [`TensorTrain::contract_sites`] |
//! | arithmetic | [`TensorTrain::add`], [`TensorTrain::scale`], [`TensorTrain::hadamard`], [`TensorTrain::inner`] |
//! | canonical form, lower bonds | [`TensorTrain::canonical`], [`TensorTrain::compress`] |
//! | linear maps | [`TrainOperator`] |
//!
//! Reference: I. Oseledets, SIAM J. Sci. Comput. 33, 2295 (2011).

mod algebra;
mod canonical;
mod compress;
mod dense;
mod error;
mod evaluate;
mod matrix;
mod operator;
mod rank_revealing;
mod sum;

use t4a_linalg::LinalgScalar;
use t4a_tensor::copy::row_major;
use t4a_tensor::random::{Generator, Sample, normal};
use t4a_tensor::{Element, Tensor};

pub use compress::{Compression, Factorisation};
pub use error::{BoxError, Result, TrainError};
pub use evaluate::Evaluator;
pub(crate) use evaluate::check_index;
pub(crate) use matrix::{magnitude, product};
pub use operator::TrainOperator;
pub use rank_revealing::RankRevealingLu;
pub(crate) use rank_revealing::Stop;

/// A tensor of `n ≥ 1` indices as a product of `n` cores `[l, d, r]`.
///
/// ```
/// use t4a_networks::train::TensorTrain;
/// // F(i, j, k) = xᵢ yⱼ z_k
/// let f = TensorTrain::product_of(&[vec![1.0, 2.0], vec![3.0, 5.0], vec![7.0, 11.0]])?;
/// assert_eq!(f.eval(&[1, 0, 1])?, 66.0);
/// assert_eq!(f.sum()?, 3.0 * 8.0 * 18.0);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorTrain<T: LinalgScalar> {
    cores: Vec<Tensor<T>>,
}

impl<T: LinalgScalar> TensorTrain<T> {
    /// A train of cores `[l, d, r]`. Strided cores are copied to row-major order.
    ///
    /// # Errors
    /// `Sites` without cores; `Core` unless each has rank 3 and no axis of size 0, neighbours share
    /// the size of their bond, and the outer bonds have size 1; `Tensor`.
    pub fn new(cores: Vec<Tensor<T>>) -> Result<Self> {
        Self::checked("tensor_train", cores)
    }

    pub(crate) fn checked(op: &'static str, cores: Vec<Tensor<T>>) -> Result<Self> {
        if cores.is_empty() {
            return Err(TrainError::Sites { op, required: 1, given: 0 });
        }
        let mut left = 1;
        for (site, core) in cores.iter().enumerate() {
            let last = site + 1 == cores.len();
            let fits = match *core.shape() {
                [l, d, r] => l == left && d > 0 && r > 0 && (!last || r == 1),
                _ => false,
            };
            if !fits {
                let right = if last { "1" } else { "r" };
                let required = format!("[{left}, d, {right}] with d, r ≥ 1");
                return Err(TrainError::Core { op, site, shape: core.shape().to_vec(), required });
            }
            left = core.shape()[2];
        }
        let cores = cores.iter().map(row_major).collect::<Result<_, _>>()?;
        Ok(Self { cores })
    }

    /// `F = value` everywhere: bonds of size 1.
    ///
    /// # Errors
    /// `Sites` without sites, `Core` for a site of size 0.
    pub fn constant(sizes: &[usize], value: T) -> Result<Self> {
        let of = |(k, &d): (usize, &usize)| if k == 0 { vec![value; d] } else { vec![T::ONE; d] };
        Self::product_of(&sizes.iter().enumerate().map(of).collect::<Vec<_>>())
    }

    /// `F(s₁, …, s_n) = Π vₖ[sₖ]`: bonds of size 1.
    ///
    /// # Errors
    /// `Sites` without vectors, `Core` for an empty vector.
    pub fn product_of(vectors: &[Vec<T>]) -> Result<Self> {
        let core = |v: &Vec<T>| Tensor::from_slice(v, &[1, v.len(), 1]);
        Self::checked("product_of", vectors.iter().map(core).collect::<Result<_, _>>()?)
    }

    /// 1 at one multi-index and 0 elsewhere.
    ///
    /// # Errors
    /// `Length`, `Index`, `Sites`.
    pub fn unit(sizes: &[usize], index: &[usize]) -> Result<Self> {
        check_index("unit", sizes, index)?;
        let vector = |(&d, &s): (&usize, &usize)| {
            (0..d).map(|i| if i == s { T::ONE } else { T::ZERO }).collect::<Vec<T>>()
        };
        Self::product_of(&sizes.iter().zip(index).map(vector).collect::<Vec<_>>())
    }

    /// Cores of independent normal elements with bonds of at most `bond`, and no larger than the
    /// number of elements on either side. Elements have variance `1 / (l · parts)`, so that values of the train are
    /// of order 1.
    ///
    /// # Errors
    /// `Sites`, `Core`; `Value` for a bond of 0.
    pub fn random(generator: &Generator, sizes: &[usize], bond: usize) -> Result<Self>
    where
        T::R: Sample,
    {
        if bond == 0 {
            return Err(TrainError::value("random", "the bond dimension must be at least 1"));
        }
        let n = sizes.len();
        let reach = |sizes: &[usize]| sizes.iter().fold(1, |a: usize, &d| a.saturating_mul(d));
        let mut cores = Vec::with_capacity(n);
        let mut left = 1;
        for k in 0..n {
            let right = bond.min(reach(&sizes[..=k])).min(reach(&sizes[k + 1..]));
            let shape = [left, sizes[k], right];
            let parts = if T::IS_COMPLEX { 2.0 } else { 1.0 };
            let deviation = (left as f64 * parts).sqrt().recip();
            let re = normal::<T::R>(generator, &shape, 0.0, deviation)?.to_vec()?;
            let im = normal::<T::R>(generator, &shape, 0.0, deviation)?.to_vec()?;
            cores.push(Tensor::from_fn(&shape, |i| T::from_parts(re[i], im[i]))?);
            left = right;
        }
        Self::checked("random", cores)
    }

    /// Number of sites.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.cores.len()
    }

    /// Sizes of the sites.
    pub fn sizes(&self) -> Vec<usize> {
        self.cores.iter().map(|core| core.shape()[1]).collect()
    }

    /// Sizes of the `n − 1` inner bonds.
    pub fn bonds(&self) -> Vec<usize> {
        self.cores[1..].iter().map(|core| core.shape()[0]).collect()
    }

    /// The largest bond.
    pub fn max_bond(&self) -> usize {
        self.bonds().into_iter().max().unwrap_or(1)
    }

    /// The cores `[l, d, r]`, each in row-major order.
    pub fn cores(&self) -> &[Tensor<T>] {
        &self.cores
    }

    /// The cores by value.
    pub fn into_cores(self) -> Vec<Tensor<T>> {
        self.cores
    }

    /// Number of elements of all cores.
    pub fn numel(&self) -> usize {
        self.cores.iter().map(Tensor::numel).sum()
    }

    /// The sites in reverse order: `G(s_n, …, s₁) = F(s₁, …, s_n)`.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn reverse(&self) -> Result<Self> {
        let flipped = self.cores.iter().rev().map(|core| core.permute(&[2, 1, 0]));
        Self::checked("reverse", flipped.collect::<Result<_, _>>()?)
    }

    /// Every element of the cores through `f`, which has to respect sums and products: conjugation,
    /// conversion between real and complex.
    pub(crate) fn map_cores<U: LinalgScalar>(&self, f: impl Fn(T) -> U) -> Result<TensorTrain<U>> {
        let map = |core: &Tensor<T>| {
            let data = core.to_vec()?.into_iter().map(&f).collect();
            Tensor::from_vec(data, core.shape())
        };
        Ok(TensorTrain { cores: self.cores.iter().map(map).collect::<Result<_, _>>()? })
    }

    /// The complex conjugate.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn conj(&self) -> Result<Self> {
        self.map_cores(t4a_algebra::Field::conj)
    }

    /// The same values as complex numbers.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn to_complex(&self) -> Result<TensorTrain<T::Complex>>
    where
        T::Complex: Element,
    {
        self.map_cores(|x| <T::Complex as t4a_algebra::Field>::from_parts(x.re(), x.im()))
    }

    /// Rejects trains with other sites.
    fn same_sites(&self, op: &'static str, other: &Self) -> Result<()> {
        let (lhs, rhs) = (self.sizes(), other.sizes());
        if lhs == rhs { Ok(()) } else { Err(TrainError::Sizes { op, lhs, rhs }) }
    }
}
