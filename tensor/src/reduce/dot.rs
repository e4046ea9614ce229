//! Inner products.

use t4a_algebra::Float;
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};

use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::nn::lanes;
use crate::tensor::Tensor;

const OP: &str = "dot";

/// Elements whose sum is computed in their type. A block of x stays in the L1 cache for all others.
const BLOCK: usize = 1 << 11;
/// Blocks of a chunk of work.
const BLOCKS: usize = 8;

/// Sums for each of the others, of one chunk.
struct DotsLoop<'a, T> {
    x: &'a [T],
    others: &'a [&'a [T]],
    first: usize,
    sums: &'a mut [f64],
}

impl<T: Float + Into<f64>> Loop for DotsLoop<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (k, x) in self.x.chunks(BLOCK).enumerate() {
            let first = self.first + k * BLOCK;
            for (sum, y) in self.sums.iter_mut().zip(self.others) {
                *sum += lanes::dot(x, &y[first..first + x.len()], |y| y).into();
            }
        }
    }
}

/// `Σ xᵢ yᵢ` of a tensor with each of some others of its shape, without conjugation. Blocks of 2¹¹ elements are summed
/// in their type, with the error of a row of the [reduction](self::super), and their sums in `f64`, in an order that
/// depends on the number of elements alone.
///
/// Cost: one read of every tensor.
///
/// # Errors
/// `ShapeMismatch`; `OutOfMemory` for copies of views.
///
/// ```
/// use t4a_tensor::{Tensor, reduce::dots};
/// let x = Tensor::from_vec(vec![1.0, 2.0, 3.0], &[3])?;
/// let y = Tensor::from_vec(vec![1.0, 0.0, -1.0], &[3])?;
/// assert_eq!(dots(&x, &[&x, &y])?, [14.0, -2.0]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn dots<T: Float + Into<f64>>(x: &Tensor<T>, others: &[&Tensor<T>]) -> Result<Vec<f64>> {
    if let Some(y) = others.iter().find(|y| y.shape() != x.shape()) {
        return Err(TensorError::shapes(OP, x.shape(), y.shape(), "equal shapes"));
    }
    let all = [x].into_iter().chain(others.iter().copied());
    let all = all.map(row_major).collect::<Result<Vec<_>>>()?;
    let slices: Vec<&[T]> = all.iter().filter_map(|x| x.as_slice()).collect();
    let (x, others) = (slices[0], &slices[1..]);
    let chunks: Vec<&[T]> = x.chunks(BLOCKS * BLOCK).collect();
    let mut sums = vec![vec![0.0; others.len()]; chunks.len()];
    let parallel = parallel::worthwhile(x.len(), others.len());
    parallel::for_each_mut(&mut sums, parallel, |k, sums| {
        dispatch(DotsLoop { x: chunks[k], others, first: k * BLOCKS * BLOCK, sums });
    });
    Ok((0..others.len()).map(|i| sums.iter().map(|sums| sums[i]).sum()).collect())
}
