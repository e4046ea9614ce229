//! Burn's slices over the engine's.

use burn_backend::Slice;
use t4a_tensor::{AnyTensor, Result, TensorError};

/// The part of each leading axis that its slice names. A negative step takes the range
/// `[start, end)` from its last element backwards, which is not the order of Python.
///
/// # Errors
/// [`TensorError::Shape`] for more slices than axes.
pub(super) fn slice(x: &AnyTensor, slices: &[Slice]) -> Result<AnyTensor> {
    if slices.len() > x.rank() {
        return Err(TensorError::shape("slice", x.shape(), "at most one slice per axis"));
    }
    let mut out = x.clone();
    for (axis, slice) in slices.iter().enumerate() {
        let range = slice.to_range(x.shape()[axis]);
        let len = slice.output_size(x.shape()[axis]);
        let start = match slice.step() {
            _ if len == 0 => 0,
            step if step < 0 => range.end - 1,
            _ => range.start,
        };
        if (start, len, slice.step()) != (0, x.shape()[axis], 1) {
            out = out.slice_axis(axis, start, len, slice.step())?;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use t4a_tensor::Tensor;

    #[test]
    fn a_negative_step_reverses_the_range() {
        let x: AnyTensor = Tensor::from_vec((0..10i32).collect(), &[10]).unwrap().into();
        let at = |start, end, step| {
            let part = slice(&x, &[Slice::new(start, end, step)]).unwrap();
            part.typed::<i32>().unwrap().to_vec().unwrap()
        };
        assert_eq!(at(2, Some(7), -1), [6, 5, 4, 3, 2]);
        assert_eq!(at(2, Some(7), -2), [6, 4, 2]);
        assert_eq!(at(0, None, -3), [9, 6, 3, 0]);
        assert_eq!(at(-4, Some(-1), 1), [6, 7, 8]);
        assert_eq!(at(-4, Some(-1), -1), [8, 7, 6]);
        assert_eq!(at(5, Some(100), 2), [5, 7, 9]);
        assert_eq!(at(7, Some(2), -1), [0i32; 0]);
        assert_eq!(at(-100, Some(2), 1), [0, 1]);
        assert!(slice(&x, &[Slice::full(), Slice::full()]).is_err());
    }
}
