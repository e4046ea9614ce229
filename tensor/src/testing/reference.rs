//! Results computed one index at a time.

use t4a_algebra::Scalar;

use crate::tensor::Tensor;

/// Every index of a shape in row-major order.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<'_> {
    let numel: usize = if shape.contains(&0) { 0 } else { shape.iter().product() };
    (0..numel).map(move |position| {
        let mut rest = position;
        let mut index = vec![0; shape.len()];
        for (slot, &size) in index.iter_mut().zip(shape).rev() {
            *slot = rest % size;
            rest /= size;
        }
        index
    })
}

/// `f` at every index of a shape, in row-major order.
pub fn naive<T>(shape: &[usize], f: impl FnMut(&[usize]) -> T) -> Vec<T> {
    let mut f = f;
    indices(shape).map(|index| f(&index)).collect()
}

/// The elements of a tensor in row-major order, read one by one.
pub fn elements<T: Scalar>(x: &Tensor<T>) -> Vec<T> {
    naive(x.shape(), |index| x.get(index).expect("an index of the shape"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_run_in_row_major_order() {
        let all: Vec<_> = indices(&[2, 3]).collect();
        assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(indices(&[]).collect::<Vec<_>>(), [Vec::<usize>::new()]);
        assert_eq!(indices(&[3, 0]).count(), 0);
    }

    #[test]
    fn every_layout_has_the_elements_that_it_reads_one_by_one() {
        for shape in super::super::SHAPES {
            for (name, x) in super::super::layouts::<i16>(shape) {
                assert_eq!(x.shape(), shape, "{name}");
                assert_eq!(x.to_vec().unwrap(), elements(&x), "{name} {shape:?}");
            }
        }
    }
}
