//! Factorisations of N-dimensional tensors as matrices: some axes form the rows, the others the columns.

use t4a_tensor::TensorError;

use crate::error::Result;

/// Partition of the axes of a tensor into rows and columns of a matrix, with the inverse map.
#[derive(Clone, Debug)]
pub(crate) struct AxisSplit {
    left: Vec<usize>,
    right: Vec<usize>,
    axes: Vec<usize>,
}

impl AxisSplit {
    /// Partition in which the axes `left`, in this order, become rows; the others, in their order, columns.
    ///
    /// # Errors
    /// `Tensor` for axes out of range or repeated.
    pub(crate) fn new(shape: &[usize], left: &[usize]) -> Result<Self> {
        let rank = shape.len();
        for (at, &axis) in left.iter().enumerate() {
            if axis >= rank || left[..at].contains(&axis) {
                return Err(TensorError::Axis { op: "left_dims", axis, rank }.into());
            }
        }
        let rest = (0..rank).filter(|axis| !left.contains(axis));
        let axes: Vec<usize> = left.iter().copied().chain(rest).collect();
        let sizes: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let (left, right) = sizes.split_at(left.len());
        Ok(Self { left: left.to_vec(), right: right.to_vec(), axes })
    }

    /// All axes, those of the rows first.
    pub(crate) fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Sizes of the row axes.
    pub(crate) fn rows(&self) -> &[usize] {
        &self.left
    }

    /// Sizes of the column axes.
    pub(crate) fn cols(&self) -> &[usize] {
        &self.right
    }

    /// Inverse of the permutation [`axes`](Self::axes).
    pub(crate) fn inverse(&self) -> Vec<usize> {
        let mut inverse = vec![0; self.axes.len()];
        self.axes.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LinalgError;
    use crate::testing::*;

    #[test]
    fn rows_and_columns_are_merged_axes() {
        let a = random::<f64>(1, &[2, 3, 4, 2]);
        let split = AxisSplit::new(a.shape(), &[2, 0]).unwrap();
        assert_eq!((split.rows(), split.cols()), (&[4, 2][..], &[3, 2][..]));
        let moved = a.permute(split.axes()).unwrap();
        let matrix = moved.reshape(&[8, 6]).unwrap();
        assert_eq!(matrix.get(&[3, 5]), a.get(&[1, 2, 1, 1]));
        assert_close(&moved.permute(&split.inverse()).unwrap(), &a, 0.0);
        // No row axes: a 1 × n matrix.
        assert!(AxisSplit::new(a.shape(), &[]).unwrap().rows().is_empty());
    }

    #[test]
    fn bad_axes_are_errors() {
        for left in [&[2][..], &[0, 0]] {
            let error = AxisSplit::new(&[2, 3], left).unwrap_err();
            assert!(matches!(error, LinalgError::Tensor(TensorError::Axis { .. })));
        }
    }
}
