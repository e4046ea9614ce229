//! Sums of any number of multiples.

use t4a_algebra::parallel;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Numeric, Scalar};

use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::tensor::Tensor;

const OP: &str = "add terms";

/// Elements of the sum that stay in the L1 cache while the terms are added.
const BLOCK: usize = 1 << 11;

struct AddTermsLoop<'a, T> {
    sum: &'a mut [T],
    terms: &'a [(T, &'a [T])],
    first: usize,
}

impl<T: Numeric> Loop for AddTermsLoop<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for &(c, y) in self.terms {
            let y = &y[self.first..self.first + self.sum.len()];
            for (sum, &y) in self.sum.iter_mut().zip(y) {
                *sum = y.mul_add(c, *sum);
            }
        }
    }
}

/// `x + Σ cᵢ yᵢ` of tensors of one shape, in the order of the terms; in place if x is contiguous and the only owner of
/// its memory.
///
/// Cost: one read of every tensor and one write.
///
/// # Errors
/// `ShapeMismatch`; `OutOfMemory` for copies.
///
/// ```
/// use t4a_tensor::{Tensor, map::add_terms};
/// let [x, y] = [[1.0, 2.0], [3.0, 5.0]].map(|x| Tensor::from_vec(x.to_vec(), &[2]));
/// let (x, y) = (x?, y?);
/// assert_eq!(add_terms(x.clone(), &[(2.0, &y), (-1.0, &x)])?.to_vec()?, [6.0, 10.0]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn add_terms<T: Scalar + Numeric>(
    mut x: Tensor<T>,
    terms: &[(T, &Tensor<T>)],
) -> Result<Tensor<T>> {
    if let Some((_, y)) = terms.iter().find(|(_, y)| y.shape() != x.shape()) {
        return Err(TensorError::shapes(OP, x.shape(), y.shape(), "equal shapes"));
    }
    let all = terms.iter().map(|&(c, y)| Ok((c, row_major(y)?))).collect::<Result<Vec<_>>>()?;
    let terms: Vec<(T, &[T])> =
        all.iter().filter_map(|(c, y)| y.as_slice().map(|y| (*c, y))).collect();
    let sum = x.as_mut_slice()?;
    let parallel = parallel::worthwhile(sum.len(), terms.len());
    let mut blocks: Vec<&mut [T]> = sum.chunks_mut(BLOCK).collect();
    parallel::for_each_mut(&mut blocks, parallel, |k, sum| {
        dispatch(AddTermsLoop { sum, terms: &terms, first: k * BLOCK });
    });
    Ok(x)
}
