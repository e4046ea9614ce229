//! Values of a train at multi-indices, with products of leading cores kept between neighbouring points.

use t4a_algebra::Numeric;
use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;

use super::{Result, TensorTrain, TrainError};

/// Rejects a multi-index of another length or outside of its sites.
pub(crate) fn check_index(op: &'static str, sizes: &[usize], index: &[usize]) -> Result<()> {
    if index.len() != sizes.len() {
        return Err(TrainError::Length { op, required: sizes.len(), given: index.len() });
    }
    match index.iter().zip(sizes).position(|(s, d)| s >= d) {
        None => Ok(()),
        Some(site) => Err(TrainError::Index { op, site, index: index[site], size: sizes[site] }),
    }
}

/// `out = v A(s)` for a core `[l, d, r]` in row-major order.
pub(crate) fn step<T: LinalgScalar>(v: &[T], core: &Tensor<T>, s: usize, out: &mut Vec<T>) {
    let shape = core.shape();
    let (d, r) = (shape[1], shape[2]);
    let data = core.as_slice().unwrap_or_default();
    out.clear();
    out.resize(r, T::ZERO);
    for (l, &x) in v.iter().enumerate() {
        let row = &data[(l * d + s) * r..][..r];
        out.iter_mut().zip(row).for_each(|(o, &a)| *o = Numeric::add(*o, Numeric::mul(x, a)));
    }
}

/// Evaluates one train at many points. Products of leading cores are kept and reused for the sites that
/// a point has in common with the previous one.
///
/// Cost per point: `l·r` multiply-adds for each site behind the common ones.
#[derive(Debug)]
pub struct Evaluator<'a, T: LinalgScalar> {
    train: &'a TensorTrain<T>,
    sizes: Vec<usize>,
    point: Vec<usize>,
    /// `A₁(s₁) ⋯ Aₖ(sₖ)` of the last point.
    left: Vec<Vec<T>>,
}

impl<'a, T: LinalgScalar> Evaluator<'a, T> {
    /// An evaluator without a last point.
    pub fn new(train: &'a TensorTrain<T>) -> Self {
        let left = vec![Vec::new(); train.len()];
        Self { train, sizes: train.sizes(), point: Vec::new(), left }
    }

    /// `F(s₁, …, s_n)`.
    ///
    /// # Errors
    /// `Length`, `Index`.
    pub fn at(&mut self, index: &[usize]) -> Result<T> {
        check_index("eval", &self.sizes, index)?;
        let common = self.point.iter().zip(index).take_while(|(a, b)| a == b).count();
        let one = [T::ONE];
        for site in common..index.len() {
            let (done, rest) = self.left.split_at_mut(site);
            let v = done.last().map_or(&one[..], Vec::as_slice);
            step(v, &self.train.cores[site], index[site], &mut rest[0]);
        }
        self.point.clear();
        self.point.extend_from_slice(index);
        Ok(self.left[index.len() - 1][0])
    }
}

impl<T: LinalgScalar> TensorTrain<T> {
    /// `F(s₁, …, s_n)`. Cost `Σ l·r` multiply-adds.
    ///
    /// # Errors
    /// `Length`, `Index`.
    pub fn eval(&self, index: &[usize]) -> Result<T> {
        Evaluator::new(self).at(index)
    }

    /// Values at many multi-indices, concatenated in `points`. Points are visited in
    /// lexicographic order, so that common leading sites are multiplied once.
    ///
    /// # Errors
    /// `Length` unless `points` has a multiple of `n` numbers, `Index`.
    pub fn eval_many(&self, points: &[usize]) -> Result<Vec<T>> {
        let n = self.len();
        if !points.len().is_multiple_of(n) {
            let required = points.len().next_multiple_of(n);
            return Err(TrainError::Length { op: "eval_many", required, given: points.len() });
        }
        let point = |i: usize| &points[i * n..][..n];
        let mut order: Vec<usize> = (0..points.len() / n).collect();
        order.sort_unstable_by(|&a, &b| point(a).cmp(point(b)));
        let mut values = vec![T::ZERO; order.len()];
        let mut evaluator = Evaluator::new(self);
        for i in order {
            values[i] = evaluator.at(point(i))?;
        }
        Ok(values)
    }
}
