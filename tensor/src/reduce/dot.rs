//! Inner products.

use t4a_algebra::Float;
use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};

use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::nn::lanes;
use crate::tensor::Tensor;

const OP: &str = "dot";

struct DotLoop<'a, T>([&'a [T]; 2]);

impl<T: Float> Loop for DotLoop<'_, T> {
    type Output = T;
    #[inline(always)]
    fn run(self) -> T {
        lanes::dot(self.0[0], self.0[1], |y| y)
    }
}

/// `Σ xᵢ yᵢ` of two tensors of one shape, without conjugation. Blocks of 2¹⁴ elements are summed in their type, with the
/// error of a row of the [reduction](self::super), and their sums in `f64`, in the order of the blocks.
///
/// Cost: one read of both tensors.
///
/// # Errors
/// `ShapeMismatch`; `OutOfMemory` for copies of views.
///
/// ```
/// use t4a_tensor::{Tensor, reduce::dot};
/// let x = Tensor::from_vec(vec![1.0, 2.0, 3.0], &[3])?;
/// assert_eq!(dot(&x, &x)?, 14.0);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn dot<T: Float + Into<f64>>(x: &Tensor<T>, y: &Tensor<T>) -> Result<f64> {
    if x.shape() != y.shape() {
        return Err(TensorError::shapes(OP, x.shape(), y.shape(), "equal shapes"));
    }
    let (x, y) = (row_major(x)?, row_major(y)?);
    let (Some(x), Some(y)) = (x.as_slice(), y.as_slice()) else {
        unreachable!("a contiguous tensor is a slice")
    };
    let mut sums = vec![0.0; x.len().div_ceil(lanes::BLOCK)];
    parallel::for_each_mut(&mut sums, parallel::worthwhile(x.len(), 1), |k, sum| {
        let block = k * lanes::BLOCK..x.len().min((k + 1) * lanes::BLOCK);
        *sum = dispatch(DotLoop([&x[block.clone()], &y[block]])).into();
    });
    Ok(sums.iter().sum())
}
