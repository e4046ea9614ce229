//! Sums, multiples, elementwise and inner products, norms.

use t4a_algebra::{Field, Float, Numeric};
use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;

use super::matrix::{absorb_left, conj, product, tall};
use super::{Result, TensorTrain};

impl<T: LinalgScalar> TensorTrain<T> {
    /// `F + G`: the bonds add up.
    ///
    /// # Errors
    /// `Sizes`.
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.same_sites("add", other)?;
        let last = self.len() - 1;
        let pairs = self.cores.iter().zip(&other.cores).enumerate();
        let cores = pairs.map(|(k, (a, b))| direct_sum(a, b, k > 0, k < last));
        Self::checked("add", cores.collect::<Result<_>>()?)
    }

    /// `F − G`.
    ///
    /// # Errors
    /// `Sizes`.
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.add(&other.scale(Numeric::neg(T::ONE))?)
    }

    /// `a F`.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn scale(&self, a: T) -> Result<Self> {
        let mut cores = self.cores.clone();
        cores[0].as_mut_slice()?.iter_mut().for_each(|x| *x = Numeric::mul(*x, a));
        Ok(Self { cores })
    }

    /// `F · G` element by element: the bonds multiply.
    ///
    /// # Errors
    /// `Sizes`; `Tensor` (memory).
    pub fn hadamard(&self, other: &Self) -> Result<Self> {
        self.same_sites("hadamard", other)?;
        let cores = self.cores.iter().zip(&other.cores).map(|(a, b)| kronecker(a, b));
        Self::checked("hadamard", cores.collect::<Result<_>>()?)
    }

    /// `⟨F, G⟩ = Σ conj(F) G`. Cost `Σ d·(l·l'·r + l'·r·r')` multiply-adds.
    ///
    /// # Errors
    /// `Sizes`.
    pub fn inner(&self, other: &Self) -> Result<T> {
        self.same_sites("inner", other)?;
        let mut left = Tensor::ones(&[1, 1])?;
        for (a, b) in self.cores.iter().zip(&other.cores) {
            // [a, b] · [b, d, r'] = [a, d, r'], and A* over its first two axes.
            let right = absorb_left(&left, b)?;
            left = product(&conj(&tall(a)?)?.permute(&[1, 0])?, &tall(&right)?)?;
        }
        Ok(left.get(&[0, 0]).unwrap_or(T::ZERO))
    }

    /// `‖F‖ = √⟨F, F⟩` by orthogonal factorisations: relative accuracy for differences too, where
    /// [`TensorTrain::inner`] loses half of the digits.
    ///
    /// # Errors
    /// `Linalg`: elements that are NaN or infinite.
    pub fn norm(&self) -> Result<T::R> {
        let canonical = self.canonical(self.len() - 1)?;
        let squares = canonical.cores[self.len() - 1].to_vec()?.into_iter().map(Field::modulus);
        let hypot = |a: T::R, b: T::R| {
            // Scaled: squares may leave the range.
            let (small, large) = if a < b { (a, b) } else { (b, a) };
            if large == <T::R as Numeric>::ZERO {
                return large;
            }
            let ratio = Field::div(small, large);
            let one = <T::R as Numeric>::ONE;
            Numeric::mul(large, Float::sqrt(Numeric::mul_add(ratio, ratio, one)))
        };
        Ok(squares.fold(<T::R as Numeric>::ZERO, hypot))
    }

    /// `‖F − G‖`.
    ///
    /// # Errors
    /// `Sizes`, `Linalg`.
    pub fn distance(&self, other: &Self) -> Result<T::R> {
        self.sub(other)?.norm()
    }
}

/// Cores one behind the other in the bonds that add up, `left` and `right`.
fn direct_sum<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    left: bool,
    right: bool,
) -> Result<Tensor<T>> {
    let (sa, sb) = (a.shape(), b.shape());
    let (lower, beside) = (if left { sa[0] } else { 0 }, if right { sa[2] } else { 0 });
    let shape = [lower + sb[0], sa[1], beside + sb[2]];
    let mut out = vec![T::ZERO; shape.iter().product()];
    for (core, row, col) in [(a, 0, 0), (b, lower, beside)] {
        let (size, data) = (core.shape(), core.as_slice().unwrap_or_default());
        for (i, line) in data.chunks_exact(size[2]).enumerate() {
            let at = (row * size[1] + i) * shape[2] + col;
            let target = &mut out[at..at + size[2]];
            target.iter_mut().zip(line).for_each(|(o, &x)| *o = Numeric::add(*o, x));
        }
    }
    Ok(Tensor::from_vec(out, &shape)?)
}

/// `A(s) ⊗ B(s)`.
fn kronecker<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (&[la, d, ra], &[lb, _, rb]) = (a.shape(), b.shape()) else {
        unreachable!("cores have rank 3")
    };
    let (x, y) = (a.as_slice().unwrap_or_default(), b.as_slice().unwrap_or_default());
    let mut out = Vec::with_capacity(la * lb * d * ra * rb);
    for i in 0..la {
        for j in 0..lb {
            for s in 0..d {
                let right = &y[(j * d + s) * rb..][..rb];
                for &p in &x[(i * d + s) * ra..][..ra] {
                    out.extend(right.iter().map(|&q| Numeric::mul(p, q)));
                }
            }
        }
    }
    Ok(Tensor::from_vec(out, &[la * lb, d, ra * rb])?)
}
